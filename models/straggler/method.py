"""Method ``straggler``: the fewest rounds after a late rank's arrival, found in several tries; and its formulation."""

from collections.abc import Sequence
from functools import partial
from operator import itemgetter

from pydantic import Field

from ...algorithms.bounds.schedule_bounds import Bound, best_bound
from ...algorithms.schedules.problem import GroupProblem, check_size, group_problems
from ...core.budget import Budget, Incumbent
from ...core.errors import InputError, Unsupported
from ...core.fields import Strict
from ...core.formulation import Formulation
from ...core.instance import Instance
from ...core.method import Kind, Method, Metric
from ...core.outcome import Outcome, Status
from ...core.schedule import Schedule
from ...core.solver import Solver
from ...core.topology import NodeKind
from .problem import pose, schedule_of, supports, whole_chunk_bound
from .rounds import ChunkSpread, Send, fewest_rounds

PAPER = "Devraj et al., Efficient AllReduce with Stragglers, arXiv 2505.23523 (StragglAR)"


class StragglerOptions(Strict):
    """Options of ``straggler``."""

    tries: int = Field(50, ge=1, le=1_000_000)
    """Attempts, each with other ties, until the rounds are the fewest."""


class RoundOptions(Strict):
    """Options of ``straggler/rounds``."""

    rounds: int | None = Field(None, ge=1, le=10_000)
    """The most rounds R; by default the fewest that there can be."""


def run(instance: Instance, solver: Solver, budget: Budget, options: StragglerOptions) -> Outcome:
    """Choose rounds until their number meets the bound (``Method.run``)."""
    problem = group_problems(instance)[0]
    assert instance.timing is not None  # noqa: S101 (posed)
    chunks = (problem.n - 1) * problem.demand.chunks
    check_size(chunks * problem.n)
    bound, certificate = bound_of(problem)
    epoch_s = instance.timing.epoch_s
    budget.tell_bound(bound, certificate)
    fewest = fewest_rounds(problem.n, chunks)
    best: Sequence[Sequence[Send]] | None = None
    tries = 0
    while tries < options.tries and not budget.is_exhausted and (best is None or len(best) > fewest):
        rounds = attempt(problem, budget.seed + tries, len(best) if best else None, budget)
        tries += 1
        if rounds is not None:
            best = rounds
            budget.tell(Incumbent(float(len(best) * epoch_s), answer=partial(schedule_of, problem, best)))
    metrics = {"fewest_rounds": fewest, "tries": tries}
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
        iterations=tries,
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
    spread = ChunkSpread(problem.n, problem.demand.chunks, seed)
    rounds: list[list[Send]] = []
    while not spread.is_done:
        if budget.is_exhausted or (below is not None and len(rounds) + 1 >= below):
            return None
        rounds.append(spread.next_round())
    return rounds


METHOD = Method(
    name="straggler",
    kind=Kind.HEURISTIC,
    summary="all-reduce with one late rank: rounds of whole chunks, with a proof where they are fewest",
    paper=PAPER,
    answer_type=Schedule,
    options=StragglerOptions,
    solve=run,
    supports=supports,
    pose=pose,
    restricted_to=lambda options: "chunks that are moved whole",
    needs_solver=False,
    metrics={
        "rounds": Metric("rounds of the schedule, R"),
        "fewest_rounds": Metric("the bound C - 1 + ceil(log2 n) on the rounds"),
        "tries": Metric("attempts that were made"),
    },
)

ROUNDS = Formulation(
    "straggler/rounds",
    summary="the fewest rounds after a late rank has come: who sends which chunk to whom",
    paper=PAPER,
    equations="not printed as a program; ours, from the paper's rounds",
    index=f"{__package__}.problem:index",
    build=f"{__package__}.formulation:build",
    extract=f"{__package__}.problem:extract",
    labels=f"{__package__}.problem:labels",
    needs=("integers",),
    options=RoundOptions,
    supports=supports,
    pose=pose,
    agrees_with="straggler",
    bounds=False,
)
