"""Method ``teccl-lp``: fewest epochs by the linear program."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil
from typing import Any

from ...core.bounds import Certificate, SolverBound
from ...core.budget import Budget, Incumbent
from ...core.errors import InputError, Unsupported
from ...core.instance import Instance
from ...core.limits import require_buildable
from ...core.outcome import Outcome, Status
from ...core.schedule import Schedule
from ...core.solver import Solver, SolverOptions, SolverResult, Termination
from .bounds import lower_bound
from .extract import PathFlow, fluid_schedule_of, largest_size, outcome_of, path_flows
from .formulations.lp import LpIndexSets, build
from .options import LpOptions
from .problem import EpochProblem, epoch_problem

WHOLE = 1e-9  #: A part of the demands that is this near to all of them is all of them.
WHOLLY = 1 - 1e-6  #: A smaller part of the demands is less than all of them for certain.


@dataclass
class LpSearch:
    """State of the search for the fewest epochs: bound, best flows, all solves."""

    problem: EpochProblem
    solver: Solver
    budget: Budget
    options: LpOptions
    low: int
    high: int | None = None
    flows: list[PathFlow] = field(default_factory=list)
    reports: list[SolverResult] = field(default_factory=list)
    stopped: bool = False

    def within(self, epochs: int, objective: str = "makespan") -> float:
        """Solve for ``epochs`` epochs; return the part of the demands met, 0 without an answer."""
        self.budget.progress(f"{epochs} epochs: between {self.low} and {self.high or 'any number'}")
        with self.budget.clock.phase("build"):
            sets = LpIndexSets(self.problem, epochs, objective)
            require_buildable(sets.columns, f"{epochs} epochs")
            model = build(sets)
        result = self.solver.solve(model, self.budget, SolverOptions(feasibility_tolerance=1e-9))
        self.reports.append(result)
        if result.termination is Termination.INFEASIBLE:  # with the paper's objective alone
            self.low = max(self.low, epochs + 1)
            return 0.0
        ended = result.termination is Termination.OPTIMAL
        self.stopped = not ended
        part = float(model.part.value) if result.has_solution else 0.0
        if part >= 1 - WHOLE:
            flows = flows_of_model(sets, model)
            high = max(k + self.problem.links[e].delay for flow in flows for e, k in flow.hops)
            if self.high is None or high < self.high:
                self.flows, self.high = flows, high
                seconds = float(self.problem.seconds(high))
                self.budget.tell(Incumbent(seconds, answer=lambda: fluid_schedule_of(self.problem, flows)))
        elif ended:
            self.low = max(self.low, epochs + 1)
        return part


def run(instance: Instance, solver: Solver, budget: Budget, options: LpOptions) -> Outcome:
    """Minimize the epochs, or optimize the paper's objective (``Method.run``)."""
    problem = without_small_switches(instance)
    low, certificate = lower_bound(problem)
    budget.tell_bound(problem.seconds(low), certificate)
    if options.epochs is not None and options.epochs < low:
        return Outcome(Status.INFEASIBLE, message=f"{options.epochs} epochs are too few: {low} are needed at least")
    search = LpSearch(problem, solver, budget, options, max(1, low))
    if options.objective == "paper" and options.epochs is not None:
        search.within(options.epochs, "paper")
    else:
        _fewest(search, options.epochs)
        if options.objective == "paper" and search.high is not None:
            search.within(search.high, "paper")
    return _outcome(search, low, certificate)


def _fewest(search: LpSearch, most: int | None) -> None:
    """Grow K by the part of the demands that fitted until everything fits; then bisect."""
    epochs = search.low
    while search.high is None and not search.stopped and not search.budget.is_exhausted:
        part = search.within(epochs)
        if most is not None and search.high is None and epochs >= most:
            return
        epochs = max(epochs + 1, ceil(min(2.0, 1 / max(part, 1e-3)) * epochs))
        epochs = epochs if most is None else min(epochs, most)
    while search.high is not None and search.low < search.high:
        if search.stopped or search.budget.is_exhausted:
            return
        search.within((search.low + search.high - 1) // 2)


def _message(search: LpSearch, low: int) -> str:
    limited = search.stopped or search.budget.is_exhausted
    if search.high is None and not limited and low < search.low:
        return f"no schedule of so few epochs: {search.low} are needed with buffers as the model counts them"
    if search.high is None:
        return f"no schedule found{' in time' if limited else ''}: {search.low} epochs are needed at least"
    if low < search.high:
        return f"{'in the time that there was, ' * limited}{search.high} epochs found, {low} proved to be needed"
    return "the time ended before the paper's objective was at its best" if limited else ""


def _outcome(search: LpSearch, simple: int, certificate: Certificate | None) -> Outcome:
    problem, reports = search.problem, tuple(search.reports)
    low = simple if search.options.buffer is not None else search.low
    proof = certificate
    if low > simple and reports:
        proof = SolverBound(reports[-1].solver, reports[-1].version)
    known: dict[str, object] = {"lower_bound_epochs": low, "models": len(reports), "parts": len(search.flows)}
    if search.high is None:
        most = search.options.epochs
        status = Status.INFEASIBLE if most is not None and most < low else Status.LIMIT
        message, size = _message(search, low), largest_size(reports)
        return Outcome(status, message=message, reports=reports, size=size, metrics=known)
    answer = fluid_schedule_of(problem, search.flows)
    return outcome_of(problem, answer, search.high, low, proof, reports, _message(search, low), known)


def without_small_switches(instance: Instance) -> EpochProblem:
    """Put an instance on its grid; reject one with a switch that stores a limited amount."""
    problem = epoch_problem(instance)
    if any(problem.holds):
        raise Unsupported("only teccl-milp supports switches with limited storage")
    return problem


def flows_of_model(sets: LpIndexSets, model: Any) -> list[PathFlow]:
    """Read the flows of a solved model that meets all demands."""
    return path_flows(
        sets, *({key: v.value for key, v in each.items() if v.value > 0} for each in (model.F, model.B, model.R))
    )


def epochs_of_model(given: int | None, default: int, least: int) -> int:
    """Return the model's number of epochs K."""
    if given is not None and given < least:
        raise InputError(f"{given} are too few: {least} are needed at least", source="-O", place="epochs")
    return default if given is None else given


def needed_seconds(problem: EpochProblem, part: float, epochs: int, least: int) -> float | None:
    """Return the least seconds if no larger part can be met in ``epochs`` epochs.

    One epoch more if something is lacking, else this number if no fewer suffice; None if fewer may.
    """
    if part < WHOLLY:
        return float(problem.seconds(epochs + 1))
    return float(problem.seconds(epochs)) if epochs == least else None


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
