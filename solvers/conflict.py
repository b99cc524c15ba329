"""Small sets of rows and bounds of a model that exclude one another, and these in terms of the declaration.

The solver's own irreducible infeasible subset, if any, or else all rows and bounds, are reduced by the deletion
filter (Chinneck and Dravnieks, 1991), then checked: docs/explaining.md.
"""

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np
from pyomo.core.base import Constraint
from pyomo.core.expr.numvalue import value

from ..core.budget import Budget, ignore
from ..core.errors import Unsupported
from ..core.explanation import Condition
from ..core.solver import Capability, SolverOptions, Termination
from .base import DEFAULT_OPTIONS, Adapter
from .guard import lend_worker, time_left_s
from .matrix import MatrixModel
from .session import NativeConflict, SessionResult, run_session

#: A row, or the lower or upper bound of a column, by its number.
Part = tuple[str, int]
ROW, LOWER, UPPER = "row", "lower", "upper"

_DELETION = "deletion filter"


@dataclass(frozen=True)
class Conflict:
    """Infeasible part of a model.

    ``parts`` are rows, then bounds. Integrality is no part: it is always kept, and needed if ``whole``. If
    ``irreducible``, removing any one part makes the rest feasible.
    """

    parts: tuple[Part, ...]
    whole: bool
    irreducible: bool
    by: str
    solves: int


def find_conflict(
    adapter: Adapter, matrix: MatrixModel, budget: Budget, options: SolverOptions = DEFAULT_OPTIONS
) -> Conflict | None:
    """Find a part of a model that is infeasible, as small as time allows.

    None if the model is feasible, or the time was up before that was known. The model's objective does not matter. When
    the budget's time is up, all remaining parts count as needed. Raise Unsupported if the model has quadratic
    constraints that the solver does not support, and is feasible without them.
    """
    if (crossing := _crossed_bounds(matrix)) is not None:
        return Conflict(crossing, whole=False, irreducible=True, by="its bounds alone", solves=0)
    search = _Search(adapter, matrix, budget, options)
    every = [(ROW, i) for i in range(len(matrix.rows)) if i not in search.left_out]
    every += [(LOWER, j) for j in np.flatnonzero(matrix.lower > -inf).tolist()]
    every += [(UPPER, j) for j in np.flatnonzero(matrix.upper < inf).tolist()]
    return search.find_conflict(every)


def _crossed_bounds(matrix: MatrixModel) -> tuple[Part, ...] | None:
    """Return two sides of a row or bounds of a column that exclude every value."""
    for lower, upper, kinds in (
        (matrix.lower, matrix.upper, (LOWER, UPPER)),
        (matrix.row_lower, matrix.row_upper, (ROW,)),
    ):
        worst = int(np.argmax(lower - upper)) if lower.size else 0
        if lower.size and lower[worst] > upper[worst]:
            return tuple((kind, worst) for kind in kinds)
    return None


