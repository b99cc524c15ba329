"""Lower bounds in closed form from multipliers of a linear relaxation (docs/methods/libra.md).

The value is a proved bound whatever the shares and multipliers are, and it is the bound that cwb reports.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf, sqrt, ulp

from ...core.bounds import SupportingLine
from ...core.design import Comparison
from .problem import DesignProblem

_ROUNDING = 1e-9  #: Parts that multipliers are made smaller by at most, where rounding errors are to be mended.


@dataclass(frozen=True)
class Multipliers:
    """Dual values of the relaxation for one pair of weights."""

    #: ``time_weight`` and ``cost_weight``: weights of seconds and of dollars.
    time_weight: float
    cost_weight: float
    shares: Sequence[Sequence[float]]  #: ``[term][dimension]``, each row sums to 1.
    tp_shares: Sequence[float]  #: For each overlap, the share of its TP branch, between 0 and 1.
    constraints: Sequence[float]  #: One for each linear constraint: at least 0 for ``<=``, at most 0 for ``>=``.


@dataclass(frozen=True)
class Corner:
    """Corner of the polygon that supporting lines bound for (time, cost)."""

    time_s: float
    cost_usd: float

    @property
    def product(self) -> float:
        """Time multiplied by cost; infinite for a corner at infinity."""
        return self.time_s * self.cost_usd


@dataclass(frozen=True)
class Line:
    """Line ``time_weight * T + cost_weight * C >= value`` for all plans, attained at ``minimizer_Bps``."""

    value: float
    multipliers: Multipliers
    minimizer_Bps: tuple[float, ...]

    def at(self, corner: Corner) -> float:
        """Return the left side at a corner."""
        return self.multipliers.time_weight * corner.time_s + self.multipliers.cost_weight * corner.cost_usd


def supporting_line(problem: DesignProblem, multipliers: Multipliers, *, scale_free: bool = False) -> Line:
    """Evaluate the Lagrangian bound; ``-inf`` where the multipliers leave a dimension or the scale unbounded.

    A bound over all multiples of allowed plans (``scale_free``) also needs ``u . h <= 0``. Multipliers that violate a
    condition by a rounding error are repaired first (docs/methods/libra.md).
    """
    cost = [multipliers.cost_weight * float(p) for p in problem.prices_usd_per_Bps or (0,) * problem.dimensions]
    u = _repair_multipliers(problem, cost, multipliers.constraints, scale_free=scale_free)
    part = ulp(1.0)
    while part <= _ROUNDING and min(_slopes(problem, cost, u), default=0.0) < 0:
        u, part = [ui * (1 - part) for ui in u], 2 * part  # without any multipliers, slopes are prices
    multipliers = replace(multipliers, constraints=u)
    slopes = _slopes(problem, cost, u)
    limits = sum(ui * float(constraint.limit) for ui, constraint in zip(u, problem.constraints, strict=True))
    if min(slopes, default=0.0) < 0 or (scale_free and limits > 0):
        return Line(-inf, multipliers, (0.0,) * problem.dimensions)
    traffic = _traffic(problem, multipliers)
    overlapped = (
        float(o.weight) * (1 - share) * float(o.dp_compute_s)
        for o, share in zip(problem.time.overlaps, multipliers.tp_shares, strict=True)
    )
    value = multipliers.time_weight * (float(problem.time.constant_s) + sum(overlapped))
    if not scale_free:  # the smallest multiple of a plan has no limits to charge for
        value -= limits
    value += sum(2 * sqrt(A * c) for A, c in zip(traffic, slopes, strict=True))
    minimizer = tuple(sqrt(A / c) if c > 0 else 0.0 for A, c in zip(traffic, slopes, strict=True))
    return Line(value, multipliers, minimizer)


def _repair_multipliers(
    problem: DesignProblem, cost: Sequence[float], multipliers: Sequence[float], *, scale_free: bool
) -> list[float]:
    """Adjust multipliers by rounding errors to nonnegative slopes and, if scale-free, ``u . h <= 0``."""
    u = list(multipliers)
    for d in range(problem.dimensions):
        slope = _slopes(problem, cost, u)[d]
        for i, constraint in enumerate(problem.constraints):
            a = float(constraint.coefficients[d])
            if slope >= 0 or a <= 0 or min(constraint.coefficients) < 0:
                continue
            raised = u[i] - slope / a * (1 + 1e-9)
            if constraint.comparison is not Comparison.AT_LEAST or raised <= 0:
                u[i] = raised
                slope = _slopes(problem, cost, u)[d]
                # A step below the multiplier's last digit changes nothing: the last digits are counted up instead.
                step = ulp(raised)
                while slope < 0 and (constraint.comparison is not Comparison.AT_LEAST or u[i] + step <= 0):
                    u[i] += step
                    slope, step = _slopes(problem, cost, u)[d], 2 * step
    if scale_free:
        limits = sum(ui * float(constraint.limit) for ui, constraint in zip(u, problem.constraints, strict=True))
        for i, constraint in enumerate(problem.constraints):
            if limits > 0 and constraint.limit > 0 and constraint.comparison is Comparison.EQUAL:
                u[i] -= limits / float(constraint.limit) * (1 + 1e-9)
                break
    return u


def _slopes(problem: DesignProblem, cost: Sequence[float], u: Sequence[float]) -> list[float]:
    """Return ``c_d``: the price of each dimension plus its multipliers' charges."""
    return [
        cost[d] + sum(ui * float(c.coefficients[d]) for ui, c in zip(u, problem.constraints, strict=True))
        for d in range(problem.dimensions)
    ]


