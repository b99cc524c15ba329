"""Networks with switches: what is connected with what, and with how much."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import networkx as nx
import pytest
from cwb.core.errors import InputError
from cwb.instances import load

GIB = 2**30


def out_rate(topology, name):
    """Sum the bandwidth of a node's outgoing links."""
    return sum(link.bandwidth_Bps for link in topology.links if link.source == name)


def neighbours(topology, name):
    """Targets of a node's links, in order; a parallel link would repeat one."""
    return sorted(link.target for link in topology.links if link.source == name)


@pytest.mark.parametrize(
    "text", ["star(5)", "fat_tree(6)", "dragonfly(5, 3)", "dragonfly(4, 3, 2)", "switch2d(3, 5)", "rfs3d(4, 3, 5)"]
)
def test_every_link_has_its_reverse(text, make):
    """All switched networks are symmetric: every link has a reverse of the same bandwidth and latency."""
    links = make(text).links
    there = Counter((link.source, link.target, link.bandwidth_Bps, link.latency_s) for link in links)
    back = Counter((link.target, link.source, link.bandwidth_Bps, link.latency_s) for link in links)
    assert there == back
    assert set(there.values()) == {1}


@pytest.mark.parametrize(
    "text", ["star(3{})", "fat_tree(4{})", "dragonfly(3, 2, 1{})", "switch2d(2, 3{})", "rfs3d(2{})"]
)
@pytest.mark.parametrize("multicast", [True, False])
def test_multicast(text, multicast, make):
    """The switches copy if they are asked to; compute nodes never are switches."""
    argument = f", multicast={str(multicast).lower()}"
    nodes = make(text.format(argument)).nodes
    assert {node.multicast for node in nodes if node.kind.value == "switch"} == {multicast}
    assert not any(node.multicast for node in nodes if node.kind.value == "compute")


@pytest.mark.parametrize("k", [2, 4, 6, 8])
def test_fat_tree_counts(k, make, digraph):
    """A fat tree has k^3/4 hosts and 5k^2/4 switches, all of k ports, and at most 6 hops between hosts."""
    topology = make(f"fat_tree({k})")
    assert len(topology.ranks) == k**3 // 4
    assert len(topology.switches) == 5 * k * k // 4
    assert {len(neighbours(topology, name)) for name in topology.switches} == {k}
    distances = nx.single_source_shortest_path_length(digraph(topology), "0")
    assert max(distances[rank] for rank in topology.ranks) == 6


def test_fat_tree_has_full_bisection(make, digraph):
    """The hosts of half of the pods can all send to the other half at once."""
    topology = make("fat_tree(4)")
    graph = nx.DiGraph()
    for a, b, rate in digraph(topology).edges(data="rate"):
        graph.add_edge(a, b, capacity=int(rate))
    for rank in topology.ranks:
        graph.add_edge(*(("s", rank) if int(rank) < 8 else (rank, "t")))
    assert nx.maximum_flow_value(graph, "s", "t") == 8 * 50 * 10**9


def test_dragonfly_groups(make):
    """Routers of a group are fully connected, and every two groups share one link in each direction."""
    topology = make('dragonfly(6, 4, bandwidth="400 GiB/s", global_bandwidth="200 GiB/s")')
    between = Counter()
    for link in topology.links:
        one, other = int(link.source) // 4, int(link.target) // 4
        assert link.bandwidth_Bps == (400 if one == other else 200) * GIB
        between[one, other] += 1
    assert between == {(a, b): 12 if a == b else 1 for a in range(6) for b in range(6)}


@pytest.mark.parametrize(("groups", "routers"), [(5, 4), (4, 5), (9, 4), (3, 1), (2, 7), (8, 3)])
def test_dragonfly_spreads_the_global_links(groups, routers, make):
    """The global links of two routers of a group differ in number by one at most."""
    topology = make(f"dragonfly({groups}, {routers})")
    degrees = [len(neighbours(topology, rank)) - (routers - 1) for rank in topology.ranks]
    for group in range(groups):
        mine = degrees[group * routers : (group + 1) * routers]
        assert sum(mine) == groups - 1
        assert max(mine) - min(mine) <= 1


def test_dragonfly_hosts(make):
    """With hosts the routers are switches, and every one has its hosts, in the order of the ranks."""
    topology = make("dragonfly(3, 2, 4)")
    assert len(topology.ranks) == 24
    assert len(topology.switches) == 6
    assert [neighbours(topology, rank) for rank in topology.ranks] == [[f"router{i // 4}"] for i in range(24)]