class _Search:
    """Search for a conflict by solving parts of one model."""

    def __init__(self, adapter: Adapter, matrix: MatrixModel, budget: Budget, options: SolverOptions) -> None:
        self.adapter, self.matrix, self.budget, self.options = adapter, matrix, budget, options
        quadratic = () if Capability.QUADRATIC_CONSTRAINTS in adapter.capabilities else matrix.quadratic_rows
        self.left_out = {row.row for row in quadratic}
        self.relaxed = False
        self.solves = 0

    def find_conflict(self, every: list[Part]) -> Conflict | None:
        self.relaxed = True
        start, by = self.begin(every)
        if start is None and self.matrix.is_mixed_integer:
            self.relaxed = False
            start, by = self.begin(every)
        if start is None:
            if self.left_out and not self.budget.is_exhausted:
                name = self.matrix.rows[min(self.left_out)].name
                raise Unsupported(
                    f"without its quadratic constraints such as {name} the model has a solution, and "
                    f"{self.adapter.title} does not support them: use --solver scip or gurobi"
                )
            return None
        rows = [part for part in start if part[0] == ROW]
        bounds = [part for part in start if part[0] != ROW]
        rows = minimal_parts(rows, lambda trial: self.is_infeasible([*trial, *bounds]) is True)
        columns = set(np.unique(self.matrix.A[[i for _, i in rows]].indices).tolist()) | self._quadratic_columns(rows)
        bounds = [part for part in bounds if part[1] in columns]
        bounds = minimal_parts(bounds, lambda trial: self.is_infeasible([*rows, *trial]) is True)
        parts, whole = [*rows, *bounds], not self.relaxed
        irreducible = self.is_infeasible(parts) is True
        self.relaxed = False
        rests = self.without_each(parts)
        if not whole and True in rests:
            # Met by fractions, but not in whole numbers: fewer conditions will do.
            parts, whole = minimal_parts(parts, lambda trial: self.is_infeasible(trial) is True), True
            irreducible, rests = self.is_infeasible(parts) is True, self.without_each(parts)
        return Conflict(tuple(parts), whole, irreducible and all(rest is False for rest in rests), by, self.solves)

    def without_each(self, parts: Sequence[Part]) -> list[bool | None]:
        return [self.is_infeasible([other for other in parts if other != part]) for part in parts]

    def begin(self, every: list[Part]) -> tuple[list[Part] | None, str]:
        outcome = self.solve(every, native=True)
        if outcome.termination is not Termination.INFEASIBLE:
            return None, ""
        iis = outcome.conflict
        if iis is not None:
            parts = [(ROW, i) for i in iis.rows] + [(LOWER, j) for j in iis.lower] + [(UPPER, j) for j in iis.upper]
            if self.is_infeasible(parts):
                return parts, f"IIS of {self.adapter.title}"
        return every, _DELETION

    def is_infeasible(self, parts: Sequence[Part]) -> bool | None:
        """Check if parts of the model exclude one another; None if time is too short to find out."""
        outcome = self.solve(parts)
        if outcome.termination is Termination.INFEASIBLE:
            return True
        feasible = outcome.values is not None or outcome.termination is Termination.UNBOUNDED
        return False if feasible else None

    def solve(self, parts: Sequence[Part], *, native: bool = False) -> SessionResult:
        """Solve parts of the model without its objective; with the solver's own conflict if ``native``."""
        if self.budget.is_exhausted or time_left_s(self.budget) == 0.0:
            return SessionResult(Termination.TIME_LIMIT)
        part, columns, rows = self.restrict_to_parts(parts)
        self.solves += 1
        if part.is_settled or not part.rows:
            return SessionResult(part.trivial_termination() or Termination.OPTIMAL, np.zeros(len(part.columns)))
        session = self.adapter.open(replace(self.budget, progress=ignore), self.options)
        with lend_worker(self.adapter.name, session.close, again=self.adapter.numbers_threads) as worker:
            session.tells_conflict = native
            session.load(part, start=False)
            outcome = run_session(session, part, worker, self.budget)
        if (conflict := outcome.conflict) is None:
            return outcome
        lower, upper = ([columns[k] for k in bounds] for bounds in (conflict.lower, conflict.upper))
        return replace(outcome, conflict=NativeConflict([rows[k] for k in conflict.rows], lower, upper))

    def restrict_to_parts(self, parts: Sequence[Part]) -> tuple[MatrixModel, list[int], list[int]]:
        """Return the model of some parts, with the numbers of its columns and rows in the whole one."""
        matrix = self.matrix
        rows = [i for kind, i in parts if kind == ROW]
        place = {row: k for k, row in enumerate(rows)}
        quadratic = [row for row in matrix.quadratic_rows if row.row in place]
        A = matrix.A[rows]
        columns = sorted(set(np.unique(A.indices).tolist()) | self._quadratic_columns(parts))
        lower, upper = np.full(len(matrix.columns), -inf), np.full(len(matrix.columns), inf)
        for bounds, values, kind in ((lower, matrix.lower, LOWER), (upper, matrix.upper, UPPER)):
            numbers = [j for of, j in parts if of == kind]
            bounds[numbers] = values[numbers]
        part = replace(
            matrix,
            columns=[matrix.columns[j] for j in columns],
            rows=[matrix.rows[i] for i in rows],
            c=np.zeros(len(columns)),
            offset=0.0,
            Q=None,
            A=A[:, columns],
            row_lower=matrix.row_lower[rows],
            row_upper=matrix.row_upper[rows],
            quadratic_rows=tuple(replace(q, row=place[q.row], Q=q.Q[:, columns][columns, :]) for q in quadratic),
            lower=lower[columns],
            upper=upper[columns],
            integer=np.zeros(len(columns), dtype=bool) if self.relaxed else matrix.integer[columns],
            unused=[],
            contradiction=None,
        )
        return part, columns, rows

    def _quadratic_columns(self, parts: Sequence[Part]) -> set[int]:
        rows = {i for kind, i in parts if kind == ROW}
        columns = [np.flatnonzero(np.diff(q.Q.tocsc().indptr)) for q in self.matrix.quadratic_rows if q.row in rows]
        return set(np.concatenate(columns).tolist()) if columns else set()


