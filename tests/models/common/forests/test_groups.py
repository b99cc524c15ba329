"""Groups that are found, and positions in them that correspond."""

from __future__ import annotations

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from cwb.models.common.forests.groups import find_groups
from networks import FAMILIES, random_network, seeded
from random_digraphs import as_dict, digraph, flags


def check(graph, members, groups):
    """Assert that groups are components, positions are 0, 1, 2, ..., and groups of a family are equal node by node."""
    inner = nx.Graph([(u, v) for u, v in as_dict(graph) if members[u] and members[v]])
    inner.add_nodes_from(np.flatnonzero(members).tolist())
    components = {frozenset(part) for part in nx.connected_components(inner)}
    found = [np.flatnonzero(groups.group == index) for index in range(groups.count)]
    assert {frozenset(part.tolist()) for part in found} == components
    assert (groups.group[~members] == -1).all()
    ordered = []
    for part in found:
        assert sorted(groups.position[part].tolist()) == list(range(len(part)))
        ordered.append(part[np.argsort(groups.position[part])].tolist())
    for first, second in combinations(range(groups.count), 2):
        if groups.family[first] == groups.family[second] and len(ordered[first]) > 1:
            assert shape(graph, ordered[first]) == shape(graph, ordered[second])
    return ordered


def shape(graph, nodes):
    """Capacities among nodes in this order, and what each has with all others."""
    links, own = as_dict(graph), set(nodes)
    inside = [[links.get((u, v), 0) for v in nodes] for u in nodes]
    away = [sum(c for (u, v), c in links.items() if u == x and v not in own) for x in nodes]
    back = [sum(c for (u, v), c in links.items() if v == x and u not in own) for x in nodes]
    return inside, away, back


def copies_of(rng, shapes, hub):
    """Put copies of graphs side by side, their nodes in a random order, all on one more node if `hub`."""
    nodes = sum(len(part) for part in shapes)
    names = rng.sample(range(nodes + hub), nodes + hub)
    capacity, begin = {}, 0
    for part in shapes:
        name = dict(zip(part, names[begin : begin + len(part)], strict=True))
        capacity |= {(name[u], name[v]): c for u, v, c in part.edges(data="capacity")}
        if hub:
            capacity |= {(name[v], names[-1]): outside for v, outside in part.nodes(data="outside")}
        begin += len(part)
    return digraph(capacity, nodes + hub), flags(nodes + hub, names[:nodes])


def weighted(rng, graph, largest):
    """A directed copy with random capacities among its nodes and to the outside."""
    both = nx.DiGraph(graph) if rng.random() < 0.7 else nx.DiGraph(list(graph.edges))
    for u, v in both.edges:
        both.edges[u, v]["capacity"] = rng.randint(1, largest)
    for v in both:
        both.nodes[v]["outside"] = rng.randint(1, largest)
    return both


@pytest.mark.parametrize("largest", [1, 3, 10**6, 2**60, 2**65])
def test_copies_are_one_family(largest):
    """Copies of a random graph with random capacities, their nodes shuffled, are put over one another."""
    rng = seeded(largest)
    for _ in range(25):
        base = nx.random_labeled_tree(rng.randint(2, 8), seed=rng)
        base.add_edges_from(rng.sample(range(len(base)), 2) for _ in range(rng.randint(0, 8)))
        part = weighted(rng, base, largest)
        graph, members = copies_of(rng, [part] * rng.randint(2, 4), hub=rng.random() < 0.7)
        groups = find_groups(graph, members)
        check(graph, members, groups)
        if largest > 3:  # with few capacities a choice among nodes that look alike may be wrong
            assert len(set(groups.family.tolist())) == 1


def test_graphs_that_only_look_alike_are_no_family():
    """K3,3 and the prism, the Shrikhande graph and the rook's, and a graph with one capacity changed, are not called equal."""
    rng = seeded(1)
    prism = nx.circular_ladder_graph(3)
    rook = nx.convert_node_labels_to_integers(nx.line_graph(nx.complete_bipartite_graph(4, 4)))
    steps = [(0, 1), (1, 0), (1, 1)]
    shrikhande = nx.Graph(
        (4 * x + y, 4 * ((x + a) % 4) + (y + b) % 4) for x in range(4) for y in range(4) for a, b in steps
    )
    for one, other in ((nx.complete_bipartite_graph(3, 3), prism), (rook, shrikhande)):
        assert not nx.is_isomorphic(one, other)
        assert sorted(dict(one.degree).values()) == sorted(dict(other.degree).values())
        for _ in range(10):
            parts = [weighted(rng, each, 1).to_undirected().to_directed() for each in (one, other)]
            graph, members = copies_of(rng, parts, hub=True)
            groups = find_groups(graph, members)
            check(graph, members, groups)
            assert len(set(groups.family.tolist())) == 2
    cube = weighted(rng, nx.hypercube_graph(3), 9).copy()
    other = cube.copy()
    u, v = next(iter(other.edges))
    other.edges[u, v]["capacity"] += 1
    graph, members = copies_of(rng, [cube, other, cube], hub=False)
    groups = find_groups(graph, members)
    check(graph, members, groups)
    assert len(set(groups.family.tolist())) == 2


def test_symmetric_machines_are_one_family():
    """Cycles, cubes, complete and bipartite graphs, where all nodes look alike, are put over one another, too."""
    rng = seeded(2)
    for base in (nx.cycle_graph(8), nx.hypercube_graph(4), nx.complete_graph(8), nx.complete_bipartite_graph(4, 4)):
        part = nx.DiGraph(base)
        nx.set_edge_attributes(part, 25, "capacity")
        nx.set_node_attributes(part, 4, "outside")
        for _ in range(5):
            graph, members = copies_of(rng, [part] * 4, hub=True)
            groups = find_groups(graph, members)
            check(graph, members, groups)
            assert len(set(groups.family.tolist())) == 1


def test_any_network_and_members():
    """On random networks with any members, groups are components, and families are equal."""
    rng = seeded(3)
    for i in range(100):
        network = random_network(rng, FAMILIES[i % 3])
        nodes = len(network.nodes)
        members = flags(nodes, rng.sample(range(nodes), rng.randint(1, nodes)))
        graph = digraph(network.capacity, nodes)
        check(graph, members, find_groups(graph, members))
