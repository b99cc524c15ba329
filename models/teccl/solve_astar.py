"""``teccl-astar``: the general form for a few epochs at a time, until everybody has what it needs."""

from __future__ import annotations

from dataclasses import replace

from ...core.budget import Budget
from ...core.effort import require_buildable
from ...core.errors import Unsupported
from ...core.instance import Instance
from ...core.method import Outcome, Status
from ...core.solver import ModelSize, Solver, SolverOptions, SolverResult
from .bounds import lower_bound
from .extract import EpochSend, finish, needed_sends, schedule_of
from .formulations.astar import RoundState, build, remaining, round_index_sets
from .index_sets import COLUMN_S
from .method import AstarOptions
from .problem import EpochProblem, epoch_problem

#: Epochs of the shortest round that is taken without being asked for.
SHORT = 4

#: Relative gap at which a round is good enough.
GAP = 1e-3


def run(instance: Instance, solver: Solver, budget: Budget, options: AstarOptions) -> Outcome:
    """Solve round after round (``Method.run``)."""
    problem = epoch_problem(instance)
    if any(problem.holds):
        raise Unsupported("a switch that can store a limited amount is in teccl-milp alone")
    low, certificate = lower_bound(problem)
    budget.tell_bound(problem.seconds(low), certificate)
    epochs = options.round_epochs or max(SHORT, *(link.delay for link in problem.links))
    most = options.epochs
    state = RoundState(frozenset((q, c.source) for q, c in enumerate(problem.commodities)))
    sends: list[EpochSend] = []
    reports: list[SolverResult] = []
    begin = 0
    while any(commodity.targets for commodity in remaining(problem, state).commodities):
        left = replace(remaining(problem, state), begin=begin)
        if budget.exhausted or (most is not None and begin >= most):
            return _unfinished(reports, begin, most)
        budget.progress(
            f"round {len(reports) + 1}: epochs from {begin} on, {sum(len(c.targets) for c in left.commodities)} lacking"
        )
        new = _round(left, state, epochs, solver, budget, options, reports)
        if new is None:
            return _unfinished(reports, begin, None)
        moved = state.moved(problem, new, epochs)
        if moved.held == state.held and moved.coming <= state.coming:
            epochs *= 2  # a round too short for any chunk to come nearer
            continue
        sends += [EpochSend(s.start + begin, s.commodity, s.path) for s in new]
        state, begin = moved, begin + epochs
    sends = needed_sends(problem, sends)
    high = finish(problem, sends)
    if most is not None and high > most:
        return _unfinished(reports, high, most)
    return Outcome(
        Status.OPTIMAL if certificate is not None and low >= high else Status.FEASIBLE,
        schedule_of(problem, instance, sends),
        objective=float(problem.seconds(high)),
        bound=float(problem.seconds(low)) if certificate is not None else None,
        certificate=certificate,
        reports=tuple(reports),
        size=max((r.size for r in reports), key=lambda s: s.variables, default=ModelSize()),
        iterations=len(reports),
        metrics={"rounds": len(reports), "round_epochs": epochs, "lower_bound_epochs": low},
    )


def _round(
    problem: EpochProblem,
    state: RoundState,
    epochs: int,
    solver: Solver,
    budget: Budget,
    options: AstarOptions,
    reports: list[SolverResult],
) -> list[EpochSend] | None:
    """Solve one round; None if it ends without a point."""
    with budget.clock.phase("build"):
        sets = round_index_sets(problem, epochs, state)
        require_buildable(sets.columns, f"a round of {epochs} epochs", COLUMN_S)
        model = build(sets, options.gamma)
    result = solver.solve(model, budget, SolverOptions(rel_gap=GAP if budget.gap is None else budget.gap))
    reports.append(result)
    if not result.has_solution:
        return None
    chosen = [key for key in sets.sends if model.F[key].value > 0.5]
    return [EpochSend(k, q, sets.arcs[a].links) for q, a, k in chosen]


def _unfinished(reports: list[SolverResult], epochs: int, most: int | None) -> Outcome:
    reason = "the rounds took no end in time" if most is None else f"the rounds needed more than {most} epochs"
    return Outcome(
        Status.LIMIT,
        message=f"{reason}: stopped after {epochs} epochs",
        reports=tuple(reports),
        iterations=len(reports),
    )
