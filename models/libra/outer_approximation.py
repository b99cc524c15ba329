"""Global minima by linear programs: of ``a T(B) + b C(B)``, and of time times cost (docs/methods/libra.md).

The Pyomo model with its products replaced by tangents is a relaxation. Each round solves it, takes the solution's
bandwidths as a plan (upper bound) and its multipliers as a certificate (lower bound, see :mod:`.bounds`), and adds
tangents at both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import Any

import pyomo.environ as pyo

from ...core.bounds import LagrangianCertificate
from ...core.budget import Budget, Progress, ignore
from ...core.design import Comparison
from ...core.solver import CompiledModel, ResolvingSolver, SolverOptions, SolverResult, Termination
from .bounds import Line, Multipliers, certificate_line, corners, envelope, supporting_line
from .formulation import build, constraint_row_scale, plan_of, traffic_coefficient
from .newton import Coefficients, sharpen
from .problem import DesignProblem

#: Tangents that every dimension starts with, in equal ratios from its largest bandwidth down to this part of it.
_FIRST_TANGENTS = 12
_SMALLEST_PART = 1e-4

_NEAREST = 1e-6  #: No tangent is closer to another than this ratio: it would cut off less than a solver's tolerance.
_LEAST = 1e-7  #: No tangent is at a smaller bandwidth, in units: its coefficients would leave the range of a solver.

#: Steps from a plan without bandwidth somewhere towards one that has some everywhere.
_STEPS = tuple(10 ** (-k / 4) for k in range(64, -1, -1))

#: Traffic, in units, that the relaxation leaves out: solvers take such a coefficient for zero. Plans and bounds are
#: computed with all of it.
_NEGLIGIBLE = 1e-11

_MAX_ROUNDS = 200

_NEAR = 1e-6  #: A gap below which what binds is known, so that Newton's method starts from there for the next weights.
_NO_CAP = 1e6  #: A time, in units, that no plan worth considering takes.

#: Of the plans that are slower by no more than this part, the cheapest is taken: they are equally fast to any use.
_EQUALLY_FAST = 1e-9

_MAX_LINES = 2000

#: Corners of nearly parallel lines have rounding errors; the product is lowered by more than they are.
_ROUNDING = 1e-8

LP_OPTIONS = SolverOptions(feasibility_tolerance=1e-9)


@dataclass
class Relaxation:
    """Compiled relaxation; it grows by tangents and keeps them when the weights change."""

    problem: DesignProblem
    solver: ResolvingSolver
    budget: Budget
    scale_free: bool = False  #: Allow all multiples of allowed plans.
    reports: list[SolverResult] = field(default_factory=list)
    rounds: int = 0

    def __post_init__(self) -> None:
        with self.budget.clock.phase("build"):
            self.model: Any = build(self.problem)
            self.model.inverse_bandwidth.deactivate()
            self.model.objective.deactivate()
            for k, d in self.model.KD:
                if traffic_coefficient(self.problem, k, d) < _NEGLIGIBLE:
                    self.model.collective_time[k, d].deactivate()
            if self.scale_free:
                self.model.scale.unfix()
            self.model.linear_objective = pyo.Objective(expr=self.model.time)
            self.model.tangents = pyo.ConstraintList()
            self.model.time_cap = pyo.Constraint(expr=self.model.time <= _NO_CAP)
        self.points: dict[int, list[float]] = {d: [] for d in self.model.U}
        self.largest: dict[int, float] = {}
        self.coefficients = Coefficients(self.problem)
        self._near: tuple[tuple[float, ...], Multipliers] | None = None
        self.compiled: CompiledModel = self.solver.compile(self.model, self.budget, LP_OPTIONS)

    @property
    def tangents(self) -> int:
        """Number of tangents so far."""
        return sum(map(len, self.points.values()))

    def largest_bandwidths(self) -> list[float] | SolverResult:
        """Return each dimension's largest bandwidth under the linear constraints alone, in B/s; ``inf`` has no limit.

        A result is the reason without bandwidths: the constraints clash, or the solve was stopped.
        """
        largest: list[float] = []
        for d in self.model.D:
            result = self._solve([(self.model.bandwidth[d], -1.0)])
            if result.termination in (Termination.UNBOUNDED, Termination.INFEASIBLE_OR_UNBOUNDED):
                largest.append(inf)
            elif result.termination is Termination.OPTIMAL:
                largest.append(self.plan()[d - 1])
            else:
                return result
        return largest

    def start(self, largest_Bps: Sequence[float]) -> None:
        """Add the first tangents."""
        for d in self.model.U:
            top = largest_Bps[d - 1]
            top = top if top < inf else 1e3 * self.problem.bandwidth_unit_Bps
            top /= self.problem.bandwidth_units_Bps[d - 1]
            self.largest[d] = top
            for step in range(_FIRST_TANGENTS):
                self._add_tangent(d, top * _SMALLEST_PART ** (step / (_FIRST_TANGENTS - 1)))

    def minimize(self, time_weight: float, cost_weight: float, gap: float, tell: Progress = ignore) -> Minimum:
        """Minimize ``time_weight * T + cost_weight * C`` (weights per second and per dollar) to a relative gap."""
        problem, best = self.problem, Minimum()
        in_units = time_weight * problem.time_unit_s, cost_weight * problem.cost_unit_usd
        scale = sum(in_units)  # a solver's tolerances are meant for objectives around 1
        variables = (self.model.time, self.model.cost)
        objective = [(v, w / scale) for v, w in zip(variables, in_units, strict=True) if w]
        if self._near is not None:
            self._sharpen(best, (time_weight, cost_weight), *self._near)
        for _ in range(_MAX_ROUNDS if best.gap > gap else 0):
            result = self._solve(objective)
            if result.termination is not Termination.OPTIMAL:
                best.stopped = result
                break
            self.rounds += 1
            plan = self.plan()
            multipliers = self._multipliers(time_weight, cost_weight, scale)
            line = supporting_line(problem, multipliers, scale_free=self.scale_free)
            best.update(plan, self._value(plan, time_weight, cost_weight), line)
            if best.value == inf:
                self._improve(best, plan, time_weight, cost_weight)
            if best.gap > gap:
                self._sharpen(best, (time_weight, cost_weight), plan, multipliers)
            tell(f"round {self.rounds}: {best.value:.10g}, bound {best.bound:.10g}, gap {best.gap:.1e}")
            if best.gap <= gap or self.budget.is_exhausted:
                break
            if not self._add_tangents(plan, line.minimizer_Bps):
                self._improve(best, plan, time_weight, cost_weight)
                break
        return best

    def _sharpen(
        self, best: Minimum, weights: tuple[float, float], plan_Bps: tuple[float, ...], multipliers: Multipliers
    ) -> None:
        """Try Newton's method from a plan and multipliers, and keep improvements."""
        if self.scale_free or not weights[0]:
            return
        point = sharpen(self.coefficients, plan_Bps, multipliers, *weights)
        if point is None:
            return
        plan, multipliers = point
        line = supporting_line(self.problem, multipliers)
        if plan is None:
            best.update(plan_Bps, inf, line)
            return
        best.update(plan, self._value(plan, *weights), line)
        if best.gap <= _NEAR:
            self._near = plan, multipliers

    def _value(self, plan_Bps: tuple[float, ...], time_weight: float, cost_weight: float) -> float:
        value = cost_weight * self.problem.cost_usd(plan_Bps)
        return value + time_weight * self.problem.time.seconds(plan_Bps) if time_weight else value

    def _improve(self, best: Minimum, plan_Bps: tuple[float, ...], time_weight: float, cost_weight: float) -> None:
        """Move a plan towards :attr:`interior_Bps` by a line search.

        A dimension whose best bandwidth is smaller than any tangent's has none at all in the relaxation.
        """
        if not time_weight or (interior := self.interior_Bps) is None:
            return
        for step in _STEPS:
            mixed = tuple((1 - step) * b + step * i for b, i in zip(plan_Bps, interior, strict=True))
            if (value := self._value(mixed, time_weight, cost_weight)) < best.value:
                best.update(mixed, value)

    def cheapest_as_fast(self, minimum: Minimum) -> tuple[float, ...] | None:
        """Find the cheapest plan as fast as the fastest one found, if plans of equal time leave a choice.

        None if no cheaper plan was found; else its time is within :data:`_EQUALLY_FAST` of the fastest.
        """
        problem = self.problem
        if minimum.plan_Bps is None or problem.prices_usd_per_Bps is None:
            return None
        allowed_s = minimum.value * (1 + _EQUALLY_FAST)
        cost = problem.cost_usd(minimum.plan_Bps)
        self.compiled.set_constraint_bounds([self.model.time_cap], [-inf], [allowed_s / problem.time_unit_s])
        try:
            for _ in range(_MAX_ROUNDS):
                result = self._solve([(self.model.cost, 1.0)])
                if result.termination is not Termination.OPTIMAL or self.budget.is_exhausted:
                    return None
                self.rounds += 1
                plan = self.plan()
                if problem.time.seconds(plan) <= allowed_s * (1 + _EQUALLY_FAST):
                    return plan if problem.cost_usd(plan) < cost else None
                if not self._add_tangents(plan):
                    return None
        finally:
            self.compiled.set_constraint_bounds([self.model.time_cap], [-inf], [_NO_CAP])
        return None

    def plan(self) -> tuple[float, ...]:
        """Return the bandwidths of the last solution in bytes per second."""
        return plan_of(self.model, self.problem).bandwidth_Bps

    @cached_property
    def interior_Bps(self) -> tuple[float, ...] | None:
        """Allowed plan with bandwidth in every dimension with traffic; None if the solve was stopped.

        It minimizes the sum of inverses, each relative to that of the dimension's largest bandwidth: the first tangents
        make zero bandwidth cost more than an equal share for all dimensions.
        """
        result = self._solve([(self.model.inverse[d], top) for d, top in self.largest.items()])
        return self.plan() if result.termination is Termination.OPTIMAL else None

    def _solve(self, objective: list[tuple[Any, float]]) -> SolverResult:
        self.compiled.set_objective(objective)
        result = self.compiled.solve(self.budget)
        if result.termination is Termination.ERROR:  # once more, without the basis that the solver failed on
            self.reports.append(result)
            result = self.compiled.solve(self.budget)
        self.reports.append(result)
        return result

    def _add_tangents(self, *points_Bps: tuple[float, ...]) -> bool:
        units = self.problem.bandwidth_units_Bps
        return sum(self._add_tangent(d, point[d - 1] / units[d - 1]) for d in self.model.U for point in points_Bps) > 0

    def _add_tangent(self, d: int, at: float) -> bool:
        """Add the tangent of dimension d at a bandwidth (in units), unless one nearby is as good."""
        at = max(at, min(self.points[d], default=at) / 10)
        if at < _LEAST or any(abs(at - other) <= _NEAREST * other for other in self.points[d]):
            return False
        self.points[d].append(at)
        # 1/B >= 2/at - B/at^2, multiplied by at so that the two coefficients are each other's inverse.
        tangent = self.model.tangents.add(at * self.model.inverse[d] + self.model.bandwidth[d] / at >= 2)
        self.compiled.add_constraint(tangent)
        return True

    def _multipliers(self, time_weight: float, cost_weight: float, scale: float) -> Multipliers:
        """Read the last solution's multipliers, in the instance's units."""
        m, problem = self.model, self.problem
        # Pyomo may turn an inequality around; in a minimization the side that it bounds gives the sign of its
        # multiplier.
        shares: list[list[float]] = []
        for k, term in enumerate(problem.time.terms, start=1):
            rows = [m.collective_time[k, d] if term.traffic[d - 1] else None for d in m.D]
            duals = [abs(self.compiled.dual(row)) if row is not None and row.active else 0.0 for row in rows]
            total = sum(duals)
            if total == 0:  # no multiplier at all: any share is valid, the slowest dimension's the best
                slowest = max(m.D, key=lambda d: term.traffic[d - 1])
                duals, total = [float(d == slowest) for d in m.D], 1.0
            shares.append([dual / total for dual in duals])
        tp_shares: list[float] = []
        for o in m.O:
            tp, dp = (abs(self.compiled.dual(branch[o])) for branch in (m.overlapped_tp, m.overlapped_dp))
            tp_shares.append(tp / (tp + dp) if tp + dp else 0.5)
        constraints: list[float] = []
        for c, constraint in enumerate(problem.constraints):
            dual = self.compiled.dual(m.design[c + 1]) * scale / constraint_row_scale(problem, c)
            u = {Comparison.AT_MOST: abs(dual), Comparison.AT_LEAST: -abs(dual), Comparison.EQUAL: -dual}
            constraints.append(u[constraint.comparison])
        return Multipliers(time_weight, cost_weight, shares, tp_shares, constraints)


