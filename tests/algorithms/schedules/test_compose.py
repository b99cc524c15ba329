"""Schedules backwards and one after the other."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from cwb.algorithms.schedules.compose import concatenate, reverse, reverse_links, transpose
from cwb.core.budget import Budget
from cwb.core.collective import Demand, collective_named
from cwb.core.errors import InputError, Unsupported
from cwb.core.topology import Topology
from cwb.heuristics.textbook.rings import RING, RingOptions
from cwb.instances import load


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
