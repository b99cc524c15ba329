"""The global minimum of ``a T(B) + b C(B)`` on a solver of linear programs, by tangents to 1/B.

1/B is convex, so that every tangent ``1/B >= 2/B0 - B/B0^2`` lies below it: the Pyomo model with its products replaced by tangents is a relaxation.
Each round solves it, takes the solution's bandwidths as a plan (upper bound) and its multipliers as a certificate (lower bound, see :mod:`.bounds`),
and adds tangents at both. The two meet to any gap, since each round's error is quadratic in the distance to the next tangent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

import pyomo.environ as pyo

from ...core.budget import Budget, Progress, silent
from ...core.design import Comparison
from ...core.solver import CompiledModel, ModelSize, ResolvingSolver, SolverOptions, SolverResult, Termination
from .bounds import Line, Multipliers, supporting_line
from .formulation import build_problem, constraint_row_scale
from .problem import Problem

#: Tangents that every dimension starts with, in equal ratios from its largest bandwidth down to this part of it.
_FIRST_TANGENTS = 12
_SMALLEST_PART = 1e-4

#: No tangent is closer to another than this ratio: it would cut off less than a solver's tolerance.
_NEAREST = 1e-6

#: No tangent is at a smaller bandwidth, in units: its coefficients would leave the range of a solver.
_LEAST = 1e-7

_MAX_ROUNDS = 200

#: A time, in units, that no plan worth considering takes.
_NO_CAP = 1e6

#: Of the plans that are slower by no more than this part, the cheapest is taken: they are equally fast to any use.
_EQUALLY_FAST = 1e-9

LP_OPTIONS = SolverOptions(feasibility_tolerance=1e-9)


@dataclass
class Relaxation:
    """The compiled relaxation; it grows by tangents and keeps them when the weights change.

    Parameters
    ----------
    problem : Problem
        What is solved.
    solver : ResolvingSolver
        Solves linear programs.
    budget : Budget
        Limits of the run.
    scale_free : bool
        Whether all multiples of allowed plans are allowed (see :mod:`.frontier`).
    """

    problem: Problem
    solver: ResolvingSolver
    budget: Budget
    scale_free: bool = False
    reports: list[SolverResult] = field(default_factory=list)
    rounds: int = 0

    def __post_init__(self) -> None:
        with self.budget.clock.phase("build"):
            self.model: Any = build_problem(self.problem)
            self.model.inverse_bandwidth.deactivate()
            self.model.objective.deactivate()
            if self.scale_free:
                self.model.scale.unfix()
            self.model.linear_objective = pyo.Objective(expr=self.model.time)
            self.model.tangents = pyo.ConstraintList()
            self.model.time_cap = pyo.Constraint(expr=self.model.time <= _NO_CAP)
        self.points: dict[int, list[float]] = {d: [] for d in self.model.U}
        self.compiled: CompiledModel = self.solver.compile(self.model, self.budget, LP_OPTIONS)

    @property
    def size(self) -> ModelSize:
        """Size of the linear program as it is now."""
        return self.compiled.size

    def largest_bandwidths(self) -> list[float] | SolverResult:
        """Largest bandwidth of every dimension under the linear constraints alone, in bytes per second.

        Returns
        -------
        list of float
            ``inf`` where there is no limit.
        SolverResult
            Why there are none: the constraints clash, or the solve was stopped.
        """
        largest: list[float] = []
        for d in self.model.D:
            result = self._solve([(self.model.bandwidth[d], -1.0)])
            if result.termination in (Termination.UNBOUNDED, Termination.INFEASIBLE_OR_UNBOUNDED):
                largest.append(inf)
            elif result.termination is Termination.OPTIMAL:
                largest.append(max(0.0, pyo.value(self.model.bandwidth[d])) * self.problem.bandwidth_unit_Bps)
            else:
                return result
        return largest

    def start(self, largest_Bps: Sequence[float]) -> None:
        """Add the first tangents."""
        for d in self.model.U:
            top = largest_Bps[d - 1] / self.problem.bandwidth_unit_Bps
            top = top if top < inf else 1e3
            for step in range(_FIRST_TANGENTS):
                self._add_tangent(d, top * _SMALLEST_PART ** (step / (_FIRST_TANGENTS - 1)))

    def minimize(self, time_weight: float, cost_weight: float, gap: float, tell: Progress = silent) -> Minimum:
        """Minimize ``time_weight * T + cost_weight * C`` (weights per second and per dollar) to a relative gap."""
        problem, best = self.problem, Minimum()
        in_units = time_weight * problem.time_unit_s, cost_weight * problem.cost_unit_usd
        scale = sum(in_units)  # a solver's tolerances are meant for objectives around 1
        variables = (self.model.time, self.model.cost)
        objective = [(v, w / scale) for v, w in zip(variables, in_units, strict=True) if w]
        for _ in range(_MAX_ROUNDS):
            result = self._solve(objective)
            if result.termination is not Termination.OPTIMAL:
                best.stopped = result
                break
            self.rounds += 1
            plan = self.plan()
            multipliers = self._multipliers(time_weight, cost_weight, scale)
            line = supporting_line(problem, multipliers, scale_free=self.scale_free)
            value = cost_weight * problem.cost_usd(plan)
            if time_weight:
                value += time_weight * problem.time.seconds(plan)
            best.update(plan, value, line)
            tell(f"round {self.rounds}: {best.value:.10g}, bound {best.bound:.10g}, gap {best.gap:.1e}")
            if best.gap <= gap or self.budget.exhausted:
                break
            if not self._add_tangents(plan, line.minimizer_Bps):
                break
        return best

    def cheapest_as_fast(self, minimum: Minimum) -> tuple[float, ...] | None:
        """Cheapest plan that is as fast as the fastest one found, where plans of the same time leave a choice.

        Returns
        -------
        tuple of float or None
            None where no cheaper plan was found; the time of one that was is within :data:`_EQUALLY_FAST` of the fastest.
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
                if result.termination is not Termination.OPTIMAL or self.budget.exhausted:
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
        """Bandwidths of the last solution in bytes per second."""
        unit = self.problem.bandwidth_unit_Bps
        return tuple(max(0.0, pyo.value(self.model.bandwidth[d])) * unit for d in self.model.D)

    def _solve(self, objective: list[tuple[Any, float]]) -> SolverResult:
        self.compiled.set_objective(objective)
        result = self.compiled.solve(self.budget)
        self.reports.append(result)
        return result

    def _add_tangents(self, *points_Bps: tuple[float, ...]) -> bool:
        """Add tangents at points; whether there was any that is new."""
        unit = self.problem.bandwidth_unit_Bps
        added = 0
        for d in self.model.U:
            for point in points_Bps:
                added += self._add_tangent(d, point[d - 1] / unit)
        return added > 0

    def _add_tangent(self, d: int, at: float) -> bool:
        """Add the tangent of dimension d at a bandwidth (in units), unless there is one as good as there."""
        at = max(at, min(self.points[d], default=at) / 10)
        if at < _LEAST or any(abs(at - known) <= _NEAREST * known for known in self.points[d]):
            return False
        self.points[d].append(at)
        # 1/B >= 2/at - B/at^2, multiplied by at so that the two coefficients are each other's inverse.
        tangent = self.model.tangents.add(at * self.model.inverse[d] + self.model.bandwidth[d] / at >= 2)
        self.compiled.add_constraint(tangent)
        return True

    def _multipliers(self, time_weight: float, cost_weight: float, scale: float) -> Multipliers:
        """Read the multipliers off the last solution, in the instance's units."""
        m, problem = self.model, self.problem
        # Pyomo may turn an inequality around; in a minimization the side that it bounds gives the sign of its multiplier.
        shares: list[list[float]] = []
        for k, term in enumerate(problem.time.terms, start=1):
            duals = [abs(self.compiled.dual(m.collective_time[k, d])) if term.traffic[d - 1] else 0.0 for d in m.D]
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
    """The best plan and the best bound of one weighted minimization."""

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

    def update(self, plan_Bps: tuple[float, ...], value: float, line: Line) -> None:
        """Keep what is better, and all plans for those who judge them by something else."""
        self.plans.append(plan_Bps)
        if value < self.value:
            self.plan_Bps, self.value = plan_Bps, value
        if self.line is None or line.value > self.line.value:
            self.line = line
