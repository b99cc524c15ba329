"""Pyomo models as arrays.

One compilation serves every adapter::

    minimize    c' x + 1/2 x' Q x + offset
    subject to  row_lower <= A x + [1/2 x' Q_k x] <= row_upper
                lower <= x <= upper,  x_j integer where integer_j

The arrays always minimize; ``sign`` is -1 if the model maximizes. Fixed variables are constants. Constraints
without variables are checked and left out, as are constraints without sides.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import gcd, inf, isfinite
from operator import attrgetter
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyomo.common.gc_manager import PauseGC
from pyomo.core.staleflag import StaleFlagManager

from ..core.errors import InputError, Unsupported
from ..core.rows import is_of_arrays, row_by_row_reasons
from ..core.solver import ModelSize, Termination
from .linearize import LinearParts, linear_parts
from .options import INFINITY
from .plain_rows import Columns

FloatArray: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]

INTEGRALITY = 1e-5  #: An integer variable's value this near to an integer is rounded to it.
_CROSSED = 1e-9  #: Relative: bounds that cross by no more than this are taken as equal, by more as a contradiction.


@dataclass(frozen=True, eq=False)
class QuadraticRow:
    """Quadratic part 1/2 x' Q x of one row, Q symmetric."""

    row: int
    Q: Any


@dataclass(frozen=True, eq=False)
class MatrixModel:
    """Model as arrays, see the module's docstring.

    Of its m columns and n rows, those with a quadratic part last, ``columns`` and ``rows`` are Pyomo's. ``sign`` is -1
    if the Pyomo model maximizes; ``offset`` is the constant of the minimized objective, whose quadratic part has the
    symmetric matrix ``Q``, an (m, m) csc_array or None. ``A`` is an (n, m) csr_array, also of the linear parts of
    quadratic rows. ``unused`` are free variables of active blocks that appear nowhere. ``contradiction`` is the reason
    why no point can be feasible, if that was found while compiling; it ``is_false_for_good`` if it is not one of
    bounds, which may be changed later. ``row_by_row`` has the constraints whose rule was called row by row, and why.
    """

    columns: Sequence[Any]
    rows: list[Any]
    sign: float
    c: FloatArray
    offset: float
    Q: Any
    A: Any
    row_lower: FloatArray
    row_upper: FloatArray
    quadratic_rows: tuple[QuadraticRow, ...]
    lower: FloatArray
    upper: FloatArray
    integer: BoolArray
    unused: Sequence[Any] = ()
    contradiction: str | None = None
    is_false_for_good: bool = False
    row_by_row: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def size(self) -> ModelSize:
        """Numbers of columns, integer columns, rows and nonzeros, quadratic ones included."""
        quadratic = ([] if self.Q is None else [self.Q]) + [row.Q for row in self.quadratic_rows]
        return ModelSize(
            variables=len(self.columns),
            integers=int(self.integer.sum()),
            constraints=len(self.rows),
            nonzeros=int(self.A.nnz) + sum(int(Q.nnz) for Q in quadratic),
        )

    @cached_property
    def cost_scale(self) -> float:
        """Power of two that raises the largest cost to at least 1.

        Solvers stop on *absolute* tolerances of reduced costs and bounds. With costs in seconds they would stop too
        early and call it optimal: 2 % off with costs of 1e-8. A power of two changes no digit.
        """
        largest = max(
            float(np.abs(self.c).max(initial=0.0)),
            0.0 if self.Q is None else float(np.abs(self.Q.data).max(initial=0.0)),
        )
        return 1.0 if largest == 0.0 or largest >= 1.0 else float(2.0 ** np.ceil(-np.log2(largest)))

    @cached_property
    def is_mixed_integer(self) -> bool:
        """True if any column is integer."""
        return bool(self.integer.any())

    @property
    def is_settled(self) -> bool:
        """True if there is nothing to solve: a contradiction, or no columns."""
        return self.trivial_termination() is not None

    def trivial_termination(self) -> Termination | None:
        """Return the termination of a model with nothing to solve, else None."""
        if self.contradiction is not None:
            return Termination.INFEASIBLE
        return None if self.columns else Termination.OPTIMAL

    def with_settled_bounds(self) -> Self:
        """Return a copy after changes of bounds, with huge ones infinite and crossed ones a contradiction."""
        lower, upper, row_lower, row_upper = map(np.copy, (self.lower, self.upper, self.row_lower, self.row_upper))
        contradiction = self.contradiction or _settle_bounds(lower, upper, self.columns, "variable")
        contradiction = contradiction or _settle_bounds(row_lower, row_upper, self.rows, "constraint")
        return replace(
            self, lower=lower, upper=upper, row_lower=row_lower, row_upper=row_upper, contradiction=contradiction
        )

    def minimized_objective(self, x: FloatArray) -> float:
        """Compute the minimized objective at a point (the model's own is ``sign`` times it)."""
        quadratic = 0.0 if self.Q is None else 0.5 * float(x @ (self.Q @ x))
        return float(self.c @ x) + quadratic + self.offset

    def activity(self, x: FloatArray) -> FloatArray:
        """Compute the rows' values at a point, with quadratic parts, without the bodies' constants."""
        values: FloatArray = self.A @ x
        for row in self.quadratic_rows:
            values[row.row] += 0.5 * float(x @ (row.Q @ x))
        return values

    def body_constants(self) -> list[float]:
        """Return the constant of every row's Pyomo body: its value less ``activity``."""
        return [
            0.0
            if is_of_arrays(row)
            else row.ub - upper
            if isfinite(upper)
            else (row.lb - lower if isfinite(lower) else 0.0)
            for row, lower, upper in zip(self.rows, self.row_lower.tolist(), self.row_upper.tolist(), strict=True)
        ]

    def violation(self, x: FloatArray) -> float:
        """Compute the largest violation of a row or a column bound at a point."""
        rows = self.activity(x)
        excess = [self.row_lower - rows, rows - self.row_upper, self.lower - x, x - self.upper]
        return max(0.0, *(float(part.max(initial=0.0)) for part in excess))

    def start(self) -> FloatArray:
        """Return the present values of the variables, rounded where integer; NaN where missing."""
        values = np.array([np.nan if (v := column.value) is None else v for column in self.columns], dtype=float)
        return np.where(self.integer, np.round(values), values)

    def polish_point(self, x: FloatArray) -> FloatArray:
        """Return a point without rounding errors: inside the column bounds, integers exact."""
        nearest = np.round(x)
        near = self.integer & (np.abs(x - nearest) <= INTEGRALITY)
        # Adding zero turns -0.0, which looks odd in a table, into 0.0.
        return np.clip(np.where(near, nearest, x), self.lower, self.upper) + 0.0

    def load(self, x: FloatArray) -> None:
        """Assign values to the Pyomo variables as solvers do: unchecked, with all other variables stale.

        Unused ones without a value get the one nearest to zero.
        """
        StaleFlagManager.mark_all_as_stale()
        for variable, number in zip(self.columns, x.tolist(), strict=True):
            variable.set_value(number, skip_validation=True)
        for variable in self.unused:
            lower, upper = variable.bounds
            if variable.value is None:
                nearest = min(max(0.0, -inf if lower is None else lower), inf if upper is None else upper)
                variable.set_value(nearest, skip_validation=True)

    def tighten_bound(self, bound: float | None) -> float | None:
        """Round a lower bound up to the next value that the objective can take; None if it is vacuous."""
        if bound is None or not isfinite(bound) or abs(bound) >= INFINITY:
            return None
        if self.objective_step is None:
            return bound
        steps = (bound - self.offset) / self.objective_step
        return float(np.ceil(steps - 1e-6 - 1e-9 * abs(steps))) * self.objective_step + self.offset

    @cached_property
    def objective_step(self) -> float | None:
        """Step between values of an objective with integer costs on integer variables; None for others."""
        costs = self.c[self.c != 0.0]
        if self.Q is not None or not costs.size or not self.integer[self.c != 0.0].all():
            return None
        if np.abs(costs).max() > 2.0**40 or (costs != np.round(costs)).any():
            return None
        return float(gcd(*(int(cost) for cost in np.unique(np.abs(costs)))))


