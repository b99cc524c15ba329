"""Every simulator against the slow one, on random cases."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from time import perf_counter

import hypothesis.strategies as st
import numpy as np
import pytest
from cwb.core.kernel import Allowance, prefer_interpreted
from cwb.core.trace import SimulationMode
from cwb.schedules.simulate import simulate, simulate_totals
from cwb.schedules.simulate.compiled_runs import compiled_levels
from cwb.schedules.simulate.events import simulate_by_events, simulate_by_levels, simulate_by_windows
from cwb.schedules.simulate.network import rules, wires
from cwb.schedules.simulate.transfers import transfers_of
from draws import draws
from hypothesis import given, settings

pytestmark = pytest.mark.slow  # a slow simulator

#: Modes of any sends; shares are of trees alone.
MODES = [mode for mode in SimulationMode if mode is not SimulationMode.SHARES]
UNAWARE, AWARE, CUT, FAIR = MODES
QUEUED = [AWARE, CUT]


@pytest.mark.parametrize("mode", QUEUED)
def test_other_sizes_are_simulated_in_the_same_order_only_if_links_would_serve_so(make, mode, monkeypatch):
    """After a simulation, those of the same sends at other sizes have the times of a simulation without it; some
    repeat its order of service."""
    monkeypatch.setattr("cwb.core.kernel.WORTH_CODE", 1)
    monkeypatch.setattr("cwb.core.kernel.WORTH_COMPILER", 1)
    repeated = set()

    @settings(max_examples=draws(200))
    @given(st.data())
    def check(data):
        instance = data.draw(make.random_networks())
        schedule = make.steps(instance, *data.draw(make.random_rows(instance)))
        columns, how = wires(instance.network), rules(mode)
        transfers = transfers_of(instance, schedule)
        simulate_by_events(transfers, columns, how)
        for factor in (Fraction(1, 3), Fraction(8), Fraction(8001, 1000)):
            ((before, *_),) = transfers.service.values()
            again = simulate_by_events(transfers.scale(factor), columns, how)
            repeated.add(next(iter(transfers.service.values()))[0] is before)
            alone = simulate_by_events(transfers_of(instance, schedule).scale(factor), columns, how)
            assert all(map(np.array_equal, again, alone))

    check()
    assert True in repeated


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("barrier", [False, True])
@pytest.mark.parametrize("least", [1, 10**9])
def test_steps_end_when_the_slow_simulator_says(make, mode, barrier, least, monkeypatch):
    """Schedules in steps end exactly as in the slow simulator, compiled or not, in every mode; shares of links up to
    rounding."""
    monkeypatch.setattr("cwb.core.kernel.WORTH_CODE", least)
    monkeypatch.setattr("cwb.core.kernel.WORTH_COMPILER", least)

    @settings(max_examples=draws(150))
    @given(st.data())
    def check(data):
        instance = data.draw(make.random_networks())
        schedule = make.steps(instance, *data.draw(make.random_rows(instance)))
        expected = [float(end) for end in make.Slow(instance, schedule, mode, barrier).run()]
        trace = simulate(instance, schedule, mode, barrier=barrier)
        if mode is FAIR:
            assert trace.end_s == pytest.approx(expected, rel=1e-9)
        else:
            assert trace.end_s.tolist() == expected
        assert trace.completion_s == trace.end_s.max()

    with prefer_interpreted(Allowance(60.0), perf_counter):
        check()


@pytest.mark.parametrize("mode", [UNAWARE, *QUEUED])
@pytest.mark.parametrize("least", [1, 10**9])
def test_schedules_in_time_are_served_in_their_order(make, mode, least, monkeypatch):
    """Schedules in time end exactly as in the slow simulator that serves links in the order of the starts, compiled or
    not."""
    monkeypatch.setattr("cwb.core.kernel.WORTH_CODE", least)
    monkeypatch.setattr("cwb.core.kernel.WORTH_COMPILER", least)

    @settings(max_examples=draws(150))
    @given(st.data())
    def check(data):
        instance = data.draw(make.random_networks())
        sizes, rows = data.draw(make.random_rows(instance))
        lengths = [data.draw(st.integers(1, 3)) for _ in rows]
        given_rows = [(step, step + length, *row) for (step, *row), length in zip(rows, lengths, strict=True)]
        schedule = make.timed(instance, sizes, given_rows)
        expected = [float(end) for end in make.Slow(instance, schedule, mode).run()]
        assert simulate(instance, schedule, mode).end_s.tolist() == expected
        sums = simulate_totals(instance, schedule, unaware=True)
        assert sums.completion_s == simulate(instance, schedule, AWARE).completion_s
        assert sums.unaware_s == simulate(instance, schedule, UNAWARE).completion_s

    with prefer_interpreted(Allowance(60.0), perf_counter):
        check()


@pytest.mark.parametrize("mode", QUEUED)
@pytest.mark.parametrize("hold_latency", [False, True])
def test_all_ways_to_simulate_queues_agree(make, mode, hold_latency, monkeypatch):
    """Level by level, window by window and event by event, compiled or not, give the same times for every hop, and
    those of the slow simulator."""
    monkeypatch.setattr("cwb.schedules.simulate.events.WORTHWHILE", 0)
    monkeypatch.setattr("cwb.schedules.simulate.events.TRIAL", 10**9)
    seen = {"levels": 0, "compiled": 0, "windows": 0, "events": 0}
    ways = {
        "levels": simulate_by_levels,
        "compiled": partial(compiled_levels, keep=True),
        "windows": simulate_by_windows,
        "events": simulate_by_events,
    }

    @settings(max_examples=draws(200))
    @given(st.data())
    def check(data):
        instance = data.draw(make.random_networks())
        schedule = make.steps(instance, *data.draw(make.random_rows(instance)))
        columns, chosen = wires(instance.network), rules(mode, hold_latency=hold_latency)
        transfers = transfers_of(instance, schedule)
        timeline = simulate_by_events(transfers, columns, chosen)
        slow = make.Slow(instance, schedule, mode, hold_latency=hold_latency)
        slow.run()
        hops = [slow.hops[i, h] for i in slow.rank for h in range(len(slow.paths[i]))]
        assert timeline.hop_start_s.tolist() == [float(begin) for begin, _ in hops]
        assert timeline.hop_end_s.tolist() == [float(end) for _, end in hops]
        for name, way in ways.items():
            with monkeypatch.context() as patch:
                patch.setattr("cwb.core.kernel.WORTH_CODE", 1)
                patch.setattr("cwb.core.kernel.WORTH_COMPILER", 1)
                other = way(transfers, columns, chosen)
            if other is not None:
                seen[name] += 1
                other = getattr(other, "timeline", other)
                assert np.array_equal(other.end_s, timeline.end_s)
                assert np.array_equal(other.hop_start_s, timeline.hop_start_s)
                assert np.array_equal(other.hop_end_s, timeline.hop_end_s)
        if (found := compiled_levels(transfers, columns, chosen, keep=False)) is not None:
            busy = np.bincount(transfers.sends.path_links, timeline.hop_end_s - timeline.hop_start_s, len(columns))
            assert found.latest == timeline.end_s.max() and found.busy == pytest.approx(busy)

    with prefer_interpreted(Allowance(60.0), perf_counter):
        check()
    assert min(seen.values()) > draws(200) // 20


@pytest.mark.parametrize("mode", MODES)
def test_the_order_in_which_sends_are_listed_does_not_matter_across_steps(make, mode):
    """Listing the steps backwards gives the same times, send by send, and the same busy links; twice the same gives the
    same."""

    @settings(max_examples=draws(50))
    @given(st.data())
    def check(data):
        instance = data.draw(make.random_networks())
        sizes, rows = data.draw(make.random_rows(instance))
        rows.sort(key=lambda row: row[0])
        backwards = sorted(range(len(rows)), key=lambda i: -rows[i][0])
        straight = simulate(instance, make.steps(instance, sizes, rows), mode)
        turned = simulate(instance, make.steps(instance, sizes, [rows[i] for i in backwards]), mode)
        assert np.array_equal(straight.end_s[backwards], turned.end_s)
        assert np.array_equal(straight.start_s[backwards], turned.start_s)
        assert straight.link_busy_s == pytest.approx(turned.link_busy_s)
        again = simulate(instance, make.steps(instance, sizes, rows), mode)
        assert np.array_equal(again.hop_end_s, straight.hop_end_s)

    check()


@pytest.mark.parametrize("mode", QUEUED)
@pytest.mark.parametrize("alike", [True, False])
def test_many_sends_end_alike_compiled_or_not(make, mode, alike, monkeypatch):
    """A thousand sends over up to four hops, on links that are alike or not: windows and compiled events agree bit
    by bit with interpreted ones, with numbers of any kind."""
    monkeypatch.setattr("cwb.schedules.simulate.events.TRIAL", 10**9)
    generator = np.random.default_rng(1)
    n = 32
    speeds = [(Fraction(10**9), Fraction(1, 10**6))] * 3 * n
    if not alike:
        speeds = [
            (Fraction(int(generator.integers(1, 99)) * 10**7), Fraction(int(generator.integers(1, 99)), 10**7))
            for _ in speeds
        ]
    pairs = [(i, (i + step) % n) for step in (1, 5, 11) for i in range(n)]
    instance = make.network(n, [(*pair, *speed) for pair, speed in zip(pairs, speeds, strict=True)])
    rows = []
    for chunk in range(1000):
        node, path = int(generator.integers(n)), []
        for _ in range(int(generator.integers(1, 5))):
            which = int(generator.integers(3))
            path.append(which * n + node)
            node = (node + (1, 5, 11)[which]) % n
        rows.append((int(generator.integers(4)), chunk % 300, tuple(path)))
    schedule = make.steps(instance, generator.integers(1, 10**5, 300), rows)
    transfers, columns = transfers_of(instance, schedule), wires(instance.network)
    events = simulate_by_events(transfers, columns, rules(mode))
    for way in (simulate_by_windows, simulate_by_events):
        monkeypatch.setattr("cwb.core.kernel.WORTH_CODE", 1)
        monkeypatch.setattr("cwb.core.kernel.WORTH_COMPILER", 1)
        other = way(transfers, columns, rules(mode))
        assert np.array_equal(other.hop_start_s, events.hop_start_s)
        assert np.array_equal(other.end_s, events.end_s)
    ends = np.empty(len(rows))
    ends[transfers.place] = events.end_s
    np.testing.assert_allclose(simulate(instance, schedule, mode).end_s, ends, rtol=1e-12)  # which counts in ticks


def test_short_windows_are_left_to_the_event_loop(make):
    """If a link is too fast for windows to save events, the event loop gives the answer."""
    instance = make.network(3, [(0, 1, 10**9, 0), (1, 2, 1, 0)])
    schedule = make.steps(instance, [1] * 300, [(0, i, (0, 1)) for i in range(300)])
    transfers, columns = transfers_of(instance, schedule), wires(instance.network)
    assert simulate_by_windows(transfers, columns, rules(AWARE)) is None
    assert simulate_by_windows(transfers, columns, rules(CUT)) is None
    assert simulate(instance, schedule, AWARE).completion_s == pytest.approx(300 + 1e-9, rel=1e-15)
