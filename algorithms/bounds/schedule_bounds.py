"""Lower bounds on the time of a collective on a network, exact, with certificates that a reader can check.

Bandwidth: what must leave a set of nodes leaves over the links out of it. One node alone bounds its egress, all but one
the ingress of that one. An all-reduce must moreover connect any parts of the network twice: once to reduce, once to broadcast.
An all-to-all uses bandwidth on every link between each two ranks. Latency: data that must travel from s to t takes at
least the latency of the fastest path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from ...core.bounds import Certificate, CutCertificate, DistanceCertificate, LengthCertificate, PartitionCertificate
from ...core.collective import CollectiveKind
from ...core.errors import InputError
from ...core.instance import Instance
from ...core.topology import Topology
from ..graphs.distances import distances

#: A bound in seconds and what proves it.
Bound = tuple[Fraction, Certificate]

#: Latency and bandwidth of a link.
Wire = tuple[Fraction, Fraction]

#: Sources whose distances are computed at once.
_BLOCK = 256


@dataclass(frozen=True)
class DemandGroup:
    """What is demanded of which ranks.

    Parameters
    ----------
    kind : CollectiveKind
        The collective.
    size_bytes : Fraction
        Its size.
    ranks : tuple of int
        The group, the root of a broadcast, reduce, gather or scatter, the late rank, or the sender of a message, first.
    """

    kind: CollectiveKind
    size_bytes: Fraction
    ranks: tuple[int, ...]

    @property
    def part_bytes(self) -> Fraction:
        """Size of one rank's part."""
        late = self.kind is CollectiveKind.LATE_ALL_REDUCE
        return self.size_bytes / (len(self.ranks) - 1 if late else len(self.ranks))


def best_bound(instance: Instance, *, flow: bool = False) -> Bound:
    """The largest of the bounds of this module that need no search.

    These are latency and every single rank, whose links have their latency, for an all-reduce all ranks together, and
    for an all-to-all links that all have the length 1.

    Parameters
    ----------
    instance : Instance
        A network and a collective.
    flow : bool
        Whether the bound is of the flow time of trees, which has no latency.

    Raises
    ------
    InputError
        If the instance has no explicit network or no demand, or data cannot reach a rank that needs it.
    """
    if instance.also:  # each of several collectives takes its time also without the others
        parts = (best_bound(instance.of_one(demand), flow=flow) for demand in instance.demands)
        return max(parts, key=itemgetter(0))
    latency: Bound = latency_bound(instance)  # also rejects networks in which data cannot reach a rank
    found: list[Bound] = [rank_bound(instance)] if flow else [latency, rank_bound(instance, late=True)]
    kind = group_of(instance).kind
    if kind is CollectiveKind.ALL_REDUCE:
        found.append(partition_bound(instance, [(node,) for node in instance.topology.rank_nodes]))
    elif kind is CollectiveKind.ALL_TO_ALL:
        found.append(length_bound(instance, [1] * len(instance.topology.links)))
    return max(found, key=itemgetter(0))


def cut_bound(instance: Instance, nodes: Iterable[int]) -> tuple[Fraction, CutCertificate]:
    """Bytes that must leave a set of nodes over the bandwidth of the links that leave it.

    Parameters
    ----------
    instance : Instance
        A network and a collective.
    nodes : iterable of int
        Positions of the nodes in the topology.
    """
    topology, group = instance.topology, group_of(instance)
    inside = set(nodes)
    members = [topology.rank_nodes[rank] in inside for rank in group.ranks]
    leaving = bytes_leaving(group, sum(members), root_inside=members[0])
    rate = _rate(topology, lambda a, b: a in inside and b not in inside)
    return _seconds(leaving, rate, "these nodes"), CutCertificate(tuple(sorted(inside)))


def rank_bound(instance: Instance, *, late: bool = False) -> tuple[Fraction, CutCertificate]:
    """The largest bound of the egress or ingress of a single rank.

    Parameters
    ----------
    instance : Instance
        A network and a collective.
    late : bool
        Whether the latency of the rank's links counts, as it does for all but flow times.
    """
    topology, group = instance.topology, group_of(instance)
    wires, leaving, entering = _wires(topology, late=late)
    count = len(group.ranks)
    known: dict[tuple[Fraction, tuple[int, ...]], Fraction] = {}

    def seconds(size_bytes: Fraction, links: list[int], whose: str) -> Fraction:
        key = size_bytes, tuple(sorted(links))
        if key not in known:
            if size_bytes and not links:
                raise InputError(f"data must leave {whose}, but no link does", place="network.links")
            known[key] = arrived(size_bytes, [wires[link] for link in links]) if size_bytes else Fraction(0)
        return known[key]

    best = Fraction(0), group.ranks[0], True
    for position, rank in enumerate(group.ranks):
        node, is_root = topology.rank_nodes[rank], position == 0
        out = seconds(bytes_leaving(group, 1, root_inside=is_root), leaving[node], f"rank {rank}")
        come = bytes_leaving(group, count - 1, root_inside=not is_root)
        into = seconds(come, entering[node], f"all ranks but {rank}")
        best = max(best, (out, rank, True), (into, rank, False), key=itemgetter(0))
    found, rank, egress = best
    node = topology.rank_nodes[rank]
    others = tuple(n for n in range(len(topology.nodes)) if n != node)
    has_latency = any(wires[link][0] for link in (leaving if egress else entering)[node])
    return found, CutCertificate((node,) if egress else others, has_latency)


