"""Method ``teccl-milp``: fewest epochs by the general form."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor
from typing import Any

from ...core.budget import MOST_COLUMNS, Budget, require_buildable
from ...core.errors import InputError
from ...core.explanation import network_labels
from ...core.instance import Instance
from ...core.outcome import Outcome
from ...core.schedule import Schedule
from ...core.solver import Solver, SolverOptions, SolverResult, Termination
from .bounds import lower_bound
from .extract import EpochSend, finish, give_start, hops, schedule_of, sends_of_model
from .formulations.milp import build
from .index_sets import COLUMN_S, MAX_HOPS, IndexSets, index_sets, switches_in_a_row
from .model_search import ModelSearch
from .options import MilpOptions
from .problem import EpochProblem, epoch_problem
from .starts import initial_schedule

COARSE = (4, 8, 12)  #: Epochs of the coarse grids that are tried for every time.
DOUBLINGS = 12  #: Times that are tried: powers of two of the smallest that is possible.


@dataclass(kw_only=True)
class MilpSearch(ModelSearch):
    """Search by the general form; ``start`` is a schedule known before any model."""

    options: MilpOptions
    node_limit: int | None = None  #: Nodes of the solver's search in one model.
    most_columns: int = MOST_COLUMNS  #: Sends of the largest model of a search for fewer epochs.
    is_stage: bool = False  #: Its schedules are stages of one schedule.
    sends: list[EpochSend] | None = None
    start: list[EpochSend] | None = None

    @property
    def near(self) -> int:
        """Largest number of epochs within the gap of the bound."""
        return floor(self.low / (1 - Fraction(self.budget.gap or 0)))

    def within(self, epochs: int) -> bool:
        """Look for a schedule of ``epochs`` epochs; if the solver proves that there is none, raise the bound."""
        self.budget.progress(f"{epochs} epochs: between {self.low} and {self.high or 'any number'}")
        sets = self.index(self.problem, epochs)
        if sets.columns > self.most_columns:
            self.stopped = True
            return False
        result, sends = self.solve(sets)
        if sends is not None:
            self.keep_sends(sends)
        elif result.termination is Termination.INFEASIBLE:
            self.low = max(self.low, epochs + 1)
        else:
            self.stopped = True
        return sends is not None

    def keep_sends(self, sends: list[EpochSend]) -> None:
        """Keep a schedule if it is better than the best one."""
        if self.keep(finish(self.problem, sends), lambda: schedule_of(self.problem, sends), tell=not self.is_stage):
            self.sends = sends

    def index(self, problem: EpochProblem, epochs: int, objective: str = "feasible") -> IndexSets:
        """Build the index sets of a model of a fixed number of epochs."""
        with self.budget.clock.phase("build"):
            return sets_of(problem, epochs, self.options, objective)

    def solve(self, sets: IndexSets) -> tuple[SolverResult, list[EpochSend] | None]:
        """Build and solve a model, from the start if it has an objective."""
        with self.budget.clock.phase("build"):
            model = build(sets)
            starts = sets.objective != "feasible" and self.start is not None and give_start(sets, model, self.start)
        limits = SolverOptions(use_start=starts, node_limit=self.node_limit)
        if self.budget.gap is not None:
            limits = replace(limits, rel_gap=self.budget.gap)
        result = self.solve_model(model, limits)
        return result, sends_of_model(sets, model) if result.has_solution else None


def run(instance: Instance, solver: Solver, budget: Budget, options: MilpOptions) -> Outcome:
    """Minimize the epochs, or optimize the paper's objective (``Method.run``)."""
    problem = epoch_problem(instance)
    search = MilpSearch.with_bound(problem, solver, budget, options=options)
    search.low = max(search.low, problem.diameter)
    if options.buffer_counts == "all":
        require_room(problem)
    rule = restriction(problem, options.switches == "hyper-edges", options.buffer_counts == "all")
    metrics: dict[str, object] = {}
    certified = search.certificate is not None and search.low == search.simple  # else a model has to prove it
    if options.start == "constructions" and certified and not rule:
        sends = initial_schedule(problem, budget, search.near)
        if sends is not None and (options.epochs is None or finish(problem, sends) <= options.epochs):
            search.start = sends
            search.keep_sends(sends)
    if options.epochs is not None and options.epochs < search.low:
        pass  # nothing to solve
    elif options.all_reduce == "stages" and any(commodity.after for commodity in problem.commodities):
        metrics = _by_stages(search)
    elif options.objective == "makespan":
        _by_fixed_lengths(search, options.epochs)
    else:
        metrics = _by_one_model(search)
    return _outcome(search, rule, metrics)


