"""``teccl-astar``: the general form for a few epochs at a time, until everybody has what it needs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import ceil

from ...core.bounds import Certificate
from ...core.budget import Budget, Incumbent
from ...core.effort import require_buildable
from ...core.errors import Unsupported
from ...core.instance import Instance
from ...core.method import Outcome, Status
from ...core.solver import ModelSize, Solver, SolverOptions, SolverResult
from .bounds import lower_bound
from .epoch_schedule import columns_of, schedule_of
from .extract import EpochSend, finish, hops, needed_sends
from .formulations.astar import RoundState, build, remaining, round_index_sets
from .index_sets import COLUMN_S
from .options import AstarOptions
from .problem import EpochProblem, epoch_problem
from .round_start import SHORT, greedy_sends, schedule_to_begin_with

#: Relative gap at which a round is good enough.
GAP = 1e-3

#: Nodes of the solver's search in a round that has sends to begin with.
NODE_LIMIT = 1000


@dataclass
class AstarSearch:
    """Where the rounds are.

    Parameters
    ----------
    instance, problem : Instance, EpochProblem
        What is solved.
    solver, budget, options : Solver, Budget, AstarOptions
        With what.
    low, certificate : int, Certificate or None
        Epochs that are needed at least, and what proves it.
    epochs : int
        Epochs of a round.
    plan : list of EpochSend or None
        A schedule that was there before.
    sends : list of EpochSend
        Of the rounds so far.
    begin : int
        First epoch of the next round.
    reports : list of SolverResult
        Every round.
    """

    instance: Instance
    problem: EpochProblem
    solver: Solver
    budget: Budget
    options: AstarOptions
    low: int
    certificate: Certificate | None
    epochs: int
    plan: list[EpochSend] | None = None
    sends: list[EpochSend] = field(default_factory=list)
    begin: int = 0
    reports: list[SolverResult] = field(default_factory=list)

    def within(self, sends: list[EpochSend]) -> bool:
        """Whether a schedule takes no more epochs than it may."""
        return self.options.epochs is None or finish(self.problem, sends) <= self.options.epochs

    def begin_with_constructions(self) -> None:
        """Take a schedule of constructions, which rounds can follow and which is left where they take no end."""
        plan = schedule_to_begin_with(self.problem, self.budget, self.low)
        if plan is not None and self.within(plan):
            self.plan = plan
            seconds = float(self.problem.seconds(finish(self.problem, plan)))
            self.budget.tell(
                Incumbent(seconds, answer=lambda: schedule_of(self.problem, self.instance, columns_of(plan)))
            )

    def run(self) -> bool:
        """Solve round after round; whether they came to an end."""
        state = RoundState(frozenset((q, c.source) for q, c in enumerate(self.problem.commodities)))
        most = self.options.epochs
        while any(commodity.targets for commodity in remaining(self.problem, state).commodities):
            if self.budget.exhausted or (most is not None and self.begin >= most):
                return False
            new = self._round(state)
            if new is None:
                return False
            moved = state.moved(self.problem, new, self.epochs)
            if moved.held == state.held and moved.coming <= state.coming:
                self.epochs *= 2  # a round too short for any chunk to come nearer
                continue
            self.sends += [replace(s, start=s.start + self.begin) for s in new]
            state, self.begin = moved, self.begin + self.epochs
        self.sends = needed_sends(self.problem, self.sends)
        return self.within(self.sends)

    def _round(self, state: RoundState) -> list[EpochSend] | None:
        """Solve one round; None if it ends without a point."""
        left = replace(remaining(self.problem, state), begin=self.begin)
        lacking = sum(len(c.targets) for c in left.commodities)
        self.budget.progress(f"round {len(self.reports) + 1}: epochs from {self.begin} on, {lacking} lacking")
        with self.budget.clock.phase("build"):
            sets = round_index_sets(left, self.epochs, state)
            require_buildable(sets.columns, f"a round of {self.epochs} epochs", COLUMN_S)
            model = build(sets, self.options.gamma)
            start = greedy_sends(sets, self._planned()) if self.options.start == "constructions" else []
            for key in sets.sends if start else ():
                model.F[key].value = 0
            for key in start:
                model.F[key].value = 1
        limits = SolverOptions(rel_gap=GAP if self.budget.gap is None else self.budget.gap)
        if start:
            limits = replace(limits, use_start=True, node_limit=NODE_LIMIT)
        budget = self.budget.part(1 / self._rounds_left()) if start else self.budget
        result = self.solver.solve(model, budget, limits)
        self.reports.append(result)
        chosen = [key for key in sets.sends if model.F[key].value > 0.5] if result.has_solution else start
        return [EpochSend(k, q, sets.arcs[a].links) for q, a, k in chosen] if result.has_solution or start else None

    def _rounds_left(self) -> int:
        """Rounds that the schedule to begin with would take from here, or as many as there were."""
        end = 2 * self.begin if self.plan is None else finish(self.problem, self.plan)
        return max(1, ceil((end - self.begin) / self.epochs))

    def _planned(self) -> list[tuple[int, int, int]]:
        """Commodities, links and epochs of the schedule to begin with that lie in the next round."""
        every = {(s.commodity, e, k - self.begin) for s in self.plan or () for e, k in hops(self.problem, s)}
        return [hop for hop in every if 0 <= hop[2] < self.epochs]


def run(instance: Instance, solver: Solver, budget: Budget, options: AstarOptions) -> Outcome:
    """Solve round after round (``Method.run``)."""
    problem = epoch_problem(instance)
    if any(problem.holds):
        raise Unsupported("a switch that can store a limited amount is in teccl-milp alone")
    low, certificate = lower_bound(problem)
    budget.tell_bound(problem.seconds(low), certificate)
    epochs = options.round_epochs or max(SHORT, *(link.delay for link in problem.links))
    search = AstarSearch(instance, problem, solver, budget, options, low, certificate, epochs)
    if options.start == "constructions":
        search.begin_with_constructions()
    ended = search.run()
    metrics: dict[str, object] = {"lower_bound_epochs": low}
    if search.plan is not None:
        metrics["start_epochs"] = finish(problem, search.plan)
    if ended:
        metrics |= {"rounds": len(search.reports), "round_epochs": search.epochs}
        return _outcome(search, search.sends, metrics, "")
    reason = "the rounds took no end in time"
    if options.epochs is not None and not budget.exhausted:
        reason = f"the rounds needed more than {options.epochs} epochs"
    if search.plan is not None:
        return _outcome(search, search.plan, metrics, f"{reason}: this is the schedule that they began with")
    return Outcome(
        Status.LIMIT,
        message=f"{reason}: stopped after {finish(problem, search.sends) if ended else search.begin} epochs",
        reports=tuple(search.reports),
        iterations=len(search.reports),
    )


def _outcome(search: AstarSearch, sends: list[EpochSend], metrics: dict[str, object], message: str) -> Outcome:
    problem, certificate, reports = search.problem, search.certificate, tuple(search.reports)
    high = finish(problem, sends)
    return Outcome(
        Status.OPTIMAL if certificate is not None and search.low >= high else Status.FEASIBLE,
        schedule_of(problem, search.instance, columns_of(sends)),
        objective=float(problem.seconds(high)),
        bound=float(problem.seconds(search.low)) if certificate is not None else None,
        certificate=certificate,
        message=message,
        reports=reports,
        size=max((r.size for r in reports), key=lambda s: s.variables, default=ModelSize()),
        iterations=len(reports),
        metrics=metrics,
    )
