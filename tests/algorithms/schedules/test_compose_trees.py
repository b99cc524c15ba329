"""Packings made of packings."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from cwb.algorithms.schedules.compose import reduce_then_broadcast, reverse_trees, transpose
from cwb.core.collective import Collective, Demand
from cwb.core.errors import InputError, Unsupported
from cwb.core.instance import Instance
from cwb.core.topology import Link, Node, NodeKind, Topology
from cwb.core.trees import TreeKind, TreePacking
from cwb.schedules.verify import heaviest_load, verify
from cwb.schedules.verify.network import network_of
from cwb.schedules.verify.trees import link_units

RATE = Fraction(10**9)
SIZE = Fraction(4 * 10**6)


def star(ranks=4, one_way=False):
    """Ranks on a switch, or round a ring of one-way links."""
    nodes = [Node(f"n{i}") for i in range(ranks)]
    if one_way:
        links = [Link(f"n{i}", f"n{(i + 1) % ranks}", RATE) for i in range(ranks)]
        return Topology(tuple(nodes), tuple(links))
    ends = [pair for node in nodes for pair in ((node.name, "s"), ("s", node.name))]
    return Topology((*nodes, Node("s", NodeKind.SWITCH)), tuple(Link(a, b, RATE) for a, b in ends))


def make_instance(topology, kind):
    return Instance("x", topology, Demand(kind, SIZE))


def stars(instance, units):
    """A star of two-link paths from every root, given as (root, units)."""
    ranks = instance.npus
    link = {ends: i for i, ends in enumerate(instance.network.link_ends)}
    leaves = [(root, rank) for root, _ in units for rank in range(ranks) if rank != root]
    return TreePacking(
        instance.sha256,
        TreeKind.OUT,
        np.array([root for root, _ in units]),
        np.array([count for _, count in units]),
        SIZE / sum(count for _, count in units),
        np.arange(len(units) + 1) * (ranks - 1),
        np.array([root for root, _ in leaves]),
        np.array([leaf for _, leaf in leaves]),
        2 * np.arange(len(leaves) + 1),
        np.array([at for root, leaf in leaves for at in (link[root, ranks], link[ranks, leaf])]),
    )


def chains(instance, units):
    """A chain round a one-way ring from every root, given as (root, units)."""
    ranks = instance.npus
    parent = np.array([(root + k) % ranks for root, _ in units for k in range(ranks - 1)])
    return TreePacking(
        instance.sha256,
        TreeKind.OUT,
        np.array([root for root, _ in units]),
        np.array([count for _, count in units]),
        SIZE / sum(count for _, count in units),
        np.arange(len(units) + 1) * (ranks - 1),
        parent,
        (parent + 1) % ranks,
        np.arange(len(parent) + 1),
        parent,
    )


def test_turned_around_along_the_links_back():
    """An all-gather along paths through a switch becomes a reduce-scatter with the same load, and back again the same
    all-gather."""
    topology = star()
    gather, scatter = (make_instance(topology, kind) for kind in (Collective.ALL_GATHER, Collective.REDUCE_SCATTER))
    out = stars(scatter, [(root, 1) for root in range(4)])
    back = reverse_trees(out, topology)
    assert verify(scatter, back).ok
    assert heaviest_load(scatter, back) == heaviest_load(scatter, out)
    again = stars(gather, [(root, 1) for root in range(4)])
    assert verify(gather, again).ok
    assert (reverse_trees(reverse_trees(again, topology), topology).path_links == again.path_links).all()


def test_turned_around_for_the_transposed_network():
    """Chains of the transposed one-way ring reduce on the ring itself, along the same links; on the ring there is no
    link back."""
    topology = star(4, one_way=True)
    turned = make_instance(transpose(topology), Collective.REDUCE_SCATTER)
    ranks = 4
    chain = chains(make_instance(topology, Collective.REDUCE_SCATTER), [(root, 1) for root in range(ranks)])
    # The chain of the transposed ring runs the other way: link k leads from k + 1 to k.
    back = TreePacking(
        turned.with_changes(network=topology).sha256,
        TreeKind.OUT,
        chain.root,
        chain.units,
        chain.unit_bytes,
        chain.edge_offset,
        (2 * np.repeat(chain.root, ranks - 1) - chain.parent) % ranks,
        (2 * np.repeat(chain.root, ranks - 1) - chain.child) % ranks,
        chain.path_offset,
        (2 * np.repeat(chain.root, ranks - 1) - chain.child) % ranks,
    )
    assert verify(turned.with_changes(network=topology), reverse_trees(back)).ok
    with pytest.raises(Unsupported, match="has no opposite link"):
        reverse_trees(chain, topology)


def test_a_reduction_and_a_broadcast_are_an_all_reduce():
    """In-trees and out-trees that cut the data of their roots differently are cut at the ends of both, and load as much
    as before."""
    topology = star()
    instance = make_instance(topology, Collective.ALL_REDUCE)
    out = stars(instance, [(2, 5), (0, 3), (2, 1), (1, 3)])
    back = reverse_trees(stars(instance, [(0, 1), (1, 1), (2, 1), (2, 1)]), topology)
    both = reduce_then_broadcast(back, out)
    assert verify(instance, both).ok
    assert both.root.tolist() == [0, 1, 2, 2, 2]
    assert both.units.tolist() == [3, 3, 3, 2, 1]
    network = network_of(instance)
    loads = [[units * part.unit_bytes for units in link_units(part, network)] for part in (both, back, out)]
    assert loads[0] == [a + b for a, b in zip(*loads[1:], strict=True)]


def test_what_does_not_belong_together_is_refused():
    """Other kinds, and other data at a root, are errors of one line."""
    topology = star()
    instance = make_instance(topology, Collective.ALL_REDUCE)
    out = stars(instance, [(0, 1), (1, 1)])
    with pytest.raises(InputError, match="expected in-trees and out-trees"):
        reduce_then_broadcast(out, out)
    with pytest.raises(InputError, match="different data"):
        reduce_then_broadcast(reverse_trees(stars(instance, [(0, 1), (1, 2)]), topology), out)
    both = reduce_then_broadcast(reverse_trees(out, topology), out)
    with pytest.raises(InputError, match="cannot be reversed"):
        reverse_trees(both, topology)
