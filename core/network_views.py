"""Two views of a network, and conversions between them: a fabric of dimensions, and links between nodes."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Flag, auto
from fractions import Fraction
from functools import wraps
from typing import Any

from pydantic import BaseModel

from .errors import InputError, Refusal, Unsupported, locate_errors
from .fabric import Block, Dimension, Fabric, WiredFabric, expand, expanded_size, links_per_npu
from .fields import run_validation
from .instance import Instance
from .topology import Topology

#: Bandwidth and latency of every link of a fabric without given bandwidths; the defaults of generated graphs.
LINK_BANDWIDTH_BPS = Fraction(50 * 10**9)
LINK_LATENCY_S = Fraction(1, 2 * 10**6)

MAX_LINKS = 20_000_000  #: Larger fabrics are not expanded.


class NetworkView(Flag):
    """Supported view of a network: links between nodes, a fabric of dimensions, or either."""

    LINKS = auto()
    FABRIC = auto()
    EITHER = LINKS | FABRIC


class InstanceSupport:
    """Method or formulation, which states the networks and instances that it supports, and poses them."""

    name: str
    options: type[BaseModel]
    networks: NetworkView
    supports: Callable[[Instance], Refusal | None]
    pose: Callable[[Instance, Any], Instance]

    def validate_and_pose(self, instance: Instance, options: Mapping[str, Any]) -> tuple[Instance, Any]:
        """Validate options and pose an instance with them."""
        view, refusal = supported_view(self, instance)
        if refusal is not None:
            raise Unsupported(f"{self.name}: {refusal}")
        with locate_errors(source="-O"):
            settings = run_validation(lambda: self.options.model_validate(dict(options)))
        return self.pose(view, settings), settings


def with_refusals(supports: Callable[[Instance], Refusal | str | None]) -> Callable[[Instance], Refusal | None]:
    """Wrap a ``supports`` function: its texts become refusals, which name a collective that is posed as messages."""

    @wraps(supports)
    def refusal(instance: Instance) -> Refusal | None:
        reason = supports(instance)
        verdict = Refusal("other", reason) if isinstance(reason, str) else reason
        if verdict is None or instance.demand is None or instance.demand.part_of is None:
            return verdict
        note = f" ({instance.demand.part_of.name} is posed as messages of different sizes)"
        return Refusal(verdict.code, verdict.text.removesuffix(note) + note)

    return refusal


def other_view(instance: Instance) -> Instance | None:
    """Return the instance with its fabric as links or its links as a fabric; None if impossible.

    Workloads, prices and a design belong to the fabric; an instance that has them has no other view. A fabric has at
    most :data:`MAX_LINKS` links.
    """
    if instance.workloads or instance.transformers or instance.cost_model or instance.design:
        return None
    network = instance.network
    other = links_of(network) if isinstance(network, Fabric) else fabric_of(network)
    return None if other is None else instance.with_changes(network=other)


def supported_view(method: InstanceSupport, instance: Instance) -> tuple[Instance, Refusal | None]:
    """Return the view of an instance that a method supports, and the reason for a refusal.

    A fabric is expanded into links for a method of links; links that form a fabric are converted to one for a method of
    fabrics. An instance that is refused, or has no other view, is returned itself.
    """
    own = NetworkView.FABRIC if isinstance(instance.network, Fabric) else NetworkView.LINKS
    try:
        view = instance if own in method.networks else other_view(instance) or instance
    except InputError as error:
        refusal = method.supports(instance)
        return instance, refusal and Refusal("size", f"{refusal}; {error.problem}")
    refusal = method.supports(view)
    if refusal is not None and own not in method.networks and _has_adding_switch(instance.network):
        refusal = Refusal(
            refusal.code, f"{refusal}; its switches add, which no dimension does (nvls=false leaves it out)"
        )
    return (view if refusal is None else instance), refusal


def _has_adding_switch(network: Fabric | Topology) -> bool:
    return isinstance(network, Topology) and any(node.reduces for node in network.nodes)


def to_wired_fabric(fabric: Fabric) -> WiredFabric:
    """Return the fabric with its bandwidths and latencies; by default those of generated graphs.

    A transfer through a switch crosses two links.
    """
    if isinstance(fabric, WiredFabric):
        return fabric
    stack = [(d.block, d.size, (LINK_BANDWIDTH_BPS, LINK_LATENCY_S)) for d in fabric.dimensions]
    network = _fabric(stack)
    return WiredFabric(fabric.dimensions, network.bandwidth_Bps, network.latency_s)


def links_of(network: Fabric | Topology) -> Topology:
    """Return the explicit network, expanded from a fabric; raise InputError above :data:`MAX_LINKS` links."""
    if isinstance(network, Topology):
        return network
    nodes, links = expanded_size(network)
    if links > MAX_LINKS:
        raise InputError(f"{network} has {nodes:,} nodes and {links:,} links; expected at most {MAX_LINKS:,} links")
    wired = to_wired_fabric(network)
    return expand(wired, wired.bandwidth_Bps, wired.latency_s)


def fabric_of(topology: Topology) -> WiredFabric | None:
    """Return the fabric that an explicit network is, ranks innermost first; None if it is none.

    Names, and buffers and multicast of switches, are ignored. A switch that adds belongs to no fabric: with it, a
    reduction may end before the bound that is proved for the fabric.
    """
    if _has_adding_switch(topology):
        return None
    wires = _wires(topology)
    if wires is None or len(topology.ranks) < 2:
        return None
    from_0 = {b: (rate, delay) for (a, b, rate, delay) in wires if a == 0}
    direct = {end: rates for end, rates in from_0.items() if isinstance(end, int)}
    through = {end: rates for end, rates in from_0.items() if not isinstance(end, int)}
    for stack in _stacks(len(topology.ranks), 1, direct, through):
        fabric = _fabric(stack)
        if expanded_size(fabric)[1] == len(topology.links) and _wires(links_of(fabric)) == wires:
            return fabric
    return None


def rings_of(topology: Topology) -> WiredFabric | None:
    """Return a mesh as the rings that algorithms for dimensions use in its place; None for other networks.

    A mesh has no wrap-around links: data for one of them goes back through all nodes of the line. Ranks are numbered
    along the innermost dimension first; all links of a dimension are equal.
    """
    n = len(topology.ranks)
    ends = dict(zip(topology.link_ends, topology.links, strict=True))
    strides = sorted(b for a, b in ends if a == 0)
    if topology.switches or len(ends) != len(topology.links) or strides[:1] != [1]:
        return None
    sizes = [after // stride for stride, after in zip(strides, [*strides[1:], n], strict=True)]
    if any(after % stride for stride, after in zip(strides, [*strides[1:], n], strict=True)) or min(sizes) < 2:
        return None
    stack: list[_LinkedDimension] = []
    for stride, size in zip(strides, sizes, strict=True):
        lower = [rank for rank in range(n) if rank // stride % size < size - 1]
        links = [ends.pop(pair, None) for rank in lower for pair in ((rank, rank + stride), (rank + stride, rank))]
        kinds = {None if link is None else (link.bandwidth_Bps, link.latency_s) for link in links}
        rates = kinds.pop()
        if rates is None or kinds:
            return None
        stack.append((Block.RING, size, rates))
    return None if ends else _fabric(stack)


_End = int | frozenset[int]  #: End of a link: a rank by its number, or a switch by its ranks.
_LinkRates = tuple[Fraction, Fraction]  #: Bandwidth and latency of a link.
_LinkedDimension = tuple[Block, int, _LinkRates]  #: Block and size of a dimension, and its links.


def _wires(topology: Topology) -> Counter[tuple[_End, _End, Fraction, Fraction]] | None:
    """Count links by ends and rates, with switches identified by their ranks; None if that is ambiguous."""
    rank = {name: number for number, name in enumerate(topology.ranks)}
    members: dict[str, set[int]] = {name: set() for name in topology.switches}
    for link in topology.links:
        for one, other in ((link.source, link.target), (link.target, link.source)):
            if one in members:
                if other in members:
                    return None
                members[one].add(rank[other])
    ends: dict[str, _End] = {**rank, **{name: frozenset(ranks) for name, ranks in members.items()}}
    wires = Counter((ends[e.source], ends[e.target], e.bandwidth_Bps, e.latency_s) for e in topology.links)
    distinct = len({ends[name] for name in members}) == len(members)
    return wires if distinct and max(wires.values(), default=0) == 1 else None


def _stacks(
    ranks: int, stride: int, direct: Mapping[int, _LinkRates], through: Mapping[frozenset[int], _LinkRates]
) -> Iterator[tuple[_LinkedDimension, ...]]:
    """Yield stacks of dimensions, innermost first, whose blocks have exactly the links of rank 0."""
    if stride == ranks:
        if not direct and not through:
            yield ()
        return
    for size in range(2, ranks // stride + 1):
        if ranks // stride % size:
            continue
        others = [stride * k for k in range(1, size)]
        switch = frozenset((0, *others))
        direct_blocks: list[tuple[Block, Sequence[int]]] = [(Block.FULLY_CONNECTED, others)]
        if size > 3:
            direct_blocks.append((Block.RING, (others[0], others[-1])))
        if switch in through:
            rest_through = {end: rates for end, rates in through.items() if end != switch}
            for inner in _stacks(ranks, stride * size, direct, rest_through):
                yield ((Block.SWITCH, size, through[switch]), *inner)
        for block, ends in direct_blocks:
            if all(end in direct and direct[end] == direct[others[0]] for end in ends):
                rest_direct = {end: rates for end, rates in direct.items() if end not in ends}
                for inner in _stacks(ranks, stride * size, rest_direct, through):
                    yield ((block, size, direct[others[0]]), *inner)


def _fabric(stack: Sequence[_LinkedDimension]) -> WiredFabric:
    dimensions = tuple(Dimension(block, size, "") for block, size, _ in stack)
    # A link to a switch has all of an NPU's bandwidth, and a transfer crosses two of them.
    rates, delays = [], []
    for dimension, (block, _, (rate, delay)) in zip(dimensions, stack, strict=True):
        rates.append(rate if block is Block.SWITCH else rate * links_per_npu(dimension))
        delays.append(2 * delay if block is Block.SWITCH else delay)
    return WiredFabric(dimensions, tuple(rates), tuple(delays))
