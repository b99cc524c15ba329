"""Method ``forestcoll``: optimum, number of trees, forest, with the certificate of its bottleneck.

One direction of the data is solved at a time: out-trees, or in-trees as out-trees of the transposed network.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np

from ...algorithms.forests.engine import grow_forest, warm_up
from ...algorithms.forests.expansion import expand, trace_splits
from ...algorithms.forests.orbit_packing import OrbitForest, OrbitNetwork, pack_orbits
from ...algorithms.forests.splitting import Unsplittable
from ...algorithms.graphs.maxflow import Unreachable
from ...algorithms.graphs.network import INT64_SAFE, Exact
from ...algorithms.graphs.translations import Symmetry
from ...algorithms.schedules.compose import reduce_then_broadcast, reverse_links, reverse_trees
from ...core.bounds import Certificate, CutCertificate
from ...core.budget import Budget
from ...core.collective import Collective
from ...core.errors import InputError, Unsupported
from ...core.instance import Instance
from ...core.outcome import Outcome, Status
from ...core.pipelining import ENOUGH, PIECES
from ...core.schedule import Bools, offsets
from ...core.solver import Solver
from ...core.trees import Forest, Translation, TreeKind, TreeOrbits, TreePacking, expand_orbits
from .bounds import Optimum, best_all_reduce_bound, find_unbalanced, fixed_k, optimum, smallest_k
from .method import ForestOptions
from .problem import ForestProblem, pose

#: More trees than this from all roots together are rejected before memory is taken: a tree takes some 60 bytes for
#: every rank.
MAX_EDGES = 200_000_000

KEPT = 1024  #: Ranks from which on trees that stand for others are not written out.
MOST_COPIES = 2**63  #: A tree may be used at most so often.

#: Message of an all-reduce that is not proved best.
IN_TURN = "a reduce-scatter and an all-gather in turn; forestcoll-allreduce may be faster"


@dataclass(frozen=True, eq=False)
class PackedForest:
    """Forest with its time and its certificate."""

    packing: TreePacking
    k: int  #: Trees from every root; with translations, the number that would suffice.
    copies: Fraction  #: U: copies of trees on a link for each unit of its bandwidth.
    seconds: Fraction
    side: Bools  #: Nodes that the cut leads into that forbids a smaller U for this k.
    counts: dict[str, int]
    #: Translations that move the trees to all other roots; empty if all trees are listed.
    translations: tuple[Translation, ...] = ()


def solve_forest(
    problem: ForestProblem, best: Optimum, k: int, instance_sha256: str, budget: Budget, options: ForestOptions
) -> PackedForest | None:
    """Pack the fastest forest with k trees from every root; None if the budget ended first."""
    if k * int(problem.roots.sum()) * len(problem.ranks) > MAX_EDGES and k != best.k:
        raise Unsupported(f"k = {k:,} trees from {int(problem.roots.sum()):,} roots are too many; expected fewer")
    if k >= MOST_COPIES:
        raise Unsupported(f"bandwidths so uneven need k = {k:,} trees; expected a small number, such as k = 8")
    with budget.clock.phase("optimum"):
        copies, side = (best.copies, best.side) if k == best.k else fixed_k(problem, best, k)
    wires = problem.wires(copies)
    if (imbalance := find_unbalanced(problem, wires.graph())) is not None:
        node, come, go = imbalance
        raise Unsupported(
            f"with k = {k:,} whole trees per link, {come:,} come into {problem.topology.nodes[node].name!r} and {go:,} "
            "leave it: links there are one-way; expected k = optimal"
        )
    try:
        growth = grow_forest(
            wires, problem.roots * k, problem.members, budget, repack=options.repack, patterns=options.patterns
        )
    except Unsplittable as error:
        name = problem.topology.nodes[error.switch].name
        raise Unsupported(f"{name!r} cannot be removed without loss: links there are one-way") from None
    if growth is None:
        return None
    with budget.clock.phase("expand"):
        pieces = trace_splits(wires, growth.split.log, growth.forest.graph, growth.members)
        packing = expand(pieces, growth.forest, problem.ranks, instance_sha256, problem.part_bytes / k)
    counts = {**growth.split.counts, **growth.forest.counts, "logical_edges": len(growth.split.graph)}
    seconds = problem.part_bytes * copies / k / problem.unit_Bps
    return PackedForest(packing, k, copies, seconds, side, counts)


def latency_of(problem: ForestProblem, solved: PackedForest) -> float:
    """Estimate the arrival of the last piece, to choose between forests.

    A leaf after k links of latency l has the last of C pieces at ``l + (k - 1 + C) F / C``, where F is the time of the
    most loaded link. The number of pieces is the smallest whose time is within a hundredth of the least.
    """
    packing, trees = solved.packing, len(solved.packing)
    link_s = np.array([float(link.latency_s) for link in problem.topology.links])
    edge_s = np.add.reduceat(link_s[packing.path_links], packing.path_offset[:-1]).reshape(trees, -1)
    hops = np.diff(packing.path_offset).reshape(trees, -1)
    parent, child = packing.parent.reshape(trees, -1), packing.child.reshape(trees, -1)
    ranks = len(problem.topology.ranks)
    row = np.arange(trees)
    far_s, links = np.zeros((trees, ranks)), np.zeros((trees, ranks))
    for i in range(parent.shape[1]):
        far_s[row, child[:, i]] = far_s[row, parent[:, i]] + edge_s[:, i]
        links[row, child[:, i]] = links[row, parent[:, i]] + hops[:, i]
    flow_s = float(solved.seconds)
    last_s = [float((far_s + (links - 1 + pieces) * flow_s / pieces).max()) for pieces in PIECES]
    return next(seconds for seconds in last_s if seconds <= min(last_s) * (1 + ENOUGH))


@dataclass(frozen=True, eq=False)
class ForestDirection:
    """One direction of the data: out-trees, or in-trees as out-trees of the transposed network."""

    problem: ForestProblem
    best: Optimum
    backwards: bool

    @property
    def seconds(self) -> Fraction:
        """Least time that the bottleneck allows."""
        return self.problem.part_bytes * self.best.ratio / self.problem.unit_Bps

    def certificate(self) -> CutCertificate:
        """Return the cut that the bottleneck leads out of, in the network itself."""
        side = self.best.side if self.backwards else ~self.best.side
        return CutCertificate(tuple(np.flatnonzero(side).tolist()))


def run(instance: Instance, solver: Solver, budget: Budget, options: ForestOptions) -> Outcome:
    """Solve an instance that :func:`.problem.supports` accepts."""
    with budget.clock.phase("compile"):
        warm_up()
    with budget.clock.phase("optimum"):
        ways, mirrored = ways_of(instance)
    seconds = sum((way.seconds for way in ways), Fraction(0)) * (2 if mirrored else 1)
    budget.progress(f"bottleneck found: at least {float(seconds):.6g} s; k = {ways[0].best.k:,}")
    bound, certificate = bound_of(instance, ways, both=mirrored or len(ways) == 2)
    budget.tell_bound(bound, certificate)
    solved = [_forest(way, instance, budget, options, as_orbits=len(ways) == 1) for way in ways]
    forests = [forest for forest in solved if forest is not None]
    if len(forests) < len(ways):
        message = "the budget ended before all trees were packed; the bound holds"
        return Outcome(Status.LIMIT, bound=float(bound), certificate=certificate, message=message)
    answer = _answer(instance, ways, forests)
    objective = forests[0].seconds
    if answer.kind is TreeKind.BOTH:
        symmetry = ways[0].problem.symmetry if isinstance(answer, TreeOrbits) else None
        objective = busiest_s(instance, answer, symmetry)
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


def ways_of(instance: Instance) -> tuple[list[ForestDirection], bool]:
    """Return the directions with their bottlenecks, and True if one is left out as mirror image."""
    inward, outward = pose(instance)
    mirrored = inward is not None and outward is not None and is_symmetric(instance)
    problems = [(p, back) for p, back in ((outward, False), (inward, True)) if p is not None]
    return [way_of(problem, backwards=back) for problem, back in problems[: 1 if mirrored else 2]], mirrored


def prove_bound(instance: Instance, options: ForestOptions) -> Fraction:
    """Return the bound by the bottleneck cuts (``Method.proved``)."""
    return cut_bound_of(instance)[0]


def cut_bound_of(instance: Instance, *_: object) -> tuple[Fraction, Certificate]:
    """Return the bound by the bottleneck cuts and its certificate."""
    ways, mirrored = ways_of(instance)
    return bound_of(instance, ways, both=mirrored or len(ways) == 2)


def busiest_s(instance: Instance, answer: Forest, symmetry: Symmetry | None = None) -> Fraction:
    """Return the time of the most loaded link, summed over both halves of an all-reduce; by orbits with a symmetry."""
    trees, links = answer.trees, instance.topology.links
    orbit = np.arange(len(links)) if symmetry is None else symmetry.orbit
    first, size = np.unique(orbit, return_index=True, return_counts=True)[1:]
    load = [0] * len(first)
    for part in trees.passes:
        units = part.path_units
        exact: Exact = np.zeros(len(first), np.int64 if int(units.max()) * len(units) < INT64_SAFE else object)
        np.add.at(exact, orbit[part.path_links], units)
        load = [before + more for before, more in zip(load, exact.tolist(), strict=True)]
    rows = zip(load, first.tolist(), size.tolist(), strict=True)
    slowest: Fraction = max(amount / (links[link].bandwidth_Bps * count) for amount, link, count in rows)
    return slowest * answer.motions * trees.unit_bytes


def is_symmetric(instance: Instance) -> bool:
    """Check whether every link has an equal reverse, so that reversed trees load nothing more."""
    try:
        back = reverse_links(instance.topology)
    except Unsupported:
        return False
    rates = [link.bandwidth_Bps for link in instance.topology.links]
    return all(rates[link] == rate for link, rate in zip(back.tolist(), rates, strict=True))


def way_of(problem: ForestProblem, *, backwards: bool) -> ForestDirection:
    """Find the bottleneck of one direction of the data."""
    try:
        return ForestDirection(problem, optimum(problem), backwards)
    except Unreachable as error:
        verb = "leads out of" if backwards else "leads to"
        text = f"disconnected: no link {verb} {problem.names(error.side)}"
        raise InputError(text, place="network.links") from None


def bound_of(instance: Instance, ways: Sequence[ForestDirection], *, both: bool) -> tuple[Fraction, Certificate]:
    """Bound the collective; ``both`` if data flows in both directions."""
    if both:
        return best_all_reduce_bound(instance, [way.best.side for way in ways])
    return ways[0].seconds, ways[0].certificate()


def _forest(
    way: ForestDirection, instance: Instance, budget: Budget, options: ForestOptions, *, as_orbits: bool
) -> PackedForest | None:
    """Pack the options' forest, for low latency the best of several; fully written out unless ``as_orbits``."""
    problem, best = way.problem, way.best
    numbers = _numbers(problem, best, options)
    forest = _symmetric(way, instance, budget, options, as_orbits=as_orbits) if best.k in numbers else None
    if forest is not None:
        numbers.remove(best.k)
    fastest = float("inf") if forest is None or not numbers else latency_of(problem, forest)
    for k in numbers:
        if budget.is_exhausted:
            break
        try:
            solved = solve_forest(problem, best, k, instance.sha256, budget, options)
        except Unsupported:
            if forest is None and k == numbers[-1]:
                raise
            continue
        if solved is None or (forest is None and len(numbers) == 1):
            return forest or solved
        seconds = latency_of(problem, solved)
        budget.progress(f"k = {k:,}: {seconds:.6g} s with latency")
        if seconds < fastest:
            forest, fastest = solved, seconds
    return forest