def _by_stages(search: MilpSearch) -> dict[str, object]:
    """Solve the contributions, then the sums (section 8), which begin when the former have ended.

    In some timings a switch hands a chunk to a rank before its time on the link is over; the second stage waits for
    the link too.
    """
    sends: list[EpochSend] = []
    length: list[int] = []
    begin, links = 0, search.problem.links
    for sums in (False, True):
        picked = [q for q, c in enumerate(search.problem.commodities) if bool(c.after) is sums]
        commodities = tuple(replace(search.problem.commodities[q], after=()) for q in picked)
        stage = replace(search.problem, commodities=commodities, begin=begin)
        part = replace(search, is_stage=True, problem=stage, low=max(1, lower_bound(stage)[0], stage.diameter))
        _by_fixed_lengths(part, None)
        if part.sends is None or part.high is None:
            search.stopped = True
            return {}
        sends += [EpochSend(s.start + begin, picked[s.commodity], s.path) for s in part.sends]
        length.append(part.high)
        begin = max(part.high, *(k + links[e].window for s in part.sends for e, k in hops(stage, s)))
    search.keep_sends(sends)
    return {"stage_epochs": length}


def _by_fixed_lengths(search: MilpSearch, most: int | None) -> None:
    """Bisect between bound and incumbent, trying first the largest number within the gap of the bound."""
    near = search.near
    if search.high is not None and search.high <= near:
        return
    if search.within(near if most is None else min(near, most)):
        return
    stopped = search.stopped
    for epochs in _lengths(search, most) if search.sends is None else ():
        search.stopped = False
        if search.within(epochs) or search.is_over:
            break
    if not stopped:
        search.bisect(search.within, Fraction(search.budget.gap or 0))


def _lengths(search: MilpSearch, most: int | None) -> Iterator[int]:
    """Yield numbers of epochs to try: the given one, or algorithm 1's, doubled up to the largest useful."""
    if most is not None:
        if most >= search.low:
            yield most
        return
    epochs, problem = _epochs_by_algorithm_1(search), search.problem
    # Every chunk to every destination, one after the other.
    way = sum(link.delay for link in problem.links) + max(link.window for link in problem.links)
    plenty = sum(len(commodity.targets) for commodity in problem.commodities) * way
    plenty += max((change.last - problem.begin for change in problem.timing.changes), default=0)
    while epochs is not None:
        yield epochs
        epochs = None if epochs >= plenty else min(2 * epochs, plenty)


def _epochs_by_algorithm_1(search: MilpSearch) -> int | None:
    """Estimate a sufficient number of epochs (algorithm 1).

    Total times are tried from the smallest possible one on, doubled every time, on grids of 4, 8 and 12 epochs; the
    first feasible one is converted to the problem's epochs. A coarse grid may count less latency than the fine one, so
    the number may still be too small, and callers must be prepared for that. None if a solve had no answer on some
    grid: longer and longer times would be tried in vain.
    """
    fine = search.problem
    total = fine.seconds(max(1, search.low))
    for _ in range(DOUBLINGS):
        for epochs in COARSE:
            timing = replace(fine.timing, epoch_s=total / epochs, changes=())
            problem = epoch_problem(fine.instance.with_changes(timing=timing))
            if problem.diameter > epochs:
                continue
            result, sends = search.solve(search.index(problem, epochs))
            if sends is not None:
                return max(search.low, ceil(total / fine.timing.epoch_s))
            if result.termination is not Termination.INFEASIBLE:
                search.stopped = True
                return None
        total *= 2
    return max(search.low, ceil(total / fine.timing.epoch_s))


def _by_one_model(search: MilpSearch) -> dict[str, object]:
    """Solve one model of K epochs with an objective; only the makespan's bound counts."""
    objective, most = search.options.objective, search.options.epochs
    result: SolverResult | None = None
    if most is None and objective == "late":
        most = search.high  # of what is there before any model: no more can be needed
    for epochs in _lengths(search, most):
        result, sends = search.solve(search.index(search.problem, epochs, objective))
        if sends is not None:
            if objective == "paper":
                search.high = None  # a schedule of fewer epochs may be worse
            search.keep_sends(sends)
        if result.termination is not Termination.INFEASIBLE:
            search.stopped = result.termination is not Termination.OPTIMAL
            break
        search.low = max(search.low, epochs + 1)
        if search.budget.is_exhausted:
            break
    if objective == "paper" and result is not None:
        return {"paper_objective": result.objective, "paper_bound": result.bound, "paper_gap": result.gap}
    if result is not None and result.bound is not None:
        search.low = max(search.low, ceil(result.bound - 1e-6))
    return {}


def require_room(problem: EpochProblem) -> None:
    """Reject buffers, where all chunks count, below a rank's initial or final chunks."""
    for node, room in enumerate(problem.room):
        own = sum(c.source == node and not c.after for c in problem.commodities)
        targets = sum(node in c.targets for c in problem.commodities)
        if room is not None and not problem.switch[node] and room < max(own, targets):
            name = problem.topology.nodes[node].name
            text = f"{room} chunks, but {name} has {own} at the start and needs {targets} in the end, which count too"
            raise InputError(text, source="-O", place="buffer")


