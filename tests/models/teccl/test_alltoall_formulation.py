"""The Pyomo model of the all_to_all, constraint by constraint."""

from __future__ import annotations

from fractions import Fraction

import pyomo.environ as pyo
import pytest
from cwb.models.teccl.alltoall_formulation import build, reduce, shortest
from cwb.models.teccl.alltoall_grid import Grid, ways_for
from cwb.models.teccl.alltoall_problem import Exchange

CONSTRAINTS = ["balance", "switch", "capacity", "delivery"]

#: Ranks 0 and 1 with a link each way, and a switch 2 from 0 to 1; delays of 1, and of 2 into the switch.
SMALL = Exchange(
    (True, True, False), (0, 1), (0, 1, 0, 2), (1, 0, 2, 1), (1, 1, 2, 1), tuple(map(Fraction, (1, 1, 2, "1/2")))
)


def model(side="restrict"):
    """Blocks of one, two and one epochs."""
    grid = Grid((0, 1, 3, 4), side)
    return build(SMALL, grid, reduce(ways_for(SMALL, side)))


def lp_text(built, folder):
    path = folder / "model.lp"
    built.write(str(path), io_options={"symbolic_solver_labels": True})
    return path.read_text()


@pytest.mark.parametrize("side", ["restrict", "relax"])
@pytest.mark.parametrize("name", CONSTRAINTS)
def test_each_constraint_is_written_as_its_golden_file(name, side, golden, tmp_path):
    """Every constraint, alone in the model, gives the LP file that was checked against the paper by hand."""
    built = model(side)
    for constraint in built.component_objects(pyo.Constraint):
        if constraint.name != name:
            constraint.deactivate()
    golden(f"teccl/alltoall/{side}_{name}.lp", lp_text(built, tmp_path))


def test_the_objectives_are_written_as_their_golden_files(golden, tmp_path):
    """The part that is delivered, and then the flow of everything."""
    built = model()
    for constraint in built.component_objects(pyo.Constraint):
        constraint.deactivate()
    golden("teccl/alltoall/objective.lp", lp_text(built, tmp_path))
    shortest(built)
    golden("teccl/alltoall/shortest.lp", lp_text(built, tmp_path))


def test_no_constraint_is_without_golden_file():
    """The model has no constraint that the golden files leave out."""
    assert [c.name for c in model().component_objects(pyo.Constraint)] == CONSTRAINTS
