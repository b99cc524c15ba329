"""From plans to outcomes: all_gather on the network, reduce_scatter as an all_gather on the transposed one run backwards, all_reduce as both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import lcm
from typing import Any, Protocol

from ...core.budget import Budget
from ...core.collective import CollectiveKind, Demand
from ...core.errors import Unsupported
from ...core.instance import Instance
from ...core.method import Outcome, Status
from ...core.topology import Topology
from ..common.compose import concatenate, reverse, transpose
from ..common.schedule_bounds import best_bound
from .plan import Plan, all_gather

#: A schedule with more sends than this is not written down: each takes some 50 bytes, more while it is made.
MAX_SENDS = 2**26


class Broadcast(Protocol):
    """A breadth-first broadcast of everybody's shard on one network."""

    @property
    def steps(self) -> int:
        """Number of steps."""
        ...

    @property
    def pieces(self) -> int:
        """A number of pieces of which every multiple can be planned without a loss."""
        ...

    @property
    def time(self) -> Fraction:
        """Sum over the steps of what the busiest link takes: T_B in M/B, or seconds where links differ."""
        ...

    def plan(self, pieces: int) -> Plan:
        """Give every piece of every shard a link."""
        ...

    def time_of(self, plan: Plan) -> Fraction:
        """Measure the same of a plan."""
        ...

    def metrics(self, time: Fraction, relaxed: Fraction) -> dict[str, Any]:
        """Tell the time of all parts of a collective in a record, and that before shards were cut into pieces."""
        ...


def posed(instance: Instance) -> tuple[Topology, Demand]:
    """Give network and collective of an instance that :func:`.options.supports` has nothing against."""
    if not isinstance(instance.network, Topology) or instance.demand is None:
        raise Unsupported("expected an explicit network and a collective")
    return instance.network, instance.demand


def networks(instance: Instance) -> list[Topology]:
    """Give the networks on which everybody broadcasts, one for each part of the collective: transposed where it runs backwards."""
    topology, demand = posed(instance)
    match demand.collective:
        case CollectiveKind.ALL_GATHER:
            return [topology]
        case CollectiveKind.REDUCE_SCATTER:
            return [transpose(topology)]
        case _:
            return [transpose(topology), topology]


def outcome(
    instance: Instance,
    budget: Budget,
    found: Sequence[Broadcast],
    *,
    schedule: bool,
    metrics: Mapping[str, Any] | None = None,
) -> Outcome:
    """Write the broadcasts of all parts of the collective as one schedule.

    Parameters
    ----------
    instance : Instance
        The problem.
    budget : Budget
        Limits of the run.
    found : sequence of Broadcast
        One for each of :func:`networks`.
    schedule : bool
        Whether the schedule is wanted, or metrics alone.
    metrics : mapping, optional
        Further metrics.

    Returns
    -------
    Outcome
        Without an answer if none is wanted or it were too large. See :func:`_is_optimal` for the status.
    """
    topology, demand = posed(instance)
    nodes = len(topology.nodes)
    pieces = lcm(demand.chunks, *(broadcast.pieces for broadcast in found))
    sends = len(found) * pieces * nodes * (nodes - 1)
    relaxed = sum((broadcast.time for broadcast in found), Fraction(0))
    told = {"T_L": sum(broadcast.steps for broadcast in found), "chunks": pieces, "sends": sends, **(metrics or {})}
    bound, certificate = best_bound(instance)
    if not schedule or sends > MAX_SENDS:
        told |= found[0].metrics(relaxed, relaxed)
        why = f"{sends:,} sends; expected at most {MAX_SENDS:,}" if schedule else "no schedule was asked for"
        status = Status.LIMIT if schedule else Status.FEASIBLE
        return Outcome(status, None, None, float(bound), certificate, f"metrics alone: {why}", metrics=told)
    with budget.clock.phase("schedule"):
        plans = [broadcast.plan(pieces) for broadcast in found]
        parts = [
            all_gather(plan, network, demand.size_bytes, instance.sha256)
            for plan, network in zip(plans, networks(instance), strict=True)
        ]
        if demand.collective is not CollectiveKind.ALL_GATHER:
            parts[0] = reverse(parts[0])
        answer = parts[0] if len(parts) == 1 else concatenate(*parts)
    time = sum((broadcast.time_of(plan) for broadcast, plan in zip(found, plans, strict=True)), Fraction(0))
    told |= found[0].metrics(time, relaxed)
    if _is_optimal(instance, plans):
        return Outcome(Status.OPTIMAL, answer, float(bound), float(bound), certificate, metrics=told)
    return Outcome(Status.FEASIBLE, answer, None, float(bound), certificate, metrics=told)


def _is_optimal(instance: Instance, plans: Sequence[Plan]) -> bool:
    """Whether a schedule is known to take as long as all data takes to come into a node.

    So it is for an all_gather over links of one bandwidth and no latency with T_B = (N - 1)/N. Then every link is busy for as long as
    every other one in every step. What is sent in step t asks for its link while step t - 1 is under way, before anything of step t + 1
    can ask for it, so that links serve one step after the other, and none waits.
    """
    topology, demand = posed(instance)
    one_rate = len({link.bandwidth_Bps for link in topology.links}) == 1
    if demand.collective is not CollectiveKind.ALL_GATHER or not one_rate or any(e.latency_s for e in topology.links):
        return False
    nodes = len(topology.nodes)
    return plans[0].bandwidth_time() == Fraction(nodes - 1, nodes)
