"""``cwb resilience``: all single failures of a network, ranked by what they cost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import click

from ..core.errors import ExitStatus, InputError, located
from . import completion
from .edits import load_edited, network_edits
from .options import exact_number, libraries_on_stderr, parse_duration, plugged, progress_on_stderr
from .signals import INTERRUPTED
from .streams import echo

if TYPE_CHECKING:
    from ..core.instance import Instance
    from ..harness.resilience import Failure, Optimum

#: Collectives that trees serve.
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce")

#: What may fail, also in :mod:`cwb.harness.resilience`.
KINDS = ("link", "rank", "switch")


@click.command()
@click.argument("instance", shell_complete=completion.of(completion.instances, files=True))
@click.option("--collective", type=click.Choice(COLLECTIVES), help="Replaces the instance's.")
@click.option("--size", metavar="SIZE", help="Replaces the collective's.")
@click.option(
    "--kind", "kinds", type=click.Choice(KINDS), multiple=True, help="What fails; may be repeated.  [default: all]"
)
@click.option(
    "--slow",
    metavar="FACTOR",
    default="0",
    show_default=True,
    help="Part of its bandwidth that a link keeps, such as 1/2.",
)
@click.option("--top", type=click.IntRange(1), default=20, show_default=True, help="Rows of the table.")
@click.option(
    "--time-limit", metavar="DURATION", default="5 min", show_default=True, help="Limit of all failures together."
)
@click.option("--json", "as_json", is_flag=True, help="Print all failures as one JSON object.")
@click.option("--quiet", "-q", is_flag=True, help="No progress on stderr.")
@network_edits
@plugged
def resilience(
    instance: str,
    collective: str | None,
    size: str | None,
    kinds: tuple[str, ...],
    slow: str,
    top: int,
    time_limit: str,
    as_json: bool,
    quiet: bool,
    edits: tuple[tuple[str, str], ...],
) -> int:
    """Rank all single failures of INSTANCE by what they cost: links, ranks and switches, one lost at a time.

    \b
    cwb resilience "a100(boxes=8)" --collective all_gather
    cwb resilience my.json --collective all_reduce --kind link --slow 1/2 --json

    For each failure the optimum of the remaining network is computed, in the flow model of trees, without latency. No
    schedule of the changed network is faster than its bound, whose certificate is recomputed. Of links that a symmetry
    of the network exchanges, one is examined. A collective of fewer ranks keeps its size.
    """
    from ..core.network_views import seen_otherwise
    from ..core.topology import Topology
    from ..harness.clock import WallClock
    from ..harness.demand import with_demand
    from ..harness.interrupt import within
    from ..harness.resilience import failures, optimum_of

    factor = _factor(slow)
    clock = WallClock(parse_duration(time_limit, "--time-limit"))
    with libraries_on_stderr(), progress_on_stderr(quiet=quiet) as progress:
        with located(source=instance):
            posed = with_demand(load_edited(instance, edits), collective, size, None)
            posed = posed if isinstance(posed.network, Topology) else seen_otherwise(posed) or posed
            whole = optimum_of(posed)
        found: list[Failure] = []
        with within(clock, progress, asks=True) as budget:
            for failure in failures(posed, kinds or KINDS, factor, budget):
                found.append(failure)
            over = budget.exhausted
    if as_json:
        echo(json.dumps(_plain(posed, whole, found, complete=not over), allow_nan=False))
    else:
        _show(posed, whole, found, top, complete=not over)
    return INTERRUPTED if over and clock.limit_s is None else int(ExitStatus.OK)


def _factor(text: str) -> Fraction:
    factor = exact_number(text)
    if factor is None or factor >= 1:
        raise InputError(f"{text[:40]!r}; expected a part of the bandwidth from 0 to below 1", source="--slow")
    return factor


def _loss(whole: Optimum, failure: Failure) -> float:
    """The part of the throughput that is lost."""
    return 1.0 if failure.optimum is None else float(1 - whole.time_s / failure.optimum.time_s)


def _plain(posed: Instance, whole: Optimum, found: Sequence[Failure], *, complete: bool) -> dict[str, Any]:
    return {
        "instance": posed.name,
        "optimum": _numbers(whole),
        "complete": complete,
        "failures": [
            {
                "kind": failure.kind,
                "names": list(failure.names),
                "loss": _loss(whole, failure),
                "reason": failure.reason,
                **({} if failure.optimum is None else _numbers(failure.optimum)),
            }
            for failure in found
        ],
    }


def _numbers(optimum: Optimum) -> dict[str, Any]:
    return {
        "flow_time_s": float(optimum.time_s),
        "bound_s": float(optimum.bound_s),
        "certificate": optimum.certificate.to_json(),
    }


def _show(posed: Instance, whole: Optimum, found: Sequence[Failure], top: int, *, complete: bool) -> None:
    from rich.table import Table

    from ..core.units import TIMES, amount
    from .display import asked_of
    from .streams import console

    groups: dict[tuple[str, Fraction | None, str], list[Failure]] = {}
    for failure in found:
        time = None if failure.optimum is None else failure.optimum.time_s
        groups.setdefault((failure.kind, time, failure.reason), []).append(failure)
    ranked = sorted(groups.values(), key=lambda group: -_loss(whole, group[0]))
    table = Table(
        title=f"{asked_of(posed)} on {posed.name}: {amount(whole.time_s, TIMES)} without any", title_justify="left"
    )
    for name in ("fails", "such as", "number", "flow time", "bound", "throughput lost"):
        table.add_column(name, justify="left" if name in ("fails", "such as") else "right")
    for group in ranked[:top]:
        first = group[0]
        alike = sum(len(failure.names) for failure in group)
        if first.optimum is None:
            numbers: tuple[str, ...] = ("cut off", "", "100 %")
        else:
            times = (amount(value, TIMES) for value in (first.optimum.time_s, first.optimum.bound_s))
            numbers = (*times, f"{100 * _loss(whole, first):.1f} %")
        table.add_row(first.kind, first.names[0], f"{alike:,}", *numbers)
    console().print(table)
    if not complete:
        echo("the time was over before all failures had been looked at", err=True)
