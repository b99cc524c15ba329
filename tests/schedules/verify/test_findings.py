"""Findings of the verifier for particular errors."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from cwb.core.errors import InputError
from cwb.core.fabric import parse_fabric
from cwb.core.schedule import StepSchedule
from cwb.schedules.verify import heaviest_load, verify
from cwb.schedules.verify.replay import seen_s, time_order
from families import (
    FAMILIES,
    RATE,
    UNIT,
    chain_trees,
    in_network_all_reduce,
    instance_of,
    multicast_broadcast,
    network,
    recursive_doubling,
    ring_all_gather,
    ring_all_reduce,
    ring_of,
    schedule_of,
    star,
    switched_trees,
)


def kinds(report) -> set[str]:
    return {violation.kind for violation in report.violations}


def test_a_send_before_its_data_is_told_with_place_and_step():
    """The line names what is wrong, the rank, the chunk, the link and the step."""
    instance, answer = ring_all_gather()
    step = answer.step.copy()
    step[1] = 0
    report = verify(instance, replace(answer, step=step))
    assert str(report.violations[0]) == "not-held: n1 does not hold it yet (rank 1, chunk 0, link 1, step 0)"


def test_an_early_start_is_told_with_its_time():
    """A timed violation says when."""
    instance, answer = FAMILIES["timed_ring_all_gather"]()
    start = answer.start_s.copy()
    start[1] -= 2e-7
    report = verify(instance, replace(answer, start_s=start))
    assert str(report.violations[0]).endswith("(rank 1, chunk 0, link 1, at 8e-07 s)")


def test_a_contribution_counted_twice_is_named():
    """A sum with a contribution too many says whose and how often."""
    instance, answer = recursive_doubling(4)
    again = answer.sends.take(np.append(np.arange(len(answer.sends)), 0))
    report = verify(instance, replace(answer, sends=again, step=np.append(answer.step, 0)))
    assert kinds(report) == {"twice"}
    assert "n1 ends with the contribution of n0 2 times" in report.violations[0].message


def test_a_copy_of_a_partial_sum_loses_contributions():
    """A copy where a reduction is meant overwrites what the target has, and everyone then misses it."""
    instance, answer = ring_all_reduce()
    flags = answer.sends.reduce.copy()
    flags[0] = False
    report = verify(instance, replace(answer, sends=replace(answer.sends, reduce=flags)))
    assert kinds(report) == {"missing"}
    assert report.counts["missing"] == 4
    assert "needs the contribution of n2 and does not get it" in report.violations[0].message


def test_an_exponential_double_count_is_refused_at_once():
    """Sums of sums of the same, 2^60 times the contribution, do not take 2^60 steps."""
    instance = instance_of(network([(0, 1), (1, 0)], 2), "all_reduce", 1)
    moves = [(0, (k % 2, (k + 1) % 2), True, k) for k in range(60)]
    report = verify(*schedule_of(instance, [(1, range(2), range(2), True)], moves))
    assert kinds(report) == {"twice"}


def test_a_switch_without_multicast_may_not_copy():
    """A switch without multicast may not send to four ranks, and a smaller buffer does not hold two sums."""
    for make in (multicast_broadcast, in_network_all_reduce):
        instance, answer = make()
        for change, kind in (({"multicast": False}, "multicast"), ({"buffer_bytes": UNIT / 2}, "buffer")):
            nodes = [*instance.network.nodes[:-1], replace(instance.network.nodes[-1], **change)]
            other = instance.with_changes(network=replace(instance.network, nodes=tuple(nodes)))
            assert kind in kinds(verify(other, replace(answer, instance_sha256=other.sha256)))


def test_two_chunks_share_a_link_in_time():
    """Two units fit on a link in two units of time, whatever their order, and not in less."""
    instance = instance_of(network([(0, 1)], 2), "broadcast", 2)
    rows = [(1, [0], [1], False)] * 2
    assert verify(*schedule_of(instance, rows, [(c, (0, 1), False, 0, 2) for c in (0, 1)], timed=True)).ok
    wide = [(0, (0, 1), False, 0, 3), (1, (0, 1), False, 0.5, 1.5)]
    assert verify(*schedule_of(instance, rows, wide, timed=True)).ok
    report = verify(*schedule_of(instance, rows, [(c, (0, 1), False, 0, 1.9) for c in (0, 1)], timed=True))
    assert "n0 -> n1 is over its capacity" in report.violations[0].message
    report = verify(*schedule_of(instance, rows, [(c, (0, 1), False, 2 * c, 2 * c + 0.9) for c in (0, 1)], timed=True))
    assert "cannot do it in less than 1e-06 s" in report.violations[0].message


def test_latency_is_part_of_the_fastest_time():
    """Over two links of half a microsecond, a unit takes two microseconds, and a send of less is refused."""
    instance = instance_of(star(2, latency=Fraction(1, 2 * 10**6)), "all_gather", 2)
    rows = [(1, [c], range(2), False) for c in range(2)]
    for end, ok in ((2.0, True), (1.99, False)):
        moves = [(c, (c, 2, 1 - c), False, 0, end) for c in range(2)]
        assert verify(*schedule_of(instance, rows, moves, timed=True)).ok is ok


@pytest.mark.parametrize("begin", [1.0, np.nextafter(1, 2), 3.0, np.nextafter(3, 4)])
@pytest.mark.parametrize("takes", [1e-13, 1e-300])
def test_rounding_never_lets_a_circle_feed_itself(begin, takes):
    """However small sends are beside their times, each reads before it writes, also where no float lies between."""
    start = np.array([begin, begin])
    end = np.maximum(start + takes, np.nextafter(start, np.inf))
    read, write = time_order(start, end)
    assert (read <= write.min()).all()
    assert (seen_s(start, end) <= end).all()
    assert (seen_s(end, end + 1) > end).all()


def test_useless_sends_are_warnings():
    """A second copy of the same data is not wrong, but told."""
    instance, answer = ring_all_gather()
    again = answer.sends.take(np.append(np.arange(len(answer.sends)), 0))
    report = verify(instance, replace(answer, sends=again, step=np.append(answer.step, 3)))
    assert report.ok
    assert [w.kind for w in report.warnings] == ["useless"]


def test_another_instance_is_refused():
    """A schedule with another digest is wrong, whatever it does."""
    instance, answer = ring_all_gather()
    assert kinds(verify(instance, replace(answer, instance_sha256="0" * 64))) == {"instance"}


@pytest.mark.parametrize("column", ["chunk", "source", "target", "path_links"])
def test_numbers_out_of_range_are_told(column):
    """Unknown chunks, nodes and links end the check with a line, not with a crash."""
    instance, answer = ring_all_gather()
    values = getattr(answer.sends, column).copy()
    for wrong in (99, -1):
        values[3] = wrong
        report = verify(instance, replace(answer, sends=replace(answer.sends, **{column: values})))
        assert kinds(report) == {"range"}
        assert str(wrong) in report.violations[0].message


def test_no_sends_at_all():
    """An empty schedule misses everything and crashes nothing."""
    instance, answer = ring_all_gather()
    empty = answer.sends.take(np.zeros(0, dtype=np.int64))
    report = verify(instance, StepSchedule(instance.sha256, answer.chunks, empty, np.zeros(0, dtype=np.int64)))
    assert kinds(report) == {"missing"}
    assert report.counts["missing"] == 20


def test_a_fabric_is_no_network_to_verify_on():
    """A network of dimensions has no links yet: an input error, not a verdict."""
    instance, answer = ring_all_gather()
    with pytest.raises(InputError, match="nodes and links"):
        verify(instance.with_changes(network=parse_fabric("RI(5)")), answer)


def test_the_heaviest_load_is_exact():
    """Chains both ways round a ring load every link with n - 1 units; in-out trees count both ways."""
    instance, answer = chain_trees(5)
    assert heaviest_load(instance, answer) == 4 * UNIT / RATE
    instance, answer = switched_trees(5)
    assert heaviest_load(instance, answer) == 8 * UNIT / RATE


def test_trees_for_a_collective_that_they_cannot_carry():
    """Out-trees do not carry an all-to-all."""
    _, answer = chain_trees(5)
    other = instance_of(ring_of(5, both=True), "all_to_all", 10)
    assert kinds(verify(other, replace(answer, instance_sha256=other.sha256))) == {"demand"}
