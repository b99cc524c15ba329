"""Collectives of sums as stages of copies (dissertation, section 2.2.2).

A reduce-scatter is an all-gather on the reversed network, run backwards; an all-reduce is both, one after the other.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from ...core.budget import Budget
from ...core.collective import Collective, Demand
from ...core.errors import Refusal
from ...core.instance import Instance
from ...core.outcome import Outcome
from ...core.schedule import StepSchedule
from ...core.topology import Topology
from ..bounds.schedule_bounds import best_bound
from .compose import concatenate, reverse, transpose
from .problem import RankEdge, chunks_of, step_schedule, supports_copies

#: Collectives of sums, and the copies that they are backwards; an all-reduce has both.
BACKWARDS = {
    Collective.REDUCE_SCATTER: Collective.ALL_GATHER,
    Collective.REDUCE: Collective.BROADCAST,
    Collective.ALL_REDUCE: Collective.ALL_GATHER,
}


@dataclass(frozen=True)
class CopyStage:
    """Copies that are a stage of an instance."""

    instance: Instance  #: With collectives of copies; on the reversed network if they run backwards.
    whole: Instance
    backwards: bool = False

    def schedule(self, sends: Iterable[tuple[int, int, RankEdge]]) -> StepSchedule:
        """Build the stage's schedule on the whole instance's network from sends ``(step, chunk, edge)`` of copies."""
        schedule = step_schedule(self.whole.sha256, chunks_of(self.instance), sends)
        return reverse(schedule) if self.backwards else schedule


def to_copies(instance: Instance) -> Instance:
    """Return the instance with the copies that its collectives of sums run backwards."""

    def copy_of(demand: Demand) -> Demand:
        return replace(demand, collective=BACKWARDS.get(demand.collective, demand.collective))

    if instance.demand is None:
        return instance
    return instance.with_changes(demand=copy_of(instance.demand), also=tuple(map(copy_of, instance.also)))


def stages_of(instance: Instance) -> list[CopyStage]:
    """Return the stages of an instance that :func:`supports_stages` accepts, in the order in which they run."""
    kinds, copies = {demand.collective for demand in instance.demands}, to_copies(instance)
    stages = [CopyStage(copies, instance)]
    if kinds <= BACKWARDS.keys():
        back = CopyStage(copies.with_changes(network=transpose(instance.topology)), instance, backwards=True)
        stages = [back, *stages] if Collective.ALL_REDUCE in kinds else [back]
    return stages


def solve_stages(instance: Instance, budget: Budget, solve: Callable[[CopyStage, Budget], Outcome]) -> Outcome:
    """Solve the stages with equal shares of the time, and join their schedules; the bound is that of the instance.

    Metrics are added up; those that are true or false are true if they are so of every stage.
    """
    bound, certificate = best_bound(instance)
    budget.tell_bound(bound, certificate)
    stages, outcomes = stages_of(instance), list[Outcome]()
    while len(outcomes) < len(stages) and (not outcomes or outcomes[-1].answer is not None):
        outcomes.append(solve(stages[len(outcomes)], budget.part(1 / (len(stages) - len(outcomes)))))
    reports = tuple(report for outcome in outcomes for report in outcome.reports)
    proof: dict[str, Any] = {"bound": float(bound), "certificate": certificate}
    whole = replace(outcomes[-1], **proof, reports=reports, iterations=len(reports))
    if whole.answer is None:
        return whole
    shared = set[str].intersection(*(set(outcome.metrics) for outcome in outcomes))
    values = {name: [outcome.metrics[name] for outcome in outcomes] for name in sorted(shared)}
    metrics = {name: all(each) if isinstance(each[0], bool) else sum(each) for name, each in values.items()}
    answers = [outcome.answer for outcome in outcomes if isinstance(outcome.answer, StepSchedule)]
    return replace(whole, answer=reduce(concatenate, answers), metrics=metrics)


def supports_stages(instance: Instance) -> Refusal | None:
    """Return why an instance is not made of stages, or None: no copies, or sums beside collectives of other stages."""
    if (reason := supports_copies(to_copies(instance))) is not None:
        return reason
    kinds = {demand.collective for demand in instance.demands}
    if len(kinds) > 1 and (Collective.ALL_REDUCE in kinds or len(kinds & BACKWARDS.keys()) not in (0, len(kinds))):
        names = ", ".join(sorted(kind.name for kind in kinds))
        return Refusal("collective", f"{names} at once; expected only copies, only all_reduce, or only other sums")
    return None


def supports_one_stage(instance: Instance) -> Refusal | None:
    """Return why an instance is not one stage of copies, or None (``Formulation.supports``)."""
    if (reason := supports_stages(instance)) is not None or not isinstance(instance.network, Topology):
        return reason
    if instance.demands[0].collective is Collective.ALL_REDUCE:
        return Refusal("collective", "an all_reduce is two successive models; expected reduce_scatter or all_gather")
    return None
