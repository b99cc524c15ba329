"""Shortest paths against Floyd and Warshall's algorithm."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import numpy as np
from cwb.algorithms.trees.network import to_wan
from cwb.algorithms.trees.one_tree import shortest_paths
from hypothesis import given, settings
from hypothesis import strategies as st
from mtree_networks import instance, random_edges

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
