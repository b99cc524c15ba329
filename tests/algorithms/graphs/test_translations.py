"""Classes of links that symmetries exchange; translations: what is found, that it is right, and nothing without."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations
from random import Random

import numpy as np
import pytest
from cwb.algorithms.graphs.translations import ColouredNetwork, find_reflections, find_symmetry, link_orbits
from cwb.core.topology import Link, Node, NodeKind, Topology
from cwb.core.trees import power_of
from cwb.instances import load


@pytest.mark.parametrize(
    ("network", "orders", "roots"),
    [
        ("dgx_a100(boxes=3)", (3, 8), 1),
        ("mi250(boxes=2)", (2, 2, 2), 4),
        ("torus(4,6)", (6, 4), 1),
        ("fat_tree(4)", (4, 2, 2), 1),
        ("pods(2,2,4,4,2)", (2, 2, 4), 1),
        ("dragonfly(4,12,3)", (4, 3), 12),
        ("star(7)", (7,), 1),
    ],
)
def test_translations_of_named_networks(network, orders, roots):
    """Pods, boxes, rows and positions are turned around; orbits of links have links of one kind, as many as divide
    motions."""
    coloured = ColouredNetwork.of(load(network).network)
    found = find_symmetry(coloured)
    assert tuple(each.order for each in found.translations) == orders
    assert (found.motions, len(found.roots)) == (np.prod(orders), roots)
    for orbit, size in enumerate(found.size.tolist()):
        assert found.motions % size == 0
        assert len(set(coloured.label[found.orbit == orbit].tolist())) == 1


@pytest.mark.parametrize("network", ["fat_tree(4)", "fat_tree(6)", "fat_tree(8, oversubscription=2)"])
def test_switches_turn_with_the_ranks_below(network):
    """Aggregation and core switches, which the ranks do not tell apart, turn with edge switches and hosts: links of a
    fat tree are in six orbits, two for each tier, under commuting translations of the given orders."""
    coloured = ColouredNetwork.of(load(network).network)
    found = find_symmetry(coloured)
    assert len(found.size) == 6
    images = [each.image for each in found.translations]
    for each in found.translations:
        assert np.array_equal(power_of(each.image, each.order), np.arange(coloured.nodes))
        assert all(np.array_equal(each.image[other], other[each.image]) for other in images)
        assert coloured.link_image(each.image) is not None


def test_no_product_fixes_a_rank():
    """On three switches in a line with two hosts each, the exchange of the hosts and a reversal would together fix the
    hosts in the middle: one of the two is left out."""
    names = [f"host{host}" for host in range(6)]
    nodes = [*(Node(name) for name in names), *(Node(name, NodeKind.SWITCH) for name in "abc")]
    wires = [*zip(names, "aabbcc", strict=True), ("a", "b"), ("b", "c")]
    links = [Link(*ends, Fraction(10**9)) for wire in wires for ends in (wire, wire[::-1])]
    found = find_symmetry(ColouredNetwork.of(Topology(tuple(nodes), tuple(links))))
    assert (found.motions, len(found.roots)) == (2, 3)


def test_nothing_where_ranks_differ():
    """A box without one of its links to the network has no translations with the others."""
    assert find_symmetry(ColouredNetwork.of(load("rail(4,4,missing_nics=1)").network)) is None


def classes(topology: Topology) -> list[int]:
    """Sizes of the classes of a network."""
    nodes = [(node.kind, node.multicast) for node in topology.nodes]
    links = [(link.bandwidth_Bps, link.latency_s) for link in topology.links]
    return sorted(map(len, link_orbits(nodes, topology.link_ends, links)))


@pytest.mark.parametrize(
    ("network", "sizes"),
    [("ring(7)", [7]), ("torus(4,4)", [32]), ("path(5)", [2, 2]), ("mesh(3,3)", [4, 8]), ("a100(boxes=2)", [16, 16])],
)
def test_known_networks(network: str, sizes: list[int]) -> None:
    """The classes of regular networks are those that everybody sees."""
    topology = load(network).network
    assert isinstance(topology, Topology)
    assert classes(topology) == sizes


def test_classes_are_orbits_of_all_symmetries():
    """On small random networks no class joins links that no permutation of the nodes exchanges."""
    random = Random(1)  # noqa: S311 (networks, no secrets)
    for _ in range(20):
        size = random.randint(3, 5)
        ends = [(a, b) for a in range(size) for b in range(size) if a != b and random.random() < 0.6]
        links = [random.randint(0, 1) for _ in ends]
        if not ends:
            continue
        label = dict(zip(ends, links, strict=True))
        group = [p for p in permutations(range(size)) if {(p[a], p[b]): x for (a, b), x in label.items()} == label]
        for members in link_orbits([0] * size, ends, links):
            a, b = members[0]
            images = {(min(p[a], p[b]), max(p[a], p[b])) for p in group}
            assert images >= set(members)


def test_colours_of_nodes_are_kept():
    """A node of another colour makes the links round it another class."""
    ends = [(i, (i + 1) % 4) for i in range(4)] + [((i + 1) % 4, i) for i in range(4)]
    assert sorted(map(len, link_orbits([1, 0, 0, 0], ends, [0] * 8))) == [2, 2]


@pytest.mark.parametrize(
    ("spec", "count"),
    [("mesh(4,6)", 2), ("mesh(4,5)", 1), ("mesh(5,5)", 0), ("mesh(2,3,4)", 2), ("torus(4,4)", 4), ("ring(6)", 1)],
)
def test_reflections(spec, count):
    """Every even side of a mesh has a reflection; they commute, and none of their products fixes a rank or a link."""
    network = ColouredNetwork.of(load(spec).network)
    motions = find_reflections(network)
    assert len(motions) == count
    ranks, links = np.arange(network.nodes)[None], np.arange(len(network.tail))[None]
    for translation, moved in motions:
        assert all(
            np.array_equal(translation.image[other.image], other.image[translation.image]) for other, _ in motions
        )
        assert np.array_equal(network.tail[moved], translation.image[network.tail])
        ranks, links = (
            np.concatenate([all_, image[all_]]) for all_, image in ((ranks, translation.image), (links, moved))
        )
    assert len(ranks) == 2**count
    assert all((np.diff(np.sort(column, axis=0), axis=0) > 0).all() for column in (ranks, links))
