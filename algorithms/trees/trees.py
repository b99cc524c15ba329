"""Trees as rows of links: exact single trees, heights and roots, exact rates, the resulting packing, its measures.

A tree is its n - 1 links; link e joins ``tail[e]`` and ``head[e]``. Heights are computed by compiled loops. The widest
tree has the largest capacity c such that the links of at least c contain a low enough spanning tree.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np

from ...core.instance import Instance
from ...core.kernel import kernel
from ...core.schedule import Bools, Floats, Ints
from ...core.trees import TreeKind, TreePacking
from ..graphs.distances import least_lengths
from ..graphs.distances import shortest_paths as paths_between
from .bounds import Ceiling
from .network import HeightLimit, Wan

FAR = np.int64(2**62)


@kernel
def draw(state: Any, limit: int) -> int:
    """Draw a number from 0 to ``limit - 1`` (SplitMix64)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return int((z ^ (z >> np.uint64(31))) >> np.uint64(33)) % limit


@kernel
def tree_distances(start: int, links: Any, tail: Any, head: Any, length: Any, far: Any, hop: Any) -> None:
    """Compute lengths and hops from a site to all others along a tree; ``links`` are in any order."""
    far[:] = -1
    far[start], hop[start] = 0, 0
    grows = True
    while grows:
        grows = False
        for e in links:
            a, b = tail[e], head[e]
            if far[a] < 0 <= far[b]:
                a, b = b, a
            if far[b] < 0 <= far[a]:
                far[b], hop[b], grows = far[a] + length[e], hop[a] + 1, True


@kernel
def centre(links: Any, tail: Any, head: Any, length: Any, nodes: int) -> Any:
    """Return the root that makes a tree lowest, the first of several, and the height."""
    far, hop = np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    best, height = np.int64(0), FAR
    for start in range(nodes):
        tree_distances(start, links, tail, head, length, far, hop)
        if far.max() < height:
            best, height = np.int64(start), far.max()
    return best, height


@kernel
def centres(trees: Any, tail: Any, head: Any, length: Any, nodes: int, roots: Any, heights: Any) -> None:
    """Compute the best root and the height of every tree."""
    for i in range(len(trees)):
        roots[i], heights[i] = centre(trees[i], tail, head, length, nodes)


_FINE = 2**31  #: rates that are not simple fractions are cut to this part of the largest capacity
_SIMPLE = 360  #: denominators that a vertex of a small linear program may have


@dataclass(frozen=True, eq=False)
class RatedTrees:
    """Trees with exact rates."""

    trees: Ints  #: (trees, sites - 1) links of every tree, in any order
    rates: tuple[Fraction, ...]  #: rate of every tree, greater than 0, in units of capacity

    @property
    def total(self) -> Fraction:
        """Sum of all rates."""
        return sum(self.rates, Fraction(0))


def distinct(trees: Ints) -> Ints:
    """Sort the links of every tree, and drop duplicates, keeping the first of each."""
    rows = np.sort(trees, axis=1)
    _, first = np.unique(rows, axis=0, return_index=True)
    return rows[np.sort(first)]


def bottlenecks(wan: Wan, trees: Ints) -> Ints:
    """Return ``c_i``, the smallest capacity of each tree's links."""
    least: Ints = wan.capacity[trees].min(axis=1, initial=np.iinfo(np.int64).max)
    return least


def within_reach(wan: Wan, trees: Ints) -> Wan:
    """Reduce capacities to what all trees together could use, which keeps numbers small."""
    most = sum(bottlenecks(wan, trees).tolist())
    return wan if most >= wan.room.max(initial=0) else replace(wan, room=np.minimum(wan.room, most))


def heights_of(wan: Wan, limit: HeightLimit, trees: Ints) -> tuple[Ints, Ints]:
    """Return the best root of every tree, and its height from there."""
    roots, heights = (np.zeros(len(trees), dtype=np.int64) for _ in range(2))
    centres(trees, wan.tail, wan.head, limit.length, wan.nodes, roots, heights)
    return roots, heights


def heights_from(wan: Wan, length: Ints, trees: Ints, roots: Sequence[int]) -> tuple[Ints, Ints]:
    """Return the height of every tree from its root, as a sum of lengths and in hops."""
    far, hop = (np.empty(wan.nodes, np.int64) for _ in range(2))
    lengths, hops = (np.empty(len(trees), np.int64) for _ in range(2))
    for i, (tree, root) in enumerate(zip(trees, roots, strict=True)):
        tree_distances(root, tree, wan.tail, wan.head, length, far, hop)
        lengths[i], hops[i] = far.max(), hop.max()
    return lengths, hops


def low_enough(wan: Wan, limit: HeightLimit, trees: Ints) -> Ints:
    """Keep the trees that respect the limit."""
    return trees[heights_of(wan, limit, trees)[1] <= limit.most] if len(trees) else trees