@dataclass
class Minimum:
    """Best plan and best bound of one weighted minimization."""

    plan_Bps: tuple[float, ...] | None = None
    value: float = inf
    line: Line | None = None
    stopped: SolverResult | None = None
    plans: list[tuple[float, ...]] = field(default_factory=list)

    @property
    def bound(self) -> float:
        """Value of the best line."""
        return -inf if self.line is None else self.line.value

    @property
    def gap(self) -> float:
        """Relative gap between plan and bound."""
        if self.line is None or self.value == inf:
            return inf
        return (self.value - self.line.value) / abs(self.value) if self.value else 0.0

    def update(self, plan_Bps: tuple[float, ...], value: float, line: Line | None = None) -> None:
        """Keep a better plan or line; all plans are kept for other rankings."""
        self.plans.append(plan_Bps)
        if value < self.value:
            self.plan_Bps, self.value = plan_Bps, value
        if line is not None and (self.line is None or line.value > self.line.value):
            self.line = line


@dataclass
class Frontier:
    """Best plan for the product, and the lines that bound it."""

    problem: DesignProblem
    plan_Bps: tuple[float, ...] | None = None
    value: float = inf
    bound: float = 0.0
    lines: list[Line] = field(default_factory=list)
    scale_free: bool = False

    @property
    def gap(self) -> float:
        """Relative gap between product and bound."""
        if not self.value:
            return 0.0  # nothing is below no time at all
        return (self.value - self.bound) / self.value if self.value < inf else inf

    def certificate(self) -> LagrangianCertificate:
        """Return the lines as a certificate."""
        lines = self.lines if self.scale_free else envelope(self.lines)
        return LagrangianCertificate(tuple(certificate_line(self.problem, line) for line in lines), self.scale_free)

    def consider(self, plan_Bps: tuple[float, ...]) -> None:
        """Keep a plan if it is better."""
        if (value := self.problem.value(plan_Bps)) < self.value:
            self.plan_Bps, self.value = plan_Bps, value


