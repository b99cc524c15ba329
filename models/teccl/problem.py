"""An instance on a grid of epochs, in integers: the input of every method of the family."""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import ceil, floor

import numpy as np

from ...algorithms.epochs.problem import FAR, EpochNetwork, epoch_distances
from ...algorithms.schedules.problem import Commodity, chunk_sizes, commodities_of, refuse_unequal_messages
from ...core.collective import Collective, conditions
from ...core.errors import NO_COLLECTIVE, InputError, Refusal, Unsupported
from ...core.instance import Instance
from ...core.schedule import Ints
from ...core.timing import BandwidthChange, Semantics, Timing
from ...core.topology import Link, NodeKind, Topology
from .options import EpochOptions, ModelOptions, SearchOptions

#: Latency of at most this part of an epoch is free in the published code (its ``alpha_threshold``).
FREE_LATENCY = Fraction(1, 10)

MAX_DELAY = 100_000  #: Epochs that a chunk may be on one link; a finer grid than this is a mistake.
MAX_CAPACITY = 2**40  #: Starts in a window that no schedule needs: a larger capacity is taken as this one.
MAX_COMMODITIES = 5_000_000  #: Most chunks that are listed.


@dataclass(frozen=True)
class EpochLink:
    """Link on the grid."""

    source: int
    target: int
    #: A chunk that starts at index k is at the target at index k + delay, where it can start again at once; 0 only from
    #: a switch.
    delay: int
    #: ``window`` and ``capacity``: in any ``window`` consecutive epochs at most ``capacity`` chunks start; at most
    #: :data:`MAX_CAPACITY`.
    window: int
    capacity: int
    rate: Fraction  #: Chunks that the bandwidth allows in one epoch: the limit of a fluid schedule.


@dataclass(frozen=True)
class EpochProblem:
    """Scheduling problem in epochs and chunks.

    Nodes and links are numbered as in the topology; index k is the beginning of epoch k, and the makespan in epochs is
    the index of the last arrival.
    """

    topology: Topology
    timing: Timing
    chunk_bytes: Fraction
    links: tuple[EpochLink, ...]
    switch: tuple[bool, ...]
    #: Nodes that may send a received chunk to several links; of switches those with multicast.
    copies: tuple[bool, ...]
    #: Chunks that a node can store, None without limit; of ranks see :attr:`room`. A chunk that reaches a node that
    #: holds 0 leaves it at the same index or is lost.
    holds: tuple[int | None, ...]
    commodities: tuple[Commodity, ...]
    instance: Instance
    #: Index of the instance's grid at index 0: where bandwidth varies, a stage that begins later has other epochs.
    begin: int = 0

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.switch)

    @cached_property
    def room(self) -> tuple[int | None, ...]:
        """Chunks of others that each node can hold, None without limit; with 0 a rank forwards at once."""
        limits = [node.buffer_bytes for node in self.topology.nodes]
        return tuple(None if limit is None else floor(limit / self.chunk_bytes) for limit in limits)

    @cached_property
    def columns(self) -> Ints:
        """Source, target, delay, window and capacity of the links; shape (5, links)."""
        rows = [(e.source, e.target, e.delay, e.window, e.capacity) for e in self.links]
        return np.array(rows, dtype=np.int64).reshape(-1, 5).T.copy()

    @cached_property
    def leaving(self) -> tuple[tuple[int, ...], ...]:
        """Links that leave each node."""
        return tuple(tuple(i for i, e in enumerate(self.links) if e.source == n) for n in range(self.nodes))

    @cached_property
    def entering(self) -> tuple[tuple[int, ...], ...]:
        """Links that enter each node."""
        return tuple(tuple(i for i, e in enumerate(self.links) if e.target == n) for n in range(self.nodes))

    @cached_property
    def distance(self) -> Ints:
        """Epochs between nodes by the fastest path, :data:`FAR` without one; shape (nodes, nodes)."""
        tail, head, delay, _, _ = self.columns
        return epoch_distances(self.nodes, tail, head, delay)

    @cached_property
    def diameter(self) -> int:
        """Lower bound in epochs by the farthest destination, over chains of commodities."""
        ready, last = dict[int, int](), 0
        for index, commodity in enumerate(self.commodities):
            begin = max((ready[before] for before in commodity.after), default=0)
            ready[index] = begin + max(int(self.distance[commodity.source, t]) for t in commodity.targets)
            last = max(last, ready[index])
        return last

    def stores(self, commodity: Commodity, node: int) -> bool:
        """Check whether a node stores a commodity; switches store no sums, contributions only without limit."""
        if not self.switch[node]:
            return True
        return self.holds[node] is None if commodity.summed else self.holds[node] != 0 and not commodity.after

    def seconds(self, epochs: int) -> Fraction:
        """Convert a number of epochs to seconds."""
        return epochs * self.timing.epoch_s


