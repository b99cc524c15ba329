"""The problem: who has and who needs every chunk (section 6.4.1), on a network whose edges take whole ticks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import numpy as np

from ...algorithms.graphs.distances import distances
from ...algorithms.paths.reservations import NEVER, PathNetwork
from ...algorithms.paths.search import DistanceTables, Jobs
from ...core.budget import require_schedulable
from ...core.collective import Collective, Demand, conditions
from ...core.errors import InputError
from ...core.instance import Instance
from ...core.schedule import Chunks, Ints, offsets
from ...core.topology import NodeKind, Topology
from ...core.units import common_unit

#: A schedule with more sends than this is rejected before memory is taken for it; each takes some 60 bytes, three times
#: that while it is made.
MAX_SENDS = 40_000_000


@dataclass(frozen=True, eq=False)
class CommodityGroup:
    """Chunks of one demand with equal sizes and as many holders and receivers each, in columns of groups of ranks.

    Sizes are in bytes; ``holders`` and ``receivers`` have a row of sorted ranks for each chunk. If ``reduced``,
    contributions are summed; ``root`` is the rank at which a sum comes together, or that has the data.
    """

    size: Fraction
    holders: Ints
    receivers: Ints
    reduced: bool
    root: Ints


@dataclass(frozen=True, eq=False)
class PathProblem:
    """Jobs to schedule.

    ``sizes`` are those of chunks in bytes. ``sums`` go from every root to the contributors of its sum: scheduled
    backwards (section 6.4.5); ``copies`` from every holder or root to the receivers.
    """

    chunks: Chunks
    sizes: tuple[Fraction, ...]
    sums: Jobs
    copies: Jobs

    @property
    def units(self) -> tuple[int, ...]:
        """The different sizes in units."""
        return tuple(int(size / self.chunks.unit_bytes) for size in self.sizes)


def conditions_of(instance: Instance, topology: Topology) -> PathProblem:
    """List the conditions of all collectives of an instance. Ranks must exist, and the chunks fit into memory."""
    for index, demand in enumerate(instance.demands):
        place = f"also[{index - 1}].ranks" if index else "collective.ranks"
        for rank in demand.ranks or ():
            if not 0 <= rank < instance.npus:
                raise InputError(f"rank {rank}; expected compute nodes, 0 to {instance.npus - 1}", place=place)
    least = sum(_deliveries(demand, instance.npus) for demand in instance.demands)
    if least > MAX_SENDS:
        raise InputError(f"{least:,} sends at least; expected at most {MAX_SENDS:,}", place="collective.chunks")
    require_schedulable(least)
    parts = [part for demand in instance.demands for part in _parts(demand, instance.npus)]
    sizes = tuple(sorted({part.size for part in parts}))
    nodes = np.array(topology.rank_nodes, dtype=np.int64)
    sums = _jobs(parts, sizes, nodes, reduced=True)
    return PathProblem(_chunks(parts), sizes, sums, _jobs(parts, sizes, nodes, reduced=False))


def _deliveries(demand: Demand, npus: int) -> int:
    """Count the sends that a demand takes at least: one for every chunk and rank that gives or takes."""
    n, kind = len(demand.group(npus)), demand.collective
    everyone = (Collective.ALL_GATHER, Collective.REDUCE_SCATTER, Collective.ALL_TO_ALL)
    if kind is Collective.POINT_TO_POINT:
        return demand.chunks
    parts = 2 * n if kind is Collective.ALL_REDUCE else n if kind in everyone else 1
    return parts * (n - 1) * demand.chunks


def _parts(demand: Demand, npus: int) -> Iterator[CommodityGroup]:
    ranks = np.array(sorted(demand.group(npus)), dtype=np.int64)
    n, c = len(ranks), demand.chunks
    if demand.collective is Collective.ALL_TO_ALL:
        source, target = (ranks[index].ravel() for index in np.indices((n, n)))
        pairs = np.repeat(np.flatnonzero(source != target), c)
        source, target = source[pairs, None], target[pairs, None]
        yield CommodityGroup(demand.size_bytes / n / c, source, target, False, source[:, 0])
    elif demand.collective is Collective.ALL_REDUCE:
        everyone = np.tile(ranks, (n * c, 1))
        yield CommodityGroup(demand.size_bytes / n / c, everyone, everyone, True, np.repeat(ranks, c))
    else:
        for (holders, receivers, reduced), size in conditions(demand, npus).bytes_of.items():
            held_by, needed_by = (np.tile(np.array(group, dtype=np.int64), (c, 1)) for group in (holders, receivers))
            yield CommodityGroup(size / c, held_by, needed_by, reduced, (needed_by if reduced else held_by)[:, 0])


def _chunks(parts: list[CommodityGroup]) -> Chunks:
    groups: dict[tuple[int, ...], int] = {}

    def numbers(rows: Ints) -> Ints:
        if rows.shape[1] == 1:  # many pairs
            ranks = np.unique(rows)
            index = [groups.setdefault((rank,), len(groups)) for rank in ranks.tolist()]
            return np.array(index, dtype=np.int64)[np.searchsorted(ranks, rows[:, 0])]
        distinct, where = np.unique(rows, axis=0, return_inverse=True)
        index = [groups.setdefault(tuple(row), len(groups)) for row in distinct.tolist()]
        return np.array(index, dtype=np.int64)[where.ravel()]

    holders = np.concatenate([numbers(part.holders) for part in parts])
    receivers = np.concatenate([numbers(part.receivers) for part in parts])
    unit = common_unit(part.size for part in parts)
    units = [np.full(len(part.root), int(part.size / unit)) for part in parts]
    reduced = np.concatenate([np.full(len(part.root), part.reduced) for part in parts])
    return Chunks(np.concatenate(units), unit, tuple(groups), holders, receivers, reduced)


def _jobs(parts: list[CommodityGroup], sizes: tuple[Fraction, ...], nodes: Ints, *, reduced: bool) -> Jobs:
    """List the jobs that give copies, or those that bring sums together."""
    columns: list[tuple[Ints, ...]] = []
    begin = 0
    for part in parts:
        count = len(part.root)
        others = part.holders if reduced else part.receivers
        lacks = others != part.root[:, None]
        if (part.reduced or not reduced) and lacks.any():
            number = np.arange(begin, begin + count)
            size = np.full(count, sizes.index(part.size))
            columns.append((number, nodes[part.root], size, lacks.sum(axis=1), nodes[others[lacks]]))
        begin += count
    if not columns:
        columns.append((np.zeros(0, dtype=np.int64),) * 5)
    chunk, source, size, lacking, target = (np.concatenate(column) for column in zip(*columns, strict=True))
    keep = lacking > 0
    first = offsets(lacking[keep])
    return Jobs(chunk[keep], source[keep], size[keep], np.zeros(int(keep.sum()), dtype=np.int64), first, target)


MAX_NODES = 5_000  #: Most nodes, since all distances are kept.
MAX_LINKS = 7  #: Links of an edge through switches that cannot store.

#: Ways that are followed at most, and that are kept from one link to one node: those with the fewest links.
MAX_WAYS, ALIKE = 1_000_000, 8

FINEST = 2**28  #: Ticks of the longest delay; finer times are rounded up to it.


@dataclass(frozen=True, eq=False)
class TickedNetwork:
    """A network in ticks. If times are not ``exact`` whole numbers of ticks, they are rounded up."""

    net: PathNetwork
    tick_s: Fraction
    exact: bool

    @property
    def alike(self) -> bool:
        """True if edges are links with equal times and unlimited buffers: steps are ticks (section 6.4.2)."""
        net = self.net
        single = len(net.link) == len(net.tail) and len(net.units) == 1 and bool((net.room < 0).all())
        return single and len(np.unique(net.window)) == 1 and len(np.unique(net.delay)) == 1

    def reverse_edges(self) -> PathNetwork:
        """Return the network with every edge reversed; each keeps its number."""
        net = self.net
        end = np.repeat(net.part_first[1:], np.diff(net.part_first))
        begin = np.repeat(net.part_first[:-1], np.diff(net.part_first))
        mirror = begin + end - 1 - np.arange(len(net.link))
        owner = np.repeat(np.arange(len(net.tail)), np.diff(net.part_first))
        # What holds a link from ``offset`` on for a window, holds it in reversed time until the delay is over but for
        # the offset.
        offset = (net.delay[:, owner] - net.offset - net.window)[:, mirror]
        first, leaving = _by_tail(net.head, len(net.branches))
        return net._replace(
            tail=net.head,
            head=net.tail,
            first=first,
            leaving=leaving,
            link=net.link[mirror],
            offset=offset,
            window=net.window[:, mirror],
        )


def _by_tail(tail: Ints, nodes: int) -> tuple[Ints, Ints]:
    leaving = np.argsort(tail, kind="stable")
    return np.searchsorted(tail[leaving], np.arange(nodes + 1)).astype(np.int64), leaving.astype(np.int64)


def to_ticked_network(
    topology: Topology, sizes: Sequence[Fraction], units: Sequence[int], *, summed: bool
) -> TickedNetwork:
    """Make the arrays of a network.

    ``sizes`` are the bytes of the chunks, each different one once, ``units`` the same in a common unit. Where sums are
    sent (``summed``), these only pass through switches without multicast or with a limited buffer. A sum that reached
    such a switch twice would be added to the stored one.
    """
    unit_bytes = sizes[0] / units[0]
    room = [_room(topology, node, unit_bytes, max(units)) for node in range(len(topology.nodes))]
    once = np.array([node.kind is NodeKind.SWITCH and not node.multicast for node in topology.nodes])
    passing = np.array([r == 0 or (summed and (r > 0 or bool(o))) for r, o in zip(room, once, strict=True)])
    ways = _ways(topology, passing)
    tick_s, exact = _tick(topology, sizes)
    latency = [ceil(link.latency_s / tick_s) for link in topology.links]
    parts = [link for way in ways for link in way]
    window = np.array([[ceil(size / topology.links[e].bandwidth_Bps / tick_s) for e in parts] for size in sizes])
    hops = np.array([len(way) for way in ways], dtype=np.int64)
    part_first = offsets(hops)
    full = window + np.array([latency[e] for e in parts], dtype=np.int64)
    before = np.concatenate([np.zeros((len(sizes), 1), dtype=np.int64), np.cumsum(full, axis=1)], axis=1)
    begin = np.repeat(part_first[:-1], hops)
    tail = np.array([topology.link_ends[way[0]][0] for way in ways], dtype=np.int64)
    head = np.array([topology.link_ends[way[-1]][1] for way in ways], dtype=np.int64)
    first, leaving = _by_tail(tail, len(topology.nodes))
    net = PathNetwork(
        tail,
        head,
        first,
        leaving,
        part_first,
        np.array(parts, dtype=np.int64),
        before[:, :-1] - before[:, begin],
        window.astype(np.int64),
        before[:, part_first[1:]] - before[:, part_first[:-1]],
        ~once,
        np.where(passing, -1, np.array(room, dtype=np.int64)),
        np.array(units, dtype=np.int64),
    )
    return TickedNetwork(net, tick_s, exact)


def _room(topology: Topology, node: int, unit_bytes: Fraction, largest: int) -> int:
    """Return the units that a node can hold, -1 without limit; 0 if the largest chunk does not fit."""
    limit = topology.nodes[node].buffer_bytes
    if topology.nodes[node].kind is NodeKind.COMPUTE or limit is None:
        return -1
    units = int(limit / unit_bytes)
    return units if units >= largest else 0


def _ways(topology: Topology, passing: np.ndarray) -> list[tuple[int, ...]]:
    """List links between nodes that store, and the shortest ways between them through switches that do not."""
    leaving: list[list[int]] = [[] for _ in topology.nodes]
    for link, (tail, _) in enumerate(topology.link_ends):
        leaving[tail].append(link)
    ways: list[tuple[int, ...]] = [(link,) for link, (tail, _) in enumerate(topology.link_ends) if not passing[tail]]
    ways_of: dict[tuple[int, int], list[tuple[int, ...]]] = {}
    for way in ways:
        at = topology.link_ends[way[-1]][1]
        if not passing[at]:
            same = ways_of.setdefault((way[0], at), [])
            if len(same) < ALIKE and (not same or len(way) == len(same[0])):
                same.append(way)
        elif len(ways) > MAX_WAYS:
            raise InputError(f"more than {MAX_WAYS:,} paths through switches that cannot store", place="network")
        elif len(way) < MAX_LINKS:
            passed = {topology.link_ends[way[0]][0], *(topology.link_ends[link][1] for link in way)}
            ways.extend((*way, link) for link in leaving[at] if topology.link_ends[link][1] not in passed)
    return [way for same in ways_of.values() for way in same]


def _tick(topology: Topology, sizes: Sequence[Fraction]) -> tuple[Fraction, bool]:
    """Return the largest common divisor of all times; a coarser tick if these are too many ticks."""
    rates = {link.bandwidth_Bps for link in topology.links}
    times = [size / rate for size in sizes for rate in rates]
    times += list({link.latency_s for link in topology.links} - {Fraction(0)})
    exact, coarse = common_unit(times), max(times) / FINEST
    return (exact, True) if exact >= coarse else (coarse, False)


def distance_tables(net: PathNetwork, targets: Ints) -> DistanceTables:
    """Return the distances of all nodes to the targets; others are left out."""
    nodes = len(net.branches)
    if nodes > MAX_NODES:
        raise InputError(f"{nodes:,} nodes; expected at most {MAX_NODES:,}", place="network.nodes")
    goals = np.unique(targets)
    hops = np.zeros((nodes, nodes), dtype=np.int32)
    ticks = np.zeros((nodes, nodes), dtype=np.int64)
    shortest = net.delay.min(axis=0)
    far = distances(nodes, net.tail, net.head, np.ones_like(shortest), goals, backwards=True)
    hops[goals] = np.where(np.isinf(far), 2**20, far)
    alike = shortest.size and bool((shortest == shortest[0]).all())
    far = far * shortest[0] if alike else distances(nodes, net.tail, net.head, shortest, goals, backwards=True)
    ticks[goals] = np.where(np.isinf(far), NEVER, far)
    return DistanceTables(hops, ticks)
