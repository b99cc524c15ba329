"""``teccl`` on demands that copy: the ladder of bounds and searches, then a model, then the answer."""

from __future__ import annotations

import numpy as np

from ....core.bounds import Certificate, EpochCut, EpochDistance, SolverBound
from ....core.budget import Budget, Incumbent
from ....core.errors import Unsupported
from ....core.instance import Instance
from ....core.method import Outcome, Status
from ....core.schedule import Schedule
from ....core.solver import ModelSize, Solver
from ..answer import schedule_of
from ..epochs import EpochProblem, epoch_problem
from .adapter import network_of, relaxed_of, sends_of
from .bounds.expanded import ExpandedCut
from .bounds.priced import WindowPrices
from .bounds.static import StaticCut
from .ladder import FarPair, Proof, Result, solve
from .search import Search
from .windowed import Windowed

#: What the metric ``proof`` says.
PROOFS = {FarPair: "distance", StaticCut: "cut", ExpandedCut: "flow-over-time", WindowPrices: "prices"}


def certificate_of(proof: Proof) -> Certificate:
    """Give what a reader can check."""
    match proof:
        case FarPair():
            return EpochDistance(proof.source, proof.target)
        case StaticCut():
            return EpochCut(tuple(np.flatnonzero(proof.side).tolist()), proof.sink, proof.threshold)
        case ExpandedCut() | WindowPrices():
            return proof.certificate()


def run_search(instance: Instance, solver: Solver, budget: Budget, effort: int, columns: int) -> Outcome:
    """Find the fewest epochs.

    Parameters
    ----------
    instance : Instance
        Posed, with whole chunks that are copied.
    effort : int
        Arcs that the search may look at.
    columns : int
        Sends of the largest model that the solver is asked.

    Returns
    -------
    Outcome
        Objective and bound in seconds; ``optimal`` only where they are equal in epochs.

    Raises
    ------
    Unsupported
        If bandwidths vary, something is summed, or a switch can store a limited amount.
    """
    with budget.clock.phase("build"):
        problem = epoch_problem(instance)
        if problem.timing.changes:
            raise Unsupported("bandwidths that vary over the epochs are taken by teccl-milp")
        if any(commodity.summed or commodity.after for commodity in problem.commodities):
            raise Unsupported("sums are taken by teccl-milp")
        if any(problem.holds):
            raise Unsupported("switches that can store a limited amount are taken by teccl-milp")
        network, relaxed = network_of(problem), relaxed_of(problem)
    result = solve(network, relaxed, budget, effort, lambda search: budget.tell(_incumbent(instance, problem, search)))
    plan = result.plan()
    if plan is None or result.makespan is None:
        return _nothing_found(problem, result)
    last = Windowed(instance, problem, solver, budget, result.bound, result.makespan, sends_of(plan))
    if columns and result.open:
        last.run(columns)
    result.search.bound = last.low
    with budget.clock.phase("search"):
        result.search.improve()
    plan = result.plan()
    if plan is not None and plan.makespan < last.high:
        last.high, last.sends = plan.makespan, sends_of(plan)
    return _outcome(instance, problem, last, result)


def _metrics(result: Result) -> dict[str, object]:
    return {
        "constructions": result.search.constructions,
        "moves": result.search.moves,
        "proof": PROOFS[type(result.proof)],
        "lower_bound_epochs": result.bound,
    }


def _nothing_found(problem: EpochProblem, result: Result) -> Outcome:
    return Outcome(
        Status.LIMIT,
        bound=float(problem.seconds(result.bound)),
        certificate=certificate_of(result.proof),
        message=f"no schedule found in time: {result.bound} epochs are needed at least",
        metrics=_metrics(result),
    )


def _incumbent(instance: Instance, problem: EpochProblem, search: Search) -> Incumbent:
    """Give the best schedule so far."""

    def answer() -> Schedule | None:
        plan = search.plan()
        return None if plan is None else schedule_of(problem, instance, sends_of(plan))

    best = None if search.best is None else float(problem.seconds(search.best))
    return Incumbent(best, float(problem.seconds(search.bound)), answer=answer)


def _outcome(instance: Instance, problem: EpochProblem, last: Windowed, result: Result) -> Outcome:
    proved = last.low == last.high
    metrics = {**_metrics(result), "models": len(last.reports)}
    certificate = certificate_of(result.proof)
    if last.raised is not None:
        certificate = SolverBound(last.raised.solver, last.raised.version)
        metrics["proof"] = "model"
    return Outcome(
        Status.OPTIMAL if proved else Status.FEASIBLE,
        schedule_of(problem, instance, last.sends),
        objective=float(problem.seconds(last.high)),
        bound=float(problem.seconds(last.low)),
        certificate=certificate,
        message="" if proved else f"{last.high} epochs found, {last.low} proved to be needed",
        reports=tuple(last.reports),
        size=max((r.size for r in last.reports), key=lambda s: s.variables, default=ModelSize()),
        iterations=result.search.moves,
        metrics=metrics,
    )
