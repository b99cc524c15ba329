"""What the TE-CCL methods take, and the problem that they pose: chunks, grid, limits of nodes, varying bandwidth."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from ...core.collective import CollectiveKind
from ...core.errors import InputError
from ...core.instance import Instance
from ...core.timing import BandwidthChange, Semantics, Timing
from ...core.topology import NodeKind, Topology
from .options import EpochOptions, ModelOptions, SearchOptions
from .problem import chunk_bytes, epoch_of

#: Collectives that sum.
SUMS = (CollectiveKind.ALL_REDUCE, CollectiveKind.REDUCE_SCATTER, CollectiveKind.REDUCE)

#: Collectives of which nothing is summed.
COPIED = (
    CollectiveKind.ALL_GATHER,
    CollectiveKind.BROADCAST,
    CollectiveKind.GATHER,
    CollectiveKind.SCATTER,
    CollectiveKind.POINT_TO_POINT,
)


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
    if any(demand.collective in SUMS for demand in instance.demands):
        for node in instance.network.nodes:
            if node.reduces and node.buffer_bytes is not None:
                return f"switch {node.name!r} adds what passes it; sums on a grid are added where they are stored"
    return None


def supports_no_sums(instance: Instance) -> str | None:
    """Only collectives without sums."""
    if (reason := supports(instance)) is not None:
        return reason
    if any(demand.collective in SUMS for demand in instance.demands):
        return "it schedules no sums; use teccl-milp"
    return None


def is_all_to_all(instance: Instance) -> bool:
    """Whether the linear program is the way."""
    return [demand.collective for demand in instance.demands] == [CollectiveKind.ALL_TO_ALL]


def supports_search(instance: Instance) -> str | None:
    """Collectives that copy, several at the same time too, or one all_to_all."""
    if (reason := supports(instance)) is not None:
        return reason
    if is_all_to_all(instance):
        return None
    for demand in instance.demands:
        if demand.collective is CollectiveKind.ALL_TO_ALL:
            return "it schedules an all_to_all alone only; teccl-milp takes several collectives"
        if demand.collective not in COPIED:
            return f"it does not sum, as {demand.collective.value} does; teccl-milp does"
    return None


def supports_all_to_all(instance: Instance) -> str | None:
    """One all_to_all on an explicit network."""
    if (reason := supports(instance)) is not None:
        return reason
    if len(instance.demands) != 1 or instance.demands[0].collective is not CollectiveKind.ALL_TO_ALL:
        return "it schedules one all_to_all"
    return None


def pose(instance: Instance, options: EpochOptions, *, fluid: bool = False) -> Instance:
    """Fold the chunks and the grid into the instance.

    Raises
    ------
    InputError
        If there is nothing to measure an epoch by, or the instance is on another grid.
    """
    return _on_its_grid(instance, _posed(instance, options, fluid=fluid))


def _on_its_grid(instance: Instance, posed: Instance) -> Instance:
    """The posed instance; a grid that is part of the problem is not replaced by another one."""
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
        "expected an instance without, or options that say the same",
        place="timing",
    )


def _posed(instance: Instance, options: EpochOptions, *, fluid: bool) -> Instance:
    """The instance with chunks and a grid."""
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
    """Fold chunks and grid into the instance; an all_to_all may split its chunks."""
    return pose(instance, options, fluid=is_all_to_all(instance))


def pose_model(instance: Instance, options: ModelOptions, *, fluid: bool = False) -> Instance:
    """Fold chunks, grid, limits of nodes and varying bandwidth into the instance.

    Raises
    ------
    InputError
        If a link whose bandwidth varies does not exist, there is not one priority for each collective, or the instance
        is on another grid.
    """
    posed = _posed(instance, options, fluid=fluid)
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
    """Reject what says nothing without sums, or is not meant with them."""
    sums = any(demand.collective in SUMS for demand in instance.demands)
    if sums and getattr(options, "relays", "store") == "pass":
        raise InputError("pass is for data that is copied, but a sum waits for its parts", source="-O", place="relays")
    kinds = {demand.collective for demand in instance.demands}
    if getattr(options, "all_reduce", "direct") == "stages" and CollectiveKind.ALL_REDUCE not in kinds:
        raise InputError("stages says nothing where there is no all_reduce", source="-O", place="all_reduce")


def _with_limits(instance: Instance, options: ModelOptions) -> Instance:
    """Write what the options say of nodes on the nodes, where the verifier sees it.

    A rank that passes on what it receives has room for nothing, one with a buffer for so many chunks. Hyper-edges
    stand for switches without copies.
    """
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
