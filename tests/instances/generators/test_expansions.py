"""Expanded networks: those of the topology finder, node by node, and those of networkx."""

from collections import Counter

import networkx as nx
import pytest
from cwb.core.errors import InputError
from cwb.studies.topology_finder.build import links_of
from cwb.studies.topology_finder.candidates import (
    bases,
    both_directions,
    degree_expansion,
    line_graph,
    parallel,
    power,
    product,
)


def base(nodes, degree, name):
    """A base network of the topology finder by its expression."""
    return next(one for one in bases(nodes, degree) if one.expression == name)


RING, ONE_WAY = base(4, 2, "ring(4)"), base(3, 1, "ring(3, false)")
SQUARE, COMPLETE = base(8, 4, "complete_bipartite(4, 4)"), base(3, 2, "complete(3)")


@pytest.mark.parametrize(
    ("text", "candidate"),
    [
        ("L(complete_bipartite(4, 4))", line_graph(SQUARE)),
        ("line_graph(complete(3), 2)", line_graph(line_graph(COMPLETE))),
        ("L(L(complete(3)))", line_graph(line_graph(COMPLETE))),
        ("degree_expansion(ring(4), 3)", degree_expansion(RING, 3)),
        ("power(ring(4), 3)", power(RING, 3)),
        ("product(complete(3), ring(4))", product(COMPLETE, RING)),
        ("parallel(L(complete(3)), 2)", parallel(line_graph(COMPLETE), 2)),
        ("both_directions(ring(3, false))", both_directions(ONE_WAY)),
        ("L(power(ring(3, false), 2))", line_graph(power(ONE_WAY, 2))),
    ],
)
def test_those_of_the_finder(text, candidate, make):
    """Nodes are numbered as the topology finder numbers them, so that its networks can be written down."""
    assert sorted(make(text).link_ends) == sorted(map(tuple, links_of(candidate).tolist()))


@pytest.mark.parametrize("text", ["kautz(2, 2)", "torus(3, 4)", "directed_circulant(7, [1, 2, 5])"])
def test_line_graphs_of_networkx(text, make, digraph):
    """The line graph is that of networkx."""
    of = nx.line_graph(nx.DiGraph(digraph(make(text))))
    assert nx.is_isomorphic(nx.DiGraph(digraph(make(f"L({text})"))), of)


def test_products_are_tori_and_of_networkx(make, digraph):
    """A product of rings is the torus with the same numbers; any product is that of networkx."""
    assert Counter(make("product(ring(4), ring(3), ring(2))").links) == Counter(make("torus(4, 3, 2)").links)
    assert Counter(make("power(complete(3), 2)").links) == Counter(make("hamming(2, 3)").links)
    parts = [nx.DiGraph(digraph(make(text))) for text in ("ring(4)", "kautz(2, 2)")]
    assert nx.is_isomorphic(
        nx.DiGraph(digraph(make("product(ring(4), kautz(2, 2))"))), nx.cartesian_product(*parts), node_match=None
    )


def test_line_graph_of_kautz_is_kautz(make, digraph):
    """K(d, n + 1) is the line graph of K(d, n)."""
    assert nx.is_isomorphic(nx.DiGraph(digraph(make("L(kautz(2, 2))"))), nx.DiGraph(digraph(make("kautz(2, 3)"))))


def test_bandwidth_and_latency_are_kept(make):
    """A link has what the link has that it is made of, in a product what the factor's has."""
    made = make('product(ring(3, bandwidth="7 GB/s", latency="1 us"), ring(3, bandwidth="5 GB/s"))')
    counts = Counter((link.bandwidth_Bps / 10**9, float(link.latency_s) * 1e6) for link in made.links)
    assert counts == {(7, 1.0): 18, (5, 0.5): 18}
    assert {link.bandwidth_Bps for link in make('L(kautz(2, 2, bandwidth="3 GB/s"))').links} == {3 * 10**9}


@pytest.mark.parametrize("n", range(2, 18))
def test_double_binary_tree(n, make):
    """Two spanning binary trees, whose nodes have four neighbours at most in both together."""
    ends = list(make(f"double_binary_tree({n})").link_ends)
    assert Counter(ends) == Counter((b, a) for a, b in ends)
    half = len(ends) // 2
    for part in (ends[:half], ends[half:]):
        assert nx.is_tree(nx.Graph(part))
        assert len(nx.Graph(part)) == n
        assert max(dict(nx.Graph(part).degree).values()) <= 3
    assert max(Counter(a for a, _ in ends).values()) <= 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("L(star(4))", "network: 8 links of 5 nodes; expected as many links from and to every node"),
        ("L(mesh(4, 4, 3))", "expected as many links from and to every node"),
        ("L(complete_bipartite(1, 2))", "network: 4 links of 3 nodes; expected as many"),
        ("power(star(4), 2)", "network: 'star(4)' has switches; expected only compute nodes"),
        ("product(ring(3), mi250(2))", "networks: 'mi250(2)' has switches"),
        ("product(ring(3))", "networks: 1 networks; expected at least 2"),
        ("power(ring(3), 1)", "n: 1 is out of range; expected an integer from 2 to 19"),
        ("power(ring(1), 2)", "n: 1 is out of range; expected an integer from 2 to 1,000,000"),
        ("parallel(4, 2)", "network: 4 is no network; expected an expression, such as ring(4)"),
        ("L(rings(4))", "unknown topology 'rings'; did you mean 'ring'?"),
        ("L(ring(4)", "the text ends at column 10; expected ',' or ')'"),
        (f"{'L(' * 17}ring(4){')' * 17}", "expected expressions at most 16 deep"),
    ],
)
def test_refuses(text, message, make):
    """A topology that cannot be expanded is refused in one line."""
    with pytest.raises(InputError) as caught:
        make(text)
    assert message in str(caught.value)
