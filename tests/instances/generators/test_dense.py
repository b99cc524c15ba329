"""Complete graphs, circulants and random regular graphs."""

import hashlib
from math import ceil, gcd, sqrt

import networkx as nx
import pytest
from cwb.core.errors import InputError
from cwb.instances.generators import dense
from cwb.instances.generators.dense import circulant, directed_circulant, random_regular
from hypothesis import assume, given
from hypothesis import strategies as st


@given(st.integers(2, 30), st.data())
def test_circulant_by_its_definition(n, data):
    """Node i is connected with i + a and i - a for every offset, without parallel links, as networkx has it."""
    offsets = data.draw(st.lists(st.integers(1, n // 2), min_size=1, max_size=4, unique=True))
    assume(gcd(n, *offsets) == 1)
    topology = circulant(n, offsets)
    pairs = [(int(link.source), int(link.target)) for link in topology.links]
    assert len(set(pairs)) == len(pairs)
    assert set(pairs) == set(nx.circulant_graph(n, offsets).to_directed().edges)


@given(st.integers(2, 30), st.data())
def test_directed_circulant_by_its_definition(n, data):
    """Node i sends to i + a for every offset, and every node can reach every other one."""
    offsets = data.draw(st.lists(st.integers(1, n - 1), min_size=1, max_size=4, unique=True))
    assume(gcd(n, *offsets) == 1)
    graph = nx.DiGraph((int(link.source), int(link.target)) for link in directed_circulant(n, offsets).links)
    assert set(graph.edges) == {(i, (i + a) % n) for i in range(n) for a in offsets}
    assert nx.is_strongly_connected(graph)


@pytest.mark.parametrize("n", range(7, 60))
def test_diameter_of_the_best_circulant(n, digraph):
    """C(n, {m, m + 1}) has diameter m (theorem 22 of the direct-connect paper)."""
    m = ceil((-1 + sqrt(2 * n - 1)) / 2)
    assert nx.diameter(nx.DiGraph(digraph(circulant(n, [m, m + 1])))) == m


def test_distances_of_the_counterexample(digraph):
    """C(15, {1, 4, 5}) has 6 nodes at distance 1 and 8 at distance 2, as in the refutation of conjecture 1."""
    distances = nx.single_source_shortest_path_length(digraph(circulant(15, [1, 4, 5])), "0")
    assert sorted(distances.values()) == [0] + [1] * 6 + [2] * 8


def test_half_of_n_is_one_chord():
    """An offset of n / 2 makes one link in each direction, so that the degree is odd."""
    sources = [link.source for link in circulant(8, [1, 4]).links]
    assert {sources.count(str(i)) for i in range(8)} == {3}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("circulant(8, [])", "offsets: no offsets; expected at least one"),
        ("circulant(8, [1, 1])", "offsets: an offset is given twice; expected different ones"),
        ("circulant(8, [1, 7])", r"offsets\[1\]: 7 is out of range; expected an integer from 1 to 4"),
        ("circulant(12, [2, 6])", "offsets: all offsets and n = 12 are divisible by 2, so the graph has 2"),
        ("directed_circulant(8, [8])", r"offsets\[0\]: 8 is out of range; expected an integer from 1 to 7"),
        ("directed_circulant(9, [3, 6])", "are divisible by 3"),
        ("complete(1)", "n: 1 is out of range"),
        ("complete_bipartite(0, 3)", "left: 0 is out of range"),
    ],
)
def test_refuses(text, message, make):
    """Offsets that repeat, are out of range or leave the graph in parts are refused with the reason."""
    with pytest.raises(InputError, match=message):
        make(text)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("complete(5)", "circulant(5, [1, 2])"),
        ("complete(5)", "directed_circulant(5, [1, 2, 3, 4])"),
        ("complete(4)", "random_regular(4, 3)"),
        ("complete(6)", "dragonfly(6, 1)"),
        ("complete_bipartite(3, 3)", "circulant(6, [1, 3])"),
        ("complete_bipartite(2, 2)", "ring(4)"),
        ("complete_bipartite(1, 4)", "star(4)"),
    ],
)
def test_known_isomorphisms(one, other, make, digraph):
    """Families that meet give the same graph."""
    assert nx.is_isomorphic(nx.DiGraph(digraph(make(one))), nx.DiGraph(digraph(make(other))))


def test_complete_bipartite_sides(make):
    """The left nodes have the lower ranks, and no link stays on a side."""
    links = make("complete_bipartite(2, 3)").links
    assert len(links) == 12
    assert all((int(link.source) < 2) != (int(link.target) < 2) for link in links)


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
def test_refuses_degrees_and_seeds(text, message, make):
    """Degrees that no graph has are refused, and negative seeds."""
    with pytest.raises(InputError, match=message):
        make(text)


def test_gives_up(monkeypatch):
    """If no attempt gives a connected graph, the error says so instead of running on."""
    monkeypatch.setattr(dense, "_pair", lambda n, degree, source: None)
    with pytest.raises(InputError, match="seed: no connected graph in 1000 attempts; expected another seed"):
        random_regular(8, 3)


def test_a_graph_in_parts_is_thrown_away(monkeypatch):
    """A draw that is regular but not connected is followed by another one."""
    parts = {(a, b) for base in (0, 4) for a in range(base, base + 4) for b in range(a + 1, base + 4)}
    good = {(min(i, (i + a) % 8), max(i, (i + a) % 8)) for i in range(8) for a in (1, 4)}
    draws = iter([parts, None, good])
    monkeypatch.setattr(dense, "_pair", lambda n, degree, source: next(draws))
    assert len({(link.source, link.target) for link in random_regular(8, 3).links}) == 24
    assert next(draws, "none left") == "none left"
