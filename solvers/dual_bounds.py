"""Lower bound of a linear program from any multipliers of its rows.

Weak duality: for every y whose sign fits the sides of the rows, and every feasible x,

    c'x >= sum_i y_i b_i + sum_j min { d_j x_j : lower_j <= x_j <= upper_j },     d = c - A'y,

with b_i the lower side of row i where y_i > 0 and the upper one where y_i < 0. Multipliers of a first-order method
are nearly right, so that some d_j have a slightly wrong sign; if x_j has no bound on that side, one that the rows
imply (:func:`implied_bounds`) keeps the loss small.

Floats are rounded to the safe side: every d_j is an interval that contains the exact number, every product is
lowered by more than its rounding, and the sum is that of ``math.fsum``.
"""

from dataclasses import replace
from math import fsum, inf, isfinite, nextafter
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import lsmr

from .matrix import FloatArray, MatrixModel

_UNIT = 2.0**-53  #: Relative error of one operation on floats.

#: Relative: how much wider an implied bound is made than it was computed, far beyond the rounding of a row's sum.
_MARGIN = 1e-9

_CORRECTIONS = 5  #: Attempts to give the reduced costs of variables without a bound the right sign.
_ROUNDS = 400  #: Rounds of implied bounds; one round suffices where every variable is in a row of bounded ones.


def lower_bound(matrix: MatrixModel, y: FloatArray, lower: FloatArray, upper: FloatArray) -> float | None:
    """Compute the bound that multipliers prove, of the minimized objective without its cost scale.

    None if they prove nothing. Multipliers ``y`` of the rows of the wrong sign count as 0; ``lower`` and ``upper`` are
    bounds of the variables that hold for every feasible point.
    """
    y = _drop_wrong_signs(matrix, y)
    sides = np.where(y > 0, matrix.row_lower, np.where(y < 0, matrix.row_upper, 0.0))
    of_rows = _down(y * np.where(y == 0, 0.0, sides))

    low, high = _reduced_costs(matrix, y)
    with np.errstate(invalid="ignore", over="ignore"):
        # A cost of exactly 0 counts nothing, even beside a bound that is infinite.
        corners = [_down(np.where(d == 0, 0.0, d * x)) for d in (low, high) for x in (lower, upper)]
    of_columns = np.minimum.reduce(corners)
    if not np.isfinite(of_columns).all() or not np.isfinite(of_rows).all():
        return None
    total = fsum([matrix.offset, *of_rows.tolist(), *of_columns.tolist()])
    return nextafter(total, -inf) if isfinite(total) else None