def test_switch2d_of_the_dissertation(make):
    """8 x 4: four inner switches of 8 ports at 300 GiB/s, eight outer ones of 4 ports at 25 GiB/s."""
    topology = make("switch2d()")
    assert len(topology.ranks) == 32
    assert neighbours(topology, "13") == ["inner1", "outer5"]
    assert {out_rate(topology, rank) for rank in topology.ranks} == {325 * GIB}
    assert [out_rate(topology, f"inner{y}") for y in range(4)] == [8 * 300 * GIB] * 4
    assert [out_rate(topology, f"outer{x}") for x in range(8)] == [4 * 25 * GIB] * 8


def test_rfs3d_of_the_dissertation(make):
    """2 x 4 x 8: every node sends 200 + 100 + 50 GiB/s, a third of 100 to each partner, to the right neighbours."""
    topology = make("rfs3d()")
    assert len(topology.ranks) == 64
    assert {out_rate(topology, rank) for rank in topology.ranks} == {350 * GIB}
    rates = {link.target: link.bandwidth_Bps / GIB for link in topology.links if link.source == "13"}
    third = Fraction(100, 3)
    assert rates == {"12": 200, "9": third, "11": third, "15": third, "switch5": 50}


def test_rfs3d_ring_of_more_than_two(make):
    """In a longer ring a node's bandwidth is halved between its two neighbours."""
    topology = make('rfs3d(4, 2, 2, ring_bandwidth="80 GB/s")')
    rates = {link.target: link.bandwidth_Bps for link in topology.links if link.source == "0"}
    assert (rates["1"], rates["3"]) == (40 * 10**9, 40 * 10**9)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fat_tree(5)", "k: 5 is odd; expected an even number of ports"),
        ("star(1)", "n: 1 is out of range"),
        ("dragonfly(1, 4)", "groups: 1 is out of range"),
        ("dragonfly(2, 0)", "routers: 0 is out of range"),
        ("dragonfly(2, 2, -1)", "hosts: -1 is out of range"),
        ("switch2d(8, 1)", "outer: 1 is out of range"),
        ("rfs3d(2, 1)", "connected: 1 is out of range"),
    ],
)
def test_refuses(text, message, make):
    """Sizes that make no such network are refused."""
    with pytest.raises(InputError, match=message):
        make(text)


def test_each_block_shares_the_bandwidth_of_an_npu():
    """Every NPU sends and receives its dimension's bandwidth, over two neighbours, all peers or its switch."""
    network = load(
        'fabric("RI(4)_FC(3)_SW(2)", bandwidth=["8 GB/s","6 GB/s","5 GB/s"], latency=["1 us","2 us","3 us"])'
    ).network
    assert len(network.ranks) == 24
    assert len(network.switches) == 12
    leaving: dict[str, Fraction] = {}
    for link in network.links:
        leaving[link.source] = leaving.get(link.source, Fraction(0)) + link.bandwidth_Bps
    assert {leaving[rank] for rank in network.ranks} == {Fraction(19 * 10**9)}
    assert {link.latency_s for link in network.links} == {Fraction(n, 10**6) for n in (1, 2)} | {Fraction(3, 2 * 10**6)}


def test_rank_order_is_innermost_first():
    """NPU 0's neighbours are 1 and 3 on the ring, 4 and 8 in the fully connected block, and through its switch 12."""
    network = load('fabric("RI(4)_FC(3)_SW(2)", bandwidth=["8 GB/s","6 GB/s","5 GB/s"])').network
    targets = {link.target for link in network.links if link.source == "npu0"}
    assert targets == {"npu1", "npu3", "npu4", "npu8", "switch3.0"}
    assert "npu12" in {link.target for link in network.links if link.source == "switch3.0"}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ('fabric("RI(4)_SW(2)", bandwidth=["8 GB/s"])', "1 entries for 2 dimensions"),
        ('fabric("RI(4)", bandwidth="8 GB/s")', "is no list"),
        ('fabric("RI(4)", bandwidth=["0 GB/s"])', "greater than zero"),
        ('fabric("XX(4)", bandwidth=["8 GB/s"])', "RI"),
        ('fabric("FC(100000)", bandwidth=["8 GB/s"])', "too many"),
    ],
)
def test_wrong_arguments(spec, words):
    """Arguments that do not fit are refused in one line, before memory is allocated."""
    with pytest.raises(InputError, match=words):
        load(spec)
