"""From trees, or from messages, to the outcome of a run: the same numbers for all baselines, beside the bound for any schedule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ...core.budget import Budget
from ...core.instance import Instance
from ...core.method import Outcome, Status
from ...core.schedule import Chunks, StepSchedule
from ...core.solver import ModelSize, SolverResult
from ..common.schedule_bounds import network_of
from ..common.wan import kernels
from ..common.wan.ceiling import Ceiling, ceiling
from ..common.wan.measures import measures_of_rate, measures_of_trees
from ..common.wan.network import Wan, pose
from ..common.wan.trees import Rated, filled, heights_of, in_order, packing


@dataclass(frozen=True, eq=False)
class Posed:
    """What every baseline is asked.

    Parameters
    ----------
    instance : Instance
        The problem.
    wan : Wan
        Its network.
    highest : Ceiling
        The bound for any schedule.
    """

    instance: Instance
    wan: Wan
    highest: Ceiling

    @property
    def size_bytes(self) -> Fraction:
        """Size of the all-reduce."""
        return self.instance.demand.size_bytes if self.instance.demand is not None else Fraction(0)

    @property
    def proved(self) -> dict[str, Any]:
        """The bound of an outcome and its certificate."""
        bound = self.size_bytes / (self.highest.rate * self.wan.unit_Bps)
        return {"bound": float(bound), "certificate": self.highest.certificate}


def ask(instance: Instance, budget: Budget) -> Posed:
    """Read an instance, and bound what any schedule on its network can do.

    Raises
    ------
    InputError
        If the network is not connected.
    Unsupported
        If the instance does not fit.
    """
    wan = pose(instance)
    with budget.clock.phase("strength"):
        return Posed(instance, wan, ceiling(network_of(instance), wan))


def tree_outcome(
    posed: Posed,
    rated: Rated,
    *,
    common_root: bool = False,
    reports: Sequence[SolverResult] = (),
    rounds: int = 0,
    metrics: dict[str, Any] | None = None,
) -> Outcome:
    """Give the outcome of a run that has found trees.

    Parameters
    ----------
    posed : Posed
        The problem.
    rated : Rated
        At least one tree; rates are raised together until a link is full.
    common_root : bool
        Whether all trees have the root that makes the highest of them lowest; else each has its own.
    reports, rounds, metrics
        As of :class:`~cwb.core.method.Outcome`.
    """
    wan = posed.wan
    rated = in_order(filled(wan, rated))
    limit = wan.hops(None)
    roots = heights_of(wan, limit, rated.trees)[0]
    if common_root:
        roots[:] = lowest_root(wan, rated)
    seconds = posed.size_bytes / (rated.total * wan.unit_Bps)
    measured = {
        **measures_of_rate(wan, rated.total, posed.highest),
        **measures_of_trees(wan, rated, roots.tolist()),
    }
    return Outcome(
        Status.OPTIMAL if rated.total == posed.highest.rate else Status.FEASIBLE,
        packing(posed.instance, wan, rated, roots),
        objective=float(seconds),
        reports=tuple(reports),
        size=max((report.size for report in reports), key=lambda size: size.nonzeros, default=ModelSize()),
        iterations=rounds,
        metrics={**measured, **(metrics or {})},
        **posed.proved,
    )


def lowest_root(wan: Wan, rated: Rated) -> int:
    """Give the site from which the highest tree is lowest, in hops."""
    far, hop = np.empty(wan.nodes, np.int64), np.empty(wan.nodes, np.int64)
    highest = np.zeros(wan.nodes, np.int64)
    for root in range(wan.nodes):
        for tree in rated.trees:
            kernels.distances(root, tree, wan.tail, wan.head, wan.latency_ns, far, hop)
            highest[root] = max(highest[root], hop.max())
    return int(highest.argmin())


def message_outcome(posed: Posed, schedule: StepSchedule, metrics: dict[str, Any]) -> Outcome:
    """Give the outcome of a run that has found messages; their rate is the size over the time of the most loaded link."""
    load_s = _load_s(posed, schedule)
    rate = posed.size_bytes / load_s / posed.wan.unit_Bps
    measured = measures_of_rate(posed.wan, rate, posed.highest)
    return Outcome(Status.FEASIBLE, schedule, metrics={**measured, **metrics}, **posed.proved)


def _load_s(posed: Posed, schedule: StepSchedule) -> Fraction:
    """Seconds for which the most loaded link is busy, exactly."""
    links = network_of(posed.instance).links
    units: dict[int, int] = {}
    chunks: Chunks = schedule.chunks
    sends = schedule.sends
    for link, send in zip(sends.path_links.tolist(), sends.hop_send.tolist(), strict=True):
        units[link] = units.get(link, 0) + int(chunks.units[sends.chunk[send]])
    return max(count * chunks.unit_bytes / links[link].bandwidth_Bps for link, count in units.items())
