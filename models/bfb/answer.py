"""From shares to outcomes: all_gather on the network, reduce_scatter as an all_gather on the transposed one run backwards, all_reduce as both."""

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
from ..common.breadth_first.shares import Shares
from ..common.compose import concatenate, reverse, transpose
from ..common.schedule_bounds import best_bound
from .write import all_gather

#: A schedule with more sends than this is written down only if it is asked for: each takes some 200 bytes and 3 us to make and to judge.
SENDS_UNASKED = 2**24
#: With more than this it is not.
MAX_SENDS = 2**26


class Broadcast(Protocol):
    """A breadth-first broadcast of everybody's shard on one network."""

    @property
    def steps(self) -> int:
        """Number of steps."""
        ...

    @property
    def pieces(self) -> int:
        """A number of pieces into any multiple of which shards can be split without a loss."""
        ...

    @property
    def time(self) -> Fraction:
        """Sum over the steps of what the busiest link takes: T_B in M/B, or seconds where links differ."""
        ...

    def split(self, pieces: int) -> Shares:
        """Give every piece of every shard a link."""
        ...

    def time_of(self, shares: Shares) -> Fraction:
        """Measure the same of shares."""
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
    schedule: bool | None,
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
    schedule : bool or None
        Whether the schedule is wanted, or metrics alone; None if it is wanted unless it is large.
    metrics : mapping, optional
        Further metrics.

    Returns
    -------
    Outcome
        Without an answer if none is wanted or it were too large; that is a limit only where it is asked for. See :func:`_is_optimal`
        for the status of a schedule.
    """
    topology, demand = posed(instance)
    nodes = len(topology.nodes)
    pieces = lcm(demand.chunks, *(broadcast.pieces for broadcast in found))
    sends = len(found) * pieces * nodes * (nodes - 1)
    relaxed = sum((broadcast.time for broadcast in found), Fraction(0))
    told = {"T_L": sum(broadcast.steps for broadcast in found), "chunks": pieces, "sends": sends, **(metrics or {})}
    bound, certificate = best_bound(instance)
    most = SENDS_UNASKED if schedule is None else MAX_SENDS
    if schedule is False or sends > most:
        told |= found[0].metrics(relaxed, relaxed)
        why = "no schedule was asked for"
        if schedule is not False:
            why = f"the schedule has {sends:,} sends; expected at most {most:,}"
            why += "" if schedule else ", or -O schedule=true"
        status = Status.LIMIT if schedule else Status.FEASIBLE
        return Outcome(status, None, None, float(bound), certificate, f"metrics alone: {why}", metrics=told)
    with budget.clock.phase("schedule"):
        split = [broadcast.split(pieces) for broadcast in found]
        parts = [all_gather(shares, demand.size_bytes, instance.sha256) for shares in split]
        if demand.collective is not CollectiveKind.ALL_GATHER:
            parts[0] = reverse(parts[0])
        answer = parts[0] if len(parts) == 1 else concatenate(*parts)
    time = sum((broadcast.time_of(shares) for broadcast, shares in zip(found, split, strict=True)), Fraction(0))
    told |= found[0].metrics(time, relaxed)
    if _is_optimal(instance, split[0]):
        return Outcome(Status.OPTIMAL, answer, float(bound), float(bound), certificate, metrics=told)
    return Outcome(Status.FEASIBLE, answer, None, float(bound), certificate, metrics=told)


def _is_optimal(instance: Instance, shares: Shares) -> bool:
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
    return shares.bandwidth_time() == Fraction(nodes - 1, nodes)