def minimal_parts(parts: Sequence[Part], can_do: Callable[[list[Part]], bool]) -> list[Part]:
    """Remove parts while the rest suffices: first many at a time, then one by one."""
    subset, size = list(parts), max(1, len(parts) // 2)
    while subset:
        first = 0
        while first < len(subset):
            rest = subset[:first] + subset[first + size :]
            if can_do(rest):
                subset = rest
            else:
                first += size
        if size == 1:
            break
        size = max(1, min(size // 2, len(subset)))
    return subset


#: Names of index values by the name of the argument of a rule that takes them.
Labels = Mapping[str, Callable[[Any], str]]

TERMS = 8  #: Terms of a row that are written out.


def conditions_of(matrix: MatrixModel, parts: Sequence[Part], labels: Labels) -> tuple[Condition, ...]:
    """Return names and algebra for parts of a model.

    ``labels["e"](3)`` is the name of link 3 if rules call links ``e``.
    """
    return tuple(
        _of_constraint(matrix.rows[number], _row(matrix, number), labels)
        if kind == ROW
        else _of_bound(matrix, kind, number)
        for kind, number in parts
    )


def false_conditions(model: Any, labels: Labels) -> tuple[Condition, ...]:
    """Return the first constraint without variables that is false, if any."""
    for data in model.component_data_objects(Constraint, active=True):
        if data.body is not None and not getattr(data.body, "is_potentially_variable", lambda: False)():
            lower, body, upper = value(data.lower), value(data.body), value(data.upper)
            if (lower is not None and body < lower) or (upper is not None and body > upper):
                return (
                    _of_constraint(
                        data,
                        _sides(f"{body:.6g}", -inf if lower is None else lower, inf if upper is None else upper),
                        labels,
                    ),
                )
    return ()


def equation_of(component: Any) -> str:
    """Return the docstring of a constraint's rule or of the function that declares it, else an empty text."""
    rule = _function(component)
    if rule is None:
        return ""
    outer = rule.__qualname__.partition(".<locals>")[0]
    scope: Any = sys.modules.get(rule.__module__)
    for name in outer.split("."):
        scope = getattr(scope, name, None)
    text = inspect.getdoc(rule) or inspect.getdoc(scope) if callable(scope) else inspect.getdoc(rule)
    return " ".join((text or "").partition("\n\n")[0].split())


def index_names(component: Any, count: int) -> list[str]:
    """Return the names of a constraint's indices, which are its rule's arguments; empty if these are not so many."""
    function = _function(component)
    names = [] if function is None else list(inspect.signature(function).parameters)[1:]
    return names if len(names) == count else []


def _function(component: Any) -> Any:
    return getattr(getattr(component, "rule", None), "_fcn", None)


def _of_constraint(data: Any, algebra: str, labels: Labels) -> Condition:
    component = data.parent_component()
    return Condition("constraint", component.local_name, _index(data, labels), algebra, equation_of(component))


def _index(data: Any, labels: Labels) -> str:
    """Return a constraint's index, each part with the name that the rule gives it."""
    index = data.index()
    if index is None:
        return ""
    parts = index if isinstance(index, tuple) else (index,)
    names = index_names(data.parent_component(), len(parts))
    if not names:
        return ", ".join(map(str, parts))
    texts = []
    for name, part in zip(names, parts, strict=True):
        label = labels[name](part) if name in labels else str(part)
        texts.append(f"{name}={part}" if label == str(part) else f"{name}={part} ({label})")
    return ", ".join(texts)


def _of_bound(matrix: MatrixModel, kind: str, number: int) -> Condition:
    column = matrix.columns[number]
    bound = float(matrix.lower[number] if kind == LOWER else matrix.upper[number]) + 0.0
    algebra = f"{column.name} {'>=' if kind == LOWER else '<='} {bound:.6g}"
    return Condition("bound", column.parent_component().local_name, "", algebra)


def _row(matrix: MatrixModel, number: int) -> str:
    part = slice(matrix.A.indptr[number], matrix.A.indptr[number + 1])
    terms = [
        _term(coefficient, matrix.columns[j].name)
        for coefficient, j in zip(matrix.A.data[part].tolist(), matrix.A.indices[part].tolist(), strict=True)
        if coefficient
    ]
    if any(row.row == number for row in matrix.quadratic_rows):
        terms.append("+ products of variables")
    body = " ".join(terms[:TERMS]) + (f" ... ({len(terms)} terms)" if len(terms) > TERMS else "")
    lower, upper = (float(side[number]) + 0.0 for side in (matrix.row_lower, matrix.row_upper))  # no -0.0
    return _sides(body.removeprefix("+ ") or "0", lower, upper)


def _term(coefficient: float, name: str) -> str:
    size = "" if abs(coefficient) == 1 else f"{abs(coefficient):.6g} "
    return f"{'-' if coefficient < 0 else '+'} {size}{name}"


def _sides(body: str, lower: float, upper: float) -> str:
    if lower == upper:
        return f"{body} = {lower:.6g}"
    prefix = f"{lower:.6g} <= " if lower > -inf and upper < inf else ""
    return f"{prefix}{body} <= {upper:.6g}" if upper < inf else f"{body} >= {lower:.6g}"
