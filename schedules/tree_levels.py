"""Parent edges of trees, and sums along the path from the root, level by level."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..core.ragged import ranges
from ..core.schedule import Floats, Ints
from ..core.trees import TreePacking

#: Trees times ranks that are looked at together.
AT_ONCE = 2**22


def blocks(packing: TreePacking, ranks: int) -> Iterator[tuple[int, int]]:
    """Yield blocks of trees (first, end) whose trees-by-ranks tables fit into little memory."""
    size = max(AT_ONCE // max(ranks, 1), 1)
    for begin in range(0, len(packing), size):
        yield begin, min(begin + size, len(packing))


def first_reached(packing: TreePacking, begin: int, end: int, ranks: int) -> Ints:
    """Return, for each tree of a block and each rank, the edge that first reaches it.

    Returns
    -------
    array of int, shape (end - begin, ranks)
        -1 for the root, and the total number of edges for unreached ranks.
    """
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


def from_root(above: Ints, adds: Floats) -> tuple[Ints, Floats]:
    """Sum values along the path from the root.

    Parameters
    ----------
    above : array of int, shape (edges,)
        Parent edge of each edge, see :func:`edges_above`.
    adds : array of float, shape (edges,) or (edges, quantities)
        Value or values of every edge.

    Returns
    -------
    array of int, array of float
        Number of edges from the root to the end of each edge, and the sums.
    """
    count, total = np.ones(len(above), dtype=np.int64), adds.copy()
    for number, level in enumerate(levels(above), start=1):
        count[level] = number
        if number > 1:
            total[level] += total[above[level]]
    return count, total
