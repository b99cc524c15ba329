"""Exact single trees: shortest paths, widest tree of a height, lowest tree, minimum spanning tree.

The widest tree has the largest capacity c such that the links of at least c contain a low enough spanning tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...core.schedule import Bools, Ints
from ..graphs.distances import least_lengths
from ..graphs.distances import shortest_paths as paths_between
from .network import HeightLimit, Wan


@dataclass(frozen=True, eq=False)
class ShortestPaths:
    """Shortest paths between sites over some links, with the fewest links among equals."""

    reach: Ints  #: (sites, sites) length of the path from one site to another, -1 without a path
    before: Ints  #: (sites, sites) the last site before the second one on the path from the first
    links: dict[tuple[int, int], int]  #: the shortest of parallel links, by its two sites

    def link(self, one: int, other: int) -> int:
        """Return the shortest link between two neighbours."""
        return self.links[one, other] if (one, other) in self.links else self.links[other, one]

    def sites(self, start: int, end: int) -> list[int]:
        """List the sites on the path from one to another."""
        back = [end]
        while back[-1] != start:
            back.append(int(self.before[start, back[-1]]))
        return back[::-1]


def shortest_paths(wan: Wan, length: Ints, usable: Bools | None = None) -> ShortestPaths:
    """Compute shortest paths between all sites over usable links, by default all, by Dijkstra's algorithm."""
    order = [e for e in np.argsort(-length, kind="stable").tolist() if usable is None or usable[e]]
    # Of parallel links the last one in this order, the shortest.
    links = {(int(wan.tail[e]), int(wan.head[e])): e for e in order}
    tail, head = np.array(list(links), dtype=np.int64).reshape(-1, 2).T
    reach, before = paths_between(wan.nodes, tail, head, length[list(links.values())])
    return ShortestPaths(reach, before, links)


def widest_tree(wan: Wan, limit: HeightLimit) -> tuple[int, Ints] | None:
    """Return the largest bottleneck of a tree within the height H, and such a tree.

    None if no tree is low enough. Shortest paths from a root form the lowest tree, so a threshold is feasible if
    some site is near enough to all others; thresholds are tried by bisection.
    """
    values = np.unique(wan.capacity)
    best: Ints | None = None
    low, high = 0, len(values) - 1
    while low <= high:
        middle = (low + high) // 2
        height, tree = lowest_tree(wan, limit, wan.capacity >= values[middle])
        if tree is None or height > limit.most:
            high = middle - 1
        else:
            best, low = tree, middle + 1
    return None if best is None else (int(wan.capacity[best].min()), best)


def lowest_tree(wan: Wan, limit: HeightLimit, usable: Bools) -> tuple[int, Ints | None]:
    """Return the radius over some links, and a shortest-path tree of this height; None if disconnected."""
    paths = shortest_paths(wan, limit.length, usable)
    if (paths.reach < 0).any():
        return 0, None
    reach = paths.reach.max(axis=1)
    root = int(reach.argmin())
    tree = [paths.link(int(paths.before[root, site]), site) for site in range(wan.nodes) if site != root]
    return int(reach[root]), np.array(sorted(tree), dtype=np.int64)


def spanning_tree(wan: Wan, order: Sequence[int]) -> list[int] | None:
    """Return the first spanning tree in this order of links (Kruskal); None if there is none."""
    from scipy.sparse.csgraph import minimum_spanning_tree

    links = np.array(order, dtype=np.int64)
    places = np.arange(1, len(links) + 1)
    tree = minimum_spanning_tree(least_lengths(wan.nodes, wan.tail[links], wan.head[links], places))
    return sorted(links[tree.data.astype(np.int64) - 1].tolist()) if tree.nnz == wan.nodes - 1 else None
