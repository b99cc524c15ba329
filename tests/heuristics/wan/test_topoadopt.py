"""``topoadopt``: moves, and what annealing reaches."""

from __future__ import annotations

from random import Random

import pytest
from cwb.algorithms.trees.network import to_wan
from cwb.heuristics.wan.topoadopt import random_tree, swap_link
from hypothesis import given, settings
from hypothesis import strategies as st
from mtree_networks import all_trees, best_few, instance, random_edges, rate, solve, spans

pytestmark = pytest.mark.slow  # random networks, checked by brute force

seeds = st.integers(0, 10**6)


@settings(max_examples=4, deadline=None)
@given(seeds)
def test_annealing_stays_below_the_best_trees(seed):
    """K annealed trees are at most as good as the best K of all; a longer run, which begins alike, is not worse."""
    edges = random_edges(5, 3, seed)
    asked = instance(5, edges)
    best = best_few(edges, all_trees(5, edges), 2)
    short, long = (solve(asked, "topoadopt", trees=2, moves=moves) for moves in (3, 25))
    assert rate(short) <= rate(long) + 1e-6 <= best + 1e-5
    assert long.record.verified


@settings(max_examples=40, deadline=None)
@given(seeds)
def test_moves_keep_spanning_trees(seed):
    """A move changes one link, and what is left spans."""
    edges = random_edges(7, 5, seed)
    wan, source = to_wan(instance(7, edges)), Random(seed)  # noqa: S311
    ends = list(zip(wan.tail.tolist(), wan.head.tolist(), strict=True))
    tree = random_tree(wan, source)
    for _ in range(5):
        other = swap_link(wan, tree, source)
        assert len(set(other.tolist()) - set(tree.tolist())) == 1
        assert spans(7, ends, other.tolist())
        tree = other


def test_annealing_finds_the_optimum_of_gscale():
    """The ten trees reach the strength in a quarter of the moves."""
    done = solve("gscale", "topoadopt", moves=100)
    assert done.record.status == "optimal"
    assert done.record.metrics["moves"] == 100


def test_a_network_that_is_a_tree_has_nothing_to_anneal():
    """Without a link outside the tree no move is made."""
    done = solve("line(4)", "topoadopt", trees=3)
    assert done.record.metrics["moves"] == 0
    assert done.record.status == "optimal"
