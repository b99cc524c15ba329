"""Shortest distances and shortest paths, against networkx and their definitions."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from random import Random

import networkx as nx
import numpy as np
import pytest
from cwb.algorithms.graphs.distances import distances, route
from cwb.core.errors import InputError, Unsupported
from cwb.core.fabric import expand, parse_fabric
from cwb.core.topology import Link, Node, NodeKind, Topology
from cwb.instances import load
from draws import draws
from hypothesis import given, settings
from hypothesis import strategies as st


@pytest.mark.parametrize("seed", range(40))
def test_distances_are_those_of_networkx(seed):
    """With parallel links, links of length 0 and pairs without a path, forwards and backwards, distances are those of
    networkx."""
    rng = Random(seed)  # noqa: S311
    nodes = rng.randint(1, 7)
    links = [(rng.randrange(nodes), rng.randrange(nodes), rng.randint(0, 5)) for _ in range(rng.randint(0, 20))]
    tail, head, length = (np.array([link[i] for link in links], dtype=np.int64) for i in range(3))
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(range(nodes))
    graph.add_weighted_edges_from(links)
    for backwards in (False, True):
        found = distances(nodes, tail, head, length, backwards=backwards)
        for source in range(nodes):
            wanted = nx.single_source_dijkstra_path_length(graph.reverse() if backwards else graph, source)
            assert found[source].tolist() == [wanted.get(node, float("inf")) for node in range(nodes)]
        assert distances(nodes, tail, head, length, [nodes - 1], backwards=backwards)[0].tolist() == found[-1].tolist()


def test_lengths_that_floats_cannot_hold_are_refused():
    """Lengths that add up to 2^53 are refused instead of being rounded."""
    ends = np.array([0, 1]), np.array([1, 0])
    assert distances(2, *ends, [2**52, 2**52 - 1])[0].tolist() == [0, 2**52]
    with pytest.raises(InputError, match="common unit"):
        distances(2, *ends, [2**52, 2**52])


GB = Fraction(10**9)


def network(nodes: int, ends, switches=()) -> Topology:
    """A network of links (source, target, latency)."""
    named = tuple(Node(str(i), NodeKind.SWITCH if i in switches else NodeKind.COMPUTE) for i in range(nodes))
    return Topology(named, tuple(Link(str(s), str(t), GB, Fraction(latency)) for s, t, latency in ends))


def path(topology: Topology, source: int, target: int) -> list[int]:
    return route(topology, np.array([source]), np.array([target])).links.tolist()


@st.composite
def networks(draw):
    """Networks with many ties, parallel links and one-way links."""
    nodes = draw(st.integers(2, 9))
    end = st.integers(0, nodes - 1)
    ends = draw(st.lists(st.tuples(end, end, st.integers(0, 2)), min_size=1, max_size=40))
    return network(nodes, [e for e in ends if e[0] != e[1]])


@given(topology=networks())
@settings(max_examples=draws(150), deadline=None)
def test_paths_have_the_fewest_hops_and_then_the_least_latency(topology):
    """Every path agrees with Dijkstra on (hops, latency), and is connected."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(topology.nodes)))
    weight = 10**6
    for link, (source, target) in zip(topology.links, topology.link_ends, strict=True):
        cost = weight + link.latency_s
        if not graph.has_edge(source, target) or graph[source][target]["weight"] > cost:
            graph.add_edge(source, target, weight=cost)
    costs = dict(nx.all_pairs_dijkstra_path_length(graph))
    pairs = [(s, t) for s in costs for t in costs[s] if s != t]
    if not pairs:
        return
    source, target = np.array(pairs).T
    found = route(topology, source, target)
    for index, (s, t) in enumerate(pairs):
        links = found.links[found.offset[index] : found.offset[index + 1]].tolist()
        ends = [topology.link_ends[link] for link in links]
        assert (ends[0][0], ends[-1][1]) == (s, t)
        assert all(one[1] == other[0] for one, other in pairwise(ends))
        assert sum(weight + topology.links[link].latency_s for link in links) == costs[s][t]


@given(topology=networks(), data=st.data())
@settings(max_examples=draws(50), deadline=None)
def test_a_path_does_not_depend_on_the_other_pairs(topology, data):
    """Asking for many pairs, in any order and more than once, gives the same paths as asking for each alone."""
    alone = {}
    for s in range(len(topology.nodes)):
        for t in range(len(topology.nodes)):
            if s != t:
                try:
                    alone[s, t] = path(topology, s, t)
                except Unsupported:
                    continue
    if not alone:
        return
    pairs = data.draw(st.lists(st.sampled_from(sorted(alone)), min_size=1, max_size=30))
    found = route(topology, *np.array(pairs).T)
    for index, pair in enumerate(pairs):
        assert found.links[found.offset[index] : found.offset[index + 1]].tolist() == alone[pair]


def test_ties_go_to_the_first_link():
    """Of paths that are equally short and fast, the one whose first link comes first; of parallel links, the first."""
    diamond = [(0, 2, 1), (0, 1, 1), (0, 1, 1), (1, 3, 1), (2, 3, 1)]
    assert path(network(4, diamond), 0, 3) == [0, 4]
    assert path(network(4, diamond), 0, 1) == [1]


def test_less_latency_wins_over_the_order_but_not_over_hops():
    """A slower first link loses to a faster second one; a longer path loses however fast it is."""
    assert path(network(4, [(0, 2, 5), (0, 1, 1), (1, 3, 1), (2, 3, 1)]), 0, 3) == [1, 2]
    assert path(network(3, [(0, 1, 0), (1, 2, 0), (0, 2, 9)]), 0, 2) == [2]


def test_exact_latencies_of_any_size():
    """Latencies whose common denominator is too large for a machine integer are compared exactly."""
    tiny = Fraction(1, 10**30)
    ends = [(0, 2, 1 + 2 * tiny), (0, 1, 1 + tiny), (1, 3, 1), (2, 3, 1)]
    assert path(network(4, ends), 0, 3) == [1, 2]


def test_dimension_order_on_grids():
    """On grids and fabrics, paths correct the first coordinate first."""
    mesh = load("mesh(4,4)").network
    visited = [mesh.link_ends[link][1] for link in path(mesh, 0, 10)]
    assert visited == [1, 2, 6, 10]
    fabric = expand(parse_fabric("RI(4)_FC(3)_SW(2)"), (GB,) * 3, (Fraction(1),) * 3)
    nodes = [fabric.nodes[fabric.link_ends[link][1]].name for link in path(fabric, 0, 2 + 4 * 1 + 12)]
    assert nodes == ["npu1", "npu2", "npu6", "switch3.6", "npu18"]


def test_opposite_ranks_of_a_ring():
    """On a fabric's ring the tie at half the way round goes clockwise."""
    ring = expand(parse_fabric("RI(6)"), (GB,), (Fraction(1),))
    for rank in range(6):
        assert ring.link_ends[path(ring, rank, (rank + 3) % 6)[0]][1] == (rank + 1) % 6


def test_no_path_and_no_pair():
    """A pair without a path is named; no pairs have no paths."""
    with pytest.raises(Unsupported, match="from '1' to '0'"):
        path(network(2, [(0, 1, 0)]), 1, 0)
    none = np.zeros(0, dtype=np.int64)
    assert len(route(network(2, [(0, 1, 0)]), none, none).links) == 0
