"""The integer program over the time-expanded network, constraint by constraint."""

from __future__ import annotations

from fractions import Fraction

import pyomo.environ as pyo
import pytest
from cwb import solvers
from cwb.core.budget import Budget
from cwb.core.collective import CollectiveKind, Demand
from cwb.core.solver import SolverOptions, Termination
from cwb.instances import load
from cwb.models.ten.formulation import build
from cwb.models.ten.options import Options, pose
from cwb.models.ten.problem import expanded

CONSTRAINTS = ["post", "once", "has_first", "link", "makespan"]


def small():
    """Two chunks from the first to the last of three ranks in a ring, within three ticks."""
    demand = Demand(CollectiveKind.POINT_TO_POINT, Fraction(2), 2, (0, 2))
    instance = pose(load("ring(3)").with_changes(demand=demand), Options())
    return build(expanded(instance), 3, 1)


def lp_text(model, folder):
    path = folder / "model.lp"
    model.write(str(path), io_options={"symbolic_solver_labels": True})
    return path.read_text()


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_each_constraint_is_written_as_its_golden_file(name, golden, tmp_path):
    """Every constraint, alone in the model, gives the LP file that was checked by hand."""
    model = small()
    for constraint in model.component_objects(pyo.Constraint):
        if constraint.name != name:
            constraint.deactivate()
    golden(f"ten/{name}.lp", lp_text(model, tmp_path))


def test_no_constraint_is_without_golden_file():
    """The model has no constraint that the golden files leave out."""
    assert [c.name for c in small().component_objects(pyo.Constraint)] == CONSTRAINTS


def test_a_target_that_is_too_far_makes_the_model_infeasible():
    """Two ticks are no use where three hops are needed: nothing can start, and the solver says so."""
    demand = Demand(CollectiveKind.POINT_TO_POINT, Fraction(1), 1, (0, 3))
    instance = pose(load("line(4)").with_changes(demand=demand), Options())
    result = solvers.get("highs").solve(build(expanded(instance), 2, 1), Budget(), SolverOptions())
    assert result.termination is Termination.INFEASIBLE
