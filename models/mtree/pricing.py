"""The cheapest trees under prices: exactly by Kruskal's algorithm, or low ones by a compiled heuristic; and what prices prove."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numba
import numpy as np

from ...core.schedule import Floats, Ints
from ..common.wan.bottleneck import spanning_tree
from ..common.wan.network import Limit, Wan

#: Prices become integers of at most this size, so that sums over a tree are exact.
_SCALE = 2**40


@dataclass(frozen=True, eq=False)
class Prices:
    """Exact prices: of links, and of a tree times its bottleneck.

    Parameters
    ----------
    link : array of int, shape (links,)
        w_e.
    tree : int
        p.
    """

    link: Ints
    tree: int

    @classmethod
    def of(cls, link: Floats, tree: float) -> Prices:
        """Round prices of a solver; any prices at least 0 prove something."""
        scale = _SCALE / max(float(link.max(initial=0.0)), tree, 1e-300)
        return cls(np.floor(link * scale).astype(np.int64), int(tree * scale))

    def bound(self, wan: Wan, most_trees: int | None, cheapest: Fraction) -> Fraction | None:
        """Give ``(b.w + K p) / min_T (w(T) + p / c_T)``, which no trees exceed; None if some tree costs nothing."""
        total = sum(b * w for b, w in zip(wan.capacity.tolist(), self.link.tolist(), strict=True))
        return (total + (most_trees or 0) * self.tree) / cheapest if cheapest > 0 else None

    def proves(self, wan: Wan, most_trees: int | None, floor: Fraction, cheapest: Fraction) -> Fraction | None:
        """Give the rate that no trees exceed, of which at most K, or as many as the smallest rate lets fit, are used; None if nothing is proved."""
        if cheapest <= 0:
            return None
        total: int = sum(b * w for b, w in zip(wan.capacity.tolist(), self.link.tolist(), strict=True))
        limits = [] if most_trees is None else [most_trees]
        if floor and floor * cheapest > self.tree:
            limits.append(int(total / (floor * cheapest - self.tree)))
        if self.tree and not limits:
            return None
        return (total + min(limits, default=0) * self.tree) / cheapest

    def cost(self, tree: Ints, threshold: int) -> Fraction:
        """Give ``w(T) + p / c_T``."""
        return int(self.link[tree].sum()) + Fraction(self.tree, threshold)


@dataclass(frozen=True, eq=False)
class Priced:
    """A tree with the threshold at which it is used, and its cost.

    Parameters
    ----------
    tree : array of int
        Links.
    threshold : int
        No link of the tree has a smaller capacity.
    cost : Fraction
        ``w(T) + p / c_T``.
    """

    tree: Ints
    threshold: int
    cost: Fraction


def thresholds(wan: Wan, prices: Prices, floor: int) -> list[int]:
    """Give the bottlenecks to try: every capacity if trees have a price, else the smallest alone."""
    values = sorted({int(c) for c in wan.capacity if c >= floor})
    return values if prices.tree else values[:1]


def cheapest_trees(wan: Wan, prices: Prices, floor: int) -> Iterator[Priced]:
    """Give the cheapest tree of every bottleneck: the cheapest of these is the cheapest of all."""
    order = np.argsort(prices.link, kind="stable")
    for threshold in thresholds(wan, prices, floor):
        found = spanning_tree(wan, order[wan.capacity[order] >= threshold].tolist())
        if found is None:
            return
        tree = np.array(found, dtype=np.int64)
        yield Priced(tree, threshold, prices.cost(tree, threshold))


def cheapest_of(wan: Wan, prices: Prices, trees: Ints, bottleneck: Ints) -> Fraction:
    """Give the least cost of these trees."""
    cost = prices.link[trees].sum(axis=1)
    least = {int(c): int(cost[bottleneck == c].min()) for c in np.unique(bottleneck)}
    return min(w + Fraction(prices.tree, c) for c, w in least.items())


def low_trees(wan: Wan, limit: Limit, prices: Prices, floor: int) -> Iterator[Priced]:
    """Give cheap trees of at most the height H, from every root and for every bottleneck; the cheapest may not be among them."""
    rows = np.empty((wan.nodes, wan.nodes - 1), dtype=np.int64)
    for threshold in thresholds(wan, prices, floor):
        usable = np.flatnonzero(wan.capacity >= threshold)
        count = cheap_trees(wan.tail, wan.head, prices.link, usable, limit.length, limit.most, wan.nodes, rows)
        if not count:
            return
        for tree in np.unique(np.sort(rows[:count], axis=1), axis=0):
            yield Priced(tree, threshold, prices.cost(tree, threshold))


@numba.njit(cache=True)
def cheap_trees(tail: Any, head: Any, price: Any, usable: Any, length: Any, most: int, nodes: int, rows: Any) -> int:
    """Write a cheap tree of at most a height for every root that has one: Prim's algorithm, else shortest paths, then other parents."""
    into, depth = np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    count = 0
    for root in range(nodes):
        if not grown(root, tail, head, price, usable, length, most, into, depth, True) and not grown(
            root, tail, head, price, usable, length, most, into, depth, False
        ):
            continue
        improve(root, tail, head, price, usable, length, most, into, depth)
        size = 0
        for v in range(nodes):
            if v != root:
                rows[count, size] = into[v]
                size += 1
        count += 1
    return count


