"""The all_to_all branch of ``teccl``: bounds by cuts, then the linear program of section 4.1 on classes of flows and on grids of blocks.

Also a method of its own, ``teccl-all-to-all``.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from ...core.answers import BoundOnly
from ...core.bounds import Certificate, EpochCut, EpochDistance, SolverBound
from ...core.budget import Budget
from ...core.collective import CollectiveKind
from ...core.errors import InputError, Unsupported
from ...core.instance import Instance
from ...core.method import Kind, Method, Outcome, Status
from ...core.schedule import Schedule
from ...core.solver import Solver
from .alltoall_cuts import best_cut
from .alltoall_problem import NEVER, Exchange
from .epochs import EpochProblem, epoch_problem
from .options import EpochOptions, pose
from .options import supports as supports_epochs

if TYPE_CHECKING:
    from .alltoall_search import Search

#: A schedule with more sends than about this is not written out unless it is asked for.
MAX_PIECES = 2_000_000


class Options(EpochOptions):
    """Options of the linear program for an all_to_all."""

    max_columns: int = Field(
        400_000,
        ge=1,
        le=50_000_000,
        description="Larger linear programs are not tried; the bounds may then stay apart.",
    )
    schedule: Literal["auto", "always", "never"] = Field(
        "auto",
        description="Whether flows are written out as sends of parts: auto does so up to two million of them; "
        "without, the bound is all that is answered.",
    )


def supports(instance: Instance) -> str | None:
    """One all_to_all on an explicit network."""
    if (reason := supports_epochs(instance)) is not None:
        return reason
    if len(instance.demands) != 1 or instance.demands[0].collective is not CollectiveKind.ALL_TO_ALL:
        return "it schedules one all_to_all"
    return None


def exchange_of(problem: EpochProblem, instance: Instance) -> Exchange:
    """Give the all-to-all of a fluid problem with what a rank has for another as unit.

    Raises
    ------
    Unsupported
        If the problem is not fluid, links vary, or a switch stores a limited amount.
    """
    if not problem.timing.fluid or problem.timing.changes:
        raise Unsupported("the linear program needs chunks that may be split, and links that do not vary")
    if any(limit for limit in problem.holds):
        raise Unsupported("a switch that can store a limited amount is not in the linear program for all_to_all")
    assert instance.demand is not None  # noqa: S101 (``supports`` has looked)
    ranks = range(instance.npus) if instance.demand.ranks is None else instance.demand.ranks
    nodes = tuple(sorted(problem.topology.rank_nodes[rank] for rank in ranks))
    links = problem.links
    plenty = Fraction(
        2 * len(nodes) * (len(nodes) - 1)
    )  # twice all that is moved: never full, and no larger than it has to be
    return Exchange(
        tuple(limit is None for limit in problem.holds),
        nodes,
        tuple(link.source for link in links),
        tuple(link.target for link in links),
        tuple(link.delay for link in links),
        tuple(min(plenty, link.rate / instance.demand.chunks) for link in links),
    )


def run(instance: Instance, solver: Solver, budget: Budget, options: Options) -> Outcome:
    """Solve an instance that has been posed with a fluid timing (``Method.run``)."""
    with budget.clock.phase("build"):
        problem = epoch_problem(instance)
    return run_all_to_all(problem, instance, solver, budget, options)


def run_all_to_all(
    problem: EpochProblem, instance: Instance, solver: Solver, budget: Budget, options: object
) -> Outcome:
    """Find the fewest epochs of an all-to-all, with flows that have been checked exactly on the original grid.

    Parameters
    ----------
    problem : EpochProblem
        Fluid.
    instance : Instance
        What it was made of.
    solver : Solver
        Solves linear programs.
    budget : Budget
        Limits of the run.
    options : object
        ``max_columns`` and ``schedule`` are looked at, where it has them (:class:`Options`).

    Returns
    -------
    Outcome
        Objective and bound in seconds. ``metrics`` says what proves the bound: ``cut`` and ``prices`` are recomputed exactly by the judge.
    """
    from .alltoall_search import Search

    exchange = exchange_of(problem, instance)
    with budget.clock.phase("bound"):
        lower, region = best_cut(exchange)
        certificate = _certificate(exchange, region)
    if lower >= NEVER:
        raise InputError("a rank cannot be reached", place="network.links")
    search = Search(exchange, solver, budget, int(getattr(options, "max_columns", 400_000)), lower)
    search.run()
    if search.proof == "prices" and search.priced is not None:
        certificate = search.priced
    elif search.proof != "cut":
        report = search.reports[-1]
        certificate = SolverBound(report.solver, report.version)
    return _outcome(problem, instance, search, certificate, str(getattr(options, "schedule", "auto")))


def _certificate(exchange: Exchange, region: frozenset[int] | None) -> Certificate:
    """Name the nodes that data must enter, or the two that are farthest apart."""
    if region is not None:
        return EpochCut(tuple(n for n in range(len(exchange.stores)) if n not in region))
    far = exchange.network.distance[:, list(exchange.ranks)]
    source, target = divmod(int(far.argmax()), len(exchange.ranks))
    return EpochDistance(exchange.ranks[source], exchange.ranks[target])


def _outcome(
    problem: EpochProblem, instance: Instance, search: Search, certificate: Certificate, wanted: str
) -> Outcome:
    from .alltoall_schedule import pieces, schedule_of

    metrics: dict[str, object] = {
        "lower_bound_epochs": search.lower,
        "epoch_duration_s": float(problem.timing.epoch_s),
        "bound_proof": search.proof,
        "grid_blocks": search.blocks,
        "programs": len(search.reports),
    }
    if (classes := search.reduced.get("restrict")) is not None:
        metrics["flows"] = int(classes.classes.flow.size)
        metrics["flow_classes"] = classes.classes.sizes[0]
    outcome = Outcome(
        Status.LIMIT,
        bound=float(problem.seconds(search.lower)),
        certificate=certificate,
        message="no schedule was found within the limits",
        reports=tuple(search.reports),
        size=search.size,
        iterations=len(search.reports),
        metrics=metrics,
    )
    if search.flows is None or search.upper is None:
        return outcome
    metrics["epochs"] = search.upper
    status = Status.OPTIMAL if search.closed else Status.FEASIBLE
    answer: Schedule | BoundOnly
    count = pieces(search.flows)
    message = "" if search.closed else "the grid could not be refined further within the limits"
    if wanted == "always" or (wanted == "auto" and count <= MAX_PIECES):
        with search.budget.clock.phase("schedule"):
            answer = schedule_of(instance, search.flows)
    elif not search.closed or isinstance(certificate, SolverBound):
        return Outcome(**{**outcome.__dict__, "message": f"flows of {search.upper} epochs are not written out"})
    else:
        answer = BoundOnly()
        message = f"flows that reach the bound were checked, but not written out as a schedule of about {count:,} sends"
    return Outcome(
        **{
            **outcome.__dict__,
            "status": status,
            "answer": answer,
            "objective": float(problem.seconds(search.upper)),
            "message": message,
        }
    )


METHOD = Method(
    name="teccl-all-to-all",
    kind=Kind.EXACT,
    summary="an all_to_all in epochs: linear program on classes of equal flows, bounded from both sides",
    paper="Liu et al., Rethinking Machine Learning Collective Communication as a Multi-Commodity Flow Problem, SIGCOMM 2024",
    answer_type=Schedule,
    options=Options,
    run=run,
    supports=supports,
    pose=lambda instance, options: pose(instance, options, fluid=True),
)
