"""Lower bounds on the cost of low trees: against trying everything."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from cwb.algorithms.trees.network import to_wan
from cwb.algorithms.trees.pricing import Arborescences, Prices, arborescence, cheapest_trees
from cwb.algorithms.trees.trees import lowest_tree
from draws import draws
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from mtree_networks import all_trees, height, instance, random_edges


def cheapest_of_all(root, nodes, arcs):
    """Cost of the cheapest arborescence: every choice of an arc into each other site is tried."""
    choices = [[arc for arc in arcs if arc[1] == v] for v in range(nodes) if v != root]
    best = None
    for chosen in product(*choices):
        parent = {v: u for u, v, _ in chosen} | {root: root}
        above = list(range(nodes))
        for _ in range(nodes):
            above = [parent[v] for v in above]
        if set(above) == {root}:
            cost = sum(cost for *_, cost in chosen)
            best = cost if best is None else min(best, cost)
    return best


@pytest.mark.slow
@settings(max_examples=draws(200), deadline=None)
@given(st.data())
def test_the_cheapest_arborescence_is_the_best_of_all(data):
    """On random graphs of up to five sites, with parallel arcs, cost is that of trying every choice of arcs."""
    nodes = data.draw(st.integers(2, 5))
    site = st.integers(0, nodes - 1)
    arc = st.tuples(site, site, st.integers(0, 9)).filter(lambda arc: arc[0] != arc[1])
    arcs = data.draw(st.lists(arc, min_size=nodes - 1, max_size=9))
    root = data.draw(site)
    known = cheapest_of_all(root, nodes, arcs)
    assume(known is not None)
    start, end, cost = (np.array(column, dtype=np.int64) for column in zip(*arcs, strict=True))
    assert arborescence(root, nodes, start, end, cost) == known


@settings(max_examples=draws(80), deadline=None)
@given(st.data())
def test_no_low_tree_is_cheaper(data):
    """For random prices of links and of trees, no spanning tree of at most the height costs less; of any height one
    costs just that."""
    nodes, seed = data.draw(st.integers(3, 5)), data.draw(st.integers(0, 999))
    edges = random_edges(nodes, 3, seed)
    wan = to_wan(instance(nodes, edges))
    price = data.draw(st.lists(st.integers(0, 50), min_size=len(edges), max_size=len(edges)))
    prices = Prices(wan, np.array(price, dtype=np.int64), data.draw(st.integers(0, 50)))
    late = [edge[3] * 10**6 for edge in edges] if data.draw(st.booleans()) else None
    limits = wan.latencies if late else (lambda most: wan.hops(int(most)))
    unit = Fraction(1, 1000) if late else Fraction(1)
    lowest = lowest_tree(wan, limits(100 * unit), wan.capacity > 0)[0]
    most = data.draw(st.integers(0, 12)) + (-(-lowest // 10**6) if late else lowest)
    least = Arborescences(wan, limits(most * unit), 1).least(prices)
    trees = [
        tree for tree in all_trees(nodes, edges) if height(nodes, edges, tree, late) <= (most * 10**6 if late else most)
    ]
    costs = [prices.cost(np.array(tree), int(wan.capacity[list(tree)].min())) for tree in trees]
    assert costs
    assert least <= min(costs)
    assert Arborescences(wan, limits(100 * unit), 1).least(prices) == min(
        one.cost for one in cheapest_trees(wan, prices, 1)
    )


def test_a_height_that_no_tree_has_costs_nothing():
    """A height for which no root is near enough to all sites proves nothing."""
    wan = to_wan(instance(3, [(0, 1, 3, 1), (1, 2, 2, 2)]))
    assert Arborescences(wan, wan.latencies(Fraction(1, 1000)), 1).least(Prices(wan, np.array([1, 1]), 0)) == 0


def test_a_bound_is_proved_where_the_height_binds():
    """A ring of four sites with one site in the middle: two hops allow the spokes alone, so that the arcs of the ring
    do not count."""
    spokes, ring = [(0, v, 1, 1) for v in range(1, 5)], [(v, v % 4 + 1, 9, 1) for v in range(1, 5)]
    wan = to_wan(instance(5, spokes + ring))
    prices = Prices(wan, np.array([5] * 4 + [1] * 4), 0)
    assert Arborescences(wan, wan.hops(1), 1).least(prices) == 20
    assert Arborescences(wan, wan.hops(4), 1).least(prices) == 8
