"""Pricing problem of column generation: cheapest trees, lower bounds on their cost, and bounds from prices.

Trees of any height are priced exactly by Kruskal's algorithm, low ones by a compiled heuristic; a cheapest arborescence
(Chu and Liu, 1965; Edmonds, 1967) bounds the cost of low trees (docs/methods/mtree.md).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np

from ...core.kernel import kernel
from ...core.schedule import Floats, Ints
from .network import HeightLimit, Wan
from .trees import FAR, shortest_paths, spanning_tree

_SCALE = 2**40  #: prices become integers of at most this size, so that sums over a tree are exact


@dataclass(frozen=True, eq=False)
class Prices:
    """Exact prices of carriers, and of a tree times its bottleneck."""

    wan: Wan
    carrier: Ints  #: (carriers,) prices of carriers; w_e of link e is the sum over its carriers
    tree: int  #: price p of a tree times its bottleneck

    @classmethod
    def of(cls, wan: Wan, carrier: Floats, tree: float) -> Self:
        """Round prices of a solver to integers; any nonnegative prices give valid bounds."""
        scale = _SCALE / max(float(carrier.max(initial=0.0)), tree, 1e-300)
        return cls(wan, np.floor(carrier * scale).astype(np.int64), int(tree * scale))

    @cached_property
    def link(self) -> Ints:
        """Price w_e of every link."""
        link: Ints = self.wan.per_link(self.carrier)
        return link

    @cached_property
    def total(self) -> int:
        """Cost of all carriers, ``b.w``."""
        return sum(b * w for b, w in zip(self.wan.room.tolist(), self.carrier.tolist(), strict=True))

    def bound(self, most_trees: int | None, cheapest: Fraction) -> Fraction | None:
        """Return the rate bound ``(b.w + K p) / min_T (w(T) + p / c_T)``, None if unbounded."""
        return (self.total + (most_trees or 0) * self.tree) / cheapest if cheapest > 0 else None

    def bound_with_floor(self, most_trees: int | None, floor: Fraction, cheapest: Fraction) -> Fraction | None:
        """Return the rate bound for at most K trees, of at least the smallest rate; None if unbounded."""
        if cheapest <= 0:
            return None
        limits = [] if most_trees is None else [most_trees]
        if floor and floor * cheapest > self.tree:
            limits.append(int(self.total / (floor * cheapest - self.tree)))
        if self.tree and not limits:
            return None
        return (self.total + min(limits, default=0) * self.tree) / cheapest

    def cost(self, tree: Ints, threshold: int) -> Fraction:
        """Compute the cost ``w(T) + p / c_T`` of a tree."""
        return int(self.link[tree].sum()) + Fraction(self.tree, threshold)


@dataclass(frozen=True, eq=False)
class PricedTree:
    """Tree with the threshold at which it is used, and its cost."""

    tree: Ints  #: numbers of the tree's links
    threshold: int  #: lower bound on the capacities of the tree's links
    cost: Fraction  #: cost of the tree, ``w(T) + p / c_T``


def thresholds(wan: Wan, prices: Prices, floor: int) -> list[int]:
    """List the bottlenecks to try: every capacity if trees have a price, else only the smallest."""
    values = sorted({int(c) for c in wan.capacity if c >= floor})
    return values if prices.tree else values[:1]


def cheapest_trees(wan: Wan, prices: Prices, floor: int) -> Iterator[PricedTree]:
    """Yield the cheapest tree of every bottleneck; the cheapest of these is the cheapest of all."""
    order = np.argsort(prices.link, kind="stable")
    for threshold in thresholds(wan, prices, floor):
        links = spanning_tree(wan, order[wan.capacity[order] >= threshold].tolist())
        if links is None:
            return
        tree = np.array(links, dtype=np.int64)
        yield PricedTree(tree, threshold, prices.cost(tree, threshold))


def cheapest_of(wan: Wan, prices: Prices, trees: Ints, bottleneck: Ints) -> Fraction:
    """Return the least cost of these trees."""
    cost = prices.link[trees].sum(axis=1)
    least = {int(c): int(cost[bottleneck == c].min()) for c in np.unique(bottleneck)}
    return min(w + Fraction(prices.tree, c) for c, w in least.items())


def low_trees(wan: Wan, limit: HeightLimit, prices: Prices, floor: int) -> Iterator[PricedTree]:
    """Yield cheap trees within the height H for every root and bottleneck, not necessarily the cheapest."""
    rows = np.empty((wan.nodes, wan.nodes - 1), dtype=np.int64)
    for threshold in thresholds(wan, prices, floor):
        usable = np.flatnonzero(wan.capacity >= threshold)
        count = cheap_trees((wan.tail, wan.head, limit.length), prices.link, usable, limit.most, wan.nodes, rows)
        if not count:
            return
        for tree in np.unique(np.sort(rows[:count], axis=1), axis=0):
            yield PricedTree(tree, threshold, prices.cost(tree, threshold))


@kernel
def cheap_trees(links: Any, price: Any, usable: Any, most: int, nodes: int, rows: Any) -> int:
    """Write a cheap low tree per root: Prim's, else of shortest paths, then improved; return their number."""
    into, depth = np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    count = 0
    for root in range(nodes):
        spans = grow_tree(root, links, price, usable, most, into, depth, True)
        if spans or grow_tree(root, links, price, usable, most, into, depth, False):
            improve(root, links, price, usable, most, into, depth)
            rows[count, :root], rows[count, root:] = into[:root], into[root + 1 :]
            count += 1
    return count


