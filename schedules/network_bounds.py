"""Exact verification of bounds from cuts, distances, partitions, lengths and whole chunks."""

import heapq
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np

from ..core.answers import Answer
from ..core.bounds import CutCertificate, DistanceCertificate, LengthCertificate, PartitionCertificate, WholeChunks
from ..core.collective import Collective, Demand, conditions
from ..core.errors import InputError
from ..core.grouping import group_by_key
from ..core.instance import Instance
from ..core.schedule import Schedule, StepSchedule
from ..core.topology import NodeKind
from .strict import reject_if
from .verify.sizes import demanded_bytes


def recomputed_cut_bound(instance: Instance, certificate: CutCertificate) -> Fraction:
    """Return the least seconds on links out of a set of nodes, with latency if the certificate includes it.

    Data that only ranks inside hold must leave the set if a rank outside needs it, and so must a sum for a rank
    outside to which one inside contributes: at least once, however it is merged and copied on either side.
    """
    topology = instance.topology
    for index, node in enumerate(certificate.nodes):
        if not 0 <= node < len(topology.nodes):
            raise InputError(f"node {node} of {len(topology.nodes)}", place=f"certificate.nodes[{index}]")
    inside = np.zeros(len(topology.nodes), dtype=np.bool_)
    inside[list(certificate.nodes)] = True
    ranks = frozenset(np.flatnonzero(inside[list(topology.rank_nodes)]).tolist())
    crossing = sum((_leaving_bytes(demand, instance.npus, ranks) for demand in instance.demands), Fraction(0))
    if not crossing:
        return Fraction(0)
    tail, head = topology.end_arrays
    leaving = [topology.links[link] for link in np.flatnonzero(inside[tail] & ~inside[head]).tolist()]
    if not any(link.bandwidth_Bps for link in leaving):
        raise InputError("data must leave these nodes, but no link does", place="certificate.nodes")
    if not certificate.latency:
        return crossing / sum((link.bandwidth_Bps for link in leaving), Fraction(0))
    return _least_time(crossing, ((link.latency_s, link.bandwidth_Bps) for link in leaving))


def _least_time(amount: Fraction, rates: Iterable[tuple[Fraction, Fraction]]) -> Fraction:
    """Return the seconds until links, each with a time before which it brings nothing and a rate, bring an amount.

    In a time T some links bring at least ``sum b (T - a)``, and those with a < T bring exactly this.
    """
    total, times = Fraction(0), list[Fraction]()
    for late_s, rate in sorted(rates):
        total += rate
        amount += rate * late_s
        if total:
            times.append(amount / total)
    return min(times)


def recomputed_distance_bound(instance: Instance, certificate: DistanceCertificate) -> Fraction:
    """Return the seconds of latency between two ranks, 0 if nothing must travel between them."""
    topology, source, target = instance.topology, certificate.source, certificate.target
    for name, rank in (("source", source), ("target", target)):
        if not 0 <= rank < len(topology.ranks):
            raise InputError(f"rank {rank} of {len(topology.ranks)}", place=f"certificate.{name}")
    if source == target or not any(_travels(demand, instance.npus, source, target) for demand in instance.demands):
        return Fraction(0)
    scale = lcm(*(link.latency_s.denominator for link in topology.links))
    lengths = (int(link.latency_s * scale) for link in topology.links)
    far = shortest_distances(links_out_of(topology.link_ends, lengths), [topology.rank_nodes[source]])
    if topology.rank_nodes[target] not in far:
        raise InputError("no path leads from the source to the target", place="certificate")
    return Fraction(far[topology.rank_nodes[target]], scale)


def _travels(demand: Demand, npus: int, source: int, target: int) -> bool:
    """Return whether data that only a rank has, or contributes to, must reach another one."""
    if demand.collective is Collective.ALL_TO_ALL:
        return {source, target} <= set(demand.group(npus))
    pieces = conditions(demand, npus)
    holders = [source in group if pieces.reduced else group == (source,) for group in pieces.groups]
    receivers = [target in group for group in pieces.groups]
    return bool((np.array(holders)[pieces.held_by] & np.array(receivers)[pieces.needed_by]).any())


