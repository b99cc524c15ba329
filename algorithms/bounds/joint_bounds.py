"""Exact lower bounds on several concurrent collectives, with certificates.

Unlike :mod:`.schedule_bounds`, which bounds one collective, these add up, over all collectives, the bytes that must
cross a cut, and bytes times distances. The verifier recomputes both from the certificate alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ...core.bounds import CutCertificate, LengthCertificate
from ...core.collective import conditions
from ...core.errors import InputError
from ...core.instance import Instance
from ...core.schedule import Bools, Ints
from ...core.topology import Topology
from .schedule_bounds import DemandGroup, bytes_leaving, earliest_arrival, group_of, link_distances

_EFFORT = 200_000  #: sets times collectives that are looked at
_BLOCK = 256  #: sources whose distances are computed at once


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
    found: list[Bools] = [number == node for node in members]
    stride = 1
    for side in sides:
        found += [number // stride % side < k for k in range(1, side)]
        stride *= side
    found += [np.isin(number, [topology.rank_nodes[rank] for rank in group.ranks]) for group in groups]
    for node in members[:: max(1, len(members) // 16)]:
        far = link_distances(topology, [1] * len(topology.links), np.array([node]))[0]
        found += [far <= k for k in range(1, int(far[np.isfinite(far)].max()))]
    found += [number < k for k in range(2, nodes - 1)]
    most = max(len(found[: len(members)]), _EFFORT // max(1, len(groups)) // 2)
    return [part for chosen in found[:most] for part in (chosen, ~chosen)]


def joint_cut(
    instance: Instance, groups: Sequence[DemandGroup], sets: Iterable[Bools]
) -> tuple[Fraction, CutCertificate] | None:
    """Return the largest cut bound of the given sets; None if no data must leave them.

    It is the earliest time by which all bytes that must leave a set can have arrived outside
    (:class:`~cwb.core.bounds.CutCertificate`). Raise InputError if data must leave a set that no link leaves.
    """
    topology = instance.topology
    ends = np.array(topology.link_ends, dtype=np.int64).reshape(-1, 2)
    rates = np.array([float(link.bandwidth_Bps) for link in topology.links])
    delays = np.array([float(link.latency_s) for link in topology.links])
    order = np.argsort(delays, kind="stable")
    nodes = [np.array([topology.rank_nodes[rank] for rank in group.ranks]) for group in groups]
    best: tuple[float, Bools] | None = None
    known: dict[tuple[int, bytes], float] = {}

    def leaving_bytes(number: int, inside: Bools) -> float:
        key = number, inside.tobytes()
        if key not in known:
            known[key] = float(bytes_leaving(groups[number], inside))
        return known[key]

    for inside in sets:
        leaving = sum(leaving_bytes(number, inside[at]) for number, at in enumerate(nodes))
        if not leaving:
            continue
        chosen = order[inside[ends[order, 0]] & ~inside[ends[order, 1]]]
        if not chosen.size:
            raise InputError("data must leave a part of the network, but no link does", place="network.links")
        seconds = float(((leaving + np.cumsum(rates[chosen] * delays[chosen])) / np.cumsum(rates[chosen])).min())
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
        asked = conditions(demand, instance.npus)
        first = np.array([group[0] for group in asked.groups])
        single = np.array([len(group) == 1 for group in asked.groups])
        alone = single[asked.held] & single[asked.needed]
        source += first[asked.held[alone]].tolist()
        target += first[asked.needed[alone]].tolist()
        sizes += [asked.size] * int(np.count_nonzero(alone))
    return np.array(source, dtype=np.int64), np.array(target, dtype=np.int64), sizes


def joint_length(
    instance: Instance, pairs: tuple[Ints, Ints, list[Fraction]], lengths: Sequence[int]
) -> tuple[Fraction, LengthCertificate]:
    """Bound the time by the sum of bytes times distances (:func:`pairs_of`) over that of bandwidths times lengths."""
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
        chosen = order[first[begin] : until]
        far: NDArray[np.float64] = link_distances(topology, lengths, nodes[block])[
            np.searchsorted(block, source[chosen]), nodes[target[chosen]]
        ]
        if np.isinf(far).any():
            raise InputError("no path leads from a rank to one that needs its data", place="network.links")
        for index in range(len(kinds)):
            travelled[index] += sum(far[kind[chosen] == index].astype(np.int64).tolist())
    total = sum((size * travelled[index] for size, index in kinds.items()), Fraction(0))
    room = sum((length * e.bandwidth_Bps for length, e in zip(lengths, topology.links, strict=True)), Fraction(0))
    return total / room, LengthCertificate(tuple(lengths))