def epoch_problem(instance: Instance) -> EpochProblem:
    """Put an instance that has a timing on its grid."""
    topology, timing = instance.network, instance.timing
    if not isinstance(topology, Topology) or timing is None:
        raise InputError("expected a network of nodes and links, and a timing", place="instance")
    chunk = chunk_bytes(instance)
    switch = tuple(node.kind is NodeKind.SWITCH for node in topology.nodes)
    kinds: dict[tuple[int, int, bool], tuple[int, int, int, Fraction]] = {}  # by identity: links share their numbers
    links: list[EpochLink] = []
    for link, (source, target) in zip(topology.links, topology.link_ends, strict=True):
        hands_over = switch[source] and not switch[target]
        key = id(link.bandwidth_Bps), id(link.latency_s), hands_over
        if key not in kinds:
            kinds[key] = _link_in_epochs(link, hands_over, timing, chunk)
        links.append(EpochLink(source, target, *kinds[key]))
    problem = EpochProblem(
        topology,
        timing,
        chunk,
        tuple(links),
        switch,
        tuple(not s or node.multicast for s, node in zip(switch, topology.nodes, strict=True)),
        tuple(_holds(topology, n, chunk) for n in range(len(switch))),
        commodities_of(instance, MAX_COMMODITIES),
        instance,
    )
    for commodity in problem.commodities:
        far = np.flatnonzero(problem.distance[commodity.source, list(commodity.targets)] >= FAR)
        for target in far[:1].tolist():
            ends = (topology.nodes[commodity.source].name, topology.nodes[commodity.targets[target]].name)
            raise InputError(f"no path leads from {ends[0]!r} to {ends[1]!r}", place="network.links")
    return problem


def network_of(problem: EpochProblem) -> EpochNetwork:
    """Return network and chunks, one per commodity; a storing switch without copies does not store."""
    tail, head, delay, window, room = problem.columns
    switch = np.array(problem.switch, dtype=np.bool_)
    copies = np.array(problem.copies, dtype=np.bool_)
    unlimited = np.array([hold is None for hold in problem.holds], dtype=np.bool_)
    source = np.array([commodity.source for commodity in problem.commodities], dtype=np.int64)
    need = np.zeros((len(source), problem.nodes), dtype=np.bool_)
    for index, commodity in enumerate(problem.commodities):
        need[index, list(commodity.targets)] = True
    stores = ~switch | (unlimited & copies)
    return EpochNetwork(problem.nodes, tail, head, delay, window, room, stores, copies, source, need)


def chunk_bytes(instance: Instance) -> Fraction:
    """Compute the chunk size: a rank's part, or a broadcast's message, over the number of chunks."""
    sizes = chunk_sizes(instance, MAX_COMMODITIES)
    if len(sizes) != 1:
        raise Unsupported("epochs need chunks of one size; cut the collectives so that their chunks are equal")
    return sizes.pop()


def _link_in_epochs(link: Link, hands_over: bool, timing: Timing, chunk: Fraction) -> tuple[int, int, int, Fraction]:
    """Compute delay, window, capacity and rate of a link."""
    rate = link.bandwidth_Bps * timing.epoch_s / chunk
    window = ceil(1 / rate)
    latency = link.latency_s / timing.epoch_s
    physical = timing.semantics is Semantics.STORE_AND_FORWARD
    waits = ceil(latency) if physical or latency > FREE_LATENCY else 0
    is_free = timing.semantics is Semantics.TE_CCL and hands_over
    delay = waits + (1 if timing.fluid else 0 if is_free else window)
    if max(delay, window) > MAX_DELAY:
        takes = f"{link.source} -> {link.target} takes {max(delay, window):,} epochs; at most {MAX_DELAY:,}"
        text = f"an epoch of {float(timing.epoch_s):.4g} s is too short: {takes}"
        raise InputError(text, place="timing.epoch_s")
    return delay, window, min(floor(window * rate), MAX_CAPACITY), rate


def _holds(topology: Topology, index: int, chunk: Fraction) -> int | None:
    node = topology.nodes[index]
    if node.buffer_bytes is None:
        return None
    if 0 < node.buffer_bytes < chunk:
        size = f"{float(node.buffer_bytes):g} bytes, less than a chunk of {float(chunk):g}"
        raise InputError(f"the buffer of {node.name} has {size}", place=f"network.nodes[{index}].buffer")
    return None if node.kind is NodeKind.COMPUTE else floor(node.buffer_bytes / chunk)


def has_sums(instance: Instance) -> bool:
    """Check whether a collective sums contributions; two ranks suffice to tell, since their number does not matter."""
    return any(conditions(replace(demand, ranks=(0, 1)), 2).reduced for demand in instance.demands)


def supports(instance: Instance) -> Refusal | None:
    """Refuse all but explicit networks with collectives to schedule; return the reason or None."""
    if not isinstance(instance.network, Topology):
        return Refusal("network", "it schedules explicit networks of nodes and links, not fabrics")
    if instance.demand is None:
        return NO_COLLECTIVE
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
    reason = supports(instance)
    if reason is None and has_sums(instance):
        return Refusal("collective", "it schedules no sums; use teccl-milp")
    return reason


def is_all_to_all(instance: Instance) -> bool:
    """Check whether an instance is one all_to_all, which the linear program solves."""
    return [demand.collective for demand in instance.demands] == [Collective.ALL_TO_ALL]


