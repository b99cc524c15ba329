"""``teccl`` on demands that copy: the ladder of bounds and searches, then a model, then the answer."""

from __future__ import annotations

import numba
import numpy as np

from ....core.bounds import Certificate, EpochCut, EpochDistance, EpochFlow, SolverBound
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
from .ladder import FarPair, Proof, solve
from .problem import EpochNetwork
from .search import Search
from .windowed import Windowed

#: What the metric ``proof`` says.
PROOFS = {FarPair: "distance", StaticCut: "cut", ExpandedCut: "flow-over-time", WindowPrices: "prices"}


def certificate_of(proof: Proof, network: EpochNetwork) -> Certificate:
    """Give what a reader can check, or name what the bound rests on."""
    match proof:
        case FarPair():
            return EpochDistance(proof.source, proof.target)
        case StaticCut():
            return EpochCut(tuple(np.flatnonzero(proof.side).tolist()), proof.sink, proof.threshold)
        case ExpandedCut():
            if proof.by_blocks_alone(network):
                return EpochFlow(proof.sink, proof.epochs)
            return SolverBound("flow over time", numba.__version__)
        case WindowPrices():
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
    low, certificate = result.bound, certificate_of(result.proof, relaxed)
    plan = result.plan()
    metrics = {
        "constructions": result.search.constructions,
        "moves": result.search.moves,
        "proof": PROOFS[type(result.proof)],
    }
    if plan is None or result.makespan is None:
        known = {**metrics, "lower_bound_epochs": low}
        message = f"no schedule found in time: {low} epochs are needed at least"
        seconds = float(problem.seconds(low))
        return Outcome(Status.LIMIT, bound=seconds, certificate=certificate, message=message, metrics=known)
    last = Windowed(instance, problem, solver, budget, low, result.makespan, sends_of(plan))
    if columns and result.open:
        last.run(columns)
    if last.raised:
        certificate = SolverBound(last.reports[-1].solver, last.reports[-1].version)
        metrics["proof"] = "model"
    return _outcome(instance, problem, last, certificate, metrics)


def _incumbent(instance: Instance, problem: EpochProblem, search: Search) -> Incumbent:
    """Give the best schedule so far."""

    def answer() -> Schedule | None:
        plan = search.plan()
        return None if plan is None else schedule_of(problem, instance, sends_of(plan))

    best = None if search.best is None else float(problem.seconds(search.best))
    return Incumbent(best, float(problem.seconds(search.bound)), answer=answer)


def _outcome(
    instance: Instance, problem: EpochProblem, last: Windowed, certificate: Certificate, metrics: dict[str, object]
) -> Outcome:
    proved = last.low == last.high
    return Outcome(
        Status.OPTIMAL if proved else Status.FEASIBLE,
        schedule_of(problem, instance, last.sends),
        objective=float(problem.seconds(last.high)),
        bound=float(problem.seconds(last.low)),
        certificate=certificate,
        message="" if proved else f"{last.high} epochs found, {last.low} proved to be needed",
        reports=tuple(last.reports),
        size=max((r.size for r in last.reports), key=lambda s: s.variables, default=ModelSize()),
        iterations=int(str(metrics["moves"])),
        metrics={**metrics, "lower_bound_epochs": last.low, "models": len(last.reports)},
    )
