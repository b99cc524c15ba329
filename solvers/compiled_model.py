"""Linear models that are changed and solved again; the best solutions of a model, one after another.

A solver that keeps nothing between solves starts each from scratch.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import inf
from typing import Any, ClassVar, Protocol

import numpy as np
import pyomo.environ as pyo
import scipy.sparse as sp
from numpy.typing import NDArray
from pyomo.core.expr.numvalue import value
from pyomo.repn import generate_standard_repn

from ..core.budget import Budget
from ..core.errors import CwbError, InputError, Unsupported
from ..core.solver import ModelSize, SolverOptions, SolverResult, Termination
from .guard import lend_worker
from .matrix import BoolArray, FloatArray, MatrixModel, integrality
from .session import Session, SessionResult, finish, run_session


class SessionOpener(Protocol):
    """Part of an adapter that re-solves a compiled model."""

    name: str
    numbers_threads: ClassVar[bool]

    def open(self, budget: Budget, options: SolverOptions) -> Session:
        """Start a session and apply the options to it."""
        ...


class CompiledLinearModel:
    """See :class:`~cwb.core.solver.CompiledModel`.

    All values are in the Pyomo model's own terms: costs and dual values in its sense, sides of a constraint as sides of
    its body. Changes are changes of the compiled arrays; the Pyomo model keeps its bounds and objective. Variables that
    were fixed while compiling stay constants. :meth:`add_constraint` and :meth:`set_objective` may add new variables.

    A solver that keeps a model changes its own copy too (the methods ``native_``) and overrides :meth:`run`. The arrays
    of bounds of the matrix change with the model; ``transfer_s``, the seconds of compilation, are reported with every
    result. A model that is not linear is Unsupported.
    """

    def __init__(self, adapter: SessionOpener, matrix: MatrixModel, options: SolverOptions, transfer_s: float) -> None:
        if matrix.Q is not None or matrix.quadratic_rows:
            raise Unsupported("only a linear model can be compiled for repeated solves, and this one is quadratic")
        self._adapter = adapter
        self._matrix = matrix
        self._options = options
        self._transfer_s = transfer_s
        self._column = {id(v): j for j, v in enumerate(matrix.columns)}
        self._row = {id(c): i for i, c in enumerate(matrix.rows)}
        self._constant = matrix.body_constants()
        self._nonzeros = matrix.size.nonzeros
        self._new_rows: list[tuple[NDArray[np.int32], NDArray[Any]]] = []
        self._duals: Sequence[float] | None = None
        self._scale = 1.0
        self._last_tuple: tuple[object, NDArray[np.int32]] = (None, np.zeros(0, dtype=np.int32))

    @property
    def size(self) -> ModelSize:
        """Present size of the model."""
        return replace(self._matrix.size, nonzeros=self._nonzeros)

    def solve(self, budget: Budget) -> SolverResult:
        """Solve and load the values into the Pyomo variables.

        Raise CwbError if an earlier solve of this model did not stop in time and was abandoned.
        """
        self._duals = None
        with budget.clock.phase("solve") as lap:
            outcome, version = self.run(budget)
        matrix = self._matrix
        if outcome.termination is Termination.OPTIMAL and not matrix.is_mixed_integer and not matrix.is_settled:
            self._duals = outcome.duals
        result = finish(self._adapter.name, version, matrix, outcome, self._transfer_s, lap.seconds)
        return replace(result, size=self.size)

    def run(self, budget: Budget) -> tuple[SessionResult, str]:
        """Solve the model in its present form; return the outcome and the solver's version."""
        matrix = self.assemble()
        session = self._adapter.open(budget, self._options)
        session.keeps_duals = not matrix.is_mixed_integer
        session.track.sign = matrix.sign
        with lend_worker(self._adapter.name, session.close, again=self._adapter.numbers_threads) as worker:
            if not matrix.is_settled:
                session.load(matrix, start=False)
            outcome = run_session(session, matrix, worker, budget)
        self._scale = matrix.cost_scale
        return outcome, session.version

    def assemble(self) -> MatrixModel:
        """Return the present model, with all rows and columns, in arrays that no longer change."""
        A, new_rows = self._matrix.A, self._new_rows
        ends = np.cumsum([0, *(len(columns) for columns, _ in new_rows)])
        columns = np.concatenate([np.zeros(0, dtype=np.int32), *(columns for columns, _ in new_rows)])
        data = np.concatenate([np.zeros(0), *(coefficients for _, coefficients in new_rows)])
        width = len(self._matrix.columns)
        old = sp.csr_array((A.data, A.indices, A.indptr), shape=(A.shape[0], width))
        new = sp.csr_array((data, columns, ends), shape=(len(new_rows), width))
        self._replace(A=sp.csr_array(sp.vstack([old, new], format="csr")))
        self._new_rows = []
        return self._matrix.with_settled_bounds()

    def add_constraint(self, constraint: Any) -> None:
        """Add a linear Pyomo constraint that was created after compiling."""
        repn = generate_standard_repn(constraint.body, quadratic=False)
        if repn.nonlinear_expr is not None:
            raise Unsupported(f"only linear constraints can be added, and {constraint.name} is not linear")
        columns = self._columns_of(repn.linear_vars, new=True)
        coefficients = np.array([value(a) for a in repn.linear_coefs], dtype=float)
        constant = float(value(repn.constant))
        lower = -inf if constraint.lb is None else constraint.lb - constant
        upper = inf if constraint.ub is None else constraint.ub - constant
        self.native_row(lower, upper, columns, coefficients)
        self._new_rows.append((columns, coefficients))
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
        self.native_costs(c)

    def set_variable_bounds(self, variables: Sequence[Any], lower: Sequence[float], upper: Sequence[float]) -> None:
        """Replace the bounds of variables, which must be in the compiled model; infinite ones are none."""
        columns = self._columns_of(variables, new=False)
        low, up = np.asarray(lower, dtype=float), np.asarray(upper, dtype=float)
        self.native_column_bounds(columns, low, up)
        self._matrix.lower[columns] = low
        self._matrix.upper[columns] = up
        self._forget_crossed_bounds()

    def set_constraint_bounds(self, constraints: Sequence[Any], lower: Sequence[float], upper: Sequence[float]) -> None:
        """Replace the two sides of constraints; they are sides of the Pyomo body, constants included."""
        rows = self._indices(self._row, constraints, "constraint")
        constant = np.array([self._constant[i] for i in rows.tolist()], dtype=float)
        low, up = np.asarray(lower, dtype=float) - constant, np.asarray(upper, dtype=float) - constant
        self.native_row_bounds(rows, low, up)
        self._matrix.row_lower[rows] = low
        self._matrix.row_upper[rows] = up
        self._forget_crossed_bounds()

    def dual(self, constraint: Any) -> float:
        """Return a constraint's dual value: change of the optimal objective per unit of right-hand side.

        Raise CwbError if the last solve was not optimal, or the model has integer variables.
        """
        row = int(self._indices(self._row, [constraint], "constraint")[0])
        if self._duals is None:
            raise CwbError("dual values exist after an optimal solve of a model without integer variables, not now")
        return self._matrix.sign * self._duals[row] / self._scale + 0.0

    def _indices(self, index: dict[int, int], components: Iterable[Any], kind: str) -> NDArray[np.int32]:
        # A tuple cannot have changed since it was last looked up; a loop of re-solves passes the same one.
        if components is self._last_tuple[0]:
            return self._last_tuple[1]
        items = components if isinstance(components, list | tuple) else list(components)
        try:
            numbers = np.fromiter(map(index.__getitem__, map(id, items)), np.int32, len(items))
        except KeyError:
            name = next(component.name for component in items if id(component) not in index)
            raise InputError(f"{kind} {name} is not in the compiled model") from None
        if isinstance(components, tuple):
            self._last_tuple = (components, numbers)
        return numbers

    def _columns_of(self, variables: Iterable[Any], *, new: bool) -> NDArray[np.int32]:
        """Return the columns of variables, adding missing ones if allowed."""
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
        self.native_column(low, up, is_integer=is_integer)
        matrix = self._matrix
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
        """Let the solver find out if bounds still cross after a change."""
        if self._matrix.contradiction is not None and not self._matrix.is_false_for_good:
            self._replace(contradiction=None)

    def _replace(self, **changes: Any) -> None:
        self._matrix = replace(self._matrix, **changes)

    def native_row(self, lower: float, upper: float, columns: NDArray[np.int32], coefficients: NDArray[Any]) -> None:
        """Add a row, which :meth:`assemble` will include."""

    def native_column(self, lower: float, upper: float, *, is_integer: bool) -> None:
        """Add a column in no row, which the arrays will include."""

    def native_costs(self, c: FloatArray) -> None:
        """Replace the costs, which the arrays already have."""

    def native_column_bounds(self, columns: NDArray[np.int32], lower: FloatArray, upper: FloatArray) -> None:
        """Replace bounds of columns, which the arrays will have."""

    def native_row_bounds(self, rows: NDArray[np.int32], lower: FloatArray, upper: FloatArray) -> None:
        """Replace the sides of rows, which the arrays will have."""


