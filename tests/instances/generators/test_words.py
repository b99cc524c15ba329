"""Kautz and de Bruijn graphs against their definitions by words, and generalized Kautz graphs against theirs by
numbers."""

from itertools import pairwise, product
from math import gcd

import networkx as nx
import pytest
from cwb.core.errors import InputError
from cwb.instances.generators.words import de_bruijn, generalized_kautz, kautz
from hypothesis import given
from hypothesis import strategies as st


def _shifts(words):
    """Connect every word with those that follow when a letter is shifted in; loops are left out."""
    return nx.DiGraph((one, other) for one in words for other in words if one[1:] == other[:-1] and one != other)


def _moore(d, diameter):
    """Count the nodes that a digraph of degree d and this diameter can have at most (definition 9)."""
    return sum(d**i for i in range(diameter + 1))


@pytest.mark.parametrize(("d", "diameter"), [(2, 1), (2, 2), (2, 4), (3, 1), (3, 3), (4, 2)])
def test_kautz_is_the_graph_of_words(simple, d, diameter):
    """The graph of Imase and Itoh with d^D + d^(D-1) nodes is that of words without equal neighbours; all degrees are
    d, the diameter is D."""
    words = [word for word in product(range(d + 1), repeat=diameter) if all(a != b for a, b in pairwise(word))]
    graph = simple(kautz(d, diameter))
    assert len(graph) == len(words) == d**diameter + d ** (diameter - 1)
    if diameter > 1:
        assert nx.is_isomorphic(graph, _shifts(words))
    assert {degree for _, degree in [*graph.out_degree, *graph.in_degree]} == {d}
    assert nx.diameter(graph) == diameter


@pytest.mark.parametrize(("d", "diameter"), [(2, 2), (2, 3), (3, 2)])
def test_kautz_is_an_iterated_line_graph(simple, d, diameter):
    """K(d, D) is the line graph of K(d, D - 1), from the complete graph of d + 1 nodes on."""
    assert nx.is_isomorphic(simple(kautz(d, diameter)), nx.line_graph(simple(kautz(d, diameter - 1))))
    assert nx.is_isomorphic(simple(kautz(d, 1)), nx.complete_graph(d + 1, nx.DiGraph))


@pytest.mark.parametrize(("d", "diameter"), [(2, 1), (2, 3), (2, 5), (3, 3), (4, 2)])
def test_de_bruijn_is_the_graph_of_words(simple, d, diameter):
    """De Bruijn graphs shift words; only the d words of one letter miss a link, the port of their loop."""
    graph = simple(de_bruijn(d, diameter))
    words = list(product(range(d), repeat=diameter))
    rank = {word: sum(letter * d ** (diameter - 1 - i) for i, letter in enumerate(word)) for word in words}
    named = nx.relabel_nodes(_shifts(words), rank) if diameter > 1 else nx.complete_graph(d, nx.DiGraph)
    assert set(graph.edges) == set(named.edges)
    repeated = {rank[(letter,) * diameter] for letter in range(d)}
    assert {x for x, degree in graph.out_degree if degree == d - 1} == repeated
    assert {degree for x, degree in graph.out_degree if x not in repeated} <= {d}
    assert nx.diameter(graph) == diameter


@given(st.integers(2, 6), st.data())
def test_generalized_kautz_by_its_definition(simple, d, data):
    """The links are those of definition 16 without loops, and the diameter is at most one more than the Moore bound
    allows (theorem 21)."""
    n = data.draw(st.integers(d + 1, 60))
    graph = simple(generalized_kautz(d, n))
    assert set(graph.edges) == {
        (x, y) for x in range(n) for y in range(n) for a in range(1, d + 1) if x != y == (-d * x - a) % n
    }
    assert n > _moore(d, nx.diameter(graph) - 2)


@given(st.integers(2, 8), st.integers(3, 80))
def test_loops_of_generalized_kautz(simple, d, n):
    """Nodes miss one link at most, and none does where n is a multiple of d + 1."""
    if n <= d:
        return
    graph = simple(generalized_kautz(d, n))
    missing = [d - degree for _, degree in graph.out_degree]
    assert set(missing) <= {0, 1}
    assert missing == [d - graph.in_degree[x] for x in graph] and (n % (d + 1) or not sum(missing))
    assert sum(missing) == sum(gcd(d + 1, n) for a in range(1, d + 1) if a % gcd(d + 1, n) == 0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("generalized_kautz(4, 4)", "n: 4 is out of range; expected an integer from 5 to 1,000,000"),
        ("generalized_kautz(1, 8)", "d: 1 is out of range; expected an integer from 2 to 999,999"),
        ("kautz(1, 3)", "d: 1 is out of range; expected an integer from 2 to 1,000,000"),
        ("kautz(2, 0)", "diameter: 0 is out of range; expected an integer from 1 to 20"),
        ("de_bruijn(2, 21)", "diameter: 21 is out of range; expected an integer from 1 to 20"),
    ],
)
def test_refuses(text, message, make):
    """Too few nodes or links, and words that are too long, are refused with the reason."""
    with pytest.raises(InputError) as caught:
        make(text)
    assert str(caught.value) == message
