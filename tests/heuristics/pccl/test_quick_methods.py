"""Answers of other methods among the candidates, all timed as the simulator does."""

from __future__ import annotations

import pytest
from cwb.algorithms.schedules.replay import first_come, in_order
from cwb.core.budget import Budget
from cwb.core.errors import Unsupported
from cwb.core.schedule import Schedule, StepSchedule
from cwb.harness import registry
from cwb.schedules.completion import completion_of

KINDS = ("all_gather", "all_to_all", "all_reduce", "reduce_scatter")

#: Networks with switches, and what is asked of each in every run. Where many groups share links, sums take long.
NETWORKS = {
    "star(5)": KINDS,
    "switch2d(2,4)": KINDS[:2],
    "switch2d(3,2)": KINDS,
    "rfs3d(2,2,2)": KINDS[:2],
    "fat_tree(4)": KINDS[1:2],
    "dgx_a100()": KINDS,
}


def answers(posed):
    """Return the answers of the methods that ``pccl`` is compared with, each with its posed instance."""
    for name in ("ring", "direct", "rhd", "tacos"):
        method = registry.get(name)
        if method.supports(posed) is None:
            options = method.options()
            instance = method.pose(posed, options)
            try:
                yield instance, method.run(instance, None, Budget(), options).answer
            except Unsupported:
                continue


CASES = [
    pytest.param(network, kind, marks=() if kind in often else pytest.mark.nightly)
    for network, often in NETWORKS.items()
    for kind in KINDS
]


@pytest.mark.slow
@pytest.mark.parametrize(("network", "kind"), CASES)
@pytest.mark.parametrize("size", [2**20, pytest.param(2**30, marks=pytest.mark.nightly)])
def test_no_method_that_it_can_run_is_faster(pose, run, verify_schedule, network, kind, size):
    """Gathers, sums and exchanges over switches are right, and complete no later than by ring, direct, rhd or tacos."""
    posed = pose(network, kind, size)
    seconds = verify_schedule(posed, run(posed, steps=20, restarts=0))
    assert seconds <= min(completion_of(*each).seconds for each in answers(posed)) * (1 + 1e-12)


def test_it_says_whose_schedule_it_gives(pose, run, verify_schedule):
    """Two calls give the same sends, and the metrics name the method that has found them; others can be left out."""
    posed = pose("switch2d(2,4)", "all_gather")
    first, second = (run(posed, steps=20, restarts=0) for _ in range(2))
    assert first.metrics["found_by"] == second.metrics["found_by"] == "hierarchical"
    assert isinstance(first.answer, StepSchedule)
    assert first.answer.sends.chunk.tolist() == second.answer.sends.chunk.tolist()
    assert run(posed, orders="paper").metrics["found_by"] == "longest"
    alone = run(posed, others=False, steps=20, restarts=0)
    assert alone.metrics["found_by"] != "hierarchical"
    assert verify_schedule(posed, alone) > verify_schedule(posed, first)


@pytest.mark.parametrize(
    ("network", "found_by"), [("mesh(4,4)", "ring"), ("mesh(6,6, latency='0 us')", "tacos"), ("ring(4)", "ring")]
)
def test_also_without_switches(pose, run, verify_schedule, network, found_by):
    """If chunks that are cut further, or matched in steps, are complete earlier, their schedule is the answer."""
    posed = pose(network, "all_gather", 2**30)
    outcome = run(posed, steps=200)
    assert outcome.metrics["found_by"] == found_by
    seconds = verify_schedule(posed, outcome)
    for instance, answer in answers(posed):
        if isinstance(outcome.answer, StepSchedule) or isinstance(answer, Schedule):  # of whole chunks, on a grid
            assert seconds <= completion_of(instance, answer).seconds * (1 + 1e-12)


@pytest.mark.parametrize("network", ["star(5)", "fat_tree(4)"])
def test_played_as_simulated(pose, network):
    """The times by which the candidates are compared are those of the simulator."""
    for instance, answer in answers(pose(network, "all_reduce")):
        topology = instance.network
        seconds = first_come(topology, answer) if isinstance(answer, StepSchedule) else in_order(topology, answer)[1]
        assert float(seconds) == pytest.approx(completion_of(instance, answer).seconds, rel=1e-12)


def test_machines_of_several_levels(pose, run, verify_schedule):
    """Between boxes with NICs, ``hierarchical`` is tried too, and its schedule is the answer."""
    posed = pose("dgx_a100(boxes=2)", "all_to_all")
    outcome = run(posed, steps=20, restarts=0)
    assert outcome.metrics["found_by"] == "hierarchical"
    method = registry.get("hierarchical")
    other = method.run(posed, None, Budget(), method.options()).answer
    assert verify_schedule(posed, outcome) == completion_of(posed, other).seconds
