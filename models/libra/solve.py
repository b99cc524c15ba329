"""``libra`` by the way that the solver allows, and ``libra-codesign`` over parallelizations of a transformer.

Both are described on the page docs/methods/libra.md; ``libra-codesign`` is section 4.6.7 of the dissertation.
"""

from collections.abc import Sequence
from math import inf
from typing import Any

from ...core.answers import BandwidthPlan
from ...core.bounds import LagrangianCertificate, SolverBound, SweepCertificate
from ...core.budget import Budget
from ...core.design import Objective
from ...core.errors import InputError, Unsupported
from ...core.instance import Instance
from ...core.outcome import Outcome, Status
from ...core.solver import (
    Capability,
    ResolvingSolver,
    Solver,
    SolverOptions,
    SolverResult,
    Termination,
    as_resolving_solver,
)
from .bounds import certificate_line
from .formulation import build, plan_of
from .method import CodesignOptions, LibraOptions
from .outer_approximation import Relaxation, search_frontier, solve_scale_free
from .problem import DesignProblem, in_units, pose_problem

#: Relative gaps that are certified unless the user asks for another.
GAPS = {Objective.PERF: 1e-7, Objective.PERF_PER_COST: 1e-6}

#: Gaps that the searches aim at: a few more linear programs, and the numbers are as sharp as a reader prints them.
_SHARP = {Objective.PERF: 1e-9, Objective.PERF_PER_COST: 1e-7}

#: A product B * (1/B) that misses 1 by a tolerance moves the time by as much; this is the smallest that solvers take.
_TOLERANCE = 1e-9

_STOPPED = {
    Termination.TIME_LIMIT: "the time limit was reached",
    Termination.INTERRUPTED: "interrupted",
    Termination.ERROR: "the solver failed on a linear program",
}


def run(instance: Instance, solver: Solver, budget: Budget, options: LibraOptions) -> Outcome:
    """Find the best bandwidths of an instance (``Method.run``)."""
    problem = pose_problem(instance)
    gap = options.gap or budget.gap or GAPS[problem.objective]
    quadratic = Capability.NONCONVEX_QP | Capability.QUADRATIC_CONSTRAINTS
    takes_products = quadratic in solver.capabilities
    if options.algorithm == "direct" and not takes_products:
        raise Unsupported(f"{solver.name} does not support products of variables: use -O algorithm=outer-approximation")
    if options.algorithm == "direct" or (options.algorithm == "auto" and takes_products):
        return solve_direct(problem, solver, budget, gap)
    return solve_by_tangents(problem, as_resolving_solver(solver), budget, gap)


def solve_direct(problem: DesignProblem, solver: Solver, budget: Budget, gap: float) -> Outcome:
    """Solve the model directly; the objective is recomputed, the bound rests on trust in the solver."""
    with budget.clock.phase("build"):
        model = build(problem)
    result = solver.solve(model, budget, SolverOptions(rel_gap=gap / 10, feasibility_tolerance=_TOLERANCE))
    size = result.size
    if result.termination in (Termination.INFEASIBLE, Termination.INFEASIBLE_OR_UNBOUNDED):
        return explain(problem, model, result, solver, budget, size=size)
    if result.termination is Termination.UNBOUNDED:
        return Outcome(Status.UNBOUNDED, message="no limit on the bandwidths", reports=(result,), size=size)
    if not result.has_solution:
        return Outcome(Status.LIMIT, message=result.message, reports=(result,), size=size)
    plan = plan_of(model, problem).bandwidth_Bps
    value = problem.value(plan)
    bound, message = None, result.message
    if result.bound is not None:
        stated = in_units(problem, result.bound)
        if stated <= value * (1 + gap):
            bound = min(stated, value)
        else:  # a plan that is better than the bound refutes it: the products were met within a tolerance only
            message = f"{result.solver}'s bound {stated:.9g} is above this plan's {value:.9g}, and so proves nothing"
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


