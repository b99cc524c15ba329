"""Trees as rows of links: pools without doubles, exact rates, and the packing that is the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm

import numpy as np

from ....core.instance import Instance
from ....core.schedule import Floats, Ints
from ....core.trees import TreeKind, TreePacking
from . import kernels
from .network import Limit, Wan

#: Rates that are not simple fractions are cut to this part of the largest capacity.
_FINE = 2**31

#: Denominators that a vertex of a small linear program may have.
_SIMPLE = 360


@dataclass(frozen=True, eq=False)
class Rated:
    """Trees with exact rates.

    Parameters
    ----------
    trees : array of int, shape (trees, sites - 1)
        Links of every tree.
    rates : tuple of Fraction
        Rate of every tree, greater than 0, in units of capacity.
    """

    trees: Ints
    rates: tuple[Fraction, ...]

    @property
    def total(self) -> Fraction:
        """Sum of all rates."""
        return sum(self.rates, Fraction(0))


def distinct(trees: Ints) -> Ints:
    """Sort the links of every tree, and leave out doubles; the first of them stays in its place."""
    rows = np.sort(trees, axis=1)
    _, first = np.unique(rows, axis=0, return_index=True)
    return rows[np.sort(first)]


def bottlenecks(wan: Wan, trees: Ints) -> Ints:
    """Give ``c_i``, the smallest capacity of each tree's links."""
    found: Ints = wan.capacity[trees].min(axis=1, initial=np.iinfo(np.int64).max)
    return found


def heights_of(wan: Wan, limit: Limit, trees: Ints) -> tuple[Ints, Ints]:
    """Give the best root of every tree, and its height from there."""
    roots, heights = (np.zeros(len(trees), dtype=np.int64) for _ in range(2))
    kernels.centres(trees, wan.tail, wan.head, limit.length, wan.nodes, roots, heights)
    return roots, heights


def low_enough(wan: Wan, limit: Limit, trees: Ints) -> Ints:
    """Keep the trees that respect the limit."""
    return trees[heights_of(wan, limit, trees)[1] <= limit.most] if len(trees) else trees


def exact_rates(wan: Wan, trees: Ints, rates: Sequence[float] | Floats, floor: Fraction | int = 0) -> Rated:
    """Make rates of a solver exact: simple fractions where these fit, else cut down until no link is overloaded.

    Parameters
    ----------
    wan : Wan
        The network.
    trees : array of int
        The trees.
    rates : sequence of float
        Rates in units of capacity that are right but for rounding.
    floor : Fraction or int
        Smallest rate of a tree; trees below it are left out, as are those without any.
    """
    largest = float(wan.capacity.max(initial=1))
    kept = [i for i, rate in enumerate(rates) if rate > max(1e-9 * largest, float(floor) * (1 - 1e-9))]
    trees = trees[kept]
    simple = [max(Fraction(floor), Fraction(float(rates[i])).limit_denominator(_SIMPLE)) for i in kept]
    close = all(abs(float(rate) - rates[i]) <= 1e-7 * largest for rate, i in zip(simple, kept, strict=True))
    if close and excess(wan, trees, simple) <= 1:
        return Rated(trees, tuple(simple))
    cut = [max(Fraction(floor), Fraction(int(float(rates[i]) / largest * _FINE), _FINE) * int(largest)) for i in kept]
    while cut:
        over = excess(wan, trees, cut)
        cut = [max(Fraction(floor), rate / over) for rate in cut]
        if excess(wan, trees, cut) <= 1:
            break
        # Rates at the floor cannot be cut: give up the smallest tree.
        least = cut.index(min(cut))
        cut.pop(least)
        trees = np.delete(trees, least, axis=0)
    return Rated(trees, tuple(cut))


def filled(wan: Wan, rated: Rated) -> Rated:
    """Raise all rates by the same factor until a link is full."""
    share = excess(wan, rated.trees, rated.rates)
    return rated if share in (0, 1) else Rated(rated.trees, tuple(rate / share for rate in rated.rates))


def excess(wan: Wan, trees: Ints, rates: Sequence[Fraction]) -> Fraction:
    """Give the largest load of a link over its capacity."""
    load = [Fraction(0)] * len(wan)
    for tree, rate in zip(trees.tolist(), rates, strict=True):
        for e in tree:
            load[e] += rate
    return max((a / b for a, b in zip(load, wan.capacity.tolist(), strict=True)), default=Fraction(0))


def in_order(rated: Rated) -> Rated:
    """Put the fastest trees first."""
    order = sorted(range(len(rated.rates)), key=lambda i: (-rated.rates[i], rated.trees[i].tolist()))
    return Rated(rated.trees[order], tuple(rated.rates[i] for i in order))


def packing(instance: Instance, wan: Wan, rated: Rated, roots: Ints) -> TreePacking:
    """Reduce along every tree to its root and broadcast back along the same links; data in proportion to the rates (section III-B)."""
    scale = lcm(*(rate.denominator for rate in rated.rates))
    units = [int(rate * scale) for rate in rated.rates]
    size = instance.demand.size_bytes if instance.demand is not None else Fraction(0)
    edges = [rooted(wan, tree, root) for tree, root in zip(rated.trees.tolist(), roots.tolist(), strict=True)]
    parent, child, out, back = (
        np.array([edge for tree in edges for edge in tree], dtype=np.int64).reshape(-1, 4).T.copy()
    )
    forth = TreePacking(
        instance.sha256,
        TreeKind.OUT,
        roots.astype(np.int64),
        np.array(units, dtype=np.int64),
        size / sum(units),
        np.arange(len(units) + 1, dtype=np.int64) * (wan.nodes - 1),
        parent,
        child,
        np.arange(len(parent) + 1, dtype=np.int64),
        out,
    )
    return replace(forth, kind=TreeKind.BOTH, reduction=replace(forth, kind=TreeKind.IN, path_links=back))


def rooted(wan: Wan, tree: Sequence[int], root: int) -> list[tuple[int, int, int, int]]:
    """Give the links of a tree from the root on: parent, child, the directed link there and the one back."""
    near: dict[int, list[tuple[int, int, int]]] = {site: [] for site in range(wan.nodes)}
    for e in tree:
        a, b, forth, back = int(wan.tail[e]), int(wan.head[e]), int(wan.forth[e]), int(wan.back[e])
        near[a].append((b, forth, back))
        near[b].append((a, back, forth))
    found: list[tuple[int, int, int, int]] = []
    reached = [root]
    seen = {root}
    for site in reached:  # grows
        for other, there, back in near[site]:
            if other not in seen:
                seen.add(other)
                reached.append(other)
                found.append((site, other, there, back))
    return found


def fanout(wan: Wan, tree: Sequence[int], root: int) -> int:
    """Give the largest number of children of a site."""
    parents = [parent for parent, *_ in rooted(wan, tree, root)]
    return max(parents.count(site) for site in set(parents))
