"""One tree, exactly: the largest capacity c such that the links of at least c hold a spanning tree that is low enough; and the lowest tree of all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....core.schedule import Bools, Ints
from .network import Limit, Wan
from .ways import shortest_ways


def widest_tree(wan: Wan, limit: Limit) -> tuple[int, Ints] | None:
    """Give the largest bottleneck of a tree of at most the height H, and such a tree; None if no tree is low enough.

    Shortest paths from a root make the lowest tree, so a threshold will do if some site is near enough to all others: tried by bisection.
    """
    values = np.unique(wan.capacity)
    best: Ints | None = None
    low, high = 0, len(values) - 1
    while low <= high:
        middle = (low + high) // 2
        tree = low_tree(wan, limit, wan.capacity >= values[middle])
        if tree is None:
            high = middle - 1
        else:
            best, low = tree, middle + 1
    return None if best is None else (int(wan.capacity[best].min()), best)


def low_tree(wan: Wan, limit: Limit, usable: Bools) -> Ints | None:
    """Give the lowest spanning tree of some links, if it is low enough."""
    height, tree = lowest_tree(wan, limit, usable)
    return tree if tree is not None and height <= limit.most else None


def lowest_tree(wan: Wan, limit: Limit, usable: Bools) -> tuple[int, Ints | None]:
    """Give the radius of the network of some links, and the tree of shortest ways from a centre; None if they do not join all sites."""
    ways = shortest_ways(wan, limit.length, usable)
    if (ways.reach < 0).any():
        return 0, None
    reach = ways.reach.max(axis=1)
    root = int(reach.argmin())
    tree = [ways.link(int(ways.before[root, site]), site) for site in range(wan.nodes) if site != root]
    return int(reach[root]), np.array(sorted(tree), dtype=np.int64)


def spanning_tree(wan: Wan, order: Sequence[int]) -> list[int] | None:
    """Give the spanning tree that takes links in this order (Kruskal); None if they do not join all sites."""
    group = list(range(wan.nodes))
    tail, head = wan.tail.tolist(), wan.head.tolist()
    tree: list[int] = []

    def find(v: int) -> int:
        while group[v] != v:
            group[v] = group[group[v]]
            v = group[v]
        return v

    for e in order:
        a, b = find(tail[e]), find(head[e])
        if a != b:
            group[a] = b
            tree.append(e)
            if len(tree) == wan.nodes - 1:
                return sorted(tree)
    return None
