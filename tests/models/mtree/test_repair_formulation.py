"""The Pyomo models of repairs, constraint by constraint."""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo
import pytest
from cwb.models.common.wan.network import pose
from cwb.models.mtree import repair_model, repair_patterns
from mtree_networks import instance

#: A triangle of 3, 2 and 1 Mb/s, and its three trees, the first of which is old.
EDGES = [(0, 1, 3, 1), (1, 2, 2, 2), (0, 2, 1, 3)]
TREES = np.array([[0, 1], [0, 2], [1, 2]])


def wan():
    return pose(instance(3, EDGES))


MODELS = {
    "repair": lambda: repair_model.build(wan(), TREES, 1, 1, None, 0),
    "repair_patterns": lambda: repair_patterns.build(wan(), None, TREES[:1], 1, 1, 2, 3.0),
}

#: Constraints of their own, and those of other models.
OWN = {
    "repair": ["new_tree_count"],
    "repair_patterns": ["shared_capacity", "ceiling_of_all", "used_new", "used_old", "used_in_all"],
}
SHARED = {
    "repair": ["link_capacity", "least_rate", "chosen_rate", "tree_count"],
    "repair_patterns": [
        "carried",
        "arrived",
        "tree_size",
        "one_pattern",
        "tree_on_link",
        "falling_rates",
        "site_reached",
    ],
}


@pytest.mark.parametrize(("name", "constraint"), [(n, c) for n, found in OWN.items() for c in found])
def test_each_constraint_is_written_as_its_golden_file(name, constraint, golden, tmp_path):
    """Every constraint, alone in its model, gives the LP file that was checked by hand."""
    model = MODELS[name]()
    for other in model.component_objects(pyo.Constraint):
        if other.name != constraint:
            other.deactivate()
    path = tmp_path / "model.lp"
    model.write(str(path), io_options={"symbolic_solver_labels": True})
    golden(f"mtree/{name}_{constraint}.lp", path.read_text())


@pytest.mark.parametrize("name", list(MODELS))
def test_no_constraint_is_without_golden_file(name):
    """The models have no constraints but their own and those that other tests look at."""
    assert {c.name for c in MODELS[name]().component_objects(pyo.Constraint)} == {*OWN[name], *SHARED[name]}
