"""NCCL's schedules: in steps for rings, PAT and all-to-all, and as trees (docs/methods/nccl.md).

PAT, parallel aggregated trees: all-gather and reduce-scatter of boxes with one GPU each, in ceil(log2 n) steps. A
binomial tree from every rank, all at once, the farthest ranks first: with distance d = 2^k from high to low, a rank
sends to the one d places on all parts that began a multiple of 2d places before it. A reduce-scatter is this backwards.
Source: NVIDIA, NCCL 2.23 release; NCCL sends these parts through small buffers, one after the other.

All-to-all, in the order of ``ncclP2pSchedule`` (``src/init.cc``). Boxes are cut into groups of at most eight ranks. In
every round each rank sends to the rank that is so many groups, and so many places in the group, after it.

Trees. An all-reduce of every channel uses two trees over the boxes, in each of which the leaves of the other one are
inner nodes, with half of the channel's data each; within a box a chain begins at the GPU of the channel's NIC. With
NVLS every GPU of a box is the head of a channel, and the switch replaces the chain.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import pairwise
from math import gcd

import numpy as np

from ...algorithms.graphs.distances import Paths, route
from ...algorithms.graphs.translations import route_by_symmetry
from ...algorithms.schedules.compose import concatenate
from ...algorithms.schedules.problem import GroupProblem, check_size, equal_chunks
from ...core.collective import Collective
from ...core.equal_steps import translate_ranks
from ...core.schedule import Chunks, Ints, Sends, StepSchedule, offsets
from ...core.step_orbits import StepOrbits
from ...core.trees import TreeKind, TreePacking
from ..textbook.algorithm import GATHERS, find_common_symmetry, is_shift, positions_of
from ..textbook.trees import top_down, two_trees
from .boxes import Boxes, as_paths
from .search import Rings


def ring_orders(rings: Rings) -> list[tuple[int, ...]]:
    """Return the ranks of every channel in the order of its ring, box after box."""
    return [tuple(rank for box in channel for rank in box.order) for channel in rings.channels]


def in_rings(problem: GroupProblem, rings: Rings, boxes: Boxes, pieces: int) -> StepSchedule | StepOrbits:
    """Make the schedule of an all-gather, a reduce-scatter or an all-reduce.

    Every channel has its share of every part, which goes around its ring in pieces; an all-reduce goes around twice.
    Chunks of the problem cut the pieces once more. Of many sends, those of some parts are listed, if the network has a
    symmetry by which each ring is shifted along itself.
    """
    ring, n = np.array(ring_orders(rings), dtype=np.int64), problem.n
    pieces *= problem.demand.chunks
    channel, places = np.repeat(np.arange(len(ring)), n).tolist(), np.argsort(ring, axis=1)

    def is_invariant_under(image: Ints) -> bool:
        return all(is_shift(place[image[order]]) for order, place in zip(ring, places, strict=True))

    def find_ways(source: Ints, target: Ints) -> Paths:
        rows = list(zip(channel, source.tolist(), target.tolist(), strict=True))
        ways = {
            (c, a, b): boxes.links(boxes.position[a], boxes.position[b], c, rings.channels[c][0].nic)
            for c, a, b in dict.fromkeys(rows)
        }
        return as_paths([ways[row] for row in rows])

    sends = problem.collective.passes * n * (n - 1) * len(ring) * pieces
    symmetry = find_common_symmetry(problem.instance, sends, GATHERS, is_invariant_under)
    check_size(sends // (symmetry.motions if symmetry else 1))
    ends = problem.nodes[ring].ravel(), problem.nodes[np.roll(ring, -1, axis=1)].ravel()
    ways = route_by_symmetry(problem.topology, symmetry, *ends, find_ways) if symmetry else find_ways(*ends)
    parts, halves = positions_of(problem, symmetry), list[StepSchedule]()
    if problem.collective is not Collective.ALL_GATHER:
        halves.append(_once_around(problem, parts, ring, ways, pieces, reduce=True))
    if problem.collective is not Collective.REDUCE_SCATTER:
        halves.append(_once_around(problem, parts, ring, ways, pieces, reduce=False))
    schedule = halves[0] if len(halves) == 1 else concatenate(*halves)
    return StepOrbits(schedule, symmetry.translations) if symmetry else schedule


def _once_around(
    problem: GroupProblem, parts: Ints, ring: Ints, ways: Paths, pieces: int, *, reduce: bool
) -> StepSchedule:
    """Return a schedule of some parts once around each ring.

    In step s, the i-th rank forwards the part of the rank s (reducing: s + 1) places before it.
    """
    n, count = problem.n, len(ring)
    step, channel, start = (
        np.arange(n - 1)[:, None, None],
        np.arange(count)[:, None],
        np.argsort(ring, axis=1)[:, parts],
    )
    place = np.sort((start + step + int(reduce)) % n, axis=2)
    step, channel, place = (column.ravel() for column in np.broadcast_arrays(step, channel, place))
    part, source, target = (ring[channel, at % n] for at in (place - step - int(reduce), place, place + 1))
    ways = ways.take(channel * n + place)
    return steps_of(problem, parts, part, channel, count, source, target, step, ways, reduce=reduce, pieces=pieces)


def steps_of(
    problem: GroupProblem,
    parts: Ints,
    part: Ints,
    share: Ints,
    shares: int,
    source: Ints,
    target: Ints,
    step: Ints,
    ways: Paths,
    *,
    reduce: bool,
    pieces: int,
) -> StepSchedule:
    """Return a schedule in steps of some ranks' parts that all ranks receive, or that are summed at these ranks.

    Sends are of a ``share`` of the ``part`` of a rank, from step 0 on; each of the ``shares`` of a part is cut into
    pieces, which are sent one after the other. With ``reduce`` the receiver adds the data.
    """
    n, cut = problem.n, shares * pieces
    number = np.searchsorted(parts, part) * shares + share
    chunk = np.repeat(number * pieces, pieces) + np.tile(np.arange(pieces), len(part))
    ways = ways.take(np.repeat(np.arange(len(part)), pieces))
    ends, everyone = np.repeat(parts, cut), np.full(len(parts) * cut, n)
    holders, receivers = (everyone, ends) if reduce else (ends, everyone)
    chunks = equal_chunks(problem.ranks, problem.part_bytes / cut, holders, receivers, reduced=reduce)
    one, other = (np.repeat(problem.nodes[end], pieces) for end in (source, target))
    sends = Sends(chunk, one, other, np.full(len(chunk), reduce), ways.offset, ways.links)
    return StepSchedule(problem.instance.sha256, chunks, sends, np.repeat(step, pieces))


def aggregated_trees(problem: GroupProblem, pieces: int) -> StepSchedule | StepOrbits:
    """Make the schedule of an all-gather or a reduce-scatter; of many sends, those of some parts."""
    n, pieces = problem.n, pieces * problem.demand.chunks
    reduce = problem.collective is Collective.REDUCE_SCATTER
    sends = n * (n - 1) * pieces
    symmetry = find_common_symmetry(problem.instance, sends, GATHERS, is_shift)
    check_size(sends // (symmetry.motions if symmetry else 1))
    parts = positions_of(problem, symmetry)
    depth = (n - 1).bit_length()
    # Distance from the part's rank, how far it is sent on, and step.
    rows = [(far, 1 << k, depth - 1 - k) for k in reversed(range(depth)) for far in range(0, n - (1 << k), 2 << k)]
    far, on, when = np.tile(np.array(rows, dtype=np.int64), (len(parts), 1)).T
    part = np.repeat(parts, len(rows))
    source = (part + far) % n
    target = (source + on) % n
    if reduce:
        source, target, when = target, source, depth - 1 - when
    order = np.argsort(when, kind="stable")
    part, source, target, when = part[order], source[order], target[order], when[order]
    find_paths = partial(route_by_symmetry, symmetry=symmetry) if symmetry else route
    ways = find_paths(problem.topology, source=problem.nodes[source], target=problem.nodes[target])
    none, when = np.zeros_like(part), when - int(when.min())
    schedule = steps_of(problem, parts, part, none, 1, source, target, when, ways, reduce=reduce, pieces=pieces)
    return StepOrbits(schedule, symmetry.translations) if symmetry else schedule


GROUP = 8  #: Ranks of a group at most.


def size_of_groups(sizes: Sequence[int]) -> int:
    """Return the number of ranks in each group into which boxes of these sizes are divided."""
    return gcd(GROUP if len(sizes) > 1 else sizes[0], *sizes)


def receivers_by_round(sizes: Sequence[int], positions: Ints) -> Ints:
    """Return the receiver of each position, box by box, in every round, at first itself; shape (rounds, positions)."""
    size = size_of_groups(sizes)
    count, deltas, delta = sum(sizes) // size, list[int](), 0
    power = 1 << (count - 1).bit_length()
    for turn in range(power):
        deltas += [delta] if delta < count else []
        delta = (delta + turn + 1) & (power - 1)
    by = (np.array(deltas)[:, None] * size + np.arange(size)).reshape(-1, 1)
    return translate_ranks((size, count), positions, by)


def in_rounds(problem: GroupProblem, boxes: Boxes, pieces: int) -> StepSchedule | StepOrbits:
    """Make the schedule of an all-to-all: one step, whose sends are in the order of the rounds, each in pieces.

    Of many sends, those of some ranks are listed, if the network has a symmetry that keeps the rounds.
    """
    n, cut = problem.n, pieces * problem.demand.chunks
    ranks, sizes = (
        np.array([rank for box in boxes.boxes for rank in box.ranks]),
        [len(box.ranks) for box in boxes.boxes],
    )
    place, size = np.argsort(ranks), size_of_groups(sizes)

    def is_invariant_under(image: Ints) -> bool:
        shift = place[image[ranks]]
        return np.array_equal(shift, translate_ranks((size, n // size), np.arange(n), shift[:1]))

    symmetry = find_common_symmetry(problem.instance, n * (n - 1) * cut, (Collective.ALL_TO_ALL,), is_invariant_under)
    check_size(n * (n - 1) * cut // (symmetry.motions if symmetry else 1))
    local = {rank: place for box in boxes.boxes for place, rank in enumerate(box.ranks)}
    near = {
        rank: next((i for i, nic in enumerate(box.nics) if nic.near[0] == rank), local[rank])
        for box in boxes.boxes
        for rank in box.ranks
    }
    positions = np.sort(place[positions_of(problem, symmetry)])
    target = ranks[receivers_by_round(sizes, positions)[1:]].ravel()
    source = np.tile(ranks[positions], n - 1)
    pairs = zip(source.tolist(), target.tolist(), strict=True)
    ways = as_paths([boxes.links(a, b, local[a], near[b]) for a, b in pairs]).take(
        np.repeat(np.arange(len(source)), cut)
    )
    source, target = np.repeat(source, cut), np.repeat(target, cut)
    count, no = len(source), np.zeros(len(source), dtype=bool)
    one, other = problem.nodes[source], problem.nodes[target]
    groups = tuple((rank,) for rank in problem.ranks)
    chunks = Chunks(np.ones(count, dtype=np.int64), problem.part_bytes / cut, groups, source, target, no)
    sends = Sends(np.arange(count), one, other, no, ways.offset, ways.links)
    schedule = StepSchedule(problem.instance.sha256, chunks, sends, np.zeros(count, dtype=np.int64))
    return StepOrbits(schedule, symmetry.translations) if symmetry else schedule


@dataclass
class Tree:
    """A tree from its root: edges with their links from parent to child, and back.

    Ends are in the packing's numbering; an edge comes after the one that reaches its parent.
    """

    root: int
    edges: list[tuple[int, int, tuple[int, ...], tuple[int, ...]]] = field(default_factory=list)


def along_rings(problem: GroupProblem, rings: Rings, boxes: Boxes) -> TreePacking:
    """Broadcast and reduce: along the ring of every channel, from the root or to it."""
    back = problem.collective is Collective.REDUCE
    trees: list[Tree] = []
    for number, order in enumerate(ring_orders(rings)):
        nic, start = rings.channels[number][0].nic, order.index(0)
        walk = [*order[start:], *order[:start]]
        if back:
            walk = [walk[0], *walk[:0:-1]]
        tree = Tree(0)
        for a, b in pairwise(walk):
            way = boxes.links(b, a, number, nic) if back else boxes.links(a, b, number, nic)
            tree.edges.append((a, b, way, way))
        trees.append(tree)
    return _tree_packing(problem, trees, TreeKind.IN if back else TreeKind.OUT)


def double_trees(problem: GroupProblem, rings: Rings, boxes: Boxes) -> TreePacking:
    """Build the trees of an all-reduce: two over the boxes for every channel, and chains within."""
    trees: list[Tree] = []
    for number, channel in enumerate(rings.channels):
        orders = [box.order for box in channel]
        for tree in _over_boxes([order[0] for order in orders], boxes, number, channel[0].nic):
            for order in orders:
                for a, b in pairwise(order):
                    tree.edges.append((a, b, boxes.links(a, b, number, 0), boxes.links(b, a, number, 0)))
            trees.append(tree)
    return _tree_packing(problem, trees, TreeKind.BOTH)


def over_switches(problem: GroupProblem, boxes: Boxes) -> TreePacking:
    """Build the trees of NVLS: every GPU heads a channel, and its box's switch replaces the chain.

    An all-reduce over several boxes has two trees for every channel; of one box, the data of a gather or of a
    reduce-scatter are those of the heads.
    """
    number = {node: number for number, node in enumerate(problem.topology.tree_nodes)}
    trees: list[Tree] = []
    for channel in range(min(len(box.ranks) for box in boxes.boxes)):
        heads = [box.ranks[channel] for box in boxes.boxes]
        nic = next((i for i, one in enumerate(boxes.boxes[0].nics) if one.near[0] == heads[0]), channel)
        for tree in _over_boxes(heads, boxes, channel, nic):
            for box, head in zip(boxes.boxes, heads, strict=True):
                switches = switches_of(boxes, box.ranks)
                switch = switches[channel % len(switches)]
                spokes = {
                    rank: tuple(boxes.first_link[ends] for ends in ((node, switch), (switch, node)))
                    for rank in box.ranks
                    for node in [boxes.nodes[rank]]
                }
                to, back = spokes[head]
                tree.edges.append((head, -1 - number[switch], (to,), (back,)))
                for rank in box.ranks:
                    if rank != head:
                        out, into = spokes[rank]
                        tree.edges.append((-1 - number[switch], rank, (into,), (out,)))
            trees.append(tree)
    kinds = {Collective.ALL_GATHER: TreeKind.OUT, Collective.REDUCE_SCATTER: TreeKind.IN}
    return _tree_packing(problem, trees, kinds.get(problem.collective, TreeKind.BOTH))


def switches_of(boxes: Boxes, ranks: Sequence[int]) -> list[int]:
    """Switches that add and copy, and have a link to and from each of some ranks."""
    topology, nodes = boxes.topology, [boxes.nodes[rank] for rank in ranks]
    near = sorted({topology.link_ends[link][1] for link in boxes.leaving[nodes[0]]})
    return [
        index
        for index in near
        if topology.nodes[index].reduces and topology.nodes[index].multicast
        if all(ends in boxes.first_link for node in nodes for ends in ((node, index), (index, node)))
    ]


def _over_boxes(heads: Sequence[int], boxes: Boxes, channel: int, nic: int) -> list[Tree]:
    """Two trees over the heads of boxes, one if there is one box."""
    if len(heads) == 1:
        return [Tree(heads[0])]
    trees: list[Tree] = []
    for parent in two_trees(len(heads)):
        root, *others = top_down(parent)
        tree = Tree(heads[root])
        for box in others:
            a, b = heads[parent[box]], heads[box]
            tree.edges.append((a, b, boxes.links(a, b, channel, nic), boxes.links(b, a, channel, nic)))
        trees.append(tree)
    return trees


def _tree_packing(problem: GroupProblem, trees: Sequence[Tree], kind: TreeKind) -> TreePacking:
    """Pack trees that share the data evenly; an all-reduce sums and broadcasts over the same ones."""
    unit = problem.demand.size_bytes / len(trees)
    if kind is not TreeKind.BOTH:
        return _one_way(problem, trees, kind, unit)
    outward, inward = (_one_way(problem, trees, way, unit) for way in (TreeKind.OUT, TreeKind.IN))
    return replace(outward, kind=TreeKind.BOTH, reduction=inward)


def _one_way(problem: GroupProblem, trees: Sequence[Tree], kind: TreeKind, unit: Fraction) -> TreePacking:
    edges = [edge for tree in trees for edge in tree.edges]

    def places(ends: Iterable[int]) -> Ints:
        return np.array([problem.ranks[end] if end >= 0 else -1 - end for end in ends], dtype=np.int64)

    ways = as_paths([back if kind is TreeKind.IN else forth for _, _, forth, back in edges])
    return TreePacking(
        problem.instance.sha256,
        kind,
        places(tree.root for tree in trees),
        np.ones(len(trees), dtype=np.int64),
        unit,
        offsets([len(tree.edges) for tree in trees]),
        places(parent for parent, *_ in edges),
        places(child for _, child, *_ in edges),
        ways.offset,
        ways.links,
    )
