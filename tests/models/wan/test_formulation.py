"""The Pyomo models of the baselines, constraint by constraint."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pyomo.environ as pyo
import pytest
from cwb import solvers
from cwb.core.budget import Budget
from cwb.core.solver import SolverOptions
from cwb.models.common.wan import rates
from cwb.models.common.wan.network import pose
from cwb.models.wan import units
from mtree_networks import all_trees, instance, random_edges

#: A triangle of 3, 2 and 1 Mb/s, and its three trees.
EDGES = [(0, 1, 3, 1), (1, 2, 2, 2), (0, 2, 1, 3)]
TREES = np.array([[0, 1], [0, 2], [1, 2]])

MODELS = {
    "rates": lambda: rates.build(pose(instance(3, EDGES)), TREES),
    "units": lambda: units.build(pose(instance(3, EDGES)), TREES, 1),
}
CONSTRAINTS = {"rates": ["link_capacity"], "units": ["unit_capacity"]}


@pytest.mark.parametrize(("name", "constraint"), [(n, c) for n, found in CONSTRAINTS.items() for c in found])
def test_each_constraint_is_written_as_its_golden_file(name, constraint, golden, tmp_path):
    """Every constraint, with the objective, gives the LP file that was checked by hand."""
    path = tmp_path / "model.lp"
    MODELS[name]().write(str(path), io_options={"symbolic_solver_labels": True})
    golden(f"wan/{name}_{constraint}.lp", path.read_text())


@pytest.mark.parametrize("name", list(MODELS))
def test_no_constraint_is_without_golden_file(name):
    """The models have no constraint that the golden files leave out."""
    assert [c.name for c in MODELS[name]().component_objects(pyo.Constraint)] == CONSTRAINTS[name]


@pytest.mark.parametrize("seed", range(6))
def test_units_are_chosen_as_by_trying_everything(seed):
    """The most trees of one unit each that fit are found."""
    edges = random_edges(4, 3, seed, largest=4)
    wan = pose(instance(4, edges))
    trees, unit = all_trees(4, edges), int(wan.capacity.min())
    room = wan.capacity // unit

    def fits(chosen):
        return all(sum(e in tree for tree in chosen) <= room[e] for e in range(len(edges)))

    most = max(k for k in range(len(trees) + 1) if any(fits(c) for c in combinations(trees, k)))
    model = units.build(wan, np.array(trees), unit)
    result = solvers.get("highs").solve(model, Budget(), SolverOptions())
    assert round(result.objective) == most
