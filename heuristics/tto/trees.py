"""Three spanning trees of a mesh such that no two neighbours are joined by more than two of them.

With rows i, columns j and a column c that is not at an edge of the mesh:

* the first tree has all rows, joined along column c;
* the second one has all columns, joined along the first row to the left of column c, along the last row to the right
  of it;
* the third one is what both together leave once: no edges of column c, and not those along which the columns are
  joined.

The third graph is connected: every inner row is whole, and the other ranks hang on these by their column, those of
column c by their row, in the first row to the right and in the last row to the left. The third tree is the shallowest
one in it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...algorithms.schedules.pipelined_trees import TreeEdge
from ...core.topology import Topology

#: Sides from which on there are three trees.
SMALLEST = 3

Pair = tuple[int, int]


def mesh_sides(topology: Topology) -> tuple[int, int] | None:
    """Return rows and columns of a mesh numbered row by row; None for other networks."""
    nodes = len(topology.nodes)
    links = set(topology.link_ends)
    if topology.switches or len(links) != len(topology.links):
        return None
    for rows in range(1, nodes + 1):
        if nodes % rows == 0 and 2 * (2 * nodes - rows - nodes // rows) == len(links):
            pairs = _rows(rows, nodes // rows) | _columns(rows, nodes // rows)
            if links == pairs | {(b, a) for a, b in pairs}:
                return rows, nodes // rows
    return None


def three_trees(topology: Topology, rows: int, columns: int, *, edge_roots: bool) -> list[list[TreeEdge]]:
    """Return the edges of the trees, those of a parent before those of its children.

    Parameters
    ----------
    topology : Topology
        A mesh with nodes numbered row by row.
    edge_roots : bool
        Whether the roots are at the edge of the mesh; otherwise anywhere. The root gives a tree of least height.
    """
    middle = columns // 2
    across, along = _rows(rows, columns), _columns(rows, columns)
    spine = {(a, b) for a, b in along if a % columns == middle}
    last = (rows - 1) * columns
    hem = {(a, b) for a, b in across if (b < columns and b <= middle) or (a >= last and a - last >= middle)}
    link = {ends: index for index, ends in enumerate(topology.link_ends)}
    trees = []
    for pairs in (across | spine, along | hem, (across | along) - spine - hem):
        near = _neighbours(pairs, rows * columns)
        starts = [n for n in range(rows * columns) if not edge_roots or _at_edge(n, rows, columns)]
        levels = min((_levels(near, root) for root in starts), key=len)
        edges = [edge for level in levels for edge in level]
        trees.append([TreeEdge(n, up, (link[n, up],), (link[up, n],)) for n, up in edges])
    return trees


def _rows(rows: int, columns: int) -> set[Pair]:
    """List the neighbours in a row."""
    return {(n, n + 1) for n in range(rows * columns) if (n + 1) % columns}


def _columns(rows: int, columns: int) -> set[Pair]:
    """List the neighbours in a column."""
    return {(n, n + columns) for n in range((rows - 1) * columns)}


def _at_edge(node: int, rows: int, columns: int) -> bool:
    row, column = divmod(node, columns)
    return row in (0, rows - 1) or column in (0, columns - 1)


def _neighbours(pairs: set[Pair], nodes: int) -> list[list[int]]:
    near: list[list[int]] = [[] for _ in range(nodes)]
    for a, b in sorted(pairs):
        near[a].append(b)
        near[b].append(a)
    return near


def _levels(near: Sequence[Sequence[int]], root: int) -> list[list[Pair]]:
    """List the nodes of a breadth-first tree with their parents, level by level below the root."""
    known, frontier = {root}, [root]
    levels: list[list[Pair]] = []
    while frontier:
        level: list[Pair] = []
        for up in frontier:
            for n in near[up]:
                if n not in known:
                    known.add(n)
                    level.append((n, up))
        if level:
            levels.append(level)
        frontier = [n for n, _ in level]
    return levels
