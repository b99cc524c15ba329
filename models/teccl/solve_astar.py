"""``teccl-astar``: the general form for a few epochs at a time, until all demands are met."""

from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any

from ...core.budget import Budget, require_buildable
from ...core.instance import Instance
from ...core.outcome import Outcome
from ...core.schedule import Schedule
from ...core.solver import Solver, SolverOptions
from .extract import EpochSend, finish, hops, needed_sends, schedule_of
from .formulations.astar import RoundIndexSets, RoundState, build, remaining, round_index_sets
from .index_sets import COLUMN_S
from .model_search import ModelSearch, without_small_switches
from .options import AstarOptions
from .problem import EpochProblem
from .starts import SHORT, greedy_sends, initial_schedule

GAP = 1e-3  #: Relative gap at which a round is good enough.
NODE_LIMIT = 1000  #: Nodes of the solver's search in a model of a round.
COLUMNS = 2000  #: Sends that one model of a round chooses from; a larger round is solved in parts.


@dataclass(kw_only=True)
class AstarSearch(ModelSearch):
    """Search by rounds of ``epochs`` epochs, the next of which begins at ``begin``."""

    options: AstarOptions
    epochs: int
    plan: list[EpochSend] | None = None  #: Schedule of constructions, which rounds can follow.
    sends: list[EpochSend] = field(default_factory=list)
    begin: int = 0
    rounds: int = 0
    columns: int = COLUMNS  #: Sends that one model of a round chooses from, if no plan leads.

    def within(self, sends: list[EpochSend]) -> bool:
        """Check whether a schedule takes no more epochs than allowed."""
        return self.options.epochs is None or finish(self.problem, sends) <= self.options.epochs

    def keep_sends(self, sends: list[EpochSend]) -> bool:
        """Keep a schedule if it is better than the best one; return True if it is."""
        return self.keep(finish(self.problem, sends), lambda: schedule_of(self.problem, sends))

    def run(self) -> bool:
        """Solve round after round; return True if they met all demands."""
        state, most = RoundState.first(self.problem), self.options.epochs
        while any(commodity.targets for commodity in remaining(self.problem, state).commodities):
            if self.budget.is_exhausted or (most is not None and self.begin >= most):
                return False
            new, solved = self._round(state)
            self.rounds += 1
            after = state.advance(self.problem, new, self.epochs)
            if after.stock == state.stock and after.coming <= state.coming:
                if solved:
                    self.epochs *= 2  # a round too short for any chunk to come nearer
                elif self.columns:
                    self.columns //= 2  # models too large for their time
                else:
                    return False
                continue
            self.sends += [replace(s, start=s.start + self.begin) for s in new]
            state, self.begin = after, self.begin + self.epochs
        self.sends = needed_sends(self.problem, self.sends)
        return self.within(self.sends)

    def _round(self, state: RoundState) -> tuple[list[EpochSend], bool]:
        """Solve one round, also by some chunks after others; return its sends, and True if no model ended without."""
        rest = replace(remaining(self.problem, state), begin=self.begin)
        wanting = [q for q, commodity in enumerate(rest.commodities) if commodity.targets]
        lacking = sum(len(rest.commodities[q].targets) for q in wanting)
        self.budget.progress(f"round {self.rounds + 1}: epochs from {self.begin} on, {lacking} lacking")
        end = finish(self.problem, self.plan) if self.plan else max(self.simple, 2 * self.begin)
        share = 1 / max(1 if self.plan else 2, ceil((end - self.begin) / self.epochs))
        budget, parts = self.budget.part(share), 1
        if self.options.start == "none":
            columns = round_index_sets(rest, self.epochs, state).columns
            parts = min(len(wanting), ceil(columns / max(1, self.columns)))
        sends: list[EpochSend] = []
        solved = True
        for part in range(parts):
            chunks = set(wanting[part::parts])
            commodities = (c if q in chunks else replace(c, targets=()) for q, c in enumerate(rest.commodities))
            starts = state.started.union((e, k, s.commodity) for s in sends for e, k in hops(rest, s))
            model = replace(rest, commodities=tuple(commodities)), replace(state, started=starts)
            new, has_solution = self._part(*model, budget.part(1 / (parts - part)))
            sends += new
            solved &= has_solution
        return sends, solved

    def _part(self, rest: EpochProblem, state: RoundState, budget: Budget) -> tuple[list[EpochSend], bool]:
        """Solve a round's model of some chunks; return its sends, and True if it has a solution."""
        with self.budget.clock.phase("build"):
            sets = round_index_sets(rest, self.epochs, state, self.options.gamma)
            require_buildable(sets.columns, f"a round of {self.epochs} epochs", COLUMN_S)
            model = build(sets)
            start = []
            if self.options.start == "constructions":
                plan = {(s.commodity, e, k - self.begin) for s in self.plan or () for e, k in hops(self.problem, s)}
                start = greedy_sends(sets, [hop for hop in plan if 0 <= hop[2] < self.epochs])
            for key in sets.sends if start else ():
                model.F[key].value = 0
            for key in start:
                model.F[key].value = 1
        gap = GAP if self.budget.gap is None else self.budget.gap
        result = self.solve_model(model, SolverOptions(gap, node_limit=NODE_LIMIT, use_start=bool(start)), budget)
        if result.has_solution:
            return chosen_sends(sets, model), True
        return [EpochSend(k, q, sets.arcs[a].links) for q, a, k in start], False


