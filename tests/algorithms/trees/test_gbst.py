"""All spanning trees of small networks, and their heights."""

from __future__ import annotations

from fractions import Fraction

import pytest
from cwb.algorithms.trees.gbst import every_tree
from cwb.algorithms.trees.trees import heights_of
from mtree_networks import all_trees, height, small


@pytest.mark.parametrize("seed", range(40))
def test_all_trees_are_listed_once(seed):
    """The list of spanning trees, and the height of each in hops and in latency, are those of trying every set of
    links."""
    nodes, edges, wan = small(seed)
    trees = every_tree(wan)
    # Links of the network are in the order of the edges.
    assert sorted(map(tuple, trees.tolist())) == all_trees(nodes, edges)
    weights = [edge[3] * 10**6 for edge in edges]
    for limit, lengths in ((wan.hops(None), None), (wan.latencies(Fraction(1)), weights)):
        assert heights_of(wan, limit, trees)[1].tolist() == [height(nodes, edges, t, lengths) for t in trees.tolist()]
