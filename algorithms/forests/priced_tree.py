"""Spanning trees at given prices of links, through switches that only pass on: cheap, or low, or between the two."""

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
    limit: int,
    ends: Any,
    parent: Any,
    child: Any,
    offset: Any,
    links: Any,
    depth: Any,
) -> int:
    """Grow a tree by always joining the node that is cheapest to reach from any node of the tree.

    A node of the tree at depth d may be left at the cost ``rise d``, so that with a large ``rise`` trees are low and with
    a small one cheap; at the depth ``limit`` none may be left.

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
    limit : int
        Depth at which nothing is joined any more.
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
            depth[v] = 0
            if v != root:
                x, written = path_above(v, ends, before, arc_tail, written, links)
                if written < 0:
                    return -1
                parent[count], child[count] = x, v
                depth[v] = depth[x] + 1
                count += 1
                offset[count] = written
            if count == wanted - 1:
                break
            label[v] = -1.0
            if depth[v] >= limit:
                continue
            leaving = rise * depth[v]
        for arc in range(start[v], start[v + 1]):
            y = head[arc]
            there = leaving + price[link[arc]]
            if there < label[y] and not (ends[y] and depth[y] >= 0):
                label[y] = there
                before[y] = link[arc]
                arc_tail[y] = v
                heappush(heap, (there, y))
    return count


@kernel
def priced_uses(
    roots: Any,
    rises: Any,
    limits: Any,
    prices: Any,
    orbit: Any,
    start: Any,
    head: Any,
    link: Any,
    ends: Any,
    links: Any,
    uses: Any,
    heights: Any,
) -> int:
    """Grow trees, each at prices of its own, and count what they use of every orbit of links.

    Parameters
    ----------
    roots, rises, limits : array, shape (trees,)
        Where each tree starts, its price of depth, and how high it may be.
    prices : array of float, shape (trees, orbits)
        Greater than 0.
    orbit : array of int, shape (links,)
        Orbit of every link.
    start, head, link, ends
        The network, as :func:`priced_tree` takes it.
    links : array of int
        Room for the paths of one tree.
    uses : array of int, shape (trees, orbits)
        Where the uses are written to.
    heights : array of int, shape (trees,)
        Where the heights are written to, -1 for trees that do not reach all.

    Returns
    -------
    int
        Trees that were grown: fewer than all where ``links`` is too short.
    """
    nodes = len(start) - 1
    parent, child = np.empty(nodes, dtype=np.int64), np.empty(nodes, dtype=np.int64)
    offset, depth = np.empty(nodes + 1, dtype=np.int64), np.empty(nodes, dtype=np.int64)
    price = np.empty(len(orbit))
    edges = ends.sum() - 1
    for tree in range(len(roots)):
        for j in range(len(orbit)):
            price[j] = prices[tree, orbit[j]]
        count = priced_tree(
            roots[tree], start, head, link, price, rises[tree], limits[tree], ends, parent, child, offset, links, depth
        )
        if count < 0:
            return tree
        if count < edges:
            heights[tree] = -1
            continue
        uses[tree, :] = 0
        for place in range(offset[count]):
            uses[tree, orbit[links[place]]] += 1
        heights[tree] = depth.max()
    return len(roots)
