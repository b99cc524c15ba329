"""LIBRA on a solver of nonconvex quadratic programs: the bilinear model as it is."""

from __future__ import annotations

import pyomo.environ as pyo

from ...core.answers import BandwidthPlan
from ...core.bounds import SolverBound
from ...core.budget import Budget
from ...core.design import Objective
from ...core.method import Outcome, Status
from ...core.solver import Solver, SolverOptions, Termination
from ..common.infeasibility import clashing_constraints
from .formulation import build_problem
from .problem import Problem

#: A product B * (1/B) that misses 1 by a tolerance moves the time by as much; this is the smallest that solvers take.
_TOLERANCE = 1e-9


def solve_direct(problem: Problem, solver: Solver, budget: Budget, gap: float) -> Outcome:
    """Hand the model over; the objective is recomputed from the bandwidths, the bound is the solver's word."""
    with budget.clock.phase("build"):
        model = build_problem(problem)
    result = solver.solve(model, budget, SolverOptions(rel_gap=gap / 10, feasibility_tolerance=_TOLERANCE))
    size = result.size
    if result.termination in (Termination.INFEASIBLE, Termination.INFEASIBLE_OR_UNBOUNDED):
        clash = clashing_constraints(model, list(model.design.values()), solver, budget)
        labels = ", ".join(repr(problem.constraints[c.index() - 1].label) for c in clash)
        return Outcome(Status.INFEASIBLE, message=f"no bandwidths meet all of: {labels}", reports=(result,), size=size)
    if result.termination is Termination.UNBOUNDED:
        return Outcome(Status.UNBOUNDED, message="no limit on the bandwidths", reports=(result,), size=size)
    if not result.has_solution:
        return Outcome(Status.LIMIT, message=result.message, reports=(result,), size=size)
    plan = tuple(max(0.0, pyo.value(model.bandwidth[d])) * problem.bandwidth_unit_Bps for d in model.D)
    value = problem.value(plan)
    bound, message = None, result.message
    if result.bound is not None:
        unit = problem.time_unit_s * (1.0 if problem.objective is Objective.PERF else problem.cost_unit_usd)
        told = result.bound * unit
        if told <= value * (1 + gap):
            bound = min(told, value)
        else:  # a plan that is better than the bound refutes it: the products were met within a tolerance only
            message = f"{result.solver}'s bound {told:.9g} is above this plan's {value:.9g}, and so proves nothing"
    optimal = bound is not None and value - bound <= gap * value
    return Outcome(
        Status.OPTIMAL if optimal else Status.FEASIBLE,
        BandwidthPlan(plan),
        value,
        bound,
        None if bound is None else SolverBound(result.solver, result.version),
        message=message,
        reports=(result,),
        size=size,
        iterations=result.nodes or 0,
    )
