"""The Pyomo model of the maximum concurrent flow, constraint by constraint."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pyomo.environ as pyo
import pytest
from cwb.core.collective import CollectiveKind, Demand
from cwb.core.instance import Instance
from cwb.core.topology import Link, Node, NodeKind, Topology
from cwb.models.common.flow_model import build

CONSTRAINTS = ["capacity", "delivery"]


def small() -> Instance:
    """Two ranks of the group, one outside it, and a switch: 1 -> switch -> 0 beside 0 -> 1, 0 -> 2 -> 1 with half the bandwidth on 0 -> 2."""
    nodes = (Node("0"), Node("switch", NodeKind.SWITCH), Node("1"), Node("2"))
    full, half = Fraction(2), Fraction(1)
    pairs = [("0", "1", full), ("1", "switch", full), ("switch", "0", full), ("0", "2", half), ("2", "1", full)]
    links = tuple(Link(a, b, bandwidth) for a, b, bandwidth in pairs)
    return Instance("small", Topology(nodes, links), Demand(CollectiveKind.ALL_TO_ALL, Fraction(8), ranks=(0, 1)))


def lp_text(model, folder: Path) -> str:
    path = folder / "model.lp"
    model.write(str(path), io_options={"symbolic_solver_labels": True})
    return path.read_text()


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_each_constraint_is_written_as_its_golden_file(name, golden, tmp_path):
    """Every constraint, alone in the model, gives the LP file that was checked against the paper by hand."""
    model = build(small())
    for constraint in model.component_objects(pyo.Constraint):
        if constraint.name != name:
            constraint.deactivate()
    golden(f"mcf/{name}.lp", lp_text(model, tmp_path))


def test_the_objective_is_written_as_its_golden_file(golden, tmp_path):
    """The objective gives the LP file that was checked by hand."""
    model = build(small())
    for constraint in model.component_objects(pyo.Constraint):
        constraint.deactivate()
    golden("mcf/objective.lp", lp_text(model, tmp_path))


def test_no_constraint_is_without_golden_file():
    """The model has no constraint that the golden files leave out."""
    assert [c.name for c in build(small()).component_objects(pyo.Constraint)] == CONSTRAINTS
