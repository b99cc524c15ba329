"""The Pyomo models of TE-CCL, constraint by constraint."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pyomo.environ as pyo
import pytest
from cwb.models.teccl import astar_formulation, lp_formulation, milp_formulation
from cwb.models.teccl.epochs import epoch_problem
from cwb.models.teccl.layout import Rules, layout
from cwb.models.teccl.lp_formulation import FluidLayout
from cwb.models.teccl.rounds import State, round_layout
from grids import network, on_grid, with_room, with_switch

PAIR = network(2, [(0, 1, 1, 0), (1, 0, 1, 0)])
LINE = network(3, [(0, 1, 1, 0), (1, 0, 1, 0), (1, 2, 1, 0), (2, 1, 1, 0)])
FAT = [(0, 3, 2, 0), (3, 1, 1, 0), (3, 2, 1, 0)]


def milp(instance, epochs, rules=None, objective="paper"):
    return milp_formulation.build(layout(epoch_problem(instance), epochs, rules or Rules()), objective)


def one_source(**switch):
    """A broadcast of one chunk from rank 0 over the switch."""
    return on_grid(with_switch(**switch), "broadcast")


def astar():
    problem = epoch_problem(one_source())
    return astar_formulation.build(round_layout(problem, 2, State(frozenset([(0, 0)]))), 0.5)


def lp(objective="makespan"):
    problem = epoch_problem(with_room(on_grid(with_switch(), "scatter", fluid=True), 1))
    return lp_formulation.build(FluidLayout(problem, 4), objective)


MODELS = {
    "milp": lambda: milp(one_source(), 3),
    "late": lambda: milp(one_source(), 3, objective="late"),
    "window": lambda: milp(on_grid(PAIR, "scatter", chunks=2, epoch_us=Fraction(1, 2)), 5),
    "no_copy": lambda: milp(one_source(multicast=False), 3),
    "stores": lambda: milp(one_source(multicast=False, buffer=None), 4),
    "sum": lambda: milp(on_grid(PAIR, "all_reduce"), 3),
    "added": lambda: milp(on_grid(LINE, "reduce", 2), 3),
    "copies": lambda: milp(on_grid(network(3, FAT, (3,), multicast=False), "broadcast", 2), 2),
    "limited": lambda: milp(with_room(on_grid(with_switch(), "scatter"), 1), 4),
    "small_switch": lambda: milp(one_source(multicast=False, buffer=Fraction(1000)), 4),
    "hyper": lambda: milp(one_source(multicast=False), 4, Rules(switches="hyper-edges")),
    "astar": astar,
    "lp": lp,
    "lp_paper": lambda: lp("paper"),
}
CONSTRAINTS = {
    "milp": ["capacity", "buffers", "flow_conservation", "passing_on", "destination"],
    "late": ["not_arrived"],
    "window": ["capacity"],
    "no_copy": ["passing_on_once"],
    "stores": ["flow_conservation_once"],
    "sum": ["ready"],
    "added": ["added_up", "capacity"],
    "copies": ["capacity", "passing_on_once"],
    "limited": ["limited_buffers", "removed", "buffers"],
    "small_switch": ["limited_buffers"],
    "hyper": ["hyper_edge_limit", "capacity"],
    "astar": ["buffers", "passing_on", "on_the_way", "assigned"],
    "lp": ["capacity", "flow_conservation", "destination", "limited_buffers"],
    "lp_paper": ["destination"],
}


def lp_text(model, folder: Path) -> str:
    path = folder / "model.lp"
    model.write(str(path), io_options={"symbolic_solver_labels": True})
    return path.read_text()


@pytest.mark.parametrize(("name", "constraint"), [(name, c) for name, found in CONSTRAINTS.items() for c in found])
def test_each_constraint_is_written_as_its_golden_file(name, constraint, golden, tmp_path):
    """Every constraint, alone in its model with the objective, gives the LP file that was checked against the paper by hand."""
    model = MODELS[name]()
    for other in model.component_objects(pyo.Constraint):
        if other.name != constraint:
            other.deactivate()
    assert len(list(model.component(constraint).values())) > 0
    golden(f"teccl/{name}_{constraint}.lp", lp_text(model, tmp_path))


def test_no_constraint_is_without_golden_file():
    """The models have no constraint that the golden files leave out."""
    shown = {c for found in CONSTRAINTS.values() for c in found}
    for build in MODELS.values():
        for constraint in build().component_objects(pyo.Constraint):
            assert constraint.name in shown or not len(constraint), constraint.name
