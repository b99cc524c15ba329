"""The bilinear model on solvers that take it: what is believed of their bounds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cwb import solvers
from cwb.core.budget import Budget
from cwb.core.outcome import Status
from cwb.instances import load
from cwb.models.libra.problem import pose_problem
from cwb.models.libra.solve import solve_direct


class Boasting:
    """SCIP with a bound that is off by a factor."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def solve(self, *arguments: object):
        result = solvers.get("scip").solve(*arguments)
        return replace(result, bound=result.bound * self.factor)


@pytest.mark.parametrize(
    ("factor", "status"), [(1, Status.OPTIMAL), (1.001, Status.FEASIBLE), (0.999, Status.FEASIBLE)]
)
def test_a_bound_that_a_plan_refutes_proves_nothing(factor, status):
    """A solver's bound above the plan that it found is dropped and told, not cut down to the plan's value and called
    optimal."""
    outcome = solve_direct(pose_problem(load("4d")), Boasting(factor), Budget(), 1e-6)
    assert outcome.status is status
    assert (outcome.bound is None) == (factor > 1)
    assert (outcome.certificate is None) == (factor > 1)
    assert ("proves nothing" in outcome.message) == (factor > 1)
