"""Rails for all messages, their stages, and the schedule of both."""

from __future__ import annotations

from fractions import Fraction

from ...core.budget import Budget
from ...core.effort import require_buildable
from ...core.errors import Unsupported
from ...core.instance import Instance
from ...core.method import Outcome, Status
from ...core.solver import Solver, SolverOptions, SolverResult
from .extract import parts_of, schedule_of
from .method import FastOptions
from .problem import COLUMN_S, Exchange, posed
from .rails import Pieces, balanced, own_rails, rail_matrix, rounded


def run(instance: Instance, solver: Solver, budget: Budget, options: FastOptions) -> Outcome:
    """Choose rails, decompose what they carry, and send stage by stage (``Method.run``)."""
    exchange = posed(instance)
    if not exchange.sizes:
        raise Unsupported("no rank has data for another one")
    bound, certificate = exchange.bound
    budget.tell_bound(bound, certificate)
    reports: tuple[SolverResult, ...] = ()
    if options.rails == "optimal" and exchange.between:
        pieces, report = least_time(exchange, solver, budget)
        reports = (report,)
        if not pieces:
            return Outcome(Status.LIMIT, bound=float(bound), certificate=certificate, message=report.message)
    elif options.rails == "balanced":
        pieces = balanced(exchange)
    else:
        pieces = own_rails(exchange, of_target=options.rails == "target")
    with budget.clock.phase("build"):
        schedule = schedule_of(exchange, pieces)
        stages = 1 + max((stage for _, _, _, stage, _ in parts_of(exchange, pieces)), default=-1)
    metrics = {"stages": stages, "rail_time_s": float(rail_time_s(exchange, pieces))}
    if reports and reports[0].objective is not None:
        metrics["model_time_s"] = reports[0].objective * float(bound)
    return Outcome(
        Status.FEASIBLE,
        schedule,
        bound=float(bound),
        certificate=certificate,
        reports=reports,
        metrics=metrics,
    )


def least_time(exchange: Exchange, solver: Solver, budget: Budget) -> tuple[Pieces, SolverResult]:
    """Rails by the linear program; none where it has no solution in time."""
    from .formulation import build

    columns = len(exchange.between) * len(exchange.rails)
    require_buildable(columns, f"{len(exchange.between):,} messages", COLUMN_S)
    with budget.clock.phase("build"):
        model = build(exchange)
    result = solver.solve(model, budget, SolverOptions())
    if not result.has_solution:
        return {}, result
    return rounded(exchange, {way: model.x[way].value for way in model.W}), result


def rail_time_s(exchange: Exchange, pieces: Pieces) -> Fraction:
    """Time of the busiest link of a rail."""
    longest = Fraction(0)
    for rail in exchange.rails:
        matrix = rail_matrix(exchange, pieces, rail)
        for server, ranks in enumerate(exchange.servers.members):
            leaves, comes = sum(matrix[server], Fraction(0)), sum((row[server] for row in matrix), Fraction(0))
            for size, out in ((leaves, True), (comes, False)):
                longest = max(longest, size / exchange.servers.rate(ranks[rail], inside=False, out=out))
    return longest
