"""Two trees of any height, exactly and in polynomial time.

For rates r1 >= r2 a link may be in both trees if ``b_e >= r1 + r2``, in either if ``b_e >= r1``, and only in the
second if ``b_e >= r2``. Two spanning trees like that are two disjoint bases of the union of two graphic matroids in
which links of the first kind stand twice.

At an optimum two of ``r1``, ``r2`` and ``r1 + r2`` are capacities (or r2 is the smallest rate allowed). Larger rates
never help two trees to exist, so that for each rate that is a capacity the other one is found by bisection over its
candidates.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ...core.budget import Budget
from .network import Wan
from .trees import RatedTrees


@dataclass(frozen=True)
class LinkCopy:
    """A link as an element of the matroids.

    Parameters
    ----------
    link : int
        The link.
    of : tuple of int
        The trees, 0 or 1, that it may be in.
    """

    link: int
    of: tuple[int, ...]


def best_pair(wan: Wan, widest: int, budget: Budget, floor: Fraction | int = 0) -> RatedTrees | None:
    """The two trees with the largest sum of rates.

    Parameters
    ----------
    wan : Wan
        The network.
    widest : int
        The largest rate of one tree, as of :func:`.one_tree.widest_tree`.
    budget : Budget
        If it ends, there is no answer.
    floor : Fraction or int
        Smallest rate that a tree may have, in units.

    Returns
    -------
    RatedTrees or None
        The two trees; None if there are none of such rates, or the budget ended.
    """
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
            if budget.exhausted:
                return None
            middle = (low + high) // 2
            pair = two_trees(wan, max(known, others[middle]), min(known, others[middle]))
            if pair is None:
                high = middle - 1
            else:
                best, found, low = (known + others[middle], known, others[middle]), pair, middle + 1
    if found is None:
        return None
    rates = (Fraction(max(best[1:])), Fraction(min(best[1:])))
    return RatedTrees(np.array(found, dtype=np.int64), rates)


def two_trees(wan: Wan, first: Fraction | int, second: Fraction | int) -> tuple[list[int], list[int]] | None:
    """Two spanning trees of these rates, the first one at least the second; None if there are none."""
    elements: list[LinkCopy] = []
    for e, capacity in enumerate(wan.capacity.tolist()):
        if capacity >= first + second:
            elements += [LinkCopy(e, (0,)), LinkCopy(e, (1,))]
        elif capacity >= first:
            elements.append(LinkCopy(e, (0, 1)))
        elif capacity >= second:
            elements.append(LinkCopy(e, (1,)))
    if len(elements) < 2 * (wan.nodes - 1):
        return None
    forests = ForestPair(wan, elements)
    # The faster links first: what enters a forest stays in one of the two.
    for index in sorted(range(len(elements)), key=lambda i: len(elements[i].of)):
        forests.add(index)
    trees = tuple(sorted(elements[i].link for i in forest) for forest in forests.members)
    return (trees[0], trees[1]) if all(len(tree) == wan.nodes - 1 for tree in trees) else None


class ForestPair:
    """Two disjoint forests of as many elements as possible, by shortest augmenting paths (matroid union).

    Parameters
    ----------
    wan : Wan
        The network.
    elements : sequence of LinkCopy
        Links and the forests that they may be in.
    """

    def __init__(self, wan: Wan, elements: Sequence[LinkCopy]) -> None:
        self.tail, self.head, self.nodes = wan.tail.tolist(), wan.head.tolist(), wan.nodes
        self.elements = elements
        self.members: tuple[set[int], set[int]] = set(), set()

    def add(self, element: int) -> bool:
        """Add an element if the forests can make room for it; what cannot be added now never can."""
        near = [self._neighbours(forest) for forest in (0, 1)]
        before: dict[int, tuple[int, int]] = {element: (-1, -1)}
        waiting = deque([element])
        while waiting:
            current = waiting.popleft()
            for forest in self.elements[current].of:
                if current in self.members[forest]:
                    continue
                circuit = self._path(near[forest], current)
                if circuit is None:
                    self._exchange(current, forest, before)
                    return True
                for other in circuit:
                    if other not in before:
                        before[other] = current, forest
                        waiting.append(other)
        return False

    def _exchange(self, element: int, forest: int, before: dict[int, tuple[int, int]]) -> None:
        """Let the last element enter a forest, and each one before it the place that the next has left."""
        while element >= 0:
            previous, left = before[element]
            if left >= 0:
                self.members[left].remove(element)
            self.members[forest].add(element)
            element, forest = previous, left

    def _neighbours(self, forest: int) -> list[list[tuple[int, int]]]:
        near: list[list[tuple[int, int]]] = [[] for _ in range(self.nodes)]
        for index in self.members[forest]:
            link = self.elements[index].link
            near[self.tail[link]].append((self.head[link], index))
            near[self.head[link]].append((self.tail[link], index))
        return near

    def _path(self, near: Sequence[Sequence[tuple[int, int]]], element: int) -> list[int] | None:
        """The elements of a forest between the ends of another one; None if nothing joins them."""
        start, end = self.tail[self.elements[element].link], self.head[self.elements[element].link]
        came: dict[int, tuple[int, int]] = {start: (-1, -1)}
        waiting = [start]
        while waiting and end not in came:
            site = waiting.pop()
            for other, index in near[site]:
                if other not in came:
                    came[other] = site, index
                    waiting.append(other)
        if end not in came:
            return None
        path: list[int] = []
        while end != start:
            end, index = came[end]
            path.append(index)
        return path
