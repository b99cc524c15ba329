"""Lower bounds on several collectives at once, exact, with certificates.

Cuts that all of them cross, and lengths of links.

The bounds of :mod:`.schedule_bounds` are those of one collective. Here the bytes of all collectives that must leave a
set of nodes add up, and so do their bytes times distances. The verifier recomputes both from the certificate alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ...core.bounds import CutCertificate, LengthCertificate
from ...core.collective import CollectiveKind
from ...core.conditions import conditions
from ...core.errors import InputError
from ...core.instance import Instance
from ...core.schedule import Bools, Ints
from ...core.topology import Topology
from .schedule_bounds import DemandGroup, arrived, bytes_leaving, group_of, link_distances

#: Sets times collectives that are looked at.
_EFFORT = 200_000

#: Sources whose distances are computed at once.
_BLOCK = 256


def groups_of(instance: Instance) -> list[DemandGroup]:
    """List what all collectives of an instance demand."""
    return [group_of(instance.of_one(demand)) for demand in instance.demands]


def candidate_sets(topology: Topology, groups: Sequence[DemandGroup], sides: Sequence[int] = ()) -> list[Bools]:
    """List sets of nodes that data may find hard to leave.

    These are single ranks, the first k nodes, all ranks of one group, on a grid what lies before a plane, and what is
    within some hops of a rank; and the complements of all.

    Parameters
    ----------
    topology : Topology
        The network.
    groups : sequence of DemandGroup
        Collectives.
    sides : sequence of int
        Of a grid whose nodes are numbered row by row, the sides, the last one first; otherwise empty.
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
    """The largest bound by a set of nodes: when the bytes of all collectives that must leave it have arrived outside.

    Latency counts, see :class:`~cwb.core.bounds.CutCertificate`.

    Returns
    -------
    tuple or None
        None where nothing must leave any of the sets.

    Raises
    ------
    InputError
        If data must leave a set that no link leaves.
    """
    topology = instance.topology
    ends = np.array(topology.link_ends, dtype=np.int64).reshape(-1, 2)
    rates = np.array([float(link.bandwidth_Bps) for link in topology.links])
    delays = np.array([float(link.latency_s) for link in topology.links])
    order = np.argsort(delays, kind="stable")
    nodes = [np.array([topology.rank_nodes[rank] for rank in group.ranks]) for group in groups]
    best: tuple[float, Bools] | None = None
    known: dict[tuple[int, int, bool], float] = {}

    def leaving_bytes(number: int, inside: Bools) -> float:
        key = number, int(inside.sum()), bool(inside[0])
        if key not in known:
            known[key] = float(_leaving(groups[number], inside))
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
    inside = best[1]
    crossing = sum((_leaving(group, inside[at]) for group, at in zip(groups, nodes, strict=True)), Fraction(0))
    leaving_links = [topology.links[link] for link in np.flatnonzero(inside[ends[:, 0]] & ~inside[ends[:, 1]]).tolist()]
    late = any(link.latency_s for link in leaving_links)
    least_s = arrived(crossing, [(link.latency_s, link.bandwidth_Bps) for link in leaving_links])
    return least_s, CutCertificate(tuple(np.flatnonzero(inside).tolist()), late)


def _leaving(group: DemandGroup, inside: Bools) -> Fraction:
    return bytes_leaving(group, int(inside.sum()), root_inside=bool(inside[0]))


def pairs_of(instance: Instance) -> tuple[Ints, Ints, list[Fraction]]:
    """List what one rank alone has and one rank alone needs.

    Source, target and bytes of every pair, over all collectives.
    """
    source, target, sizes = list[int](), list[int](), list[Fraction]()
    for demand in instance.demands:
        group = group_of(instance.of_one(demand))
        if demand.collective is CollectiveKind.ALL_TO_ALL:
            part = group.part_bytes
            given = [(s, t, part) for s in group.ranks for t in group.ranks if s != t]
        else:
            bytes_of = conditions(demand, instance.npus).bytes_of.items()
            alone = ((held, needed, size) for (held, needed, _), size in bytes_of if len(held) == len(needed) == 1)
            given = [(held[0], needed[0], size) for held, needed, size in alone]
        source += [s for s, _, _ in given]
        target += [t for _, t, _ in given]
        sizes += [size for _, _, size in given]
    return np.array(source, dtype=np.int64), np.array(target, dtype=np.int64), sizes


def joint_length(
    instance: Instance, pairs: tuple[Ints, Ints, list[Fraction]], lengths: Sequence[int]
) -> tuple[Fraction, LengthCertificate]:
    """Bound by lengths of links: bytes times distances of all pairs, over bandwidth times length.

    Parameters
    ----------
    pairs : tuple
        Of :func:`pairs_of`.
    lengths : sequence of int
        One for every link, at least 0 and not all 0.

    Raises
    ------
    InputError
        If a rank cannot be reached.
    """
    topology = instance.topology
    nodes = np.array(topology.rank_nodes, dtype=np.int64)
    source, target, sizes = pairs
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
    room = zip(lengths, topology.links, strict=True)
    return total / sum((length * link.bandwidth_Bps for length, link in room), Fraction(0)), LengthCertificate(
        tuple(lengths)
    )
