"""Exact lower bounds on the time of one or several collectives on a network, with checkable certificates.

Their proofs are on the page docs/schedules/bounds.md; the verifier recomputes them from the certificate alone.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import isinf
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from ...core.bounds import Certificate, CutCertificate, DistanceCertificate, LengthCertificate, PartitionCertificate
from ...core.collective import Collective, Pieces, conditions
from ...core.errors import InputError
from ...core.instance import Instance
from ...core.schedule import Bools, Ints
from ...core.topology import Topology
from ...core.trees import link_columns
from ...core.units import common_unit
from ..graphs.distances import distances

Bound = tuple[Fraction, Certificate]  #: a bound in seconds and what proves it
Wire = tuple[Fraction, Fraction]  #: latency and bandwidth of a link
_BLOCK = 256  #: sources whose distances are computed at once
_EFFORT = 200_000  #: sets times collectives that are looked at


@dataclass(frozen=True)
class DemandGroup:
    """Demand of one collective on its ranks."""

    kind: Collective
    size_bytes: Fraction
    #: the group; first the root of a broadcast, reduce, gather or scatter, the late rank, or the sender of a message
    ranks: tuple[int, ...]

    @property
    def part_bytes(self) -> Fraction:
        """Size of one piece of the collective's data."""
        return self.size_bytes / self.kind.parts_of(len(self.ranks))


def best_bound(instance: Instance, *, flow: bool = False, starts: Ints | None = None) -> Bound:
    """Return the largest of the bounds of this module that need no search.

    These are latency; every single rank, with the latency of its links; for an all-reduce all ranks together; and for
    an all-to-all links of length 1. ``flow`` bounds the flow time of trees, which has no latency. If ranks of equal
    orbits are alike, ``starts`` are positions of one each, which are looked at alone. Raise InputError without an
    explicit network or a demand, or if data cannot reach a rank that needs it.
    """
    if instance.also:  # each of several collectives takes its time also without the others
        parts = [best_bound(instance.with_single_demand(demand), flow=flow) for demand in instance.demands]
        if all(demand.part_of is not None for demand in instance.demands):
            parts.append(rank_bound(instance, late=not flow))
        return max(parts, key=itemgetter(0))
    latency: Bound = latency_bound(instance, starts)  # also rejects networks in which data cannot reach a rank
    alone = rank_bound(instance, late=not flow, starts=starts)
    bounds: list[Bound] = [alone] if flow else [latency, alone]
    kind = group_of(instance).kind
    if kind is Collective.ALL_REDUCE:
        bounds.append(partition_bound(instance, [(node,) for node in instance.topology.rank_nodes]))
    elif kind is Collective.ALL_TO_ALL:
        bounds.append(length_bound(instance, [1] * len(instance.topology.links), starts))
    return max(bounds, key=itemgetter(0))


def cut_bound(instance: Instance, nodes: Iterable[int]) -> tuple[Fraction, CutCertificate]:
    """Bound the time by the bytes that must leave nodes, by position, over their outgoing bandwidth."""
    topology, group, inside = instance.topology, group_of(instance), set(nodes)
    leaving = bytes_leaving(group, [topology.rank_nodes[rank] in inside for rank in group.ranks])
    seconds = _seconds(leaving, topology, lambda a, b: a in inside and b not in inside, "these nodes")
    return seconds, CutCertificate(tuple(sorted(inside)))


