"""``all-to-all-mcf``: rates that the paper prints, statuses, and what it refuses."""

from __future__ import annotations

from fractions import Fraction

import pytest
from cwb.core.budget import Budget
from cwb.core.collective import Collective, Demand
from cwb.core.outcome import Status
from cwb.core.solver import Capability, SolverResult, Termination
from cwb.harness import Request, registry, run_one
from cwb.instances import load

ALL_TO_ALL = Demand(Collective.ALL_TO_ALL, Fraction(2**20))


@pytest.mark.parametrize(
    ("network", "rate"),
    [("distance_regular(4, 32)", 1 / 19), ("hypercube(3)", 1 / 4), ("ring(6)", 2 / 9), ("star(4)", 1 / 3)],
)
def test_rates_are_those_of_the_literature(network, rate):
    """The rate of every pair in units of a link: 5.26e-2 of table 7, and closed forms; the verifier proves the same."""
    record = run_one(load(network).with_changes(demand=ALL_TO_ALL), Request("all-to-all-mcf"))
    assert (record.status, record.exit_status, record.verified) == ("optimal", 0, True)
    assert record.metrics["rate"] == pytest.approx(rate, rel=1e-7)
    assert record.objective == record.bound
    assert record.metrics["rate_GBps"] * record.objective * load(network).npus == pytest.approx(2**20 / 1e9)


class Halfway:
    """A solver without multipliers that ends with a bound, or with nothing."""

    name = "halfway"
    capabilities = Capability.LP

    def __init__(self, bound: float | None):
        self.bound = bound

    def solve(self, model, budget, options=None):
        return SolverResult("halfway", "1", Termination.TIME_LIMIT, False, bound=self.bound)


def test_a_word_is_no_proof():
    """Without multipliers there is a bound and no answer, since nobody can recompute it; without a bound, the limit is
    told."""
    method, instance = registry.get("all-to-all-mcf"), load("ring(4)").with_changes(demand=ALL_TO_ALL)
    outcome = method.run(instance, Halfway(0.5), Budget(), method.options())
    assert (outcome.status, outcome.answer, outcome.objective) == (Status.FEASIBLE, None, None)
    assert outcome.metrics["rate"] == 0.5
    assert "cannot be recomputed" in outcome.message
    outcome = method.run(instance, Halfway(None), Budget(), method.options())
    assert (outcome.status, outcome.answer, outcome.message) == (Status.LIMIT, None, "time-limit")


@pytest.mark.parametrize(
    ("network", "demand", "reason"),
    [
        ("ring(4)", None, "the instance has no collective"),
        ("ring(4)", Demand(Collective.BROADCAST, Fraction(8)), "it does not define broadcast"),
        ("ring(4)", Demand(Collective.ALL_TO_ALL, Fraction(0)), "no data to move"),
    ],
)
def test_what_does_not_fit_is_a_reason(network, demand, reason):
    """Other collectives and missing networks or data are told in one line."""
    record = run_one(load(network).with_changes(demand=demand), Request("all-to-all-mcf"))
    assert (record.status, record.exit_status) == ("unsupported", 7)
    assert reason in record.message
