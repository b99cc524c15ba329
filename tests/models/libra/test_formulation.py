"""The Pyomo model of LIBRA, constraint by constraint."""

from __future__ import annotations

import pyomo.environ as pyo
from cwb.core.workload import TrainingLoop
from cwb.models.libra.formulation import build
from cwb.models.libra.problem import pose_problem


def test_two_models_live_side_by_side(two_dimensional):
    """Building a second model changes nothing in the first."""
    first = build(pose_problem(two_dimensional()))
    before = len(list(first.component_data_objects(pyo.Var)))
    build(pose_problem(two_dimensional(loop=TrainingLoop.TP_DP_OVERLAP)))
    assert len(list(first.component_data_objects(pyo.Var))) == before
