"""``pccl``: the method, as the registry knows it."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from ...core.bounds import SolverBound
from ...core.budget import Budget
from ...core.errors import Unsupported
from ...core.fields import Strict
from ...core.instance import Instance
from ...core.method import Kind, Method, Outcome, Status
from ...core.schedule import Schedule
from ...core.solver import Solver
from ...core.timing import Semantics, Timing
from ...core.topology import Topology
from .conditions import conditions_of, step_of, unfit
from .custom import with_conditions

if TYPE_CHECKING:
    from ...core.solver import SolverResult
    from ..common.schedule_bounds import Bound
    from .stages import Answer

#: Sources times links up to which the flow's linear program is solved without being asked for.
AUTO_FLOWS = 20_000

#: Schedules that are nearer to the bound than this have no flow computed for them.
_CLOSE = 1.001

#: Collectives up to which each is bounded on its own, too.
_ALONE = 64


class Options(Strict):
    """Options of ``pccl``."""

    orders: Literal["portfolio", "paper"] = Field(
        "portfolio",
        description="portfolio tries several orders and kinds of ways, then ruin and recreate; paper takes the longest first, once.",
    )
    restarts: int = Field(4, ge=0, le=1000, description="Rounds of attempts beyond the first one.")
    steps: int = Field(
        400_000,
        ge=0,
        le=10**9,
        description="Ways of chunks that are sought at most, about; the first attempt is made whatever this is.",
    )
    bound: Literal["auto", "cut", "flow"] = Field(
        "auto",
        description="cut bounds by sets of nodes and distances; flow also by the maximum concurrent flow; "
        "auto does so where it is small and the others are not nearly met.",
    )
    conditions: str = Field(
        "",
        max_length=10_000_000,
        description="Conditions beside the instance's collectives, such as '0->1,2: 1 MiB; 3->0: 512 KiB': who has a chunk, and who needs it.",
    )


def supports(instance: Instance) -> str | None:
    """Say why an instance does not fit, if it does not (``Method.supports``)."""
    if instance.timing is not None:
        return "it schedules in seconds, not on a grid of epochs"
    return unfit(instance)


def run(instance: Instance, solver: Solver, budget: Budget, options: Options) -> Outcome:
    """Find ways for all conditions, and bound the time from below (``Method.run``)."""
    from .instance_net import ticked
    from .stages import Plan, solve

    topology = instance.network
    if not isinstance(topology, Topology) or not instance.demands:
        raise Unsupported("the instance has no collective to schedule, and the option conditions none")
    with budget.clock.phase("build"):
        conditions = conditions_of(instance, topology)
        network = ticked(topology, conditions.sizes, conditions.units, summed=conditions.sums.number > 0)
    with budget.clock.phase("bound"):
        bound = whole_steps(instance, cheap_bound(instance, topology))
    with budget.clock.phase("search"):
        plan = Plan(options.orders, options.restarts, options.steps, budget.seed)
        answer = solve(instance.sha256, topology, conditions, network, bound, plan, budget)
    reports: tuple[SolverResult, ...] = ()
    if _wants_flow(instance, topology, options, bound, answer) and not budget.exhausted:
        bound, reports = flow_bound(instance, solver, budget, bound)
        bound = whole_steps(instance, bound)
    return _outcome(answer, bound, reports)


def _outcome(answer: Answer | None, bound: Bound, reports: tuple[SolverResult, ...]) -> Outcome:
    seconds, certificate = float(bound[0]), bound[1]
    if answer is None:
        message = "no schedule was complete in time"
        return Outcome(Status.LIMIT, bound=seconds, certificate=certificate, message=message, reports=reports)
    met = answer.seconds is not None and answer.seconds == bound[0]
    return Outcome(
        Status.OPTIMAL if met else Status.FEASIBLE,
        answer.schedule,
        objective=seconds if met else None,
        bound=seconds,
        certificate=certificate,
        reports=reports,
        size=reports[0].size if reports else Outcome(Status.FEASIBLE).size,
        iterations=answer.steps,
        metrics={
            "found_by": ", then ".join(found.by for found in answer.found),
            "attempts": sum(found.attempts for found in answer.found),
            "sends": len(answer.schedule.sends),
        },
    )


def cheap_bound(instance: Instance, topology: Topology) -> Bound:
    """Give the largest bound that needs no solver: of each collective alone, of cuts and of distances for all of them together."""
    from operator import itemgetter

    from ..common.joint_bounds import candidate_sets, groups_of, joint_cut, joint_length, pairs_of
    from ..common.schedule_bounds import best_bound
    from .grid import sides_of

    groups = groups_of(instance)
    found: list[Bound] = []
    for demand in instance.demands[:_ALONE]:
        found.append(best_bound(instance.of_one(demand)))
    cut = joint_cut(instance, groups, candidate_sets(topology, groups, sides_of(topology) or ()))
    if cut is not None:
        found.append(cut)
    if instance.also and len((pairs := pairs_of(instance))[0]):
        found.append(joint_length(instance, pairs, [1] * len(topology.links)))
    return max(found, key=itemgetter(0))


def _wants_flow(instance: Instance, topology: Topology, options: Options, bound: Bound, answer: Answer | None) -> bool:
    """Whether the maximum concurrent flow is to be computed: where pairs exchange data and the bound is not met."""
    from ..common.joint_bounds import pairs_of

    if options.bound == "cut" or (answer is not None and answer.seconds == bound[0]):
        return False
    if options.bound == "auto" and answer is not None and float(answer.schedule.end_s.max()) <= _CLOSE * bound[0]:
        return False
    sources = len(set(pairs_of(instance)[0].tolist()))
    return sources > 0 and (options.bound == "flow" or sources * len(topology.links) <= AUTO_FLOWS)


def flow_bound(
    instance: Instance, solver: Solver, budget: Budget, bound: Bound
) -> tuple[Bound, tuple[SolverResult, ...]]:
    """Give the larger one of a bound and that of the maximum concurrent flow, and the solve."""
    from ...core.bounds import LengthCertificate
    from ..common.flow_bound import bound as of_flow

    with budget.clock.phase("flow"):
        found = of_flow(instance, solver, budget)
    better = found.seconds is not None and isinstance(found.certificate, LengthCertificate) and found.seconds > bound[0]
    if better and found.seconds is not None and found.certificate is not None:
        return (Fraction(found.seconds), found.certificate), (found.report,)
    return bound, (found.report,)


def pose(instance: Instance, options: Options) -> Instance:
    """Add the conditions that the options state; where all chunks take equally long, time is counted in steps (``Method.pose``)."""
    posed = with_conditions(instance, options.conditions)
    step = step_of(posed)
    return posed if step is None else posed.with_changes(timing=Timing(Semantics.CIRCUIT, step))


def whole_steps(instance: Instance, bound: Bound) -> Bound:
    """Round a bound that is recomputed up to whole steps, where there are any: the judge does so too."""
    seconds, certificate = bound
    if instance.timing is None or isinstance(certificate, SolverBound):
        return bound
    return ceil(seconds / instance.timing.epoch_s) * instance.timing.epoch_s, certificate


METHOD = Method(
    name="pccl",
    kind=Kind.HEURISTIC,
    summary="paths for every condition over free links: any collective, any process groups",
    paper="Won, Software-Hardware Optimizations for Efficient Collective Communications, dissertation, Georgia Tech, 2025, chapter 6",
    answer_type=Schedule,
    options=Options,
    run=run,
    supports=supports,
    pose=pose,
)