def rank_bound(
    instance: Instance, *, late: bool = False, starts: Ints | None = None
) -> tuple[Fraction, CutCertificate]:
    """Return the largest egress or ingress bound of a rank in all collectives, if ``late`` with its latency.

    ``starts`` are the positions that are looked at; all by default.
    """
    topology, first = instance.topology, group_of(instance).ranks[0]
    wires, leaving, entering = _wires(topology, late=late)
    times: dict[tuple[Fraction, tuple[int, ...]], Fraction] = {}

    def seconds(size_bytes: Fraction, links: list[int], whose: str) -> Fraction:
        key = size_bytes, tuple(sorted(links))
        if key not in times:
            if size_bytes and not links:
                raise InputError(f"data must leave {whose}, but no link does", place="network.links")
            times[key] = earliest_arrival(size_bytes, [wires[link] for link in links]) if size_bytes else Fraction(0)
        return times[key]

    out_bytes, in_bytes = defaultdict[int, Fraction](Fraction), defaultdict[int, Fraction](Fraction)
    for demand in instance.demands:
        group = group_of(instance.with_single_demand(demand))
        for position in range(len(group.ranks)) if starts is None else starts.tolist():
            rank = group.ranks[position]
            out_bytes[rank] += _bytes_alone(group, position)
            in_bytes[rank] += _bytes_alone(group, position, others=True)
    best = Fraction(0), first, True
    for rank in out_bytes:
        node = topology.rank_nodes[rank]
        out = seconds(out_bytes[rank], leaving[node], f"rank {rank}")
        into = seconds(in_bytes[rank], entering[node], f"all ranks but {rank}")
        best = max(best, (out, rank, True), (into, rank, False), key=itemgetter(0))
    largest, rank, egress = best
    node = topology.rank_nodes[rank]
    others = tuple(n for n in range(len(topology.nodes)) if n != node)
    has_latency = any(wires[link][0] for link in (leaving if egress else entering)[node])
    return largest, CutCertificate((node,) if egress else others, has_latency)


def _wires(topology: Topology, *, late: bool) -> tuple[list[Wire], list[list[int]], list[list[int]]]:
    """Return the kinds of links, and those of the links out of and into every node."""
    kinds: dict[Wire, int] = {}
    leaving, entering = ([list[int]() for _ in topology.nodes] for _ in range(2))
    for link, (a, b) in zip(topology.links, topology.link_ends, strict=True):
        kind = kinds.setdefault((link.latency_s if late else Fraction(0), link.bandwidth_Bps), len(kinds))
        leaving[a].append(kind)
        entering[b].append(kind)
    return list(kinds), leaving, entering


def earliest_arrival(size_bytes: Fraction, wires: Iterable[Wire]) -> Fraction:
    """Return the earliest time for ``size_bytes`` over the links: the least T of ``sum b max(0, T - a)``."""
    rate, best = Fraction(0), None
    for latency_s, bandwidth_Bps in sorted(wires):
        if best is not None and best <= latency_s:
            break
        rate += bandwidth_Bps
        size_bytes += bandwidth_Bps * latency_s
        best = size_bytes / rate
    return best or Fraction(0)


def partition_bound(instance: Instance, parts: Sequence[Iterable[int]]) -> tuple[Fraction, PartitionCertificate]:
    """Bound an all-reduce by the links into disjoint sets of nodes (:class:`~cwb.core.bounds.PartitionCertificate`)."""
    topology, group = instance.topology, group_of(instance)
    if group.kind is not Collective.ALL_REDUCE:
        raise InputError("expected an all_reduce", place="collective")
    sets = tuple(tuple(sorted(part)) for part in parts)
    part_of = {node: index for index, part in enumerate(sets) for node in part}
    if len(part_of) < sum(map(len, sets)) or not part_of.keys() >= set(topology.rank_nodes):
        raise InputError("expected disjoint sets with every compute node in one of them", place="parts")
    count = len({part_of[topology.rank_nodes[rank]] for rank in group.ranks})
    outside = [node for index, node in enumerate(topology.nodes) if index not in part_of]
    into = crossings(count, merged=any(node.may_add for node in outside)) * group.size_bytes
    out = crossings(count, merged=any(node.copies for node in outside)) * group.size_bytes
    return max(
        _seconds(into, topology, lambda a, b: b in part_of and part_of.get(a) != part_of[b], "these parts"),
        _seconds(out, topology, lambda a, b: a in part_of and part_of[a] != part_of.get(b), "these parts"),
    ), PartitionCertificate(sets)


def crossings(parts: int, *, merged: bool) -> int:
    """Count the times an all-reduce enters, or leaves, parts; fewer if data is merged outside of them."""
    return parts if merged and parts > 1 else 2 * (parts - 1)


