"""Machines from data sheets: ports, bandwidths and published counts in closed form."""

from collections import Counter

import networkx as nx
import pytest
from cwb.core.errors import InputError

GB = 10**9


def leaving(topology):
    """GB/s that leave every node."""
    found = Counter()
    for link in topology.links:
        found[link.source] += link.bandwidth_Bps / GB
    return found


def ports(topology):
    """Number of links that leave every node."""
    return Counter(link.source for link in topology.links)


@pytest.mark.parametrize(
    ("text", "ranks", "rates"),
    [
        ("mi300x()", 8, {448: 8}),
        ("mi300x(4)", 32, {448 + 50: 32, 200: 8}),
        ("mi325x(4, rails=2)", 32, {498: 32, 800: 2}),
        ("h200(4)", 32, {500: 32, 3600: 4, 200: 8}),
        ("b200(4)", 32, {950: 32, 7200: 4, 200: 8}),
        ("gb200(2)", 144, {950: 144, 72 * 900: 2, 36 * 50: 4}),
        ("pcie()", 8, {32: 8, 96: 4, 64 + 67.2: 2}),
        ("pcie(2)", 16, {32: 16, 96 + 25: 8, 64 + 67.2: 4, 200: 1}),
    ],
)
def test_rates_of_data_sheets(text, ranks, rates, make):
    """The numbers of nodes and their GB/s add up to those of the data sheets."""
    topology = make(text)
    assert len(topology.ranks) == ranks
    assert {float(rate): count for rate, count in Counter(leaving(topology).values()).items()} == rates


def test_memory_is_no_network(make):
    """H200 and H100, MI325X and MI300X, have the same links."""
    assert make("h200(3)") == make("h100(3)")
    assert make("mi325x(3)") == make("mi300x(3)")


def test_frontera(make, digraph):
    """91 racks have 8,008 nodes; a leaf has 44 nodes and 18 uplinks of 40 ports, oversubscribed 22 to 18."""
    assert len(make("frontera(91)").ranks) == 8008
    topology = make("frontera(2)")
    assert ports(topology)["rack0.leaf0"] == 44 + 6
    up = sum(link.bandwidth_Bps for link in topology.links if link.source == "rack1.leaf1" and "core" in link.target)
    assert up == 18 * 25 * GB
    assert leaving(topology)["rack1.leaf1"] * GB - up == 22 * 25 * GB
    assert nx.diameter(digraph(topology)) == 4


def test_leonardo(make, digraph):
    """A cell has 180 nodes and 720 GPUs; leaf and spine switches have no more than 40 ports of 200 Gb/s."""
    topology = make("leonardo(3)")
    assert len(topology.ranks) == 3 * 720
    count = ports(topology)
    assert (count["cell0.leaf0"], count["cell2.spine17"]) == (40 + 18, 18 + 2)
    rate = leaving(topology)
    assert rate["cell0.leaf0"] == (20 + 18) * 25
    assert rate["box7.gpu2"] == 3 * 100 + 12.5
    full = ports(make("leonardo(23, 1)"))
    assert full["cell3.spine0"] - 1 == 22
    assert nx.diameter(digraph(make("leonardo(3, 2)"))) == 5


def test_frontier(make, digraph):
    """A group has 128 nodes and 32 switches of 16 + 31 ports and some to other groups, to each of which go four."""
    topology = make("frontier(3)")
    assert len(topology.ranks) == 3 * 128 * 8
    groups = Counter(
        (link.source.partition(".")[0], link.target.partition(".")[0])
        for link in topology.links
        if link.source.startswith("group") and link.target.startswith("group")
    )
    assert groups["group0", "group1"] == groups["group2", "group0"] == 4
    assert groups["group1", "group1"] == 32 * 31
    most = ports(make("frontier(20, 8)"))
    assert max(count for name, count in most.items() if name.startswith("group")) <= 64
    assert sum(most[f"group5.switch{index}"] for index in range(32)) == 512 + 992 + 4 * 19
    inside = {rate for name, rate in leaving(topology).items() if name.startswith("box9.")}
    assert inside == {350, 300 + 25}
    assert nx.diameter(digraph(make("frontier(4, 1)"))) <= 7


def test_dragonfly_plus(make, digraph):
    """Hosts of two groups are at most five links apart where every spine reaches every group."""
    topology = make("dragonfly_plus(4, 3, 2, 2, global_links=2)")
    assert len(topology.ranks) == 24
    assert {ports(topology)[f"spine{g}.{s}"] for g in range(4) for s in range(2)} == {3 + 3}
    assert nx.diameter(digraph(topology)) == 5
    few = ports(make("dragonfly_plus(4, 1, 3, 1)"))
    assert {few[f"spine{g}.{s}"] for g in range(4) for s in range(3)} == {2}


def test_fat_tree_with_oversubscription(make):
    """Above the edge switches the bandwidth is divided; 1 is the tree of Al-Fares et al."""
    assert make("fat_tree(4)") == make("fat_tree(4, oversubscription=1)")
    rate = leaving(make('fat_tree(4, oversubscription=2.5, bandwidth="50 GB/s")'))
    assert (rate["0"], rate["edge0.1"], rate["aggregation3.0"], rate["core2"]) == (50, 100 + 40, 80, 80)
    with pytest.raises(InputError, match=r"oversubscription: 0.5 is below 1; expected at least 1"):
        make("fat_tree(4, oversubscription=0.5)")


@pytest.mark.parametrize("text", ["mi300x(2)", "pcie(3)", "frontera(2)", "leonardo(3, 2)", "frontier(4, 1)"])
def test_every_link_has_one_back(text, make):
    """Every link of these machines has a reverse of the same bandwidth."""
    there = Counter((link.source, link.target, link.bandwidth_Bps) for link in make(text).links)
    assert there == Counter((link.target, link.source, link.bandwidth_Bps) for link in make(text).links)
    assert set(there.values()) == {1}