def _wires(topology: Topology, *, late: bool) -> tuple[list[Wire], list[list[int]], list[list[int]]]:
    """Kinds of links, and those of the links out of and into every node."""
    kinds: dict[Wire, int] = {}
    leaving, entering = ([list[int]() for _ in topology.nodes] for _ in range(2))
    for link, (a, b) in zip(topology.links, topology.link_ends, strict=True):
        kind = kinds.setdefault((link.latency_s if late else Fraction(0), link.bandwidth_Bps), len(kinds))
        leaving[a].append(kind)
        entering[b].append(kind)
    return list(kinds), leaving, entering


def arrived(size_bytes: Fraction, wires: Iterable[Wire]) -> Fraction:
    """When so many bytes can have arrived over links at the earliest: the least T with ``sum b max(0, T - a)`` of them."""
    rate, best = Fraction(0), None
    for latency_s, bandwidth_Bps in sorted(wires):
        if best is not None and best <= latency_s:
            break
        rate += bandwidth_Bps
        size_bytes += bandwidth_Bps * latency_s
        best = size_bytes / rate
    return best or Fraction(0)


def partition_bound(instance: Instance, parts: Sequence[Iterable[int]]) -> tuple[Fraction, PartitionCertificate]:
    """Bound an all-reduce by the links into disjoint sets of nodes, see :class:`~cwb.core.bounds.PartitionCertificate`.

    Parameters
    ----------
    instance : Instance
        A network and an all-reduce.
    parts : sequence of iterable of int
        Positions of the nodes of each set in the topology. Nodes in none of them are switches.

    Raises
    ------
    InputError
        If the collective is another one, the sets overlap, or a compute node is in none.
    """
    topology, group = instance.topology, group_of(instance)
    if group.kind is not CollectiveKind.ALL_REDUCE:
        raise InputError("expected an all_reduce", place="collective")
    sets = tuple(tuple(sorted(part)) for part in parts)
    part_of = {node: index for index, part in enumerate(sets) for node in part}
    if len(part_of) < sum(map(len, sets)) or not part_of.keys() >= set(topology.rank_nodes):
        raise InputError("expected disjoint sets with every compute node in one of them", place="parts")
    needed = len({part_of[topology.rank_nodes[rank]] for rank in group.ranks})
    outside = [node for index, node in enumerate(topology.nodes) if index not in part_of]
    entering = _rate(topology, lambda a, b: b in part_of and part_of.get(a) != part_of[b])
    leaving = _rate(topology, lambda a, b: a in part_of and part_of[a] != part_of.get(b))
    return max(
        _seconds(crossings(needed, merged=merged) * group.size_bytes, rate, "these parts")
        for merged, rate in (
            (any(node.may_add for node in outside), entering),
            (any(node.copies for node in outside), leaving),
        )
    ), PartitionCertificate(sets)


def crossings(parts: int, *, merged: bool) -> int:
    """How often an all-reduce enters, or leaves, parts; fewer times where what crosses is merged outside of them."""
    return parts if merged and parts > 1 else 2 * (parts - 1)


