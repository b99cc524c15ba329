"""``cwb advise``: NCCL's choice, the best schedule, a bound and what was measured, at every size."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..core.errors import ExitStatus, InputError, located
from . import completion
from .calibrate import COLLECTIVES
from .options import OUTPUT_FILE, PATH, libraries_on_stderr, parse_duration, parse_options, plugged, progress_on_stderr
from .select import WIDTH, counts, problem, whole_size
from .signals import INTERRUPTED
from .streams import echo

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..core.collective import CollectiveKind
    from ..exchange.nccl_tests import Measured


@click.command()
@click.argument("instance", shell_complete=completion.of(completion.instances, files=True))
@click.option("--collective", type=click.Choice(COLLECTIVES), help="Replaces the instance's.")
@click.option(
    "--sizes", metavar="FIRST..LAST", default="1KiB..8GiB", show_default=True, help="Every other power of two."
)
@click.option("--measured", type=PATH, metavar="FILE", help="Results of nccl-tests.")
@click.option(
    "--models",
    metavar="LIST",
    help="Beside NCCL's, such as 'ring, dbt, forestcoll k=2'.  [default: those that are fast]",
)
@click.option("--chunks", metavar="LIST", default="1, 4", show_default=True, help="Chunks of each rank's part.")
@click.option(
    "-O", "options", multiple=True, metavar="NAME=VALUE", help="An option of the method nccl, such as version."
)
@click.option(
    "--graphs",
    type=PATH,
    metavar="XML",
    help="NCCL's graph file, whose channels are used as they are.",
)
@click.option(
    "--time-limit", metavar="DURATION", default="5 min", show_default=True, help="Limit of all runs together."
)
@click.option("--run-limit", metavar="DURATION", default="10", show_default=True, help="Limit of one run.")
@click.option(
    "--links-limit",
    metavar="DURATION",
    default="60",
    show_default=True,
    help="Limit of computing what more bandwidth is worth; 0: leave it out.",
)
@click.option("--output", "-o", type=OUTPUT_FILE, metavar="HTML", help="Write a page.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
@click.option("--quiet", "-q", is_flag=True, help="No progress on stderr.")
@plugged
def advise(
    instance: str,
    collective: str | None,
    sizes: str,
    measured: Path | None,
    models: str | None,
    chunks: str,
    options: tuple[str, ...],
    graphs: Path | None,
    time_limit: str,
    run_limit: str,
    links_limit: str,
    output: Path | None,
    as_json: bool,
    quiet: bool,
) -> int:
    """Report what to expect of a collective on INSTANCE, and what would improve it most.

    \b
    cwb advise my.json --collective all_reduce -o advice.html
    cwb advise "dgx_h100(boxes=2)" --collective all_reduce --measured nccl-tests.txt -O version=2.27.3

    At every size: what NCCL takes and predicts, its schedule and a ring, the best schedule found, a proved bound, and what
    was measured. All schedules are verified.
    """
    from ..core.files import write_whole
    from ..harness.advice import DEFAULT_MODELS, advise
    from ..harness.select import Choice, items_of
    from ..reports.advice import advice_page
    from ..reports.plots.advice import draw
    from ..reports.plots.look import look, to_bytes

    first, last = _range(sizes)
    items, numbers = items_of(DEFAULT_MODELS if models is None else models), counts(chunks)
    limits = parse_duration(time_limit, "--time-limit"), parse_duration(run_limit, "--run-limit")
    links_s = parse_duration(links_limit, "--links-limit") if links_limit.strip() != "0" else 0.0
    given = {**parse_options(options), **_channels(graphs)}
    posed, kind = problem(instance, collective)
    choice = Choice(posed, kind, first, last, items, numbers, *limits)
    with libraries_on_stderr(), progress_on_stderr(quiet=quiet) as progress:
        times = _measured(measured, kind)
        with located(source=instance):
            found = advise(choice, given, times, links_s, progress)
        plain = found.plain()
    if output is not None:
        with look():
            plot = to_bytes(draw(plain), "svg")
        write_whole(output, advice_page(plain, plot).encode(errors="backslashreplace"))
    if as_json:
        echo(json.dumps(plain, allow_nan=False))
    else:
        _show(plain)
    return INTERRUPTED if found.found.interrupted else int(ExitStatus.OK)


def _range(text: str) -> tuple[int, int]:
    """First and last size."""
    ends = text.split("..")
    if len(ends) != 2:
        raise InputError(f"{text[:60]!r}; expected two sizes, such as 1KiB..8GiB", source="--sizes")
    first, last = (whole_size(end.strip(), "--sizes") for end in ends)
    if first > last:
        raise InputError(f"{first:,} B is more than {last:,} B; expected a range of sizes", source="--sizes")
    return first, last


def _measured(path: Path | None, kind: CollectiveKind) -> Measured | None:
    """Times of the collective."""
    from ..exchange.nccl_tests import read_measured
    from .calibrate import kind_of

    if path is None:
        return None
    found = read_measured(path)
    kind_of(found, kind.value, str(path))
    return found


def _channels(path: Path | None) -> dict[str, Any]:
    """Channels and speeds of the rings in a graph file."""
    if path is None:
        return {}
    from ..exchange.nccl_graph import ring_channels

    orders, speeds = ring_channels(path)
    return {"channels": orders, "speeds": speeds}


def _show(found: Mapping[str, Any]) -> None:
    """Print the table, and what would help."""
    from rich.table import Table

    from ..reports.advice import HEADINGS, hints, rows
    from .streams import console

    table = Table(
        title=f"{found['collective']} of {found['ranks']:,} ranks, NCCL {found['nccl']}", title_justify="left"
    )
    for heading in HEADINGS:
        table.add_column(
            heading, justify="left" if heading in ("NCCL takes", "best schedule") else "right", overflow="fold"
        )
    for row in rows(found):
        table.add_row(*(f"{value:,.12g}" if isinstance(value, float) else str(value) for value in row))
    printed = console()
    if not printed.is_terminal:
        printed.width = max(printed.width, WIDTH)
    printed.print(table)
    for text in hints(found):
        echo(text)
    if found["why_ended"]:
        echo(f"{found['why_ended']}; the best is among those that were run", err=True)
