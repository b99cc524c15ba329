"""Simulations in whole numbers: what happens at the same time is known to, whatever the unit."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from cwb.core.instance import Instance
from cwb.core.schedule import StepSchedule
from cwb.core.topology import Topology
from cwb.core.trace import SimulationMode
from cwb.harness import Request
from cwb.harness import run as run_method
from cwb.instances import load
from cwb.instances.demand import with_demand
from cwb.schedules.simulate import simulate, simulate_totals
from cwb.schedules.simulate import timelines as simulation
from cwb.schedules.simulate.network import TickWires, rules, seconds_of, to_ticks, wires
from cwb.schedules.simulate.run import totals_of
from cwb.schedules.simulate.transfers import transfers_of
from cwb.studies.schedule_candidates import resize_schedule
from draws import draws
from hypothesis import given, settings
from hypothesis import strategies as st

AWARE, CUT = SimulationMode.CONGESTION_AWARE, SimulationMode.CUT_THROUGH


@pytest.fixture(scope="module")
def bruck() -> tuple[Instance, StepSchedule]:
    """Make Bruck's all-reduce of a megabyte on a mesh of 4 by 5, where many sends ask for a link at the same time."""
    done = run_method(with_demand(load("mesh(4,5)"), "all_reduce", "1 MB", None), Request("bruck"))
    assert isinstance(done.answer, StepSchedule)
    return done.instance, done.answer


def stretch_links(instance: Instance, answer: StepSchedule, factor: Fraction) -> tuple[Instance, StepSchedule]:
    """Let every link take so many times as long; the schedule is the same."""
    network = instance.topology
    links = (
        replace(link, bandwidth_Bps=link.bandwidth_Bps / factor, latency_s=link.latency_s * factor)
        for link in network.links
    )
    other = instance.with_changes(network=Topology(network.nodes, tuple(links)))
    return other, replace(answer, instance_sha256=other.sha256)


def test_bruck_on_a_mesh_takes_69_microseconds(bruck: tuple[Instance, StepSchedule]) -> None:
    """By the documented rule, first come, first served, and of those that come together the earlier send."""
    assert simulate(*bruck).completion_s == pytest.approx(69e-6, rel=1e-15)


@settings(max_examples=draws(25))
@given(
    factor=st.builds(Fraction, st.integers(1, 10**15), st.integers(1, 10**15)),
    mode=st.sampled_from([AWARE, CUT]),
)
def test_the_result_does_not_depend_on_the_unit(
    bruck: tuple[Instance, StepSchedule], factor: Fraction, mode: SimulationMode
) -> None:
    """If every link takes k times as long, so does the schedule."""
    trace, other = simulate(*bruck, mode), simulate(*stretch_links(*bruck, factor), mode)
    np.testing.assert_allclose(other.end_s, trace.end_s * float(factor), rtol=1e-12)


@pytest.mark.parametrize("factor", [Fraction(1), Fraction(10**9 + 7, 998244353), Fraction(1, 3)])
def test_integers_of_any_size_give_the_same(
    bruck: tuple[Instance, StepSchedule], factor: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Times too long for floats are counted in integers, one event after the other, with the same result."""
    instance, answer = stretch_links(*bruck, factor)
    quick = simulate(instance, answer)
    monkeypatch.setattr("cwb.schedules.simulate.network.MOST_TICKS", 1)
    slow = simulate(instance, answer)
    np.testing.assert_allclose(slow.end_s, quick.end_s, rtol=1e-15)


def test_large_schedules_without_a_common_unit_do_not_depend_on_it(
    bruck: tuple[Instance, StepSchedule], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted in parts of the longest duration, rounded, every unit gives the same numbers."""
    monkeypatch.setattr("cwb.schedules.simulate.network.MOST_TICKS", 1)
    monkeypatch.setattr("cwb.schedules.simulate.network.MOST_EXACT", 0)
    assert isinstance(bruck[1], StepSchedule)
    found = {
        simulate_in_parts(*stretch_links(*bruck, factor))
        for factor in (Fraction(1), Fraction(1, 997), Fraction(10**9, 7))
    }
    assert len(found) == 1


def simulate_in_parts(instance: Instance, answer: StepSchedule) -> float:
    """Completion in parts of the longest duration."""
    transfers = transfers_of(instance, answer)
    links = len(transfers.sends.path_links)
    columns = to_ticks(transfers, links, wires(instance.network), exact=True)  # type: ignore[arg-type]
    assert isinstance(columns, TickWires)
    assert not columns.exact
    return float(simulation._simulate(transfers, columns, rules(AWARE)).end_s.max())


@given(st.integers(0, 10**6), st.fractions(0, 10**3, max_denominator=10**6))
def test_ticks_in_seconds_are_rounded_once(number, unit_s):
    """A time in ticks is the float next to the fraction, so that it equals a bound that is the same fraction."""
    assert seconds_of(np.array([float(number)]), unit_s)[0] == float(number * unit_s)


@pytest.mark.parametrize("factor", [Fraction(1, 1000), Fraction(7, 3), Fraction(10**6 + 1)])
def test_larger_chunks_need_no_new_dependencies(bruck: tuple[Instance, StepSchedule], factor: Fraction) -> None:
    """Sends whose chunks are scaled take as long as those of the schedule that is made for that size."""
    instance, answer = bruck
    scaled = transfers_of(instance, answer).scale(factor)
    posed = resize_schedule(instance, answer, instance.demand.size_bytes * factor)
    assert totals_of(instance, scaled, AWARE).completion_s == simulate_totals(*posed).completion_s
