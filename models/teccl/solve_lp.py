"""``teccl-lp``: the linear program, solved."""

from __future__ import annotations

from math import ceil
from typing import Any

from ...core.bounds import Certificate, SolverBound
from ...core.budget import Budget, Incumbent
from ...core.effort import require_buildable
from ...core.errors import Unsupported
from ...core.instance import Instance
from ...core.method import Outcome, Status
from ...core.solver import ModelSize, Solver, SolverOptions, SolverResult, Termination
from .bounds import lower_bound
from .epoch_schedule import fluid_schedule_of
from .extract import PathFlow, path_flows
from .formulations.lp import LpIndexSets, build
from .options import LpOptions
from .problem import EpochProblem, epoch_problem

#: A part of the demands that is this near to all of them is all of them.
WHOLE = 1e-9


class LpSearch:
    """Where the search for the fewest epochs is: the bound, the best flows, every solve."""

    def __init__(
        self, instance: Instance, problem: EpochProblem, solver: Solver, budget: Budget, options: LpOptions, low: int
    ) -> None:
        self.instance = instance
        self.problem, self.solver, self.budget, self.options = problem, solver, budget, options
        self.low = low
        self.high: int | None = None
        self.flows: list[PathFlow] = []
        self.reports: list[SolverResult] = []
        self.stopped = False

    def within(self, epochs: int, objective: str = "makespan") -> float:
        """Solve for so many epochs; give the part of the demands that can be met, 0 if the solver has not said."""
        self.budget.progress(f"{epochs} epochs: between {self.low} and {self.high or 'any number'}")
        with self.budget.clock.phase("build"):
            sets = LpIndexSets(self.problem, epochs)
            require_buildable(sets.columns, f"{epochs} epochs")
            model = build(sets, objective)
        options = SolverOptions(feasibility_tolerance=1e-9)
        result = self.solver.solve(model, self.budget, options)
        self.reports.append(result)
        if result.termination is Termination.INFEASIBLE:  # with the paper's objective alone
            self.low = max(self.low, epochs + 1)
            return 0.0
        ended = result.termination is Termination.OPTIMAL
        self.stopped = not ended
        part = float(model.part.value) if result.has_solution else 0.0
        if part >= 1 - WHOLE:
            self._keep(sets, model)
        elif ended:
            self.low = max(self.low, epochs + 1)
        return part

    def _keep(self, sets: LpIndexSets, model: Any) -> None:
        values = [{key: v.value for key, v in each.items() if v.value > 0} for each in (model.F, model.B, model.R)]
        flows = path_flows(sets, *values)
        high = max(k + self.problem.links[e].delay for flow in flows for e, k in flow.hops)
        if self.high is None or high < self.high:
            self.flows, self.high = flows, high
            seconds = float(self.problem.seconds(high))
            self.budget.tell(Incumbent(seconds, answer=lambda: fluid_schedule_of(self.problem, self.instance, flows)))


def run(instance: Instance, solver: Solver, budget: Budget, options: LpOptions) -> Outcome:
    """Find the fewest epochs, or the best by the paper's objective (``Method.run``)."""
    problem = epoch_problem(instance)
    if any(problem.holds):
        raise Unsupported("a switch that can store a limited amount is in teccl-milp alone")
    low, certificate = lower_bound(problem)
    budget.tell_bound(problem.seconds(low), certificate)
    if options.epochs is not None and options.epochs < low:
        return Outcome(Status.INFEASIBLE, message=f"{options.epochs} epochs are too few: {low} are needed at least")
    search = LpSearch(instance, problem, solver, budget, options, max(1, low))
    if options.objective == "paper" and options.epochs is not None:
        search.within(options.epochs, "paper")
    else:
        _fewest(search, options.epochs)
        if options.objective == "paper" and search.high is not None:
            search.within(search.high, "paper")
    return _outcome(instance, search, low, certificate)


def _fewest(search: LpSearch, most: int | None) -> None:
    """Grow K until everything fits, by what part of it has fitted; then bisect."""
    epochs = search.low
    while search.high is None and not search.stopped and not search.budget.exhausted:
        part = search.within(epochs)
        if most is not None and search.high is None and epochs >= most:
            return
        epochs = max(epochs + 1, ceil(min(2.0, 1 / max(part, 1e-3)) * epochs))
        epochs = epochs if most is None else min(epochs, most)
    while search.high is not None and search.low < search.high and not search.stopped and not search.budget.exhausted:
        search.within((search.low + search.high - 1) // 2)


def _message(search: LpSearch, low: int) -> str:
    limited = search.stopped or search.budget.exhausted
    if search.high is None and not limited and low < search.low:
        return f"no schedule of so few epochs: {search.low} are needed with buffers as the model counts them"
    if search.high is None:
        return f"no schedule found{' in time' if limited else ''}: {search.low} epochs are needed at least"
    if low < search.high:
        return f"{'in the time that there was, ' * limited}{search.high} epochs found, {low} proved to be needed"
    return "the time ended before the paper's objective was at its best" if limited else ""


def _outcome(instance: Instance, search: LpSearch, simple: int, certificate: Certificate | None) -> Outcome:
    problem, reports = search.problem, tuple(search.reports)
    size = max((r.size for r in reports), key=lambda s: s.variables, default=ModelSize())
    low = simple if search.options.buffer is not None else search.low
    proof = certificate
    if low > simple and reports:
        proof = SolverBound(reports[-1].solver, reports[-1].version)
    known: dict[str, object] = {"lower_bound_epochs": low, "models": len(reports), "parts": len(search.flows)}
    if search.high is None:
        most = search.options.epochs
        status = Status.INFEASIBLE if most is not None and most < low else Status.LIMIT
        return Outcome(status, message=_message(search, low), reports=reports, size=size, metrics=known)
    proved = low >= search.high
    return Outcome(
        Status.OPTIMAL if proved else Status.FEASIBLE,
        fluid_schedule_of(problem, instance, search.flows),
        objective=float(problem.seconds(search.high)),
        bound=float(problem.seconds(low)) if proof is not None else None,
        certificate=proof,
        message=_message(search, low),
        reports=reports,
        size=size,
        iterations=len(reports),
        metrics=known,
    )
