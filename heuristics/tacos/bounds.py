"""Proved bounds on data into a rank or a set of ranks, over links busy for whole ticks (docs/methods/tacos.md).

Without switches every bound is one in ticks that the verifier recomputes (:class:`~cwb.core.bounds.EpochCut`,
:class:`~cwb.core.bounds.EpochPartition`); where ticks round times, bounds round them down, and so hold without ticks as
well. Through switches chunks may share links: there bytes over bandwidth count.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import ceil
from operator import itemgetter

import numpy as np

from ...algorithms.bounds.schedule_bounds import Bound, best_bound, cut_bound, link_distances
from ...algorithms.graphs.maxflow import Unreachable, worst_cut
from ...algorithms.graphs.network import Network, edges_by, exact_array
from ...algorithms.matching.network import RankNetwork
from ...core.bounds import Certificate, EpochCut, EpochPartition
from ...core.collective import Collective
from ...core.errors import InputError
from ...core.instance import Instance
from ...core.schedule import Bools, Ints
from ...core.topology import Topology
from .method import chunk_bytes, longest

_SINKS = 3  #: Ranks whose bound by distances is computed, those of the largest slot bounds first.
_MAX_CUT = 512  #: Ranks up to which the worst set is looked for.


def entry_ticks(releases: Sequence[Ints], ticks: Ints, need: int) -> int:
    """Return the ticks by which so many chunks can have arrived over links.

    The n-th chunk of a link starts not before its n-th release. ``releases`` has for every link the instants from which
    on one more chunk can start, in order; ``ticks`` are those for which a chunk occupies it.
    """
    arrivals: list[Ints] = []
    for release, tick in zip(releases, ticks.tolist(), strict=True):
        index = np.arange(len(release), dtype=np.int64)
        starts = np.maximum.accumulate(release - index * tick) + index * tick
        arrivals.append(starts + tick)
    every = np.concatenate(arrivals) if arrivals else np.empty(0, dtype=np.int64)
    if len(every) < need:
        raise InputError("no link delivers data that a rank needs", place="network.links")
    return int(np.partition(every, need - 1)[need - 1]) if need else 0


def slot_ticks(ticks: Ints, need: int) -> int:
    """Fewest ticks in which links that a chunk takes up for ``ticks`` each can bring so many chunks."""
    if not len(ticks):
        raise InputError("no link delivers data that a rank needs", place="network.links")
    if not ticks.all():
        return 0  # some take less than a tick
    low, high = 0, need * int(ticks.min())
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if int((middle // ticks).sum()) >= need else (middle + 1, high)
    return low


def half_ticks(arcs: RankNetwork, members: Bools, chunks: int) -> int:
    """Ticks that an all-gather over arcs takes at least: the largest slot bound of a member."""
    into = arcs.incoming
    return max(_slots(arcs.least[into.arc], into.first, members, (int(members.sum()) - 1) * chunks).values())


def bound_of(instance: Instance, arcs: RankNetwork, members: Bools) -> Bound:
    """Return the best bound on a collective and its certificate. The arcs are ignored for networks with switches."""
    topology, demand, timing = instance.topology, instance.demand, instance.timing
    assert demand is not None and timing is not None  # noqa: S101 (posed)
    if topology.switches:
        seconds, proof = _seconds(instance, topology, members)
        size = chunk_bytes(demand, instance.npus)
        parts = {part for link in topology.links for part in (size / link.bandwidth_Bps, link.latency_s)}
        if any(part % timing.epoch_s for part in parts):
            return seconds, proof
        return ceil(seconds / timing.epoch_s) * timing.epoch_s, proof  # schedules end at whole ticks
    chunks = demand.chunks
    bounds: list[tuple[int, Certificate]] = []
    if demand.collective is Collective.ALL_REDUCE:
        need = 2 * (int(members.sum()) - 1) * int(members.sum()) * chunks
        singles = tuple((node,) for node in range(len(topology.nodes)))
        bounds.append((slot_ticks(arcs.least, need), EpochPartition(singles)))
        need = int(members.sum()) * chunks
    else:
        need = (int(members.sum()) - 1) * chunks
    if demand.collective is not Collective.REDUCE_SCATTER:
        most, sums = longest(chunks * int(members.sum())), demand.collective is Collective.ALL_REDUCE
        bounds += _entering(topology, arcs, members, chunks, need, most, sums)
    if demand.collective is not Collective.ALL_GATHER:
        bounds += _leaving(arcs, members, need)
    if demand.collective is not Collective.ALL_REDUCE and not arcs.has_equal_arcs:
        bounds += _worst_set(topology, arcs, members, chunks, demand.collective)
    ticks, certificate = max(bounds, key=itemgetter(0))
    return ticks * timing.epoch_s, certificate


def _entering(
    topology: Topology, arcs: RankNetwork, members: Bools, chunks: int, need: int, most: int, sums: bool
) -> list[tuple[int, Certificate]]:
    """Return bounds on data into one rank; for the slowest ranks, also with distances of chunks."""
    into = arcs.incoming
    slots = _slots(arcs.least[into.arc], into.first, members, need)
    bounds: list[tuple[int, Certificate]] = []
    lengths = [most] * len(topology.links)  # of what is left out, no more than it takes
    for (link,), least in zip(arcs.paths, arcs.least.tolist(), strict=True):
        lengths[link] = least
    sinks = sorted(slots, key=lambda r: -slots[r])[:_SINKS]
    bounds += [(slots[rank], EpochCut((node := topology.rank_nodes[rank],), node)) for rank in sinks]
    if sums or sum(lengths) >= 2**53:
        return bounds  # a sum may be of parts from nearby; and distances are exact below that
    entries = [into.arc[into.first[rank] : into.first[rank + 1]] for rank in sinks]
    nodes = np.array(topology.rank_nodes, dtype=np.int64)
    far = link_distances(topology, lengths, nodes[arcs.tail[np.concatenate(entries)]], backwards=True)[:, nodes]
    far = np.minimum(far, 2.0**53)  # a rank outside of the group may be one that nothing reaches
    rows = np.split(far, np.cumsum([len(mine) for mine in entries])[:-1])
    for rank, mine, row in zip(sinks, entries, rows, strict=True):
        others = members.copy()
        others[rank] = False
        releases = [np.repeat(np.sort(each[others]).astype(np.int64), chunks) for each in row]
        node = topology.rank_nodes[rank]
        bounds.append((entry_ticks(releases, arcs.least[mine], need), EpochCut((node,), node)))
    return bounds


def _slots(ticks: Ints, first: Ints, members: Bools, need: int) -> dict[int, int]:
    """Slot bounds of all members, whose links' ticks are in order; those with the same links are computed once."""
    bound_of_ticks: dict[bytes, int] = {}
    bounds: dict[int, int] = {}
    for rank in np.flatnonzero(members).tolist():
        mine = np.sort(ticks[first[rank] : first[rank + 1]])
        if (key := mine.tobytes()) not in bound_of_ticks:
            bound_of_ticks[key] = slot_ticks(mine, need)
        bounds[rank] = bound_of_ticks[key]
    return bounds


