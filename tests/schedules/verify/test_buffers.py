"""Ranks with limited room: the verifier counts what they hold for others, and refuses schedules that hold more."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from cwb.core.collective import Demand, collective_named
from cwb.core.instance import Instance
from cwb.core.schedule import Chunks, Schedule, sends_from_lists
from cwb.core.timing import Semantics, Timing
from cwb.core.topology import Link, Node, NodeKind, Topology
from cwb.schedules import verdict_of
from draws import draws
from hypothesis import given, settings
from hypothesis import strategies as st

US = Fraction(1, 10**6)
GB = Fraction(10**9)
A_B, B_C, C_B, B_A = range(4)


def chain(room=None, kind="broadcast", chunks=2, ranks=(0, 2), fluid=False, middle=NodeKind.COMPUTE) -> Instance:
    """Nodes a, b, c in a row, fast links, chunks of 1 kB; b may hold so many of them for others."""
    limit = None if room is None else Fraction(1000) * room
    nodes = (Node("a"), Node("b", middle, middle is NodeKind.SWITCH, limit), Node("c"))
    ends = [("a", "b"), ("b", "c"), ("c", "b"), ("b", "a")]
    topology = Topology(nodes, tuple(Link(x, y, 4 * GB) for x, y in ends))
    demand = Demand(collective_named(kind), Fraction(1000) * chunks, chunks, ranks)
    return Instance("chain", topology, demand, timing=Timing(Semantics.TE_CCL, US, fluid))


def schedule(instance, hops, *, reduce=False) -> Schedule:
    """Sends given as (chunk, link, index of the start); every link takes an epoch."""
    demand = instance.demand
    group, count = tuple(sorted(demand.ranks)), demand.chunks
    root = (demand.ranks[0],)
    groups = (group, root) if reduce else (root, group)
    ends = instance.network.link_ends
    chunks = Chunks(
        np.ones(count, dtype=np.int64),
        Fraction(1000),
        groups,
        np.zeros(count, dtype=np.int64),
        np.ones(count, dtype=np.int64),
        np.full(count, reduce),
    )
    links = [link for _, link, _ in hops]
    sends = sends_from_lists(
        [chunk for chunk, _, _ in hops],
        [ends[e][0] for e in links],
        [ends[e][1] for e in links],
        reduce,
        [(e,) for e in links],
    )
    start = np.array([index for _, _, index in hops], dtype=float) * 1e-6
    return Schedule(instance.sha256, chunks, sends, start, start + 1e-6)


def is_right(instance, hops, **kind) -> bool:
    """Check if the verifier accepts a schedule; any violations are about buffers alone."""
    violations = verdict_of(instance, schedule(instance, hops, **kind)).violations
    assert all("buffer" in violation for violation in violations), violations
    return not violations


TOGETHER = [(0, A_B, 0), (1, A_B, 0), (0, B_C, 1), (1, B_C, 2)]
IN_TURN = [(0, A_B, 0), (0, B_C, 1), (1, A_B, 1), (1, B_C, 2)]
WAITS = [(0, A_B, 0), (0, B_C, 3), (1, A_B, 1), (1, B_C, 2)]
LATE = [(0, A_B, 0), (0, B_C, 2), (1, A_B, 2), (1, B_C, 3)]
HANDS_OVER = [(0, A_B, 0), (0, B_C, 2), (1, A_B, 1), (1, B_C, 2)]
HANDS_OVER_SPLIT = [(0, A_B, 0), (0, B_C, 2), (1, A_B, 1), (1, B_C, 3)]
AGAIN = [(0, A_B, 0), (1, A_B, 1), (1, B_C, 2), (0, A_B, 2), (0, B_C, 3)]


@pytest.mark.parametrize(
    ("hops", "room", "right"),
    [
        (TOGETHER, 2, True),
        (TOGETHER, 1, False),
        (IN_TURN, 1, True),
        (IN_TURN, 0, True),
        (WAITS, 2, True),
        (WAITS, 1, False),
        (LATE, 1, True),
        (LATE, 0, False),
        (HANDS_OVER, 1, False),
        (HANDS_OVER, 2, True),
        (AGAIN, 1, True),
        (AGAIN, 0, True),
    ],
)
def test_what_a_rank_holds_for_others(hops, room, right):
    """Two chunks at once need room for two; with room for none a rank passes on at once; what is dropped and comes
    again takes no room in between."""
    assert is_right(chain(), hops)
    assert is_right(chain(room), hops) is right


def test_its_own_data_takes_no_room():
    """A rank's own and needed data take no room; without any room it forwards at once even needed data."""
    group = (0, 1, 2)
    assert is_right(chain(1, ranks=group), TOGETHER)
    assert is_right(chain(1, ranks=group), WAITS)
    assert not is_right(chain(0, ranks=group), WAITS)
    assert is_right(chain(0, ranks=group), IN_TURN)
    own = [(0, B_A, 3), (0, B_C, 5), (1, B_A, 0), (1, B_C, 1)]
    assert is_right(chain(0, ranks=(1, 0, 2)), own)


