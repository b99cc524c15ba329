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
from itertools import pairwise
from math import gcd

import numpy as np

from ...algorithms.graphs.distances import Paths, route
from ...algorithms.schedules.compose import concatenate
from ...algorithms.schedules.problem import GroupProblem, check_size, equal_chunks
from ...core.collective import Collective
from ...core.schedule import Chunks, Ints, Sends, StepSchedule, offsets
from ...core.trees import TreeKind, TreePacking
from ..textbook.trees import two_trees
from .boxes import Boxes, as_paths
from .search import Rings


def ring_orders(rings: Rings) -> list[tuple[int, ...]]:
    """Return the ranks of every channel in the order of its ring, box after box."""
    return [tuple(rank for box in channel for rank in box.order) for channel in rings.channels]


def in_rings(problem: GroupProblem, rings: Rings, boxes: Boxes, pieces: int) -> StepSchedule:
    """Make the schedule of an all-gather, a reduce-scatter or an all-reduce.

    Every channel has its share of every part, which goes around its ring in pieces; an all-reduce goes around twice.
    Chunks of the problem cut the pieces once more.
    """
    orders, n = ring_orders(rings), problem.n
    pieces *= problem.demand.chunks
    check_size(problem.collective.passes * n * (n - 1) * len(orders) * pieces)
    ways = as_paths(
        [
            boxes.links(a, b, number, rings.channels[number][0].nic)
            for number, order in enumerate(orders)
            for a, b in zip(order, [*order[1:], order[0]], strict=True)
        ]
    )
    halves: list[StepSchedule] = []
    if problem.collective is not Collective.ALL_GATHER:
        halves.append(_once_around(problem, orders, ways, pieces, reduce=True))
    if problem.collective is not Collective.REDUCE_SCATTER:
        halves.append(_once_around(problem, orders, ways, pieces, reduce=False))
    return halves[0] if len(halves) == 1 else concatenate(*halves)


def _once_around(
    problem: GroupProblem, orders: list[tuple[int, ...]], ways: Paths, pieces: int, *, reduce: bool
) -> StepSchedule:
    """Return a schedule once around each ring.

    In step s, the i-th rank forwards the part of the rank s (reducing: s + 1) places before it.
    """
    n = problem.n
    step, channel, place = (
        column.ravel() for column in np.meshgrid(np.arange(n - 1), np.arange(len(orders)), np.arange(n), indexing="ij")
    )
    ring = np.array(orders, dtype=np.int64)
    part = ring[channel, (place - step - int(reduce)) % n]
    return steps_of(
        problem,
        part,
        channel,
        len(orders),
        ring[channel, place],
        ring[channel, (place + 1) % n],
        step,
        ways.take(channel * n + place),
        reduce=reduce,
        pieces=pieces,
    )