def search_frontier(relaxation: Relaxation, gap: float, *, limited: bool) -> Frontier:
    """Search the frontier until the relative gap is reached or the budget ends.

    ``limited`` if every dimension with traffic has a largest bandwidth, so that a fastest network exists.
    """
    problem, frontier = relaxation.problem, Frontier(relaxation.problem)
    frontier.lines += [_plain_line(problem, 1.0, 0.0), _plain_line(problem, 0.0, 1.0)]
    typical = problem.time_unit_s / problem.cost_unit_usd
    weights = [(0.0, 1.0), *([(1.0, 0.0)] if limited else []), (1.0, typical)]
    while len(frontier.lines) < _MAX_LINES and not relaxation.budget.is_exhausted:
        corner = None
        if not weights:
            corner = min(corners(frontier.lines), key=lambda corner: corner.product)
            frontier.bound = corner.product * (1 - _ROUNDING)
            if frontier.gap <= gap:
                break
            weights.append((1.0, corner.time_s / corner.cost_usd))
        tangents = relaxation.tangents
        minimum = relaxation.minimize(*weights.pop(), gap / 4)
        for plan in minimum.plans:
            frontier.consider(plan)
        count = len(frontier.lines)
        if minimum.line is not None and minimum.line.value > -inf:
            frontier.lines.append(minimum.line)
        if minimum.stopped is not None or (len(frontier.lines) == count and not weights):
            break  # stopped from outside, or no further line to be had
        line = minimum.line
        cuts = line is not None and corner is not None and line.value > line.at(corner) * (1 + 1e-12)
        if corner is not None and relaxation.tangents == tangents and not cuts:
            break  # the next round would be this one again
        relaxation.budget.progress(
            f"time x cost {frontier.value:.8g}, bound {frontier.bound:.8g}, {len(frontier.lines)} lines"
        )
    products = [corner.product for corner in corners(frontier.lines)]  # also of lines since the bound was last taken
    frontier.bound = max(frontier.bound, min(products, default=0.0) * (1 - _ROUNDING))
    return frontier


