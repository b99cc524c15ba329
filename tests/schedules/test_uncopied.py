"""Chunks that may be split over a switch that has room for nothing: what every target gets is counted by itself, index by index."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from cwb.core.collective import CollectiveKind, Demand
from cwb.core.instance import Instance
from cwb.core.schedule import Chunks, Schedule, sends_from_lists
from cwb.core.timing import BandwidthChange, Semantics, Timing
from cwb.core.topology import Link, Node, NodeKind, Topology
from cwb.schedules import judge

IN, TO_1, TO_2 = range(3)
ENDS = [("0", "w"), ("w", "1"), ("w", "2")]


def violations(hops, middle, *, rates=(1, 1, 1), down=0) -> list[str]:
    """Say what is wrong with hops (link, index) that broadcast a chunk of 1 B, whose links out of w are down at first."""
    topology = Topology(
        (Node("0"), Node("1"), Node("2"), middle),
        tuple(Link(a, b, Fraction(rate)) for (a, b), rate in zip(ENDS, rates, strict=True)),
    )
    changes = tuple(BandwidthChange(link, 0, down, Fraction(0)) for link in (TO_1, TO_2) if down)
    timing = Timing(Semantics.STORE_AND_FORWARD, Fraction(1), True, changes)
    demand = Demand(CollectiveKind.BROADCAST, Fraction(1), 1, (0, 1, 2))
    instance = Instance("star", topology, demand, timing=timing)
    groups = ((0,), (0, 1, 2))
    chunks = Chunks(np.array([1]), Fraction(1), groups, np.array([0]), np.array([1]), np.array([False]))
    ends = topology.link_ends
    links = [link for link, _ in hops]
    sources, heads = ([ends[e][side] for e in links] for side in (0, 1))
    sends = sends_from_lists([0] * len(hops), sources, heads, False, [(e,) for e in links])
    start = np.array([index for _, index in hops], dtype=float)
    return list(judge(instance, Schedule(instance.sha256, chunks, sends, start, start + 1)).violations)


def switch(buffer) -> Node:
    """A switch with multicast."""
    return Node("w", NodeKind.SWITCH, True, buffer)


WAITS = [(IN, 0), (IN, 2), (TO_1, 3), (TO_2, 3)]


def test_what_a_switch_cannot_store_serves_no_later_send():
    """What came when the links out were down is lost, so that one arrival would have to be copied; with a buffer, two arrivals serve two."""
    assert any(text.startswith("copied") for text in violations(WAITS, switch(Fraction(0)), down=3))
    assert violations(WAITS, switch(None), down=3) == []


@pytest.mark.parametrize("hops", [[(IN, 0), (IN, 1), (TO_1, 1), (TO_2, 2)], [(IN, 0), (TO_1, 1), (TO_2, 1)]])
def test_a_switch_that_passes_on_at_once(hops):
    """What leaves at the index at which it arrives is right: each target in turn, or both at once over a link with room for two."""
    assert violations(hops, switch(Fraction(0)), rates=(2, 1, 1)) == []
    assert (violations(hops, switch(Fraction(0))) == []) is (len(hops) == 4)


def test_a_link_that_is_down_carries_nothing():
    """A send over a link that is down is told as too much for the link."""
    found = violations([(IN, 0), (TO_1, 1), (TO_2, 1)], switch(None), down=3)
    assert any(text.startswith("capacity") for text in found)
