"""``cwb select``: the best of several schedules for every size, as a folder that a runtime loads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..core.errors import ExitStatus, InputError, located
from . import completion
from .folders import check_new, new_folder
from .msccl import DIALECTS, PLACEMENTS, PROTOCOLS
from .options import PATH, libraries_on_stderr, parse_duration, plugged, progress_on_stderr, telling_on_stderr
from .signals import INTERRUPTED
from .streams import echo

if TYPE_CHECKING:
    from ..core.collective import CollectiveKind
    from ..core.instance import Instance
    from ..harness.select import Candidates
    from ..harness.selection import Selection

#: Letters of a line where the output is no terminal.
WIDTH = 160

#: Collectives that files of MSCCL know.
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce", "gather", "scatter")


@click.command()
@click.argument("instance", shell_complete=completion.of(completion.instances, files=True))
@click.option("--collective", type=click.Choice(COLLECTIVES), help="Replaces the instance's.")
@click.option("--output", "-o", required=True, type=PATH, metavar="FOLDER", help="A new folder.")
@click.option("--min-bytes", metavar="SIZE", default="1 KiB", show_default=True, help="First size that is chosen for.")
@click.option("--max-bytes", metavar="SIZE", default="1 GiB", show_default=True, help="Last size that is chosen for.")
@click.option("--models", metavar="LIST", help="Such as 'ring, dbt, forestcoll k=2'.  [default: those that are fast]")
@click.option("--chunks", metavar="LIST", default="1, 4", show_default=True, help="Chunks of each rank's part.")
@click.option("--dialect", type=click.Choice(DIALECTS), default="msccl", show_default=True, help="The runtime.")
@click.option(
    "--proto", type=click.Choice(PROTOCOLS), default="Simple", show_default=True, help="Protocol of the files."
)
@click.option(
    "--placement",
    type=click.Choice(PLACEMENTS),
    default="out",
    show_default=True,
    help="For calls whose output is other memory than the input, the same, or either.",
)
@click.option("--instances", type=click.IntRange(1, 128), default=1, show_default=True, help="Copies on own channels.")
@click.option("--files", type=click.IntRange(1, 1024), help="Largest number of files.  [default: 4 for msccl, else 8]")
@click.option(
    "--time-limit", metavar="DURATION", default="5 min", show_default=True, help="Limit of all runs together."
)
@click.option("--run-limit", metavar="DURATION", default="10", show_default=True, help="Limit of one run.")
@click.option("--json", "as_json", is_flag=True, help="Print what was chosen as one JSON object on stdout.")
@click.option("--quiet", "-q", is_flag=True, help="No progress on stderr.")
@plugged
def select(
    instance: str,
    collective: str | None,
    output: Path,
    min_bytes: str,
    max_bytes: str,
    models: str | None,
    chunks: str,
    dialect: str,
    proto: str,
    placement: str,
    instances: int,
    files: int | None,
    time_limit: str,
    run_limit: str,
    as_json: bool,
    quiet: bool,
) -> int:
    """Choose the best of several schedules for every size of a collective on INSTANCE, and write a folder for runtimes.

    \b
    cwb select my.json --collective all_reduce -o chosen
    cwb select "dgx_a100()" --collective all_gather --dialect rccl --placement both -o chosen
    cwb select my.json --collective all_reduce --models "ring, dbt, forestcoll k=2" -o chosen

    Every schedule is verified, and schedules are compared by the completion time that 'cwb simulate' computes, with the
    best number of pieces for trees. The folder has algorithms/ with a file for each range of sizes, the files that
    MSCCL_CONFIG and NCCL's tuner plugin read, the schedules, a table and a plot. When the time is over, or at Ctrl-C,
    the choice is made among the schedules found so far.
    """
    from ..exchange.msccl.dialects import dialect_of
    from ..exchange.msccl.lower import Target
    from ..harness.select import DEFAULT_MODELS, Choice, candidates, items_of
    from ..harness.selection import selected

    check_new(output)
    first, last = (
        whole_size(text, option) for text, option in ((min_bytes, "--min-bytes"), (max_bytes, "--max-bytes"))
    )
    if first > last:
        raise InputError(f"{first:,} B is more than {last:,} B; expected a range of sizes", source="--min-bytes")
    target = Target(dialect_of(dialect), "cwb", proto, instances, placement, first, last)
    items, numbers = items_of(DEFAULT_MODELS if models is None else models), counts(chunks)
    limits = parse_duration(time_limit, "--time-limit"), parse_duration(run_limit, "--run-limit")
    posed, kind = problem(instance, collective)
    choice = Choice(posed, kind, first, last, items, numbers, *limits)
    with libraries_on_stderr(), progress_on_stderr(quiet=quiet) as progress:
        found = candidates(choice, progress)
        progress("comparing, and writing programs")
        with located(source=instance):
            chosen = selected(choice, found, target, files)
    with new_folder(output) as made:
        _fill(made, output.absolute(), chosen, found, proto)
    if as_json:
        echo(json.dumps(chosen.plain(), allow_nan=False))
    else:
        _show(output, chosen, found)
    return INTERRUPTED if found.interrupted else int(ExitStatus.OK)


def whole_size(text: str, option: str) -> int:
    """A whole number of bytes."""
    from ..core.units import UnitKind, parse

    with located(source=option):
        size = parse(text, UnitKind.SIZE, allow_zero=False)
        if size.denominator != 1:
            raise InputError(f"{text!r} is no whole number of bytes")
    return int(size)


def counts(text: str) -> tuple[int, ...]:
    """Numbers of chunks."""
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and len(word) <= 4 and int(word) for word in words):
        raise InputError(f"{text!r}; expected whole numbers from 1 to 9999, such as '1, 4'", source="--chunks")
    return tuple(dict.fromkeys(map(int, words)))


def problem(spec: str, collective: str | None) -> tuple[Instance, CollectiveKind]:
    """The machine and the collective."""
    from ..core.collective import CollectiveKind
    from ..core.network_views import seen_otherwise
    from ..core.topology import Topology
    from ..harness.demand import with_demand
    from ..instances import load

    with telling_on_stderr(), located(source=spec):
        posed = with_demand(load(spec), collective, None, None)
        posed = posed if isinstance(posed.network, Topology) else seen_otherwise(posed) or posed
        if not isinstance(posed.network, Topology):
            raise InputError("is to be trained on; expected a network and a collective")
        if posed.demand is None or posed.also:
            raise InputError("expected one collective; --collective names it")
    if posed.demand.collective is CollectiveKind.POINT_TO_POINT:
        raise InputError(f"point_to_point; expected one of {', '.join(COLLECTIVES)}", source="--collective")
    return posed, posed.demand.collective


def _fill(made: Path, folder: Path, chosen: Selection, found: Candidates, proto: str) -> None:
    """Write all files, and check programs as they are."""
    from ..reports.plots import selection as plot
    from ..reports.plots.look import look, to_bytes
    from ..reports.selection import csv_text, markdown

    _write_programs(made, folder, chosen)
    _write_schedules(made, chosen)
    plain = chosen.plain()
    texts = {
        "select.json": json.dumps(plain, indent=1, allow_nan=False) + "\n",
        "select.csv": csv_text(plain),
        "select.md": markdown(plain),
        "records.jsonl": "".join(json.dumps(record.to_json(), allow_nan=False) + "\n" for record in found.records),
        "nccl_tuner.conf": chosen.tuner(proto),
    }
    for name, text in texts.items():
        if text is not None:
            (made / name).write_bytes(text.encode(errors="backslashreplace"))
    with look():
        (made / "select.svg").write_bytes(to_bytes(plot.draw(plain), "svg"))


def _write_programs(made: Path, folder: Path, chosen: Selection) -> None:
    """Write the programs and the list of microsoft/msccl, and check them as a runtime finds them."""
    from ..exchange.msccl.check import check_file
    from ..exchange.msccl.folder import config_text, faults
    from ..exchange.msccl.write import xml_text

    programs = made / "algorithms"
    programs.mkdir()
    for one in chosen.ranges:
        (programs / one.file).write_bytes("".join(xml_text(one.algorithm)).encode())
    checked = [check_file(programs / one.file, [chosen.dialect]) for one in chosen.ranges]
    for fault in faults(checked, chosen.choice.first, chosen.choice.last, chosen.dialect)[:1]:
        raise InputError(f"the files do not pass the check: {fault}")
    if not chosen.dialect.placed:
        listed = [(folder / "algorithms" / one.file, one.algorithm) for one in chosen.ranges]
        (made / "msccl.conf").write_bytes(config_text(listed).encode(errors="surrogateescape"))


def _write_schedules(made: Path, chosen: Selection) -> None:
    """Write the schedule of every program, for the size that it was made for."""
    from ..schedules.files import write_schedule

    schedules = made / "schedules"
    schedules.mkdir()
    for one in chosen.ranges:
        candidate = one.candidate
        extra = {"model": candidate.item.model, "options": dict(candidate.item.options)}
        write_schedule(schedules / f"{one.algorithm.name}.json", candidate.instance, candidate.answer, None, extra)


def _show(folder: Path, chosen: Selection, found: Candidates) -> None:
    """Print the table, and what else there is to know."""
    from rich.table import Table

    from ..reports.selection import HEADINGS, rows
    from .streams import console

    plain = chosen.plain()
    title = f"{plain['collective']} of {plain['ranks']:,} ranks: the fastest of {len(chosen.candidates)} schedules"
    table = Table(title=title, title_justify="left")
    for number, heading in enumerate(HEADINGS):
        table.add_column(heading, justify="left" if number in (2, 7) else "right", overflow="fold")
    for row in rows(plain):
        table.add_row(*row)
    printed = console()
    if not printed.is_terminal:
        printed.width = max(printed.width, WIDTH)
    printed.print(table)
    if chosen.left_out:
        echo(f"{len(chosen.left_out)} left out; select.json says why", err=True)
    if found.why_ended:
        echo(f"{found.why_ended}; the choice is among those that were run", err=True)
    count = len(chosen.ranges)
    echo(f"{folder}: {count} file{'s' if count > 1 else ''} in algorithms/, for {chosen.dialect.name}", err=True)