def correct_multipliers(matrix: MatrixModel, y: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Return nearby multipliers that prove a bound where the given ones narrowly fail.

    They differ as little as possible and give variables without a bound costs of the right sign. Only multipliers that
    keep their sign are changed, then all are scaled down together; if that is not enough, they prove no bound. The
    arguments are those of :func:`lower_bound`.
    """
    y = _drop_wrong_signs(matrix, np.where(np.isfinite(y), y, 0.0))
    up, down = np.isinf(upper), np.isinf(lower)
    for _ in range(_CORRECTIONS):
        low, high = _reduced_costs(matrix, y)
        short = np.where(up & ~down, np.maximum(-low, 0.0), 0.0) - np.where(down & ~up, np.maximum(high, 0.0), 0.0)
        largest = float(np.abs(short).max(initial=0.0))
        if largest == 0.0 or not isfinite(largest):
            break
        loose = np.flatnonzero(up != down)
        movable = np.flatnonzero((matrix.row_lower == matrix.row_upper) | (np.abs(y) > 100.0 * largest))
        target = -np.where(short != 0.0, short + np.copysign(largest, short), 0.0)[loose]
        trial = y.copy()
        trial[movable] += lsmr(matrix.A[movable][:, loose].T, target, atol=1e-14, btol=1e-14, maxiter=400)[0]
        y = _drop_wrong_signs(matrix, trial)
    return y * _factor(matrix, y, lower, upper)


def _drop_wrong_signs(matrix: MatrixModel, y: FloatArray) -> FloatArray:
    """Set multipliers to 0 whose sign fits no side of their row."""
    return np.where((y > 0) & np.isfinite(matrix.row_lower) | (y < 0) & np.isfinite(matrix.row_upper), y, 0.0)


def _reduced_costs(matrix: MatrixModel, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return intervals that contain ``c - A'y`` exactly."""
    A = matrix.A
    costs = matrix.c - A.T @ y
    magnitude = np.abs(matrix.c) + abs(A).T @ np.abs(y)
    terms = np.bincount(A.indices, minlength=len(matrix.columns)) + 4
    error = 1.01 * _UNIT * terms * magnitude
    return costs - error, costs + error


def _factor(matrix: MatrixModel, y: FloatArray, lower: FloatArray, upper: FloatArray) -> float:
    """Return the factor, mostly 1, that keeps costs of unbounded variables from changing sign."""
    prices = matrix.A.T @ y
    fits = (np.isinf(upper) & (matrix.c > 0) & (prices > 0)) | (np.isinf(lower) & (matrix.c < 0) & (prices < 0))
    fits &= np.isinf(upper) != np.isinf(lower)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(fits, matrix.c / np.where(prices == 0.0, 1.0, prices), inf)
    least = float(share.min(initial=inf))
    return 1.0 if least > 1.0 + 1e-12 else least * (1.0 - 1e-12)


def _down(products: FloatArray) -> FloatArray:
    """Lower products of two floats by more than their rounding."""
    return np.where(np.isfinite(products), products - np.abs(products) * 2.0**-51 - 5e-324, products)


def implied_bounds(matrix: MatrixModel) -> tuple[FloatArray, FloatArray]:
    """Return the bounds of the variables, with missing ones implied by rows.

    A variable in a row whose other variables are bounded is bounded by what the row has room for. Given bounds are
    not tightened.
    """
    lower, upper = matrix.lower.copy(), matrix.upper.copy()
    A = matrix.A
    row = np.repeat(np.arange(len(matrix.rows)), np.diff(A.indptr))
    for _ in range(_ROUNDS):
        loose = np.isinf(lower) | np.isinf(upper)
        mask = np.zeros(len(matrix.rows), dtype=bool)
        mask[row[loose[A.indices]]] = True
        entries = np.flatnonzero(mask[row])
        if not entries.size:
            break
        limits = [
            _row_implied_bounds(A.data[entries] * sign, A.indices[entries], row[entries], sides * sign, lower, upper)
            for sign, sides in ((1.0, matrix.row_upper), (-1.0, matrix.row_lower))
        ]
        better_lower = np.where(np.isinf(lower), np.maximum(limits[0][0], limits[1][0]), lower)
        better_upper = np.where(np.isinf(upper), np.minimum(limits[0][1], limits[1][1]), upper)
        if (np.isinf(better_lower) == np.isinf(lower)).all() and (np.isinf(better_upper) == np.isinf(upper)).all():
            break
        lower, upper = better_lower, better_upper
    return lower, upper


def with_objective_limit(matrix: MatrixModel, most: float) -> MatrixModel:
    """Return the program with an added row that limits its minimized objective.

    For any point of the program either this row holds, and with it the bounds that it implies, or the objective is more
    than the limit. So the smaller one of the limit and the bound that multipliers prove with these bounds is a bound.
    """
    cost = sp.csr_array(matrix.c[None, :])
    return replace(
        matrix,
        rows=[*matrix.rows, None],
        A=sp.csr_array(sp.vstack([matrix.A, cost], format="csr")),
        row_lower=np.append(matrix.row_lower, -inf),
        row_upper=np.append(matrix.row_upper, nextafter(most - matrix.offset, inf)),
    )


def _row_implied_bounds(
    a: FloatArray, column: NDArray[Any], row: NDArray[Any], most: FloatArray, lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return bounds implied by rows ``sum a_j x_j <= most``, with the other terms at their minimum."""
    size, rows = len(lower), len(most)
    least = a * np.where(a > 0, lower[column], upper[column])
    endless = np.isinf(least)
    number = np.bincount(row, endless, rows)
    finite = np.where(endless, 0.0, least)
    total, scale = np.bincount(row, finite, rows), np.bincount(row, np.abs(finite), rows)
    # Of the others: all terms are finite, or this one alone is not.
    usable = np.isfinite(most[row]) & (number[row] == endless)
    room = (most[row] - (total[row] - finite))[usable] / a[usable]
    room_error = _MARGIN * (np.abs(most[row]) + scale[row])[usable] / np.abs(a[usable])
    place, rises = column[usable], a[usable] > 0
    new_lower, new_upper = np.full(size, -inf), np.full(size, inf)
    np.minimum.at(new_upper, place[rises], (room + room_error)[rises])
    np.maximum.at(new_lower, place[~rises], (room - room_error)[~rises])
    return new_lower, new_upper
