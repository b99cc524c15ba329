"""The Pyomo model of LIBRA, constraint by constraint."""

from __future__ import annotations

from pathlib import Path

import pyomo.environ as pyo
import pytest
from cwb.core.design import Objective
from cwb.core.workload import TrainingLoop
from cwb.models.libra.formulation import build

CONSTRAINTS = [
    "inverse_bandwidth",
    "collective_time",
    "overlapped_tp",
    "overlapped_dp",
    "iteration_time",
    "network_cost",
    "design",
]


def lp_text(model, folder: Path) -> str:
    path = folder / "model.lp"
    model.write(str(path), io_options={"symbolic_solver_labels": True})
    return path.read_text()


@pytest.fixture
def model(two_dimensional):
    return build(two_dimensional(loop=TrainingLoop.TP_DP_OVERLAP))


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_each_constraint_is_written_as_its_golden_file(model, name, golden, tmp_path):
    """Every constraint, alone in the model, gives the LP file that was checked against the paper by hand."""
    for constraint in model.component_objects(pyo.Constraint):
        if constraint.name != name:
            constraint.deactivate()
    golden(f"libra/{name}.lp", lp_text(model, tmp_path))


@pytest.mark.parametrize("objective", list(Objective))
def test_each_objective_is_written_as_its_golden_file(two_dimensional, objective, golden, tmp_path):
    """Both objectives give the LP file that was checked by hand."""
    model = build(two_dimensional(objective))
    for constraint in model.component_objects(pyo.Constraint):
        constraint.deactivate()
    golden(f"libra/objective-{objective.value}.lp", lp_text(model, tmp_path))


def test_no_constraint_is_without_golden_file(model):
    """The model has no constraint that the golden files leave out."""
    assert [c.name for c in model.component_objects(pyo.Constraint)] == CONSTRAINTS


def test_two_models_live_side_by_side(two_dimensional):
    """Building a second model changes nothing in the first."""
    first = build(two_dimensional())
    before = len(list(first.component_data_objects(pyo.Var)))
    build(two_dimensional(loop=TrainingLoop.TP_DP_OVERLAP))
    assert len(list(first.component_data_objects(pyo.Var))) == before
