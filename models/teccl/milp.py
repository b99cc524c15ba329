"""``teccl-milp``: the general form, solved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from ...core.bounds import Certificate, SolverBound
from ...core.budget import Budget
from ...core.errors import Unsupported
from ...core.instance import Instance
from ...core.method import Outcome, Status
from ...core.solver import ModelSize, Solver, SolverOptions, SolverResult, Termination
from .algorithm1 import number_of_epochs
from .answer import EpochSend, finish, schedule_of
from .epochs import EpochProblem, epoch_problem
from .layout import Layout, Rules, layout
from .milp_formulation import build
from .milp_options import MilpOptions, is_restricted
from .post import needed_sends, summed_up
from .simple_bounds import lower_bound

#: Columns that are built; 10^6 of them take 1.2 GB.
MAX_COLUMNS = 5_000_000


@dataclass
class Search:
    """Where the search for the fewest epochs is.

    Parameters
    ----------
    instance, problem, rules : Instance, EpochProblem, Rules
        What is solved.
    solver, budget : Solver, Budget
        With what.
    low : int
        Epochs that are needed at least, in this model.
    sends : list of EpochSend or None
        The best schedule.
    high : int or None
        Epochs that it takes.
    reports : list of SolverResult
        Every solve.
    stopped : bool
        Whether a solve has ended without an answer.
    """

    instance: Instance
    problem: EpochProblem
    rules: Rules
    solver: Solver
    budget: Budget
    low: int
    sends: list[EpochSend] | None = None
    high: int | None = None
    reports: list[SolverResult] = field(default_factory=list)
    stopped: bool = False

    def within(self, epochs: int) -> bool:
        """Look for a schedule of so many epochs; sharpen the bound if there is none. An end without an answer is neither."""
        self.budget.progress(f"{epochs} epochs: between {self.low} and {self.high or 'any number'}")
        result, found = self.solve(self.problem, epochs, "feasible")
        if found is not None:
            self.keep(found)
        elif result.termination is Termination.INFEASIBLE:
            self.low = max(self.low, epochs + 1)
        else:
            self.stopped = True
        return found is not None

    def keep(self, sends: list[EpochSend]) -> None:
        """Take a schedule if it is better than the best one."""
        epochs = finish(self.problem, sends)
        if self.high is None or epochs < self.high:
            self.sends, self.high = sends, epochs

    def solve(
        self, problem: EpochProblem, epochs: int, objective: str, weights: Sequence[Fraction] = ()
    ) -> tuple[SolverResult, list[EpochSend] | None]:
        """Build and solve one model of a fixed number of epochs."""
        with self.budget.clock.phase("build"):
            plan = layout(problem, epochs, self.rules)
            columns = sum(j - i + 1 for spans in plan.spans for i, j in spans.values())
            if columns > MAX_COLUMNS:
                raise Unsupported(
                    f"a model of {epochs} epochs has {columns:,} sends; at most {MAX_COLUMNS:,} are built"
                )
            model = build(plan, objective, weights)
        gap = self.budget.gap
        result = self.solver.solve(model, self.budget, SolverOptions() if gap is None else SolverOptions(rel_gap=gap))
        self.reports.append(result)
        if not result.has_solution:
            return result, None
        return result, extracted(plan, [key for key in plan.sends if model.F[key].value > 0.5])


def extracted(plan: Layout, chosen: Sequence[tuple[int, int, int]]) -> list[EpochSend]:
    """Make sends of the chosen variables, without useless ones; contributions to sums are added up."""
    sends = [EpochSend(k, q, plan.arcs[a].links) for q, a, k in chosen]
    return summed_up(plan.problem, needed_sends(plan.problem, sends))


def run(instance: Instance, solver: Solver, budget: Budget, options: MilpOptions) -> Outcome:
    """Find the fewest epochs, or the best by the paper's objective (``Method.run``)."""
    problem = epoch_problem(instance)
    low, certificate = lower_bound(problem)
    search = Search(instance, problem, options.rules, solver, budget, max(1, low, problem.diameter))
    if options.epochs is not None and options.epochs < search.low:
        return Outcome(
            Status.INFEASIBLE, message=f"{options.epochs} epochs are too few: {search.low} are needed at least"
        )
    metrics: dict[str, object] = {}
    if options.all_reduce == "stages" and any(commodity.after for commodity in problem.commodities):
        metrics = _by_stages(search)
    elif options.objective == "makespan":
        _by_fixed_lengths(search, options.epochs)
    else:
        metrics = _by_one_model(search, options)
    return _outcome(search, low, certificate, metrics)