def run(instance: Instance, solver: Solver, budget: Budget, options: AstarOptions) -> Outcome:
    """Solve round after round (``Method.run``)."""
    problem = without_small_switches(instance)
    search = AstarSearch.with_bound(problem, solver, budget, options=options, epochs=_round_epochs(problem, options))
    low = search.simple
    metrics: dict[str, object] = {"lower_bound_epochs": low}
    plan = initial_schedule(problem, budget, low) if options.start == "constructions" else None
    if plan is not None and search.within(plan):
        search.plan = plan
        search.keep_sends(plan)
        metrics["start_epochs"] = search.high
    if search.run():
        metrics |= {"rounds": search.rounds, "round_epochs": search.epochs}
        if search.high is None or finish(problem, search.sends) <= search.high:
            search.high = None  # of equal schedules, that of the rounds
            search.keep_sends(search.sends)
            return search.outcome(low, None, "", metrics)
        return search.outcome(low, None, "the rounds ended later: this is the schedule before them", metrics)
    reason = "the rounds took no end in time"
    if options.epochs is not None and not budget.is_exhausted:
        reason = f"the rounds needed more than {options.epochs} epochs"
    if search.plan is not None:
        return search.outcome(low, None, f"{reason}: this is the schedule that they began with", metrics)
    return search.outcome(low, None, f"{reason}: stopped after {search.begin} epochs", metrics)


def _round_epochs(problem: EpochProblem, options: AstarOptions) -> int:
    return options.round_epochs or max(SHORT, *(link.delay for link in problem.links))


def chosen_sends(sets: RoundIndexSets, model: Any) -> list[EpochSend]:
    """Read the sends of a round out of its solved model."""
    return [EpochSend(k, q, sets.arcs[a].links) for q, a, k in sets.sends if model.F[q, a, k].value > 0.5]


def index(instance: Instance, options: AstarOptions) -> RoundIndexSets:
    """Index a first round from the sources' chunks (``Formulation.index``)."""
    problem = without_small_switches(instance)
    epochs = _round_epochs(problem, options)
    sets = round_index_sets(problem, epochs, RoundState.first(problem), options.gamma, options.epochs)
    require_buildable(sets.columns, f"a round of {epochs} epochs", COLUMN_S)
    return sets


def extract(model: Any, sets: RoundIndexSets) -> Schedule | None:
    """Read the schedule of the round; None if demands are left after it (``Formulation.extract``)."""
    sends = chosen_sends(sets, model)
    after = sets.state.advance(sets.problem, sends, sets.epochs)
    if any(commodity.targets for commodity in remaining(sets.problem, after).commodities):
        return None
    useful = needed_sends(sets.problem, sends)
    if sets.most_epochs is not None and finish(sets.problem, useful) > sets.most_epochs:
        return None
    return schedule_of(sets.problem, useful)