def _symmetric(
    way: ForestDirection, instance: Instance, budget: Budget, options: ForestOptions, *, as_orbits: bool
) -> PackedForest | None:
    """Pack an optimal forest for one root per orbit of the network's translations, moved to all others; None without.

    All trees are listed unless ``as_orbits``.
    """
    problem, best = way.problem, way.best
    if options.symmetry == "none" or (symmetry := problem.symmetry) is None:
        return None
    with budget.clock.phase("pack"):
        # The room of an orbit of links is its bandwidth for the optimal time, per motion.
        first = np.unique(symmetry.orbit, return_index=True)[1].tolist()
        room = tuple(
            best.ratio * problem.kind_bandwidths[problem.topology.link_kinds[link]] * size / symmetry.motions
            for link, size in zip(first, symmetry.size.tolist(), strict=True)
        )
        network = OrbitNetwork(*problem.ends, problem.members, symmetry.roots, symmetry.orbit, room)
        forest = pack_orbits(network, budget.seed, lambda: budget.is_exhausted)
    if forest is None:
        return None
    trees = f"{len(forest.columns):,} trees of {len(symmetry.roots):,} roots"
    budget.progress(f"{trees}, each moved to {symmetry.motions:,}")
    parts = lcm(*(weight.denominator for weight in forest.weight))  # the fewest of which every tree carries whole ones
    translations = symmetry.translations
    with budget.clock.phase("expand"):
        packing = _orbit_packing(problem, network, forest, parts, instance.sha256)
        answer = TreeOrbits(packing, translations)
        few = options.symmetry == "auto" and len(problem.ranks) < KEPT
        if not as_orbits or few or options.symmetry == "written":
            packing, translations = expand_orbits(answer, problem.topology), ()
    counts = {
        "motions": answer.motions,
        "roots": len(np.unique(answer.trees.root)),
        "parts": parts,
        "grown_trees": forest.tries,
    }
    return PackedForest(packing, best.k, best.copies, way.seconds, best.side, counts, translations)


