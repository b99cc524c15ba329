"""Random regular graphs: regular, connected, the same everywhere, different from seed to seed."""

import hashlib

import networkx as nx
import pytest
from cwb.core.errors import InputError
from cwb.instances.generators import random_graphs
from cwb.instances.generators.random_graphs import random_regular
from hypothesis import assume, given
from hypothesis import strategies as st


@given(st.integers(4, 24), st.integers(3, 23), st.integers(0, 2**63 - 1))
def test_is_simple_regular_and_connected(n, degree, seed):
    """Every node has the wanted number of different neighbours in both directions, and all are connected."""
    assume(degree < n and n * degree % 2 == 0)
    topology = random_regular(n, degree, seed)
    graph = nx.DiGraph((link.source, link.target) for link in topology.links)
    assert len(topology.links) == n * degree == graph.number_of_edges()
    assert {d for _, d in graph.out_degree} == {degree}
    assert all(graph.has_edge(b, a) for a, b in graph.edges)
    assert nx.is_strongly_connected(graph)


def test_seeds():
    """The same seed gives the same graph, another seed another one."""
    assert random_regular(20, 4, 7) == random_regular(20, 4, 7)
    assert random_regular(20, 4, 7) != random_regular(20, 4, 8)


def test_is_the_same_everywhere():
    """The graph of a seed is pinned, so that instances keep their meaning on all machines and versions."""
    links = " ".join(f"{link.source}-{link.target}" for link in random_regular(30, 5, 42).links)
    assert (
        hashlib.sha256(links.encode()).hexdigest() == "799890d410abb8326e138c219bffbff5f12f13ededfc8cfdd943f7aafabcb6f6"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("random_regular(9, 3)", "degree: no graph has 9 nodes of degree 3; expected an even degree"),
        ("random_regular(8, 2)", "degree: 2 is out of range; expected an integer from 3 to 7"),
        ("random_regular(8, 8)", "degree: 8 is out of range"),
        ("random_regular(8, 3, -1)", "seed: -1 is out of range"),
    ],
)
def test_refuses(text, message, make):
    """Degrees that no graph has are refused, and negative seeds."""
    with pytest.raises(InputError, match=message):
        make(text)


def test_gives_up(monkeypatch):
    """If no attempt gives a connected graph, the error says so instead of running on."""
    monkeypatch.setattr(random_graphs, "_pair", lambda n, degree, source: None)
    with pytest.raises(InputError, match="seed: no connected graph in 1000 attempts; expected another seed"):
        random_regular(8, 3)


def test_a_graph_in_parts_is_thrown_away(monkeypatch):
    """A draw that is regular but not connected is followed by another one."""
    parts = {(a, b) for base in (0, 4) for a in range(base, base + 4) for b in range(a + 1, base + 4)}
    good = {(min(i, (i + a) % 8), max(i, (i + a) % 8)) for i in range(8) for a in (1, 4)}
    draws = iter([parts, None, good])
    monkeypatch.setattr(random_graphs, "_pair", lambda n, degree, source: next(draws))
    assert len({(link.source, link.target) for link in random_regular(8, 3).links}) == 24
    assert next(draws, "none left") == "none left"
