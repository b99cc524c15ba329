"""Trees level by level, and as sends."""

from collections.abc import Iterator
from typing import TypeVar

import numpy as np

from ..core.schedule import Floats, Ints, Sends, offsets, ranges
from ..core.topology import Topology
from ..core.trees import TreeKind, TreePacking

Numbers = TypeVar("Numbers", Ints, Floats)

AT_ONCE = 2**22  #: Trees times ranks that are looked at together.


def blocks(packing: TreePacking, ranks: int) -> Iterator[tuple[int, int]]:
    """Yield blocks of trees (first, end) whose trees-by-ranks tables fit into little memory."""
    size = max(AT_ONCE // max(ranks, 1), 1)
    for begin in range(0, len(packing), size):
        yield begin, min(begin + size, len(packing))


def first_reached(packing: TreePacking, begin: int, end: int, ranks: int) -> Ints:
    """Return the first edge to each rank in each tree: -1 for the root, the edge count if unreached."""
    first, last = int(packing.edge_offset[begin]), int(packing.edge_offset[end])
    tree = np.repeat(np.arange(end - begin), np.diff(packing.edge_offset[begin : end + 1]))
    edge = np.full((end - begin, ranks), len(packing.child), dtype=np.int64)
    edge[tree[::-1], packing.child[first:last][::-1]] = np.arange(first, last)[::-1]
    edge[np.arange(end - begin), packing.root[begin:end]] = -1
    return edge


def edges_above(packing: TreePacking) -> Ints:
    """Return the edge that reaches each edge's parent; -1 at the root or without an earlier one."""
    above = np.empty(len(packing.parent), dtype=np.int64)
    ranks = 1 + int(max(column.max(initial=0) for column in (packing.root, packing.parent, packing.child)))
    for begin, end in blocks(packing, ranks):
        part = slice(int(packing.edge_offset[begin]), int(packing.edge_offset[end]))
        tree = np.repeat(np.arange(end - begin), np.diff(packing.edge_offset[begin : end + 1]))
        above[part] = first_reached(packing, begin, end, ranks)[tree, packing.parent[part]]
    return np.where(above < np.arange(len(above)), above, -1)


def levels(above: Ints) -> Iterator[Ints]:
    """Yield the edges level by level, those at the roots first."""
    order = np.argsort(above, kind="stable")
    ends = np.searchsorted(above[order], np.arange(-1, len(above)), side="right")
    level = order[: ends[0]]
    while len(level):
        yield level
        level = order[ranges(ends[level], ends[level + 1] - ends[level])]


def edge_depths(packing: TreePacking) -> Ints:
    """Return the number of edges between each edge and the root of its tree."""
    above = edges_above(packing)
    depth = np.zeros(len(above), dtype=np.int64)
    for number, level in enumerate(levels(above)):
        depth[level] = number
    return depth


def from_root(above: Ints, adds: Numbers) -> tuple[Ints, Numbers]:
    """Return the number of edges from the root to the end of each edge, and the sums of their values."""
    count, total = np.ones(len(above), dtype=np.int64), adds.copy()
    for number, level in enumerate(levels(above), start=1):
        count[level] = number
        if number > 1:
            total[level] += total[above[level]]
    return count, total


def tree_sends(topology: Topology | None, packing: TreePacking, pieces: int | Ints) -> tuple[Sends, Floats, Ints]:
    """Cut the data of every tree into equal pieces, and send each piece along the tree.

    Without a topology nodes are ranks. The sends are piece by piece, and for each piece the edges in the order of the
    packing; for in-out trees first all reductions. Chunk ``p * trees + t`` is piece p of tree t, if it has so many.
    Also return the size of every chunk in bytes, and the level of every send: its depth in an out-tree, counted from
    the deepest edge in an in-tree.
    """
    numbers = range(1 + max(int(part.child.max(initial=part.root.max(initial=-1))) for part in packing.passes))
    node = np.array(numbers if topology is None else topology.tree_nodes, dtype=np.int64)
    parts, levels, above = [], [], 0
    for part in packing.passes:
        depth = edge_depths(part)
        below = int(depth.max(initial=-1)) + 1
        inward = part.kind is TreeKind.IN
        parent, child = node[part.parent], node[part.child]
        adds, ends = np.full(len(parent), inward), (child, parent) if inward else (parent, child)
        parts.append(Sends(part.edge_tree, *ends, adds, part.path_offset, part.path_links))
        levels.append(above + (below - 1 - depth if inward else depth))
        above += below
    whole = np.asarray(packing.units * float(packing.unit_bytes), dtype=np.float64)
    number = np.broadcast_to(np.asarray(pieces, dtype=np.int64), len(packing))
    most = int(number.max(initial=1))
    rows = ((part.chunk, part.source, part.target, part.reduce, part.hops, part.path_links) for part in parts)
    chunk, *columns = map(np.concatenate, zip(*rows, strict=True))  # of the first piece
    chunk = (chunk + np.arange(most)[:, None] * len(packing)).ravel()
    source, target, reduce, hops, links = (np.tile(column, most) for column in columns)
    sends, level = Sends(chunk, source, target, reduce > 0, offsets(hops), links), np.tile(np.concatenate(levels), most)
    if (number < most).any():
        present = sends.chunk // len(packing) < number[sends.chunk % len(packing)]
        sends, level = sends.take(present), level[present]
    return sends, np.tile(whole / number, most), level
