"""The Pyomo model of the optimal all-reduce, constraint by constraint."""

from __future__ import annotations

from pathlib import Path

import pyomo.environ as pyo
import pytest
from cwb import solvers
from cwb.core.budget import Budget
from cwb.models.forestcoll.allreduce_formulation import PairNetwork, build, unit
from cwb.models.forestcoll.scaled import scale
from hypothesis import given, settings
from small_networks import graphs, network

BOTH = ["link_capacity", "switch_balance", "pair_capacity", "broadcast_capacity", "broadcast_balance"]
CONSTRAINTS = {"mirrored": BOTH, "one_way": [*BOTH, "reduce_capacity", "reduce_balance"]}


def built(name):
    """Three ranks: 0 and 1 on a switch with links of 6, 1 and 2 on links of 3 and 1; the other way around too, or 2 -> 0 only."""
    there = [(0, 3, 6), (3, 1, 6), (1, 2, 3), (1, 2, 1)]
    back = [(2, 0, 4)] if name == "one_way" else [(b, a, c) for a, b, c in there]
    return build(PairNetwork(scale(network(3, 1, there + back))))


def lp_text(model, folder: Path) -> str:
    path = folder / "model.lp"
    model.write(str(path), io_options={"symbolic_solver_labels": True})
    return path.read_text()


@pytest.mark.parametrize(("name", "constraint"), [(name, c) for name, found in CONSTRAINTS.items() for c in found])
def test_each_constraint_is_written_as_its_golden_file(name, constraint, golden, tmp_path):
    """Every constraint, alone in its model, gives the LP file that was checked against the paper by hand."""
    model = built(name)
    for other in model.component_objects(pyo.Constraint):
        if other.name != constraint:
            other.deactivate()
    golden(f"forestcoll/allreduce_{name}_{constraint}.lp", lp_text(model, tmp_path))


@pytest.mark.parametrize("name", list(CONSTRAINTS))
def test_no_constraint_is_without_golden_file(name):
    """The model has no constraint that the golden files leave out."""
    assert [c.name for c in built(name).component_objects(pyo.Constraint)] == CONSTRAINTS[name]


@settings(max_examples=40, deadline=None)
@given(graphs(two_way=True))
def test_mirror_images_need_no_flows_of_their_own(topology):
    """Where links have the same bandwidth in both directions, the small model has the optimum of the full one."""
    small, full = PairNetwork(scale(topology)), PairNetwork(scale(topology))
    assert small.mirrored
    vars(full)["mirrored"] = False
    optima = [solvers.get("highs").solve(build(pairs), Budget()).objective for pairs in (small, full)]
    assert optima[0] == pytest.approx(optima[1], rel=1e-7)


def test_pairs_go_through_switches_only():
    """A rank reaches others over its links and over switches, not through ranks, and never itself."""
    pairs = PairNetwork(
        scale(network(4, 2, [(0, 4, 1), (4, 5, 1), (5, 1, 1), (4, 0, 1), (1, 2, 1), (2, 3, 1), (3, 0, 1)]))
    )
    assert pairs.pairs == ((0, 1), (1, 2), (2, 3), (3, 0))
    assert pairs.relays == {0: (0, 1, 2)}
    assert not pairs.mirrored
    assert unit(pairs) == 1
