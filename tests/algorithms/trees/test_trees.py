"""Exact rates of trees."""

from __future__ import annotations

import numpy as np
import pytest
from cwb.algorithms.trees.network import to_wan
from cwb.algorithms.trees.trees import exact_rates, excess
from mtree_networks import instance


@pytest.mark.parametrize(
    ("rates", "kept"), [((10**5, 5e-4), [0]), ((5e-4, 10**5), [1]), ((10**5, 1 / 700), [0, 1]), ((5e-4, 5e-4), [0, 1])]
)
def test_no_tree_has_a_rate_of_zero(rates, kept):
    """A rate that is dust beside the capacities and nearer to 0 than to a simple fraction takes its tree with it."""
    wan = to_wan(instance(2, [(0, 1, 10**5, 1), (0, 1, 10**5, 1), (0, 1, 1, 1)]))
    rated = exact_rates(wan, np.array([[0], [1]]), rates)
    assert rated.trees.ravel().tolist() == kept
    assert all(rate > 0 for rate in rated.rates)
    assert excess(wan, rated.trees, rated.rates) <= 1
