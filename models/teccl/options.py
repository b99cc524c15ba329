"""Options of the TE-CCL methods, and the problem that they pose."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Literal

from pydantic import Field, model_validator

from ...core.fields import Duration, Size, Strict
from ...core.instance import Instance
from ...core.timing import Semantics, Timing
from ...core.topology import Topology
from .epochs import chunk_bytes, epoch_of

TimingName = Literal["te-ccl", "te-ccl-paid-switch", "store-and-forward"]


class EpochOptions(Strict):
    """The grid and the chunks, for every method of the family."""

    epoch: Literal["fast", "slow"] = Field(
        "fast", description="An epoch is the time of one chunk on the fastest or on the slowest link."
    )
    epoch_duration: Duration | None = Field(
        None, description="Length of an epoch, such as '3.5 ns', in place of what epoch and epoch_multiplier say."
    )
    epoch_multiplier: int = Field(1, ge=1, le=10_000, description="Epochs are so many times as long.")
    latency_epochs: int = Field(
        200, ge=1, le=100_000, description="Epochs are at least the smallest latency over this number."
    )
    timing: TimingName = Field(
        "te-ccl", description="What a link costs: as the published code counts, with paid switches, or physically."
    )
    chunks: int | None = Field(
        None, ge=1, le=100_000, description="Number of equal chunks of a rank's part; the demand's unless given."
    )
    chunk_size: Size | None = Field(
        None,
        description="Size of a chunk, such as '25 KB'; the collective is then as large as its chunks are together.",
    )

    @model_validator(mode="after")
    def _agree(self) -> EpochOptions:
        if self.epoch_duration is not None and self.epoch_multiplier != 1:
            raise ValueError("epoch_multiplier says nothing beside epoch_duration; give one of the two")
        if self.epoch_duration == 0:
            raise ValueError("an epoch of no time; expected an epoch_duration greater than zero")
        if self.chunk_size == 0:
            raise ValueError("a chunk of no size; expected a chunk_size greater than zero")
        return self


def supports(instance: Instance) -> str | None:
    """Only explicit networks with collectives to schedule."""
    if not isinstance(instance.network, Topology):
        return "it schedules explicit networks of nodes and links, not fabrics"
    if instance.demand is None:
        return "the instance has no collective to schedule"
    if any(demand.size_bytes <= 0 for demand in instance.demands):
        return "the collective has no data to move"
    if not instance.network.links:
        return "the network has no links"
    return None


def pose(instance: Instance, options: EpochOptions, *, fluid: bool = False) -> Instance:
    """Fold the chunks and the grid into the instance.

    Raises
    ------
    InputError
        If there is nothing to measure an epoch by.
    """
    topology = instance.network
    assert isinstance(topology, Topology)  # noqa: S101 (``supports`` has looked)
    demands = [replace(d, chunks=options.chunks or d.chunks) for d in instance.demands]
    posed = instance.with_changes(demand=demands[0], also=tuple(demands[1:]))
    if options.chunk_size is not None:
        factor = options.chunk_size / chunk_bytes(posed)
        demands = [replace(d, size_bytes=d.size_bytes * factor) for d in demands]
        posed = instance.with_changes(demand=demands[0], also=tuple(demands[1:]))
    epoch_s = options.epoch_duration or epoch_of(
        topology.links,
        chunk_bytes(posed),
        options.epoch,
        Fraction(options.epoch_multiplier),
        Fraction(options.latency_epochs),
    )
    return posed.with_changes(timing=Timing(Semantics(options.timing), epoch_s, fluid))
