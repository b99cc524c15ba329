"""Spanning trees at given prices of links, through forwarding switches: cheap, low, or in between."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

import numpy as np

from ...core.kernel import kernel


@kernel
def path_above(v: int, ends: Any, before: Any, arc_tail: Any, written: int, links: Any) -> tuple[int, int]:
    """Write the links to ``v`` from the tree node above; return that node and the next free place, or -1."""
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
def priced_tree(root: int, net: Any, price: Any, rise: float, limit: int, tree: Any) -> int:
    """Grow a tree by repeatedly joining the node that is cheapest to reach from the tree.

    Leaving a tree node at depth d costs ``rise d``, so that a large ``rise`` gives low trees and a small one cheap
    trees; at the depth ``limit`` no node may be left. ``net`` are arcs by tail (first arc of each node, head and link
    of each arc), and a mark of nodes to span; all others are passed through. Prices of links are greater than 0.
    ``tree`` is the output: parent and child of every edge, offsets of the edges' paths, their links, and the depth of
    every spanned node. Return the number of edges: less than spanned nodes - 1 if some cannot be reached, -1 if
    ``links`` is too short.
    """
    start, head, link, ends = net
    parent, child, offset, links, depth = tree
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
    roots: Any, rises: Any, limits: Any, prices: Any, orbit: Any, net: Any, links: Any, uses: Any, heights: Any
) -> int:
    """Grow trees, each at its own prices, and count their uses of every orbit of links.

    Each tree has a root, a price of depth (``rises``), a largest height (``limits``) and a row of prices of orbits.
    ``links`` is scratch space for the paths of one tree. Output are the uses, a row per tree, and the heights, -1 for
    trees that do not reach all nodes. Return the number of trees grown: less than all if ``links`` is too short.
    """
    start, ends = net[0], net[3]
    nodes = len(start) - 1
    parent, child = np.empty(nodes, dtype=np.int64), np.empty(nodes, dtype=np.int64)
    offset, depth = np.empty(nodes + 1, dtype=np.int64), np.empty(nodes, dtype=np.int64)
    price = np.empty(len(orbit))
    edges = ends.sum() - 1
    for tree in range(len(roots)):
        for j in range(len(orbit)):
            price[j] = prices[tree, orbit[j]]
        count = priced_tree(roots[tree], net, price, rises[tree], limits[tree], (parent, child, offset, links, depth))
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
