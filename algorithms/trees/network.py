"""What the methods are asked: links that carry trees, with exact integer capacities, and what a tree's height is."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import gcd, lcm

import numpy as np

from ...core.collective import CollectiveKind, Demand
from ...core.errors import InputError, Unsupported
from ...core.instance import Instance
from ...core.schedule import Ints
from ...core.topology import Topology
from ..graphs.components import components

#: Networks beyond this are rejected before memory is taken.
MAX_NODES, MAX_LINKS = 2000, 20_000

#: Sums of capacities stay below this, so that 64-bit integers and floats hold them exactly.
_EXACT = 2**53

#: Unit of latency: heights are compared in whole nanoseconds, a link's rounded up.
_NS = 10**9


def supports(instance: Instance) -> str | None:
    """Why trees for all-reduce over a wide-area network do not fit an instance, if so (``Method.supports``)."""
    topology, demand = instance.network, instance.demand
    if not isinstance(topology, Topology):
        return f"{instance.network} has no links; expected an explicit network such as gscale()"
    if demand is None or instance.also:
        return "the instance has no collective, or several; expected one"
    return _fault_of_demand(demand, instance.npus) or _fault_of_network(topology)


def _fault_of_demand(demand: Demand, npus: int) -> str | None:
    """Return what is wrong with the collective."""
    if demand.collective is not CollectiveKind.ALL_REDUCE:
        return f"its trees do not make {demand.collective.value}, but all_reduce"
    if npus < 2:
        return "a collective needs at least two ranks"
    if demand.ranks is not None and len(demand.ranks) < npus:
        return "every site must take part, not a process group"
    return "the collective has no data to move" if demand.size_bytes <= 0 else None


def _fault_of_network(topology: Topology) -> str | None:
    """Return what is wrong with the network."""
    if topology.switches:
        return f"{topology.switches[0]!r} is a switch; every site must take part"
    if len(topology.nodes) > MAX_NODES or len(topology.links) > 2 * MAX_LINKS:
        return f"expected at most {MAX_NODES:,} sites and {MAX_LINKS:,} links"
    return None


@dataclass(frozen=True, eq=False)
class Wan:
    """A network of sites; a link is a pair of directed links, one back and one forth.

    A tree of rate r that reduces and broadcasts at once loads both directions of each of its links by r, whatever its
    root: the capacity of a link is the smaller one of its two directions.

    Parameters
    ----------
    nodes : int
        Number of sites n.
    tail, head : array of int, shape (links,)
        The two sites of every link.
    capacity : array of int, shape (links,)
        Capacity b_e in multiples of ``unit_Bps``.
    latency_ns : array of int, shape (links,)
        The larger latency of the two directions, rounded up to nanoseconds.
    forth, back : array of int, shape (links,)
        The directed link from tail to head, and the one from head to tail.
    unit_Bps : Fraction
        The largest bandwidth that all capacities are multiples of.
    names : tuple of str
        Names of the sites.
    balanced : bool
        Whether every link has one back that is as fast, so that trees see the whole network.
    """

    nodes: int
    tail: Ints
    head: Ints
    capacity: Ints
    latency_ns: Ints
    forth: Ints
    back: Ints
    unit_Bps: Fraction
    names: tuple[str, ...]
    balanced: bool

    def __len__(self) -> int:
        return len(self.tail)

    @cached_property
    def normaliser(self) -> Fraction:
        """``N = sum b_e / (n - 1)``, the rate at which trees would fill every link (paper, section IV-A.3)."""
        return Fraction(int(self.capacity.sum()), self.nodes - 1)

    def hops(self, most: int | None) -> HeightLimit:
        """Measure heights in hops."""
        return HeightLimit(
            np.ones(len(self), dtype=np.int64), self.nodes if most is None else min(most, self.nodes), "hops"
        )

    def latencies(self, most_s: Fraction) -> HeightLimit:
        """Measure heights in nanoseconds of latency."""
        return HeightLimit(self.latency_ns, min(int(most_s * _NS), int(self.latency_ns.sum())), "ns")


@dataclass(frozen=True, eq=False)
class HeightLimit:
    """The height that trees may have.

    Parameters
    ----------
    length : array of int, shape (links,)
        Length L_e of every link.
    most : int
        Largest sum of lengths from the root to a leaf.
    unit : str
        ``hops`` or ``ns``.
    """

    length: Ints
    most: int
    unit: str

    def shown(self, height: int) -> str:
        """Write a height with its unit."""
        if self.unit == "hops":
            return f"{height} hop{'s' if height != 1 else ''}"
        return f"{height // 10**6}.{height % 10**6:06d}".rstrip("0").rstrip(".") + " ms"


def pose(instance: Instance) -> Wan:
    """Read the network of an instance.

    Raises
    ------
    Unsupported
        If :func:`supports` has something against it, or its capacities have no common unit of a sensible size.
    InputError
        If the network is not connected by links in both directions.
    """
    if (reason := supports(instance)) is not None:
        raise Unsupported(reason)
    topology = instance.topology
    pairs = _pairs(topology)
    links = topology.links
    rates = [min(links[a].bandwidth_Bps, links[b].bandwidth_Bps) for a, b in pairs]
    scale = lcm(*(rate.denominator for rate in rates)) if rates else 1
    unit = Fraction(gcd(*(int(rate * scale) for rate in rates)) or 1, scale)
    capacity = [int(rate / unit) for rate in rates]
    latency = [-int(-max(links[a].latency_s, links[b].latency_s) * _NS // 1) for a, b in pairs]
    if sum(capacity) >= _EXACT or sum(latency) >= _EXACT:
        raise Unsupported("bandwidths have no common unit, or latencies are so long, that sums are exact in 64 bits")
    ends = np.array([topology.link_ends[a] for a, _ in pairs], dtype=np.int64).reshape(-1, 2)
    wan = Wan(
        len(topology.nodes),
        ends[:, 0].copy(),
        ends[:, 1].copy(),
        np.array(capacity, dtype=np.int64),
        np.array(latency, dtype=np.int64),
        np.array([a for a, _ in pairs], dtype=np.int64),
        np.array([b for _, b in pairs], dtype=np.int64),
        unit,
        tuple(node.name for node in topology.nodes),
        2 * len(pairs) == len(links) and all(links[a].bandwidth_Bps == links[b].bandwidth_Bps for a, b in pairs),
    )
    _check_connected(wan)
    return wan


def _pairs(topology: Topology) -> list[tuple[int, int]]:
    """Pair each link with one back, the fastest parallel ones together; what has none back is in no tree."""
    between: dict[tuple[int, int], list[int]] = defaultdict(list)
    for index, ends in enumerate(topology.link_ends):
        between[ends].append(index)
    for found in between.values():
        found.sort(key=lambda index: topology.links[index].bandwidth_Bps, reverse=True)
    pairs: list[tuple[int, int]] = []
    for (one, other), found in between.items():
        if one < other:
            pairs += zip(found, between.get((other, one), []), strict=False)
    return sorted(pairs, key=min)


def _check_connected(wan: Wan) -> None:
    """Reject a network in which no tree spans all sites."""
    label = components(wan.nodes, wan.tail, wan.head)
    if label.any():
        alone = int(np.flatnonzero(label)[0])
        problem = f"no path of links in both directions leads from {wan.names[0]!r} to {wan.names[alone]!r}"
        raise InputError(f"{problem}; expected a connected network", place="network.links")
