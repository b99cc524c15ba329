"""One linear program in PDLP, whose status is never relied on.

Point, bound and termination are computed here (docs/solvers.md, "First-order methods"); the bound by weak duality
(``dual_bounds``). PDLP is run again with a tighter tolerance of its own until the proved gap is within ``rel_gap``.
"""

from dataclasses import dataclass, field, replace
from math import ceil, inf, log2
from time import monotonic
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import lsmr

from ..core.budget import Budget
from ..core.errors import InputError
from ..core.solver import SolverOptions, Termination, relative_gap
from .base import Adapter
from .dual_bounds import correct_multipliers, implied_bounds, lower_bound, with_objective_limit
from .highs_common import TERMINATIONS, new_highs, pass_model, refuse_lost_coefficients, set_option, set_own_option
from .matrix import BoolArray, FloatArray, MatrixModel
from .options import rejected_value_error
from .session import Session, SessionResult, Track

_ENGINES = ("pdlp", "hipdlp")

#: PDLP's own tolerance over the gap that is asked for, and a factor of the costs. Its tolerance is relative to an
#: objective of one or more, so that larger costs make it tighter.
_ATTEMPTS = ((1e-1, 1.0), (1e-3, 1.0), (1e-4, 1.0), (1e-4, 2.0**6), (1e-4, 2.0**12))

_TIGHTEST = 1e-10  #: The smallest tolerance that PDLP takes.

#: Iterations of a run unless asked for otherwise: on programs without an optimum PDLP may run for ever.
_ITERATIONS = 500_000

_NEAR = 1e-6  #: A value this near to a bound, beside values of one, is put there.
_REPAIRS = 12  #: Projections of a point onto the rows that it violates.


@dataclass
class BestPoint:
    """Best point and bound so far, minimized, the multipliers that prove the bound, and iterations."""

    values: FloatArray | None = None
    objective: float = inf
    bound: float | None = None
    multipliers: FloatArray | None = None
    iterations: int = 0
    violation: float = inf
    stopped: Termination | None = field(default=None)

    @property
    def gap(self) -> float | None:
        """Relative gap between point and bound; None if one is missing."""
        return None if self.values is None else relative_gap(self.objective, self.bound)


