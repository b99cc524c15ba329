"""Colour refinement: classes are equitable, and as coarse as symmetry allows."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from cwb.algorithms.graphs.colour_refinement import FlowArcs, refine
from cwb.instances import load
from hypothesis import given, settings
from hypothesis import strategies as st


def refine_colours(pairs, nodes, colours=None):
    """Classes of the flows of all nodes on a graph; links may be coloured."""
    tails, heads = (np.array(column, dtype=np.int64) for column in zip(*pairs, strict=True))
    network = FlowArcs(tails, heads, np.arange(len(pairs)), nodes, len(pairs))
    return refine(network, np.eye(nodes, dtype=np.int64), [0] * len(pairs), colours or [0] * len(pairs))


def assert_equitable(pairs, nodes, classes):
    """Members of a class are surrounded alike, counted without any of the code under test."""
    seen = {}
    for s in range(nodes):
        for v in range(nodes):
            into = Counter(classes.flow[s, e] for e, (_, b) in enumerate(pairs) if b == v)
            out = Counter(classes.flow[s, e] for e, (a, _) in enumerate(pairs) if a == v)
            around = (s == v, into, out)
            assert seen.setdefault(("balance", classes.balance[s, v]), around) == around
        for e, (a, b) in enumerate(pairs):
            around = (classes.balance[s, a], classes.balance[s, b], classes.link[e])
            assert seen.setdefault(("flow", classes.flow[s, e]), around) == around
    for e in range(len(pairs)):
        around = Counter(classes.flow[:, e].tolist())
        assert seen.setdefault(("link", classes.link[e]), around) == around


@settings(max_examples=60, deadline=None)
@given(
    st.integers(2, 6).flatmap(
        lambda n: st.tuples(
            st.just(n), st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), min_size=1, max_size=14)
        )
    )
)
def test_classes_are_equitable(drawn):
    """On random graphs every class is surrounded alike, which is what makes the reduced program exact."""
    nodes, pairs = drawn
    pairs = [(a, b) for a, b in pairs if a != b] or [(0, 1)]
    assert_equitable(pairs, nodes, refine_colours(pairs, nodes))


@pytest.mark.parametrize(
    ("network", "flows"), [("torus(4,4,4)", 12), ("ring(7)", 7), ("complete(6)", 3), ("hypercube(3)", 12)]
)
def test_symmetric_networks_have_few_classes(network, flows):
    """A 4x4x4 torus has 12 classes of its 24,576 flows; others have what distance and direction tell apart, or
    fewer."""
    topology = load(network).network
    classes = refine_colours(list(topology.link_ends), len(topology.nodes))
    assert classes.sizes[0] <= flows


def test_a_colour_of_one_link_breaks_symmetry():
    """A ring in which one link differs has as many classes as flows."""
    pairs = [(i, (i + 1) % 5) for i in range(5)]
    assert refine_colours(pairs, 5).sizes[0] == 5
    assert refine_colours(pairs, 5, [1, 0, 0, 0, 0]).sizes[0] == 25
