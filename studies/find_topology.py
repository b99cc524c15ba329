"""The verb ``find_topology``: the best network of a size and degree for a job, and its schedule."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from ..core.budget import Progress, ignore
from ..core.collective import Demand, collective_named
from ..core.errors import InputError, OutOfTime, locate_errors
from ..core.files import write_whole
from ..core.instance import Instance
from ..core.option_names import FINDER_COLLECTIVES, check_name, verb
from ..core.schedule import StepSchedule
from ..core.units import UnitKind, exact, exact_number, parse
from ..exchange.machine import checked_instance, topology_data
from ..harness.clock import WallClock
from ..harness.interrupt import command_limits
from ..reports.plots import plot_format, write_plot
from ..schedules.files import write_schedule
from ..schedules.verify import Report, verify
from .inputs import at_least_0, seconds_or_none
from .topology_finder.assessment import all_to_all_rate, network_of
from .topology_finder.build import schedule as built_schedule
from .topology_finder.finder import Choice, Job, average_s, fastest, find, lower_bound


@dataclass(eq=False)
class FoundTopologies:
    """Networks on the Pareto frontier, and the best of them for a job."""

    job: Job
    choices: list[Choice]
    best: Choice
    data: dict[str, Any]
    #: The best network with the collective; None if neither it nor a schedule was requested.
    instance: Instance | None = None
    schedule: StepSchedule | None = None
    report: Report | None = field(default=None)
    stopped: str = ""  #: Reason for a missing schedule; empty if there is one, or none was requested.

    @property
    def is_right(self) -> bool:
        """True unless the verifier rejects the schedule."""
        return self.report is None or not self.report.violations

    def to_json(self) -> dict[str, Any]:
        """Return the output of ``cwb find-topology --json``."""
        return self.data


@verb
def find_topology(
    *,
    nodes: int,
    degree: int,
    alpha: str = "10 us",
    size: str | Sequence[str] = "1 MiB",
    all_to_all_share: str | float | Fraction = "0",
    bandwidth: str = "100 Gb/s",
    bidirectional: bool = False,
    spare_ports: bool = False,
    no_circulants: bool = False,
    all_to_all_limit_s: float = 60.0,
    collective: str = "all_reduce",
    no_schedule: bool = False,
    time_limit_s: float | None = None,
    output: str | Path | None = None,
    schedule: str | Path | None = None,
    plot: str | Path | None = None,
    progress: Progress = ignore,
) -> FoundTopologies:
    """Find good networks of a size and degree, and the best of them for a job, as ``cwb find-topology`` does.

    Parameters
    ----------
    degree, alpha, bandwidth
        Ports of a node in each direction, latency of a step, and bandwidth of all ports of a node together.
    size : str or sequence of str
        Sizes of collectives, each with its weight if there are several, such as ``"1 MiB:9"``.
    all_to_all_share : str, float or Fraction
        Share of all-to-alls among the collectives, from 0 to 1; the others are all-reduces.
    bidirectional, no_circulants : bool
        Only networks in which every link has a reverse link; none of the circulants by theorem 22 or by search.
    all_to_all_limit_s : float
        Seconds for each linear program of an all-to-all; 0 for none.
    collective, no_schedule : optional
        Collective of the schedule of the best network, and True to build none.
    output, schedule, plot : str or Path, optional
        Files for the best network, an instance; its schedule; and the frontier, .svg, .pdf or .png.

    Raises
    ------
    OutOfTime
        If the time limit is reached before any network is found.
    """
    if schedule and no_schedule:
        raise InputError("there is no schedule to write with --no-schedule", source="--schedule")
    if plot is not None:
        plot_format(Path(plot))
    check_name(collective, FINDER_COLLECTIVES, "--collective")
    sizes = _sizes((size,) if isinstance(size, str) else size)
    job = Job(
        nodes,
        degree,
        parse(alpha, UnitKind.TIME, source="--alpha"),
        sum((size * weight for size, weight in sizes), Fraction(0)) / sum(weight for _, weight in sizes),
        parse(bandwidth, UnitKind.RATE, allow_zero=False, source="--bandwidth"),
        bidirectional=bidirectional,
        spare_ports=spare_ports,
        circulants=not no_circulants,
        searched=not no_circulants,
        all_to_all_share=_number(str(all_to_all_share), "--all-to-all-share", 1),
    )
    clock = WallClock(seconds_or_none(time_limit_s, "time_limit_s"))
    limit_s = at_least_0(all_to_all_limit_s, "all_to_all_limit_s")
    with command_limits(clock, progress):
        choices = find(job)
    rates = []
    for choice in choices:
        left_s = clock.remaining_s()
        rates.append(all_to_all_rate(choice.candidate, limit_s if left_s is None else min(limit_s, left_s)))
    seconds = [average_s(job, choice, rate) for choice, rate in zip(choices, rates, strict=True)]
    best = fastest(choices, seconds)
    result = FoundTopologies(job, choices, best, _data(job, sizes, choices, best, rates, seconds))
    if not no_schedule or output:
        try:
            with command_limits(clock):
                _write(result, collective, output, schedule, no_schedule=no_schedule)
        except (OutOfTime, KeyboardInterrupt) as error:
            result.stopped = str(error) or "interrupted"
    if plot is not None:
        from ..reports.plots.studies import draw_frontier

        write_plot(Path(plot), draw_frontier, result.data)
    return result


def _sizes(texts: Sequence[str]) -> list[tuple[Fraction, Fraction]]:
    sizes = []
    for text in texts:
        size, colon, weight = text.partition(":")
        with locate_errors(source="--size"):
            share = _number(weight, "--size") if colon else Fraction(1)
            sizes.append((parse(size, UnitKind.SIZE, allow_zero=False), share))
    if not any(weight for _, weight in sizes):
        raise InputError("the weights of all sizes are 0", source="--size")
    return sizes


def _number(text: str, option: str, most: int | None = None) -> Fraction:
    value = exact_number(text)
    if value is None or (most is not None and value > most):
        range_text = "at least 0" if most is None else f"from 0 to {most}"
        raise InputError(f"{text[:40]!r}; expected a number {range_text}", source=option)
    return value


def _write(
    result: FoundTopologies,
    collective: str,
    output: str | Path | None,
    schedule: str | Path | None,
    *,
    no_schedule: bool,
) -> None:
    job, best = result.job, result.best
    network = network_of(best.candidate, job.bandwidth_Bps / job.degree, job.alpha_s)
    result.instance = Instance(str(best.candidate), network, Demand(collective_named(collective), job.size_bytes))
    if output is not None:
        write_whole(Path(output), json.dumps(instance_data(result.instance, result.data), indent=1).encode())
    if no_schedule:
        return
    plan = built_schedule(best.candidate, result.instance, back=best.back)
    report = verify(result.instance, plan)
    result.schedule, result.report = plan, report
    result.data["schedule"] = {
        "collective": collective,
        "steps": plan.steps,
        "chunks": len(plan.chunks),
        "sends": len(plan.sends),
        "verified": not report.violations,
        "violations": [str(violation) for violation in report.violations],
    }
    if schedule is not None:
        write_schedule(Path(schedule), result.instance, plan, None, {"model": "topology-finder"})


def _data(
    job: Job,
    sizes: list[tuple[Fraction, Fraction]],
    choices: list[Choice],
    best: Choice,
    rates: list[float | None],
    seconds: list[Fraction],
) -> dict[str, Any]:
    """Return results as plain data; exact numbers are text, ``seconds`` are averages over the collectives."""
    steps, bandwidth = lower_bound(job)
    return {
        "schema": "cwb-topologies/1",
        "nodes": job.nodes,
        "degree": job.degree,
        "alpha_s": str(job.alpha_s),
        "size_bytes": str(job.size_bytes),
        "sizes": [{"size_bytes": str(size), "weight": str(weight)} for size, weight in sizes],
        "all_to_all_share": str(job.all_to_all_share),
        "bandwidth_Bps": str(job.bandwidth_Bps),
        "lower_bound": {
            "T_L": steps,
            "T_B": str(bandwidth),
            "all_reduce_s": float(2 * (steps * job.alpha_s + bandwidth * job.ratio_s)),
        },
        "frontier": [
            _row(job, choice, rate) | {"average_s": float(average), "best": choice is best}
            for choice, rate, average in zip(choices, rates, seconds, strict=True)
        ],
        "best": str(best.candidate),
    }


def _row(job: Job, choice: Choice, rate: float | None) -> dict[str, Any]:
    pair_s = float(job.size_bytes / job.nodes / (job.bandwidth_Bps / job.degree))
    return {
        "topology": str(choice.candidate),
        "all_gather": "breadth-first" if choice.candidate.breadth_first else "expanded",
        "degree": choice.candidate.degree,
        "bidirectional": choice.candidate.bidirectional,
        "T_L": choice.steps,
        "T_B": str(choice.bandwidth),
        "reduce_scatter_T_L": choice.reduce_steps,
        "reduce_scatter_T_B": str(choice.reduce_bandwidth),
        "all_reduce_s": float(choice.all_reduce_s),
        "diameter": choice.diameter,
        "all_to_all_rate": rate,
        "all_to_all_s": None if rate is None else pair_s / float(rate),
        "all_to_all_rate_limit": float(choice.all_to_all_limit),
        "also": [str(candidate) for candidate in choice.also],
    }


def instance_data(instance: Instance, data: dict[str, Any]) -> dict[str, Any]:
    """Return an instance file of the best network."""
    demand = instance.collectives[0]
    return checked_instance(
        topology_data(instance.topology),
        name=instance.name,
        description=f"{data['nodes']} nodes of degree {data['degree']}: {instance.name}.",
        source="cwb find-topology",
        collective={"kind": demand.collective.name, "size": exact(demand.size_bytes, "B")},
    )
