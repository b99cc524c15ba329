"""The Pyomo models, constraint by constraint."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyomo.environ as pyo
import pytest
from cwb.models.common.wan import selection
from cwb.models.common.wan.network import pose
from cwb.models.mtree import cover, layers, patterns
from mtree_networks import instance

#: A triangle of 3, 2 and 1 Mb/s, and its three trees.
EDGES = [(0, 1, 3, 1), (1, 2, 2, 2), (0, 2, 1, 3)]
TREES = np.array([[0, 1], [0, 2], [1, 2]])


def wan():
    return pose(instance(3, EDGES))


MODELS = {
    "selection": lambda: selection.build(wan(), TREES, 2, 1),
    "cover": lambda: cover.build(wan(), TREES, np.array([2, 1, 1]), 2),
    "layers": lambda: layers.build(wan(), wan().hops(2), np.array([0.5, 0.25, 1.0])),
    "labels": lambda: layers.build(wan(), wan().latencies(Fraction(4, 1000)), np.array([0.5, 0.25, 1.0])),
    "patterns": lambda: patterns.build(wan(), None, 2, 2, 3.0, 1),
}
CONSTRAINTS = {
    "selection": ["link_capacity", "least_rate", "chosen_rate", "tree_count"],
    "cover": ["tree_cost"],
    "layers": ["one_root", "layer_entered", "first_layer", "next_layer"],
    "labels": ["one_root", "entered", "near_root", "farther", "later"],
    "patterns": [
        "carried",
        "arrived",
        "tree_size",
        "one_pattern",
        "tree_on_link",
        "pattern_capacity",
        "falling_rates",
        "site_reached",
        "used_most",
        "used_least",
        "ceiling_of_all",
    ],
}


@pytest.mark.parametrize(("name", "constraint"), [(n, c) for n, found in CONSTRAINTS.items() for c in found])
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
    """The models have no constraint that the golden files leave out."""
    assert [c.name for c in MODELS[name]().component_objects(pyo.Constraint)] == CONSTRAINTS[name]