def test_parts_of_chunks_make_room_at_once():
    """If chunks may be split, departures at an index make room for arrivals at it; whole chunks do not."""
    assert is_right(chain(1, fluid=True), HANDS_OVER_SPLIT)
    assert not is_right(chain(1), HANDS_OVER_SPLIT)
    assert is_right(chain(1, fluid=True), WAITS)
    assert not is_right(chain(1, fluid=True), [(0, A_B, 0), (0, B_C, 3), (1, A_B, 1), (1, B_C, 3)])


def test_split_chunks_make_room_in_switches_at_once():
    """If chunks may be split, departures from a switch make room for arrivals at the same index."""
    for room, hops, right in [
        (1, HANDS_OVER_SPLIT, True),
        (1, [(0, A_B, 0), (0, B_C, 1), (1, A_B, 0), (1, B_C, 1)], True),
        (0, [(0, A_B, 0), (0, B_C, 1), (1, A_B, 0), (1, B_C, 1)], True),
        (1, TOGETHER, True),
        (1, [(0, A_B, 0), (0, B_C, 3), (1, A_B, 1), (1, B_C, 3)], False),
        (2, [(0, A_B, 0), (0, B_C, 3), (1, A_B, 1), (1, B_C, 3)], True),
    ]:
        assert is_right(chain(room, ranks=(0, 1), fluid=True, middle=NodeKind.SWITCH), hops) is right


def test_a_schedule_without_sends_is_told_what_is_missing():
    """Nothing is sent: the verifier says who lacks what."""
    assert "missing" in " ".join(verdict_of(chain(1), schedule(chain(1), [])).violations)


def test_contributions_that_wait():
    """A rank with room for nothing adds a contribution to its own at the index at which it arrives, and not later."""
    for late, right in ((1, True), (2, False)):
        hops = [(0, C_B, 0), (0, B_A, late)]
        assert is_right(chain(0, "reduce", 1, (0, 1, 2)), hops, reduce=True) is right
        assert is_right(chain(1, "reduce", 1, (0, 1, 2)), hops, reduce=True)
        assert is_right(chain(0, "reduce", 1, (0, 2)), hops, reduce=True) is right


def count_stored(hops, index, chunks, last):
    """Chunks at b at an index, by trying every index: one is there if it has come and is sent later, without coming
    again first."""
    count = 0
    for chunk in range(chunks):
        came = [k + 1 for c, link, k in hops if c == chunk and link == A_B]
        left = [k for c, link, k in hops if c == chunk and link == B_C]
        sent_before_it_comes_again = False
        for k in range(index, last):
            sent_before_it_comes_again = sent_before_it_comes_again or (
                k in left and not any(index < a <= k for a in came)
            )
        here = index in came or (any(a <= index for a in came) and sent_before_it_comes_again)
        count += here
    return count


@settings(max_examples=draws(100))
@given(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from([A_B, B_C]), st.integers(0, 6)), max_size=10, unique=True),
    st.integers(1, 3),
)
def test_as_many_as_counted_index_by_index(hops, room):
    """The verifier finds too many chunks exactly where a count at every index does."""
    hops = sorted(
        hop for hop in hops if hop[1] == A_B or any(c == hop[0] and k < hop[2] for c, link, k in hops if link == A_B)
    )
    if any(count > 4 for count in Counter((link, k) for _, link, k in hops).values()):
        return
    instance = chain(room, chunks=3)
    found = verdict_of(instance, schedule(instance, hops)).violations
    too_many = any(count_stored(hops, index, 3, 9) > room for index in range(9))
    assert any("buffer" in violation for violation in found) is too_many