def latency_bound(instance: Instance) -> tuple[Fraction, DistanceCertificate]:
    """The largest latency between two ranks of which one needs data of the other: the weighted diameter of the demand.

    Raises
    ------
    InputError
        If no path leads from one to the other.
    """
    topology, group = instance.topology, group_of(instance)
    scale = lcm(*(link.latency_s.denominator for link in topology.links)) if topology.links else 1
    latency = [int(link.latency_s * scale) for link in topology.links]
    common = gcd(*latency) or 1
    latency = [length // common for length in latency]
    nodes = np.array([topology.rank_nodes[rank] for rank in group.ranks])
    best = -1, 0, 0
    whole = (
        CollectiveKind.ALL_GATHER,
        CollectiveKind.REDUCE_SCATTER,
        CollectiveKind.ALL_REDUCE,
        CollectiveKind.LATE_ALL_REDUCE,
        CollectiveKind.ALL_TO_ALL,
    )
    backwards = group.kind in (CollectiveKind.REDUCE, CollectiveKind.GATHER)
    for first, far in _blocks(
        topology, latency, nodes, nodes if group.kind in whole else nodes[:1], backwards=backwards
    ):
        row, column = np.unravel_index(int(far.argmax()), far.shape)
        best = max(
            best, (int(far[row, column]), group.ranks[first + int(row)], group.ranks[int(column)]), key=itemgetter(0)
        )
    length, near, other = best
    return length * Fraction(common, scale), DistanceCertificate(*((other, near) if backwards else (near, other)))


def length_bound(instance: Instance, lengths: Sequence[int]) -> tuple[Fraction, LengthCertificate]:
    """Bound an all-to-all by lengths of links, see :class:`~cwb.core.bounds.LengthCertificate`.

    Parameters
    ----------
    instance : Instance
        A network and an all-to-all.
    lengths : sequence of int
        One for every link, at least 0 and not all 0.

    Raises
    ------
    InputError
        If the collective is another one, a rank cannot be reached, or there are no such lengths.
    """
    topology, group = instance.topology, group_of(instance)
    if group.kind is not CollectiveKind.ALL_TO_ALL:
        raise InputError("expected an all_to_all", place="collective")
    if len(lengths) != len(topology.links) or min(lengths, default=0) < 0 or not any(lengths):
        raise InputError("expected a length for every link, at least 0 and not all 0", place="lengths")
    nodes = np.array([topology.rank_nodes[rank] for rank in group.ranks])
    total = sum(sum(far.astype(np.int64).ravel().tolist()) for _, far in _blocks(topology, lengths, nodes, nodes))
    sizes = (length * link.bandwidth_Bps for length, link in zip(lengths, topology.links, strict=True))
    return group.part_bytes * total / sum(sizes, Fraction(0)), LengthCertificate(tuple(lengths))


def bytes_leaving(group: DemandGroup, inside: int, *, root_inside: bool) -> Fraction:
    """Bytes that must leave a set of nodes with so many ranks of the group: what only they have and others need.

    Parameters
    ----------
    group : DemandGroup
        The collective.
    inside : int
        Number of the group's ranks in the set.
    root_inside : bool
        Whether the root or late rank, the first one, is one of them.
    """
    outside = len(group.ranks) - inside
    if not inside or not outside:
        return Fraction(0)
    match group.kind:
        case CollectiveKind.ALL_GATHER:
            parts = inside
        case CollectiveKind.REDUCE_SCATTER:
            parts = outside
        case CollectiveKind.ALL_TO_ALL:
            parts = inside * outside
        case CollectiveKind.ALL_REDUCE:
            parts = len(group.ranks)
        case CollectiveKind.LATE_ALL_REDUCE:
            parts = len(group.ranks) - 1 if root_inside else inside
        case CollectiveKind.BROADCAST | CollectiveKind.POINT_TO_POINT:
            parts = len(group.ranks) if root_inside else 0
        case CollectiveKind.SCATTER:
            parts = outside if root_inside else 0
        case CollectiveKind.REDUCE:
            parts = 0 if root_inside else len(group.ranks)
        case CollectiveKind.GATHER:
            parts = 0 if root_inside else inside
    return parts * group.part_bytes


def link_distances(
    topology: Topology, lengths: Sequence[int], sources: NDArray[np.int64], *, backwards: bool = False
) -> NDArray[np.float64]:
    """Distances between the nodes of a topology whose links have these lengths.

    :func:`~cwb.algorithms.graphs.distances.distances`.
    """
    tail, head = np.array(topology.link_ends, dtype=np.int64).reshape(-1, 2).T
    return distances(len(topology.nodes), tail, head, lengths, sources, backwards=backwards)


def _blocks(
    topology: Topology,
    lengths: Sequence[int],
    nodes: NDArray[np.int64],
    sources: NDArray[np.int64],
    *,
    backwards: bool = False,
) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Distances from some nodes, block by block, to all that need their data.

    With the position of the block's first one.
    """
    for first in range(0, len(sources), _BLOCK):
        far = link_distances(topology, lengths, sources[first : first + _BLOCK], backwards=backwards)[:, nodes]
        if np.isinf(far).any():
            raise InputError("no path leads from a rank to one that needs its data", place="network.links")
        yield first, far


def group_of(instance: Instance) -> DemandGroup:
    """What an instance demands.

    Raises
    ------
    InputError
        If it demands nothing, or of fewer than two ranks.
    """
    if instance.demand is None:
        raise InputError("expected a collective", place="collective")
    ranks = tuple(range(instance.npus)) if instance.demand.ranks is None else instance.demand.ranks
    if len(ranks) < 2:
        raise InputError("a collective needs at least two ranks", place="collective.ranks")
    return DemandGroup(instance.demand.collective, instance.demand.size_bytes, ranks)


def _rate(topology: Topology, counts: Callable[[int, int], bool]) -> Fraction:
    """Bandwidth of all links whose two nodes count."""
    ends = zip(topology.links, topology.link_ends, strict=True)
    return sum((link.bandwidth_Bps for link, (a, b) in ends if counts(a, b)), Fraction(0))


def _seconds(size_bytes: Fraction, rate_Bps: Fraction, whose: str) -> Fraction:
    """Time that the bytes take at the rate."""
    if size_bytes and not rate_Bps:
        raise InputError(f"data must leave {whose}, but no link does", place="network.links")
    return size_bytes / rate_Bps if size_bytes else Fraction(0)
