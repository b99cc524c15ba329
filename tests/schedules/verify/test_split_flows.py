"""Chunks that may be split over a switch with little room: what every target gets is counted by itself, index by
index."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from cwb.core.collective import Collective, Demand
from cwb.core.instance import Instance
from cwb.core.schedule import Chunks, Schedule, sends_from_lists
from cwb.core.timing import BandwidthChange, Semantics, Timing
from cwb.core.topology import Link, Node, NodeKind, Topology
from cwb.schedules import verdict_of
from draws import draws
from hypothesis import given, settings
from hypothesis import strategies as st

IN, TO_1, TO_2, TO_3 = range(4)


def violations(hops, middle, *, other=(), rates=(1, 1, 1), down=0) -> list[str]:
    """Say what is wrong with hops (link, index) that broadcast a chunk of 1 B, and other ones a second; links out of w
    are down at first."""
    targets = len(rates) - 1
    nodes = tuple(Node(str(rank)) for rank in range(targets + 1))
    ends = [("0", "w"), *(("w", str(target + 1)) for target in range(targets))]
    links = tuple(Link(a, b, Fraction(rate)) for (a, b), rate in zip(ends, rates, strict=True))
    topology = Topology((*nodes, middle), links)
    changes = tuple(BandwidthChange(link, 0, down, Fraction(0)) for link in range(1, targets + 1) if down)
    timing = Timing(Semantics.STORE_AND_FORWARD, Fraction(1), True, changes)
    group, count = tuple(range(targets + 1)), 2 if other else 1
    demand = Demand(Collective.BROADCAST, Fraction(count), count, group)
    instance = Instance("star", topology, demand, timing=timing)
    zero, one = np.zeros(count, dtype=np.int64), np.ones(count, dtype=np.int64)
    chunks = Chunks(one, Fraction(1), ((0,), group), zero, one, zero.astype(bool))
    sent = [(0, *hop) for hop in hops] + [(1, *hop) for hop in other]
    sources, heads = ([topology.link_ends[e][side] for _, e, _ in sent] for side in (0, 1))
    sends = sends_from_lists([c for c, _, _ in sent], sources, heads, False, [(e,) for _, e, _ in sent])
    start = np.array([index for _, _, index in sent], dtype=float)
    return list(verdict_of(instance, Schedule(instance.sha256, chunks, sends, start, start + 1)).violations)


def switch(buffer) -> Node:
    """A switch with multicast."""
    return Node("w", NodeKind.SWITCH, True, buffer)


WAITS = [(IN, 0), (IN, 2), (TO_1, 3), (TO_2, 3)]


def test_what_a_switch_cannot_store_serves_no_later_send():
    """Data that arrives while the outgoing links are down is lost; with a buffer, two arrivals serve two sends."""
    assert any(text.startswith("copied") for text in violations(WAITS, switch(Fraction(0)), down=3))
    assert violations(WAITS, switch(None), down=3) == []


@pytest.mark.parametrize("hops", [[(IN, 0), (IN, 1), (TO_1, 1), (TO_2, 2)], [(IN, 0), (TO_1, 1), (TO_2, 1)]])
def test_a_switch_that_passes_on_at_once(hops):
    """Sends at the index of arrival are valid, to one target after the other or to both at once."""
    assert violations(hops, switch(Fraction(0)), rates=(2, 1, 1)) == []
    assert (violations(hops, switch(Fraction(0))) == []) is (len(hops) == 4)


def test_a_link_that_is_down_carries_nothing():
    """A send over a link that is down is told as too much for the link."""
    found = violations([(IN, 0), (TO_1, 1), (TO_2, 1)], switch(None), down=3)
    assert any(text.startswith("capacity") for text in found)


OUT = [(TO_1, 3), (TO_2, 3)]
THREE = (1, 1, 1, 1)


@pytest.mark.parametrize(
    ("hops", "room"),
    [
        ([(IN, 0), (IN, 1), (IN, 2), *OUT, (TO_3, 3)], 2),
        ([(IN, 0), (IN, 2), (IN, 3), *OUT, (TO_3, 4)], 1),
        ([(IN, 0), (IN, 1), (IN, 3), *OUT, (TO_3, 4)], 2),
        ([(IN, 0), (IN, 1), (IN, 2), (IN, 3), *OUT, (TO_3, 4)], 1),
    ],
)
def test_a_limited_switch_keeps_its_own_for_every_target(hops, room):
    """Three targets are served at one index only if all but one have been kept; with room for one it takes five epochs,
    not four."""
    assert violations(hops, switch(Fraction(room)), rates=THREE, down=3) == []
    found = violations(hops, switch(Fraction(room) - Fraction(1, 3)), rates=THREE, down=3)
    assert any(text.startswith("copied: w keeps ") for text in found)


@pytest.mark.parametrize(("first", "second", "room"), [([0, 1], [2, 3], 3), ([0, 3], [2, 4], 2), ([2, 3], [4, 5], 1)])
def test_parts_share_a_limited_switch(first, second, room):
    """Parts of two chunks, kept for both of their targets, are counted together."""
    hops = [*((IN, index) for index in first), (TO_1, 4), (TO_2, 4)]
    other = [*((IN, index) for index in second), (TO_1, 5), (TO_2, max(5, second[-1] + 1))]
    for size in (3, 2, 1):
        found = violations(hops, switch(Fraction(size)), other=other, down=4)
        assert (found == []) is (size >= room), (size, found)


def test_a_limited_rank_keeps_its_own_for_every_target():
    """A rank that only passes a chunk on needs room for each of its targets."""
    hops = [(IN, 0), (IN, 1), *OUT]
    assert any(
        text.startswith("copied: w keeps 2 ") for text in violations(hops, Node("w", buffer_bytes=Fraction(1)), down=3)
    )
    assert violations(hops, Node("w", buffer_bytes=Fraction(2)), down=3) == []


def fits(arrivals: list[int], leaves: list[int], room: int, rate: int) -> bool:
    """Check by enumeration if every target can have its own arrival within the room of the link and the switch."""
    for taken in product(arrivals, repeat=len(leaves)):
        kept = Counter(k for came, left in zip(taken, leaves, strict=True) for k in range(came, left))
        in_time = all(came <= left for came, left in zip(taken, leaves, strict=True))
        if in_time and max(Counter(taken).values()) <= rate and max(kept.values(), default=0) <= room:
            return True
    return False


@settings(max_examples=draws(100))
@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=4, unique=True),
    st.lists(st.integers(1, 6), min_size=3, max_size=3),
    st.integers(1, 2),
    st.integers(1, 2),
)
def test_as_trying_all_arrivals(starts, leaves, room, rate):
    """The verifier refuses what arrives at a limited switch and leaves it exactly where no choice of arrivals fits."""
    leaves = [max(index, min(starts) + 1) for index in leaves]
    hops = [*((IN, index) for index in starts), *zip((TO_1, TO_2, TO_3), leaves, strict=True)]
    found = violations(hops, switch(Fraction(room)), rates=(rate, 1, 1, 1))
    assert all(text.startswith("copied") for text in found)
    assert (found == []) is fits([index + 1 for index in starts], leaves, room, rate)
