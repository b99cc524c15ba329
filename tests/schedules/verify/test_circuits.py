"""Circuits: a chunk holds every link of its way for latency and wire together; what does not keep to that is told."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from cwb.core.bounds import EpochCut, EpochPartition
from cwb.core.collective import Collective, Demand
from cwb.core.instance import Instance
from cwb.core.schedule import Chunks, Schedule, sends_from_lists
from cwb.core.timing import Semantics, Timing
from cwb.core.topology import Link, Node, NodeKind, Topology
from cwb.schedules import verdict_of
from cwb.schedules.epoch_bounds import recomputed_epochs
from cwb.schedules.verify import verify

S, SIZE = Fraction(1), Fraction(3)


def star(*, multicast: bool = False) -> Topology:
    """Three ranks on a switch: a byte takes a second, and 2 s of latency in all."""
    nodes = (*(Node(str(rank)) for rank in range(3)), Node("s", NodeKind.SWITCH, multicast))
    ups = tuple(Link(str(rank), "s", Fraction(1), S) for rank in range(3))
    return Topology(nodes, (*ups, *(Link("s", str(rank), Fraction(1), S) for rank in range(3))))


def line() -> Topology:
    """Three ranks in a row."""
    nodes = tuple(Node(str(rank)) for rank in range(3))
    ends = ((0, 1), (1, 0), (1, 2), (2, 1))
    return Topology(nodes, tuple(Link(str(a), str(b), Fraction(1), S) for a, b in ends))


def make_instance(network: Topology) -> Instance:
    """An all-gather of one byte from each, in ticks of a second."""
    demand = Demand(Collective.ALL_GATHER, SIZE)
    return Instance("circuits", network, demand, timing=Timing(Semantics.CIRCUIT, Fraction(1)))


def timed_schedule(instance: Instance, sends: list[tuple[int, int, int, tuple[int, ...], float, float]]) -> Schedule:
    """Schedule of ``(chunk, source, target, path, start, end)``."""
    chunk, source, target, path, start, end = zip(*sends, strict=True)
    ones = np.ones(3, dtype=np.int64)
    chunks = Chunks(ones, Fraction(1), ((0,), (1,), (2,), (0, 1, 2)), np.arange(3), 3 * ones, ones < 0)
    return Schedule(
        instance.sha256, chunks, sends_from_lists(chunk, source, target, False, path), np.array(start), np.array(end)
    )


#: Over the line: 2 s for each send.
GOOD_LINE = [(0, 0, 1, (0,), 0.0, 2.0), (1, 1, 0, (1,), 0.0, 2.0), (1, 1, 2, (2,), 0.0, 2.0), (2, 2, 1, (3,), 0.0, 2.0),
             (0, 1, 2, (2,), 2.0, 4.0), (2, 1, 0, (1,), 2.0, 4.0)]  # fmt: skip

#: Over the switch: 3 s for each send, port by port.
GOOD_STAR = [(r, r, (r + k) % 3, (r, 3 + (r + k) % 3), 3.0 * (k - 1), 3.0 * k) for k in (1, 2) for r in range(3)]


def kinds(instance: Instance, sends) -> set[str]:
    """Kinds of violations."""
    return set(verify(instance, timed_schedule(instance, sends)).counts)


def change_send(sends, index: int, **values):
    """Replace some fields of one send."""
    names = ("chunk", "source", "target", "path", "start", "end")
    row = {**dict(zip(names, sends[index], strict=True)), **values}
    return [*sends[:index], tuple(row[name] for name in names), *sends[index + 1 :]]


def test_right_schedules_are_accepted_and_measured():
    """The time is that of the last arrival, whatever a simulator would make of it."""
    for network, sends, seconds in ((line(), GOOD_LINE, 4.0), (star(), GOOD_STAR, 6.0)):
        verdict = verdict_of(make_instance(network), timed_schedule(make_instance(network), sends))
        assert not verdict.violations
        assert verdict.objective == seconds


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"start": 1.0, "end": 3.0}, "capacity"),  # the link is still taken, by its latency too
        ({"start": 2.5, "end": 4.5}, "grid"),
        ({"end": 5.0}, "grid"),
        ({"end": 3.0}, "grid"),
        ({"path": (0,)}, "path"),
    ],
)
def test_wrong_times_and_links_are_told(change, kind):
    """A link that is still taken, times between ticks, sends that are too quick or too slow, and other links."""
    assert kind in kinds(make_instance(line()), change_send(GOOD_LINE, 4, **change))


def test_data_must_have_arrived():
    """Data that arrives at an instant can be sent on then, but not a tick before."""
    early = change_send(GOOD_LINE, 0, start=1.0, end=3.0)
    assert kinds(make_instance(line()), early) == {"not-held"}


def test_ranks_do_not_pass_on_within_a_circuit():
    """A path over a rank in between would take less than two sends."""
    through = [*GOOD_LINE[:4], (0, 0, 2, (0, 2), 2.0, 5.0), GOOD_LINE[5]]
    assert "path" in kinds(make_instance(line()), through)


def test_a_switch_has_one_chunk_at_a_port():
    """Two chunks into one rank at once are too many; at half of the rate, and in twice the time on the wire, both
    fit."""
    both = [(0, 0, 2, (0, 5), 0.0, 3.0), (1, 1, 2, (1, 5), 0.0, 3.0)]
    rest = [row for row in GOOD_STAR if row[2] != 2]
    slow = [(chunk, source, target, path, 0.0, 4.0) for chunk, source, target, path, _, _ in both]
    later = [(chunk, source, target, path, start + 6, end + 6) for chunk, source, target, path, start, end in rest]
    assert kinds(make_instance(star()), [*both, *later]) == {"capacity"}
    assert not kinds(make_instance(star()), [*slow, *later])
    third = [*slow, (0, 0, 1, (0, 4), 0.0, 3.0)]
    assert "capacity" in kinds(make_instance(star()), third)


@pytest.mark.parametrize("multicast", [False, True])
def test_multicast(multicast):
    """A switch with multicast is sent a chunk once for all; another one is not."""
    sends = [(r, r, (r + k) % 3, (r, 3 + (r + k) % 3), 3.0 * r, 3.0 * r + 3) for r in range(3) for k in (1, 2)]
    assert kinds(make_instance(star(multicast=multicast)), sends) == (set() if multicast else {"capacity"})


def test_times_beyond_32_bits():
    """Very short ticks are counted exactly too."""
    instance = make_instance(line()).with_changes(timing=Timing(Semantics.CIRCUIT, Fraction(1, 10**10)))
    assert not kinds(instance, GOOD_LINE)
    assert kinds(instance, change_send(GOOD_LINE, 4, start=2 - 1e-9, end=4 - 1e-9)) == {"not-held", "capacity"}


def test_chunks_are_whole():
    """Chunks are those of the demand, not parts of them."""
    instance = make_instance(line())
    schedule = timed_schedule(instance, GOOD_LINE)
    halves = replace(schedule.chunks, unit_bytes=Fraction(1, 2))
    assert "size" in verify(instance, replace(schedule, chunks=halves)).counts


def test_bounds_round_ticks_down():
    """On ticks that are no part of a link's 2 s, a cut proves no more than what holds without ticks, and links of no
    tick prove nothing."""
    for epoch in (Fraction(3, 2), Fraction(4, 5), Fraction(1, 7), Fraction(3)):
        instance = make_instance(line()).with_changes(timing=Timing(Semantics.CIRCUIT, epoch))
        cut = recomputed_epochs(instance, EpochCut((2,), 2)) * epoch
        assert 4 - 4 * epoch < cut <= 4
        reduced = instance.with_changes(demand=replace(instance.demand, collective=Collective.ALL_REDUCE))
        parts = recomputed_epochs(reduced, EpochPartition(((0,), (1,), (2,)))) * epoch
        assert parts <= 6


def test_a_link_that_is_too_slow_for_the_ticks_is_not_used():
    """A link of 10^30 ticks is counted as more than a schedule may take, and a send over it is refused, however
    long."""
    network = line()
    links = (*network.links[:3], replace(network.links[3], bandwidth_Bps=Fraction(1, 10**30)))
    instance = make_instance(replace(network, links=links))
    assert kinds(instance, GOOD_LINE) == {"grid"}
    assert kinds(instance, change_send(GOOD_LINE, 3, end=float(2**50))) == {"grid"}
    assert recomputed_epochs(instance, EpochCut((2,), 2)) == 4


def test_every_send_has_the_ticks_of_its_own_links():
    """Ways over switches are counted once for links that are alike: with a slower port, each send alone is found too
    quick."""
    network = star()
    links = tuple(
        replace(link, latency_s=2 * S) if "2" in (link.source, link.target) else link for link in network.links
    )
    instance = make_instance(replace(network, links=links))
    sends = [
        (chunk, a, b, path, 4.0 * (start > 0), 4.0 * (start > 0) + 3 + (2 in (a, b)))
        for chunk, a, b, path, start, _ in GOOD_STAR
    ]
    assert not kinds(instance, sends)
    for index, (*_, end) in enumerate(sends):
        assert kinds(instance, change_send(sends, index, end=end - 1)) == {"grid"}


def test_rounded_ways_over_switches_may_be_slow():
    """If a path takes less than a tick at several rates, the slowest counts, which occupies the links least."""
    instance = make_instance(star()).with_changes(timing=Timing(Semantics.CIRCUIT, Fraction(100)))
    assert not kinds(instance, [(c, a, b, path, 0.0, 100.0) for c, a, b, path, _, _ in GOOD_STAR])