def latency_bound(instance: Instance, starts: Ints | None = None) -> tuple[Fraction, DistanceCertificate]:
    """Return the largest latency from a rank to a receiver of its data, the demand's weighted diameter.

    Of a collective whose ranks are alike, ``starts`` are the positions that data leaves; all by default.
    """
    topology, group = instance.topology, group_of(instance)
    unit_s = common_unit(link.latency_s for link in topology.links) or Fraction(1)
    latency = [int(link.latency_s / unit_s) for link in topology.links]
    nodes = np.array([topology.rank_nodes[rank] for rank in group.ranks])
    travels = _Travels(group.kind, len(group.ranks))
    sources, targets = travels.ends(0) if starts is None else starts, travels.ends(1)
    backwards = len(targets) < len(sources)
    starts = targets if backwards else sources
    best = 0, group.ranks[0], group.ranks[0]
    for first, far in _blocks(topology, latency, nodes, starts, travels, backwards=backwards):
        row, column = np.unravel_index(int(far.argmax()), far.shape)
        start = group.ranks[int(starts[first + int(row)])]
        best = max(best, (int(far[row, column]), start, group.ranks[int(column)]), key=itemgetter(0))
    length, near, other = best
    return length * unit_s, DistanceCertificate(*((other, near) if backwards else (near, other)))


def length_bound(
    instance: Instance, lengths: Sequence[int], starts: Ints | None = None
) -> tuple[Fraction, LengthCertificate]:
    """Bound an all-to-all by lengths of links, see :class:`~cwb.core.bounds.LengthCertificate`.

    If ranks of equal orbits are alike, ``starts`` are positions of one each; all by default.
    """
    topology, group = instance.topology, group_of(instance)
    if group.kind is not Collective.ALL_TO_ALL:
        raise InputError("expected an all_to_all", place="collective")
    if len(lengths) != len(topology.links) or min(lengths, default=0) < 0 or not any(lengths):
        raise InputError("expected a length for every link, at least 0 and not all 0", place="lengths")
    nodes = np.array([topology.rank_nodes[rank] for rank in group.ranks])
    travels = _Travels(group.kind, len(nodes))
    starts = travels.ends(0) if starts is None else starts
    blocks = _blocks(topology, lengths, nodes, starts, travels)
    total = sum(sum(far.astype(np.int64).ravel().tolist()) for _, far in blocks) * len(nodes) // len(starts)
    sizes = (length * link.bandwidth_Bps for length, link in zip(lengths, topology.links, strict=True))
    return group.part_bytes * total / sum(sizes, Fraction(0)), LengthCertificate(tuple(lengths))


def bytes_leaving(group: DemandGroup, inside: Sequence[bool] | Bools) -> Fraction:
    """Return the bytes that must leave the ranks ``inside``: data that only they hold, or sums, that others need."""
    members, kind = np.asarray(inside, dtype=bool), group.kind
    if not kind.alike:
        return _leaving(kind, members) * group.part_bytes
    count = int(np.count_nonzero(members))
    return _leaving_by_number(kind, len(members), count, first=bool(members[0])) * group.part_bytes


def _bytes_alone(group: DemandGroup, position: int, *, others: bool = False) -> Fraction:
    """Return the bytes that must leave one rank of the group, or all others."""
    count = len(group.ranks)
    if group.kind.alike:
        number, first = (count - 1 if others else 1), (position == 0) is not others
        return _leaving_by_number(group.kind, count, number, first=first) * group.part_bytes
    return bytes_leaving(group, (np.arange(count) == position) ^ others)


@lru_cache(maxsize=4096)
def _leaving_by_number(kind: Collective, ranks: int, count: int, *, first: bool) -> int:
    """Count the pieces that leave ``count`` ranks, among them the first one or not."""
    if kind is Collective.ALL_TO_ALL:  # a piece for each of n^2 pairs
        return count * (ranks - count)
    members = np.zeros(ranks, dtype=bool)
    members[:count] = True
    return _leaving(kind, members if first else members[::-1])


