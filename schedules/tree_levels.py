"""Where the edges of trees hang: the edge above each, and sums along the way from the root, level by level."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..core.ragged import ranges
from ..core.schedule import Floats, Ints
from ..core.trees import TreePacking

#: Trees times ranks that are looked at together.
AT_ONCE = 2**22


def blocks(packing: TreePacking, ranks: int) -> Iterator[tuple[int, int]]:
    """Cut the trees into blocks, first and end, whose tables of trees times ranks fit into little memory."""
    size = max(AT_ONCE // max(ranks, 1), 1)
    for begin in range(0, len(packing), size):
        yield begin, min(begin + size, len(packing))


def first_reached(packing: TreePacking, begin: int, end: int, ranks: int) -> Ints:
    """For each tree of a block and each rank, the edge that first reaches it.

    Returns
    -------
    array of int, shape (end - begin, ranks)
        -1 for the root, and the number of all edges for ranks that are not reached.
    """
    first, last = int(packing.edge_offset[begin]), int(packing.edge_offset[end])
    tree = np.repeat(np.arange(end - begin), np.diff(packing.edge_offset[begin : end + 1]))
    edge = np.full((end - begin, ranks), len(packing.child), dtype=np.int64)
    edge[tree[::-1], packing.child[first:last][::-1]] = np.arange(first, last)[::-1]
    edge[np.arange(end - begin), packing.root[begin:end]] = -1
    return edge


def edges_above(packing: TreePacking) -> Ints:
    """For each edge, the one that reaches its parent; -1 at the root, and where no earlier edge does."""
    above = np.empty(len(packing.parent), dtype=np.int64)
    ranks = 1 + int(max(column.max(initial=0) for column in (packing.root, packing.parent, packing.child)))
    for begin, end in blocks(packing, ranks):
        part = slice(int(packing.edge_offset[begin]), int(packing.edge_offset[end]))
        tree = np.repeat(np.arange(end - begin), np.diff(packing.edge_offset[begin : end + 1]))
        above[part] = first_reached(packing, begin, end, ranks)[tree, packing.parent[part]]
    return np.where(above < np.arange(len(above)), above, -1)


def levels(above: Ints) -> Iterator[Ints]:
    """Edges level by level, those at the roots first."""
    order = np.argsort(above, kind="stable")
    ends = np.searchsorted(above[order], np.arange(-1, len(above)), side="right")
    level = order[: ends[0]]
    while len(level):
        yield level
        level = order[ranges(ends[level], ends[level + 1] - ends[level])]


def edge_depths(packing: TreePacking) -> Ints:
    """Number of edges between each edge and the root of its tree."""
    above = edges_above(packing)
    depth = np.zeros(len(above), dtype=np.int64)
    for number, level in enumerate(levels(above)):
        depth[level] = number
    return depth


def from_root(above: Ints, adds: Floats) -> tuple[Ints, Floats]:
    """Add up along the way from the root.

    Parameters
    ----------
    above : array of int, shape (edges,)
        The edge above each, see :func:`edges_above`.
    adds : array of float, shape (edges,) or (edges, quantities)
        What every edge adds.

    Returns
    -------
    array of int, array of float
        Number of edges from the root to the end of each edge, and the sums of what they add.
    """
    count, total = np.ones(len(above), dtype=np.int64), adds.copy()
    for number, level in enumerate(levels(above), start=1):
        count[level] = number
        if number > 1:
            total[level] += total[above[level]]
    return count, total
