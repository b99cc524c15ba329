"""Trees and rates out of solved models, against trying everything."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from cwb import solvers
from cwb.algorithms.trees.network import pose
from cwb.core.budget import Budget
from cwb.core.solver import SolverOptions
from cwb.models.mtree import extract
from mtree_networks import all_trees, best_rate, height, instance, random_edges, small


@pytest.mark.parametrize("unit", ["hops", "ns"])
@pytest.mark.parametrize("seed", range(3))
def test_the_cheapest_low_tree(seed, unit):
    """The pricing model gives the cheapest of all trees that are low enough."""
    nodes, edges, wan = small(seed)
    prices = np.array([1 + (7 * e + seed) % 5 for e in range(len(edges))], dtype=np.float64)
    lengths = None if unit == "hops" else [edge[3] * 10**6 for edge in edges]
    heights = {tree: height(nodes, edges, tree, lengths) for tree in all_trees(nodes, edges)}
    most = sorted(set(heights.values()))[0]
    limit = wan.hops(most) if unit == "hops" else wan.latencies(Fraction(most, 10**9))
    tree, report = extract.cheapest_low_tree(wan, limit, prices, solvers.get("highs"), Budget(), SolverOptions())
    want = min(sum(prices[e] for e in t) for t, h in heights.items() if h <= most)
    assert prices[tree].sum() == pytest.approx(want) == report.objective


def test_rates_of_zero_are_no_solution(monkeypatch):
    """The start of a solver that is stopped at once, no rate for any tree, is no answer."""
    from cwb import solvers
    from cwb.models.mtree import extract

    edges = random_edges(4, 2, 1)
    wan, unit = pose(instance(4, edges)), extract.model_unit
    monkeypatch.setattr(extract, "model_unit", lambda wan: 0 * unit(wan))
    rated, report = extract.best_rates(wan, np.array(all_trees(4, edges)), solvers.get("highs"), Budget())
    assert report.has_solution
    assert rated is None


def test_the_best_rates_are_those_of_a_linear_program():
    """On all trees of a small network the Pyomo model is as good as another linear program."""
    from cwb import solvers
    from cwb.models.mtree.extract import best_rates

    for seed in range(5):
        edges = random_edges(5, 4, seed)
        trees = all_trees(5, edges)
        wan = pose(instance(5, edges))
        # The network lists links by their first direction, which is the order of the edges.
        rated, _ = best_rates(wan, np.array(trees), solvers.get("highs"), Budget())
        assert float(rated.total * wan.unit_Bps) * 8e-6 == pytest.approx(best_rate(edges, trees))
