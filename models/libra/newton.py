"""Minimum of ``a T(B) + b C(B)`` by Newton's method on the optimality conditions, from a near point.

The equations are on the page docs/methods/libra.md. Plans and multipliers are compared like those of a linear program,
so that a changed active set shows as a gap.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import NDArray

from ...core.design import Comparison
from .bounds import Multipliers
from .formulation import constraint_row_scale, traffic_coefficient
from .problem import DesignProblem

_Floats = NDArray[np.float64]
_Indices = NDArray[np.intp]

_MAX_STEPS = 12

_SOLVED = 1e-14  #: Steps end where all equations, which are of numbers around 1, hold to this.
_LEAST_PART = 0.1  #: A step takes no bandwidth below this part of itself, and none below 0.
_NO_SHARE = 1e-9  #: Shares below this are none.
_FEASIBLE = 1e-10  #: A limit may be missed by this part of its largest term, as by a linear program.


class Coefficients:
    """Coefficients of a problem in its units: those of the Pyomo model, as arrays."""

    def __init__(self, problem: DesignProblem) -> None:
        self.problem, time, constraints = problem, problem.time, problem.constraints
        terms, dimensions = len(time.terms), problem.dimensions
        prices = problem.prices_usd_per_Bps or (0,) * dimensions
        scaled = [[traffic_coefficient(problem, k + 1, d + 1) for d in range(dimensions)] for k in range(terms)]
        rows = np.array([[float(a) for a in c.coefficients] for c in constraints]).reshape(-1, dimensions)
        #: ``[term, dimension]``: time of a term if the dimension has one unit of bandwidth.
        self.traffic: _Floats = np.array(scaled).reshape(terms, dimensions)
        #: Unit of every dimension's bandwidth, in bytes per second.
        self.units: _Floats = np.array(problem.bandwidth_units_Bps)
        #: Cost of one unit of bandwidth in every dimension.
        self.prices: _Floats = np.array(list(map(float, prices))) * self.units / problem.cost_unit_usd
        #: Divisor of every constraint; their coefficients, ``[constraint, dimension]``, and right-hand sides.
        self.row_scales: _Floats = np.array([constraint_row_scale(problem, i) for i in range(len(constraints))])
        self.rows: _Floats = rows * self.units / self.row_scales[:, None]
        self.limits: _Floats = np.array([float(c.limit) for c in constraints]) / self.row_scales
        #: ``[overlap, term]``: 1 where the term is in the TP branch, and where it is in the DP branch.
        tp, dp = np.zeros((2, len(time.overlaps), terms))
        self.branches: tuple[_Floats, _Floats] = tp, dp
        for o, overlap in enumerate(time.overlaps):
            tp[o, list(overlap.tp)] = dp[o, list(overlap.dp)] = 1.0
        #: Multiplicity of every overlapped stage, and computation of its DP branch.
        self.overlap_weights: _Floats = np.array([float(o.weight) for o in time.overlaps])
        self.overlapped_compute: _Floats = (
            np.array([float(o.dp_compute_s) for o in time.overlaps]) / problem.time_unit_s
        )

    def term_weights(self, tp_shares: _Floats) -> _Floats:
        """Return the weight of every term when the branches of overlaps are averaged."""
        tp, dp = self.branches
        weights = (self.overlap_weights * tp_shares) @ tp + (self.overlap_weights * (1 - tp_shares)) @ dp
        weights[list(self.problem.time.serial)] = 1.0
        return weights

    def are_met(self, bandwidth: _Floats) -> bool:
        """Check whether a plan, in units, meets every constraint."""
        terms = self.rows * bandwidth
        excess = terms.sum(axis=1) - self.limits
        slack = _FEASIBLE * np.maximum(np.abs(terms).max(axis=1, initial=0.0), np.abs(self.limits))
        return all(c.comparison.excess(excess[i]) <= slack[i] for i, c in enumerate(self.problem.constraints))


@dataclass(frozen=True)
class _Active:
    """Active set: indices of the unknowns that are not at their bounds."""

    dimensions: _Indices
    terms: _Indices
    pairs: tuple[_Indices, _Indices]
    limits: _Indices
    ties: _Indices

    @cached_property
    def ends(self) -> list[int]:
        """Ends of the unknowns: bandwidths, times of terms, shares, multipliers, shares of branches."""
        kinds = (self.dimensions, self.terms, self.pairs[0], self.limits, self.ties)
        return [int(end) for end in np.cumsum([len(kind) for kind in kinds])]


@dataclass(frozen=True)
class _Point:
    """Bandwidths and multipliers, in units; the objective's two weights sum to 1."""

    bandwidth: _Floats
    times: _Floats
    shares: _Floats
    multipliers: _Floats
    tp_shares: _Floats

    def take_step(self, active: _Active, step: _Floats) -> "_Point":
        """Return the point after a step, shortened where it would leave too little bandwidth."""
        bandwidth, times, shares, multipliers, ties = np.split(step, active.ends[:-1])
        with np.errstate(divide="ignore", invalid="ignore"):
            room = (1 - _LEAST_PART) * self.bandwidth[active.dimensions] / -bandwidth
        part = min(1.0, float(room[bandwidth < 0].min(initial=1.0)))
        return _Point(
            _plus(self.bandwidth, active.dimensions, part * bandwidth),
            _plus(self.times, active.terms, part * times),
            _plus(self.shares, active.pairs, part * shares),
            _plus(self.multipliers, active.limits, part * multipliers),
            _plus(self.tp_shares, active.ties, part * ties),
        )