@kernel
def grow_tree(root: int, links: Any, price: Any, usable: Any, most: int, into: Any, depth: Any, cheap: bool) -> bool:
    """Grow a tree within the height by the cheapest link or nearest site; return True if it spans."""
    tail, head, length = links
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


@kernel
def improve(root: int, links: Any, price: Any, usable: Any, most: int, into: Any, depth: Any) -> None:
    """Move subtrees to cheaper parents as long as the height allows."""
    tail, head, length = links
    below = np.empty(len(into), np.int64)
    for _ in range(4 * len(into)):
        reach_below(root, links, into, depth, below)
        link, target, gain = -1, 0, 0
        for e in usable:
            for u, v in ((tail[e], head[e]), (head[e], tail[e])):
                saved = price[into[v]] - price[e] if v != root else 0
                if saved > gain and depth[u] + length[e] + below[v] <= most and outside(root, u, v, tail, head, into):
                    link, target, gain = e, v, saved
        if link < 0:
            return
        into[target] = link
        depths(root, links, into, depth)


@kernel
def outside(root: int, u: int, v: int, tail: Any, head: Any, into: Any) -> bool:
    """Check that u is not in the subtree of v."""
    while u not in (root, v):
        u = tail[into[u]] + head[into[u]] - u
    return u != v


@kernel
def reach_below(root: int, links: Any, into: Any, depth: Any, below: Any) -> None:
    """Compute the distance from every site to its farthest leaf; links of length 0 need several rounds."""
    tail, head, length = links
    below[:] = 0
    changed = True
    while changed:
        changed = False
        for v in np.argsort(-depth, kind="mergesort"):
            if v != root:
                u = tail[into[v]] + head[into[v]] - v
                if below[v] + length[into[v]] > below[u]:
                    below[u] = below[v] + length[into[v]]
                    changed = True


@kernel
def depths(root: int, links: Any, into: Any, depth: Any) -> None:
    """Compute the distance from the root to every site."""
    tail, head, length = links
    depth[:] = -1
    depth[root] = 0
    incomplete = True
    while incomplete:
        incomplete = False
        for v in range(len(into)):
            if depth[v] < 0:
                u = tail[into[v]] + head[into[v]] - v
                if depth[u] >= 0:
                    depth[v] = depth[u] + length[into[v]]
                else:
                    incomplete = True


class Arborescences:
    """Lower bounds on the cost of low trees over links of capacity at least ``floor``."""

    def __init__(self, wan: Wan, limit: HeightLimit, floor: int) -> None:
        self.wan, self.limit, self.floor = wan, limit, floor
        self.reach: dict[int, Any] = {}

    def least(self, prices: Prices) -> Fraction:
        """Return a lower bound on the cost of low trees over all bottlenecks, 0 if there are none."""
        wan, limit = self.wan, self.limit
        least: list[Fraction] = []
        for threshold in thresholds(wan, prices, self.floor):
            usable = wan.capacity >= threshold
            if threshold not in self.reach:
                self.reach[threshold] = shortest_paths(wan, limit.length, usable).reach
            links = wan.tail[usable], wan.head[usable], limit.length[usable]
            cost = cheapest(self.reach[threshold], links, prices.link[usable], limit.most)
            if cost < 0:
                break  # nor do fewer links hold a low tree
            least.append(int(cost) + Fraction(prices.tree, threshold))
        return min(least, default=Fraction(0))


@kernel
def cheapest(reach: Any, links: Any, price: Any, most: int) -> int:
    """Return the cost of the cheapest arborescence over roots near enough to every site, or -1."""
    tail, head, length = links
    nodes, m = len(reach), len(tail)
    start, end, cost = np.empty((3, 2 * m), np.int64)
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
        total = arborescence(root, nodes, start[:count], end[:count], cost[:count])
        if best < 0 or total < best:
            best = total
    return best


@kernel
def arborescence(root: int, nodes: int, start: Any, end: Any, cost: Any) -> int:
    """Return the cost of the cheapest spanning arborescence from a root, by contraction of cycles; overwrite arcs."""
    total = 0
    while True:
        least, before = np.full(nodes, FAR), np.full(nodes, -1)
        for a in range(len(start)):
            if start[a] != end[a] and cost[a] < least[end[a]]:
                least[end[a]], before[end[a]] = cost[a], start[a]
        least[root] = 0
        merged, visit = np.full(nodes, -1), np.full(nodes, -1)
        count = 0
        for site in range(nodes):
            total += least[site]
            v = site
            while v != root and visit[v] != site and merged[v] < 0:
                visit[v] = site
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