def restriction(problem: EpochProblem, hyper_edges: bool, all_count: bool) -> str:
    """Return the model's restrictions beyond the instance, under which alone its proofs hold; else empty."""
    sums = any(commodity.summed for commodity in problem.commodities)
    if all_count:
        return "a rank's own chunks and those that it needs count in its buffer"
    if any(commodity.after for commodity in problem.commodities):
        return "each part of an all-reduce is summed at one rank, and each rank sums one part"
    if (hyper_edges and switches_in_a_row(problem, summed=False)) or (sums and switches_in_a_row(problem, summed=True)):
        return f"ways through several switches have at most {MAX_HOPS} links and do not come back"
    if sums and any(problem.holds):
        return "switches with a limited buffer add nothing"
    if sums and any(problem.room):
        return "a rank that only passes on has room for each contribution"
    return ""


def _outcome(search: MilpSearch, rule: str, metrics: dict[str, object]) -> Outcome:
    """Return the schedule and the bound for the instance, which may allow more than the model with its rule."""
    most, high = search.options.epochs, search.high
    low = search.simple if rule else search.low
    ended = "in the time that there was, " if search.is_over else ""
    counts = {"model_bound_epochs": search.low, "lower_bound_epochs": low, "models": len(search.reports)}
    if search.start is not None:
        counts["start_epochs"] = finish(search.problem, search.start)
    if high is None:
        message = f"no schedule found in time: {search.low} epochs are needed at least"
        if most is not None and most < low:
            message = f"K = {most} is too small: {low} epochs are needed"
        elif rule and most is not None and not ended:
            message = f"K = {most} is too small where {rule}: {search.low} epochs are needed then"
        return search.outcome(low, most, message, metrics | counts)
    if not search.reports:
        low = search.simple  # what the certificate proves, or nothing
    message = ""
    if low < high:
        message = f"{ended}{high} epochs found, {low} proved to be needed"
        if search.low >= high and rule:
            message += f"; no schedule takes less where {rule}"
        elif search.budget.gap and high - search.low <= search.budget.gap * high:
            message += f"; that is within the gap that was asked for, {search.budget.gap:g}"
    if search.start is not None and search.sends is search.start:
        reason = "no model was solved" if not search.reports else "no model gave a better one"
        message += ("; " if message else "") + f"the schedule is made by teccl's constructions, and {reason}"
    return search.outcome(low, None, message, metrics | counts)


def sets_of(problem: EpochProblem, epochs: int, options: MilpOptions, objective: str) -> IndexSets:
    """Return the index sets under the options' rules; refuse those of models that are too large."""
    sets = index_sets(
        problem,
        epochs,
        hyper_edges=options.switches == "hyper-edges",
        all_count=options.buffer_counts == "all",
        objective=objective,
        weights=tuple(Fraction(weight) for weight in options.priorities or ()),
    )
    require_buildable(sets.columns, f"{epochs} epochs", COLUMN_S)
    return sets


def index(instance: Instance, options: MilpOptions) -> IndexSets:
    """Index the given epochs, or twice those of the lower bound (``Formulation.index``).

    With fewer epochs than cuts require the model is infeasible; ``cwb solve --explain`` says why.
    """
    problem = epoch_problem(instance)
    if options.buffer_counts == "all":
        require_room(problem)
    epochs = options.epochs or 2 * max(1, lower_bound(problem)[0], problem.diameter)
    return sets_of(problem, epochs, options, options.objective)


def labels(sets: IndexSets) -> Mapping[str, Callable[[Any], str]]:
    """Name nodes, arcs, links and the chunks' sources (``Formulation.labels``)."""
    topology, sources = sets.problem.topology, [commodity.source for commodity in sets.problem.commodities]
    nodes = range(len(topology.nodes))
    ways = [(arc.source, arc.target) for arc in sets.arcs]
    return network_labels(topology, n=nodes, d=nodes, a=ways, link=topology.link_ends, q=sources, p=sources)


def is_bound(sets: IndexSets) -> bool:
    """Check whether the model allows all that the instance allows (``Formulation.bounds``)."""
    return not restriction(sets.problem, sets.hyper_edges, sets.all_count)


def value(sets: IndexSets, objective: float) -> float | None:
    """Return the time of epochs with undelivered chunks; None for other objectives (``Formulation.value``)."""
    return float(sets.problem.seconds(ceil(objective - 1e-6))) if sets.objective == "late" else None


def extract(model: Any, sets: IndexSets) -> Schedule:
    """Read the schedule out of a solved model (``Formulation.extract``)."""
    return schedule_of(sets.problem, sends_of_model(sets, model))
