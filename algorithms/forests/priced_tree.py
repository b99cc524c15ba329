"""One spanning tree at given prices of links, through switches that only pass on: cheap, or low, or between the two."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

import numpy as np

from ...core.kernel import kernel


@kernel
def path_above(v: int, ends: Any, before: Any, arc_tail: Any, written: int, links: Any) -> tuple[int, int]:
    """Write the links between a node and the one above it in the tree; gives this one, and where they end or -1."""
    length, x = 0, v
    while x == v or not ends[x]:
        x = arc_tail[x]
        length += 1
    if written + length > len(links):
        return x, -1
    place, y = written + length, v
    while y == v or not ends[y]:
        place -= 1
        links[place] = before[y]
        y = arc_tail[y]
    return x, written + length


@kernel
def priced_tree(
    root: int,
    start: Any,
    head: Any,
    link: Any,
    price: Any,
    rise: float,
    ends: Any,
    parent: Any,
    child: Any,
    offset: Any,
    links: Any,
    depth: Any,
) -> int:
    """Grow a tree by always joining the node that is cheapest to reach from any node of the tree.

    A node of the tree at depth d may be left at the cost ``rise d``, so that with a large ``rise`` trees are low and with
    a small one cheap.

    Parameters
    ----------
    root : int
        Where it starts.
    start, head, link : array of int
        Arcs by tail: where those of each node begin, where they lead, and the link of each.
    price : array of float, shape (links,)
        Greater than 0.
    rise : float
        Price of depth.
    ends : array of bool, shape (nodes,)
        Nodes that the tree spans; all others are passed through.
    parent, child, offset, links : array of int
        Where edges and their paths are written to; of ``links`` there must be enough for all paths.
    depth : array of int, shape (nodes,)
        Where the depth of every node that is spanned is written to.

    Returns
    -------
    int
        Edges: fewer than the spanned nodes less one where not all can be reached, -1 where ``links`` is too short.
    """
    nodes = len(start) - 1
    label = np.full(nodes, np.inf)
    before = np.full(nodes, -1, dtype=np.int64)
    arc_tail = np.full(nodes, -1, dtype=np.int64)
    depth[:] = -1
    wanted = 0
    for v in range(nodes):
        if ends[v]:
            wanted += 1
    label[root] = 0.0
    heap = [(0.0, root)]
    count, written = 0, 0
    offset[0] = 0
    while len(heap) > 0:
        cost, v = heappop(heap)
        if cost > label[v]:
            continue
        leaving = cost
        if ends[v]:
            if depth[v] >= 0:
                continue
            if v == root:
                depth[v] = 0
            else:
                x, written = path_above(v, ends, before, arc_tail, written, links)
                if written < 0:
                    return -1
                parent[count], child[count] = x, v
                depth[v] = depth[x] + 1
                count += 1
                offset[count] = written
            if count == wanted - 1:
                break
            leaving = rise * depth[v]
            label[v] = -1.0
        for arc in range(start[v], start[v + 1]):
            y = head[arc]
            there = leaving + price[link[arc]]
            if there < label[y] and not (ends[y] and depth[y] >= 0):
                label[y] = there
                before[y] = link[arc]
                arc_tail[y] = v
                heappush(heap, (there, y))
    return count
