"""``blink`` and ``blink-switch``.

Everything is added up at one root and broadcast from it, along the most trees that fit.

Sources: Wang et al., "Blink: Fast and Generic Collectives for Distributed ML", MLSys 2020, as Zhao et al.,
"ForestColl", describe and compare it (sections 2, 4.6 and 5.2): an optimal packing of spanning trees with a single
root, and as "Blink+Switch" the same after the removal of switches. By the theorem of Edmonds the rate of the packing is
the least maximum flow from the root to any rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from ...algorithms.forests.engine import warm_up
from ...algorithms.schedules.compose import reduce_then_broadcast, reverse_trees
from ...core.budget import Budget
from ...core.collective import Collective
from ...core.errors import InputError
from ...core.instance import Instance
from ...core.outcome import Outcome, Status
from ...core.solver import Solver
from ...core.trees import TreePacking
from ...models.forestcoll.bounds import smallest_k
from ...models.forestcoll.method import ForestOptions
from ...models.forestcoll.problem import ForestProblem, pose
from ...models.forestcoll.solve import (
    ForestDirection,
    PackedForest,
    bound_of,
    busiest_s,
    is_symmetric,
    solve_forest,
    way_of,
)
from .method import BlinkOptions, group


@dataclass(frozen=True, eq=False)
class RootCandidate:
    """A root, and the directions of its data.

    ``ways`` are out of it, into it, or both; with ``mirrored`` the direction into it is that out of it reversed, and is
    left out.
    """

    root: int
    ways: tuple[ForestDirection, ...]
    mirrored: bool

    @property
    def in_turn_s(self) -> Fraction:
        """Sufficient time if one direction waits for the other.

        Twice the size over the rate if both directions are alike.
        """
        return sum((way.seconds for way in self.ways), Fraction(0)) * (2 if self.mirrored else 1)


@dataclass(frozen=True, eq=False)
class RootPacking:
    """Trees of a root, and the time of the most loaded link."""

    rooted: RootCandidate
    forests: tuple[PackedForest, ...]
    answer: TreePacking
    seconds: Fraction


def run(instance: Instance, solver: Solver, budget: Budget, options: BlinkOptions) -> Outcome:
    """Solve an instance that :mod:`.method` has nothing against.

    Data must reach every rank, and every switch have the same bandwidth in and out; whole trees do not go through
    switches with one-way links.
    """
    with budget.clock.phase("compile"):
        warm_up()
    with budget.clock.phase("optimum"):
        inward, outward = pose(instance)
        both = inward is not None and outward is not None
        mirrored = both and is_symmetric(instance)
        posed = [(problem, back) for problem, back in ((outward, False), (inward, True)) if problem is not None]
        roots = candidates(instance, posed[0][0], options)
        best = best_roots(posed[:1] if mirrored else posed, roots, budget, mirrored=mirrored)
    first = best[0]
    budget.progress(f"root {first.root}: {float(first.in_turn_s):.6g} s, one way after the other")
    bound, certificate = bound_of(instance, first.ways, both=both)
    budget.tell_bound(bound, certificate)
    found = _fastest(best if options.root == "fastest" else best[:1], instance, budget, options)
    if found is None:
        message = "the budget ended before all trees were packed; the bound holds"
        return Outcome(Status.LIMIT, bound=float(bound), certificate=certificate, message=message)
    return Outcome(
        Status.OPTIMAL if found.seconds == bound else Status.FEASIBLE,
        found.answer,
        objective=float(found.seconds),
        bound=float(bound),
        certificate=certificate,
        metrics=_metrics(found),
        iterations=sum(way.best.steps for way in found.rooted.ways),
    )


def best_roots(
    posed: Sequence[tuple[ForestProblem, bool]], roots: Sequence[int], budget: Budget, *, mirrored: bool
) -> list[RootCandidate]:
    """Find the roots from which, and to which, the data takes the least time.

    ``posed`` are the directions of the data, each with whether it is in the transposed network; where the data starts
    does not matter. If the budget ends, the best of the roots tried are returned. With ``mirrored`` there is another
    direction, just like the first.
    """
    best: list[RootCandidate] = []
    for root in roots:
        if best and budget.is_exhausted:
            break
        ways = tuple(way_of(restrict_to_root(problem, root), backwards=back) for problem, back in posed)
        found = RootCandidate(root, ways, mirrored)
        if not best or found.in_turn_s < best[0].in_turn_s:
            best = [found]
        elif found.in_turn_s == best[0].in_turn_s:
            best.append(found)
    return best


def _fastest(
    choices: Sequence[RootCandidate], instance: Instance, budget: Budget, options: BlinkOptions
) -> RootPacking | None:
    """Pack the trees of every choice and keep the fastest; None if the budget ended before the first was done."""
    fastest: RootPacking | None = None
    for choice in choices:
        packed = _pack(choice, instance, budget, options)
        if packed is None:
            break
        if fastest is None or packed.seconds < fastest.seconds:
            fastest = packed
            budget.progress(f"root {choice.root}: {float(packed.seconds):.6g} s, all ways together")
    return fastest


def _pack(choice: RootCandidate, instance: Instance, budget: Budget, options: BlinkOptions) -> RootPacking | None:
    """Pack the trees of all ways and put them together: reduce along the one, broadcast along the other."""
    forests: list[PackedForest] = []
    packings: list[TreePacking] = []
    for way in choice.ways:
        k = _trees(way, options)
        forest = solve_forest(way.problem, way.best, k, instance.sha256, budget, ForestOptions(repack=options.repack))
        if forest is None:
            return None
        forests.append(forest)
        packings.append(reverse_trees(forest.packing) if way.backwards else forest.packing)
    if choice.mirrored:
        packings.append(reverse_trees(packings[0], instance.topology))
    answer = packings[0] if len(packings) == 1 else reduce_then_broadcast(packings[1], packings[0])
    return RootPacking(choice, tuple(forests), answer, busiest_s(instance, answer))


def _trees(way: ForestDirection, options: BlinkOptions) -> int:
    if options.k == "smallest":
        return smallest_k(way.problem, way.best)
    return way.best.k if options.k == "optimal" else options.k


def _metrics(found: RootPacking) -> dict[str, Any]:
    """Return the exact rates in 10^9 bytes per second, and the numbers of trees.

    Lists if the directions differ, outwards first.
    """
    ways, forests = found.rooted.ways, found.forests
    rates = {way.backwards: str(way.problem.unit_Bps / way.best.ratio / 10**9) for way in ways}
    if found.rooted.mirrored:
        rates[True] = rates[False]
    names = {False: "broadcast_GBps", True: "reduce_GBps"}
    return {
        "root": found.rooted.root,
        "in_turn_s": float(found.rooted.in_turn_s),
        **{names[backwards]: rate for backwards, rate in rates.items()},
        "k": _one_or_all([forest.k for forest in forests]),
        "optimal_k": _one_or_all([way.best.k for way in ways]),
        "smallest_k": _one_or_all([smallest_k(way.problem, way.best) for way in ways]),
        **{name: sum(forest.counts[name] for forest in forests) for name in forests[0].counts},
    }


def _one_or_all(values: list[int]) -> int | list[int]:
    return values[0] if len(set(values)) == 1 else values


def candidates(instance: Instance, problem: ForestProblem, options: BlinkOptions) -> tuple[int, ...]:
    """Return the ranks that may be a best root.

    Where every node has the same bandwidth in and out, as much enters every set of nodes as leaves it. Then the cut
    that limits one root limits, from one of its sides or the other, every root: all have the same rate, and the first
    will do. A requested root must be in the group, or that of the collective.
    """
    ranks = group(instance)
    spread = instance.demand is not None and instance.demand.collective is not Collective.ALL_REDUCE
    if isinstance(options.root, int):
        allowed = ranks[:1] if spread else ranks
        if options.root not in allowed:
            what = f"root {ranks[0]} of the collective" if spread else "a rank of the group"
            raise InputError(f"{options.root}; expected {what}", source="-O", place="root")
        return (options.root,)
    balanced = np.array_equal(problem.graph.entering(), problem.graph.leaving())
    first_will_do = spread or (balanced and options.root == "best")
    return ranks[:1] if first_will_do else tuple(sorted(ranks))


def restrict_to_root(problem: ForestProblem, rank: int) -> ForestProblem:
    """Let all data start at one rank."""
    roots = np.zeros(problem.nodes, dtype=np.int64)
    roots[problem.topology.rank_nodes[rank]] = 1
    return replace(problem, roots=roots, part_bytes=problem.part_bytes * int(problem.roots.sum()))
