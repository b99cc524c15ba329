"""Stages of copies: which instances have them, and that their schedules together are one of the instance."""

from __future__ import annotations

from fractions import Fraction

import pytest
from cwb import solvers
from cwb.algorithms.schedules.stages import solve_stages, stages_of, supports_one_stage, supports_stages, to_copies
from cwb.core.budget import Budget
from cwb.core.collective import Collective, Demand
from cwb.core.outcome import Outcome, Status
from cwb.instances import load
from cwb.models.sccl.method import ScclOptions, run
from cwb.schedules import verdict_of


def make_instance(*demands, network="mesh(2,3)"):
    first, *rest = (Demand(kind, Fraction(120_000), 1, ranks) for kind, ranks in demands)
    return load(network).with_changes(demand=first, also=tuple(rest))


@pytest.mark.parametrize(
    ("kind", "copies", "backwards"),
    [
        (Collective.ALL_GATHER, "all_gather", [False]),
        (Collective.REDUCE_SCATTER, "all_gather", [True]),
        (Collective.REDUCE, "broadcast", [True]),
        (Collective.ALL_REDUCE, "all_gather", [True, False]),
    ],
)
def test_stages_of_a_collective(kind, copies, backwards):
    """Sums are copies backwards on the reversed network; an all_reduce has a stage of each direction."""
    instance = make_instance((kind, None), network="directed_circulant(7, [1, 2])")
    stages = stages_of(instance)
    assert [stage.backwards for stage in stages] == backwards
    for stage in stages:
        ends = stage.instance.topology.link_ends
        assert (ends == instance.topology.link_ends) is not stage.backwards
        assert {end[:: -1 if stage.backwards else 1] for end in ends} == set(instance.topology.link_ends)
        assert stage.instance.demand.collective.name == copies


@pytest.mark.parametrize("kind", [Collective.REDUCE_SCATTER, Collective.ALL_REDUCE, Collective.REDUCE])
def test_groups_that_sum_at_once(kind):
    """Several process groups reduce at once, in the order of their ranks, and the verifier finds nothing wrong."""
    instance = make_instance((kind, (2, 0, 1)), (kind, (3, 4, 5)))
    assert supports_stages(instance) is None
    outcome = run(instance, solvers.get("highs"), Budget(), ScclOptions())
    assert not verdict_of(instance, outcome.answer, outcome.certificate).violations


def test_sums_beside_copies_are_refused():
    """Copies and sums at once, and an all_reduce beside a half of it, run in no common stages."""
    left, right = (0, 1, 2), (3, 4, 5)
    mixed = make_instance((Collective.ALL_GATHER, left), (Collective.REDUCE_SCATTER, right))
    assert "all_gather, reduce_scatter at once" in str(supports_stages(mixed))
    halves = make_instance((Collective.ALL_REDUCE, left), (Collective.REDUCE_SCATTER, right))
    assert "at once" in str(supports_stages(halves))
    assert supports_stages(make_instance((Collective.REDUCE, left), (Collective.REDUCE_SCATTER, right))) is None
    assert "two successive models" in str(supports_one_stage(make_instance((Collective.ALL_REDUCE, None))))
    assert to_copies(mixed).demand.collective is Collective.ALL_GATHER


def test_an_unsolved_stage_ends_the_run():
    """If the first half of an all_reduce has no schedule, the second one is not tried, and the bound is kept."""
    asked = []

    def give_up(stage, budget):
        asked.append(stage)
        return Outcome(Status.LIMIT, message="too hard")

    outcome = solve_stages(make_instance((Collective.ALL_REDUCE, None)), Budget(), give_up)
    assert (len(asked), outcome.message, outcome.bound > 0) == (1, "too hard", True)
