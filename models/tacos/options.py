"""Options of the method, which instances it is for, and how it poses them: with chunks and a grid of ticks."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import gcd, lcm
from typing import Literal

from pydantic import Field

from ...core.collective import CollectiveKind, Demand
from ...core.fields import Strict
from ...core.instance import Instance
from ...core.timing import Semantics, Timing
from ...core.topology import Topology

COLLECTIVES = (CollectiveKind.ALL_GATHER, CollectiveKind.REDUCE_SCATTER, CollectiveKind.ALL_REDUCE)

#: Ticks that all chunks one after the other may take; beyond it ticks are made longer and times rounded up.
_MAX_TICKS = 2**44


class Options(Strict):
    """Options of ``tacos``."""

    variant: Literal["portfolio", "paper"] = Field(
        "portfolio",
        description="portfolio tries the project's own engines in turn and stops at the bound; paper is algorithms 1 and 2 of the dissertation.",
    )
    chunks: int | None = Field(
        None,
        ge=1,
        le=1_000_000,
        description="Chunks that each rank's part is cut into; by default those of the collective.",
    )
    restarts: int = Field(
        64,
        ge=1,
        le=1_000_000,
        description="Attempts, each with a seed of its own; fewer are made where the bound is met.",
    )
    unwind: int | None = Field(
        None,
        ge=0,
        description="Switches: 0 keeps their ports, d unwinds them so that every rank sends to the next d; by default both, with d from 1 to 3.",
    )
    answer: Literal["auto", "schedule", "trees"] = Field(
        "auto",
        description="schedule writes out all sends; trees gives one tree that is moved to all ranks, on tori and the like; "
        "auto gives trees for more than 1,048,576 sends.",
    )
    overlap: bool = Field(
        True, description="Whether an all_reduce is also tried with both halves at once; the better schedule is kept."
    )


def supports(instance: Instance) -> str | None:
    """Say why an instance does not fit, if it does not (``Method.supports``)."""
    if not isinstance(instance.network, Topology):
        return f"{instance.network} has no links; expected an explicit network such as torus(4,4)"
    if not instance.network.links:
        return "the network has no links"
    if instance.demand is None:
        return "the instance has no collective to schedule"
    if instance.also:
        return "several collectives at once; expected one"
    if instance.timing is not None and instance.timing.semantics is not Semantics.CIRCUIT:
        return f"it counts time as circuits do, not as {instance.timing.semantics.value}"
    return _fault(instance.demand, instance.npus)


def _fault(demand: Demand, npus: int) -> str | None:
    if demand.collective not in COLLECTIVES:
        return f"it does not define {demand.collective.value}, but {', '.join(kind.value for kind in COLLECTIVES)}"
    if (npus if demand.ranks is None else len(demand.ranks)) < 2:
        return "a collective needs at least two ranks"
    return "the collective has no data to move" if demand.size_bytes <= 0 else None


def pose(instance: Instance, options: Options) -> Instance:
    """Give the demand its chunks, and the instance the timing of circuits with a tick that all times are multiples of (``Method.pose``)."""
    demand, topology = instance.demand, instance.network
    if demand is None or not isinstance(topology, Topology):
        return instance
    if options.chunks is not None:
        demand = replace(demand, chunks=options.chunks)
    timing = instance.timing or Timing(Semantics.CIRCUIT, tick(topology, demand))
    return instance.with_changes(demand=demand, timing=timing)


def chunk_bytes(demand: Demand, npus: int) -> Fraction:
    """Size of a chunk."""
    return demand.size_bytes / ((npus if demand.ranks is None else len(demand.ranks)) * demand.chunks)


def tick(topology: Topology, demand: Demand) -> Fraction:
    """Give the longest tick that all transfers over links are multiples of; longer, and then inexact, if that is very short.

    Over switches latencies and times on the wire are multiples of it.
    """
    size = chunk_bytes(demand, len(topology.ranks))
    kinds = {(link.bandwidth_Bps, link.latency_s) for link in topology.links}
    times = {late + size / rate for rate, late in kinds}
    parts = {part for rate, late in kinds for part in (late, size / rate) if part} if topology.switches else times
    scale = lcm(*(part.denominator for part in parts))
    exact = Fraction(gcd(*(int(part * scale) for part in parts)), scale)
    count = (len(topology.ranks) if demand.ranks is None else len(demand.ranks)) * demand.chunks
    return max(exact, max(times) * count / _MAX_TICKS)