def _by_stages(search: Search) -> dict[str, object]:
    """Solve the contributions and the sums one after the other (section 8): the second stage begins when the first has ended."""
    found: list[EpochSend] = []
    length: list[int] = []
    for sums in (False, True):
        picked = [q for q, c in enumerate(search.problem.commodities) if bool(c.after) is sums]
        commodities = tuple(replace(search.problem.commodities[q], after=()) for q in picked)
        stage = replace(search.problem, commodities=commodities)
        part = replace(search, problem=stage, low=max(1, lower_bound(stage)[0], stage.diameter))
        _by_fixed_lengths(part, None)
        if part.sends is None or part.high is None:
            search.stopped = True
            return {}
        found += [EpochSend(s.start + sum(length), picked[s.commodity], s.path) for s in part.sends]
        length.append(part.high)
    search.keep(found)
    return {"stage_epochs": length}


def _by_fixed_lengths(search: Search, most: int | None) -> None:
    """Bisect between bound and incumbent; the bound itself is tried first, since it is often met."""
    if search.within(search.low) or search.stopped:
        if search.stopped and search.sends is None:
            _any_schedule(search, most)
        return
    _any_schedule(search, most)
    while search.high is not None and search.low < search.high and not search.stopped and not search.budget.exhausted:
        if search.budget.gap is not None and search.high - search.low <= search.budget.gap * search.high:
            return
        search.within((search.low + search.high - 1) // 2)


def _any_schedule(search: Search, most: int | None) -> None:
    """Find a first schedule: of at most the given epochs, or of as many as algorithm 1 says, doubled until they are enough."""
    epochs, plenty = most or _enough(search), _plenty(search.problem)
    if epochs is None:
        return
    while search.sends is None and search.low <= epochs and not search.budget.exhausted:
        search.stopped = False
        search.within(epochs)
        if most is not None or search.stopped or epochs >= plenty:
            return
        epochs = min(2 * epochs, plenty)


def _plenty(problem: EpochProblem) -> int:
    """Give epochs in which every chunk can go to every destination one after the other: if these are not enough, none are."""
    window = max(link.window for link in problem.links)
    far = sum(int(problem.distance[c.source, t]) + window for c in problem.commodities for t in c.targets)
    return far + max((change.last for change in problem.timing.changes), default=0)


def _enough(search: Search) -> int | None:
    """Ask algorithm 1; None if the time has ended before it knew."""

    def feasible(problem: EpochProblem, epochs: int) -> bool | None:
        if problem.diameter > epochs:
            return False
        result, found = search.solve(problem, epochs, "feasible")
        if found is not None or result.termination is Termination.INFEASIBLE:
            return found is not None
        search.stopped = True
        return None

    epochs = number_of_epochs(search.instance, search.problem, search.low, feasible)
    return None if epochs is None else max(search.low, epochs)


def _by_one_model(search: Search, options: MilpOptions) -> dict[str, object]:
    """Solve one model of K epochs with an objective; of the makespan's the bound counts."""
    epochs = options.epochs or _enough(search)
    if epochs is None:
        return {}
    weights = [Fraction(weight) for weight in options.priorities or ()]
    result, found = search.solve(search.problem, epochs, options.objective, weights)
    if found is not None:
        search.keep(found)
    if result.termination is Termination.INFEASIBLE:
        search.low = max(search.low, epochs + 1)
    elif result.termination is not Termination.OPTIMAL:
        search.stopped = True
    if options.objective == "late":
        if result.bound is not None:
            search.low = max(search.low, -int(-(result.bound - 1e-6) // 1))
        return {}
    return {"paper_objective": result.objective, "paper_bound": result.bound, "paper_gap": result.gap}


def _outcome(search: Search, simple: int, certificate: Certificate | None, metrics: dict[str, object]) -> Outcome:
    """Say what has been found and what is proved of the instance, which may allow more than the model."""
    problem, reports = search.problem, tuple(search.reports)
    size = max((r.size for r in reports), key=lambda s: s.variables, default=ModelSize())
    low = simple if is_restricted(problem, search.rules) else search.low
    proof = certificate
    if low > simple and reports:
        proof = SolverBound(reports[-1].solver, reports[-1].version)
    known = {"model_bound_epochs": search.low, "lower_bound_epochs": low, "models": len(reports)}
    if search.sends is None or search.high is None:
        status = Status.LIMIT if search.stopped or search.budget.exhausted else Status.INFEASIBLE
        ended = "no schedule found in time" if status is Status.LIMIT else "no schedule of so few epochs"
        message = f"{ended}: {search.low} epochs are needed at least"
        return Outcome(status, message=message, reports=reports, size=size, metrics={**metrics, **known})
    proved = low >= search.high
    message = ""
    if not proved:
        limited = "in the time that there was, " if search.stopped or search.budget.exhausted else ""
        message = f"{limited}{search.high} epochs found, {low} proved to be needed"
        if search.low >= search.high:
            message += "; no schedule that keeps to the model's rules takes less"
    return Outcome(
        Status.OPTIMAL if proved else Status.FEASIBLE,
        schedule_of(problem, search.instance, search.sends),
        objective=float(problem.seconds(search.high)),
        bound=float(problem.seconds(low)) if proof is not None else None,
        certificate=proof,
        message=message,
        reports=reports,
        size=size,
        iterations=len(reports),
        metrics={**metrics, **known},
    )
