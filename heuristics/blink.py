"""``blink`` and ``blink-switch``: data is added up at one root and broadcast, along the most trees that fit.

Sources: Wang et al., "Blink: Fast and Generic Collectives for Distributed ML", MLSys 2020, as Zhao et al.,
"ForestColl", describe and compare it (sections 2, 4.6 and 5.2). Rates and roots: docs/methods/blink.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from ..algorithms.forests.engine import warm_up
from ..algorithms.schedules.compose import reduce_then_broadcast, reverse_trees
from ..core.budget import Budget
from ..core.collective import Collective
from ..core.errors import InputError, Refusal
from ..core.fields import Strict
from ..core.instance import Instance
from ..core.method import Metric
from ..core.outcome import Outcome, Status
from ..core.refusals import refuse_unfit
from ..core.solver import Solver
from ..core.trees import TreePacking
from ..models.forestcoll import solve as forestcoll
from ..models.forestcoll.bounds import smallest_k
from ..models.forestcoll.method import PACKING, PAPER, ForestOptions
from ..models.forestcoll.problem import ForestProblem, pose
from . import heuristic

SUPPORTED = (Collective.ALL_REDUCE, Collective.BROADCAST, Collective.REDUCE)  #: What trees from one root make.


class BlinkOptions(Strict):
    """Options of ``blink`` and ``blink-switch``."""

    root: Literal["best", "fastest"] | Annotated[int, Field(ge=0)] = "best"
    """Rank that an all-reduce adds up at and broadcasts from: best, the first with the highest rate; fastest, of all
    with the highest rate the one whose trees take the least time both ways together; or a number."""
    k: Literal["optimal", "smallest"] | Annotated[int, Field(ge=1, le=10**6)] = "optimal"
    """Trees: optimal, as many as make every link's share whole (proposition 3); smallest, as few as are still optimal;
    or a number."""
    repack: int = Field(default=100, ge=0, le=100_000)
    """Rounds in which pairs of trees exchange edges, to bring the tallest down; for networks of up to 512 ranks."""


supports_switches = partial(refuse_unfit, collectives=SUPPORTED, single=True)


def supports(instance: Instance) -> Refusal | None:
    """Return why an instance cannot be served by trees from one root that go through ranks of the group alone."""
    if (reason := supports_switches(instance)) is not None:
        return reason
    topology = instance.topology
    members = {topology.rank_nodes[rank] for rank in instance.demands[0].group(instance.npus)}
    for index, node in enumerate(topology.nodes):
        if index not in members:
            why = "only forwards data, and Blink supports no switches; blink-switch removes them first"
            return Refusal("network", f"{node.name!r} {why}")
    return None


@dataclass(frozen=True, eq=False)
class RootCandidate:
    """A root, and the directions of its data.

    ``ways`` are out of it, into it, or both; with ``mirrored`` the direction into it is that out of it reversed, and is
    left out.
    """

    root: int
    ways: tuple[forestcoll.ForestDirection, ...]
    mirrored: bool

    @property
    def in_turn_s(self) -> Fraction:
        """Sufficient time if one direction waits for the other."""
        return sum((way.seconds for way in self.ways), Fraction(0)) * (2 if self.mirrored else 1)


@dataclass(frozen=True, eq=False)
class RootPacking:
    """Trees of a root, and the time of the most loaded link."""

    rooted: RootCandidate
    forests: list[forestcoll.PackedForest]
    answer: TreePacking
    seconds: Fraction


def run(instance: Instance, solver: Solver, budget: Budget, options: BlinkOptions) -> Outcome:
    """Pack the trees of the best roots, keep the fastest packing, and bound the time of any schedule.

    Data must reach every rank, and every switch have the same bandwidth in and out; whole trees do not go through
    switches with one-way links.
    """
    with budget.clock.phase("compile"):
        warm_up()
    with budget.clock.phase("optimum"):
        inward, outward = pose(instance)
        both = inward is not None and outward is not None
        mirrored = both and forestcoll.is_symmetric(instance)
        directions = [(problem, back) for problem, back in ((outward, False), (inward, True)) if problem is not None]
        roots = candidates(instance, directions[0][0], options)
        best = best_roots(directions[:1] if mirrored else directions, roots, budget, mirrored=mirrored)
    first = best[0]
    budget.progress(f"root {first.root}: {float(first.in_turn_s):.6g} s, one way after the other")
    bound, certificate = forestcoll.bound_of(instance, first.ways, both=both)
    budget.tell_bound(bound, certificate)
    packing: RootPacking | None = None
    for choice in best if options.root == "fastest" else best[:1]:
        packed = _pack(choice, instance, budget, options)
        if packed is None:
            break
        if packing is None or packed.seconds < packing.seconds:
            packing = packed
            budget.progress(f"root {choice.root}: {float(packed.seconds):.6g} s, all ways together")
    if packing is None:
        message = "the budget ended before all trees were packed; the bound holds"
        return Outcome(Status.LIMIT, bound=float(bound), certificate=certificate, message=message)
    return Outcome(
        Status.OPTIMAL if packing.seconds == bound else Status.FEASIBLE,
        packing.answer,
        objective=float(packing.seconds),
        bound=float(bound),
        certificate=certificate,
        metrics=_metrics(packing),
        iterations=sum(way.best.steps for way in packing.rooted.ways),
    )


def best_roots(
    directions: Sequence[tuple[ForestProblem, bool]], roots: Sequence[int], budget: Budget, *, mirrored: bool
) -> list[RootCandidate]:
    """Find the roots from which, and to which, the data takes the least time.

    ``directions`` are those of the data, each with whether it is in the transposed network; where the data starts
    does not matter. If the budget ends, the best of the roots tried are returned. With ``mirrored`` there is another
    direction, just like the first.
    """
    best: list[RootCandidate] = []
    for root in roots:
        if best and budget.is_exhausted:
            break
        ways = tuple(forestcoll.way_of(restrict_to_root(problem, root), backwards=back) for problem, back in directions)
        candidate = RootCandidate(root, ways, mirrored)
        if not best or candidate.in_turn_s < best[0].in_turn_s:
            best = [candidate]
        elif candidate.in_turn_s == best[0].in_turn_s:
            best.append(candidate)
    return best


def _pack(choice: RootCandidate, instance: Instance, budget: Budget, options: BlinkOptions) -> RootPacking | None:
    """Pack the trees of all ways and put them together: reduce along the one, broadcast along the other."""
    forests: list[forestcoll.PackedForest] = []
    packings: list[TreePacking] = []
    for way in choice.ways:
        k = smallest_k(way.problem, way.best) if options.k == "smallest" else options.k
        k = way.best.k if k == "optimal" else k
        forest = forestcoll.solve_forest(
            way.problem, way.best, k, instance.sha256, budget, ForestOptions(repack=options.repack)
        )
        if forest is None:
            return None
        forests.append(forest)
        packings.append(reverse_trees(forest.packing) if way.backwards else forest.packing)
    if choice.mirrored:
        packings.append(reverse_trees(packings[0], instance.topology))
    answer = packings[0] if len(packings) == 1 else reduce_then_broadcast(packings[1], packings[0])
    return RootPacking(choice, forests, answer, forestcoll.busiest_s(instance, answer))


def _metrics(packing: RootPacking) -> dict[str, Any]:
    """Return the exact rates in 10^9 bytes per second, and numbers of trees, as lists if the directions differ."""
    ways, forests = packing.rooted.ways, packing.forests

    def one_or_all(values: list[int]) -> int | list[int]:
        return values[0] if len(set(values)) == 1 else values

    rates = {way.backwards: str(way.problem.unit_Bps / way.best.ratio / 10**9) for way in ways}
    if packing.rooted.mirrored:
        rates[True] = rates[False]
    names = {False: "broadcast_GBps", True: "reduce_GBps"}
    return {
        "root": packing.rooted.root,
        "in_turn_s": float(packing.rooted.in_turn_s),
        **{names[backwards]: rate for backwards, rate in rates.items()},
        "k": one_or_all([forest.k for forest in forests]),
        "optimal_k": one_or_all([way.best.k for way in ways]),
        "smallest_k": one_or_all([smallest_k(way.problem, way.best) for way in ways]),
        **{name: sum(forest.counts[name] for forest in forests) for name in forests[0].counts},
    }


def candidates(instance: Instance, problem: ForestProblem, options: BlinkOptions) -> tuple[int, ...]:
    """Return the ranks that may be a best root: the first one in balanced networks (docs/methods/blink.md).

    A requested root must be in the group, or that of the collective.
    """
    demand = instance.demands[0]
    ranks, spread = demand.group(instance.npus), demand.collective is not Collective.ALL_REDUCE
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


_blink = partial(
    heuristic,
    answer_type=TreePacking,
    options=BlinkOptions,
    solve=run,
    metrics=PACKING
    | {
        "root": Metric("rank of the root"),
        "broadcast_GBps": Metric("rate of the broadcast from the root, as a fraction", "GB/s"),
        "reduce_GBps": Metric("rate of the reduction to the root, as a fraction", "GB/s"),
        "in_turn_s": Metric("size over both rates in turn, or over the one that the collective has", "s"),
        "k": Metric("trees; a list where both directions differ"),
        "optimal_k": Metric("trees that make every link's share whole"),
        "smallest_k": Metric("the fewest trees found that are as fast"),
    },
)

BLINK = _blink(
    name="blink",
    summary="the most spanning trees from one root: reduce along them, broadcast back; no switches",
    paper="Wang et al., Blink: Fast and Generic Collectives for Distributed ML, MLSys 2020",
    supports=supports,
)

BLINK_SWITCH = _blink(
    name="blink-switch",
    summary="Blink after ForestColl's removal of switches: trees from one root on any network",
    paper=f"{BLINK.paper}; {PAPER}",
    supports=supports_switches,
)