def _orbit_packing(
    problem: ForestProblem, network: OrbitNetwork, forest: OrbitForest, parts: int, instance_sha256: str
) -> TreePacking:
    """Return the trees of the roots as a packing of equal parts of a root's data; their numbers are ranks."""
    rank = np.full(problem.nodes, -1, dtype=np.int64)
    rank[list(problem.topology.rank_nodes)] = np.arange(len(problem.topology.ranks))
    columns = forest.columns
    parent, child, hops = (np.empty((len(columns), len(problem.ranks) - 1), dtype=np.int64) for _ in range(3))
    links = np.empty(sum(int(column.uses.sum()) for column in columns), dtype=np.int64)
    end = 0
    for tree, column in enumerate(columns):  # one by one, since large trees take much memory
        tails, heads, offset, path = network.grow_tree(column)
        parent[tree], child[tree], hops[tree] = rank[tails], rank[heads], np.diff(offset)
        begin, end = end, end + len(path)
        links[begin:end] = path
    return TreePacking(
        instance_sha256,
        TreeKind.OUT,
        rank[network.roots[[column.root for column in columns]]],
        np.array([int(weight * parts) for weight in forest.weight], dtype=np.int64),
        problem.part_bytes / parts,
        np.arange(len(columns) + 1) * parent.shape[1],
        parent.ravel(),
        child.ravel(),
        offsets(hops.ravel()),
        links,
    )