def recomputed_partition_bound(instance: Instance, certificate: PartitionCertificate) -> Fraction:
    """Return the least seconds of an all-reduce on links into disjoint sets of nodes, or out of them.

    For every byte whose sum all ranks of the group need and contribute to, ``2 (p - 1)`` entries into the p sets
    that have such a rank, and as many exits. It is p entries where a switch outside the sets may add contributions
    on the way, and p exits where one may copy.
    """
    topology = instance.topology
    part_of: dict[int, int] = {}
    for index, part in enumerate(certificate.parts):
        for node in part:
            if not 0 <= node < len(topology.nodes) or node in part_of:
                raise InputError(f"node {node} does not exist or is in two sets", place=f"certificate.parts[{index}]")
            part_of[node] = index
    if not part_of.keys() >= set(topology.rank_nodes):
        raise InputError("a compute node is in none of the sets", place="certificate.parts")
    outside = [node for index, node in enumerate(topology.nodes) if index not in part_of]
    crossings = [Fraction(0), Fraction(0)]
    for (holders, receivers, reduced), size in demanded_bytes(instance).items():
        count = len({part_of[topology.rank_nodes[rank]] for rank in holders}) if reduced and holders == receivers else 0
        if count > 1:
            for way, merged in enumerate((any(n.may_add for n in outside), any(n.copies for n in outside))):
                crossings[way] += (count if merged else 2 * (count - 1)) * size
    if not any(crossings):
        return Fraction(0)
    rates = [Fraction(0), Fraction(0)]
    for link, (a, b) in zip(topology.links, topology.link_ends, strict=True):
        for way, (inner, other) in enumerate(((b, a), (a, b))):
            if inner in part_of and part_of.get(other) != part_of[inner]:
                rates[way] += link.bandwidth_Bps
    reject_if(not all(rates), "data must enter and leave these sets, but no link does", place="certificate.parts")
    return max(crossing / rate for crossing, rate in zip(crossings, rates, strict=True))


def recomputed_length_bound(
    instance: Instance, certificate: LengthCertificate, orbit_sizes: Mapping[int, int] | None = None
) -> Fraction:
    """Return the least seconds on links with these lengths, by the data that one rank has and one rank needs.

    ``orbit_sizes`` are for an all-to-all of all ranks without latencies: the number of ranks in every orbit, by the one
    rank from which its distances are added up; by default every rank is its own orbit.
    """
    topology, lengths = instance.topology, certificate.lengths
    if len(lengths) != len(topology.links) or min(lengths, default=0) < 0 or not any(lengths):
        raise InputError("expected a length for every link, at least 0 and not all 0", place="certificate.lengths")
    bytes_from: dict[int, dict[int, Fraction]] = {}
    if orbit_sizes is None:
        for (holders, to, _), size in demanded_bytes(instance).items():
            if len(holders) == len(to) == 1 and holders != to:
                bytes_from.setdefault(holders[0], {})[to[0]] = size
    elif instance.demand is not None:
        everybody = dict.fromkeys(range(instance.npus), instance.demand.part_bytes(instance.npus))
        bytes_from = dict.fromkeys(orbit_sizes, everybody)
    travelled, out = Fraction(0), links_out_of(topology.link_ends, lengths)
    for source, targets in bytes_from.items():
        far = shortest_distances(out, [topology.rank_nodes[source]])
        for target, size in targets.items():
            node = topology.rank_nodes[target]
            reject_if(node not in far, f"no path leads from rank {source} to rank {target}", place="certificate")
            travelled += size * far[node] * (orbit_sizes[source] if orbit_sizes else 1)
    rates = [length * link.bandwidth_Bps for length, link in zip(lengths, topology.links, strict=True)]
    if not certificate.latency:
        return travelled / sum(rates, Fraction(0))
    scale = lcm(*(link.latency_s.denominator for link in topology.links))
    late = [int(link.latency_s * scale) for link in topology.links]
    receivers = {topology.rank_nodes[target] for targets in bytes_from.values() for target in targets}
    before = shortest_distances(
        links_out_of(topology.link_ends, late), [topology.rank_nodes[source] for source in bytes_from]
    )
    after = shortest_distances(links_out_of(((b, a) for a, b in topology.link_ends), late), receivers)
    on_way = [
        (Fraction(before[a] + own + after[b], scale), rate)
        for (a, b), own, rate in zip(topology.link_ends, late, rates, strict=True)
        if a in before and b in after
    ]
    return _least_time(travelled, on_way) if travelled else Fraction(0)


