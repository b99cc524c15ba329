"""Graphs of networkx: there and back without a change, by memory and by file alike."""

from __future__ import annotations

import json
from fractions import Fraction

import networkx as nx
import pytest
from cwb.core.collective import Collective, Demand
from cwb.core.errors import InputError
from cwb.core.topology import Link, Node, NodeKind, Topology
from cwb.exchange.frames import network_graph, plain_number, schedule_graph
from cwb.exchange.graph_network import Defaults, import_file, import_graph
from cwb.harness import Request, run
from cwb.instances import load
from cwb.instances.loader import from_data
from draws import draws
from hypothesis import given, settings
from hypothesis import strategies as st

names = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=8)
sizes = st.fractions(0, 10**12, max_denominator=10**9)
rates = st.fractions(Fraction(1, 10**6), 10**15, max_denominator=10**9)


@st.composite
def topologies(draw):
    """Ranks and switches in any order, and parallel links of any rates."""
    found = draw(st.lists(names, min_size=2, max_size=5, unique=True))
    kinds = [NodeKind.COMPUTE, *(draw(st.sampled_from(NodeKind)) for _ in found[1:])]
    nodes = [
        Node(name, kind, draw(st.booleans()), draw(st.none() | sizes), draw(st.booleans()))
        if kind is NodeKind.SWITCH
        else Node(name)
        for name, kind in zip(found, kinds, strict=True)
    ]
    ends = draw(st.lists(st.permutations(found), min_size=1, max_size=8))
    return Topology(tuple(nodes), tuple(Link(end[0], end[1], draw(rates), draw(sizes)) for end in ends))


def load_graph(graph, **said):
    """The network of a graph."""
    data = import_graph(graph, Defaults(**{"lengths": False, **said}))
    return from_data(data, "x").network


@settings(max_examples=draws(60))
@given(topologies())
def test_there_and_back(topology):
    """The graph of a network is read as the same network: names, order, kinds, limits and exact numbers."""
    graph = network_graph(topology, "any name")
    assert load_graph(graph) == topology
    assert nx.utils.graphs_equal(network_graph(load_graph(graph), "any name"), graph)


@given(sizes)
def test_numbers_are_exact(value):
    """A number that is not whole is a float only if its decimal form is exact."""
    said = plain_number(value)
    assert (Fraction(repr(said)) if isinstance(said, float) else said) == value


@pytest.mark.parametrize("graph_class", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
def test_classes_of_graphs(graph_class):
    """A link that is not directed is one each way, and parallel ones are several."""
    graph = graph_class()
    for _ in range(2):
        graph.add_edge(1, (2, 3), bandwidth="1 GB/s")
    directed, multi = graph.is_directed(), graph.is_multigraph()
    network = load_graph(graph)
    assert network.ranks == ("1", "(2, 3)")
    assert len(network.links) == (1 if directed else 2) * (2 if multi else 1)


def test_a_file_is_read_as_the_graph_in_it(tmp_path):
    """A graph that networkx writes is the same network by its file as by networkx's reader, as GraphML and as JSON."""
    graph = network_graph(load("dgx1()").network, "dgx1")
    nx.write_graphml(graph, tmp_path / "a.graphml")
    (tmp_path / "a.json").write_text(json.dumps(nx.node_link_data(graph, edges="edges")))
    expected = load("dgx1()").network
    assert load_graph(nx.read_graphml(tmp_path / "a.graphml")) == expected
    for name in ("a.graphml", "a.json"):
        assert from_data(import_file(tmp_path / name, Defaults(lengths=False)), "x").network == expected


def test_switches_and_what_they_can():
    """Kinds, patterns of names and types make switches; a kind that is none is refused."""
    graph = nx.star_graph(["a", "b", "c", "leaf"])
    nx.set_edge_attributes(graph, "1 GB/s", "bandwidth")
    graph.nodes["a"].update(kind="switch", multicast=True, buffer="1 MiB")
    graph.nodes["b"]["type"] = "Switch"
    a, b, c, leaf = load_graph(graph, switches=("lea*",)).nodes
    assert a == Node("a", NodeKind.SWITCH, True, Fraction(2**20))
    assert b == Node("b", NodeKind.SWITCH)
    assert c == Node("c")
    assert leaf == Node("leaf", NodeKind.SWITCH, False, Fraction(0))
    graph.nodes["a"]["kind"] = "router"
    with pytest.raises(InputError, match=r"node a.kind: 'router'; expected compute or switch"):
        load_graph(graph)


def test_lengths():
    """A length is a latency where that is asked for, and refused where nothing is said of latencies."""
    graph = nx.Graph()
    graph.add_edge("a", "b", bandwidth="1 GB/s", dist=200)
    assert load_graph(graph, lengths=True).links[0].latency_s == Fraction(1, 1000)
    assert load_graph(graph, latency="1 us").links[0].latency_s == Fraction(1, 10**6)
    with pytest.raises(InputError, match="link a-b: the link has a length but no latency"):
        load_graph(graph)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda g: g.add_edge("a", "c"), "link a-c: the link has no rate"),
        (lambda g: g.add_edge("a", "c", bandwidth_GBps=1, latency=3), "link a-c.latency: 3 has no unit"),
        (lambda g: g.remove_edge("a", "b"), "no links"),
        (lambda g: (g.add_node(1), g.add_node("1")), "two nodes have the same id"),
        (lambda g: nx.set_node_attributes(g, "switch", "kind"), "no compute node"),
        (lambda g: g.nodes["a"].update(kind="switch", multicast="perhaps"), "'perhaps'; expected true or false"),
        (lambda g: g.nodes["a"].update(kind="switch", buffer=3), "3 has no unit; expected a size"),
    ],
)
def test_wrong_graphs(change, message):
    """Faulty graphs give one line that names the node or the link."""
    graph = nx.Graph()
    graph.add_edge("a", "b", bandwidth="1 GB/s")
    change(graph)
    with pytest.raises(InputError, match=message) as caught:
        load_graph(graph)
    assert "\n" not in str(caught.value)


def test_sizes_are_limited(monkeypatch):
    """A graph with too many nodes is refused before it is read."""
    monkeypatch.setattr("cwb.exchange.graph_network.MAX_SITES", 1)
    with pytest.raises(InputError, match="expected at most 1 nodes"):
        load_graph(nx.path_graph(2))


@pytest.mark.parametrize(("model", "columns"), [("ring", {"chunk", "step"}), ("forestcoll", {"tree", "step"})])
def test_an_edge_is_a_send(model, columns):
    """The graph of a schedule has every send with its links, between names, or numbers where the network is not
    known."""
    demand = Demand(Collective.ALL_GATHER, Fraction(2**20))
    instance = load("a100(boxes=2)").with_changes(demand=demand)
    done = run(instance, Request(model))
    graph, bare = schedule_graph(done.answer, instance), schedule_graph(done.answer)
    assert [*graph] == [node.name for node in instance.network.nodes]
    assert graph.number_of_edges() == bare.number_of_edges() > 100
    assert set(bare) <= set(range(len(graph)))
    for source, target, fields in graph.edges(data=True):
        assert columns < set(fields)
        links = [instance.network.links[link] for link in fields["path"]]
        assert (links[0].source, links[-1].target) == (source, target)