def exact_rates(wan: Wan, trees: Ints, rates: Sequence[float] | Floats, floor: Fraction | int = 0) -> RatedTrees:
    """Convert rates of a solver, without those below ``floor``, to simple fractions if these fit, else reduced ones."""
    largest = float(within_reach(wan, trees).room.max(initial=1))
    rows = [i for i, rate in enumerate(rates) if rate > max(1e-9 * largest, float(floor) * (1 - 1e-9))]
    trees = trees[rows]
    simple = [max(Fraction(floor), Fraction(float(rates[i])).limit_denominator(_SIMPLE)) for i in rows]
    close = all(abs(float(rate) - rates[i]) <= 1e-7 * largest for rate, i in zip(simple, rows, strict=True))
    if close and any(simple) and excess(wan, trees, simple) <= 1:
        some = [i for i, rate in enumerate(simple) if rate]  # what is closer to 0 than to 1/360 has no rate
        return RatedTrees(trees[some], tuple(simple[i] for i in some))
    cut = [max(Fraction(floor), Fraction(int(float(rates[i]) / largest * _FINE), _FINE) * int(largest)) for i in rows]
    while cut:
        over = excess(wan, trees, cut)
        cut = [max(Fraction(floor), rate / over) for rate in cut]
        if excess(wan, trees, cut) <= 1:
            break
        # Rates at the floor cannot be cut: give up the smallest tree.
        least = cut.index(min(cut))
        cut.pop(least)
        trees = np.delete(trees, least, axis=0)
    return RatedTrees(trees, tuple(cut))


def fill_bottleneck(wan: Wan, rated: RatedTrees) -> RatedTrees:
    """Scale all rates by a common factor until a link is full."""
    share = excess(wan, rated.trees, rated.rates)
    return rated if share in (0, 1) else RatedTrees(rated.trees, tuple(rate / share for rate in rated.rates))


def excess(wan: Wan, trees: Ints, rates: Sequence[Fraction]) -> Fraction:
    """Return the largest ratio of a carrier's load to its capacity."""
    load = [Fraction(0)] * len(wan.room)
    for tree, rate in zip(trees.tolist(), rates, strict=True):
        for c in wan.carriers(tree):
            load[c] += rate
    return max((a / b for a, b in zip(load, wan.room.tolist(), strict=True)), default=Fraction(0))


def in_order(rated: RatedTrees) -> RatedTrees:
    """Sort trees by decreasing rate."""
    order = sorted(range(len(rated.rates)), key=lambda i: (-rated.rates[i], rated.trees[i].tolist()))
    return RatedTrees(rated.trees[order], tuple(rated.rates[i] for i in order))


def packing(instance: Instance, wan: Wan, rated: RatedTrees, roots: Ints) -> TreePacking:
    """Build the packing that reduces to roots and broadcasts back, with data proportional to rates (section III-B)."""
    scale = lcm(*(rate.denominator for rate in rated.rates))
    units = [int(rate * scale) for rate in rated.rates]
    edges = [links_from_root(wan, tree, root) for tree, root in zip(rated.trees.tolist(), roots.tolist(), strict=True)]
    parent, child, out, back = np.array(edges, dtype=np.int64).reshape(-1, 4).T.copy()
    forth = TreePacking(
        instance.sha256,
        TreeKind.OUT,
        roots.astype(np.int64),
        np.array(units, dtype=np.int64),
        instance.demands[0].size_bytes / sum(units),
        np.arange(len(units) + 1, dtype=np.int64) * (wan.nodes - 1),
        parent,
        child,
        np.arange(len(parent) + 1, dtype=np.int64),
        out,
    )
    return replace(forth, kind=TreeKind.BOTH, reduction=replace(forth, kind=TreeKind.IN, path_links=back))


def links_from_root(wan: Wan, tree: Sequence[int], root: int) -> list[tuple[int, int, int, int]]:
    """List the links of a tree from the root on: parent, child, directed link there and back."""
    near: dict[int, list[tuple[int, int, int]]] = {site: [] for site in range(wan.nodes)}
    for e in tree:
        a, b, forth, back = int(wan.tail[e]), int(wan.head[e]), int(wan.forth[e]), int(wan.back[e])
        near[a].append((b, forth, back))
        near[b].append((a, back, forth))
    rows: list[tuple[int, int, int, int]] = []
    reached = [(root, -1)]
    for site, above in reached:  # grows
        for other, there, back in near[site]:
            if other != above:
                reached.append((other, site))
                rows.append((site, other, there, back))
    return rows


def measures_of_rate(wan: Wan, rate: Fraction, highest: Ceiling) -> dict[str, Any]:
    """Return a rate in B/s, over ``N``, and over the ceiling of any schedule."""
    return {
        "allreduce_rate_Bps": float(rate * wan.unit_Bps),
        "normalized_throughput": float(rate / wan.normaliser),
        "strength_share": float(rate / highest.rate),
        "strength_Bps": float(highest.rate * wan.unit_Bps),
    }


def measures_of_trees(wan: Wan, rated: RatedTrees, roots: Sequence[int]) -> dict[str, Any]:
    """Measure heights in hops and latency, and the most children of a site; every tree counts once."""
    lengths, hops = heights_from(wan, wan.latency_ns, rated.trees, roots)
    heights: list[int] = hops.tolist()
    edges = [links_from_root(wan, tree, root) for tree, root in zip(rated.trees.tolist(), roots, strict=True)]
    fanouts = [max(Counter(parent for parent, *_ in tree).values()) for tree in edges]
    return {
        "mean_tree_height": sum(heights) / len(heights),
        "max_tree_height": max(heights),
        "max_tree_latency_s": int(lengths.max()) / 1e9,
        "mean_max_fanout": sum(fanouts) / len(fanouts),
        "max_fanout": max(fanouts),
    }


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
    """Return the largest bottleneck of a tree within the height H, and such a tree; None if there is none."""
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