def compile_matrix(model: Any) -> MatrixModel:
    """Compile a Pyomo model.

    It is linear or quadratic, with at most one active objective. Raise Unsupported if a constraint or the objective is
    neither, the model has other active components than constraints and objectives, or a variable's domain is neither an
    interval nor its integers; InputError if there are several active objectives, or a number is missing, infinite or
    not a number.
    """
    with PauseGC():
        return replace(_assemble(linear_parts(model)), row_by_row=row_by_row_reasons(model))


def _assemble(parts: LinearParts) -> MatrixModel:
    lower, upper, integer = _collect(parts.columns, _column_bounds)
    extra = {
        "quadratic_rows": tuple(QuadraticRow(row, Q) for row, Q in parts.quadratic_rows),
        "is_false_for_good": parts.contradiction is not None,
    }
    matrix = MatrixModel(lower=lower, upper=upper, integer=integer > 0, **vars(parts) | extra).with_settled_bounds()
    if not np.isfinite(parts.A.data).all():
        row = int(np.searchsorted(parts.A.indptr, int(np.argmin(np.isfinite(parts.A.data))), side="right")) - 1
        raise InputError(f"constraint {parts.rows[row].name} has a coefficient that is not finite")
    if not np.isfinite(parts.c).all() or not isfinite(parts.offset):
        raise InputError("the objective has a coefficient that is not finite")
    return replace(matrix, contradiction=matrix.contradiction or _unused_contradiction(parts.unused))


