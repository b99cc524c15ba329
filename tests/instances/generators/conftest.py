"""Shared by the tests of the generators: making a topology from text, and looking at it as a graph."""

import networkx as nx
import pytest
from cwb.instances.expression import parse_expression
from cwb.instances.generators import generate


@pytest.fixture(scope="session")
def make():
    """Make a topology from an expression."""
    return lambda text: generate(parse_expression(text))


@pytest.fixture(scope="session")
def digraph():
    """Turn a topology into a networkx multigraph, with the bandwidth in B/s on every link."""

    def convert(topology):
        graph = nx.MultiDiGraph()
        graph.add_nodes_from(node.name for node in topology.nodes)
        graph.add_edges_from((link.source, link.target, {"rate": link.bandwidth_Bps}) for link in topology.links)
        return graph

    return convert


@pytest.fixture(scope="session")
def simple():
    """Turn a topology into a networkx digraph; no link is doubled."""

    def convert(topology):
        pairs = [(int(link.source), int(link.target)) for link in topology.links]
        assert len(set(pairs)) == len(pairs)
        return nx.DiGraph(pairs)

    return convert


@pytest.fixture(scope="session")
def to_undirected(simple):
    """Turn a topology whose links come in opposite pairs, none of them doubled, into a networkx graph."""

    def convert(topology):
        graph = simple(topology)
        assert {(b, a) for a, b in graph.edges} == set(graph.edges)
        return nx.Graph(graph.edges)

    return convert