def binaries(matrix: MatrixModel) -> BoolArray:
    """Return the mask of the columns that distinguish solutions; raise Unsupported if there are none."""
    mask: BoolArray = matrix.integer & (matrix.lower >= 0.0) & (matrix.upper <= 1.0)
    if not mask.any():
        raise Unsupported("the model has no binary variables to distinguish the solutions of a pool")
    return mask


def solve_by_exclusion(
    model: CompiledLinearModel, budget: Budget, points: Iterable[FloatArray] = ()
) -> Iterator[SolverResult]:
    """Solve repeatedly, with the ``points`` and then each solution excluded by rows on the binary variables."""
    matrix = model.assemble()
    binary = np.flatnonzero(binaries(matrix))
    variables = [matrix.columns[j] for j in binary.tolist()]
    holder = pyo.ConcreteModel()
    holder.other = pyo.ConstraintList()

    def exclude(values: Iterable[float]) -> None:
        terms = [1.0 - x if round(value) else x for x, value in zip(variables, values, strict=True)]
        model.add_constraint(holder.other.add(pyo.quicksum(terms) >= 1.0))

    for point in points:
        exclude(point[binary])
    while True:
        result = model.solve(budget)
        yield result
        if result.termination is not Termination.OPTIMAL:
            return
        exclude(variable.value for variable in variables)
