"""``blink-wan``: its packing, and its cuts."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from cwb import solvers
from cwb.algorithms.trees.bounds import strength
from cwb.algorithms.trees.network import to_wan
from cwb.algorithms.trees.trees import excess
from cwb.core.budget import Budget
from cwb.core.solver import SolverOptions
from cwb.heuristics.wan.blink import build, weighted_packing
from draws import draws
from hypothesis import given, settings
from hypothesis import strategies as st
from mtree_networks import all_trees, instance, random_edges, rate, solve

pytestmark = pytest.mark.slow  # random networks, checked by brute force

seeds = st.integers(0, 10**6)


@settings(max_examples=draws(25), deadline=None)
@given(seeds)
def test_multiplicative_weights_pack_close_to_the_strength(seed):
    """The packing overloads no link and has at least three quarters of the strength."""
    wan = to_wan(instance(6, random_edges(6, 6, seed)))
    trees, weights = weighted_packing(wan, 0.05, 5000, Budget())
    assert excess(wan, trees, [Fraction(weight) for weight in weights.tolist()]) <= 1 + Fraction(1, 10**9)
    assert weights.sum() >= 0.75 * float(strength(wan).rate)
    assert (np.diff(weights) <= 0).all()


@settings(max_examples=6, deadline=None)
@given(seeds)
def test_blinks_cuts_are_ordered(seed):
    """All trees carry at least what few do, which are at least as good as one; units are whole; few trees are few."""
    asked = instance(5, random_edges(5, 5, seed))
    whole = solve(asked, "blink-wan", cut="none")
    few = solve(asked, "blink-wan", cut="trees", trees=2)
    units = solve(asked, "blink-wan", cut="unit")
    assert rate(whole) >= rate(few) - 1e-6
    assert rate(whole) >= rate(units) - 1e-6
    assert few.record.metrics["trees"] <= 2
    assert len(set(units.answer.units.tolist())) == 1
    for done in (whole, few, units):
        assert done.record.verified, done.record.violations


def test_blinks_packing_reaches_the_strength_of_gscale():
    """All trees of the packing, at the best rates, are as fast as anything; one root serves all of them, or each its
    own."""
    common, own = (solve("gscale", "blink-wan", cut="none", root=root) for root in ("common", "centre"))
    assert common.record.metrics["strength_share"] == own.record.metrics["strength_share"] == 1
    assert len(set(common.answer.root.tolist())) == 1
    assert own.record.metrics["mean_tree_height"] <= common.record.metrics["mean_tree_height"]


@pytest.mark.parametrize("seed", range(6))
def test_units_are_chosen_as_by_trying_everything(seed):
    """The most trees of one unit each that fit are found."""
    edges = random_edges(4, 3, seed, largest=4)
    wan = to_wan(instance(4, edges))
    trees, unit = all_trees(4, edges), int(wan.capacity.min())
    room = wan.capacity // unit

    def fits(chosen):
        return all(sum(e in tree for tree in chosen) <= room[e] for e in range(len(edges)))

    most = max(k for k in range(len(trees) + 1) if any(fits(c) for c in combinations(trees, k)))
    model = build(wan, np.array(trees), unit)
    result = solvers.get("highs").solve(model, Budget(), SolverOptions())
    assert round(result.objective) == most
