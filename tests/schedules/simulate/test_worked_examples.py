"""The worked examples of the dissertation, section 3.4.2, and times that can be written down in closed form."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from cwb.core.trace import SimulationMode
from cwb.schedules.simulate import simulate, utilization

#: Modes of any sends; shares are of trees alone.
MODES = [mode for mode in SimulationMode if mode is not SimulationMode.SHARES]
UNAWARE, AWARE, CUT, FAIR = MODES


def us(seconds):
    return seconds * 1e6


def test_one_hop_takes_latency_and_serialization_in_every_mode(make):
    """1 MiB over one link of 50 GiB/s and 0.5 us takes 20.03 us (section 3.4.2)."""
    instance = make.line(2)
    schedule = make.steps(instance, [make.MiB], [(0, 0, (0,))])
    for mode in MODES:
        assert us(simulate(instance, schedule, mode).completion_s) == pytest.approx(20.03125, rel=1e-12)


def test_two_flows_do_not_see_each_other_without_congestion(make):
    """Two flows on one link both take 20.03 us in the congestion-unaware model (figure 3.4)."""
    instance = make.line(2)
    schedule = make.steps(instance, [make.MiB] * 2, [(0, 0, (0,)), (0, 1, (0,))])
    trace = simulate(instance, schedule, UNAWARE)
    assert us(trace.end_s) == pytest.approx([20.03125, 20.03125])


def test_two_flows_queue_with_congestion(make):
    """The link is free after 19.53 us and the second flow arrives after 39.56 us (figure 3.5)."""
    instance = make.line(2)
    schedule = make.steps(instance, [make.MiB] * 2, [(0, 0, (0,)), (0, 1, (0,))])
    trace = simulate(instance, schedule, AWARE)
    assert us(trace.end_s) == pytest.approx([20.03125, 39.5625])
    assert us(trace.hop_end_s[0]) == pytest.approx(19.53125)
    assert us(trace.start_s[1]) == pytest.approx(19.53125)
    assert us(trace.link_busy_s) == pytest.approx([39.0625])


def test_three_hops_are_stored_and_forwarded(make):
    """Three hops take 60093 ns link by link and 21031 ns unaware or cut through, as the dissertation's program
    gives."""
    instance = make.line(4)
    schedule = make.steps(instance, [make.MiB], [(0, 0, (0, 1, 2))])
    times = {mode: int(simulate(instance, schedule, mode).completion_s * 1e9) for mode in MODES}
    assert times == {UNAWARE: 21031, AWARE: 60093, CUT: 21031, FAIR: 21031}


@pytest.mark.parametrize("mode", MODES)
def test_ring_all_gather_has_its_closed_form(make, mode):
    """On its own ring an all-gather takes (n - 1) (alpha + S / (n B)) in every mode, with and without barriers."""
    n, latency, bandwidth = 7, Fraction(1, 2**20), 2**30
    instance = make.network(n, [(i, (i + 1) % n, bandwidth, latency) for i in range(n)])
    rows = [(step, (i - step) % n, (i,)) for step in range(n - 1) for i in range(n)]
    schedule = make.steps(instance, [make.MiB] * n, rows)
    for barrier in (False, True):
        trace = simulate(instance, schedule, mode, barrier=barrier)
        assert trace.completion_s == float((n - 1) * (latency + Fraction(make.MiB, bandwidth)))


@pytest.mark.parametrize("mode", MODES)
def test_direct_all_to_all_on_a_complete_graph_takes_one_message(make, mode):
    """If every pair has a link, a direct all-to-all takes alpha + (S / n) / B in every mode."""
    n, latency, bandwidth = 6, Fraction(1, 2**20), 2**30
    pairs = [(a, b) for a in range(n) for b in range(n) if a != b]
    instance = make.network(n, [(a, b, bandwidth, latency) for a, b in pairs])
    schedule = make.steps(instance, [make.MiB] * len(pairs), [(0, i, (i,)) for i in range(len(pairs))])
    expected = latency + Fraction(make.MiB, bandwidth)
    assert simulate(instance, schedule, mode).completion_s == float(expected)


@pytest.mark.parametrize("flows", [1, 2, 3, 7])
def test_flows_share_a_link_fairly(make, flows):
    """k equal flows on one link all end at k S / B + alpha when they share it, and one after the other when they
    queue."""
    instance = make.line(2, 2**30, Fraction(1, 2**20))
    schedule = make.steps(instance, [make.MiB] * flows, [(0, i, (0,)) for i in range(flows)])
    shared = simulate(instance, schedule, FAIR)
    assert shared.end_s == pytest.approx([flows * 2**-10 + 2**-20] * flows)
    queued = simulate(instance, schedule, AWARE)
    assert queued.end_s.tolist() == [(i + 1) * 2**-10 + 2**-20 for i in range(flows)]
    assert shared.link_busy_s == pytest.approx(queued.link_busy_s)


def test_fair_shares_are_max_min(make):
    """A flow over two links leaves what it cannot use: rates 1/2, 1/2 and 3/2 on links of 1 and 2."""
    instance = make.network(3, [(0, 1, 1, 0), (1, 2, 2, 0)])
    schedule = make.steps(instance, [1, 1, 3], [(0, 0, (0, 1)), (0, 1, (0,)), (0, 2, (1,))])
    assert simulate(instance, schedule, FAIR).end_s == pytest.approx([2, 2, 2])


def test_given_order_is_kept(make):
    """A schedule in time is served in the order of its starts, though a later send is ready earlier; times are those of
    the network."""
    instance = make.network(3, [(0, 1, 1, 0), (1, 2, 1, 0)])
    schedule = make.timed(instance, [1, 4], [(0, 1, 0, (0,)), (1, 2, 0, (1,)), (2, 6, 1, (1,))])
    trace = simulate(instance, schedule, AWARE)
    assert trace.start_s.tolist() == [0, 1, 2]
    late = make.timed(instance, [1, 4], [(0, 10, 0, (0,)), (10, 20, 0, (1,)), (20, 30, 1, (1,))])
    assert simulate(instance, late, AWARE).end_s.tolist() == [1, 2, 6]


def test_utilization_adds_up_to_the_busy_seconds(make):
    """Over any number of bins, the utilization of a link sums to its busy seconds; a chain of two hops shows where it
    is when."""
    instance = make.line(3, 1, 0)
    schedule = make.steps(instance, [4], [(0, 0, (0, 1))])
    trace = simulate(instance, schedule, AWARE)
    edges, used = utilization(instance, schedule, trace, 4)
    assert edges.tolist() == [0, 2, 4, 6, 8]
    assert used.tolist() == [[1, 1, 0, 0], [0, 0, 1, 1]]
    for bins in (1, 3, 7, 100):
        _, used = utilization(instance, schedule, trace, bins)
        assert used.sum(axis=1) * trace.completion_s / bins == pytest.approx(trace.link_busy_s)


def test_a_congestion_unaware_simulation_overlooks_double_use(make):
    """Without congestion a link can be used twice at once, and the utilization says so."""
    instance = make.line(2, 1, 0)
    schedule = make.steps(instance, [4, 4], [(0, 0, (0,)), (0, 1, (0,))])
    trace = simulate(instance, schedule, UNAWARE)
    assert utilization(instance, schedule, trace, 2)[1].tolist() == [[2, 2]]


def test_an_empty_schedule_takes_no_time(make):
    """Nothing to send is done at once, in every mode."""
    instance = make.line(2)
    schedule = make.steps(instance, [1], [])
    for mode in MODES:
        trace = simulate(instance, schedule, mode)
        assert trace.completion_s == 0
        assert not np.any(trace.link_busy_s)
