"""The Pyomo models of the baselines, constraint by constraint."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from cwb import solvers
from cwb.algorithms.trees.network import pose
from cwb.core.budget import Budget
from cwb.core.solver import SolverOptions
from cwb.heuristics.wan import formulation
from mtree_networks import all_trees, instance, random_edges


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
    model = formulation.build(wan, np.array(trees), unit)
    result = solvers.get("highs").solve(model, Budget(), SolverOptions())
    assert round(result.objective) == most
