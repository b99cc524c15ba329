"""``tacos``: the method, its options, and how it poses instances: with chunks and a grid of ticks."""

from bisect import bisect_left
from dataclasses import replace
from fractions import Fraction
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from ...core.collective import Collective, Demand
from ...core.errors import Refusal
from ...core.fields import Strict
from ...core.instance import Instance
from ...core.method import Metric
from ...core.refusals import refuse_unfit
from ...core.schedule import Schedule
from ...core.timing import Semantics, Timing
from ...core.topology import Topology
from ...core.units import common_unit
from .. import heuristic

COLLECTIVES = (Collective.ALL_GATHER, Collective.REDUCE_SCATTER, Collective.ALL_REDUCE)

#: Ticks that all chunks one after the other may take over a link; beyond it ticks are made longer and times rounded up.
MAX_TICKS = 2**44

_Count = Annotated[int, Field(ge=1, le=1_000_000)]


class TacosOptions(Strict):
    """Options of ``tacos``."""

    variant: Literal["portfolio", "paper"] = "portfolio"
    """portfolio tries own engines in turn up to the bound; paper is algorithms 1 and 2 as printed."""
    chunks: _Count | None = None
    """Chunks that each rank's part is cut into; by default those of the collective."""
    restarts: _Count = 64
    """Attempts, each with a seed of its own; fewer are made where the bound is met."""
    unwind: int | None = Field(None, ge=0)
    """Switches: 0 keeps their ports, d has ranks send to the next d; by default both, d from 1 to 3."""
    answer: Literal["auto", "schedule", "trees", "stream"] = "auto"
    """schedule writes out all sends; trees gives one tree that is moved to all ranks, on tori and the like; stream
    keeps none of the sends, on equal links; auto gives trees for more than 1,048,576 sends, and a stream for more than
    16,777,216."""
    overlap: bool = True
    """True if an all_reduce is also tried with both halves at once; the better schedule is kept."""


def supports(instance: Instance) -> Refusal | None:
    """Return why an instance does not fit, if it does not (``Method.supports``)."""
    if instance.timing is not None and instance.timing.semantics is not Semantics.CIRCUIT:
        return Refusal("timing", f"its time model is that of circuits, not {instance.timing.semantics.value}")
    return refuse_unfit(instance, COLLECTIVES, single=True)


def pose(instance: Instance, options: TacosOptions) -> Instance:
    """Return the instance with chunks and the timing of circuits, in ticks that divide all times (``Method.pose``)."""
    demand, topology = instance.demand, instance.network
    if demand is None or not isinstance(topology, Topology):
        return instance
    if options.chunks is not None:
        demand = replace(demand, chunks=options.chunks)
    timing = instance.timing or Timing(Semantics.CIRCUIT, tick(topology, demand))
    return instance.with_changes(demand=demand, timing=timing)


def chunk_bytes(demand: Demand, npus: int) -> Fraction:
    """Size of a chunk."""
    return demand.size_bytes / count_of(demand, npus)


def count_of(demand: Demand, npus: int) -> int:
    """Return the number of chunks of all ranks."""
    return len(demand.group(npus)) * demand.chunks


def longest(count: int) -> int:
    """Ticks that a transfer may take with so many chunks; slower links are left out, see :func:`patience`."""
    return -(-MAX_TICKS // count)


def tick(topology: Topology, demand: Demand) -> Fraction:
    """Return the longest tick that divides all transfer times; a longer, inexact one if that is very short.

    Over switches, latencies and times on the wire are multiples of it. Links that are too slow for any useful schedule
    (:func:`patience`) are ignored.
    """
    size = chunk_bytes(demand, len(topology.ranks))
    worth = patience(topology, demand)
    kinds = {(link.bandwidth_Bps, link.latency_s) for link in topology.kind_links}
    kinds = {(rate, late) for rate, late in kinds if worth is None or late + size / rate <= worth}
    times = {late + size / rate for rate, late in kinds}
    parts = {part for rate, late in kinds for part in (late, size / rate) if part} if topology.switches else times
    return max(common_unit(parts), max(times) * count_of(demand, len(topology.ranks)) / MAX_TICKS)


def patience(topology: Topology, demand: Demand) -> Fraction | None:
    """Return the time of a schedule over the fastest links: slower links are never useful.

    The fastest links that connect the group bring every chunk to everybody, one transfer after the other, and for an
    all-reduce as many add it up before. No shortest schedule uses a link on which a chunk takes longer. None if the
    links do not connect the group.
    """
    from ...algorithms.matching.network import connects

    size, npus = chunk_bytes(demand, len(topology.ranks)), len(topology.ranks)
    members = np.array([topology.rank_nodes[rank] for rank in demand.group(npus)], dtype=np.int64)
    time_of_kind = [link.latency_s + size / link.bandwidth_Bps for link in topology.kind_links]
    times = sorted(set(time_of_kind))
    level = np.array([times.index(time) for time in time_of_kind])[np.array(topology.link_kinds, dtype=np.int64)]
    ends = np.array(topology.link_ends, dtype=np.int64).reshape(-1, 2)

    def is_connected(most: int) -> bool:
        tail, head = ends[level <= most].T
        return connects(len(topology.nodes), tail, head, members)

    if not is_connected(len(times) - 1):
        return None
    slowest = times[bisect_left(range(len(times)), True, key=is_connected)]
    hops = len(topology.nodes) - 1 if topology.switches else 1
    return demand.collective.passes * count_of(demand, npus) * (npus - 1) * hops * slowest


METHOD = heuristic(
    name="tacos",
    summary="link-chunk matching over the time-expanded network, with a proof where the bound is met",
    paper="Won et al., TACOS: Topology-Aware Collective Algorithm Synthesizer for Distributed Machine Learning, "
    "MICRO 2024; dissertation, chapter 5",
    answer_type=Schedule,
    options=TacosOptions,
    solve=f"{__package__}.solve:run",
    supports=supports,
    pose=pose,
    metrics={
        "synthesized_time_s": Metric("steps times their length, as TACOS counts it; also if nothing is written", "s"),
        "synthesis_s": Metric("CPU seconds of all attempts, without bounds and without compilation", "s"),
        "engine": Metric("what made the schedule"),
        "attempts": Metric("attempts that were made"),
        "sends": Metric("transfers that the answer stands for"),
        "overlapped": Metric("of an all-reduce: whether both halves run at once"),
        "back_to_back_s": Metric("of an all-reduce: time of one half after the other", "s"),
    },
)
