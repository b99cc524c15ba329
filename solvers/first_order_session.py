"""One linear program in PDLP, whose status is never relied on.

* The multipliers that it ends with prove a bound, computed here by weak duality (``dual_bounds``).
* The point is moved into its bounds and onto the rows that it violates; if it violates one by more than the tolerance
  then, it is no solution.
* Optimal is what has a proved gap within ``rel_gap``. Until then PDLP is run again with a tighter tolerance of its own;
  if that does not help, the termination is ``numerical``, with the point and the bound that there are.
* Infeasible is what has a proof: multipliers by which some row is violated at every point. That a program is unbounded
  is never found out.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import ceil, inf, log2
from time import monotonic
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import lsmr

from ..core.budget import Budget
from ..core.errors import InputError
from ..core.solver import SolverOptions, Termination, relative_gap
from .base import Session, SessionResult, Track
from .dual_bounds import below, corrected, implied_bounds, lower_bound
from .first_order import SOLVER
from .highs_common import TERMINATIONS, new_highs, pass_model, refuse_lost_coefficients, set_option, set_own_option
from .matrix import FloatArray, MatrixModel
from .options import elsewhere, not_taken

_ENGINES = ("pdlp", "hipdlp")

_ATTEMPTS = ((1e-1, 1.0), (1e-3, 1.0), (1e-4, 1.0), (1e-4, 2.0**6), (1e-4, 2.0**12))
"""PDLP's own tolerance over the gap that is asked for, and a factor of the costs.

