"""One tree and two trees against the best of all."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement

import pytest
from cwb.algorithms.trees.forests import best_pair
from cwb.algorithms.trees.one_tree import lowest_tree, widest_tree
from cwb.core.budget import Budget
from mtree_networks import all_trees, best_rate, height, small

MBPS = 10**6 / 8


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(30))
def test_one_and_two_trees(seed):
    """One tree of any height limit, and two of any height, are as fast as the best of all."""
    nodes, edges, wan = small(seed)
    trees = all_trees(nodes, edges)
    late = [edge[3] * 10**6 for edge in edges]
    nearest = lowest_tree(wan, wan.latencies(Fraction(1)), wan.capacity > 0)[0]
    assert nearest == min(height(nodes, edges, tree, late) for tree in trees)
    lowest = lowest_tree(wan, wan.hops(None), wan.capacity > 0)[0]
    assert lowest == min(height(nodes, edges, tree) for tree in trees)
    for most in range(lowest, nodes):
        rate = max(min(edges[e][2] for e in t) for t in trees if height(nodes, edges, t) <= most)
        assert widest_tree(wan, wan.hops(most))[0] * wan.unit_Bps == Fraction(rate * 10**6, 8)
    assert widest_tree(wan, wan.hops(lowest - 1)) is None
    two = max(best_rate(edges, pair) for pair in combinations_with_replacement(trees, 2))
    widest = widest_tree(wan, wan.hops(None))[0]
    pair = best_pair(wan, widest, Budget())
    found = max(Fraction(widest), pair.total if pair is not None else Fraction(0))
    assert float(found * wan.unit_Bps) / MBPS == pytest.approx(two)