def _leaving(kind: Collective, members: Bools) -> int:
    pieces = _pieces(kind, len(members))
    some = np.array([members[list(group)].any() for group in pieces.groups])
    every = np.array([members[list(group)].all() for group in pieces.groups])
    sources = some if kind.sums else every
    return int(np.count_nonzero(sources[pieces.held_by] & ~every[pieces.needed_by]))


@lru_cache(maxsize=2)
def _pieces(kind: Collective, ranks: int) -> Pieces:
    pieces = kind.pieces_of(ranks)
    return replace(pieces, held_by=np.asarray(pieces.held_by), needed_by=np.asarray(pieces.needed_by))


class _Travels:
    """Required transfers: from the only position with the data, or a contributor, to its receivers."""

    def __init__(self, kind: Collective, ranks: int) -> None:
        self.ranks, self.everywhere = ranks, kind.alike and not kind.rooted
        if self.everywhere:
            return
        pieces = _pieces(kind, ranks)
        groups = [np.array(group) for group in pieces.groups]
        size = np.array([len(group) for group in groups])
        first = np.array([group[0] for group in groups])
        holders, receivers = pieces.held_by, pieces.needed_by
        single = (size[holders] == 1) & (size[receivers] == 1)
        self.pairs = first[holders[single]], first[receivers[single]]
        others = dict.fromkeys(zip(holders[~single].tolist(), receivers[~single].tolist(), strict=True))
        # What several ranks have may come from any of them.
        self.blocks = [(groups[h], groups[n]) for h, n in others if kind.sums or size[h] == 1]

    def ends(self, side: int) -> Ints:
        """Return the positions where journeys begin (side 0) or end (1)."""
        if self.everywhere:
            return np.arange(self.ranks)
        mask = np.zeros(self.ranks, dtype=bool)
        mask[self.pairs[side]] = True
        for group in {id(block[side]): block[side] for block in self.blocks}.values():
            mask[group] = True
        return np.flatnonzero(mask)

    def rows(self, starts: Ints, *, backwards: bool) -> Bools:
        """Return a mask of the journeys from each start to each position, or backwards, none to itself."""
        mask = np.zeros((len(starts), self.ranks), dtype=bool)
        row = np.full(self.ranks, -1)
        row[starts] = np.arange(len(starts))
        source, target = self.pairs[::-1] if backwards else self.pairs
        inside = row[source] >= 0
        mask[row[source[inside]], target[inside]] = True
        for source, target in (block[::-1] if backwards else block for block in self.blocks):
            rows = row[source]
            mask[np.ix_(rows[rows >= 0], target)] = True
        mask[np.arange(len(starts)), starts] = False
        return mask


def link_distances(
    topology: Topology, lengths: Sequence[int], sources: NDArray[np.int64], *, backwards: bool = False
) -> NDArray[np.float64]:
    """Return :func:`~cwb.algorithms.graphs.distances.distances` of nodes under the given lengths of the links."""
    return distances(len(topology.nodes), *topology.end_arrays, lengths, sources, backwards=backwards)


def _blocks(
    topology: Topology, lengths: Sequence[int], nodes: Ints, starts: Ints, travels: _Travels, *, backwards: bool = False
) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Yield blocks of starts, by their first, with distances to positions that data travels to, and 0 to others."""
    for first in range(0, len(starts), _BLOCK):
        block = starts[first : first + _BLOCK]
        far = link_distances(topology, lengths, nodes[block], backwards=backwards)[:, nodes]
        if not travels.everywhere:
            far = np.where(travels.rows(block, backwards=backwards), far, 0)
        if np.isinf(far).any():
            raise InputError("no path leads from a rank to one that needs its data", place="network.links")
        yield first, far


def group_of(instance: Instance) -> DemandGroup:
    """Return the demand of the instance's collective; raise InputError if there is none, or fewer than two ranks."""
    if instance.demand is None:
        raise InputError("expected a collective", place="collective")
    ranks = instance.demand.group(instance.npus)
    if len(ranks) < 2:
        raise InputError("a collective needs at least two ranks", place="collective.ranks")
    return DemandGroup(instance.demand.collective, instance.demand.size_bytes, ranks)