def _plus(old: _Floats, where: _Indices | tuple[_Indices, _Indices], change: _Floats) -> _Floats:
    new = old.copy()
    new[where] += change
    return new


def sharpen(
    coefficients: Coefficients, plan_Bps: Sequence[float], dual: Multipliers, time_weight: float, cost_weight: float
) -> tuple[tuple[float, ...] | None, Multipliers] | None:
    """Compute optimal bandwidths and multipliers, if the active set of a near point remains.

    It starts from multipliers of the same or of other weights. The plan is None where it violates a limit, and the
    whole is None if Newton's method does not converge.
    """
    problem = coefficients.problem
    weights = time_weight * problem.time_unit_s, cost_weight * problem.cost_unit_usd
    scale = sum(weights)
    start, active = _start(coefficients, plan_Bps, dual)
    with np.errstate(all="ignore"):
        point = _newton(coefficients, start, active, weights[0] / scale, weights[1] / scale)
    if point is None:
        return None
    allowed = coefficients.are_met(point.bandwidth)
    plan = tuple((point.bandwidth * coefficients.units).tolist()) if allowed else None
    shares = np.maximum(point.shares, 0.0)
    shares /= shares.sum(axis=1, keepdims=True)
    u = point.multipliers * scale / coefficients.row_scales
    for i, constraint in enumerate(problem.constraints):
        if constraint.comparison is not Comparison.EQUAL:
            u[i] = max(u[i], 0.0) if constraint.comparison is Comparison.AT_MOST else min(u[i], 0.0)
    tp_shares = np.clip(point.tp_shares, 0.0, 1.0)
    return plan, replace(
        dual,
        time_weight=time_weight,
        cost_weight=cost_weight,
        shares=shares.tolist(),
        tp_shares=tp_shares.tolist(),
        constraints=u.tolist(),
    )


def _start(coefficients: Coefficients, plan_Bps: Sequence[float], dual: Multipliers) -> tuple[_Point, _Active]:
    """Return the given point in units, and its active set."""
    problem = coefficients.problem
    scale = dual.time_weight * problem.time_unit_s + dual.cost_weight * problem.cost_unit_usd
    shares = np.array(dual.shares).reshape(coefficients.traffic.shape)
    tp_shares = np.array(dual.tp_shares, dtype=float)
    bandwidth = np.array(plan_Bps) / coefficients.units
    multipliers = np.array(dual.constraints, dtype=float) * coefficients.row_scales / scale
    equal = np.array([c.comparison is Comparison.EQUAL for c in problem.constraints], dtype=bool)
    counted = coefficients.term_weights(tp_shares) > 0
    has_share = (shares > _NO_SHARE) & counted[:, None]
    dimensions = (bandwidth > 0) | has_share.any(axis=0)
    bandwidth[dimensions] = np.maximum(bandwidth[dimensions], 1e-6)
    with np.errstate(divide="ignore", invalid="ignore"):
        busy = np.where(has_share, coefficients.traffic / bandwidth, 0.0)
    active = _Active(
        np.flatnonzero(dimensions),
        np.flatnonzero(counted),
        cast("tuple[_Indices, _Indices]", np.nonzero(has_share)),
        np.flatnonzero((multipliers != 0) | equal),
        np.flatnonzero((tp_shares > _NO_SHARE) & (tp_shares < 1 - _NO_SHARE)),
    )
    return _Point(bandwidth, busy.max(axis=1, initial=0.0), shares, multipliers, tp_shares), active


