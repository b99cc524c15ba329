"""``teccl``: for demands that copy, bounds and searches, then a model; for an all_to_all, the linear program."""

from dataclasses import replace
from functools import partial

import numpy as np

from ...algorithms.epochs.flow_bounds import ExpandedCut, StaticCut, WindowPrices
from ...algorithms.epochs.ladder import FarPair, LadderResult, Proof, solve
from ...algorithms.epochs.search import EpochSearch
from ...core.bounds import Certificate, EpochCut, EpochDistance
from ...core.budget import Budget, Incumbent
from ...core.errors import OutOfTime, Unsupported
from ...core.instance import Instance
from ...core.outcome import Outcome, Status
from ...core.schedule import Schedule
from ...core.solver import Solver
from .extract import schedule_of
from .options import MilpOptions, SearchOptions
from .problem import epoch_problem, is_all_to_all, network_of
from .solve_milp import MilpSearch

#: What the metric ``proof`` says.
PROOFS = {FarPair: "distance", StaticCut: "cut", ExpandedCut: "flow-over-time", WindowPrices: "prices"}

NODE_LIMIT = 300  #: Nodes of the solver's search in one model.


def certificate_of(proof: Proof) -> Certificate:
    """Convert a proof to a certificate that a reader can check."""
    match proof:
        case FarPair():
            return EpochDistance(proof.source, proof.target)
        case StaticCut():
            return EpochCut(tuple(np.flatnonzero(proof.side).tolist()), proof.sink, proof.threshold)
        case WindowPrices():
            return proof.certificate()


def run(instance: Instance, solver: Solver, budget: Budget, options: SearchOptions) -> Outcome:
    """Minimize the number of epochs (``Method.run``)."""
    if is_all_to_all(instance):
        from . import solve_all_to_all

        return solve_all_to_all.run(instance, solver, budget, options)
    with budget.clock.phase("build"):
        problem = epoch_problem(instance)
        if problem.timing.changes:
            raise Unsupported("varying bandwidth is supported by teccl-milp")
        if any(commodity.summed or commodity.after for commodity in problem.commodities):
            raise Unsupported("sums are supported by teccl-milp")
        if any(problem.holds):
            raise Unsupported("switches with limited storage are supported by teccl-milp")
        network = network_of(problem)
        # For bounds, every switch that can hold anything stores.
        holds = np.array([hold != 0 for hold in problem.holds], dtype=np.bool_)
        relaxed = replace(network, stores=network.stores | holds)

    def tell(search: EpochSearch) -> None:
        best = None if search.best is None else float(problem.seconds(search.best))

        def answer() -> Schedule | None:
            return None if (plan := search.plan()) is None else schedule_of(problem, plan)

        budget.tell(Incumbent(best, float(problem.seconds(search.bound)), answer=answer))

    result = solve(network, relaxed, budget, options.effort * 1_000_000, tell)
    plan = result.search.plan()
    if plan is None or result.search.best is None:
        return Outcome(
            Status.LIMIT,
            bound=float(problem.seconds(result.search.bound)),
            certificate=certificate_of(result.proof),
            message=f"no schedule found in time: {result.search.bound} epochs are needed at least",
            metrics=_metrics(result),
        )
    search = MilpSearch(
        problem=problem,
        solver=solver,
        budget=budget,
        simple=result.search.bound,
        certificate=certificate_of(result.proof),
        low=result.search.bound,
        high=plan.makespan,
        answer=partial(schedule_of, problem, plan),
        options=MilpOptions.model_validate({}),
        node_limit=NODE_LIMIT,
        most_columns=options.model_columns,
    )
    why = ""
    if options.model_columns and result.open:
        try:
            search.within(search.low)  # the bound is often met
            search.bisect(search.within)
        except (OutOfTime, Unsupported) as error:  # the model is too large, or nothing for the solver
            why = f"; {error}"
    result.search.bound = search.low
    with budget.clock.phase("search"):
        result.search.improve()
    if (better := result.search.plan()) is not None:
        search.keep(better.makespan, partial(schedule_of, problem, better))
    metrics = _metrics(result) | {"models": len(search.reports)}
    if search.low > search.simple:
        metrics["proof"] = "model"
    message = "" if search.low == search.high else f"{search.high} epochs found, {search.low} proved to be needed{why}"
    return replace(search.outcome(search.low, None, message, metrics), iterations=result.search.moves)


def _metrics(result: LadderResult) -> dict[str, object]:
    return {
        "constructions": result.search.constructions,
        "moves": result.search.moves,
        "proof": PROOFS[type(result.proof)],
        "lower_bound_epochs": result.search.bound,
    }