def solve_scale_free(relaxation: Relaxation, gap: float) -> Frontier:
    """Minimize the product over all multiples of plans; needs K = 0 and a scale-free relaxation."""
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


def allowed_multiple(problem: DesignProblem, plan_Bps: Sequence[float]) -> float | None:
    """Return a plan's largest multiple within the linear constraints, the smallest if unbounded, or None."""
    least, most = 0.0, inf
    for constraint in problem.constraints:
        load = sum(float(a) * b for a, b in zip(constraint.coefficients, plan_Bps, strict=True))
        if load == 0 and constraint.limit:
            if constraint.comparison.excess(-constraint.limit) > 0:
                return None  # no multiple of nothing reaches the limit
            continue
        if constraint.limit == 0:
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


def _plain_line(problem: DesignProblem, time_weight: float, cost_weight: float) -> Line:
    """Return ``T >= K``, no iteration is faster than its computation (of DP branches, too), or ``C >= 0``."""
    first_used = [next(d for d, v in enumerate(term.traffic) if v) for term in problem.time.terms]
    shares = [[float(d == first) for d in range(problem.dimensions)] for first in first_used]
    nothing = [0.0] * len(problem.constraints)
    alone = Multipliers(time_weight, cost_weight, shares, [0.0] * len(problem.time.overlaps), nothing)
    return supporting_line(problem, alone)
