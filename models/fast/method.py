"""Method ``fast``: rails of all messages, their stages, and the schedule; its options and its formulation."""

from ...core.budget import Budget
from ...core.errors import Unsupported
from ...core.fields import Strict
from ...core.formulation import Formulation
from ...core.instance import Instance
from ...core.method import Kind, Method, Metric
from ...core.outcome import Outcome, Status
from ...core.schedule import StepSchedule
from ...core.solver import Solver, SolverOptions, SolverResult
from .extract import schedule_of
from .problem import Exchange, Pieces, Rails, balance_rails, busy_s, exchange_of, own_rails, round_to_bytes, supports

PAPER = "Lei et al., FAST: An Efficient Scheduler for All-to-All GPU Communication, arXiv 2505.09764"


class FastOptions(Strict):
    """Options of ``fast``."""

    rails: Rails = "balanced"
    """Rail of a message between servers: balanced divides what goes between two servers among all; source and
    target are the two levels of expert-parallel libraries, the rail of the sender or of the receiver; optimal solves
    fast/rails, where balanced does not attain its bound."""


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

    with budget.clock.phase("build"):
        model = build(exchange)
    result = solver.solve(model, budget, SolverOptions())
    if not result.has_solution:
        return {}, result
    return round_to_bytes(exchange, {way: x.value for way, x in model.x.items()}), result


METHOD = Method(
    name="fast",
    kind=Kind.HEURISTIC,
    summary="all-to-all of unequal messages: balanced over rails, in one-to-one stages between servers",
    paper=PAPER,
    answer_type=StepSchedule,
    options=FastOptions,
    solve=run,
    supports=supports,
    metrics={
        "stages": Metric("stages of the rail that has the most"),
        "rail_time_s": Metric("time of the busiest link of a rail, without anything else", "s"),
        "model_time_s": Metric("with rails=optimal, the optimum of the linear program", "s"),
    },
)

RAILS = Formulation(
    "fast/rails",
    summary="which rails messages between servers take, with finite bandwidth inside the servers",
    paper=PAPER,
    equations="not printed; ours",
    index=f"{__package__}.problem:exchange_of",
    build=f"{__package__}.formulation:build",
    value=f"{__package__}.problem:seconds",
    supports=supports,
    restricted_to=lambda options: "data that goes from server to server once, on one rail",
)
