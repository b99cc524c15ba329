"""One tree, exactly: the largest capacity c such that the links of at least c hold a spanning tree that is low enough; and the lowest tree of all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...core.schedule import Bools, Ints
from .network import Limit, Wan


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
    """Give the radius of the network of some links, and the tree of shortest paths from a centre; None if they do not join all sites."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    order = [e for e in np.argsort(-limit.length, kind="stable").tolist() if usable[e]]
    shortest = {(int(wan.tail[e]), int(wan.head[e])): e for e in order}  # of parallel links the last one, the shortest
    if not shortest:
        return 0, None
    a, b = np.array(list(shortest), dtype=np.int64).T
    # A link without latency must not be taken for none: all lengths are one more than n times what they are, which keeps their order.
    weight = (limit.length[list(shortest.values())] * wan.nodes + 1).astype(np.float64)
    graph = csr_array((weight, (a, b)), shape=(wan.nodes, wan.nodes))
    far, before = dijkstra(graph, directed=False, return_predecessors=True)
    reach = np.max(far, axis=1)
    root = int(reach.argmin())
    if np.isinf(reach[root]):
        return 0, None
    tree = [_between(shortest, int(before[root, site]), site) for site in range(wan.nodes) if site != root]
    return int(reach[root]) // wan.nodes, np.array(sorted(tree), dtype=np.int64)


def _between(links: dict[tuple[int, int], int], one: int, other: int) -> int:
    return links[one, other] if (one, other) in links else links[other, one]


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
