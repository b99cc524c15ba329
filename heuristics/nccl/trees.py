"""NCCL's trees: chains along rings, double binary trees over boxes, stars over switches that add.

An all-reduce of every channel uses two trees over the boxes, in each of which the leaves of the other one are inner
nodes, with half of the channel's data each; within a box a chain begins at the GPU of the channel's NIC. With NVLS
every GPU of a box is the head of a channel, and the switch replaces the chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise

import numpy as np

from ...algorithms.schedules.problem import GroupProblem
from ...core.collective import Collective
from ...core.topology import Topology
from ...core.trees import TreeKind, TreePacking
from ..textbook.trees import two_trees
from .paths import Hops
from .rings import ring_orders
from .search import Rings


@dataclass
class Tree:
    """A tree from its root: edges with their links from parent to child, and back.

    Parameters
    ----------
    root : int
        Position of the rank at the root.
    edges : list of (int, int, tuple of int, tuple of int)
        Parent and child in the packing's numbering, each after the edge that reaches its parent.
    """

    root: int
    edges: list[tuple[int, int, tuple[int, ...], tuple[int, ...]]] = field(default_factory=list)


def along_rings(problem: GroupProblem, rings: Rings, hops: Hops) -> TreePacking:
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
            way = hops.links(b, a, number, nic) if back else hops.links(a, b, number, nic)
            tree.edges.append((a, b, way, way))
        trees.append(tree)
    return _tree_packing(problem, trees, TreeKind.IN if back else TreeKind.OUT)


def double_trees(problem: GroupProblem, rings: Rings, hops: Hops) -> TreePacking:
    """Build the trees of an all-reduce: two over the boxes for every channel, and chains within."""
    trees: list[Tree] = []
    for number, channel in enumerate(rings.channels):
        orders = [box.order for box in channel]
        for tree in _over_boxes([order[0] for order in orders], hops, number, channel[0].nic):
            for order in orders:
                for a, b in pairwise(order):
                    tree.edges.append((a, b, hops.links(a, b, number, 0), hops.links(b, a, number, 0)))
            trees.append(tree)
    return _tree_packing(problem, trees, TreeKind.BOTH)


def over_switches(problem: GroupProblem, hops: Hops) -> TreePacking:
    """Build the trees of NVLS: every GPU heads a channel, and its box's switch replaces the chain.

    An all-reduce over several boxes has two trees for every channel; of one box, the data of a gather or of a
    reduce-scatter are those of the heads.
    """
    boxes, number = hops.boxes, _numbers(problem.topology)
    trees: list[Tree] = []
    for channel in range(min(len(box.ranks) for box in boxes.boxes)):
        heads = [box.ranks[channel] for box in boxes.boxes]
        nic = next((i for i, one in enumerate(boxes.boxes[0].nics) if one.near[0] == heads[0]), channel)
        for tree in _over_boxes(heads, hops, channel, nic):
            for box, head in zip(boxes.boxes, heads, strict=True):
                found = switches_of(hops, box.ranks)
                switch = found[channel % len(found)]
                spokes = {rank: _spoke(boxes.topology, boxes.nodes[rank], switch) for rank in box.ranks}
                to, back = spokes[head]
                tree.edges.append((head, -1 - number[switch], (to,), (back,)))
                for rank in box.ranks:
                    if rank != head:
                        out, into = spokes[rank]
                        tree.edges.append((-1 - number[switch], rank, (into,), (out,)))
            trees.append(tree)
    kinds = {Collective.ALL_GATHER: TreeKind.OUT, Collective.REDUCE_SCATTER: TreeKind.IN}
    return _tree_packing(problem, trees, kinds.get(problem.collective, TreeKind.BOTH))


def switches_of(hops: Hops, ranks: Sequence[int]) -> list[int]:
    """Switches that add and copy, and have a link to and from each of some ranks."""
    topology, nodes = hops.boxes.topology, hops.boxes.nodes
    ends = set(topology.link_ends)
    return [
        index
        for index, node in enumerate(topology.nodes)
        if node.reduces and node.multicast
        if all((nodes[rank], index) in ends and (index, nodes[rank]) in ends for rank in ranks)
    ]


def _over_boxes(heads: Sequence[int], hops: Hops, channel: int, nic: int) -> list[Tree]:
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
                    tree.edges.append((a, b, hops.links(a, b, channel, nic), hops.links(b, a, channel, nic)))
                    done.append(box)
        trees.append(tree)
    return trees


def _numbers(topology: Topology) -> dict[int, int]:
    """Return the packing's numbers of tree nodes."""
    return {node: number for number, node in enumerate(topology.tree_nodes)}


def _spoke(topology: Topology, rank: int, switch: int) -> tuple[int, int]:
    """Return the links from a rank to a switch, and back."""
    ends = topology.link_ends
    return ends.index((rank, switch)), ends.index((switch, rank))


def _tree_packing(problem: GroupProblem, trees: Sequence[Tree], kind: TreeKind) -> TreePacking:
    """Pack trees that share the data evenly; an all-reduce sums and broadcasts over the same ones."""
    unit = problem.demand.size_bytes / len(trees)
    if kind is not TreeKind.BOTH:
        return _one_way(problem, trees, kind, unit)
    outward, inward = (_one_way(problem, trees, way, unit) for way in (TreeKind.OUT, TreeKind.IN))
    return replace(outward, kind=TreeKind.BOTH, reduction=inward)


def _one_way(problem: GroupProblem, trees: Sequence[Tree], kind: TreeKind, unit: Fraction) -> TreePacking:
    """Return the trees with the links of one direction."""
    edges = [edge for tree in trees for edge in tree.edges]
    offset = np.cumsum([0, *(len(tree.edges) for tree in trees)]).astype(np.int64)

    def place(end: int) -> int:
        return problem.ranks[end] if end >= 0 else -1 - end

    ways = [back if kind is TreeKind.IN else forth for _, _, forth, back in edges]
    return TreePacking(
        problem.instance.sha256,
        kind,
        np.array([place(tree.root) for tree in trees], dtype=np.int64),
        np.ones(len(trees), dtype=np.int64),
        unit,
        offset,
        np.array([place(edge[0]) for edge in edges], dtype=np.int64),
        np.array([place(edge[1]) for edge in edges], dtype=np.int64),
        np.cumsum([0, *map(len, ways)]).astype(np.int64),
        np.array([link for way in ways for link in way], dtype=np.int64),
    )
