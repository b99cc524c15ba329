"""Networks that look the same from every rank: one tree, moved to all ranks (see :class:`~cwb.core.translated.TranslatedTrees`).

In a step every generator is used once, by an edge to a rank that the tree lacks; so a tree of n - 1 edges for each of c chunks takes at least
``ceil((n - 1) c / generators)`` steps, which is the slot bound. Ranks with the fewest possible parents come first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from ...core.topology import Topology
from ...core.translated import moved
from .bits import draw, seeded, shuffle

Ints = NDArray[np.int64]

#: Generators beyond which the general engine is used.
MAX_GENERATORS = 64

#: Shapes that are tried at most.
_SHAPES = 64


@dataclass(frozen=True, eq=False)
class Cayley:
    """A network that its translations leave as it is.

    Parameters
    ----------
    sizes : tuple of int
        Orders of the cyclic groups, the innermost first.
    after, before : array of int, shape (generators, ranks)
        Where every generator leads from every rank, and from where it comes.
    """

    sizes: tuple[int, ...]
    after: Ints
    before: Ints


def recognize(topology: Topology) -> Cayley | None:
    """Find sizes for which every link out of rank 0, moved, is a link out of every rank; None if there are none.

    Rank 0's neighbours at 1, a, a b, ... suggest the sizes of a grid; one cycle of all ranks is tried too.
    """
    n, ends = len(topology.nodes), np.array(topology.link_ends, dtype=np.int64).reshape(-1, 2)
    kinds = {(id(e.bandwidth_Bps), id(e.latency_s)): (e.bandwidth_Bps, e.latency_s) for e in topology.links}
    from_zero = np.sort(ends[ends[:, 0] == 0, 1])
    keys = np.unique(ends[:, 0] * n + ends[:, 1])
    alike = not topology.switches and len(set(kinds.values())) == 1 and len(ends) == len(keys) == n * len(from_zero)
    if not alike or len(from_zero) > MAX_GENERATORS:
        return None
    ranks = np.arange(n)
    for sizes in islice(_shapes(n, from_zero.tolist()), _SHAPES):
        after = np.stack([moved(sizes, ranks, np.array(g)) for g in from_zero])
        if np.array_equal(np.sort((ranks * n + after).ravel()), keys):
            before = np.stack([moved(sizes, ranks, np.array(g), -1) for g in from_zero])
            return Cayley(sizes, after, before)
    return None


def _shapes(n: int, neighbours: list[int]) -> Iterator[tuple[int, ...]]:
    """Give the sizes whose strides, the products of the sizes before, are neighbours of 0; the finest ones first."""

    def finer(strides: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        for stride in neighbours:
            if stride > strides[-1] and stride % strides[-1] == 0 and n % stride == 0:
                yield from finer((*strides, stride))
        yield strides

    for strides in finer((1,)):
        yield tuple(b // a for a, b in pairwise((*strides, n)))


def grow(cayley: Cayley, chunks: int, seed: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Grow a tree for each of rank 0's chunks; give copy, parent, child and step of all edges, by steps."""
    n = cayley.after.shape[1]
    edges = np.empty((4, (n - 1) * chunks), dtype=np.int64)
    count = _grow(cayley.after, cayley.before, chunks, seed, edges)
    assert count == edges.shape[1]  # noqa: S101 (a network that looks the same from everywhere and has a link is connected, or is refused before)
    return edges[0], edges[1], edges[2], edges[3]


@numba.njit(cache=True)
def _grow(after: Any, before: Any, chunks: int, seed: int, edges: Any) -> int:
    """Fill the rows copy, parent, child and step; give their number.

    Item ``k n + v`` is chunk k at rank v. ``stock[g, p]`` lists items that lack the chunk, have p possible parents and one of them by g; what no
    longer holds of an item is found out when it is taken from the list.
    """
    generators, n = after.shape
    random = seeded(seed)
    covered, taken = np.zeros(n * chunks, np.bool_), np.zeros(n * chunks, np.bool_)
    parents = np.zeros(n * chunks, np.int64)
    stock = [[[0 for _ in range(0)] for _ in range(generators + 1)] for _ in range(generators)]
    waiting = np.zeros(generators, np.int64)
    for copy in range(chunks):
        _cover(after, before, copy, 0, covered, parents, stock, waiting)
    order = np.arange(generators)
    given, came, queue = np.empty(generators, np.int64), np.empty(generators, np.int64), np.empty(generators, np.int64)
    count, step = 0, 0
    while count < edges.shape[1]:
        shuffle(order, generators, random)
        order = order[np.argsort(waiting[order], kind="mergesort")]
        given[:] = -1
        for g in order:
            item = _take(stock[g], covered, taken, parents, random)
            if item >= 0:
                given[g] = item
                taken[item] = True
            elif waiting[g] > 0:
                _give_way(before, g, covered, taken, parents, stock, given, came, queue, random)
        begin = count
        for g in range(generators):
            if given[g] >= 0:
                copy, rank = given[g] // n, given[g] % n
                edges[0, count], edges[1, count] = copy, before[g, rank]
                edges[2, count], edges[3, count] = rank, step
                count += 1
        if count == begin:
            return count
        for row in range(begin, count):
            _cover(after, before, edges[0, row], edges[2, row], covered, parents, stock, waiting)
        step += 1
    return count


@numba.njit(cache=True)
def _cover(after: Any, before: Any, copy: int, rank: int, covered: Any, parents: Any, stock: Any, waiting: Any) -> None:
    """Note that a rank has a chunk: it may be a parent, and is no longer waiting for one."""
    generators, n = after.shape
    base = copy * n
    for g in range(generators):
        if covered[base + before[g, rank]]:
            waiting[g] -= 1
    covered[base + rank] = True
    for g in range(generators):
        item = base + after[g, rank]
        if covered[item]:
            continue
        parents[item] += 1
        waiting[g] += 1
        for other in range(generators):
            if covered[base + before[other, item - base]]:
                stock[other][parents[item]].append(item)


@numba.njit(cache=True)
def _take(stock: Any, covered: Any, taken: Any, parents: Any, random: Any) -> int:
    """Take an item with the fewest possible parents from the lists of a generator; -1 if there is none."""
    for many in range(len(stock)):
        items = stock[many]
        while len(items) > 0:
            place = draw(random, len(items))
            item = items[place]
            items[place] = items[len(items) - 1]
            items.pop()
            if not covered[item] and not taken[item] and parents[item] == many:
                return int(item)
    return -1


@numba.njit(cache=True)
def _give_way(
    before: Any,
    start: int,
    covered: Any,
    taken: Any,
    parents: Any,
    stock: Any,
    given: Any,
    came: Any,
    queue: Any,
    random: Any,
) -> None:
    """Let a generator have the item of another one that finds a further one: the shortest augmenting path."""
    generators, n = before.shape
    came[:] = -2
    came[start] = -1
    queue[0] = start
    head, tail = 0, 1
    while head < tail:
        g = queue[head]
        head += 1
        if g != start:
            item = _take(stock[g], covered, taken, parents, random)
            if item >= 0:
                taken[item] = True
                while g != -1:
                    item, given[g] = given[g], item
                    g = came[g]
                return
        for other in range(generators):
            item = given[other]
            if came[other] == -2 and item >= 0 and covered[item - item % n + before[g, item % n]]:
                came[other] = g
                queue[tail] = other
                tail += 1