def _collect(columns: Sequence[Any], read: Callable[[Sequence[Any]], FloatArray]) -> FloatArray:
    return columns.collect(read) if isinstance(columns, Columns) else read(columns)


def _column_bounds(columns: Sequence[Any]) -> FloatArray:
    """Return lower and upper bounds and integrality; shape (3, columns)."""
    domains, which = _domains(columns)
    integer = _are_integer(columns, domains, which)
    try:
        lower, upper = _bounds_at_once(columns, domains, which)
    except (TypeError, ValueError):
        # Some bounds are expressions, or not numbers.
        lower, upper = _bounds(columns)
    # Solvers differ in what they make of fractional bounds of integers, so they see none.
    lower[integer] = np.ceil(lower[integer] - 1e-6)
    upper[integer] = np.floor(upper[integer] + 1e-6)
    return np.array([lower, upper, integer], dtype=float)


def _bounds(variables: Sequence[Any]) -> FloatArray:
    """Return lower and upper bounds of variables one by one; shape (2, variables)."""
    pairs = [(-inf if low is None else low, inf if up is None else up) for low, up in (v.bounds for v in variables)]
    return np.array(pairs, dtype=float).reshape(-1, 2).T


def _bounds_at_once(
    columns: Sequence[Any], domains: list[Any], which: NDArray[np.intp]
) -> tuple[FloatArray, FloatArray]:
    """Return all columns' ``bounds``, the tighter of own and domain's, at a tenth of the time."""
    sides = []
    for own, side, none, tighter in (("_lb", 0, -inf, np.maximum), ("_ub", 1, inf, np.minimum)):
        raw = list(map(attrgetter(own), columns))
        values = np.array(raw, dtype=float)
        missing = np.isnan(values)
        if np.count_nonzero(missing) != raw.count(None):
            raise ValueError
        values[missing] = none
        of_domain = [domain.bounds()[side] for domain in domains]
        sides.append(tighter(values, np.array([none if b is None else b for b in of_domain], dtype=float)[which]))
    return sides[0], sides[1]


def _domains(columns: Sequence[Any]) -> tuple[list[Any], NDArray[np.intp]]:
    """Return the distinct domains of variables, and the index of each variable's."""
    domains = list(map(attrgetter("_domain"), columns))
    _, first, which = np.unique(
        np.fromiter(map(id, domains), dtype=np.int64, count=len(domains)), return_index=True, return_inverse=True
    )
    return [domains[k] for k in first.tolist()], which.reshape(len(domains))


def integrality(columns: Sequence[Any]) -> BoolArray:
    """Return the mask of integer variables. A domain must be an interval or the integers of one."""
    return _are_integer(columns, *_domains(columns))


def _are_integer(columns: Sequence[Any], domains: list[Any], which: NDArray[np.intp]) -> BoolArray:
    kinds = np.zeros(len(domains), dtype=bool)
    for k, domain in enumerate(domains):
        column = columns[int(np.argmax(which == k))]
        kinds[k] = not column.is_continuous()
        if kinds[k] and not column.is_integer():
            raise Unsupported(
                f"variable {column.name} has the domain {domain}: "
                "solvers support real and integer intervals, so choose among values with binary variables"
            )
    return kinds[which]


def _settle_bounds(lower: FloatArray, upper: FloatArray, components: Sequence[Any], kind: str) -> str | None:
    """Set huge bounds to infinity and negligibly crossed ones equal, in place; return any contradiction."""
    lower[lower <= -INFINITY] = -inf
    upper[upper >= INFINITY] = inf
    bad = np.isnan(lower) | np.isnan(upper)
    if bad.any():
        raise InputError(f"{kind} {components[int(np.argmax(bad))].name} has a bound that is not a number")
    is_crossed = lower > upper
    if not is_crossed.any() and not (lower >= INFINITY).any() and not (upper <= -INFINITY).any():
        return None
    tolerance = _CROSSED * np.maximum(1.0, np.abs(np.where(np.isfinite(lower), lower, 1.0)))
    false = (lower >= INFINITY) | (upper <= -INFINITY) | (lower > upper + tolerance)
    if false.any():
        j = int(np.argmax(false))
        return f"the bounds of {kind} {components[j].name} exclude every value: {lower[j]:.12g} to {upper[j]:.12g}"
    upper[is_crossed] = lower[is_crossed]
    return None


def _unused_contradiction(unused: Sequence[Any]) -> str | None:
    lower, upper = _collect(unused, _bounds)
    j = int(np.argmax(lower > upper)) if len(unused) else 0
    if not len(unused) or lower[j] <= upper[j]:
        return None
    return f"the bounds of variable {unused[j].name} exclude every value: {lower[j]:.12g} to {upper[j]:.12g}"
