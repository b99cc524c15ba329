"""``blink`` and ``blink-switch``: everything is added up at one root and broadcast from it, along the most trees that there is room for.

Sources: Wang et al., "Blink: Fast and Generic Collectives for Distributed ML", MLSys 2020, as Zhao et al., "ForestColl", describe and compare
it (sections 2, 4.6 and 5.2): an optimal packing of spanning trees with a single root, and as "Blink+Switch" the same after the removal of switches.
By the theorem of Edmonds the rate of the packing is the least maximum flow from the root to any rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from ...core.bounds import Certificate
from ...core.budget import Budget
from ...core.errors import Unsupported
from ...core.instance import Instance
from ...core.method import Outcome, Status
from ...core.solver import Solver
from ...core.topology import Topology
from ...core.trees import TreePacking
from ..common.compose_trees import reduce_then_broadcast, reverse_trees
from ..common.forests.engine import warm_up
from ..common.ratio_cuts import Unreachable
from .allreduce_partitions import best_all_reduce_bound
from .blink_problem import BlinkOptions, candidates, rooted
from .forest import Solved, solve_forest
from .optimum import optimum, smallest_k
from .options import ForestOptions
from .problem import Problem, pose, unreachable
from .run import Way, busiest_s, is_symmetric


def run(instance: Instance, solver: Solver, budget: Budget, options: BlinkOptions) -> Outcome:
    """Solve an instance that :mod:`.blink_problem` has nothing against.

    Raises
    ------
    InputError
        If the root is none of the ranks, data cannot reach some rank, or a switch has not the same bandwidth in and out.
    Unsupported
        If whole trees do not go through a switch with one-way links.
    """
    del solver
    topology = instance.network
    if not isinstance(topology, Topology):
        raise Unsupported("expected an explicit network")
    with budget.clock.phase("compile"):
        warm_up()
    with budget.clock.phase("optimum"):
        inward, outward = pose(instance)
        both = inward is not None and outward is not None
        mirrored = both and is_symmetric(instance)
        posed = [(problem, back) for problem, back in ((outward, False), (inward, True)) if problem is not None]
        roots = candidates(instance, posed[0][0], options)
        root, ways = best_root(posed[: 1 if mirrored else 2], roots, budget)
    in_turn = sum((way.seconds for way in ways), Fraction(0)) * (2 if mirrored else 1)
    budget.progress(f"root {root}: {float(in_turn):.6g} s, one way after the other")
    bound, certificate = _bound(instance, ways, both=both)
    packed = [_pack(way, instance, budget, options) for way in ways]
    forests = [forest for forest in packed if forest is not None]
    if len(forests) < len(ways):
        message = "the budget ended before all trees were packed; the bound holds"
        return Outcome(Status.LIMIT, bound=float(bound), certificate=certificate, message=message)
    answer = _together(topology, ways, forests, mirrored=mirrored)
    seconds = busiest_s(instance, answer)
    return Outcome(
        Status.OPTIMAL if seconds == bound else Status.FEASIBLE,
        answer,
        objective=float(seconds),
        bound=float(bound),
        certificate=certificate,
        metrics={"root": root, "in_turn_s": float(in_turn), **_metrics(ways, forests, mirrored=mirrored)},
        iterations=sum(way.best.steps for way in ways),
    )


def best_root(
    posed: Sequence[tuple[Problem, bool]], roots: Sequence[int], budget: Budget
) -> tuple[int, tuple[Way, ...]]:
    """Find the root from which, and to which, the data takes the least time; the first of equal ones.

    Parameters
    ----------
    posed : sequence of (Problem, bool)
        The ways of the data, and whether each is in the transposed network; where the data starts does not matter.
    roots : sequence of int
        Ranks to choose from. If the budget ends, the best of those that were tried is taken.
    budget : Budget
        Clock and limits.

    Returns
    -------
    tuple
        The rank, and the bottleneck of each way.
    """
    best: tuple[Fraction, int, tuple[Way, ...]] | None = None
    for root in roots:
        if best is not None and budget.exhausted:
            break
        ways = tuple(_way(rooted(problem, root), backwards=back) for problem, back in posed)
        seconds = sum((way.seconds for way in ways), Fraction(0))
        if best is None or seconds < best[0]:
            best = seconds, root, ways
    if best is None:
        raise AssertionError("a group has at least two ranks")
    return best[1:]


def _way(problem: Problem, *, backwards: bool) -> Way:
    try:
        return Way(problem, optimum(problem), backwards)
    except Unreachable as error:
        raise unreachable(problem, error.side, backwards=backwards) from None


def _bound(instance: Instance, ways: Sequence[Way], *, both: bool) -> tuple[Fraction, Certificate]:
    """Bound the collective itself, whose data need not all go through one root."""
    if both:
        return best_all_reduce_bound(instance, [way.best.side for way in ways])
    return ways[0].seconds, ways[0].certificate()


def _pack(way: Way, instance: Instance, budget: Budget, options: BlinkOptions) -> Solved | None:
    k = options.k
    if k == "optimal":
        k = way.best.k
    elif k == "smallest":
        k = smallest_k(way.problem, way.best)
    return solve_forest(way.problem, way.best, k, instance.sha256, budget, ForestOptions(repack=options.repack))


def _together(topology: Topology, ways: Sequence[Way], forests: Sequence[Solved], *, mirrored: bool) -> TreePacking:
    """Turn around the trees of the transposed network; of two ways, reduce along the one and broadcast along the other."""
    packings = [
        reverse_trees(forest.packing) if way.backwards else forest.packing
        for way, forest in zip(ways, forests, strict=True)
    ]
    if mirrored:
        packings.append(reverse_trees(packings[0], topology))
    return packings[0] if len(packings) == 1 else reduce_then_broadcast(packings[1], packings[0])


def _metrics(ways: Sequence[Way], forests: Sequence[Solved], *, mirrored: bool) -> dict[str, Any]:
    """Give the rates in 10^9 bytes per second, exactly, and the numbers of the trees; where the ways differ, a list, outwards first."""
    rates = {way.backwards: str(way.problem.unit_Bps / way.best.ratio / 10**9) for way in ways}
    if mirrored:
        rates[True] = rates[False]
    names = {False: "broadcast_GBps", True: "reduce_GBps"}
    return {
        **{names[backwards]: rate for backwards, rate in rates.items()},
        "k": _one_or_all([forest.k for forest in forests]),
        "optimal_k": _one_or_all([way.best.k for way in ways]),
        "smallest_k": _one_or_all([smallest_k(way.problem, way.best) for way in ways]),
        **{name: sum(forest.counts[name] for forest in forests) for name in forests[0].counts},
    }


def _one_or_all(values: list[int]) -> int | list[int]:
    return values[0] if len(set(values)) == 1 else values