def supports_search(instance: Instance) -> Refusal | None:
    """Refuse all but collectives that copy, or one all_to_all; return the reason or None."""
    reason, kinds = supports_no_sums(instance), [demand.collective for demand in instance.demands]
    if reason is None and Collective.ALL_TO_ALL in kinds and len(kinds) > 1:
        return Refusal("collective", "it schedules only a single all_to_all; teccl-milp supports several collectives")
    return reason


def supports_all_to_all(instance: Instance) -> Refusal | None:
    """Refuse all but one all_to_all on an explicit network; return the reason or None."""
    reason = supports(instance)
    return reason if reason or is_all_to_all(instance) else Refusal("collective", "it schedules one all_to_all")


def pose(instance: Instance, options: EpochOptions, *, fluid: bool = False) -> Instance:
    """Return the instance with the options' chunks and grid, and of a model its limits and varying bandwidth."""
    demands = [replace(d, chunks=options.chunks or d.chunks) for d in instance.demands]
    variant = instance.with_changes(demand=demands[0], also=tuple(demands[1:]))
    if options.chunk_size is not None:
        factor = options.chunk_size / chunk_bytes(variant)
        demands = [replace(d, size_bytes=d.size_bytes * factor) for d in demands]
        variant = instance.with_changes(demand=demands[0], also=tuple(demands[1:]))
    links, epoch_s = instance.topology.links, options.epoch_duration
    if epoch_s is None:
        rate = (max if options.epoch == "fast" else min)(link.bandwidth_Bps for link in links)
        # The guard of the published code keeps models small where latency dominates (section 6).
        least = min(link.latency_s for link in links) / options.latency_epochs
        epoch_s = max(chunk_bytes(variant) / rate * options.epoch_multiplier, least)
    timing = Timing(Semantics(options.timing), epoch_s, fluid)
    if isinstance(options, ModelOptions):
        timing = replace(timing, changes=_bandwidth_changes(variant, options))
        variant = _with_limits(variant, options)
    if (own := instance.timing) is not None and own != timing:
        raise InputError(
            f"the instance has epochs of its own ({_grid_text(own)}), not those of this method and its options "
            f"({_grid_text(timing)}); expected an instance without epochs, or the same options",
            place="timing",
        )
    return variant.with_changes(timing=timing)


def _grid_text(timing: Timing) -> str:
    varies = ", bandwidth that varies" if timing.changes else ""
    chunks = "split" if timing.fluid else "whole"
    return f"{timing.semantics.value}, {float(timing.epoch_s):.6g} s, {chunks} chunks{varies}"


def pose_search(instance: Instance, options: SearchOptions) -> Instance:
    """Return the instance with chunks and grid; an all_to_all may split its chunks."""
    return pose(instance, options, fluid=is_all_to_all(instance))


def _bandwidth_changes(instance: Instance, options: ModelOptions) -> tuple[BandwidthChange, ...]:
    changes: list[BandwidthChange] = []
    for index, change in enumerate(options.bandwidth):
        place, ends = f"bandwidth[{index}]", (change.source, change.target)
        links = [e for e, link in enumerate(instance.topology.links) if (link.source, link.target) == ends]
        if not links:
            raise InputError(f"no link from {change.source!r} to {change.target!r}", source="-O", place=place)
        if not 0 <= change.epochs[0] < change.epochs[1]:
            raise InputError(f"{list(change.epochs)} are no epochs in order", source="-O", place=f"{place}.epochs")
        changes += [BandwidthChange(e, *change.epochs, change.factor) for e in links]
    return tuple(changes)


def _with_limits(instance: Instance, options: ModelOptions) -> Instance:
    """Write the options' limits on the nodes, for the verifier: rooms, and hyper-edges as no multicast."""
    priorities, passes = getattr(options, "priorities", None), getattr(options, "relays", "store") == "pass"
    if priorities is not None and len(priorities) != len(instance.demands):
        text = f"{len(priorities)} weights for {len(instance.demands)} collectives; expected one for each"
        raise InputError(text, source="-O", place="priorities")
    if passes and has_sums(instance):
        raise InputError("pass is for data that is copied, but a sum waits for its parts", source="-O", place="relays")
    kinds = {demand.collective for demand in instance.demands}
    if getattr(options, "all_reduce", "direct") == "stages" and Collective.ALL_REDUCE not in kinds:
        raise InputError("stages applies only to an all_reduce", source="-O", place="all_reduce")
    topology = instance.topology
    room: int | None = 0 if passes else getattr(options, "buffer", None)
    size = None if room is None else room * chunk_bytes(instance)
    legacy = getattr(options, "switches", "as-they-are") == "hyper-edges"
    nodes = tuple(
        replace(node, buffer_bytes=node.buffer_bytes if size is None else size)
        if node.kind is NodeKind.COMPUTE
        else replace(node, multicast=node.multicast and not (legacy and node.buffer_bytes == 0))
        for node in topology.nodes
    )
    return instance if nodes == topology.nodes else instance.with_changes(network=replace(topology, nodes=nodes))