def solve_by_tangents(problem: DesignProblem, solver: ResolvingSolver, budget: Budget, gap: float) -> Outcome:
    """Solve by outer approximation on linear programs."""
    computes = problem.time.constant_s or any(o.dp_compute_s for o in problem.time.overlaps)
    scale_free = problem.objective is Objective.PERF_PER_COST and not computes
    aim = min(gap, _SHARP[problem.objective])
    relaxation = Relaxation(problem, solver, budget)
    largest = relaxation.largest_bandwidths()
    if isinstance(largest, SolverResult):
        return explain(problem, relaxation.model, largest, solver, budget)
    if (starved := starved_dimension(problem, largest)) is not None:
        return Outcome(
            Status.INFEASIBLE, message=starved, reports=tuple(relaxation.reports), size=relaxation.compiled.size
        )
    limited = all(largest[d] < inf for d in problem.time.used_dimensions)
    if problem.objective is Objective.PERF:
        if not limited:
            raise InputError(
                "no limit on the bandwidth of every dimension with traffic: give a total or a cost budget",
                place="design",
            )
        relaxation.start(largest)
        minimum = relaxation.minimize(1.0, 0.0, aim, budget.progress)
        plan = relaxation.cheapest_as_fast(minimum) or minimum.plan_Bps
        lines = () if minimum.line is None else (certificate_line(problem, minimum.line),)
        return finish(problem, relaxation, plan, minimum.bound, LagrangianCertificate(lines), gap)
    if scale_free:
        free = Relaxation(problem, solver, budget, scale_free=True)
        free.start(largest)
        frontier = solve_scale_free(free, aim)
        if frontier.gap <= gap:
            return finish(problem, free, frontier.plan_Bps, frontier.bound, frontier.certificate(), gap)
    relaxation.start(largest)
    frontier = search_frontier(relaxation, aim, limited=limited)
    return finish(problem, relaxation, frontier.plan_Bps, frontier.bound, frontier.certificate(), gap)


def starved_dimension(problem: DesignProblem, largest_Bps: list[float]) -> str | None:
    """Return a dimension with traffic that the constraints leave without bandwidth, or None."""
    for d in problem.time.used_dimensions:
        if largest_Bps[d] <= 1e-12 * problem.bandwidth_unit_Bps:
            labels = ", ".join(repr(c.label) for c in problem.constraints if c.coefficients[d])
            return f"dimension {d + 1} carries traffic, but these constraints leave it no bandwidth: {labels}"
    return None


def finish(
    problem: DesignProblem,
    relaxation: Relaxation,
    plan_Bps: tuple[float, ...] | None,
    bound: float,
    certificate: LagrangianCertificate,
    gap: float,
) -> Outcome:
    """Build the outcome; optimal only if plan and bound meet."""
    stopped = [_STOPPED[r.termination] for r in relaxation.reports[-1:] if r.termination in _STOPPED]
    common: dict[str, Any] = {
        "reports": tuple(relaxation.reports),
        "size": relaxation.compiled.size,
        "iterations": relaxation.rounds,
        "message": stopped[0] if stopped else "",
    }
    if plan_Bps is None:
        return Outcome(Status.LIMIT, **common)
    value = problem.value(plan_Bps)
    if bound == -inf:
        return Outcome(Status.FEASIBLE, BandwidthPlan(plan_Bps), value, **common)
    status = Status.OPTIMAL if value - bound <= gap * value else Status.FEASIBLE
    return Outcome(status, BandwidthPlan(plan_Bps), value, min(bound, value), certificate, **common)


def explain(
    problem: DesignProblem, model: Any, result: SolverResult, solver: Solver, budget: Budget, **size: Any
) -> Outcome:
    """Return the outcome of a solve without a plan; constraints that clash are named."""
    if result.termination not in (Termination.INFEASIBLE, Termination.INFEASIBLE_OR_UNBOUNDED):
        message = _STOPPED.get(result.termination, result.message or result.termination.value)
        return Outcome(Status.LIMIT, message=message, reports=(result,))
    clash = clashing_constraints(model, list(model.design.values()), solver, budget)
    labels = ", ".join(repr(problem.constraints[c.index() - 1].label) for c in clash)
    return Outcome(Status.INFEASIBLE, message=f"no bandwidths meet all of: {labels}", reports=(result,), **size)


