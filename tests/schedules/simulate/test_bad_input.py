"""Errors of the simulators and their messages."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from cwb.core.answers import BandwidthPlan
from cwb.core.collective import Collective, Demand
from cwb.core.errors import InputError
from cwb.core.fabric import parse_fabric
from cwb.core.trace import SimulationMode
from cwb.schedules.simulate import simulate, utilization

#: Modes of any sends; shares are of trees alone.
MODES = [mode for mode in SimulationMode if mode is not SimulationMode.SHARES]


@pytest.fixture
def case(make):
    instance = make.line(3)
    return instance, make.steps(instance, [4], [(0, 0, (0,)), (1, 0, (1,))])


def test_a_schedule_of_another_instance_is_refused(case):
    """A digest that is not the instance's is named, since nothing in the schedule would mean the same."""
    instance, schedule = case
    other = instance.with_changes(demand=Demand(Collective.BROADCAST, Fraction(1)))
    with pytest.raises(InputError, match="another instance"):
        simulate(other, schedule)


def test_other_answers_and_networks_are_refused(case):
    """A bandwidth plan is no schedule, and building blocks have no links."""
    instance, schedule = case
    with pytest.raises(InputError, match="BandwidthPlan has no sends"):
        simulate(instance, BandwidthPlan((1.0,)))
    fabric = instance.with_changes(network=parse_fabric("RI(4)"))
    with pytest.raises(InputError, match="explicit network"):
        simulate(fabric, replace(schedule, instance_sha256=fabric.sha256))


@pytest.mark.parametrize("column", ["chunk", "source", "target", "path_links"])
@pytest.mark.parametrize("value", [-1, 99])
def test_numbers_out_of_range_are_refused(case, column, value):
    """A chunk, node or link that does not exist is an error with its name, not an index error or a silent
    wrap-around."""
    instance, schedule = case
    wrong = getattr(schedule.sends, column).copy()
    wrong[1] = value
    broken = replace(schedule, sends=replace(schedule.sends, **{column: wrong}))
    for mode in MODES:
        with pytest.raises(InputError, match=f"names a {column}"):
            simulate(instance, broken, mode)


def test_options_that_do_not_fit_are_refused(case, make):
    """Barriers are for steps, pieces for trees, and links are held only where they are taken one at a time."""
    instance, schedule = case
    with pytest.raises(InputError, match="only trees"):
        simulate(instance, schedule, pieces=2)
    with pytest.raises(InputError, match="at least 1"):
        simulate(instance, schedule, pieces=0)
    with pytest.raises(InputError, match="barriers"):
        simulate(instance, make.timed(instance, [4], [(0, 1, 0, (0,))]), barrier=True)
    with pytest.raises(InputError, match="never occupied"):
        simulate(instance, schedule, SimulationMode.FAIR_SHARE, hold_latency=True)
    for barrier in (False, True):
        with pytest.raises(InputError, match="only trees have shares"):
            simulate(instance, schedule, SimulationMode.SHARES, barrier=barrier)
    with pytest.raises(InputError, match="parts of the time"):
        utilization(instance, schedule, simulate(instance, schedule), 0)
    with pytest.raises(InputError, match=r"3 hops; expected 2"):
        trace = simulate(instance, schedule)
        utilization(instance, schedule, replace(trace, hop_start_s=np.append(trace.hop_start_s, 0.0)))
    with pytest.raises(InputError, match="take no time"):
        utilization(instance, schedule, replace(trace, hop_start_s=trace.hop_end_s))


@pytest.mark.parametrize("mode", MODES)
def test_sends_that_wait_for_each_other_are_refused(make, mode):
    """Two sends that take no time by their given times, each the source of the other, can never begin."""
    instance = make.network(2, [(0, 1, 1, 0), (1, 0, 1, 0)])
    schedule = make.timed(instance, [1], [(1, 1, 0, (0,)), (1, 1, 0, (1,))])
    with pytest.raises(InputError, match="waits for itself"):
        simulate(instance, schedule, mode)
