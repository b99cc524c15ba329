"""Convex quadratic programs with HiGHS, accepted only with a certificate.

HiGHS's quadratic solver adds a small multiple of the identity to Q (``qp_regularization_value``). On random
degenerate programs of a dozen variables it is right about 9 times in 10; else it calls an unbounded program
optimal, is off by 1e-5, cycles for ever, or calls a convex program nonconvex. Without rows it is often wrong. So

* the iterations are limited, and a program without rows gets an empty one;
* its dual values give a lower bound by convex duality, computed here with the true Q, and an answer is optimal only
  when that bound meets the objective;
* if it does not, the regularization is centred at the point just found, a few times, which removes its effect;
* if that does not help either, other amounts of regularization are tried, and sides moved outwards by less than the
  feasibility tolerance, which breaks the ties that make it fail;
* "infeasible" and "unbounded" are settled by linear programs: a feasible convex quadratic program has no optimum
  exactly when there is a direction d of endless descent: Q d = 0, c'd < 0, and d keeps to every side that exists.
"""

from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
import scipy.sparse as sp
from highspy import HighsModelStatus as Status

from ..core.solver import SolverOptions, Termination
from .highs_common import FEASIBLE, new_highs, pass_model, set_option
from .matrix import FloatArray, MatrixModel
from .session import SessionResult, Track

#: Pairs of a regularization (HiGHS's own comes first) and a part of the feasibility tolerance to move sides by.
ATTEMPTS = ((1e-7, 0.0), (1e-7, 0.1), (1e-9, 0.2), (1e-6, 0.3), (1e-5, 0.1), (1e-6, 0.4))

_REFINEMENTS = 4  #: Number of times that the regularization is moved to the point just found.

#: Relative gap between objective and dual bound at which an answer is accepted, if no larger gap is requested.
_CERTIFIED = 1e-6

_DESCENT = 1e-7

_SETTLED = {Termination.OPTIMAL, Termination.INFEASIBLE, Termination.UNBOUNDED}


def solve_quadratic(
    highs: Any, matrix: MatrixModel, scale: float, options: SolverOptions, track: Track, limit_s: float | None
) -> SessionResult:
    """Solve a convex quadratic program that HiGHS already has.

    ``rel_gap`` loosens the certificate; an own ``qp_regularization_value`` in ``extra`` is the only one tried.
    ``limit_s`` is for all attempts together. The result is optimal with a certificate; numerical if no attempt has one,
    with the best point found.
    """
    if "qp_iteration_limit" not in options.extra:
        set_option(highs, "qp_iteration_limit", 10_000 + 100 * (len(matrix.columns) + len(matrix.rows)))
    own = options.extra.get("qp_regularization_value")
    best = SessionResult(Termination.NUMERICAL, message="HiGHS found no solution that a dual bound confirms")
    left_s = inf if limit_s is None else limit_s
    attempts = ATTEMPTS if own is None else ((float(str(own)), 0.0),)
    for attempt, (regularization, part) in enumerate(attempts):
        set_option(highs, "qp_regularization_value", regularization)
        _move_sides(highs, matrix, part * options.feasibility_tolerance, seed=attempt)
        centre: FloatArray | None = None
        for _ in range(_REFINEMENTS):
            costs = matrix.c if centre is None else matrix.c - (regularization / scale) * centre
            highs.changeColsCost(costs.size, np.arange(costs.size, dtype=np.int32), costs * scale)
            set_option(highs, "time_limit", max(left_s, 1e-3))
            before = highs.getRunTime()
            highs.clearSolver()
            highs.run()
            left_s -= highs.getRunTime() - before
            outcome = _proved_result(highs, matrix, scale, options)
            if outcome.termination in _SETTLED:
                return outcome
            best = _better(matrix, best, outcome)
            if track.cancel.is_set():
                return replace(best, termination=Termination.INTERRUPTED, message="")
            if left_s <= 0:
                return replace(best, termination=Termination.TIME_LIMIT, message="")
            centre = outcome.values
            if centre is None:
                break
    return best


def _move_sides(highs: Any, matrix: MatrixModel, distance: float, seed: int) -> None:
    """Move every side outwards by the distance to twice the distance."""
    random = np.random.default_rng(seed)
    for change, lower, upper in (
        (highs.changeRowsBounds, matrix.row_lower, matrix.row_upper),
        (highs.changeColsBounds, matrix.lower, matrix.upper),
    ):
        low, up = distance * (1.0 + random.random(lower.size)), distance * (1.0 + random.random(lower.size))
        change(lower.size, np.arange(lower.size, dtype=np.int32), lower - low, upper + up)