def _newton(
    coefficients: Coefficients, point: _Point, active: _Active, time_weight: float, cost_weight: float
) -> _Point | None:
    """Solve the equations; return the best iterate, None if a number ceases to be finite."""
    best, least = None, np.inf
    for _ in range(_MAX_STEPS):
        excess, jacobian = _equations(coefficients, point, active, time_weight, cost_weight)
        error = float(np.abs(excess).max(initial=0.0))
        if not np.isfinite(error) or not np.isfinite(jacobian).all():
            break
        if error < least:
            best, least = point, error
        elif least < np.sqrt(_SOLVED):
            break  # rounding errors are all that is left
        if error <= _SOLVED:
            break
        step = np.linalg.lstsq(jacobian, -excess, rcond=None)[0].astype(np.float64)
        point = point.take_step(active, step)
    return best


def _equations(
    coefficients: Coefficients, point: _Point, active: _Active, time_weight: float, cost_weight: float
) -> tuple[_Floats, _Floats]:
    """Compute residuals and Jacobian of the equations (columns as in :attr:`_Active.ends`)."""
    D, K, (pk, pd), C, ties = active.dimensions, active.terms, active.pairs, active.limits, active.ties
    x, t, m = point.bandwidth, point.times, coefficients.traffic
    tp, dp = coefficients.branches
    weights = coefficients.term_weights(point.tp_shares)
    slopes = cost_weight * coefficients.prices + point.multipliers @ coefficients.rows
    carried = time_weight * m * point.shares
    excess = np.concatenate(
        [
            t[pk] * x[pd] - m[pk, pd],  # every dimension that a collective waits for takes its time
            point.shares[K].sum(axis=1) - 1,  # shares are of the whole
            (weights @ carried - x**2 * slopes)[D],  # another byte per second saves what it costs
            coefficients.rows[C] @ x - coefficients.limits[C],  # limits are reached
            ((tp - dp) @ t - coefficients.overlapped_compute)[ties],  # branches take equally long
        ]
    )
    at_x, at_t, at_s, at_u, at_o = np.split(np.arange(active.ends[-1]), active.ends[:-1])
    pairs, sums, balance, limits, tied = np.split(
        np.arange(excess.size), np.cumsum([len(pk), len(K), len(D), len(C)]).tolist()
    )
    of_dimension, of_term = np.zeros(x.size, dtype=np.intp), np.zeros(t.size, dtype=np.intp)
    of_dimension[D], of_term[K] = np.arange(len(D)), np.arange(len(K))
    J = np.zeros((excess.size, active.ends[-1]))
    J[pairs, at_x[of_dimension[pd]]] = t[pk]
    J[pairs, at_t[of_term[pk]]] = x[pd]
    J[sums[of_term[pk]], at_s] = 1.0
    J[balance[of_dimension[pd]], at_s] = time_weight * weights[pk] * m[pk, pd]
    J[balance, at_x] = -2 * (x * slopes)[D]
    J[np.ix_(balance, at_u)] = -(x[D] ** 2)[:, None] * coefficients.rows[np.ix_(C, D)].T
    J[np.ix_(balance, at_o)] = (coefficients.overlap_weights[:, None] * (tp - dp) @ carried)[np.ix_(ties, D)].T
    J[np.ix_(limits, at_x)] = coefficients.rows[np.ix_(C, D)]
    J[np.ix_(tied, at_t)] = (tp - dp)[np.ix_(ties, K)]
    return excess, J
