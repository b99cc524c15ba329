"""Options of ``ten-ilp``, which instances it is for, and how it poses them."""

from __future__ import annotations

from dataclasses import replace

from pydantic import Field

from ...core.collective import CollectiveKind
from ...core.fields import Strict
from ...core.instance import Instance
from ...core.timing import Semantics, Timing
from ...core.topology import Topology
from ..common.whole_chunks import unfit, whole_chunks

#: Collectives of sums, and the copies that they are backwards; an all-reduce has both.
BACKWARDS = {
    CollectiveKind.REDUCE_SCATTER: CollectiveKind.ALL_GATHER,
    CollectiveKind.REDUCE: CollectiveKind.BROADCAST,
    CollectiveKind.ALL_REDUCE: CollectiveKind.ALL_GATHER,
}


class Options(Strict):
    """Options of ``ten-ilp``."""

    horizon: int | None = Field(
        None,
        ge=1,
        le=1_000_000,
        description="Solve one model of at most so many ticks; by default models between bound and best schedule until they meet.",
    )


def copied(instance: Instance) -> Instance:
    """Give the instance of copies that a collective of sums runs backwards; others as they are."""
    demand = instance.demand
    if demand is None or demand.collective not in BACKWARDS:
        return instance
    return instance.with_changes(demand=replace(demand, collective=BACKWARDS[demand.collective]))


def supports(instance: Instance) -> str | None:
    """Say why an instance does not fit, if it does not (``Method.supports``)."""
    if instance.also:
        return "several collectives at once; expected one"
    if instance.timing is not None and instance.timing.semantics is not Semantics.CIRCUIT:
        return f"it counts time as circuits do, not as {instance.timing.semantics.value}"
    return unfit(copied(instance))


def pose(instance: Instance, options: Options) -> Instance:
    """Give the instance the timing of circuits with the tick of its edges (``Method.pose``)."""
    from .problem import tick_of

    del options
    if instance.timing is not None or supports(instance) is not None or not isinstance(instance.network, Topology):
        return instance
    tick = tick_of(instance.network, whole_chunks(copied(instance))[0][0].bytes)
    return instance.with_changes(timing=Timing(Semantics.CIRCUIT, tick))
