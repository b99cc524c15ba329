"""``teccl``: for demands that copy, bounds and searches, then a model; for an all_to_all, the linear program."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from ...algorithms.epochs.flow_bounds import ExpandedCut, StaticCut, WindowPrices
from ...algorithms.epochs.ladder import FarPair, LadderResult, Proof, solve
from ...algorithms.epochs.problem import EpochNetwork
from ...algorithms.epochs.search import EpochPlan, EpochSearch
from ...core.bounds import Certificate, EpochCut, EpochDistance, SolverBound
from ...core.budget import Budget, Incumbent
from ...core.errors import Unsupported
from ...core.instance import Instance
from ...core.outcome import Outcome, Status
from ...core.schedule import Schedule
from ...core.solver import Solver, SolverOptions, SolverResult, Termination
from .extract import EpochSend, outcome_of, plan_of, schedule_of, sends_of_model
from .formulations.milp import build
from .index_sets import index_sets
from .options import SearchOptions
from .problem import EpochProblem, epoch_problem, is_all_to_all

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
            plan = search.plan()
            return None if plan is None else schedule_of(problem, plan)

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
    last = ModelBisection(problem, solver, budget, result.search.bound, result.search.best, plan)
    if options.model_columns and result.open:
        last.run(options.model_columns)
    result.search.bound = last.low
    with budget.clock.phase("search"):
        result.search.improve()
    if result.search.best < last.high and (plan := result.search.plan()) is not None:
        last.high, last.plan = plan.makespan, plan
    metrics, certificate = _metrics(result) | {"models": len(last.reports)}, certificate_of(result.proof)
    if last.raised is not None:
        certificate = SolverBound(last.raised.solver, last.raised.version)
        metrics["proof"] = "model"
    message = "" if last.low == last.high else f"{last.high} epochs found, {last.low} proved to be needed"
    answer = schedule_of(problem, last.plan)
    outcome = outcome_of(problem, answer, last.high, last.low, certificate, last.reports, message, metrics)
    return replace(outcome, iterations=result.search.moves)


def _metrics(result: LadderResult) -> dict[str, object]:
    return {
        "constructions": result.search.constructions,
        "moves": result.search.moves,
        "proof": PROOFS[type(result.proof)],
        "lower_bound_epochs": result.search.bound,
    }


@dataclass(eq=False)
class ModelBisection:
    """Bisection of the makespan by feasibility models."""

    problem: EpochProblem
    solver: Solver
    budget: Budget
    low: int
    high: int
    plan: EpochPlan
    reports: list[SolverResult] = field(default_factory=list)
    raised: SolverResult | None = None

    def run(self, columns: int) -> None:
        """Try the bound, often met, then midpoints, until a solve has no answer or ``columns`` is exceeded."""
        epochs = self.low
        while self.low < self.high and not self.budget.is_exhausted and self._search_within(epochs, columns):
            epochs = (self.low + self.high - 1) // 2

    def _search_within(self, epochs: int, columns: int) -> bool:
        with self.budget.clock.phase("build"):
            sets = index_sets(self.problem, epochs)
            if sets.columns > columns:
                return False
            model = build(sets)
        result = self.solver.solve(model, self.budget, SolverOptions(node_limit=NODE_LIMIT))
        self.reports.append(result)
        if result.has_solution:
            self.plan = plan_of(self.problem, sends_of_model(sets, model))
            self.high = self.plan.makespan
        elif result.termination is Termination.INFEASIBLE:
            self.low, self.raised = epochs + 1, result
        else:
            return False
        return True


def network_of(problem: EpochProblem) -> EpochNetwork:
    """Return network and chunks, one per commodity; a storing switch without copies does not store."""
    tail, head, delay, window, room = problem.columns
    switch = np.array(problem.switch, dtype=np.bool_)
    copies = np.array(problem.copies, dtype=np.bool_)
    unlimited = np.array([hold is None for hold in problem.holds], dtype=np.bool_)
    source = np.array([commodity.source for commodity in problem.commodities], dtype=np.int64)
    need = np.zeros((len(source), problem.nodes), dtype=np.bool_)
    for index, commodity in enumerate(problem.commodities):
        need[index, list(commodity.targets)] = True
    stores = ~switch | (unlimited & copies)
    return EpochNetwork(problem.nodes, tail, head, delay, window, room, stores, copies, source, need)


def sends_of(plan: EpochPlan) -> list[EpochSend]:
    """Return a plan's sends, in order."""
    rows = zip(plan.start.tolist(), plan.chunk.tolist(), plan.paths, strict=True)
    return sorted(EpochSend(start, chunk, path) for start, chunk, path in rows)
