"""The integer program over the time-expanded network, constraint by constraint."""

from __future__ import annotations

from fractions import Fraction

from cwb import solvers
from cwb.core.budget import Budget
from cwb.core.collective import Collective, Demand
from cwb.core.solver import SolverOptions, Termination
from cwb.instances import load
from cwb.models.ten.formulation import build
from cwb.models.ten.method import TenOptions, pose
from cwb.models.ten.problem import HorizonModel, expand_time


def test_a_target_that_is_too_far_makes_the_model_infeasible():
    """Two ticks are no use where three hops are needed: nothing can start, and the solver says so."""
    demand = Demand(Collective.POINT_TO_POINT, Fraction(1), 1, (0, 3))
    instance = pose(load("line(4)").with_changes(demand=demand), TenOptions())
    model = build(HorizonModel(expand_time(instance), 2, 1, instance))
    result = solvers.get("highs").solve(model, Budget(), SolverOptions())
    assert result.termination is Termination.INFEASIBLE
