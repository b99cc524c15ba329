"""Files of compiled models say what was solved."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import exam_models
import highspy
import pyomo.environ as pe
import pytest
from cwb.core.budget import Budget
from cwb.core.errors import InputError
from cwb.core.solver import ResolvingSolver
from cwb.harness.request import LastModel
from cwb.solvers.highs_common import model_text
from cwb.solvers.matrix import compile_matrix

SUFFIXES = (".mps", ".lp")


def optimum(path: Path) -> float:
    """Optimal objective of a model in a file, as HiGHS reads it."""
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    assert highs.readModel(str(path)) == highspy.HighsStatus.kOk
    highs.run()
    assert highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return float(highs.getInfo().objective_function_value)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    ("build", "value"),
    [
        (exam_models.lp_max, 43.0),
        (exam_models.lp_mixed_rows, 1.5),
        (exam_models.mip_general, 14.4),
        (exam_models.tiny_costs_lp, 4e-9),
        (exam_models.convex_qp, 1.5),
    ],
)
def test_a_file_has_the_optimum_of_the_model(
    tmp_path: Path, suffix: str, build: Callable[[], Any], value: float
) -> None:
    """Sense, constants, ranges, integers, small costs and a quadratic objective are in the file as in the model."""
    path = tmp_path / f"model{suffix}"
    path.write_bytes(model_text(compile_matrix(build()), suffix))
    assert optimum(path) == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("name", ["highs", "scip"])
def test_a_model_that_was_changed_is_written_as_it_was_solved_last(
    tmp_path: Path, name: str, suffix: str, require_solver: Callable[[str], Any]
) -> None:
    """Rows, columns, bounds, sides and costs of re-solves are in the file, and changes after the last solve are not."""
    solver = require_solver(name)
    assert isinstance(solver, ResolvingSolver)
    m = exam_models.lp_max()
    kept = LastModel(tmp_path / f"model{suffix}")
    budget = Budget(on_model=kept)
    compiled = solver.compile(m, budget)
    assert compiled.solve(budget).objective == pytest.approx(43)
    m.extra = pe.Var(bounds=(0, 1))
    m.more = pe.Constraint(expr=m.x + m.y + m.extra <= 5)
    compiled.add_constraint(m.more)
    compiled.set_objective([(m.x, 3.0), (m.y, 5.0), (m.extra, 9.0)], 2.0)
    compiled.set_variable_bounds([m.y], [0.0], [3.5])
    compiled.set_constraint_bounds([m.more], [-100.0], [4.75])
    last = compiled.solve(budget)
    compiled.set_variable_bounds([m.y], [0.0], [1.0])
    assert kept.write()
    assert optimum(kept.path) == pytest.approx(last.objective, rel=1e-9)
    assert last.objective != pytest.approx(43)


def test_names_are_those_of_the_model_each_once() -> None:
    """Names stay readable in the file, and two that differ only in what the formats do not take stay two."""
    m = pe.ConcreteModel()
    m.x = pe.Var(["a b", "a_b"], bounds=(0, 1))
    m.o = pe.Objective(expr=sum(m.x.values()), sense=pe.maximize)
    m.c = pe.Constraint(expr=sum(m.x.values()) <= 1.5)
    text = model_text(compile_matrix(m), ".lp").decode()
    assert "x(a_b)" in text
    assert "x1_x(a_b)" in text


def test_quadratic_constraints_are_written_as_pyomo_has_them(tmp_path: Path) -> None:
    """A model with quadratic constraints is written at once, before a method can change it."""
    m = exam_models.bilinear()
    kept = LastModel(tmp_path / "model.lp")
    kept(lambda: compile_matrix(m))
    m.del_component(m.c)
    assert kept.write()
    assert "*" in kept.path.read_text()


def test_nothing_is_written_where_nothing_was_solved(tmp_path: Path) -> None:
    """Without a model there is no file, and a name that says no format is refused."""
    kept = LastModel(tmp_path / "model.lp")
    assert not kept.write()
    assert not kept.path.exists()
    with pytest.raises(InputError, match=r"expected \.lp or \.mps"):
        LastModel(tmp_path / "model.txt")
