"""``cwb advise``: NCCL's choice, the best schedule, a proved bound and measurements, at every size."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from ..core.errors import ExitStatus, locate_errors
from ..core.option_names import NCCL_COLLECTIVES
from . import completion
from .options import (
    OUTPUT_FILE,
    PATH,
    Command,
    duration_option,
    json_flag,
    loading_progress_on_stderr,
    options_of,
    parse_duration,
    plugin_option,
    quiet_flag,
    working_on_stderr,
)
from .signals import INTERRUPTED
from .streams import echo, table_console

if TYPE_CHECKING:
    from collections.abc import Mapping


@click.command(cls=Command)
@click.argument("instance", shell_complete=completion.complete_names(completion.instances, files=True))
@click.option("--collective", type=click.Choice(NCCL_COLLECTIVES), help="Collective, instead of the instance's.")
@click.option(
    "--sizes", metavar="FIRST..LAST", default="1KiB..8GiB", show_default=True, help="Every other power of two."
)
@click.option("--measured", type=PATH, metavar="FILE", help="Results of nccl-tests.")
@click.option(
    "--models",
    "--methods",
    "models",
    metavar="LIST",
    help="Methods to compare with NCCL, such as 'ring, dbt, forestcoll k=2'.  [default: the fast ones]",
)
@click.option("--chunks", metavar="LIST", default="1, 4", show_default=True, help="Chunks of each rank's part.")
@options_of("the method nccl, such as version")
@click.option(
    "--graphs",
    type=PATH,
    metavar="XML",
    help="NCCL's graph file, whose channels are used unchanged.",
)
@duration_option("time-limit", "Time limit of all runs together.", "5 min")
@duration_option("run-limit", "Time limit of one run.", "10")
@click.option(
    "--links-limit",
    metavar="DURATION",
    default="60",
    show_default=True,
    help="Time limit for the value of more bandwidth; 0 skips it.",
)
@click.option("--output", "-o", type=OUTPUT_FILE, metavar="HTML", help="Write a page.")
@json_flag("one JSON object on stdout")
@quiet_flag
@plugin_option
def advise(
    instance: str,
    models: str | None,
    links_limit: str,
    as_json: bool,
    quiet: bool,
    **given: Any,
) -> int:
    """Report the times to expect of a collective on INSTANCE, and the most effective improvements.

    \b
    cwb advise my.json --collective all_reduce -o advice.html
    cwb advise "dgx_h100(boxes=2)" --collective all_reduce --measured nccl-tests.txt -O version=2.27.3

    At every size: NCCL's choice and prediction, its schedule and a ring, the best schedule found, a proved bound, and
    measured times. All schedules are verified.
    """
    from ..instances import load
    from ..studies.advice import DEFAULT_MODELS
    from ..studies.advice import advise as report

    given["models"] = DEFAULT_MODELS if models is None else models
    given["links_limit_s"] = parse_duration(links_limit, "--links-limit") if links_limit.strip() != "0" else 0.0
    with loading_progress_on_stderr(), locate_errors(source=instance):
        machine = load(instance)
    with working_on_stderr(quiet=quiet) as progress, locate_errors(source=instance):
        found = report(machine, progress=progress, **given)
    if as_json:
        echo(json.dumps(found.to_json(), allow_nan=False))
    else:
        _show(found.to_json())
    return INTERRUPTED if found.found.interrupted else int(ExitStatus.OK)


def _show(found: Mapping[str, Any]) -> None:
    """Print the table and the possible improvements."""
    from rich.table import Table

    from ..reports.advice import HEADINGS, hints, rows

    table = Table(
        title=f"{found['collective']} of {found['ranks']:,} ranks, NCCL {found['nccl']}", title_justify="left"
    )
    for heading in HEADINGS:
        table.add_column(
            heading, justify="left" if heading in ("NCCL takes", "best schedule") else "right", overflow="fold"
        )
    for row in rows(found):
        table.add_row(*(f"{value:,.12g}" if isinstance(value, float) else str(value) for value in row))
    table_console().print(table)
    for text in hints(found):
        echo(text)
    if found["why_ended"]:
        echo(f"{found['why_ended']}; the best is among those that were run", err=True)