def _leaving(arcs: RankNetwork, members: Bools, need: int) -> list[tuple[int, Certificate]]:
    """Return bounds on data out of one rank: parts of all sums but its own, or of all."""
    first, order = edges_by(arcs.tail, arcs.ranks)
    slots = _slots(arcs.least[order], first, members, need)
    rank = max(slots, key=lambda r: slots[r])
    return [(slots[rank], EpochCut(tuple(node for node in range(arcs.ranks) if node != rank)))]


def _worst_set(
    topology: Topology, arcs: RankNetwork, members: Bools, chunks: int, kind: Collective
) -> list[tuple[int, Certificate]]:
    """Return the bound of the worst set of ranks in whole chunks; for sums, the worst sender."""
    if arcs.ranks > _MAX_CUT:
        return []
    sums = kind is Collective.REDUCE_SCATTER
    tail, head = (arcs.head, arcs.tail) if sums else (arcs.tail, arcs.head)
    side = _bottleneck(arcs.ranks, tail, head, [Fraction(1, t) for t in arcs.ticks.tolist()], members)
    if side is None:
        return []
    inside = ~side if sums else side
    crossing = np.flatnonzero(inside[arcs.head] & ~inside[arcs.tail])
    need = int((members & (inside if sums else ~inside)).sum()) * chunks
    nodes = tuple(topology.rank_nodes[rank] for rank in np.flatnonzero(inside).tolist())
    return [(slot_ticks(arcs.least[crossing], need), EpochCut(nodes))]


def _bottleneck(nodes: int, tail: Ints, head: Ints, rates: Sequence[Fraction], members: Bools) -> Bools | None:
    """Return the set of nodes with the worst ratio of chunks outside to rate into it."""
    scale = int(np.lcm.reduce([rate.denominator for rate in rates], dtype=object))
    graph = Network.from_parallel_edges(nodes, tail, head, exact_array(int(rate * scale) for rate in rates))
    try:
        return worst_cut(graph, members.astype(np.int64), np.flatnonzero(members).astype(np.int64)).side
    except Unreachable:
        raise InputError("not every rank can be reached", place="network.links") from None


def _seconds(instance: Instance, topology: Topology, members: Bools) -> tuple[Fraction, Certificate]:
    """Return the bound of bytes over bandwidth, for single ranks and for the worst set."""
    bounds: list[Bound] = [best_bound(instance)]
    if len(topology.nodes) <= _MAX_CUT:
        ends = np.array(topology.link_ends, dtype=np.int64)
        members_at = np.zeros(len(topology.nodes), dtype=np.bool_)
        members_at[np.array(topology.rank_nodes)[members]] = True
        rates = [link.bandwidth_Bps for link in topology.links]
        into = instance.demands[0].collective is not Collective.REDUCE_SCATTER
        tail, head = (ends[:, 0], ends[:, 1]) if into else (ends[:, 1], ends[:, 0])
        side = _bottleneck(len(topology.nodes), tail.copy(), head.copy(), rates, members_at)
        if side is not None:
            bounds.append(cut_bound(instance, np.flatnonzero(~side if into else side).tolist()))
    return max(bounds, key=itemgetter(0))