def clashing_constraints(model: Any, candidates: Sequence[Any], solver: Solver, budget: Budget) -> list[Any]:
    """Find an irreducible infeasible set among candidates by deletion filtering; larger if the budget ended."""
    clash: list[Any] = []
    try:
        for constraint in candidates:
            constraint.deactivate()
            if solver.solve(model, budget, SolverOptions()).termination is not Termination.INFEASIBLE:
                constraint.activate()
                clash.append(constraint)
    finally:
        for constraint in candidates:
            constraint.activate()
    return clash


def run_codesign(instance: Instance, solver: Solver, budget: Budget, options: CodesignOptions) -> Outcome:
    """Try every strategy, listed in the metric ``strategies``, and keep the best pair (``Method.run``)."""
    outcomes: list[tuple[tuple[int, int], Outcome]] = []
    pairs = strategies(instance, options)
    for tensor, data in pairs:
        if budget.is_exhausted:
            break
        outcome = run(instance.with_parallelism(tensor, data), solver, budget, options)
        outcomes.append(((tensor, data), outcome))
        text = "none" if outcome.objective is None else f"{outcome.objective:.6g}"
        budget.progress(f"HP-({tensor}, {data}): {text}")
    answered = [(hp, o) for hp, o in outcomes if o.answer is not None and o.objective is not None]
    if not answered:
        return outcomes[0][1] if outcomes else Outcome(Status.LIMIT, message="no strategy was tried in time")
    strategy, best = min(answered, key=lambda pair: pair[1].objective or 0.0)
    complete = len(outcomes) == len(pairs) and all(o.status in (Status.OPTIMAL, Status.INFEASIBLE) for _, o in outcomes)
    bounds = [o.bound for _, o in outcomes if o.status is not Status.INFEASIBLE]
    certificates = [
        (hp, o.certificate) for hp, o in outcomes if isinstance(o.certificate, SolverBound | LagrangianCertificate)
    ]
    bound = None if not complete or None in bounds else min(b for b in bounds if b is not None)
    assert isinstance(best.answer, BandwidthPlan)  # noqa: S101 (it is among the answered)
    sweep = [
        {
            "tensor_parallel": tensor,
            "data_parallel": data,
            "status": o.status.value,
            "objective": o.objective,
            "bound": o.bound,
            "bandwidth_GBps": [b / 1e9 for b in o.answer.bandwidth_Bps]
            if isinstance(o.answer, BandwidthPlan)
            else None,
        }
        for (tensor, data), o in outcomes
    ]
    return Outcome(
        Status.OPTIMAL if complete else Status.FEASIBLE,
        BandwidthPlan(best.answer.bandwidth_Bps, strategy),
        best.objective,
        bound,
        None if bound is None else SweepCertificate(tuple(certificates)),
        message=f"HP-({strategy[0]}, {strategy[1]}) is the best of {len(outcomes)} strategies",
        reports=tuple(r for _, o in outcomes for r in o.reports),
        size=best.size,
        iterations=sum(o.iterations for _, o in outcomes),
        metrics={"strategies": sweep, "tensor_parallel": strategy[0], "data_parallel": strategy[1]},
    )


def strategies(instance: Instance, options: CodesignOptions) -> list[tuple[int, int]]:
    """Return the pairs (TP, DP) to try; requested degrees must fit the network and the batch."""
    npus = instance.npus
    if options.tensor_parallel is not None:
        degrees = list(dict.fromkeys(options.tensor_parallel))
        for tensor in degrees:
            if npus % tensor:
                raise InputError(f"TP-{tensor} does not divide {npus:,} NPUs", source="-O tensor_parallel")
            instance.with_parallelism(tensor, npus // tensor).training()  # rejects what does not fit
        return [(tensor, npus // tensor) for tensor in degrees]
    powers = (1 << i for i in range(npus.bit_length()) if npus % (1 << i) == 0)
    return [(tensor, npus // tensor) for tensor in powers if _fits(instance, tensor, npus // tensor)]


def _fits(instance: Instance, tensor: int, data: int) -> bool:
    try:
        instance.with_parallelism(tensor, data).training()
    except InputError:
        return False
    return True
