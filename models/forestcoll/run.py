"""``forestcoll``: all steps for a collective, with the certificate of its bottleneck."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ...core.bounds import Certificate, CutCertificate
from ...core.budget import Budget
from ...core.collective import CollectiveKind
from ...core.errors import Unsupported
from ...core.instance import Instance
from ...core.method import Outcome, Status
from ...core.solver import Solver
from ...core.topology import Topology
from ...core.trees import TreePacking
from ..common.compose import reverse_links
from ..common.compose_trees import reduce_then_broadcast, reverse_trees
from ..common.digraph import INT64_SAFE, Exact
from ..common.forests.engine import warm_up
from ..common.ratio_cuts import Unreachable
from ..common.schedule_bounds import network_of
from .allreduce_partitions import best_all_reduce_bound
from .forest import Solved, latency_of, solve_forest
from .optimum import Optimum, optimum, smallest_k
from .options import ForestOptions
from .problem import Problem, pose, unreachable

#: What an all-reduce that is not proved best is told.
IN_TURN = "a reduce-scatter and an all-gather in turn; forestcoll-allreduce may be faster"


@dataclass(frozen=True, eq=False)
class Way:
    """One way of the data: out-trees, or in-trees as out-trees of the transposed network.

    Parameters
    ----------
    problem : Problem
        The network in which the trees go outwards.
    best : Optimum
        Its bottleneck.
    backwards : bool
        Whether the network is the transposed one.
    """

    problem: Problem
    best: Optimum
    backwards: bool

    @property
    def seconds(self) -> Fraction:
        """Time that the bottleneck needs at least."""
        return self.problem.part_bytes * self.best.ratio / self.problem.unit_Bps

    def certificate(self) -> CutCertificate:
        """Name the nodes that the bottleneck leads out of, in the network itself."""
        side = self.best.side if self.backwards else ~self.best.side
        return CutCertificate(tuple(np.flatnonzero(side).tolist()))


def run(instance: Instance, solver: Solver, budget: Budget, options: ForestOptions) -> Outcome:
    """Solve an instance that :func:`.problem.supports` has nothing against.

    Raises
    ------
    InputError
        If data cannot reach some rank, or a switch has not the same bandwidth in and out.
    Unsupported
        If whole trees do not go through a switch with one-way links.
    """
    del solver
    with budget.clock.phase("compile"):
        warm_up()
    with budget.clock.phase("optimum"):
        inward, outward = pose(instance)
        mirrored = inward is not None and outward is not None and is_symmetric(instance)
        problems = [(p, back) for p, back in ((outward, False), (inward, True)) if p is not None]
        ways = [way_of(problem, backwards=back) for problem, back in problems[: 1 if mirrored else 2]]
    seconds = sum((way.seconds for way in ways), Fraction(0)) * (2 if mirrored else 1)
    budget.progress(f"bottleneck found: at least {float(seconds):.6g} s; k = {ways[0].best.k:,}")
    bound, certificate = bound_of(instance, ways, both=inward is not None and outward is not None)
    solved = [_forest(way, instance, budget, options) for way in ways]
    forests = [forest for forest in solved if forest is not None]
    if len(forests) < len(ways):
        message = "the budget ended before all trees were packed; the bound holds"
        return Outcome(Status.LIMIT, bound=float(bound), certificate=certificate, message=message)
    answer = _answer(instance, ways, forests)
    objective = forests[0].seconds if answer.reduction is None else busiest_s(instance, answer)
    slower = objective > bound and len(ways) + mirrored == 2
    return Outcome(
        Status.OPTIMAL if objective == bound else Status.FEASIBLE,
        answer,
        objective=float(objective),
        bound=float(bound),
        certificate=certificate,
        message=IN_TURN if slower else "",
        metrics=_metrics(ways[0], forests[0]),
        iterations=sum(way.best.steps for way in ways),
    )


def busiest_s(instance: Instance, packing: TreePacking) -> Fraction:
    """Give the time of the most loaded link; one that is busy in one half of an all-reduce may be idle in the other."""
    links = network_of(instance).links
    load = [0] * len(links)
    for part in packing.passes:
        units = np.repeat(np.repeat(part.units, np.diff(part.edge_offset)), np.diff(part.path_offset))
        exact: Exact = np.zeros(len(links), np.int64 if int(units.max()) * len(units) < INT64_SAFE else object)
        np.add.at(exact, part.path_links, units)
        load = [before + more for before, more in zip(load, exact.tolist(), strict=True)]
    return max(units / link.bandwidth_Bps for units, link in zip(load, links, strict=True)) * packing.unit_bytes


def is_symmetric(instance: Instance) -> bool:
    """Whether every link has one back of the same bandwidth, so that trees turned around load nothing more."""
    topology = instance.network
    if not isinstance(topology, Topology):
        return False
    try:
        back = reverse_links(topology)
    except Unsupported:
        return False
    rates = [link.bandwidth_Bps for link in topology.links]
    return all(rates[link] == rate for link, rate in zip(back.tolist(), rates, strict=True))


def way_of(problem: Problem, *, backwards: bool) -> Way:
    """Find the bottleneck of one way of the data.

    Raises
    ------
    InputError
        If data cannot reach some rank.
    """
    try:
        return Way(problem, optimum(problem), backwards)
    except Unreachable as error:
        raise unreachable(problem, error.side, backwards=backwards) from None


def bound_of(instance: Instance, ways: Sequence[Way], *, both: bool) -> tuple[Fraction, Certificate]:
    """Bound the collective; ``both`` where data goes there and back."""
    if both:
        return best_all_reduce_bound(instance, [way.best.side for way in ways])
    return ways[0].seconds, ways[0].certificate()


def _forest(way: Way, instance: Instance, budget: Budget, options: ForestOptions) -> Solved | None:
    """Pack the forest that the options ask for; for low latency the best of several."""
    problem, best = way.problem, way.best
    numbers = _numbers(problem, best, options)
    found: Solved | None = None
    fastest = float("inf")
    for k in numbers:
        if found is not None and budget.exhausted:
            break
        try:
            solved = solve_forest(problem, best, k, instance.sha256, budget, options)
        except Unsupported:
            if found is None and k == numbers[-1]:
                raise
            continue
        if solved is None or len(numbers) == 1:
            return found or solved
        seconds = latency_of(problem, solved)
        budget.progress(f"k = {k:,}: {seconds:.6g} s with latency")
        if seconds < fastest:
            found, fastest = solved, seconds
    return found


def _numbers(problem: Problem, best: Optimum, options: ForestOptions) -> list[int]:
    """Numbers of trees to try."""
    if options.prefer == "latency":
        least = smallest_k(problem, best)
        return sorted({*range(1, options.scan + 1), least, best.k})
    if options.k == "smallest":
        return [smallest_k(problem, best)]
    return [best.k if options.k == "optimal" else options.k]


def _answer(instance: Instance, ways: list[Way], forests: list[Solved]) -> TreePacking:
    """Put the forests together for the collective."""
    packings = [forest.packing for forest in forests]
    one_way = [reverse_trees(p) if way.backwards else p for way, p in zip(ways, packings, strict=True)]
    if len(one_way) == 2:
        return reduce_then_broadcast(one_way[1], one_way[0])
    topology = instance.network
    if _is_all_reduce(instance) and isinstance(topology, Topology):
        return reduce_then_broadcast(reverse_trees(packings[0], topology), packings[0])
    return one_way[0]


def _is_all_reduce(instance: Instance) -> bool:
    return instance.demand is not None and instance.demand.collective is CollectiveKind.ALL_REDUCE


def _metrics(way: Way, forest: Solved) -> dict[str, Any]:
    """Give the method's own numbers; rates in 10^9 bytes per second."""
    problem, best = way.problem, way.best
    inside = ~best.side
    return {
        "inv_x": str(best.ratio / problem.unit_Bps * 10**9),
        "k": forest.k,
        "U": str(forest.copies / problem.unit_Bps * 10**9),
        "optimal_k": best.k,
        "smallest_k": smallest_k(problem, best),
        "cut_ranks": int((inside & problem.members).sum()),
        "cut_bandwidth_GBps": str(problem.graph.into(best.side) * problem.unit_Bps / 10**9),
        **forest.counts,
    }
