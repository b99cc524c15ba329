"""The Pyomo models of the auxiliary network, constraint by constraint."""

from __future__ import annotations

from pathlib import Path

import pyomo.environ as pyo
import pytest
from cwb.models.forestcoll.formulation import build_concurrent, build_max_flow
from cwb.models.forestcoll.scaled import scale
from small_networks import network

MODELS = {"max_flow": build_max_flow, "concurrent": build_concurrent}
CONSTRAINTS = [
    ("max_flow", "balance"),
    ("concurrent", "balance"),
    ("concurrent", "source_capacity"),
    ("concurrent", "arrival"),
]


def built(name):
    """Two ranks: 0 -> switch -> 1 with bandwidth 6, a direct link of 2 beside it, and 4 back."""
    return MODELS[name](scale(network(2, 1, [(0, 2, 6), (2, 1, 6), (0, 1, 2), (1, 0, 4)])))


def lp_text(model, folder: Path) -> str:
    path = folder / "model.lp"
    model.write(str(path), io_options={"symbolic_solver_labels": True})
    return path.read_text()


@pytest.mark.parametrize(("name", "constraint"), CONSTRAINTS)
def test_each_constraint_is_written_as_its_golden_file(name, constraint, golden, tmp_path):
    """Every constraint, alone in its model, gives the LP file that was checked against the paper by hand."""
    model = built(name)
    for other in model.component_objects(pyo.Constraint):
        if other.name != constraint:
            other.deactivate()
    golden(f"forestcoll/{name}_{constraint}.lp", lp_text(model, tmp_path))


@pytest.mark.parametrize("name", list(MODELS))
def test_no_constraint_is_without_golden_file(name):
    """The models have no constraint that the golden files leave out."""
    found = [(name, c.name) for c in built(name).component_objects(pyo.Constraint)]
    assert found == [(model, constraint) for model, constraint in CONSTRAINTS if model == name]


def test_what_a_switch_alone_cannot_do_is_no_row():
    """A switch without links has no balance."""
    model = build_max_flow(scale(network(2, 1, [(0, 1, 1), (1, 0, 1)])))
    assert list(model.balance) == [(0, 0), (0, 1)]
