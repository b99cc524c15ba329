"""Schedules backwards and one after the other."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from cwb.algorithms.schedules.compose import (
    concatenate,
    reduce_then_broadcast,
    reverse,
    reverse_links,
    reverse_trees,
    transpose,
)
from cwb.core.budget import Budget
from cwb.core.collective import Collective, Demand, collective_named
from cwb.core.errors import InputError, Unsupported
from cwb.core.instance import Instance
from cwb.core.topology import Link, Node, NodeKind, Topology
from cwb.core.trees import TreeKind, TreePacking
from cwb.heuristics.textbook.rings import RING, RingOptions
from cwb.instances import load
from cwb.schedules.verify import heaviest_load, verify
from cwb.schedules.verify.network import network_of
from cwb.schedules.verify.trees import link_units


def gather(topology: Topology, kind: str = "all_gather", size: int = 840):
    posed = load("ring(3)").with_changes(network=topology, demand=Demand(collective_named(kind), Fraction(size), 2))
    return RING.run(posed, None, Budget(), RingOptions()).answer


def paths_are_right(topology: Topology, schedule) -> bool:
    sends = schedule.sends
    for s in range(len(sends)):
        ends = [topology.link_ends[link] for link in sends.path(s)]
        here = int(sends.source[s])
        for source, target in ends:
            if source != here:
                return False
            here = target
        if here != sends.target[s]:
            return False
    return True


@pytest.mark.parametrize("network", ["ring(5)", "line(4)", "torus(3,2)", "switch(4)"])
def test_reversed_twice_is_the_same(network):
    """Reversing is its own inverse in steps, ends and links; the reversed schedule takes the links back and swaps what
    is held and needed."""
    topology = load(network).network
    schedule = gather(topology)
    back = reverse(schedule, topology)
    assert paths_are_right(topology, back)
    assert back.sends.reduce.all()
    assert back.chunks.reduced.all()
    assert (back.chunks.held_by == schedule.chunks.needed_by).all()
    assert (back.step == schedule.steps - 1 - schedule.step).all()
    plain = replace(back.sends, reduce=~back.sends.reduce)
    chunks = replace(back.chunks, reduced=~back.chunks.reduced)
    again = reverse(replace(back, sends=plain, chunks=chunks), topology)
    assert (again.sends.path_links == schedule.sends.path_links).all()
    assert (again.step == schedule.step).all()


def test_one_way_links_are_reversed_on_the_transposed_network():
    """A schedule for the transposed network, backwards, runs on the links of the network itself; without it, the
    missing link is named."""
    topology = load("ring(5, bidirectional=false)").network
    assert transpose(transpose(topology)) == topology
    back = reverse(gather(transpose(topology)))
    assert paths_are_right(topology, back)
    with pytest.raises(Unsupported, match="has no opposite link"):
        reverse(gather(topology), topology)


def test_parallel_links_have_their_own_reverse():
    """The k-th of parallel links goes back over the k-th one there."""
    two = load("ring(2)").network
    doubled = Topology(two.nodes, two.links * 2)
    assert reverse_links(doubled).tolist() == [1, 0, 3, 2]


def test_a_reduction_cannot_be_reversed():
    """Only copies run backwards."""
    topology = load("ring(4)").network
    with pytest.raises(InputError, match="cannot be reversed"):
        reverse(gather(topology, "reduce_scatter"), topology)


def test_reduce_scatter_and_all_gather_make_an_all_reduce():
    """The second schedule's steps follow the first one's; chunks are held by all, needed by all, and summed."""
    topology = load("ring(4)").network
    forth = gather(topology)
    both = concatenate(reverse(forth, topology), forth)
    assert both.steps == 2 * forth.steps
    assert both.chunks.reduced.all()
    everyone = both.chunks.groups.index((0, 1, 2, 3))
    assert set(both.chunks.held_by.tolist()) == set(both.chunks.needed_by.tolist()) == {everyone}
    assert paths_are_right(topology, both)


def test_what_does_not_fit_together_is_refused():
    """Chunks of other sizes, and a second schedule that starts where the first does not end."""
    topology = load("ring(4)").network
    forth = gather(topology)
    with pytest.raises(InputError, match="chunks of the two"):
        concatenate(reverse(forth, topology), gather(topology, size=420))
    with pytest.raises(InputError, match="does not start where"):
        concatenate(forth, forth)


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
    loads = [[units * part.unit_bytes for units in link_units(part, network)[0]] for part in (both, back, out)]
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
