"""The judge of cuts and distances: recomputes their bounds from the instance and the named nodes alone, exactly."""

from __future__ import annotations

import heapq
from fractions import Fraction
from math import lcm

from ..core.bounds import CutCertificate, DistanceCertificate
from ..core.conditions import Condition
from ..core.errors import InputError
from ..core.instance import Instance
from ..core.topology import Topology
from .verify.sizes import demanded


def recomputed_cut_bound(instance: Instance, certificate: CutCertificate) -> Fraction:
    """Seconds that the links out of a set of nodes need at least.

    Data that only ranks inside hold must leave the set if a rank outside needs it, and so must a sum for a rank outside to which one
    inside contributes: at least once, however it is merged and copied on either side.

    Raises
    ------
    InputError
        If a node does not exist, or data must leave a set that no link leaves.
    """
    topology = _topology(instance)
    for index, node in enumerate(certificate.nodes):
        if not 0 <= node < len(topology.nodes):
            raise InputError(f"node {node} of {len(topology.nodes)}", place=f"certificate.nodes[{index}]")
    inside = frozenset(certificate.nodes)
    ranks = frozenset(rank for rank, node in enumerate(topology.rank_nodes) if node in inside)
    crossing = sum((size for c, size in demanded(instance).items() if _must_leave(c, ranks)), Fraction(0))
    ends = zip(topology.links, topology.link_ends, strict=True)
    rate = sum((link.bandwidth_Bps for link, (a, b) in ends if a in inside and b not in inside), Fraction(0))
    if not crossing:
        return Fraction(0)
    if not rate:
        raise InputError("data must leave these nodes, but no link does", place="certificate.nodes")
    return crossing / rate


def recomputed_distance_bound(instance: Instance, certificate: DistanceCertificate) -> Fraction:
    """Seconds of latency from one rank to another; 0 if nothing must travel between the two.

    Raises
    ------
    InputError
        If a rank does not exist, or no path leads from one to the other.
    """
    topology = _topology(instance)
    for name, rank in (("source", certificate.source), ("target", certificate.target)):
        if not 0 <= rank < len(topology.ranks):
            raise InputError(f"rank {rank} of {len(topology.ranks)}", place=f"certificate.{name}")
    source, target = certificate.source, certificate.target
    if source == target or not any(_must_travel(c, source, target) for c in demanded(instance)):
        return Fraction(0)
    return _distance(topology, topology.rank_nodes[source], topology.rank_nodes[target])


def _topology(instance: Instance) -> Topology:
    if not isinstance(instance.network, Topology):
        raise InputError("expected a network of nodes and links, not of dimensions without bandwidth", place="network")
    return instance.network


def _must_leave(condition: Condition, inside: frozenset[int]) -> bool:
    held, needed, reduced = condition
    stems_from_inside = any(r in inside for r in held) if reduced else all(r in inside for r in held)
    return stems_from_inside and any(r not in inside for r in needed)


def _must_travel(condition: Condition, source: int, target: int) -> bool:
    held, needed, reduced = condition
    return target in needed and (source in held if reduced else held == (source,))


def _distance(topology: Topology, source: int, target: int) -> Fraction:
    """Latency of the fastest path, by Dijkstra over integers."""
    scale = lcm(*(link.latency_s.denominator for link in topology.links))
    out: list[list[tuple[int, int]]] = [[] for _ in topology.nodes]
    for link, (a, b) in zip(topology.links, topology.link_ends, strict=True):
        out[a].append((b, int(link.latency_s * scale)))
    heap, done = [(0, source)], set[int]()
    while heap:
        far, node = heapq.heappop(heap)
        if node == target:
            return Fraction(far, scale)
        if node in done:
            continue
        done.add(node)
        for neighbour, latency in out[node]:
            heapq.heappush(heap, (far + latency, neighbour))
    raise InputError("no path leads from the source to the target", place="certificate")
