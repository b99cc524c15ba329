"""Conditions that exclude one another: found on every solver, and checked by another program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyomo.environ as pyo
import pytest
from cwb import solvers
from cwb.core.errors import Unsupported
from cwb.harness.clock import WallClock
from cwb.solvers.conflict import (
    LOWER,
    ROW,
    UPPER,
    conditions_of,
    equation_of,
    false_conditions,
    find_conflict,
    minimal_parts,
)
from cwb.solvers.matrix import compile_matrix
from irreducible import budget, feasible, require_irreducible


def small() -> Any:
    """x + y >= 3 with both at most 1, among conditions that do not matter."""
    m = pyo.ConcreteModel()
    m.I = pyo.RangeSet(4)
    m.x = pyo.Var(m.I, bounds=(0, 1))

    @m.Constraint(m.I)
    def harmless(m: Any, i: int) -> Any:
        """``x_i <= 2``."""
        return m.x[i] + m.x[i % 4 + 1] <= 2

    @m.Constraint()
    def too_much(m: Any) -> Any:
        return m.x[1] + m.x[2] >= 3

    m.objective = pyo.Objective(expr=m.x[1])
    return m


def odd() -> Any:
    """2 x + 2 y = 3: fractions would do."""
    m = pyo.ConcreteModel()
    m.x, m.y = pyo.Var(domain=pyo.Integers, bounds=(0, 5)), pyo.Var(domain=pyo.Integers, bounds=(0, 5))
    m.odd = pyo.Constraint(expr=2 * m.x + 2 * m.y == 3)
    m.other = pyo.Constraint(expr=m.x + m.y <= 9)
    return m


@pytest.mark.parametrize("name", ["highs", "gurobi", "scip", "pyomo:cbc", "pyomo:glpk"])
def test_every_solver_finds_an_irreducible_conflict(name: str, require_solver: Callable[[str], Any]) -> None:
    """Of a small linear program all solvers find its only conflict."""
    solver = require_solver(name)
    m = small()
    matrix = compile_matrix(m)
    conflict = find_conflict(solver, matrix, budget())
    assert conflict is not None
    require_irreducible(matrix, conflict)
    told = conditions_of(matrix, conflict.parts, {})
    assert [condition.algebra for condition in told] == ["x[1] + x[2] >= 3", "x[1] <= 1", "x[2] <= 1"]


@pytest.mark.parametrize("name", ["highs", "gurobi", "scip"])
def test_a_conflict_of_whole_numbers_says_so(name: str) -> None:
    """If fractions would satisfy it, the conflict is reported as one in whole numbers."""
    m = odd()
    matrix = compile_matrix(m)
    conflict = find_conflict(solvers.get(name), matrix, budget())
    assert conflict is not None
    assert conflict.whole
    assert conflict.irreducible
    assert (ROW, 0) in conflict.parts
    assert (ROW, 1) not in conflict.parts


@pytest.mark.parametrize("name", ["highs", "gurobi", "scip"])
def test_the_rest_can_be_met_in_whole_numbers(name: str) -> None:
    """A bound is left out that only fractions need, although the conditions clash for fractions too."""
    m = pyo.ConcreteModel()
    m.x = pyo.Var(domain=pyo.Integers, bounds=(0, 2))
    m.half = pyo.Constraint(expr=2 * m.x == 5)
    m.o = pyo.Objective(expr=m.x)
    conflict = find_conflict(solvers.get(name), compile_matrix(m), budget())
    assert conflict is not None
    assert (conflict.parts, conflict.whole, conflict.irreducible) == (((ROW, 0),), True, True)


def test_what_is_feasible_has_no_conflict() -> None:
    """A model with a solution has none, and one that may not be solved has none that is known."""
    m = small()
    m.too_much.deactivate()
    assert find_conflict(solvers.get("highs"), compile_matrix(m), budget()) is None
    stopped = budget()
    stopped.stop.set()
    assert find_conflict(solvers.get("highs"), compile_matrix(m), stopped) is None


def test_when_the_time_is_over_nothing_is_claimed() -> None:
    """A search whose time ends on the way gives a conflict that it does not call irreducible."""

    class Ending(WallClock):
        """Has time for a few models."""

        asked = 0

        def remaining_s(self) -> float:
            self.asked += 1
            return 10.0 if self.asked < 12 else 0.0

    m = small()
    matrix = compile_matrix(m)
    conflict = find_conflict(solvers.get("scip"), matrix, replace(budget(), clock=Ending(10.0)))
    assert conflict is not None
    assert not conflict.irreducible
    assert not feasible(matrix, conflict.parts, whole=conflict.whole)


def test_crossed_bounds_are_a_conflict_of_their_own() -> None:
    """Bounds that exclude every value need no solver."""
    m = small()
    m.x[3].setlb(2)
    conflict = find_conflict(solvers.get("highs"), compile_matrix(m), budget())
    assert conflict is not None
    assert (conflict.parts, conflict.solves) == (((LOWER, 2), (UPPER, 2)), 0)


def test_linear_conflicts_are_found_beside_quadratic_constraints() -> None:
    """HiGHS explains a model with products if its linear part is infeasible, and refuses it otherwise."""
    m = small()
    m.product = pyo.Constraint(expr=m.x[3] * m.x[4] >= 2)
    matrix = compile_matrix(m)
    conflict = find_conflict(solvers.get("highs"), matrix, budget())
    assert conflict is not None
    assert len(conflict.parts) == 3
    m.too_much.deactivate()
    with pytest.raises(Unsupported, match="without its quadratic constraints such as product"):
        find_conflict(solvers.get("highs"), compile_matrix(m), budget())
    conflict = find_conflict(solvers.get("scip"), compile_matrix(m), budget())
    assert conflict is not None
    assert conflict.irreducible
    assert "products of variables >= 2" in {c.algebra for c in conditions_of(matrix, ((ROW, 5),), {})}


def test_a_row_without_variables_is_named() -> None:
    """A constraint that is false whatever the variables are is found without a solver."""
    m = small()
    m.never = pyo.Constraint([7], rule=lambda m, i: pyo.Constraint.Infeasible)
    (told,) = false_conditions(m, {})
    assert (told.component, told.algebra) == ("never", "1 <= 0")


def test_constraints_are_told_in_their_own_words() -> None:
    """The docstring of a rule, or of the function around it, says what a constraint is; indices have their names."""
    m = small()
    matrix = compile_matrix(m)
    assert equation_of(m.harmless) == "``x_i <= 2``."
    assert equation_of(m.too_much) == "x + y >= 3 with both at most 1, among conditions that do not matter."
    (told,) = conditions_of(matrix, ((ROW, 1),), {"i": lambda i: f"number {i}"})
    assert told.index == "i=2 (number 2)"
    assert told.algebra == "x[2] + x[3] <= 2"


def test_thinning_keeps_what_is_needed() -> None:
    """Of a hundred parts the two that are needed are left."""
    parts = [(ROW, i) for i in range(100)]
    assert minimal_parts(parts, lambda rest: {(ROW, 17), (ROW, 18)} <= set(rest)) == [(ROW, 17), (ROW, 18)]
    assert minimal_parts(parts, lambda rest: True) == []