def _traffic(problem: DesignProblem, multipliers: Multipliers) -> list[float]:
    """Return ``A_d``: shares of the collectives' bytes, weighted by the collectives' counts."""
    weights = [0.0] * len(problem.time.terms)
    for k in problem.time.serial:
        weights[k] = 1.0
    for o, share in zip(problem.time.overlaps, multipliers.tp_shares, strict=True):
        for k in o.tp:
            weights[k] = float(o.weight) * share
        for k in o.dp:
            weights[k] = float(o.weight) * (1 - share)
    return [
        multipliers.time_weight
        * sum(
            weight * shares[d] * float(term.traffic[d])
            for weight, shares, term in zip(weights, multipliers.shares, problem.time.terms, strict=True)
        )
        for d in range(problem.dimensions)
    ]


def certificate_line(problem: DesignProblem, line: Line) -> SupportingLine:
    """Express a line in the instance's own communications, for readers without the model."""
    multipliers = line.multipliers
    shares = [
        (*member, tuple(multipliers.shares[k])) for k, term in enumerate(problem.time.terms) for member in term.members
    ]
    overlaps = [
        (*layer, share)
        for o, share in zip(problem.time.overlaps, multipliers.tp_shares, strict=True)
        for layer in o.layers
    ]
    return SupportingLine(
        multipliers.time_weight,
        multipliers.cost_weight,
        tuple(sorted(shares)),
        tuple(sorted(overlaps)),
        tuple(multipliers.constraints),
    )


def envelope(lines: Sequence[Line]) -> list[Line]:
    """Return the lines that bound the polygon (``a T + b C >= v``), from the fastest network's on."""
    hull: list[Line] = []
    for line in sorted(lines, key=lambda line: (-_slope(line), -_offset(line))):
        if hull and _slope(hull[-1]) == _slope(line):
            continue  # parallel, and no higher than the one before
        while len(hull) > 1 and hull[-1].at(_cross(hull[-2], line)) >= hull[-1].value:
            hull.pop()  # nowhere the highest: its neighbours exceed it at their intersection
        hull.append(line)
    return hull


def corners(lines: Sequence[Line]) -> list[Corner]:
    """Return the polygon's corners, one of which has the least product, since a product is quasiconcave."""
    return [_cross(a, b) for a, b in pairwise(envelope(lines))]


def _slope(line: Line) -> float:
    m = line.multipliers
    return inf if m.cost_weight == 0 else m.time_weight / m.cost_weight


def _offset(line: Line) -> float:
    """Return the line's intercept on the time axis, or on the cost axis without a time weight."""
    m = line.multipliers
    return line.value / (m.time_weight or m.cost_weight)


def _cross(a: Line, b: Line) -> Corner:
    p, q = a.multipliers, b.multipliers
    determinant = p.time_weight * q.cost_weight - p.cost_weight * q.time_weight
    return Corner(
        (a.value * q.cost_weight - p.cost_weight * b.value) / determinant,
        (p.time_weight * b.value - a.value * q.time_weight) / determinant,
    )