def _seconds(size_bytes: Fraction, topology: Topology, counts: Callable[[int, int], bool], whose: str) -> Fraction:
    """Return the time for some bytes at the total bandwidth of the links whose end nodes satisfy ``counts``."""
    ends = zip(topology.links, topology.link_ends, strict=True)
    rate_Bps = sum((link.bandwidth_Bps for link, (a, b) in ends if counts(a, b)), Fraction(0))
    if size_bytes and not rate_Bps:
        raise InputError(f"data must leave {whose}, but no link does", place="network.links")
    return size_bytes / rate_Bps if size_bytes else Fraction(0)


def groups_of(instance: Instance) -> list[DemandGroup]:
    """List the demands of all collectives of an instance."""
    return [group_of(instance.with_single_demand(demand)) for demand in instance.demands]


def candidate_sets(topology: Topology, groups: Sequence[DemandGroup], sides: Sequence[int] = ()) -> list[Bools]:
    """List node sets that are likely bottlenecks for outgoing data, and their complements.

    They are single ranks, the first k nodes, the ranks of one group, nodes within some hops of a rank, or before a
    plane of a grid with ``sides`` and row-major node numbers, the last side first.
    """
    nodes = len(topology.nodes)
    number = np.arange(nodes)
    members = sorted({topology.rank_nodes[rank] for group in groups for rank in group.ranks})
    sets: list[Bools] = [number == node for node in members]
    stride = 1
    for side in sides:
        sets += [number // stride % side < k for k in range(1, side)]
        stride *= side
    sets += [np.isin(number, [topology.rank_nodes[rank] for rank in group.ranks]) for group in groups]
    for node in members[:: max(1, len(members) // 16)]:
        far = link_distances(topology, [1] * len(topology.links), np.array([node]))[0]
        sets += [far <= k for k in range(1, int(far[np.isfinite(far)].max()))]
    sets += [number < k for k in range(2, nodes - 1)]
    most = max(len(sets[: len(members)]), _EFFORT // max(1, len(groups)) // 2)
    return [part for inside in sets[:most] for part in (inside, ~inside)]


def joint_cut(
    instance: Instance, groups: Sequence[DemandGroup], sets: Iterable[Bools]
) -> tuple[Fraction, CutCertificate] | None:
    """Return the largest cut bound of the given sets; None if no data must leave them.

    It is the earliest time by which all bytes that must leave a set can have arrived outside
    (:class:`~cwb.core.bounds.CutCertificate`). Raise InputError if data must leave a set that no link leaves.
    """
    topology = instance.topology
    ends = np.array(topology.link_ends, dtype=np.int64).reshape(-1, 2)
    rates, delays = link_columns(topology)
    order = np.argsort(delays, kind="stable")
    nodes = [np.array([topology.rank_nodes[rank] for rank in group.ranks]) for group in groups]
    best: tuple[float, Bools] | None = None
    sizes: dict[tuple[int, bytes], float] = {}

    def leaving_bytes(number: int, inside: Bools) -> float:
        key = number, inside.tobytes()
        if key not in sizes:
            sizes[key] = float(bytes_leaving(groups[number], inside))
        return sizes[key]

    for inside in sets:
        leaving = sum(leaving_bytes(number, inside[at]) for number, at in enumerate(nodes))
        if not leaving:
            continue
        cut = order[inside[ends[order, 0]] & ~inside[ends[order, 1]]]
        if not cut.size:
            raise InputError("data must leave a part of the network, but no link does", place="network.links")
        seconds = float(((leaving + np.cumsum(rates[cut] * delays[cut])) / np.cumsum(rates[cut])).min())
        if best is None or seconds > best[0]:
            best = seconds, inside
    if best is None:
        return None
    _, inside = best
    crossing = sum((bytes_leaving(group, inside[at]) for group, at in zip(groups, nodes, strict=True)), Fraction(0))
    leaving_links = [topology.links[link] for link in np.flatnonzero(inside[ends[:, 0]] & ~inside[ends[:, 1]]).tolist()]
    late = any(link.latency_s for link in leaving_links)
    least_s = earliest_arrival(crossing, [(link.latency_s, link.bandwidth_Bps) for link in leaving_links])
    return least_s, CutCertificate(tuple(np.flatnonzero(inside).tolist()), late)


def pairs_of(instance: Instance) -> tuple[Ints, Ints, list[Fraction]]:
    """List source, target and bytes, over all collectives, of data that only one rank has and only one needs."""
    source, target, sizes = list[int](), list[int](), list[Fraction]()
    for demand in instance.demands:
        pieces = conditions(demand, instance.npus)
        first = np.array([group[0] for group in pieces.groups])
        single = np.array([len(group) == 1 for group in pieces.groups])
        alone = single[pieces.held_by] & single[pieces.needed_by]
        source += first[pieces.held_by[alone]].tolist()
        target += first[pieces.needed_by[alone]].tolist()
        sizes += [pieces.size] * int(np.count_nonzero(alone))
    return np.array(source, dtype=np.int64), np.array(target, dtype=np.int64), sizes


def joint_length(
    instance: Instance, pairs: tuple[Ints, Ints, list[Fraction]], lengths: Sequence[int], *, late: bool = False
) -> tuple[Fraction, LengthCertificate]:
    """Bound the time by the sum of bytes times distances (:func:`pairs_of`) over that of bandwidths times lengths.

    If ``late``, latencies count too (:class:`~cwb.core.bounds.LengthCertificate`).
    """
    topology = instance.topology
    nodes, (source, target, sizes) = np.array(topology.rank_nodes, dtype=np.int64), pairs
    kinds = {size: index for index, size in enumerate(dict.fromkeys(sizes))}
    kind = np.array([kinds[size] for size in sizes], dtype=np.int64)
    travelled = [0] * len(kinds)
    order = np.argsort(source, kind="stable")
    senders, first = np.unique(source[order], return_index=True)
    for begin in range(0, len(senders), _BLOCK):
        block = senders[begin : begin + _BLOCK]
        until = first[begin + _BLOCK] if begin + _BLOCK < len(senders) else len(order)
        rows = order[first[begin] : until]
        far: NDArray[np.float64] = link_distances(topology, lengths, nodes[block])[
            np.searchsorted(block, source[rows]), nodes[target[rows]]
        ]
        if np.isinf(far).any():
            raise InputError("no path leads from a rank to one that needs its data", place="network.links")
        for index in range(len(kinds)):
            travelled[index] += sum(far[kind[rows] == index].astype(np.int64).tolist())
    total = sum((size * travelled[index] for size, index in kinds.items()), Fraction(0))
    rates = [length * link.bandwidth_Bps for length, link in zip(lengths, topology.links, strict=True)]
    delays: Sequence[Fraction | None] = [Fraction(0)] * len(rates)
    if late:
        delays = _path_latencies(topology, nodes[senders], nodes[np.unique(target)])
    wires = defaultdict[Fraction, Fraction](Fraction)
    for delay, rate in zip(delays, rates, strict=True):
        if rate and delay is not None:
            wires[delay] += rate
    seconds = earliest_arrival(total, wires.items()) if total else Fraction(0)
    return seconds, LengthCertificate(tuple(lengths), late)


def _path_latencies(topology: Topology, sources: Ints, targets: Ints) -> Sequence[Fraction | None]:
    """Return the least latency of a path from a source over each link to a target, or None."""
    unit_s = common_unit(link.latency_s for link in topology.links) or Fraction(1)
    own = [int(link.latency_s / unit_s) for link in topology.links]
    tail, head = np.array(topology.link_ends, dtype=np.int64).T
    before = link_distances(topology, own, sources).min(axis=0)[tail]
    after = link_distances(topology, own, targets, backwards=True).min(axis=0)[head]
    ticks = (before + np.array(own) + after).tolist()
    return [None if isinf(late) else int(late) * unit_s for late in ticks]