Its tolerance is relative to an objective of one or more, so that larger costs make it tighter.
"""

_TIGHTEST = 1e-10
"""The smallest tolerance that PDLP takes."""

_ITERATIONS = 500_000
"""Iterations of a run unless asked for otherwise: on programs without an optimum PDLP may run for ever."""

_NEAR = 1e-6
"""A value this near to a bound, beside values of one, is put there."""

_REPAIRS = 12
"""Projections of a point onto the rows that it violates."""


@dataclass
class Found:
    """The best point and bound so far, minimized, the multipliers that prove the bound, and iterations."""

    values: FloatArray | None = None
    objective: float = inf
    bound: float | None = None
    multipliers: FloatArray | None = None
    iterations: int = 0
    violation: float = inf
    stopped: Termination | None = field(default=None)

    @property
    def gap(self) -> float | None:
        """Relative gap between the two; None without a point or a bound."""
        return None if self.values is None else relative_gap(self.objective, self.bound)


class FirstOrderSession(Session):
    """See :class:`~cwb.solvers.base.Session`."""

    def __init__(self, budget: Budget, options: SolverOptions) -> None:
        if budget.log_file is not None:
            raise InputError("HiGHS's pdlp writes to the screen instead of its log file: leave out one of the two")
        self.track = Track(SOLVER.name)
        self.options = options
        self.highs: Any = new_highs(budget.threads)
        self.version = f"{self.highs.version()} ({self.highs.githash()[:8]})"
        set_option(self.highs, "solver", _ENGINES[0])
        set_option(self.highs, "random_seed", budget.seed % 2**31)
        set_option(self.highs, "pdlp_iteration_limit", _ITERATIONS)
        for name, value in options.extra.items():
            if means := SOLVER.means_of(name):
                raise elsewhere(SOLVER.title, name, means)
            set_own_option(self.highs, name, value)
        engine = self.highs.getOptionValue("solver")[1]
        if engine not in _ENGINES:
            raise not_taken(SOLVER.title, "solver", engine, " or ".join(_ENGINES))

    def load(self, matrix: MatrixModel, *, start: bool) -> None:
        """Keep the model; it is passed on at every run."""
        del start
        refuse_lost_coefficients(matrix)
        self.matrix = matrix

    def run(self, limit_s: float | None) -> SessionResult:
        """Run PDLP with ever tighter tolerances until the proved gap is within the tolerance."""
        end = inf if limit_s is None else monotonic() + limit_s
        found = Found()
        self._bounds = implied_bounds(self.matrix)
        gap = min(1e-3, max(self.options.rel_gap, 1e-9))
        for share, factor in _ATTEMPTS:
            if found.stopped is not None or self._is_closed(found):
                break
            tolerance = max(share * gap, _TIGHTEST)
            self._improve(found, tolerance, factor, end)
            if found.values is None and found.stopped is None and self._is_infeasible(found, tolerance, end):
                return SessionResult(Termination.INFEASIBLE, iterations=found.iterations)
        return self._told(found)

    def ask(self) -> None:
        """Ask to stop: PDLP calls nobody back, so it ends after the run that it is in."""
        self.track.cancel.set()

    def close(self) -> None:
        """Free the model."""
        self.highs.clear()

    def _is_closed(self, found: Found) -> bool:
        """Whether the proved gap is within the tolerance, or that of feasibility where the objective is nearly 0."""
        if found.values is None or found.bound is None:
            return False
        small = self.options.feasibility_tolerance / self.matrix.cost_scale
        return found.objective - found.bound <= max(self.options.rel_gap * abs(found.objective), 1e-3 * small)

    def _size(self, found: Found) -> float:
        """The objective as far as it is known, with the scale of the costs; 1 where it is unknown or more."""
        known = found.objective if found.values is not None else found.bound
        size = abs(known or 0.0) * self.matrix.cost_scale
        return size if 1e-9 < size < 1.0 else 1.0

    def _improve(self, found: Found, tolerance: float, factor: float, end: float) -> None:
        """One run of PDLP: keep its point and its multipliers where they are better."""
        matrix = self.matrix
        x, y = self._run_once(matrix, found, tolerance, end, factor / self._size(found))
        if y is not None:
            y = corrected(matrix, y, *self._bounds)
            bound = lower_bound(matrix, y, *self._bounds)
            if bound is None and x is not None:
                bound = self._bound_below(matrix.minimized(matrix.polished(x)), y)
            if bound is not None and (found.bound is None or bound > found.bound):
                found.bound, found.multipliers = bound, y
        if x is not None:
            x, violation = repaired(matrix, x, self.options.feasibility_tolerance)
            found.violation = min(found.violation, violation)
            if violation <= self.options.feasibility_tolerance and matrix.minimized(x) < found.objective:
                found.values, found.objective = x, matrix.minimized(x)
        self.track.tell(None, None if found.values is None else found.objective, found.bound)

    def _bound_below(self, objective: float, y: FloatArray) -> float | None:
        """What multipliers prove with the bounds of all points whose objective is not far more than one."""
        most = objective + abs(objective) + 1.0 / self.matrix.cost_scale
        bound = lower_bound(self.matrix, y, *implied_bounds(below(self.matrix, most)))
        return None if bound is None else min(bound, most)

    def _run_once(
        self, matrix: MatrixModel, found: Found, tolerance: float, end: float, factor: float = 1.0
    ) -> tuple[FloatArray | None, FloatArray | None]:
        """Point and multipliers of one run, without the scale of the costs; None where there are none."""
        left_s = end - monotonic()
        if left_s <= 0 or self.track.cancel.is_set():
            found.stopped = Termination.INTERRUPTED if self.track.cancel.is_set() else Termination.TIME_LIMIT
            return None, None
        scale = matrix.cost_scale * 2.0 ** ceil(log2(factor))
        self.highs.clearModel()
        pass_model(self.highs, matrix, scale)
        set_option(self.highs, "pdlp_optimality_tolerance", tolerance)
        set_option(self.highs, "time_limit", inf if end == inf else self.highs.getRunTime() + left_s)
        self.highs.run()
        found.iterations += max(0, int(self.highs.getInfo().pdlp_iteration_count))
        if TERMINATIONS.get(self.highs.getModelStatus()) is Termination.TIME_LIMIT:
            found.stopped = Termination.TIME_LIMIT
        solution = self.highs.getSolution()
        x, y = np.array(solution.col_value), np.array(solution.row_dual)
        return (
            x if x.size == len(matrix.columns) and np.isfinite(x).all() else None,
            y / scale if y.size == len(matrix.rows) else None,
        )

    def _is_infeasible(self, found: Found, tolerance: float, end: float) -> bool:
        """Whether some row is proved to be violated by more than the tolerance at every point."""
        rows = least_violation(self.matrix, self._bounds)
        # Presolve may say that it is infeasible, and give no multipliers.
        presolve = self.highs.getOptionValue("presolve")[1]
        set_option(self.highs, "presolve", "off")
        _, ray = self._run_once(self.matrix, found, tolerance, end)
        _, y = (None, None) if found.stopped is not None else self._run_once(rows, found, tolerance, end)
        set_option(self.highs, "presolve", presolve)
        if ray is not None:
            free = replace(self.matrix, c=np.zeros_like(self.matrix.c), offset=0.0)
            least = lower_bound(free, corrected(free, ray, *self._bounds), *self._bounds)
            if least is not None and least > self.options.feasibility_tolerance * float(np.abs(ray).sum()) * 1.01:
                return True
        least = None if y is None else lower_bound(rows, y, rows.lower, rows.upper)
        return least is not None and least > self.options.feasibility_tolerance

    def _told(self, found: Found) -> SessionResult:
        message = ""
        termination = found.stopped
        if self._is_closed(found):
            termination = Termination.OPTIMAL
        elif termination is None:
            termination = Termination.NUMERICAL
            if found.values is None:
                message = f"its points violate a row by {found.violation:.3g}: no solution"
            elif found.bound is None:
                message = "its multipliers prove no bound"
            else:
                message = (
                    f"not optimal: the proved gap is {found.gap or 0.0:.3g}, and {self.options.rel_gap:g} is asked for"
                )
        duals = None
        if self.keeps_duals and termination is Termination.OPTIMAL and found.multipliers is not None:
            duals = (found.multipliers * self.matrix.cost_scale).tolist()
        return SessionResult(termination, found.values, found.bound, None, found.iterations, message, duals)


def repaired(matrix: MatrixModel, x: FloatArray, tolerance: float) -> tuple[FloatArray, float]:
    """A point moved into its bounds and, by least changes, onto the rows that it violates; with what is left of that.

    Values that are nearly at a bound are put there, if that leaves a feasible point.
    """
    near = _NEAR * min(1.0, float(np.abs(x).max(initial=0.0)))
    at_lower, at_upper = x <= matrix.lower + near, x >= matrix.upper - near
    snapped = np.where(at_lower, matrix.lower, np.where(at_upper, matrix.upper, x))
    point, violation = _projected(matrix, snapped, ~(at_lower | at_upper), tolerance)
    if violation <= tolerance:
        return point, violation
    return _projected(matrix, x, np.ones(x.size, dtype=bool), tolerance)


def _projected(
    matrix: MatrixModel, x: FloatArray, is_free: NDArray[np.bool_], tolerance: float
) -> tuple[FloatArray, float]:
    """A point after some projections of its free values onto the rows that are violated or tight."""
    best, least = matrix.polished(x), inf
    point, columns = best, np.flatnonzero(is_free)
    for _ in range(_REPAIRS):
        violation = matrix.violation(point)
        if violation < least:
            best, least = point, violation
        if least <= 1e-2 * tolerance:
            break
        activity = matrix.activity(point)
        missing = np.maximum(matrix.row_lower - activity, 0.0) - np.maximum(activity - matrix.row_upper, 0.0)
        slack = np.minimum(activity - matrix.row_lower, matrix.row_upper - activity)
        tight = np.flatnonzero(slack <= 10.0 * max(violation, tolerance))
        moved = point.copy()
        moved[columns] += lsmr(matrix.A[tight][:, columns], missing[tight], atol=1e-15, btol=1e-15, maxiter=400)[0]
        point = matrix.polished(moved)
    return best, least


def least_violation(matrix: MatrixModel, bounds: tuple[FloatArray, FloatArray]) -> MatrixModel:
    """The program of the least t such that every row is violated by no more than t."""
    lower, upper = bounds
    below, above = np.flatnonzero(np.isfinite(matrix.row_lower)), np.flatnonzero(np.isfinite(matrix.row_upper))
    # The violation at some point is as much as the least one can be.
    anywhere = np.clip(0.0, matrix.lower, matrix.upper)
    most = 2.0 * matrix.violation(anywhere) + 1.0
    slack = sp.csr_array(np.concatenate([np.ones(below.size), -np.ones(above.size)])[:, None])
    A = sp.csr_array(sp.hstack([sp.vstack([matrix.A[below], matrix.A[above]]), slack], format="csr"))
    return replace(
        matrix,
        columns=[*matrix.columns, None],
        rows=[None] * (below.size + above.size),
        c=np.append(np.zeros(len(matrix.columns)), 1.0),
        offset=0.0,
        A=A,
        row_lower=np.append(matrix.row_lower[below], np.full(above.size, -inf)),
        row_upper=np.append(np.full(below.size, inf), matrix.row_upper[above]),
        lower=np.append(lower, 0.0),
        upper=np.append(upper, most),
        integer=np.zeros(len(matrix.columns) + 1, dtype=bool),
    )
