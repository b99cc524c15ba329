"""Twisted tori and hypercubes, and the best circulants, by their definitions and diameters."""

from itertools import product
from math import ceil, sqrt

import networkx as nx
import pytest
from cwb.core.errors import InputError
from cwb.instances.generators.dense import optimal_circulant
from cwb.instances.generators.twisted_networks import twisted_hypercube, twisted_torus
from hypothesis import given, settings
from hypothesis import strategies as st


@given(st.integers(3, 8), st.integers(2, 6), st.data())
@settings(max_examples=50)
def test_twisted_torus_by_its_definition(to_undirected, width, height, data):
    """Rows are rings, and columns lead from the last row to the first one, shifted by the twist; all degrees are 4."""
    twist = data.draw(st.integers(1, width - 1))
    expected = set()
    for x, y in product(range(width), range(height)):
        above = (x, y + 1) if y + 1 < height else ((x + twist) % width, 0)
        for a, b in (((x + 1) % width, y), above):
            expected.add(frozenset([x + width * y, a + width * b]))
    graph = to_undirected(twisted_torus(width, height, twist))
    assert {frozenset(edge) for edge in graph.edges} == expected
    assert {degree for _, degree in graph.degree} == {4}


@pytest.mark.parametrize("a", range(2, 9))
def test_diameter_of_the_twisted_torus(to_undirected, a):
    """A twisted torus of 2a x a nodes and twist a has diameter a; without the twist it would be a + a // 2."""
    assert nx.diameter(to_undirected(twisted_torus(2 * a, a, a))) == a


@pytest.mark.parametrize("dim", range(3, 8))
def test_twisted_hypercube(to_undirected, dim):
    """It is a hypercube but for two edges, as regular, and its diameter is one less."""
    graph = to_undirected(twisted_hypercube(dim))
    plain = nx.Graph((x, x ^ 1 << bit) for x in range(2**dim) for bit in range(dim))
    edges, straight = ({frozenset(edge) for edge in of.edges} for of in (graph, plain))
    assert edges - straight == {frozenset([0, 3]), frozenset([1, 2])}
    assert straight - edges == {frozenset([0, 1]), frozenset([2, 3])}
    assert {degree for _, degree in graph.degree} == {dim}
    assert nx.diameter(graph) == dim - 1


@given(st.integers(7, 5000))
@settings(max_examples=60)
def test_optimal_circulant_has_the_offsets_of_theorem_22(n):
    """The offsets are m and m + 1 with m as in theorem 22, computed there with a square root."""
    m = ceil((-1 + sqrt(2 * n - 1)) / 2)
    steps = {(int(link.target) - int(link.source)) % n for link in optimal_circulant(n).links}
    assert steps == {m, m + 1, n - m, n - m - 1}


@pytest.mark.parametrize("n", range(7, 40))
def test_no_circulant_of_degree_4_has_a_smaller_diameter(to_undirected, n):
    """Of all connected circulants of two offsets, none has a smaller diameter."""
    best = min(
        nx.diameter(graph)
        for a in range(1, n // 2)
        for b in range(a + 1, n // 2 + 1)
        if nx.is_connected(graph := nx.circulant_graph(n, [a, b]))
    )
    assert nx.diameter(to_undirected(optimal_circulant(n))) == best


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("twisted_torus(4, 2, 4)", "twist: 4 is out of range; expected an integer from 1 to 3"),
        ("twisted_torus(2, 2, 1)", "width: 2 is out of range; expected an integer from 3 to 1,000,000"),
        ("twisted_hypercube(2)", "dim: 2 is out of range; expected an integer from 3 to 19"),
        ("optimal_circulant(6)", "n: 6 is out of range; expected an integer from 7 to 1,000,000"),
    ],
)
def test_refuses(text, message, make):
    """Sizes for which the definition gives something else are refused."""
    with pytest.raises(InputError) as caught:
        make(text)
    assert str(caught.value) == message