def steps_of(
    problem: GroupProblem,
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
    """Return a schedule in steps of parts that all ranks receive, or that are summed at their owners.

    Sends are of a ``share`` of the ``part`` of a rank, from step 0 on; each of the ``shares`` of a part is cut into
    pieces, which are sent one after the other. With ``reduce`` the receiver adds the data.
    """
    n, cut = problem.n, shares * pieces
    chunk = np.repeat((part * shares + share) * pieces, pieces) + np.tile(np.arange(pieces), len(part))
    ways = ways.take(np.repeat(np.arange(len(part)), pieces))
    ends, everyone = np.repeat(np.arange(n), cut), np.full(n * cut, n)
    held, needed = (everyone, ends) if reduce else (ends, everyone)
    chunks = equal_chunks(problem.ranks, problem.part_bytes / cut, held, needed, reduced=reduce)
    one, other = (np.repeat(problem.nodes[end], pieces) for end in (source, target))
    sends = Sends(chunk, one, other, np.full(len(chunk), reduce), ways.offset, ways.links)
    return StepSchedule(problem.instance.sha256, chunks, sends, np.repeat(step, pieces))


def aggregated_trees(problem: GroupProblem, pieces: int) -> StepSchedule:
    """Make the schedule of an all-gather or a reduce-scatter."""
    n, pieces = problem.n, pieces * problem.demand.chunks
    reduce = problem.collective is Collective.REDUCE_SCATTER
    check_size(n * (n - 1) * pieces)
    depth = (n - 1).bit_length()
    # Distance from the part's rank, how far it is sent on, and step.
    rows = [(far, 1 << k, depth - 1 - k) for k in reversed(range(depth)) for far in range(0, n - (1 << k), 2 << k)]
    far, on, when = np.tile(np.array(rows, dtype=np.int64), (n, 1)).T
    part = np.repeat(np.arange(n), len(rows))
    source = (part + far) % n
    target = (source + on) % n
    if reduce:
        source, target, when = target, source, depth - 1 - when
    order = np.argsort(when, kind="stable")
    part, source, target, when = part[order], source[order], target[order], when[order]
    ways = route(problem.topology, problem.nodes[source], problem.nodes[target])
    none = np.zeros_like(part)
    made = steps_of(problem, part, none, 1, source, target, when, ways, reduce=reduce, pieces=pieces)
    return replace(made, step=made.step - int(made.step.min()))


GROUP = 8  #: Ranks of a group at most.


def peers(sizes: list[int]) -> list[list[tuple[int, int]]]:
    """Return the pairs of positions, box by box, that exchange data in every round; the first are ranks themselves."""
    size = gcd(GROUP if len(sizes) > 1 else sizes[0], *sizes)
    count = sum(sizes) // size
    rounds: list[list[tuple[int, int]]] = []
    power, delta = 1 << (count - 1).bit_length(), 0
    for turn in range(power):
        if delta < count:
            rounds += [
                [
                    (g * size + i, (g + delta) % count * size + (i + place) % size)
                    for g in range(count)
                    for i in range(size)
                ]
                for place in range(size)
            ]
        delta = (delta + turn + 1) & (power - 1)
    return rounds


def in_rounds(problem: GroupProblem, boxes: Boxes, pieces: int) -> StepSchedule:
    """Make the schedule of an all-to-all: one step, whose sends are in the order of the rounds, each in pieces."""
    n, cut = problem.n, pieces * problem.demand.chunks
    check_size(n * (n - 1) * cut)
    ranks = [rank for box in boxes.boxes for rank in box.ranks]
    local = {rank: place for box in boxes.boxes for place, rank in enumerate(box.ranks)}
    near = {
        rank: next((i for i, nic in enumerate(box.nics) if nic.near[0] == rank), local[rank])
        for box in boxes.boxes
        for rank in box.ranks
    }
    pairs = [(ranks[a], ranks[b]) for turn in peers([len(box.ranks) for box in boxes.boxes]) for a, b in turn if a != b]
    ways = as_paths([boxes.links(a, b, local[a], near[b]) for a, b in pairs]).take(
        np.repeat(np.arange(len(pairs)), cut)
    )
    source, target = (np.repeat(np.array(ends, dtype=np.int64), cut) for ends in zip(*pairs, strict=True))
    count, no = len(source), np.zeros(len(source), dtype=bool)
    one, other = problem.nodes[source], problem.nodes[target]
    groups = tuple((rank,) for rank in problem.ranks)
    chunks = Chunks(np.ones(count, dtype=np.int64), problem.part_bytes / cut, groups, source, target, no)
    sends = Sends(np.arange(count), one, other, no, ways.offset, ways.links)
    return StepSchedule(problem.instance.sha256, chunks, sends, np.zeros(count, dtype=np.int64))


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
                found = switches_of(boxes, box.ranks)
                switch = found[channel % len(found)]
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
        tree = Tree(heads[parent.index(-1)])
        done = [parent.index(-1)]
        for above in done:  # grows
            for box, up in enumerate(parent):
                if up == above:
                    a, b = heads[up], heads[box]
                    tree.edges.append((a, b, boxes.links(a, b, channel, nic), boxes.links(b, a, channel, nic)))
                    done.append(box)
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