def _leaving_bytes(demand: Demand, npus: int, inside: frozenset[int]) -> Fraction:
    if demand.collective is Collective.ALL_TO_ALL:  # a piece for each of n^2 pairs
        group = demand.group(npus)
        return len(inside.intersection(group)) * len(set(group) - inside) * demand.part_bytes(npus)
    pieces = conditions(demand, npus)
    members = [[rank in inside for rank in group] for group in pieces.groups]
    some, every = np.array([any(each) for each in members]), np.array([all(each) for each in members])
    from_inside = (some if pieces.reduced else every)[pieces.held_by]
    return int(np.count_nonzero(from_inside & ~every[pieces.needed_by])) * pieces.size


Neighbours = dict[int, list[tuple[int, int]]]  #: Targets of the links out of every node, with lengths.


def links_out_of(ends: Iterable[tuple[int, int]], lengths: Iterable[int]) -> Neighbours:
    """Return the links by the nodes that they leave."""
    return group_by_key((a, (b, length)) for (a, b), length in zip(ends, lengths, strict=True))


def shortest_distances(out: Neighbours, sources: Iterable[int]) -> dict[int, int]:
    """Return the distances of nodes that links reach from the nearest source, by Dijkstra over integers."""
    heap, distance = [(0, source) for source in sources], dict[int, int]()
    while heap:
        far, node = heapq.heappop(heap)
        if node in distance:
            continue
        distance[node] = far
        for neighbour, length in out[node]:
            if neighbour not in distance:
                heapq.heappush(heap, (far + length, neighbour))
    return distance


def recomputed_chunk_bound(instance: Instance, certificate: WholeChunks) -> Fraction:
    """Return the seconds until every rank has a rank's last whole chunk, see :class:`~cwb.core.bounds.WholeChunks`."""
    topology, rank = instance.topology, certificate.rank
    reject_if(not 0 <= rank < len(topology.ranks), f"rank {rank} of {len(topology.ranks)}", place="certificate.rank")
    if certificate.chunk_bytes <= 0:
        raise InputError(f"{certificate.chunk_bytes} bytes; expected more than 0", place="certificate.chunk_bytes")
    if any(node.kind is not NodeKind.COMPUTE and node.copies for node in topology.nodes):
        raise InputError("a switch copies chunks in transit", place="certificate")
    needs = {
        (holders, receivers): size
        for (holders, receivers, reduced), size in demanded_bytes(instance).items()
        if (rank in holders if reduced else holders == (rank,)) and set(receivers) - {rank}
    }
    if not needs:
        return Fraction(0)
    leaving = [Fraction(0)] * len(topology.nodes)
    for link, (tail, _) in zip(topology.links, topology.link_ends, strict=True):
        leaving[tail] += link.bandwidth_Bps
    own, most = leaving[topology.rank_nodes[rank]], max(leaving[node] for node in topology.rank_nodes)
    reject_if(not own, "data must leave the rank, but no link does", place="certificate.rank")
    having = min(len({rank, *receivers}) for _, receivers in needs)
    doublings = (having - 1).bit_length() - 1
    return sum(needs.values(), Fraction(0)) / own + doublings * certificate.chunk_bytes / most


def fault_of_chunks(certificate: WholeChunks, answer: Answer) -> str | None:
    """Explain why the certificate does not apply to an answer: no schedule, or finer chunks."""
    if not isinstance(answer, StepSchedule | Schedule):
        return "speaks of whole chunks, and the answer is no schedule of chunks"
    chunks = answer.chunks
    theirs = np.array([certificate.rank in group for group in chunks.groups])[chunks.held_by]
    if theirs.any() and int(chunks.units[theirs].min()) * chunks.unit_bytes < certificate.chunk_bytes:
        return f"speaks of chunks of {certificate.chunk_bytes} bytes, and the answer has finer ones"
    return None


#: Functions that recompute the bounds of certificates that do not depend on an answer.
BOUND_CHECKERS: Mapping[type, Callable[[Instance, Any], Fraction]] = {
    CutCertificate: recomputed_cut_bound,
    DistanceCertificate: recomputed_distance_bound,
    PartitionCertificate: recomputed_partition_bound,
    WholeChunks: recomputed_chunk_bound,
}