class FirstOrderSession(Session):
    """See :class:`~cwb.solvers.session.Session`."""

    def __init__(self, adapter: Adapter, budget: Budget, options: SolverOptions) -> None:
        if budget.log_file is not None:
            raise InputError("HiGHS's pdlp writes to the screen instead of its log file: leave out one of the two")
        self.track = Track(adapter.name)
        self.options = options
        self.highs: Any = new_highs(budget.threads)
        self.version = f"{self.highs.version()} ({self.highs.githash()[:8]})"
        set_option(self.highs, "solver", _ENGINES[0])
        set_option(self.highs, "random_seed", budget.seed % 2**31)
        set_option(self.highs, "pdlp_iteration_limit", _ITERATIONS)
        for name, value in adapter.own_options(options):
            set_own_option(self.highs, name, value)
        engine = self.highs.getOptionValue("solver")[1]
        if engine not in _ENGINES:
            raise rejected_value_error(adapter.title, "solver", engine, " or ".join(_ENGINES))

    def load(self, matrix: MatrixModel, *, start: bool) -> None:
        """Keep the model; it is transferred at every run."""
        refuse_lost_coefficients(matrix)
        self.matrix = matrix

    def run(self, limit_s: float | None) -> SessionResult:
        """Run PDLP with ever tighter tolerances until the proved gap is within the tolerance."""
        end = inf if limit_s is None else monotonic() + limit_s
        best = BestPoint()
        self._bounds = implied_bounds(self.matrix)
        gap = min(1e-3, max(self.options.rel_gap, 1e-9))
        for share, factor in _ATTEMPTS:
            if best.stopped is not None or self._is_closed(best):
                break
            tolerance = max(share * gap, _TIGHTEST)
            self._improve(best, tolerance, factor, end)
            if best.values is None and best.stopped is None and self._is_infeasible(best, tolerance, end):
                return SessionResult(Termination.INFEASIBLE, iterations=best.iterations)
        return self._to_result(best)

    def request_stop(self) -> None:
        """Ask to stop; PDLP has no callbacks, so the present run is finished."""
        self.track.cancel.set()

    def close(self) -> None:
        """Free the model."""
        self.highs.clear()

    def _is_closed(self, best: BestPoint) -> bool:
        """Check if the proved gap is within the tolerance, or that of feasibility if the objective is near 0."""
        if best.values is None or best.bound is None:
            return False
        small = self.options.feasibility_tolerance / self.matrix.cost_scale
        return best.objective - best.bound <= max(self.options.rel_gap * abs(best.objective), 1e-3 * small)

    def _size(self, best: BestPoint) -> float:
        """Return the scaled magnitude of the objective; 1 if that is larger, negligible or unknown."""
        value = best.objective if best.values is not None else best.bound
        size = abs(value or 0.0) * self.matrix.cost_scale
        return size if 1e-9 < size < 1.0 else 1.0

    def _improve(self, best: BestPoint, tolerance: float, factor: float, end: float) -> None:
        """Run PDLP once, and keep its point and multipliers if they are better."""
        matrix = self.matrix
        x, y = self._run_once(matrix, best, tolerance, end, factor / self._size(best))
        if y is not None:
            y = correct_multipliers(matrix, y, *self._bounds)
            bound = lower_bound(matrix, y, *self._bounds)
            if bound is None and x is not None:
                # With the bounds of points that are not far above this one.
                objective = matrix.minimized_objective(matrix.polish_point(x))
                most = objective + abs(objective) + 1.0 / matrix.cost_scale
                bound = lower_bound(matrix, y, *implied_bounds(with_objective_limit(matrix, most)))
                bound = None if bound is None else min(bound, most)
            if bound is not None and (best.bound is None or bound > best.bound):
                best.bound, best.multipliers = bound, y
        if x is not None:
            x, violation = repair_point(matrix, x, self.options.feasibility_tolerance)
            best.violation = min(best.violation, violation)
            if violation <= self.options.feasibility_tolerance and matrix.minimized_objective(x) < best.objective:
                best.values, best.objective = x, matrix.minimized_objective(x)
        self.track.tell(None, None if best.values is None else best.objective, best.bound)

    def _run_once(
        self, matrix: MatrixModel, best: BestPoint, tolerance: float, end: float, factor: float = 1.0
    ) -> tuple[FloatArray | None, FloatArray | None]:
        """Return point and multipliers of one run, without the scale of the costs; None if missing."""
        left_s = end - monotonic()
        if left_s <= 0 or self.track.cancel.is_set():
            best.stopped = Termination.INTERRUPTED if self.track.cancel.is_set() else Termination.TIME_LIMIT
            return None, None
        scale = matrix.cost_scale * 2.0 ** ceil(log2(factor))
        self.highs.clearModel()
        pass_model(self.highs, matrix, scale)
        set_option(self.highs, "pdlp_optimality_tolerance", tolerance)
        set_option(self.highs, "time_limit", inf if end == inf else self.highs.getRunTime() + left_s)
        self.highs.run()
        best.iterations += max(0, int(self.highs.getInfo().pdlp_iteration_count))
        if TERMINATIONS.get(self.highs.getModelStatus()) is Termination.TIME_LIMIT:
            best.stopped = Termination.TIME_LIMIT
        solution = self.highs.getSolution()
        x, y = np.array(solution.col_value), np.array(solution.row_dual)
        return (
            x if x.size == len(matrix.columns) and np.isfinite(x).all() else None,
            y / scale if y.size == len(matrix.rows) else None,
        )

    def _is_infeasible(self, best: BestPoint, tolerance: float, end: float) -> bool:
        """Check if some row is proved to be violated by more than the tolerance at every point."""
        rows = least_violation(self.matrix, self._bounds)
        # Presolve may say that it is infeasible, and give no multipliers.
        presolve = self.highs.getOptionValue("presolve")[1]
        set_option(self.highs, "presolve", "off")
        _, ray = self._run_once(self.matrix, best, tolerance, end)
        _, y = (None, None) if best.stopped is not None else self._run_once(rows, best, tolerance, end)
        set_option(self.highs, "presolve", presolve)
        if ray is not None:
            free = replace(self.matrix, c=np.zeros_like(self.matrix.c), offset=0.0)
            least = lower_bound(free, correct_multipliers(free, ray, *self._bounds), *self._bounds)
            if least is not None and least > self.options.feasibility_tolerance * float(np.abs(ray).sum()) * 1.01:
                return True
        least = None if y is None else lower_bound(rows, y, rows.lower, rows.upper)
        return least is not None and least > self.options.feasibility_tolerance

    def _to_result(self, best: BestPoint) -> SessionResult:
        message = ""
        termination = best.stopped
        if self._is_closed(best):
            termination = Termination.OPTIMAL
        elif termination is None:
            termination = Termination.NUMERICAL
            if best.values is None:
                message = f"its points violate a row by {best.violation:.3g}: no solution"
            elif best.bound is None:
                message = "its multipliers prove no bound"
            else:
                message = (
                    f"not optimal: the proved gap is {best.gap or 0.0:.3g}, and {self.options.rel_gap:g} is asked for"
                )
        duals = None
        if self.keeps_duals and termination is Termination.OPTIMAL and best.multipliers is not None:
            duals = (best.multipliers * self.matrix.cost_scale).tolist()
        return SessionResult(termination, best.values, best.bound, None, best.iterations, message, duals)


def repair_point(matrix: MatrixModel, x: FloatArray, tolerance: float) -> tuple[FloatArray, float]:
    """Move a point into its bounds and, minimally, onto violated rows; also return the remaining violation.

    Values that are nearly at a bound are moved to it, if that leaves a feasible point.
    """
    near = _NEAR * min(1.0, float(np.abs(x).max(initial=0.0)))
    at_lower, at_upper = x <= matrix.lower + near, x >= matrix.upper - near
    corner = np.where(at_lower, matrix.lower, np.where(at_upper, matrix.upper, x))
    point, violation = _project_point(matrix, corner, ~(at_lower | at_upper), tolerance)
    if violation <= tolerance:
        return point, violation
    return _project_point(matrix, x, np.ones(x.size, dtype=bool), tolerance)


def _project_point(
    matrix: MatrixModel, x: FloatArray, is_free: BoolArray, tolerance: float
) -> tuple[FloatArray, float]:
    """Project the free values of a point a few times onto violated or tight rows."""
    best, least = matrix.polish_point(x), inf
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
        trial = point.copy()
        trial[columns] += lsmr(matrix.A[tight][:, columns], missing[tight], atol=1e-15, btol=1e-15, maxiter=400)[0]
        point = matrix.polish_point(trial)
    return best, least


def least_violation(matrix: MatrixModel, bounds: tuple[FloatArray, FloatArray]) -> MatrixModel:
    """Return the program that minimizes t such that no row is violated by more than t."""
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