@numba.njit(cache=True)
def grown(
    root: int, tail: Any, head: Any, price: Any, usable: Any, length: Any, most: int, into: Any, depth: Any, cheap: bool
) -> bool:
    """Grow a tree from its root, always by the cheapest link that is not too far out, or by the nearest site; whether it spans."""
    depth[:] = -1
    into[:] = -1
    depth[root] = 0
    for _ in range(len(depth) - 1):
        best, least, far = -1, 0, 0
        for e in usable:
            a, b = tail[e], head[e]
            if (depth[a] < 0) == (depth[b] < 0):
                continue
            reach = max(depth[a], depth[b]) + length[e]
            cost = price[e] if cheap else reach
            if reach <= most and (best < 0 or cost < least or (cost == least and reach < far)):
                best, least, far = e, cost, reach
        if best < 0:
            return False
        v = tail[best] if depth[tail[best]] < 0 else head[best]
        into[v], depth[v] = best, far
    return True


@numba.njit(cache=True)
def improve(
    root: int, tail: Any, head: Any, price: Any, usable: Any, length: Any, most: int, into: Any, depth: Any
) -> None:
    """Hang subtrees to cheaper parents as long as the height allows."""
    n = len(into)
    below = np.empty(n, np.int64)
    for _ in range(4 * n):
        reach_below(root, tail, head, length, into, depth, below)
        moved, target, gain = -1, 0, 0
        for e in usable:
            for u, v in ((tail[e], head[e]), (head[e], tail[e])):
                saved = price[into[v]] - price[e] if v != root else 0
                if saved > gain and depth[u] + length[e] + below[v] <= most and outside(root, u, v, tail, head, into):
                    moved, target, gain = e, v, saved
        if moved < 0:
            return
        into[target] = moved
        depths(root, tail, head, length, into, depth)


@numba.njit(cache=True)
def outside(root: int, u: int, v: int, tail: Any, head: Any, into: Any) -> bool:
    """Whether u is not in the subtree of v."""
    while u not in (root, v):
        u = tail[into[u]] + head[into[u]] - u
    return u != v


@numba.njit(cache=True)
def reach_below(root: int, tail: Any, head: Any, length: Any, into: Any, depth: Any, below: Any) -> None:
    """Write the length from every site to the farthest leaf of its subtree; links without length make equal depths, so rounds are repeated."""
    below[:] = 0
    changed = True
    while changed:
        changed = False
        for v in np.argsort(-depth):
            if v != root:
                u = tail[into[v]] + head[into[v]] - v
                if below[v] + length[into[v]] > below[u]:
                    below[u] = below[v] + length[into[v]]
                    changed = True


@numba.njit(cache=True)
def depths(root: int, tail: Any, head: Any, length: Any, into: Any, depth: Any) -> None:
    """Write the length from the root to every site."""
    depth[:] = -1
    depth[root] = 0
    left = True
    while left:
        left = False
        for v in range(len(into)):
            if depth[v] < 0:
                u = tail[into[v]] + head[into[v]] - v
                if depth[u] >= 0:
                    depth[v] = depth[u] + length[into[v]]
                else:
                    left = True
