"""Columns, distances and translations of networks."""

from __future__ import annotations

from random import Random

import networkx as nx
import numpy as np
import pytest
from cwb.core.errors import InputError
from cwb.core.topology import Topology
from cwb.instances import load
from cwb.models.bfb.graph import distances_to, graph_of, moved


@pytest.mark.parametrize("seed", range(20))
def test_distances_are_those_of_networkx(seed, random_digraph):
    """All pairs have the distances that another library finds."""
    source = Random(seed)  # noqa: S311
    topology = random_digraph(source.randint(3, 40), source.randint(1, 4), source)
    graph = graph_of(topology)
    found = distances_to(graph, np.arange(graph.nodes))
    for a, lengths in nx.all_pairs_shortest_path_length(nx.DiGraph(list(topology.link_ends))):
        assert {b: int(found[a, b]) for b in range(graph.nodes)} == lengths


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
    assert graph_of(load(network).network).digits == digits


@pytest.mark.parametrize("network", ["torus(3,4)", "circulant(n=9, offsets=[1,4])", "hypercube(4)", "complete(5)"])
def test_translations_carry_the_links_of_a_node_to_those_of_another_one(network):
    """The i-th link into node 0 is carried to the i-th link into every other node."""
    graph = graph_of(load(network).network)
    for u in range(graph.nodes):
        assert moved(graph.source[0], np.array(u), graph.digits).tolist() == graph.source[u].tolist()


def test_parallel_links_are_links_of_their_own(graph):
    """Two links between the same nodes stand side by side."""
    found = graph_of(graph(2, [(0, 1), (0, 1), (1, 0), (1, 0)]))
    assert found.link.tolist() == [[2, 3], [0, 1]]
    assert (found.degree, found.digits) == (2, ((1, 2),))


def test_networks_that_fall_apart_are_refused(graph):
    """A node without links, and one that is not reached, are told in a line."""
    with pytest.raises(InputError, match="no link into it"):
        graph_of(graph(3, [(0, 1), (1, 0), (2, 0)]))
    apart = graph_of(graph(4, [(0, 1), (1, 0), (2, 3), (3, 2)]))
    with pytest.raises(InputError, match="cannot reach every node"):
        distances_to(apart, np.arange(4))


def test_names_and_order_of_the_links_do_not_matter(graph):
    """A torus whose nodes and links are shuffled has no digits, but the same balance."""
    from cwb.models.bfb.fast import balance

    torus = load("torus(4,5)").network
    source = Random(3)  # noqa: S311
    nodes, links = (tuple(source.sample(part, len(part))) for part in (torus.nodes, torus.links))
    shuffled = balance(Topology(nodes, links))
    assert shuffled.jobs.graph.digits == ()
    assert shuffled.step_loads == balance(torus).step_loads
