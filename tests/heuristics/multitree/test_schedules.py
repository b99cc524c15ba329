"""Schedules do what is asked, in the steps of their trees, and are near the bound on tori."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest
from cwb.algorithms.schedules.problem import parallel_uses
from cwb.core.budget import Budget
from cwb.core.collective import Collective, Demand
from cwb.core.outcome import Status
from cwb.core.schedule import StepSchedule
from cwb.heuristics.textbook.rings import RING
from cwb.schedules import verdict_of
from cwb.schedules.simulate import simulate
from cwb.schedules.verify import verify
from hypothesis import given, settings
from hypothesis import strategies as st

GATHERS = ["all_gather", "reduce_scatter", "all_reduce"]
NETWORKS = [
    "torus(4,4)", "torus(3,5)", "torus(2,3,4)", "mesh(3,4)", "ring(7)", "line(4)", "complete(6)", "star(6)",
    "random_regular(16,4)", "random_regular(12,3,seed=5)", "dgx1()", "dgx_a100(boxes=2)", "mi250(boxes=2)",
    "fat_tree(4)",
    "ring(5, bidirectional=false)", "directed_circulant(9,[1,3])",
]  # fmt: skip


def checked_schedule(posed, run, **options) -> StepSchedule:
    outcome = run(posed, **options)
    assert outcome.status is Status.FEASIBLE
    report = verify(posed, outcome.answer)
    assert not report.violations, report.violations
    return outcome.answer


@pytest.mark.parametrize("kind", GATHERS)
@pytest.mark.parametrize("network", NETWORKS)
def test_on_networks(pose, run, kind, network):
    """The verifier has nothing against the schedule, no link is over its uses in a step of either direction, and the
    verifier confirms the bound."""
    posed = pose(network, kind, chunks=2)
    outcome = run(posed)
    verdict = verdict_of(posed, outcome.answer, outcome.certificate)
    assert not verdict.violations
    assert verdict.objective >= outcome.bound * (1 - 1e-9)
    schedule, uses = outcome.answer, parallel_uses(posed.network)
    n, passes = posed.npus, 2 if kind == "all_reduce" else 1
    assert len(schedule.sends) == passes * n * (n - 1) * 2
    per_step = Counter(
        zip(schedule.step[schedule.sends.hop_send].tolist(), schedule.sends.path_links.tolist(), strict=True)
    )
    assert all(count <= 2 * uses[link] for (_, link), count in per_step.items())


@pytest.mark.parametrize("kind", GATHERS)
@settings(max_examples=10, deadline=None)
@given(ranks=st.lists(st.integers(0, 8), min_size=2, max_size=7, unique=True), chunks=st.integers(1, 3))
def test_in_process_groups(pose, run, kind, ranks, chunks):
    """A group of some ranks in any order works too; the others pass on.

    ``checked`` asserts what holds of every schedule.
    """
    checked_schedule(pose("torus(3,3)", kind, size=1000, chunks=chunks, ranks=tuple(ranks)), run)


@pytest.mark.parametrize("network", ["mi250(boxes=1)", "mi250(boxes=2)", "dgx_a100(boxes=2)"])
def test_equal_links(pose, run, network):
    """With links taken as equal, none has two edges in a step, and there are more steps."""
    posed = pose(network, "all_gather")
    schedule = checked_schedule(posed, run, links="equal")
    used = zip(schedule.step[schedule.sends.hop_send].tolist(), schedule.sends.path_links.tolist(), strict=True)
    assert max(Counter(used).values()) == 1
    assert schedule.steps > run(posed).answer.steps


def test_several_collectives_at_the_same_time(pose, run):
    """Process groups run side by side, each with its own trees."""
    first = Demand(Collective.ALL_REDUCE, Fraction(900), 2, (0, 1, 2, 3))
    second = Demand(Collective.ALL_GATHER, Fraction(1000), 1, (7, 6, 5))
    posed = pose("torus(3,3)").with_changes(demand=first, also=(second,))
    assert len(checked_schedule(posed, run).chunks) == 4 * 2 + 3


@pytest.mark.parametrize("kind", GATHERS)
def test_steps_of_an_all_reduce_on_a_torus(pose, run, kind):
    """Five steps each way on a torus of 4 x 4, over neighbours alone."""
    schedule = checked_schedule(pose("torus(4,4)", kind), run)
    assert schedule.steps == (10 if kind == "all_reduce" else 5)
    assert set(schedule.sends.hops.tolist()) == {1}


@pytest.mark.parametrize(("network", "steps"), [("torus(4,4)", 10), ("torus(8,8)", 34), ("torus(4,4,4)", 24)])
def test_in_lockstep_a_torus_takes_the_time_of_its_steps(pose, run, network, steps):
    """With barriers an all-reduce takes a latency and a part a step; large ones take at most 4/3 of the bound, where
    the ring takes twice."""
    posed = pose(network)
    outcome = run(posed)
    assert outcome.answer.steps == steps
    link = posed.network.links[0]
    step_s = link.latency_s + Fraction(2**30, posed.npus) / link.bandwidth_Bps
    in_steps = simulate(posed, outcome.answer, barrier=True).completion_s
    assert in_steps == pytest.approx(steps * float(step_s), rel=1e-9)
    assert in_steps < 1.34 * outcome.bound
    free = simulate(posed, outcome.answer).completion_s
    ring = simulate(posed, RING.run(posed, None, Budget(), RING.options()).answer).completion_s
    assert free < 1.34 * outcome.bound < 2 * outcome.bound < ring


def test_schedules_are_deterministic(pose, run):
    """The same instance gives the same sends, links included."""
    posed = pose("mi250(boxes=2)", chunks=2)
    one, other = (run(posed).answer for _ in "ab")
    assert one.sends.path_links.tolist() == other.sends.path_links.tolist()
    assert one.sends.chunk.tolist() == other.sends.chunk.tolist()
    assert one.step.tolist() == other.step.tolist()
