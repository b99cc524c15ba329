"""Two best trees of any height, exactly and in polynomial time.

For rates r1 >= r2 a link may be in both trees if ``b_e >= r1 + r2``, in either if ``b_e >= r1``, and only in the
second if ``b_e >= r2``. Two such spanning trees are two disjoint bases of the union of two graphic matroids in
which links of the first kind occur twice.

At an optimum two of ``r1``, ``r2`` and ``r1 + r2`` are capacities (or r2 is the smallest allowed rate). Larger
rates never help two trees to exist, so that for each rate that is a capacity the other one is found by bisection
over its candidates.
"""

from __future__ import annotations

from bisect import bisect_right
from fractions import Fraction
from math import ceil

import numpy as np

from ...core.budget import Budget
from .forests import largest_forests
from .network import Wan
from .trees import RatedTrees


def best_pair(wan: Wan, widest: int, budget: Budget, floor: Fraction | int = 0) -> RatedTrees | None:
    """Return the two trees with the largest sum of rates; None if none exist or the budget ended.

    ``widest`` is the largest rate of one tree, from :func:`.one_tree.widest_tree`; ``floor`` the smallest of any,
    in units.
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
