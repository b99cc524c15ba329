"""Columns, distances and translations of networks."""

from __future__ import annotations

from random import Random

import networkx as nx
import numpy as np
import pytest
from cwb.algorithms.breadth_first.broadcast import graph_of, translate_nodes
from cwb.core.errors import InputError
from cwb.core.topology import Topology
from cwb.instances import load
from cwb.models.bfb.solve import balance


def columns(topology):
    return graph_of([node.name for node in topology.nodes], topology.link_ends)


def digraph(n, source):
    """A cycle and some more links, all one way."""
    more = [(source.randrange(n), source.randrange(n)) for _ in range(source.randint(0, 3 * n))]
    return [*((i, (i + 1) % n) for i in range(n)), *((a, b) for a, b in more if a != b)]


@pytest.mark.parametrize("seed", range(20))
def test_distances_are_those_of_networkx(seed):
    """All pairs have the distances that another library finds."""
    source = Random(seed)  # noqa: S311
    pairs = digraph(source.randint(3, 40), source)
    graph = graph_of(range(max(max(pair) for pair in pairs) + 1), pairs)
    for a, lengths in nx.all_pairs_shortest_path_length(nx.DiGraph(pairs)):
        assert {
            int(b): int(graph.distance[k, a]) for k, b in enumerate(graph.nodes_with_distances)
        }.items() <= lengths.items()


@pytest.mark.parametrize(
    ("network", "digits"),
    [
        ("ring(7)", ((1, 7),)),
        ("circulant(n=12, offsets=[2,3])", ((1, 12),)),
        ("torus(3,4,5)", ((1, 3), (3, 4), (12, 5))),
        ("hypercube(3)", ((1, 2), (2, 2), (4, 2))),
        ("complete_bipartite(4,4)", ((1, 4), (4, 2))),
        ("complete(6)", ((1, 6),)),
        ("mesh(3,3)", ()),
        ("complete_bipartite(2,3)", ()),
    ],
)
def test_translations_are_found_where_there_are_any(network, digits):
    """Networks that look the same from every node have digits, one for each dimension; others have none."""
    assert columns(load(network).network).digits == digits


@pytest.mark.parametrize("network", ["torus(3,4)", "circulant(n=9, offsets=[1,4])", "hypercube(4)", "complete(5)"])
def test_translations_carry_the_links_of_a_node_to_those_of_another_one(network):
    """The i-th link into node 0 is carried to the i-th link into every other node."""
    graph = columns(load(network).network)
    for u in range(graph.nodes):
        assert translate_nodes(graph.source[0], np.array(u), graph.digits).tolist() == graph.source[u].tolist()


def test_parallel_links_are_links_of_their_own():
    """Two links between the same nodes stand side by side."""
    found = graph_of(range(2), [(0, 1), (0, 1), (1, 0), (1, 0)])
    assert found.link.tolist() == [[2, 3], [0, 1]]
    assert (found.degree, found.digits) == (2, ((1, 2),))


def test_the_table_of_translations_has_every_node_once():
    """Every translation carries the nodes to all nodes."""
    shifted = columns(load("torus(3,4)").network).translated_nodes
    assert all(np.array_equal(np.sort(column), np.arange(12)) for column in shifted.T)


def test_networks_that_fall_apart_are_refused():
    """A node without links, and one that is not reached, are told in a line with their names."""
    with pytest.raises(InputError, match="node 'c' has no link into it"):
        graph_of("abc", [(0, 1), (1, 0), (2, 0)])
    with pytest.raises(InputError, match="node 'c' has no link out of it"):
        graph_of("abc", [(0, 1), (1, 0), (0, 2)])
    with pytest.raises(InputError, match="data cannot get from node 'c' to node 'a'"):
        graph_of("abcd", [(0, 1), (1, 0), (2, 3), (3, 2)]).distance  # noqa: B018


def test_names_and_order_of_the_links_do_not_matter():
    """A torus whose nodes and links are shuffled has no digits, but the same balance."""
    torus = load("torus(4,5)").network
    source = Random(3)  # noqa: S311
    nodes, links = (tuple(source.sample(part, len(part))) for part in (torus.nodes, torus.links))
    shuffled = balance(Topology(nodes, links))
    assert shuffled.graph.digits == ()
    assert shuffled.loads == balance(torus).loads
