"""Instances that the TE-CCL methods support, and the problem that options make of them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from ...algorithms.schedules.commodities import refuse_unequal_messages
from ...core.collective import Collective
from ...core.conditions import conditions
from ...core.errors import InputError, Refusal
from ...core.instance import Instance
from ...core.timing import BandwidthChange, Semantics, Timing
from ...core.topology import NodeKind, Topology
from .options import EpochOptions, ModelOptions, SearchOptions
from .problem import chunk_bytes, epoch_of


def has_sums(instance: Instance) -> bool:
    """Check whether a collective sums contributions; two ranks suffice to tell, since their number does not matter."""
    return any(conditions(replace(demand, ranks=(0, 1)), 2).reduced for demand in instance.demands)


def supports(instance: Instance) -> Refusal | None:
    """Refuse all but explicit networks with collectives to schedule; return the reason or None."""
    if not isinstance(instance.network, Topology):
        return Refusal("network", "it schedules explicit networks of nodes and links, not fabrics")
    if instance.demand is None:
        return Refusal("collective", "the instance has no collective to schedule")
    if any(demand.size_bytes <= 0 for demand in instance.demands):
        return Refusal("data", "the collective has no data to move")
    if not instance.network.links:
        return Refusal("network", "the network has no links")
    if has_sums(instance):
        for node in instance.network.nodes:
            if node.reduces and node.buffer_bytes is not None:
                return Refusal(
                    "timing",
                    f"switch {node.name!r} adds data in transit; on a grid, sums are added where they are stored",
                )
    return refuse_unequal_messages(instance)


def supports_no_sums(instance: Instance) -> Refusal | None:
    """Refuse collectives with sums as well; return the reason or None."""
    if (reason := supports(instance)) is not None:
        return reason
    if has_sums(instance):
        return Refusal("collective", "it schedules no sums; use teccl-milp")
    return None


def is_all_to_all(instance: Instance) -> bool:
    """Check whether an instance is one all_to_all, which the linear program solves."""
    return [demand.collective for demand in instance.demands] == [Collective.ALL_TO_ALL]


def supports_search(instance: Instance) -> Refusal | None:
    """Refuse all but collectives that copy, or one all_to_all; return the reason or None."""
    if (reason := supports_no_sums(instance)) is not None or is_all_to_all(instance):
        return reason
    if any(demand.collective is Collective.ALL_TO_ALL for demand in instance.demands):
        return Refusal("collective", "it schedules only a single all_to_all; teccl-milp supports several collectives")
    return None


def supports_all_to_all(instance: Instance) -> Refusal | None:
    """Refuse all but one all_to_all on an explicit network; return the reason or None."""
    if (reason := supports(instance)) is not None:
        return reason
    if len(instance.demands) != 1 or instance.demands[0].collective is not Collective.ALL_TO_ALL:
        return Refusal("collective", "it schedules one all_to_all")
    return None


def pose(instance: Instance, options: EpochOptions, *, fluid: bool = False) -> Instance:
    """Return the instance with the chunks and the grid of the options."""
    return _on_its_grid(instance, _pose_on_grid(instance, options, fluid=fluid))


def _on_its_grid(instance: Instance, posed: Instance) -> Instance:
    """Return the posed instance; reject one that replaces a grid of the problem by another."""
    given, made = instance.timing, posed.timing
    if given is None or given == made:
        return posed
    split, whole = "split chunks", "whole chunks"
    grids = [
        f"{timing.semantics.value}, {float(timing.epoch_s):.6g} s, {split if timing.fluid else whole}"
        + (", bandwidth that varies" if timing.changes else "")
        for timing in (given, made)
        if timing is not None
    ]
    raise InputError(
        f"the instance has epochs of its own ({grids[0]}), not those of this method and its options ({grids[-1]}); "
        "expected an instance without epochs, or the same options",
        place="timing",
    )


def _pose_on_grid(instance: Instance, options: EpochOptions, *, fluid: bool) -> Instance:
    """Return the instance with chunks and a grid."""
    topology = instance.topology
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


def pose_search(instance: Instance, options: SearchOptions) -> Instance:
    """Return the instance with chunks and grid; an all_to_all may split its chunks."""
    return pose(instance, options, fluid=is_all_to_all(instance))


def pose_model(instance: Instance, options: ModelOptions, *, fluid: bool = False) -> Instance:
    """Return the instance with chunks, grid, limits of nodes and varying bandwidth."""
    posed = _pose_on_grid(instance, options, fluid=fluid)
    priorities = getattr(options, "priorities", None)
    if priorities is not None and len(priorities) != len(posed.demands):
        text = f"{len(priorities)} weights for {len(posed.demands)} collectives; expected one for each"
        raise InputError(text, source="-O", place="priorities")
    _require_sums(posed, options)
    posed = _with_limits(posed, options)
    topology, timing = posed.network, posed.timing
    assert isinstance(topology, Topology)  # noqa: S101 (posed)
    assert timing is not None  # noqa: S101 (posed)
    changes: list[BandwidthChange] = []
    for index, change in enumerate(options.bandwidth):
        place = f"bandwidth[{index}]"
        links = [
            e for e, link in enumerate(topology.links) if (link.source, link.target) == (change.source, change.target)
        ]
        if not links:
            raise InputError(f"no link from {change.source!r} to {change.target!r}", source="-O", place=place)
        if not 0 <= change.epochs[0] < change.epochs[1]:
            raise InputError(f"{list(change.epochs)} are no epochs in order", source="-O", place=f"{place}.epochs")
        changes += [BandwidthChange(e, *change.epochs, change.factor) for e in links]
    return _on_its_grid(instance, posed.with_changes(timing=replace(timing, changes=tuple(changes))))


def _require_sums(instance: Instance, options: ModelOptions) -> None:
    """Reject options that have no effect without sums, or no meaning with them."""
    if has_sums(instance) and getattr(options, "relays", "store") == "pass":
        raise InputError("pass is for data that is copied, but a sum waits for its parts", source="-O", place="relays")
    kinds = {demand.collective for demand in instance.demands}
    if getattr(options, "all_reduce", "direct") == "stages" and Collective.ALL_REDUCE not in kinds:
        raise InputError("stages applies only to an all_reduce", source="-O", place="all_reduce")


def _with_limits(instance: Instance, options: ModelOptions) -> Instance:
    """Write the options' limits on the nodes, for the verifier: rooms, and hyper-edges as no multicast."""
    topology = instance.topology
    room: int | None = 0 if getattr(options, "relays", "store") == "pass" else getattr(options, "buffer", None)
    size = None if room is None else room * chunk_bytes(instance)
    legacy = getattr(options, "switches", "as-they-are") == "hyper-edges"
    nodes = tuple(
        replace(node, buffer_bytes=node.buffer_bytes if size is None else size)
        if node.kind is NodeKind.COMPUTE
        else replace(node, multicast=node.multicast and not (legacy and node.buffer_bytes == 0))
        for node in topology.nodes
    )
    return instance if nodes == topology.nodes else instance.with_changes(network=replace(topology, nodes=nodes))
