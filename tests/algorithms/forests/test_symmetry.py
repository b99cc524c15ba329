"""Groups that are found, positions in them that correspond, and patterns that pair the ports of a switch."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from cwb.algorithms.forests.symmetry import MODES, SwitchPorts, find_groups, propose_pairs
from cwb.algorithms.graphs.network import exact_array
from networks import FAMILIES, random_network, seeded_random
from random_digraphs import as_dict, digraph, flags


def check(graph, members, groups):
    """Assert that groups are components, positions are 0, 1, 2, ..., and groups of a family are equal node by node."""
    inner = nx.Graph([(u, v) for u, v in as_dict(graph) if members[u] and members[v]])
    inner.add_nodes_from(np.flatnonzero(members).tolist())
    components = {frozenset(part) for part in nx.connected_components(inner)}
    found = [np.flatnonzero(groups.group == index) for index in range(len(groups.family))]
    assert {frozenset(part.tolist()) for part in found} == components
    assert (groups.group[~members] == -1).all()
    ordered = []
    for part in found:
        assert sorted(groups.position[part].tolist()) == list(range(len(part)))
        ordered.append(part[np.argsort(groups.position[part])].tolist())
    for first, second in combinations(range(len(groups.family)), 2):
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


def weighted_graph(rng, graph, largest):
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
    rng = seeded_random(largest)
    for _ in range(25):
        base = nx.random_labeled_tree(rng.randint(2, 8), seed=rng)
        base.add_edges_from(rng.sample(range(len(base)), 2) for _ in range(rng.randint(0, 8)))
        part = weighted_graph(rng, base, largest)
        graph, members = copies_of(rng, [part] * rng.randint(2, 4), hub=rng.random() < 0.7)
        groups = find_groups(graph, members)
        check(graph, members, groups)
        if largest > 3:  # with few capacities a choice among nodes that look alike may be wrong
            assert len(set(groups.family.tolist())) == 1


def test_graphs_that_only_look_alike_are_no_family():
    """K3,3 and the prism, the Shrikhande graph and the rook's, and a graph with one capacity changed, are not called
    equal."""
    rng = seeded_random(1)
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
            parts = [weighted_graph(rng, each, 1).to_undirected().to_directed() for each in (one, other)]
            graph, members = copies_of(rng, parts, hub=True)
            groups = find_groups(graph, members)
            check(graph, members, groups)
            assert len(set(groups.family.tolist())) == 2
    cube = weighted_graph(rng, nx.hypercube_graph(3), 9).copy()
    other = cube.copy()
    u, v = next(iter(other.edges))
    other.edges[u, v]["capacity"] += 1
    graph, members = copies_of(rng, [cube, other, cube], hub=False)
    groups = find_groups(graph, members)
    check(graph, members, groups)
    assert len(set(groups.family.tolist())) == 2


def test_symmetric_machines_are_one_family():
    """Cycles, cubes, complete and bipartite graphs, where all nodes look alike, are put over one another, too."""
    rng = seeded_random(2)
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
    """On random networks with any members, groups are components, and families are equal; ``check`` asserts it."""
    rng = seeded_random(3)
    for i in range(100):
        network = random_network(rng, FAMILIES[i % 3])
        nodes = len(network.nodes)
        members = flags(nodes, rng.sample(range(nodes), rng.randint(1, nodes)))
        graph = digraph(network.capacity, nodes)
        check(graph, members, find_groups(graph, members))


LARGEST = (1, 3, 40, 10**6, 2**61, 2**66)


def random_ports(rng, up):
    """Draw ports in groups of their own sizes, numbered at random; `up` of them lead to switches."""
    sizes = [rng.randint(1, 5) for _ in range(rng.randint(1, 5))]
    largest = rng.choice(LARGEST)
    even = rng.random() < 0.5
    rows = [(box, place, False) for box, size in enumerate(sizes) for place in range(size)]
    rows += [(-1, 0, True)] * up
    nodes = rng.sample(range(3 * len(rows)), len(rows))
    capacity = exact_array(largest if even else rng.randint(1, largest) for _ in rows)
    group, position, above = (np.array([row[i] for row in rows]) for i in range(3))
    order = np.argsort(nodes)
    return SwitchPorts(np.array(nodes)[order], capacity[order], group[order], position[order], above[order])


def sums(pairs):
    """Return what every port receives and sends, and the amount of every pair."""
    come: Counter[int] = Counter()
    go: Counter[int] = Counter()
    both: Counter[tuple[int, int]] = Counter()
    for u, t, amount in zip(pairs.source.tolist(), pairs.target.tolist(), pairs.amount.tolist(), strict=True):
        assert amount > 0
        come[u] += amount
        go[t] += amount
        both[u, t] += amount
    return come, go, both


@pytest.mark.parametrize("up", [0, 1, 2, 5])
@pytest.mark.parametrize("mode", MODES)
def test_amounts_add_up(mode, up):
    """Every port below gets rid of all it has and gets as much; no port above more than it has, and as much each
    way."""
    rng = seeded_random(10 * mode + up)
    proposed = 0
    for _ in range(150):
        ports = random_ports(rng, up)
        pairs = propose_pairs(ports, mode)
        if pairs is None:
            continue
        proposed += 1
        come, go, _ = sums(pairs)
        assert come == go
        capacity = dict(zip(ports.node.tolist(), ports.capacity.tolist(), strict=True))
        assert set(come) <= set(capacity)
        below = [node for node, above in zip(ports.node.tolist(), ports.up.tolist(), strict=True) if not above]
        assert all(come[node] == capacity[node] for node in below)
        assert all(come[node] <= room for node, room in capacity.items())
        if mode == 2 or up == 0:
            assert come == Counter(capacity)
        elif mode in (0, 1):
            above = sum(room for node, room in capacity.items() if node not in below)
            through = min(above, sum(capacity[node] for node in below))
            assert sum(come[node] for node in capacity if node not in below) == through
    assert proposed == (0 if mode > 0 and up == 0 else proposed)
    assert proposed > 20 or (mode > 0 and up == 0)


def test_nobody_is_paired_within_a_group_that_is_at_most_half():
    """No pair is within a group unless one group has more than half of all; then only in that group."""
    rng = seeded_random(5)
    halves = 0
    for _ in range(300):
        ports = random_ports(rng, 0)
        if len(set(ports.group.tolist())) < 2:
            continue
        pairs = propose_pairs(ports, 0)
        assert pairs is not None
        group = dict(zip(ports.node.tolist(), ports.group.tolist(), strict=True))
        size: Counter[int] = Counter()
        for node, amount in zip(ports.node.tolist(), ports.capacity.tolist(), strict=True):
            size[group[node]] += amount
        inside = {group[u] for u, t in sums(pairs)[2] if group[u] == group[t]}
        if 2 * max(size.values()) > sum(size.values()):
            assert inside <= {max(size, key=lambda box: size[box])}
        elif is_exactly_rounded(ports):
            halves += 1
            assert not inside
    assert halves > 60


def is_exactly_rounded(ports):
    """Check if every slice has a fixed part of all ports, so that no group exceeds half of each."""
    capacity = ports.capacity.tolist()
    slices = max(1, min(len(set(ports.group.tolist())) - 1, *capacity))
    return all(c % slices == 0 for c in capacity)


def test_a_port_to_itself_only_where_it_must():
    """Ports of single nodes are paired with themselves only where one has more than half of all, up to the rounding of
    slices."""
    rng = seeded_random(6)
    for _ in range(100):
        count = rng.randint(2, 8)
        amounts = [rng.randint(1, 30) for _ in range(count)]
        nothing = np.zeros(count, dtype=np.int64)
        ports = SwitchPorts(np.arange(count), exact_array(amounts), np.arange(count), nothing, nothing.astype(np.bool_))
        pairs = propose_pairs(ports, 0)
        assert pairs is not None
        alone = sum(amount for (u, t), amount in sums(pairs)[2].items() if u == t)
        if alone:
            assert 2 * max(amounts) > sum(amounts) - count * count


def test_all_neighbours_are_switches():
    """A switch that has only switches around it is paired like any other, however many they are."""
    for count in (1, 2, 5):
        ones = np.ones(count, dtype=np.bool_)
        ports = SwitchPorts(
            np.arange(count), exact_array([7] * count), np.full(count, -1), np.zeros(count, np.int64), ones
        )
        pairs = propose_pairs(ports, 0)
        assert pairs is not None
        assert sums(pairs)[0] == Counter(dict.fromkeys(range(count), 7))
        assert propose_pairs(ports, 1) is None
