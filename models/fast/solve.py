"""Method ``fast``: rails of all messages, their stages, and the schedule."""

from __future__ import annotations

from ...core.budget import Budget
from ...core.errors import Unsupported
from ...core.instance import Instance
from ...core.limits import require_buildable
from ...core.outcome import Outcome, Status
from ...core.solver import Solver, SolverOptions, SolverResult
from .extract import schedule_of
from .method import FastOptions
from .problem import COLUMN_S, Exchange, Pieces, balance_rails, busy_s, exchange_of, own_rails, round_to_bytes


def run(instance: Instance, solver: Solver, budget: Budget, options: FastOptions) -> Outcome:
    """Choose rails, decompose their loads, and schedule stage by stage (``Method.run``)."""
    exchange = exchange_of(instance)
    if not exchange.sizes:
        raise Unsupported("no rank has data for another one")
    bound, certificate = exchange.bound
    budget.tell_bound(bound, certificate)
    reports: tuple[SolverResult, ...] = ()
    metrics: dict[str, float] = {}
    with budget.clock.phase("build"):
        own = options.rails in ("source", "target")
        pieces = own_rails(exchange, of_target=options.rails == "target") if own else balance_rails(exchange)
        busy = busy_s(exchange, pieces)
    if options.rails == "optimal" and exchange.between:
        if max(busy.values()) <= bound:  # no solution of the program takes less
            metrics["model_time_s"] = float(bound)
        else:
            pieces, report = least_time(exchange, solver, budget)
            reports = (report,)
            if not pieces:
                return Outcome(Status.LIMIT, bound=float(bound), certificate=certificate, message=report.message)
            busy = busy_s(exchange, pieces)
            if report.objective is not None:
                metrics["model_time_s"] = report.objective * float(bound)
    with budget.clock.phase("build"):
        schedule, stages = schedule_of(exchange, pieces)
    metrics |= {"stages": stages, "rail_time_s": float(max(busy["rail_out"], busy["rail_in"]))}
    return Outcome(
        Status.FEASIBLE, schedule, bound=float(bound), certificate=certificate, reports=reports, metrics=metrics
    )


def least_time(exchange: Exchange, solver: Solver, budget: Budget) -> tuple[Pieces, SolverResult]:
    """Choose rails by the linear program; none without a solution in time."""
    from .formulation import build

    columns = len(exchange.between) * len(exchange.rails)
    require_buildable(columns, f"{len(exchange.between):,} messages", COLUMN_S)
    with budget.clock.phase("build"):
        model = build(exchange)
    result = solver.solve(model, budget, SolverOptions())
    if not result.has_solution:
        return {}, result
    return round_to_bytes(exchange, {way: x.value for way, x in model.x.items()}), result
