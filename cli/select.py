"""``cwb select``: the best of several schedules for every size, as a folder for a runtime."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..core.errors import ExitStatus, locate_errors
from ..core.option_names import DIALECTS, MSCCL_COLLECTIVES, PROTOCOLS
from . import completion
from .options import (
    PATH,
    Command,
    duration_option,
    json_flag,
    loading_progress_on_stderr,
    placement_option,
    plugin_option,
    quiet_flag,
    working_on_stderr,
)
from .signals import INTERRUPTED
from .streams import echo, table_console

if TYPE_CHECKING:
    from ..studies.selection import Selection


@click.command(cls=Command)
@click.argument("instance", shell_complete=completion.complete_names(completion.instances, files=True))
@click.option("--collective", type=click.Choice(MSCCL_COLLECTIVES), help="Collective, instead of the instance's.")
@click.option("--output", "-o", required=True, type=PATH, metavar="FOLDER", help="A new folder.")
@click.option("--min-bytes", metavar="SIZE", default="1 KiB", show_default=True, help="Smallest size.")
@click.option("--max-bytes", metavar="SIZE", default="1 GiB", show_default=True, help="Largest size.")
@click.option(
    "--models",
    "--methods",
    "models",
    metavar="LIST",
    help="Methods such as 'ring, dbt, forestcoll k=2'.  [default: the fast ones]",
)
@click.option("--chunks", metavar="LIST", default="1, 4", show_default=True, help="Chunks of each rank's part.")
@click.option("--dialect", type=click.Choice(DIALECTS), default="msccl", show_default=True, help="The runtime.")
@click.option(
    "--proto", type=click.Choice(PROTOCOLS), default="Simple", show_default=True, help="Protocol of the files."
)
@placement_option
@click.option(
    "--instances",
    type=click.IntRange(1, 128),
    default=1,
    show_default=True,
    help="Parallel copies, each with its own channels.",
)
@click.option("--files", type=click.IntRange(1, 1024), help="Largest number of files.  [default: 4 for msccl, else 8]")
@duration_option("time-limit", "Time limit of all runs together.", "5 min")
@duration_option("run-limit", "Time limit of one run.", "10")
@json_flag("what was chosen as one JSON object on stdout")
@quiet_flag
@plugin_option
def select(instance: str, models: str | None, output: Path, as_json: bool, quiet: bool, **options: Any) -> int:
    """Choose the best of several schedules for every size of a collective on INSTANCE, and write a folder for runtimes.

    \b
    cwb select my.json --collective all_reduce -o chosen
    cwb select "dgx_a100()" --collective all_gather --dialect rccl --placement both -o chosen
    cwb select my.json --collective all_reduce --models "ring, dbt, forestcoll k=2" -o chosen

    Every schedule is verified, and schedules are compared by the completion time that 'cwb simulate' computes, with the
    best number of pieces for trees. The folder has algorithms/ with a file for each range of sizes, the files that
    MSCCL_CONFIG and NCCL's tuner plugin read, the schedules, a table and a plot. At the time limit, or at Ctrl-C,
    the choice is made among the schedules found so far.
    """
    from ..instances import load
    from ..studies.schedule_candidates import DEFAULT_MODELS
    from ..studies.selection import select as choose

    with loading_progress_on_stderr(), locate_errors(source=instance):
        machine = load(instance)
    with working_on_stderr(quiet=quiet) as progress, locate_errors(source=instance):
        models = DEFAULT_MODELS if models is None else models
        chosen = choose(machine, models=models, output=output, progress=progress, **options)
    if as_json:
        echo(json.dumps(chosen.to_json(), allow_nan=False))
    else:
        _show(output, chosen)
    return INTERRUPTED if chosen.found.interrupted else int(ExitStatus.OK)


def _show(folder: Path, chosen: Selection) -> None:
    """Print the table and the remarks."""
    from rich.table import Table

    from ..reports.selection import HEADINGS, rows

    plain, found = chosen.to_json(), chosen.found
    title = f"{plain['collective']} of {plain['ranks']:,} ranks: the fastest of {len(chosen.candidates)} schedules"
    table = Table(title=title, title_justify="left")
    for number, heading in enumerate(HEADINGS):
        table.add_column(heading, justify="left" if number in (2, 7) else "right", overflow="fold")
    for row in rows(plain):
        table.add_row(*row)
    table_console().print(table)
    if chosen.left_out:
        echo(f"{len(chosen.left_out)} left out; select.json says why", err=True)
    if found.why_ended:
        echo(f"{found.why_ended}; the choice is among those that were run", err=True)
    count = len(chosen.ranges)
    echo(f"{folder}: {count} file{'s' if count > 1 else ''} in algorithms/, for {chosen.dialect.name}", err=True)
