"""What low trees cost at least: the cheapest arborescence of arcs that a low tree can have.

In a tree whose root r is at most H away from every site, an arc (u, v) ends at most H away: ``d_r(u) + L_uv <= H``, where d_r is the shortest
distance over all links. So no such tree is cheaper than the cheapest arborescence from r over these arcs (Chu and Liu, 1965; Edmonds, 1967), which is
found exactly. The arborescence may be too high; where it is not cheaper than the trees that are known, these are proved the cheapest.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numba
import numpy as np

from ..common.wan.kernels import FAR
from ..common.wan.network import Limit, Wan
from ..common.wan.ways import shortest_ways
from .pricing import Prices, thresholds


class Arborescences:
    """Bounds on the cost of low trees.

    Parameters
    ----------
    wan, limit
        The network, and the height of the trees.
    floor : int
        Smallest capacity of a link that is used, in units.
    """

    def __init__(self, wan: Wan, limit: Limit, floor: int) -> None:
        self.wan, self.limit, self.floor = wan, limit, floor
        self.reach: dict[int, Any] = {}

    def least(self, prices: Prices) -> Fraction:
        """Give a number that no low tree costs less than: of every bottleneck that counts, its cheapest arborescence.

        Parameters
        ----------
        prices : Prices
            Of links, and of trees.
        """
        wan, limit = self.wan, self.limit
        least: Fraction | None = None
        for threshold in thresholds(wan, prices, self.floor):
            usable = wan.capacity >= threshold
            if threshold not in self.reach:
                self.reach[threshold] = shortest_ways(wan, limit.length, usable).reach
            links = np.flatnonzero(usable)
            cost = cheapest(
                self.reach[threshold],
                wan.tail[links],
                wan.head[links],
                prices.link[links],
                limit.length[links],
                limit.most,
            )
            if cost < 0:
                break  # nor do fewer links hold a low tree
            one = int(cost) + Fraction(prices.tree, threshold)
            least = one if least is None else min(least, one)
        return Fraction(0) if least is None else least


@numba.njit(cache=True)
def cheapest(reach: Any, tail: Any, head: Any, price: Any, length: Any, most: int) -> int:
    """Give the cost of the cheapest arborescence over all roots from which every site is near enough; -1 if there is no such root."""
    nodes, m = len(reach), len(tail)
    start, end, cost = np.empty(2 * m, np.int64), np.empty(2 * m, np.int64), np.empty(2 * m, np.int64)
    best = -1
    for root in range(nodes):
        far = reach[root]
        if far.min() < 0 or far.max() > most:
            continue
        count = 0
        for e in range(m):
            for u, v in ((tail[e], head[e]), (head[e], tail[e])):
                if v != root and far[u] + length[e] <= most:
                    start[count], end[count], cost[count] = u, v, price[e]
                    count += 1
        found = arborescence(root, nodes, start[:count], end[:count], cost[:count])
        if best < 0 or found < best:
            best = found
    return best


@numba.njit(cache=True)
def arborescence(root: int, nodes: int, start: Any, end: Any, cost: Any) -> int:
    """Give the cost of the cheapest arborescence from a root that reaches all; arcs are overwritten.

    Every site takes its cheapest arc; a cycle of these becomes one site, into which an arc costs what it costs more than the one it replaces.
    """
    total = 0
    while True:
        least, before = np.full(nodes, FAR), np.full(nodes, -1)
        for a in range(len(start)):
            if start[a] != end[a] and cost[a] < least[end[a]]:
                least[end[a]], before[end[a]] = cost[a], start[a]
        least[root] = 0
        merged, seen = np.full(nodes, -1), np.full(nodes, -1)
        count = 0
        for site in range(nodes):
            total += least[site]
            v = site
            while v != root and seen[v] != site and merged[v] < 0:
                seen[v] = site
                v = before[v]
            if v != root and merged[v] < 0:  # a cycle
                while merged[v] < 0:
                    merged[v] = count
                    v = before[v]
                count += 1
        if count == 0:
            return total
        for site in range(nodes):
            if merged[site] < 0:
                merged[site] = count
                count += 1
        for a in range(len(start)):
            cost[a] -= least[end[a]] if merged[start[a]] != merged[end[a]] else 0
            start[a], end[a] = merged[start[a]], merged[end[a]]
        nodes, root = count, merged[root]
