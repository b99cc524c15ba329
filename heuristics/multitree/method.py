"""``multitree``: the method, and the schedules of its trees."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ...algorithms.bounds.schedule_bounds import best_bound
from ...algorithms.schedules import problem as posing
from ...algorithms.schedules.compose import concatenate, merge, reverse, transpose
from ...core.budget import Budget
from ...core.collective import Collective
from ...core.errors import InputError
from ...core.fields import Strict
from ...core.instance import Instance
from ...core.method import Metric
from ...core.outcome import Outcome, Status
from ...core.refusals import refuse_unfit
from ...core.schedule import Ints, Sends, StepSchedule, offsets
from ...core.solver import Solver
from ...core.topology import Topology
from .. import heuristic
from .turns import AddedEdges, Free, Ports, Trees, Way, Words, begin, take_turns


@dataclass(frozen=True, eq=False)
class StepEdges:
    """Edges of trees in the order in which they were added, so that steps do not decrease.

    A tree is named after its root, and its steps are those of an all-gather, from 0; the ranges of ``offset`` in
    ``links`` are the links from parent to child.
    """

    step: Ints
    tree: Ints
    parent: Ints
    child: Ints
    offset: Ints
    links: Ints


def grow(topology: Topology, nodes: Sequence[int], uses: Sequence[int], budget: Budget) -> StepEdges | None:
    """Grow a spanning tree from every rank of a group.

    In a step, trees that reach the fewest ranks have the first turn. Return the n (n - 1) edges. None if the budget
    ended first. ``nodes`` are those of the positions of the group, ``uses`` the edges that each link may have in a
    step.
    """
    n = len(nodes)
    ports, open_ = ports_of(topology, nodes)
    members = np.zeros((n, n), dtype=np.int64)
    members[:, 0] = np.arange(n)
    ones = np.ones(n, dtype=np.int64)
    outside = _words([(1 << n) - 1 & ~(1 << root) for root in range(n)], n)
    trees = Trees(outside, (n - 1) * ones, members, 0 * ones, ones, 0 * ones)
    count = len(topology.nodes)
    way = Way(np.zeros(1, dtype=np.int64), *(np.zeros(count, dtype=np.int64) for _ in range(4)))
    longest = 1 + count - n  # a way passes every node that is not of the group at most once
    buffer = AddedEdges._make(np.empty(room, dtype=np.int64) for room in (n, n, n, n, n * longest))
    limits = np.array([min(use, n * n) for use in uses], dtype=np.int64)  # a step has no more edges
    hop_uses = np.add.reduceat(limits[ports.link], ports.link_first[:-1]) if len(limits) else limits
    able = np.asarray(ports.reach.any(axis=1), dtype=np.bool_)
    turns_made: list[tuple[Ints, ...]] = []
    step = 0
    while trees.lacking.any():
        if budget.is_exhausted:
            return None
        free = Free(limits.copy(), hop_uses.copy(), open_.copy(), ports.reach.copy(), able.copy())
        begin(ports, trees)
        turns = np.lexsort((np.arange(n), -trees.lacking))[: np.count_nonzero(trees.lacking)]
        before = len(turns_made)
        while len(turns):
            edges, hops = take_turns(ports, free, trees, turns, way, buffer)
            turns = turns[:edges]
            if edges:
                ends = (column[:edges].copy() for column in buffer[:4])
                turns_made.append((np.full(edges, step), *ends, buffer.links[:hops].copy()))
        if len(turns_made) == before:
            name = topology.nodes[nodes[int(trees.lacking.argmax())]].name
            raise InputError(f"not every rank can be reached from {name!r}", place="links")
        step += 1
    steps, tree, parent, child, length, links = (np.concatenate(column) for column in zip(*turns_made, strict=True))
    return StepEdges(steps, tree, parent, child, offsets(length), links)


def ports_of(topology: Topology, nodes: Sequence[int]) -> tuple[Ports, Words]:
    """Return the hops of a network, and the ranks behind a link from each node.

    ``nodes`` are those of the positions of the group; all others only forward.
    """
    position = {node: index for index, node in enumerate(nodes)}
    count = len(topology.nodes)
    to_rank: list[dict[int, list[int]]] = [defaultdict(list) for _ in range(count)]
    onward: list[dict[int, list[int]]] = [defaultdict(list) for _ in range(count)]
    for link, (source, target) in enumerate(topology.link_ends):
        if target in position:
            to_rank[source][position[target]].append(link)
        else:
            onward[source][target].append(link)
    hops = [hop for a, b in zip(to_rank, onward, strict=True) for hop in (*sorted(a.items()), *b.items())]
    ranks_of = [len(each) for each in to_rank]
    first = offsets([a + len(b) for a, b in zip(ranks_of, onward, strict=True)])
    open_ = [sum(1 << rank for rank in each) for each in to_rank]
    ports = Ports(
        np.array(nodes, dtype=np.int64),
        first,
        first[:-1] + np.array(ranks_of, dtype=np.int64),
        np.array([head for head, _ in hops], dtype=np.int64),
        offsets([len(links) for _, links in hops]),
        np.array([link for _, links in hops for link in links], dtype=np.int64),
        _words([_reach(node, open_, onward) for node in nodes], len(nodes)),
    )
    return ports, _words(open_, len(nodes))


def _reach(start: int, open_: Sequence[int], onward: Sequence[dict[int, list[int]]]) -> int:
    """Return the ranks reachable from a node without passing a rank of the group, as bits."""
    nodes, frontier, ranks = {start}, [start], 0
    for node in frontier:  # grows while it is gone through
        ranks |= open_[node]
        for other in onward[node]:
            if other not in nodes:
                nodes.add(other)
                frontier.append(other)
    return ranks


def _words(sets: Sequence[int], n: int) -> Words:
    """Convert sets of ranks, a bit for each, to rows of words."""
    size = (n + 63) // 64
    data = b"".join(bits.to_bytes(8 * size, "little") for bits in sets)
    return np.frombuffer(data, dtype="<u8").reshape(-1, size).copy()


class MultitreeOptions(Strict):
    """Options of ``multitree``."""

    links: Literal["parallel", "equal"] = "parallel"
    """Edges of a link in a step: parallel, its bandwidth over the smallest, rounded down; equal, one."""


def run(instance: Instance, solver: Solver, budget: Budget, options: MultitreeOptions) -> Outcome:
    """Grow the trees of every collective on its own (``Method.run``)."""
    problems = posing.group_problems(instance)
    bound, certificate = best_bound(instance)
    budget.tell_bound(bound, certificate)
    schedules: list[StepSchedule] = []
    heights: list[int] = []
    with budget.clock.phase("build"):
        for problem in problems:
            tree = build(problem, budget, parallel=options.links == "parallel")
            if tree is None:
                message = "the trees were not complete in time"
                return Outcome(Status.LIMIT, bound=float(bound), certificate=certificate, message=message)
            schedules.append(tree[0])
            heights.append(tree[1])
    metrics = {"tree_height": max(heights)}
    schedule = merge(instance.sha256, schedules)
    return Outcome(Status.FEASIBLE, schedule, bound=float(bound), certificate=certificate, metrics=metrics)


def build(problem: posing.GroupProblem, budget: Budget, *, parallel: bool) -> tuple[StepSchedule, int] | None:
    """Return the schedule of a collective, and the height of its highest tree in edges.

    None if the budget ended first. If ``parallel``, a link of k times the smallest bandwidth counts as k links;
    otherwise all links count as equal.
    """
    topology, kind, n = problem.topology, problem.collective, problem.n
    posing.check_size(kind.passes * n * (n - 1) * problem.demand.chunks)
    uses = posing.parallel_uses(topology) if parallel else [1] * len(topology.links)
    phases: list[StepSchedule] = []
    height = 0
    for reducing in [True] * kind.sums + [False] * kind.copies:
        edges = grow(transpose(topology) if reducing else topology, problem.nodes.tolist(), uses, budget)
        if edges is None:
            return None
        gather = all_gather(problem, edges)
        phases.append(reverse(gather) if reducing else gather)
        height = max(height, height_of(edges))
    return phases[0] if len(phases) == 1 else concatenate(*phases), height


def all_gather(problem: posing.GroupProblem, edges: StepEdges) -> StepSchedule:
    """Send every rank's part down its tree; chunk j of position i is ``i * c + j``.

    Chunks of a part travel together.
    """
    n, c = problem.n, problem.demand.chunks
    each = np.repeat(np.arange(len(edges.step)), c)
    chunk = edges.tree[each] * c + np.tile(np.arange(c), len(edges.step))
    ends = problem.nodes[edges.parent], problem.nodes[edges.child]
    of_edge = Sends(edges.tree, *ends, np.zeros(len(edges.step), dtype=np.bool_), edges.offset, edges.links)
    own, everyone = np.repeat(np.arange(n), c), np.full(n * c, n)
    chunks = posing.equal_chunks(problem.ranks, problem.part_bytes / c, own, everyone, reduced=False)
    sends = replace(of_edge.take(each), chunk=chunk)
    return StepSchedule(problem.instance.sha256, chunks, sends, edges.step[each])


def height_of(edges: StepEdges) -> int:
    """Return the largest number of edges between a root and a leaf; every edge comes later than the one above."""
    n = 1 + int(edges.tree.max(initial=0))
    depth = np.zeros((n, n), dtype=np.int64)
    begins = np.flatnonzero(np.diff(edges.step)) + 1
    for part in np.split(np.arange(len(edges.step)), begins):
        depth[edges.tree[part], edges.child[part]] = depth[edges.tree[part], edges.parent[part]] + 1
    return int(depth.max())


METHOD = heuristic(
    name="multitree",
    summary="a spanning tree from every rank, grown in turns over free links",
    paper="Huang et al., Communication Algorithm-Architecture Co-Design for Distributed Deep Learning, ISCA 2021",
    answer_type=StepSchedule,
    options=MultitreeOptions,
    solve=run,
    supports=lambda instance: refuse_unfit(
        instance, (Collective.ALL_GATHER, Collective.REDUCE_SCATTER, Collective.ALL_REDUCE)
    ),
    metrics={"tree_height": Metric("largest number of edges between a root and a leaf, over all trees")},
)
