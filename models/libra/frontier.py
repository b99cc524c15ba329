"""Time times cost, to a certified global optimum, on a solver of linear programs.

The pairs (T, C) that a network can attain, with everything slower and dearer, form a convex set: T is convex in B and C is linear. Minimizing
``a T + b C`` gives a point of its frontier and a supporting line. The smallest product over the polygon that the lines leave
is a lower bound, the best plan met an upper one; the next weights are those of the polygon's best corner, where the product's
gradient is ``(C, T)``.

Without computation (K = 0) the product does not change when all bandwidths are scaled: the frontier hugs a hyperbola and needs many lines. Then
one minimization of ``T + w C`` over all multiples of allowed plans decides, for its minimum is ``2 sqrt(w T C)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

from ...core.bounds import LagrangianCertificate
from ...core.design import Comparison
from .bounds import Line, Multipliers, certificate_line, corners, envelope, supporting_line
from .outer_approximation import Relaxation
from .problem import Problem

_MAX_LINES = 2000

#: Corners of nearly parallel lines have rounding errors; the product is lowered by more than they are.
_ROUNDING = 1e-8


@dataclass
class Frontier:
    """What is known of the smallest product: the best plan, and the lines that bound it."""

    problem: Problem
    plan_Bps: tuple[float, ...] | None = None
    value: float = inf
    bound: float = 0.0
    lines: list[Line] = field(default_factory=list)
    scale_free: bool = False

    @property
    def gap(self) -> float:
        """Relative gap."""
        return (self.value - self.bound) / self.value if self.value < inf else inf

    def certificate(self) -> LagrangianCertificate:
        """Give the lines for a reader."""
        lines = self.lines if self.scale_free else envelope(self.lines)
        return LagrangianCertificate(tuple(certificate_line(self.problem, line) for line in lines), self.scale_free)

    def consider(self, plan_Bps: tuple[float, ...]) -> None:
        """Keep a plan if it is better."""
        if (value := self.problem.value(plan_Bps)) < self.value:
            self.plan_Bps, self.value = plan_Bps, value


def search_frontier(relaxation: Relaxation, gap: float, *, limited: bool) -> Frontier:
    """Search the frontier until the relative gap is reached or the budget ends.

    Parameters
    ----------
    relaxation : Relaxation
        The compiled relaxation.
    gap : float
        Relative gap on the product.
    limited : bool
        Whether every dimension with traffic has a largest bandwidth, so that there is a fastest network.
    """
    problem, frontier = relaxation.problem, Frontier(relaxation.problem)
    frontier.lines.append(_computation_line(problem))
    typical = problem.time_unit_s / problem.cost_unit_usd
    weights = [(0.0, 1.0), *([(1.0, 0.0)] if limited else []), (1.0, typical)]
    while len(frontier.lines) < _MAX_LINES and not relaxation.budget.exhausted:
        if not weights:
            best = min(corners(frontier.lines), key=lambda corner: corner.product)
            frontier.bound = best.product * (1 - _ROUNDING)
            if frontier.gap <= gap:
                break
            weights.append((1.0, best.time_s / best.cost_usd))
        minimum = relaxation.minimize(*weights.pop(), gap / 4)
        for plan in minimum.plans:
            frontier.consider(plan)
        known = len(frontier.lines)
        if minimum.line is not None and minimum.line.value > -inf:
            frontier.lines.append(minimum.line)
        if minimum.stopped is not None or (len(frontier.lines) == known and not weights):
            break  # stopped from outside, or no further line to be had
        relaxation.budget.progress(
            f"time x cost {frontier.value:.8g}, bound {frontier.bound:.8g}, {len(frontier.lines)} lines"
        )
    return frontier


def solve_scale_free(relaxation: Relaxation, gap: float) -> Frontier:
    """Minimize the product over all multiples of allowed plans, in one minimization; needs K = 0 and a scale-free relaxation."""
    problem = relaxation.problem
    weight = problem.time_unit_s / problem.cost_unit_usd
    minimum = relaxation.minimize(1.0, weight, gap / 2)
    frontier = Frontier(problem, scale_free=True)
    for plan in minimum.plans:
        if (multiple := allowed_multiple(problem, plan)) is not None:
            frontier.consider(tuple(multiple * b for b in plan))
    if minimum.line is not None:
        frontier.lines.append(minimum.line)
        frontier.bound = max(0.0, minimum.line.value) ** 2 / (4 * weight)
    return frontier


def allowed_multiple(problem: Problem, plan_Bps: Sequence[float]) -> float | None:
    """Largest multiple of a plan that meets the linear constraints; the smallest where there is no largest."""
    least, most = 0.0, inf
    for constraint in problem.constraints:
        load = sum(float(a) * b for a, b in zip(constraint.coefficients, plan_Bps, strict=True))
        if constraint.limit == 0 or load == 0:
            continue
        multiple = float(constraint.limit) / load
        if constraint.comparison is Comparison.EQUAL:
            least, most = max(least, multiple), min(most, multiple)
        elif (constraint.comparison is Comparison.AT_MOST) == (load > 0):
            most = min(most, multiple)
        else:
            least = max(least, multiple)
    # An equality met by both sides may differ from itself by a rounding error.
    if most < least * (1 - 1e-9) or most <= 0:
        return None
    return most if most < inf else (least or 1.0)


def _computation_line(problem: Problem) -> Line:
    """``T >= K``: nothing is faster than its computation."""
    first_used = [next(d for d, v in enumerate(term.traffic) if v) for term in problem.time.terms]
    shares = [[float(d == first) for d in range(problem.dimensions)] for first in first_used]
    nothing = [0.0] * len(problem.constraints)
    return supporting_line(problem, Multipliers(1.0, 0.0, shares, [1.0] * len(problem.time.overlaps), nothing))
