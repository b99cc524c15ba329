"""Method ``teccl-lp``: fewest epochs by the linear program."""

from dataclasses import dataclass, field
from math import ceil
from typing import Any

from ...core.budget import Budget, require_buildable
from ...core.instance import Instance
from ...core.outcome import Outcome, Status
from ...core.schedule import Schedule
from ...core.solver import Solver, SolverOptions, Termination
from .bounds import lower_bound
from .extract import PathFlow, fluid_schedule_of, path_flows
from .formulations.lp import LpIndexSets, build
from .model_search import ModelSearch, epochs_of_model, needed_seconds, without_small_switches
from .options import LpOptions

WHOLE = 1e-9  #: A part of the demands that is this near to all of them is all of them.


@dataclass(kw_only=True)
class LpSearch(ModelSearch):
    """Search by the linear program, with its best flows."""

    flows: list[PathFlow] = field(default_factory=list)

    def within(self, epochs: int, objective: str = "makespan") -> float:
        """Solve for ``epochs`` epochs; return the part of the demands met, 0 without an answer."""
        self.budget.progress(f"{epochs} epochs: between {self.low} and {self.high or 'any number'}")
        with self.budget.clock.phase("build"):
            sets = LpIndexSets(self.problem, epochs, objective)
            require_buildable(sets.columns, f"{epochs} epochs")
            model = build(sets)
        result = self.solve_model(model, SolverOptions(feasibility_tolerance=1e-9))
        if result.termination is Termination.INFEASIBLE:  # with the paper's objective alone
            self.low = max(self.low, epochs + 1)
            return 0.0
        ended = result.termination is Termination.OPTIMAL
        self.stopped = not ended
        part = float(model.part.value) if result.has_solution else 0.0
        if part >= 1 - WHOLE:
            flows = flows_of_model(sets, model)
            high = max(k + self.problem.links[e].delay for flow in flows for e, k in flow.hops)
            if self.keep(high, lambda: fluid_schedule_of(self.problem, flows)):
                self.flows = flows
        elif ended:
            self.low = max(self.low, epochs + 1)
        return part


def run(instance: Instance, solver: Solver, budget: Budget, options: LpOptions) -> Outcome:
    """Minimize the epochs, or optimize the paper's objective (``Method.run``)."""
    most = options.epochs
    search = LpSearch.with_bound(without_small_switches(instance), solver, budget)
    if most is not None and most < search.simple:
        return Outcome(Status.INFEASIBLE, message=f"K = {most} is too small: {search.simple} epochs are needed")
    if options.objective == "paper" and most is not None:
        search.within(most, "paper")
    else:
        epochs = search.low
        while search.high is None and not search.is_over:  # K grows by the part of the demands that fitted
            part = search.within(epochs)
            if most is not None and search.high is None and epochs >= most:
                break
            epochs = max(epochs + 1, ceil(min(2.0, 1 / max(part, 1e-3)) * epochs))
            epochs = epochs if most is None else min(epochs, most)
        search.bisect(search.within)
        if options.objective == "paper" and search.high is not None:
            search.within(search.high, "paper")
    low = search.simple if options.buffer is not None else search.low
    metrics = {"lower_bound_epochs": low, "models": len(search.reports), "parts": len(search.flows)}
    return search.outcome(low, most if search.high is None else None, _message(search, low), metrics)


def _message(search: LpSearch, low: int) -> str:
    limited = search.is_over
    if search.high is None and not limited and low < search.low:
        return f"no schedule of so few epochs: {search.low} are needed with buffers as the model counts them"
    if search.high is None:
        return f"no schedule found{' in time' if limited else ''}: {search.low} epochs are needed at least"
    if low < search.high:
        return f"{'in the time that there was, ' * limited}{search.high} epochs found, {low} proved to be needed"
    return "the time ended before the paper's objective was at its best" if limited else ""


def flows_of_model(sets: LpIndexSets, model: Any) -> list[PathFlow]:
    """Read the flows of a solved model that meets all demands."""
    return path_flows(
        sets, *({key: v.value for key, v in each.items() if v.value > 0} for each in (model.F, model.B, model.R))
    )


def index(instance: Instance, options: LpOptions) -> LpIndexSets:
    """Index the given epochs, or those of the lower bound (``Formulation.index``)."""
    problem = without_small_switches(instance)
    least = max(1, lower_bound(problem)[0])
    epochs = epochs_of_model(options.epochs, max(least, problem.diameter), least)
    sets = LpIndexSets(problem, epochs, options.objective)
    require_buildable(sets.columns, f"{epochs} epochs")
    return sets


def is_bound(sets: LpIndexSets) -> bool:
    """Check whether an infeasible part proves the instance infeasible (``Formulation.bounds``)."""
    return not any(limit is not None for limit in sets.problem.room) and sets.objective == "makespan"


def value(sets: LpIndexSets, part: float) -> float | None:
    """Return the least seconds if no larger part of the demands can be met (``Formulation.value``)."""
    return needed_seconds(sets.problem, part, sets.epochs, max(1, lower_bound(sets.problem)[0]))


def extract(model: Any, sets: LpIndexSets) -> Schedule | None:
    """Read the schedule of a solved model; None if it leaves demands (``Formulation.extract``)."""
    return fluid_schedule_of(sets.problem, flows_of_model(sets, model)) if model.part.value >= 1 - WHOLE else None
