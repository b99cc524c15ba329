"""A linear model that stays inside HiGHS, to be changed and solved again from the last basis."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import inf
from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray
from pyomo.core.expr.numvalue import value
from pyomo.repn import generate_standard_repn

from ..core.budget import Budget
from ..core.errors import CwbError, InputError, Unsupported
from ..core.solver import ModelSize, SolverResult, Termination
from .base import Session, finish, run_session
from .guard import Worker
from .highs_session import HighsSession
from .matrix import MatrixModel, integrality


class HighsCompiled:
    """See :class:`~cwb.core.solver.CompiledModel`.

    Everything is said in the Pyomo model's own terms: costs and dual values in its sense, sides of a constraint as
    sides of its body. Changes are changes of what HiGHS solves; the Pyomo model keeps its bounds and objective.
    Variables that were fixed while compiling are constants for good. New variables may come with
    :meth:`add_constraint` and :meth:`set_objective`.

    Parameters
    ----------
    session : HighsSession
        Holds the model.
    matrix : MatrixModel
        The model as it was compiled; linear. Its arrays of bounds change with the model.
    transfer_s : float
        Seconds that compiling took; reported with every result.
    """

    def __init__(self, session: Session, matrix: MatrixModel, transfer_s: float) -> None:
        if not isinstance(session, HighsSession):
            raise TypeError("a HiGHS session is needed")
        if matrix.Q is not None or matrix.quadratic_rows:
            session.close()
            raise Unsupported("only a linear model can be compiled for repeated solves, and this one is quadratic")
        if matrix.is_settled:
            # A plain solve needs no HiGHS for such a model, but rows and columns may still be added to this one.
            session.load(matrix, start=False)
        self._session = session
        self._matrix = matrix
        self._transfer_s = transfer_s
        self._worker = Worker("highs")
        self._column = {id(v): j for j, v in enumerate(matrix.columns)}
        self._row = {id(c): i for i, c in enumerate(matrix.rows)}
        self._constant = matrix.body_constants()
        self._nonzeros = matrix.size.nonzeros
        self._row_dual: list[float] | None = None
        self._column_dual: list[float] = []
        self._last_tuple: tuple[object, NDArray[np.int32]] = (None, np.zeros(0, dtype=np.int32))

    @property
    def size(self) -> ModelSize:
        """Size as it is now."""
        return replace(self._matrix.size, nonzeros=self._nonzeros)

    def solve(self, budget: Budget) -> SolverResult:
        """Solve from the last basis and load the values into the Pyomo variables.

        Raises
        ------
        CwbError
            If an earlier solve of this model did not stop in time and was left behind.
        """
        if self._worker.abandoned:
            raise CwbError("HiGHS did not stop in an earlier solve of this compiled model: compile the model again")
        self._row_dual = None
        session, matrix = self._session, self._matrix
        session.threads = budget.threads
        with budget.clock.phase("solve") as lap:
            outcome = run_session(session, matrix, self._worker, budget)
        if outcome.termination is Termination.OPTIMAL and not matrix.is_mixed_integer and not matrix.is_settled:
            solution = session.highs.getSolution()
            self._row_dual, self._column_dual = solution.row_dual, solution.col_dual
        result = finish("highs", session.version, matrix, outcome, self._transfer_s, lap.seconds)
        return replace(result, size=self.size)

    def add_constraint(self, constraint: Any) -> None:
        """Add a linear Pyomo constraint that was created after compiling.

        Raises
        ------
        Unsupported
            If the constraint is not linear.
        """
        repn = generate_standard_repn(constraint.body, quadratic=False)
        if repn.nonlinear_expr is not None:
            raise Unsupported(f"only linear constraints can be added, and {constraint.name} is not linear")
        columns = self._columns_of(repn.linear_vars, new=True)
        coefficients = np.array([value(a) for a in repn.linear_coefs], dtype=float)
        constant = float(value(repn.constant))
        lower = -inf if constraint.lb is None else constraint.lb - constant
        upper = inf if constraint.ub is None else constraint.ub - constant
        self._require(self._session.highs.addRow(lower, upper, columns.size, columns, coefficients))
        matrix = self._matrix
        self._row[id(constraint)] = len(matrix.rows)
        self._constant.append(constant)
        self._nonzeros += columns.size
        self._replace(
            rows=[*matrix.rows, constraint],
            row_lower=np.append(matrix.row_lower, lower),
            row_upper=np.append(matrix.row_upper, upper),
        )

    def set_objective(self, coefficients: Sequence[tuple[Any, float]], offset: float = 0.0) -> None:
        """Replace the objective by a linear one, in the sense of the model that was compiled."""
        columns = self._columns_of([variable for variable, _ in coefficients], new=True)
        costs = np.array([cost for _, cost in coefficients], dtype=float)
        sign = self._matrix.sign
        c = sign * np.bincount(columns, costs, len(self._matrix.columns)).astype(float)
        self._replace(c=c, offset=sign * offset)
        self._session.scale = self._matrix.cost_scale
        self._session.set_costs(c)

    def set_variable_bounds(self, variables: Sequence[Any], lower: Sequence[float], upper: Sequence[float]) -> None:
        """Replace the bounds of variables; infinite ones are none.

        Raises
        ------
        InputError
            If a variable is not in the compiled model.
        """
        columns = self._columns_of(variables, new=False)
        low, up = np.asarray(lower, dtype=float), np.asarray(upper, dtype=float)
        self._require(self._session.highs.changeColsBounds(columns.size, columns, low, up))
        self._matrix.lower[columns] = low
        self._matrix.upper[columns] = up
        self._forget_crossed_bounds()

    def set_constraint_bounds(self, constraints: Sequence[Any], lower: Sequence[float], upper: Sequence[float]) -> None:
        """Replace the two sides of constraints; they are sides of the Pyomo body, constants included.

        Raises
        ------
        InputError
            If a constraint is not in the compiled model.
        """
        rows = self._indices(self._row, constraints, "constraint")
        constant = np.array([self._constant[i] for i in rows.tolist()], dtype=float)
        low, up = np.asarray(lower, dtype=float) - constant, np.asarray(upper, dtype=float) - constant
        self._require(self._session.highs.changeRowsBounds(rows.size, rows, low, up))
        self._matrix.row_lower[rows] = low
        self._matrix.row_upper[rows] = up
        self._forget_crossed_bounds()

    def dual(self, constraint: Any) -> float:
        """Dual value after an optimal solve: change of the optimal objective per unit of the right-hand side.

        Raises
        ------
        InputError
            If the constraint is not in the compiled model.
        CwbError
            If the last solve was not optimal, or the model has integer variables.
        """
        row = int(self._indices(self._row, [constraint], "constraint")[0])
        return self._in_model_terms(self._duals()[row])

    def reduced_cost(self, variable: Any) -> float:
        """Reduced cost after an optimal solve: change of the optimal objective per unit of the variable's bound.

        Raises
        ------
        InputError, CwbError
            As :meth:`dual`.
        """
        self._duals()
        column = int(self._indices(self._column, [variable], "variable")[0])
        return self._in_model_terms(self._column_dual[column])

    def _duals(self) -> list[float]:
        if self._row_dual is None:
            raise CwbError("dual values exist after an optimal solve of a model without integer variables, not now")
        return self._row_dual

    def _in_model_terms(self, dual: float) -> float:
        return self._matrix.sign * dual / self._session.scale + 0.0

    def _indices(self, index: dict[int, int], components: Iterable[Any], kind: str) -> NDArray[np.int32]:
        # A tuple cannot have changed since it was last looked up; a loop of re-solves passes the same one.
        if components is self._last_tuple[0]:
            return self._last_tuple[1]
        listed = components if isinstance(components, list | tuple) else list(components)
        try:
            found = np.fromiter(map(index.__getitem__, map(id, listed)), np.int32, len(listed))
        except KeyError:
            name = next(component.name for component in listed if id(component) not in index)
            raise InputError(f"{kind} {name} is not in the compiled model") from None
        if isinstance(components, tuple):
            self._last_tuple = (components, found)
        return found

    def _columns_of(self, variables: Iterable[Any], *, new: bool) -> NDArray[np.int32]:
        """Give the columns of variables, adding those that are not in the model yet where that is allowed."""
        if new:
            variables = list(variables)
            for variable in variables:
                if id(variable) not in self._column:
                    self._add_column(variable)
        return self._indices(self._column, variables, "variable")

    def _add_column(self, variable: Any) -> None:
        is_integer = bool(integrality([variable])[0])
        if is_integer and not self._matrix.is_mixed_integer:
            raise Unsupported(f"integer variable {variable.name} cannot be added to a compiled model without integers")
        lower, upper = variable.bounds
        low, up = -inf if lower is None else lower, inf if upper is None else upper
        highs, matrix = self._session.highs, self._matrix
        self._require(highs.addCol(0.0, low, up, 0, np.zeros(0, dtype=np.int32), np.zeros(0)))
        if is_integer:
            self._require(highs.changeColIntegrality(len(matrix.columns), highspy.HighsVarType.kInteger))
        self._column[id(variable)] = len(matrix.columns)
        self._replace(
            columns=[*matrix.columns, variable],
            c=np.append(matrix.c, 0.0),
            lower=np.append(matrix.lower, low),
            upper=np.append(matrix.upper, up),
            integer=np.append(matrix.integer, is_integer),
            unused=[v for v in matrix.unused if v is not variable],
        )

    def _forget_crossed_bounds(self) -> None:
        """Leave it to HiGHS whether the bounds still cross after a change."""
        if self._matrix.contradiction is not None and not self._matrix.is_false_for_good:
            self._replace(contradiction=None)

    def _replace(self, **changes: Any) -> None:
        self._matrix = replace(self._matrix, **changes)
        self._session.matrix = self._matrix

    @staticmethod
    def _require(status: Any) -> None:
        if status == highspy.HighsStatus.kError:
            raise CwbError("HiGHS refuses the change: a number is out of the range that it takes")
