"""The verifier of bandwidth plans."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cwb.core.answers import BandwidthPlan
from cwb.core.design import Objective
from cwb.instances import load
from cwb.schedules import verdict_of


def plan(*gigabytes_per_second: float) -> BandwidthPlan:
    return BandwidthPlan(tuple(b * 1e9 for b in gigabytes_per_second))


def test_the_cost_example_costs_1722_dollars():
    """Three NPUs with 10 GiB/s on an inter-pod switch: 234 for links, 540 for switch ports, 948 for NICs."""
    verdict = verdict_of(load("cost-example"), BandwidthPlan((10 * 2.0**30,)))
    assert verdict.ok
    assert verdict.metrics["network_cost_usd"] == pytest.approx(1722, rel=1e-12)


def test_equal_bandwidth_has_speedup_one():
    """EqualBW against itself is neither faster nor cheaper."""
    verdict = verdict_of(load("4d"), plan(250, 250, 250, 250))
    assert verdict.ok
    assert verdict.metrics["speedup"] == pytest.approx(1)
    assert verdict.metrics["perf_per_cost_gain"] == pytest.approx(1)
    assert verdict.metrics["iteration_time_s"] == pytest.approx(0.7297467252, rel=1e-9)
    assert verdict.metrics["network_cost_usd"] == pytest.approx(69017784.32, rel=1e-9)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (plan(250, 250, 250), "expected 4 bandwidths"),
        (plan(250, 250, 250, -1), "not negative"),
        (plan(250, 250, 250, float("nan")), "finite"),
        (plan(250, 250, 250, 251), "total bandwidth = 1000 GB/s"),
        (plan(0, 500, 250, 250), "has no bandwidth"),
    ],
)
def test_wrong_plans_are_refused(wrong, words):
    """A plan of the wrong length, out of range, off budget or without a needed dimension is a violation that says
    so."""
    verdict = verdict_of(load("4d"), wrong)
    assert not verdict.ok
    assert words in " ".join(verdict.violations)


def test_a_missed_constraint_is_named():
    """Each linear constraint that a plan misses is a violation in the user's words."""
    verdict = verdict_of(load("gpt-3-4d-multiple"), plan(400, 300, 200, 100))
    assert len(verdict.violations) == 2
    assert "'B1 = 500 GB/s' is missed" in verdict.violations[0]
    assert "'B3 + B4 = 200 GB/s' is missed" in verdict.violations[1]


def test_the_objective_is_that_of_the_design():
    """Perf is verified in seconds, perf-per-cost in seconds times dollars."""
    instance = load("4d")
    priced = instance.with_changes(design=replace(instance.design, objective=Objective.PERF_PER_COST))
    answer = plan(250, 250, 250, 250)
    time, product = verdict_of(instance, answer).objective, verdict_of(priced, answer).objective
    assert product == pytest.approx(time * 69017784.32, rel=1e-9)
