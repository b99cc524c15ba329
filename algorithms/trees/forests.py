"""Largest link-disjoint forests with restricted links each, by the union of graphic matroids; the two best trees.

Links enter one after the other. If every forest that a link may be in has a path between its ends, it takes the
place of a link of that path, which enters another forest, and so on: a shortest such chain is found breadth first
(Edmonds, 1968; Knuth, 1973). Once no chain is left, the links Q that chains from unused links can reach prove that
there are no larger forests: every link outside of Q is in one, and those in Q span Q in each.

Two best trees of any height, exactly and in polynomial time: for rates r1 >= r2 a link may be in both trees if ``b_e
>= r1 + r2``, in either if ``b_e >= r1``, and only in the second if ``b_e >= r2``. Two such spanning trees are two
disjoint bases of the union of two graphic matroids in which links of the first kind occur twice. At an optimum two of
``r1``, ``r2`` and ``r1 + r2`` are capacities (or r2 is the smallest allowed rate). Larger rates never help two trees
to exist, so that for each rate that is a capacity the other one is found by bisection over its candidates.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

from ...core.budget import Budget
from ...core.kernel import kernel
from ...core.schedule import Bools, Ints
from .network import Wan
from .trees import RatedTrees

_LINKS = 256  #: links between two looks at the clock


@dataclass(frozen=True, eq=False)
class Forests:
    """Link-disjoint forests."""

    of: Ints  #: (links,) the forest of every link, -1 for none
    reached: Bools  #: (links,) the set Q that proves that there are no larger forests

    def links(self, forest: int) -> list[int]:
        """Return the links of a forest."""
        found: list[int] = np.flatnonzero(self.of == forest).tolist()
        return found


def largest_forests(nodes: int, tail: Ints, head: Ints, allowed: Bools, budget: Budget) -> Forests | None:
    """Find the largest link-disjoint forests of ``allowed`` links, (forests, links); None if the budget ended first."""
    of, reached = np.full(len(tail), -1, dtype=np.int64), np.zeros(len(tail), dtype=np.bool_)
    for first in range(0, len(tail), _LINKS):
        if budget.is_exhausted:
            return None
        last = min(first + _LINKS, len(tail))
        reached = pack(first, last, nodes, tail, head, allowed, of)
    return Forests(of, reached)


@kernel
def pack(first: int, last: int, nodes: int, tail: Any, head: Any, allowed: Any, of: Any) -> Any:
    """Insert some links; mark those that chains from all unused links reach."""
    count, m = allowed.shape
    up, above = np.empty((count, nodes), np.int64), np.empty((count, nodes), np.int64)
    depth, jump = np.empty((count, nodes), np.int64), np.empty((count, nodes), np.int64)
    before, queue = np.empty(m, np.int64), np.empty(m, np.int64)
    ends, rooted = (tail, head), (up, above, depth)
    for i in range(count):
        hang(i, nodes, tail, head, of, up, above, depth)
    for start in range(first, last):
        queue[0] = start
        end, forest, _ = chain(1, ends, allowed, of, rooted, jump, before, queue)
        while end >= 0:  # each link enters the place that the next one has left
            left, of[end] = of[end], forest
            hang(forest, nodes, tail, head, of, up, above, depth)
            end, forest = before[end], left
    reached = np.zeros(m, np.bool_)
    size = 0
    for e in range(last):
        if of[e] < 0:
            queue[size] = e
            size += 1
    _, _, size = chain(size, ends, allowed, of, rooted, jump, before, queue)
    reached[queue[:size]] = True
    return reached


@kernel
def chain(size: int, ends: Any, allowed: Any, of: Any, rooted: Any, jump: Any, before: Any, queue: Any) -> Any:
    """Search chains from the first ``size`` links of the queue to a link that can enter a forest.

    Return this link, the forest, and the number of links reached; link and forest are -1 if there is no chain.
    ``ends`` are tail and head of links, ``rooted`` what :func:`hang` computes.
    """
    tail, head = ends
    up, above, depth = rooted
    count, nodes = up.shape
    before[:] = -2
    for i in range(size):
        before[queue[i]] = -1
    for i in range(count):
        for v in range(nodes):
            jump[i, v] = v
    at = 0
    while at < size:
        e = queue[at]
        at += 1
        for i in range(count):
            if not allowed[i, e] or of[e] == i:
                continue
            a, b = skip(jump, i, tail[e]), skip(jump, i, head[e])
            while a != b:  # climb to where the path turns, over links that were not reached before
                if depth[i, a] < depth[i, b]:
                    a, b = b, a
                if depth[i, a] == 0:
                    return e, i, size
                other = up[i, a]
                jump[i, a] = above[i, a]
                if before[other] == -2:
                    before[other] = e
                    queue[size] = other
                    size += 1
                a = skip(jump, i, a)
    return -1, -1, size


@kernel
def skip(jump: Any, i: int, v: int) -> int:
    """Return the first ancestor of v whose upward link is unreached, with path compression."""
    while jump[i, v] != v:
        jump[i, v] = jump[i, jump[i, v]]
        v = jump[i, v]
    return v


@kernel
def hang(i: int, nodes: int, tail: Any, head: Any, of: Any, up: Any, above: Any, depth: Any) -> None:
    """Root the components of a forest: set link and node above every node, and its depth."""
    near, begin = np.empty(2 * nodes, np.int64), np.zeros(nodes + 2, np.int64)
    for e in range(len(of)):
        if of[e] == i:
            begin[tail[e] + 2] += 1
            begin[head[e] + 2] += 1
    for v in range(nodes):
        begin[v + 2] += begin[v + 1]
    for e in range(len(of)):
        if of[e] == i:
            for v in (tail[e], head[e]):
                near[begin[v + 1]] = e
                begin[v + 1] += 1
    depth[i, :] = -1
    queue = np.empty(nodes, np.int64)
    for root in range(nodes):
        if depth[i, root] >= 0:
            continue
        depth[i, root], queue[0], size, at = 0, root, 1, 0
        while at < size:
            v = queue[at]
            at += 1
            for k in range(begin[v], begin[v + 1]):
                e = near[k]
                other = tail[e] + head[e] - v
                if depth[i, other] < 0:
                    depth[i, other], up[i, other], above[i, other] = depth[i, v] + 1, e, v
                    queue[size] = other
                    size += 1


def best_pair(wan: Wan, widest: int, budget: Budget, floor: Fraction | int = 0) -> RatedTrees | None:
    """Return the two trees, of rates from ``floor`` to ``widest``, with the largest sum; None if none, or stopped."""
    capacities = sorted({int(c) for c in wan.capacity} | ({floor} if floor else set()))
    least = floor or 1
    best: tuple[Fraction | int, Fraction | int, Fraction | int] = 0, 0, 0
    found: tuple[list[int], list[int]] | None = None
    for known in reversed([c for c in capacities if least <= c <= widest]):
        others = sorted({*capacities, *(c - known for c in capacities)})
        others = [c for c in others if least <= c <= widest]
        # Below this one the sum is no better than the best.
        low, high = bisect_right(others, best[0] - known), len(others) - 1
        while low <= high:
            if budget.is_exhausted:
                return None
            middle = (low + high) // 2
            pair = two_trees(wan, max(known, others[middle]), min(known, others[middle]), budget)
            if pair is None:
                high = middle - 1
            else:
                best, found, low = (known + others[middle], known, others[middle]), pair, middle + 1
    if found is None:
        return None
    rates = (Fraction(max(best[1:])), Fraction(min(best[1:])))
    return RatedTrees(np.array(found, dtype=np.int64), rates)


def two_trees(
    wan: Wan, first: Fraction | int, second: Fraction | int, budget: Budget
) -> tuple[list[int], list[int]] | None:
    """Find spanning trees of rates ``first >= second``; None if there are none, or the budget ended."""
    # What stands twice can be in either forest only once, since its copies are parallel.
    link = np.concatenate([np.arange(len(wan)), np.flatnonzero(wan.capacity >= ceil(first + second))])
    allowed = np.array([wan.capacity[link] >= ceil(rate) for rate in (first, second)])
    forests = largest_forests(wan.nodes, wan.tail[link], wan.head[link], allowed, budget)
    if forests is None:
        return None
    trees = tuple(sorted(link[forests.links(i)].tolist()) for i in range(2))
    return (trees[0], trees[1]) if all(len(tree) == wan.nodes - 1 for tree in trees) else None
