"""Exact rates of trees."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import numpy as np
import pytest
from cwb.algorithms.trees.network import to_wan
from cwb.algorithms.trees.trees import exact_rates, excess, shortest_paths
from hypothesis import given, settings
from hypothesis import strategies as st
from mtree_networks import instance, random_edges


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


seeds = st.integers(0, 10**6)


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_ways_are_shortest(seed):
    """Lengths are those that Floyd and Warshall's algorithm gives, and the sites of a way add up to them, also without
    latency."""
    source = Random(seed)  # noqa: S311
    edges = [(a, b, c, source.randint(0, 4)) for a, b, c, _ in random_edges(6, 4, seed)]
    wan = to_wan(instance(6, edges))
    far = np.full((6, 6), 10**12)
    np.fill_diagonal(far, 0)
    for a, b, _, ms in edges:
        far[a, b] = far[b, a] = min(far[a, b], ms * 10**6)
    for k in range(6):
        far = np.minimum(far, far[:, [k]] + far[[k], :])
    ways = shortest_paths(wan, wan.latency_ns)
    assert (ways.reach == far).all()
    for one in range(6):
        for other in range(6):
            sites = ways.sites(one, other)
            assert sum(int(wan.latency_ns[ways.link(a, b)]) for a, b in pairwise(sites)) == far[one, other]