def dual_bound(matrix: MatrixModel, x: FloatArray, y: FloatArray) -> float:
    """Compute the lower bound that row duals prove for a convex quadratic program.

    The Lagrangian with multipliers y is convex with gradient z = c + Q x - A'y at x, so it is at least ``f(x) - y'Ax +
    ... + z'(w - x)`` for every w; the least over the column bounds is the bound. If the side that counts does not
    exist, the multiplier is an error of the solver; it is charged as if the side were at twice the size of x, which
    makes the bound weak, not wrong, for all points of that size. The point is ideally near the optimum; row duals y are
    changes of the minimized objective per unit of the row's side.
    """
    Qx = matrix.Q @ x
    z = matrix.c + Qx - matrix.A.T @ y
    rows = matrix.A @ x
    bound = matrix.offset - 0.5 * float(x @ Qx)
    for multiplier, lower, upper, at in (
        (y, matrix.row_lower, matrix.row_upper, rows),
        (z, matrix.lower, matrix.upper, x),
    ):
        side = np.where(multiplier > 0, lower, upper)
        far = at - np.sign(multiplier) * (1.0 + np.abs(at))
        bound += float(multiplier @ np.where(np.isfinite(side), side, far))
    return bound


def _proved_result(highs: Any, matrix: MatrixModel, scale: float, options: SolverOptions) -> SessionResult:
    """Return the proved part of HiGHS's answer to one attempt."""
    status = highs.getModelStatus()
    words = highs.modelStatusToString(status)
    iterations = int(highs.getInfo().qp_iteration_count)
    feasibility = replace(matrix, c=np.zeros_like(matrix.c), offset=0.0, Q=None)
    if status == Status.kInfeasible and _solved_linear(highs, feasibility).getModelStatus() == status:
        return SessionResult(Termination.INFEASIBLE, iterations=iterations, message=words)
    point = _point(highs, matrix, scale)
    if point is not None:
        x, bound = point
        size = float(np.abs(matrix.c) @ np.abs(x)) + 0.5 * abs(float(x @ (matrix.Q @ x)))
        if matrix.minimized_objective(x) - bound <= max(_CERTIFIED, options.rel_gap) * size + 1e-12:
            return SessionResult(Termination.OPTIMAL, x, bound, iterations=iterations)
    if status in {Status.kOptimal, Status.kUnbounded, Status.kIterationLimit} and _descends_for_ever(highs, matrix):
        return SessionResult(
            Termination.UNBOUNDED, iterations=iterations, message="a direction of endless descent exists"
        )
    message = "" if status == Status.kOptimal else f"HiGHS's quadratic solver says: {words}"
    x_or_none, bound_or_none = point if point is not None else (None, None)
    return SessionResult(Termination.NUMERICAL, x_or_none, bound_or_none, iterations=iterations, message=message)


def _point(highs: Any, matrix: MatrixModel, scale: float) -> tuple[FloatArray, float] | None:
    """Return HiGHS's point, if feasible, and the lower bound that its duals prove."""
    if highs.getInfo().primal_solution_status != FEASIBLE:
        return None
    solution = highs.getSolution()
    x = np.clip(np.array(solution.col_value), matrix.lower, matrix.upper)
    y = np.array(solution.row_dual)[: len(matrix.rows)] / scale
    # A failed factorization leaves values that are not numbers.
    return (x, dual_bound(matrix, x, y)) if np.isfinite(x).all() and np.isfinite(y).all() else None


def _better(matrix: MatrixModel, one: SessionResult, two: SessionResult) -> SessionResult:
    """Combine the lower point and the higher bound of two unproved outcomes."""
    bounds = [outcome.bound for outcome in (one, two) if outcome.bound is not None and outcome.bound > -inf]
    if one.values is None or (
        two.values is not None and matrix.minimized_objective(two.values) < matrix.minimized_objective(one.values)
    ):
        one, two = two, one
    return replace(one, bound=max(bounds, default=None), message=one.message or two.message)


def _solved_linear(highs: Any, program: MatrixModel) -> Any:
    """Solve a linear program in a separate HiGHS with the threads and tolerances of the first."""
    other = new_highs(highs.getOptionValue("threads")[1])
    # Presolve of these small programs saves nothing.
    set_option(other, "presolve", "off")
    for name in ("primal_feasibility_tolerance", "time_limit"):
        set_option(other, name, highs.getOptionValue(name)[1])
    pass_model(other, program, 1.0)
    other.run()
    return other


def _descends_for_ever(highs: Any, matrix: MatrixModel) -> bool:
    """Check for a direction of endless descent, by a linear program over directions in a box."""
    zero = np.zeros(len(matrix.columns))
    program = replace(
        matrix,
        c=matrix.c * matrix.cost_scale,
        offset=0.0,
        Q=None,
        A=sp.vstack([matrix.A, matrix.Q * matrix.cost_scale], format="csr"),
        rows=[*matrix.rows, *matrix.columns],
        row_lower=np.append(np.where(np.isfinite(matrix.row_lower), 0.0, -inf), zero),
        row_upper=np.append(np.where(np.isfinite(matrix.row_upper), 0.0, inf), zero),
        lower=np.where(np.isfinite(matrix.lower), 0.0, -1.0),
        upper=np.where(np.isfinite(matrix.upper), 0.0, 1.0),
    )
    solved = _solved_linear(highs, program)
    descent: float = solved.getInfo().objective_function_value
    return bool(solved.getModelStatus() == Status.kOptimal and descent < -_DESCENT * float(np.abs(program.c).max()))
