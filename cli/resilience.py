"""``cwb resilience``: all single failures of a network, ranked by their cost."""

from __future__ import annotations

import json
from fractions import Fraction
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import click

from ..core.errors import ExitStatus, locate_errors
from ..core.option_names import FAILURES, FLOW_COLLECTIVES
from . import completion
from .edits import load_edited, network_edits
from .options import DURATION, Command, json_flag, plugin_option, quiet_flag, working_on_stderr
from .signals import INTERRUPTED
from .streams import echo

if TYPE_CHECKING:
    from ..studies.resilience import Failure, Resilience


@click.command(cls=Command)
@click.argument("instance", shell_complete=completion.complete_names(completion.instances, files=True))
@click.option("--collective", type=click.Choice(FLOW_COLLECTIVES), help="Collective, instead of the instance's.")
@click.option("--size", metavar="SIZE", help="Size, instead of the collective's.")
@click.option(
    "--kind",
    "kinds",
    type=click.Choice(FAILURES),
    multiple=True,
    help="Kind of failure; may be repeated.  [default: all]",
)
@click.option(
    "--slow",
    metavar="FACTOR",
    default="0",
    show_default=True,
    help="Fraction of its bandwidth that a link keeps, such as 1/2.",
)
@click.option("--top", type=click.IntRange(1), default=20, show_default=True, help="Rows of the table.")
@click.option(
    "--time-limit",
    "time_limit_s",
    type=DURATION,
    metavar="DURATION",
    default="5 min",
    show_default=True,
    help="Time limit of all failures together.",
)
@json_flag("all failures as one JSON object")
@quiet_flag
@network_edits
@plugin_option
def resilience(
    instance: str,
    kinds: tuple[str, ...],
    top: int,
    time_limit_s: float | None,
    as_json: bool,
    quiet: bool,
    edits: tuple[tuple[str, str], ...],
    **given: Any,
) -> int:
    """Rank all single failures of INSTANCE by their cost: links, ranks and switches, one lost at a time.

    \b
    cwb resilience "a100(boxes=8)" --collective all_gather
    cwb resilience my.json --collective all_reduce --kind link --slow 1/2 --json

    For each failure the optimum of the remaining network is computed, in the flow model of trees, without latency. No
    schedule of the changed network is faster than its bound, whose certificate is recomputed. Of links that a symmetry
    of the network exchanges, one is examined. A collective of fewer ranks keeps its size.
    """
    from ..studies.resilience import resilience as examine

    with working_on_stderr(quiet=quiet) as progress, locate_errors(source=instance):
        posed = load_edited(instance, edits)
        found = examine(posed, kind=kinds or FAILURES, time_limit_s=time_limit_s, progress=progress, **given)
    if as_json:
        echo(json.dumps(found.to_json(), allow_nan=False))
    else:
        _show(found, top)
    return INTERRUPTED if not found.complete and time_limit_s is None else int(ExitStatus.OK)


def _show(found: Resilience, top: int) -> None:
    from rich.table import Table

    from ..core.units import TIMES, amount
    from .display import collective_text
    from .streams import console

    groups: dict[tuple[str, Fraction | None, bool], list[Failure]] = {}
    posed, whole = found.instance, found.optimum
    for failure in found.failures:
        time = None if failure.optimum is None else failure.optimum.time_s
        groups.setdefault((failure.kind, time, failure.is_cut_off), []).append(failure)
    # Failures of unknown loss stand first: they may cost everything.
    losses = [(loss is not None, -(loss or 0.0)) for loss in (found.loss(group[0]) for group in groups.values())]
    ranked = [group for _, group in sorted(zip(losses, groups.values(), strict=True), key=itemgetter(0))]
    table = Table(
        title=f"{collective_text(posed)} on {posed.name}: {amount(whole.time_s, TIMES)} without any",
        title_justify="left",
    )
    for name in ("fails", "such as", "number", "flow time", "bound", "throughput lost"):
        table.add_column(name, justify="left" if name in ("fails", "such as") else "right")
    for group in ranked[:top]:
        first = group[0]
        alike = sum(len(failure.names) for failure in group)
        loss = found.loss(first)
        if first.optimum is None or loss is None:
            numbers: tuple[str, ...] = ("cut off", "", "100 %") if first.is_cut_off else ("not known", "", "")
        else:
            times = (amount(value, TIMES) for value in (first.optimum.time_s, first.optimum.bound_s))
            numbers = (*times, f"{100 * loss:.1f} %")
        table.add_row(first.kind, first.names[0], f"{alike:,}", *numbers)
    console().print(table)
    if not found.complete:
        echo("the time was over before all failures had been looked at", err=True)
