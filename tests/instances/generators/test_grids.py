"""Lines, rings, meshes, tori and hypercubes against their definitions and against networkx."""

from itertools import product
from math import ceil, prod, sqrt

import networkx as nx
import pytest
from cwb.core.errors import InputError
from cwb.instances.generators.dense import optimal_circulant
from cwb.instances.generators.grids import mesh, ring, torus, twisted_hypercube, twisted_torus
from draws import draws
from hypothesis import given, settings
from hypothesis import strategies as st

sizes = st.lists(st.integers(2, 5), min_size=1, max_size=4)


def edges(topology):
    """Links as a set of pairs of ranks; there must be no parallel ones."""
    pairs = {(int(link.source), int(link.target)) for link in topology.links}
    assert len(pairs) == len(topology.links)
    return pairs


def by_coordinates(shape, neighbours):
    """Links of a grid from its definition: two nodes that differ in one coordinate, and there as allowed."""
    found = set()
    for rank in range(prod(shape)):
        stride = 1
        for size in shape:
            place = rank // stride % size
            found |= {(rank, rank + (other - place) * stride) for other in neighbours(place, size)}
            stride *= size
    return found


@given(sizes)
def test_torus_by_its_definition(shape):
    """Every node is connected with the next and the previous one in every dimension; for size 2 they are one."""
    expected = by_coordinates(shape, lambda place, size: {(place + 1) % size, (place - 1) % size})
    assert edges(torus(*shape)) == expected


@given(sizes)
def test_mesh_by_its_definition(shape):
    """Every node is connected with the next and the previous one in every dimension, where there is one."""
    expected = by_coordinates(shape, lambda place, size: {place + 1, place - 1} & set(range(size)))
    assert edges(mesh(*shape)) == expected


@pytest.mark.parametrize(
    ("text", "links", "diameter"),
    [
        ("line(5)", 8, 4),
        ("ring(2)", 2, 1),
        ("ring(2, false)", 2, 1),
        ("ring(6)", 12, 3),
        ("ring(7)", 14, 3),
        ("ring(7, false)", 7, 6),
        ("mesh(3, 3)", 24, 4),
        ("mesh(2, 2, 2)", 24, 3),
        ("torus(3, 3)", 36, 2),
        ("torus(2, 2, 2)", 24, 3),
        ("torus(4, 2, 3)", 24 * 5, 4),
        ("hypercube(1)", 2, 1),
        ("hypercube(5)", 32 * 5, 5),
    ],
)
def test_links_and_diameter(text, links, diameter, make, digraph):
    """The number of links and the diameter are those of the textbook."""
    topology = make(text)
    assert len(topology.links) == links
    assert nx.diameter(digraph(topology)) == diameter


def test_size_two_is_not_doubled():
    """A dimension of size 2 has one link in each direction, as in TACOS, whose torus 2 x 2 x 2 equals its grid."""
    assert torus(2, 2, 2) == mesh(2, 2, 2)
    assert ring(2) == mesh(2)
    assert set(ring(2, bidirectional=False).links) == set(ring(2).links)


def test_ranks_are_innermost_first():
    """The node (x, y) of a grid of sizes (3, 2) has rank x + 3 y."""
    assert edges(mesh(3, 2)) == {
        (a, b) for p in [(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)] for a, b in (p, p[::-1])
    }


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("hypercube(2)", "torus(2, 2)"),
        ("hypercube(2)", "ring(4)"),
        ("hypercube(4)", "torus(4, 4)"),
        ("hypercube(6)", "torus(4, 4, 4)"),
        ("ring(3)", "complete(3)"),
        ("ring(9)", "circulant(9, [2])"),
        ("torus(7)", "ring(7)"),
        ("torus(3, 4)", "torus(4, 3)"),
        ("ring(5, false)", "directed_circulant(5, [2])"),
        ("fat_tree(2)", "line(7)"),
    ],
)
def test_known_isomorphisms(one, other, make, digraph):
    """Families that meet give the same graph."""
    assert nx.is_isomorphic(nx.DiGraph(digraph(make(one))), nx.DiGraph(digraph(make(other))))


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("torus(3, 4, 5)", nx.grid_graph([3, 4, 5], periodic=True)),
        ("mesh(3, 4, 2)", nx.grid_graph([3, 4, 2])),
        ("hypercube(4)", nx.hypercube_graph(4)),
    ],
)
def test_against_networkx(text, reference, make, digraph):
    """The graphs are those that networkx makes."""
    assert nx.is_isomorphic(nx.DiGraph(digraph(make(text))), reference.to_directed())


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
@settings(max_examples=draws(60))
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