def _numbers(problem: ForestProblem, best: Optimum, options: ForestOptions) -> list[int]:
    """Return the numbers of trees to try."""
    if options.prefer == "latency":
        least = smallest_k(problem, best)
        return sorted({*range(1, options.scan + 1), least, best.k})
    if options.k == "smallest":
        return [smallest_k(problem, best)]
    return [best.k if options.k == "optimal" else options.k]


def _answer(instance: Instance, ways: list[ForestDirection], forests: list[PackedForest]) -> Forest:
    """Return the trees of both directions together; of an all-reduce with one, its mirror image comes first."""
    packings = [forest.packing for forest in forests]
    trees = reverse_trees(packings[0]) if ways[0].backwards else packings[0]
    if len(ways) == 2:
        trees = reduce_then_broadcast(reverse_trees(packings[1]), trees)
    elif instance.demands[0].collective is Collective.ALL_REDUCE:
        trees = reduce_then_broadcast(reverse_trees(packings[0], instance.topology), packings[0])
    return TreeOrbits(trees, forests[0].translations) if forests[0].translations else trees


def _metrics(way: ForestDirection, forest: PackedForest) -> dict[str, Any]:
    """Return the method's metrics; rates in 10^9 bytes per second."""
    problem, best = way.problem, way.best
    return {
        "inv_x": str(best.ratio / problem.unit_Bps * 10**9),
        "k": forest.k,
        "U": str(forest.copies / problem.unit_Bps * 10**9),
        "optimal_k": best.k,
        "smallest_k": smallest_k(problem, best),
        "cut_ranks": int((~best.side & problem.members).sum()),
        "cut_bandwidth_GBps": str(problem.graph.into(best.side) * problem.unit_Bps / 10**9),
        **forest.counts,
    }
