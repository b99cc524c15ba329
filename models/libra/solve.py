"""``libra``: from an instance to an outcome, by the way that the solver allows."""

from __future__ import annotations

from math import inf
from typing import Any

from ...core.answers import BandwidthPlan
from ...core.bounds import LagrangianCertificate
from ...core.budget import Budget
from ...core.design import Objective
from ...core.errors import InputError, Unsupported
from ...core.instance import Instance
from ...core.method import Outcome, Status
from ...core.solver import Capability, ResolvingSolver, Solver, SolverResult, Termination
from ..common.infeasibility import clashing_constraints
from .bounds import certificate_line
from .direct import solve_direct
from .frontier import search_frontier, solve_scale_free
from .options import LibraOptions
from .outer_approximation import Relaxation
from .problem import Problem, pose_problem

#: Relative gaps that are certified unless the user asks for another.
GAPS = {Objective.PERF: 1e-7, Objective.PERF_PER_COST: 1e-6}

#: Gaps that the searches aim at: a few more linear programs, and the numbers are as sharp as a reader prints them.
_SHARP = {Objective.PERF: 1e-9, Objective.PERF_PER_COST: 1e-7}

_STOPPED = {
    Termination.TIME_LIMIT: "the time limit was reached",
    Termination.INTERRUPTED: "interrupted",
}


def run(instance: Instance, solver: Solver, budget: Budget, options: LibraOptions) -> Outcome:
    """Find the best bandwidths of an instance (``Method.run``)."""
    problem = pose_problem(instance)
    gap = options.gap or budget.gap or GAPS[problem.objective]
    quadratic = Capability.NONCONVEX_QP | Capability.QUADRATIC_CONSTRAINTS
    takes_products = quadratic in solver.capabilities
    if options.algorithm == "direct" and not takes_products:
        raise Unsupported(f"{solver.name} cannot take products of variables: use -O algorithm=outer-approximation")
    if options.algorithm == "direct" or (options.algorithm == "auto" and takes_products):
        return solve_direct(problem, solver, budget, gap)
    if not isinstance(solver, ResolvingSolver) or Capability.RESOLVE not in solver.capabilities:
        raise Unsupported(f"{solver.name} does not keep a linear model between solves: use -O algorithm=direct")
    return solve_by_tangents(problem, solver, budget, gap)


def solve_by_tangents(problem: Problem, solver: ResolvingSolver, budget: Budget, gap: float) -> Outcome:
    """Solve by outer approximation on linear programs."""
    scale_free = (
        problem.objective is Objective.PERF_PER_COST and problem.time.constant_s == 0 and not problem.time.overlaps
    )
    aim = min(gap, _SHARP[problem.objective])
    relaxation = Relaxation(problem, solver, budget)
    largest = relaxation.largest_bandwidths()
    if isinstance(largest, SolverResult):
        return explain(problem, relaxation.model, largest, solver, budget)
    if (starved := starved_dimension(problem, largest)) is not None:
        return Outcome(Status.INFEASIBLE, message=starved, reports=tuple(relaxation.reports), size=relaxation.size)
    limited = all(largest[d] < inf for d in problem.time.used)
    if problem.objective is Objective.PERF:
        if not limited:
            raise InputError(
                "no limit on the bandwidth of every dimension with traffic: give a total or a cost budget",
                place="design",
            )
        relaxation.start(largest)
        minimum = relaxation.minimize(1.0, 0.0, aim, budget.progress)
        plan = relaxation.cheapest_as_fast(minimum) or minimum.plan_Bps
        if minimum.line is None:
            return finish(problem, relaxation, plan, None, LagrangianCertificate(()), gap)
        certificate = LagrangianCertificate((certificate_line(problem, minimum.line),))
        return finish(problem, relaxation, plan, minimum.line.value, certificate, gap)
    if scale_free:
        free = Relaxation(problem, solver, budget, scale_free=True)
        free.start(largest)
        frontier = solve_scale_free(free, aim)
        if frontier.gap <= gap:
            return finish(problem, free, frontier.plan_Bps, frontier.bound, frontier.certificate(), gap)
    relaxation.start(largest)
    frontier = search_frontier(relaxation, aim, limited=limited)
    return finish(problem, relaxation, frontier.plan_Bps, frontier.bound, frontier.certificate(), gap)


def starved_dimension(problem: Problem, largest_Bps: list[float]) -> str | None:
    """Say which dimension with traffic the constraints leave without bandwidth, if any."""
    for d in problem.time.used:
        if largest_Bps[d] <= 1e-12 * problem.bandwidth_unit_Bps:
            labels = ", ".join(repr(c.label) for c in problem.constraints if c.coefficients[d])
            return f"dimension {d + 1} carries traffic, but these constraints leave it no bandwidth: {labels}"
    return None


def finish(
    problem: Problem,
    relaxation: Relaxation,
    plan_Bps: tuple[float, ...] | None,
    bound: float | None,
    certificate: LagrangianCertificate,
    gap: float,
) -> Outcome:
    """Make the outcome of what has been found; optimal only if plan and bound meet."""
    stopped = [_STOPPED[r.termination] for r in relaxation.reports[-1:] if r.termination in _STOPPED]
    common: dict[str, Any] = {
        "reports": tuple(relaxation.reports),
        "size": relaxation.size,
        "iterations": relaxation.rounds,
        "message": stopped[0] if stopped else "",
    }
    if plan_Bps is None:
        return Outcome(Status.LIMIT, **common)
    value = problem.value(plan_Bps)
    if bound is None or bound == -inf:
        return Outcome(Status.FEASIBLE, BandwidthPlan(plan_Bps), value, **common)
    status = Status.OPTIMAL if value - bound <= gap * value else Status.FEASIBLE
    return Outcome(status, BandwidthPlan(plan_Bps), value, min(bound, value), certificate, **common)


def explain(problem: Problem, model: Any, result: SolverResult, solver: Solver, budget: Budget) -> Outcome:
    """Say why there is no plan: constraints that clash are named."""
    if result.termination is not Termination.INFEASIBLE:
        message = _STOPPED.get(result.termination, result.message or result.termination.value)
        return Outcome(Status.LIMIT, message=message, reports=(result,))
    clash = clashing_constraints(model, list(model.design.values()), solver, budget)
    labels = ", ".join(repr(problem.constraints[c.index() - 1].label) for c in clash)
    return Outcome(Status.INFEASIBLE, message=f"no bandwidths meet all of: {labels}", reports=(result,))
