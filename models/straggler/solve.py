"""Fewest rounds after a late rank's arrival found in several tries."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from operator import itemgetter

from ...algorithms.bounds.schedule_bounds import Bound, best_bound
from ...algorithms.schedules.problem import GroupProblem, check_size
from ...core.budget import Budget, Incumbent
from ...core.errors import InputError, Unsupported
from ...core.instance import Instance
from ...core.outcome import Outcome, Status
from ...core.solver import Solver
from ...core.topology import NodeKind
from .method import StragglerOptions
from .problem import group_problem, schedule_of, whole_chunk_bound
from .rounds import ChunkSpread, Send, fewest_rounds


def run(instance: Instance, solver: Solver, budget: Budget, options: StragglerOptions) -> Outcome:
    """Choose rounds until their number meets the bound (``Method.run``)."""
    problem = group_problem(instance)
    assert instance.timing is not None  # noqa: S101 (posed)
    chunks = (problem.n - 1) * problem.demand.chunks
    check_size(chunks * problem.n)
    bound, certificate = bound_of(problem)
    epoch_s = instance.timing.epoch_s
    budget.tell_bound(bound, certificate)
    wanted = fewest_rounds(problem.n, chunks)
    best: Sequence[Sequence[Send]] | None = None
    made = 0
    while made < options.tries and not budget.is_exhausted and (best is None or len(best) > wanted):
        found = attempt(problem, budget.seed + made, len(best) if best else None, budget)
        made += 1
        if found is not None:
            best = found
            budget.tell(Incumbent(float(len(best) * epoch_s), answer=partial(schedule_of, problem, best)))
    metrics = {"fewest_rounds": wanted, "tries": made}
    if best is None:
        return Outcome(
            Status.LIMIT,
            bound=float(bound),
            certificate=certificate,
            message=f"{budget.why_exhausted} before any rounds were complete",
            metrics=metrics,
        )
    objective = len(best) * epoch_s
    return Outcome(
        Status.OPTIMAL if objective == bound else Status.FEASIBLE,
        schedule_of(problem, best),
        objective=float(objective),
        bound=float(bound),
        certificate=certificate,
        iterations=made,
        metrics={"rounds": len(best), **metrics},
    )


def bound_of(problem: GroupProblem) -> Bound:
    """Return the larger of the bounds by the network and by whole chunks."""
    try:
        network = best_bound(problem.instance)
    except InputError as error:
        raise Unsupported(error.problem) from None
    if any(node.kind is not NodeKind.COMPUTE and node.copies for node in problem.topology.nodes):
        return network  # a switch that copies reaches several ranks at once
    return max(whole_chunk_bound(problem), network, key=itemgetter(0))


def attempt(problem: GroupProblem, seed: int, below: int | None, budget: Budget) -> list[list[Send]] | None:
    """Choose rounds with one seed; None if they are not fewer than ``below``, or the budget ends."""
    spread = ChunkSpread.of(problem.n, problem.demand.chunks, seed)
    rounds: list[list[Send]] = []
    while not spread.is_done:
        if budget.is_exhausted or (below is not None and len(rounds) + 1 >= below):
            return None
        rounds.append(spread.round())
    return rounds
