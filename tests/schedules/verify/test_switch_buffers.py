"""Limited switches without multicast: every arrival that is sent on is a copy of its own that takes room."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from fractions import Fraction

import pytest
from cwb.core.timing import Semantics, Timing
from cwb.core.topology import Node, NodeKind
from cwb.schedules.verify import verify
from families import UNIT, instance_of, network, schedule_of
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from slow_replay import is_valid

ROOT, SWITCH = 0, 3
IN, OUT = (ROOT, SWITCH), ((SWITCH, 1), (SWITCH, 2))


def make_instance(room, chunks, clock, *, multicast=False):
    """A root, two ranks and a switch between them that holds so many chunks; links of four chunks an epoch."""
    switch = Node("switch", NodeKind.SWITCH, multicast, None if room is None else room * UNIT)
    topology = network([IN, *OUT, (ROOT, 1), (ROOT, 2)], 3, [switch])
    links = tuple(replace(link, bandwidth_Bps=4 * link.bandwidth_Bps) for link in topology.links)
    instance = instance_of(replace(topology, links=links), "broadcast", chunks)
    if clock != "epochs":
        return instance
    timing = Timing(Semantics.STORE_AND_FORWARD, Fraction(1, 10**6))
    return instance.with_changes(timing=timing, demand=replace(instance.demand, chunks=chunks))


def make_schedule(instance, chunks, clock, hops):
    """Sends of hops (chunk, path, start); every send takes a step, a microsecond or an epoch."""
    rows = [(1, [ROOT], range(3), False)] * chunks
    if clock == "steps":
        return schedule_of(instance, rows, [(chunk, path, False, at) for chunk, path, at in hops])
    return schedule_of(instance, rows, [(chunk, path, False, at, at + 1) for chunk, path, at in hops], timed=True)


def kinds(report):
    return {finding.kind for finding in report.violations}


TWICE_IN_TWICE_OUT = [(0, IN, 0), (0, IN, 1), (0, OUT[0], 3), (0, OUT[1], 3)]
ONE_AFTER_THE_OTHER = [(0, IN, 0), (0, OUT[0], 1), (0, IN, 1), (0, OUT[1], 3)]
TOGETHER = [(0, IN, 0), (0, IN, 0), (0, OUT[0], 1), (0, OUT[1], 2)]
ONE_FOR_NOTHING = [(0, IN, 0), (0, IN, 2), (0, OUT[0], 4), (0, (ROOT, 2), 0)]


@pytest.mark.parametrize("clock", ["steps", "times", "epochs"])
@pytest.mark.parametrize(
    ("hops", "most"),
    [(TWICE_IN_TWICE_OUT, 2), (ONE_AFTER_THE_OTHER, 1), (TOGETHER, 2), (ONE_FOR_NOTHING, 1)],
)
def test_what_comes_twice_and_goes_twice_takes_room_for_two(clock, hops, most):
    """Two copies that wait together need room for two; one that has gone, or goes nowhere, takes none later."""
    for room in (None, most, most - 1):
        report = verify(*make_schedule(make_instance(room, 1, clock), 1, clock, hops))
        assert kinds(report) == ({"buffer"} if room == most - 1 else set())


def test_with_multicast_one_copy_serves_all():
    """A switch with multicast keeps one copy however often the chunk arrives."""
    instance = make_instance(1, 1, "steps", multicast=True)
    assert verify(*make_schedule(instance, 1, "steps", TWICE_IN_TWICE_OUT)).ok


def can_be_held(hops, room, order):
    """Check if some choice of dropped data leaves room for all arrivals and copies for all sends.

    Parameters
    ----------
    order : callable
        Maps start to the instants at which a send reads and writes.
    """
    events = defaultdict(list)
    for chunk, path, start in hops:
        read, write = order(start)
        if path == IN:
            events[write].append((1, chunk))
        elif path in OUT:
            events[read].append((-1, chunk))
    states = {(0, 0)}
    for _, changes in sorted(events.items()):
        following = set()
        for state in states:
            kept = {(a, b) for a in range(state[0] + 1) for b in range(state[1] + 1)}  # the others have been dropped
            for copies in kept:
                now = [copies[chunk] + sum(change for change, c in changes if c == chunk) for chunk in (0, 1)]
                if min(now) >= 0 and (sum(now) <= room or changes[0][0] < 0):
                    following.add(tuple(now))
        states = following
    return bool(states)


ORDERS = {
    "steps": lambda start: (2 * start, 2 * start + 1),
    "times": lambda start: (2 * start + 1, 2 * start + 2),
    "epochs": lambda start: (2 * start + 1, 2 * start + 2),
}


@pytest.mark.slow
@pytest.mark.parametrize("clock", ["steps", "times", "epochs"])
@settings(suppress_health_check=[HealthCheck.filter_too_much])  # many hops are of no schedule
@given(data=st.data())
def test_as_much_as_the_best_choice_of_what_to_drop(clock, data):
    """The verifier, and the slow replay, find a switch too full exactly where no choice of copies to drop fits."""
    hop = st.tuples(st.integers(0, 1), st.sampled_from([IN, IN, *OUT]), st.integers(0, 5))
    hops = data.draw(st.lists(hop, min_size=2, max_size=9))
    for path, most in ((IN, 4), *((path, 4) for path in OUT)):
        assume(all(sum(h[1] == path and h[2] == at for h in hops) <= most for at in range(6)))
    assume(can_be_held(hops, 99, ORDERS[clock]))
    hops += [(chunk, (ROOT, rank), 6) for chunk in (0, 1) for rank in (1, 2)]
    room = data.draw(st.integers(1, 4))
    instance, answer = make_schedule(make_instance(room, 2, clock), 2, clock, hops)
    found = kinds(verify(instance, answer))
    assert found <= {"buffer"}
    assert (not found) == can_be_held(hops, room, ORDERS[clock])
    if clock != "epochs":
        assert is_valid(instance, answer) == (not found)
