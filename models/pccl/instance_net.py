"""From a network and sizes of chunks to edges in whole ticks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, lcm

import numpy as np

from ...core.errors import InputError
from ...core.schedule import Ints
from ...core.topology import NodeKind, Topology
from .busy import NEVER
from .tables import Far, Net

#: Most nodes, since all distances are kept.
MAX_NODES = 5_000

#: Links of an edge through switches that cannot store.
MAX_LINKS = 7

#: Ways that are followed at most, and that are kept from one link to one node: those with the fewest links.
MAX_WAYS, ALIKE = 1_000_000, 8

#: Ticks of the longest delay; finer times are rounded up to it.
FINEST = 2**28


@dataclass(frozen=True, eq=False)
class Ticked:
    """A network in ticks.

    Parameters
    ----------
    net : Net
        Its arrays.
    tick_s : Fraction
        Seconds of a tick.
    exact : bool
        Whether all times are whole numbers of ticks; otherwise they are rounded up.
    """

    net: Net
    tick_s: Fraction
    exact: bool

    @property
    def alike(self) -> bool:
        """Whether every edge is a link, all links take as long, and no buffer is limited: then steps are ticks (section 6.4.2)."""
        net = self.net
        single = len(net.link) == len(net.tail) and len(net.units) == 1 and bool((net.room < 0).all())
        return single and len(np.unique(net.window)) == 1 and len(np.unique(net.delay)) == 1

    def stepped(self) -> Net:
        """Give the network with steps for ticks."""
        ones = np.ones_like(self.net.window)
        return self.net._replace(window=ones, delay=np.ones_like(self.net.delay))

    def reversed(self) -> Net:
        """Give the network with every edge turned around; each keeps its number."""
        net = self.net
        end = np.repeat(net.part_first[1:], np.diff(net.part_first))
        begin = np.repeat(net.part_first[:-1], np.diff(net.part_first))
        mirror = begin + end - 1 - np.arange(len(net.link))
        owner = np.repeat(np.arange(len(net.tail)), np.diff(net.part_first))
        # What holds a link from ``offset`` on for a window, holds it in reversed time until the delay is over but for the offset.
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


def ticked(topology: Topology, sizes: Sequence[Fraction], units: Sequence[int], *, summed: bool) -> Ticked:
    """Make the arrays of a network.

    Parameters
    ----------
    topology : Topology
        The network.
    sizes : sequence of Fraction
        Bytes of the chunks, each different one once.
    units : sequence of int
        The same in units.
    summed : bool
        Whether sums are sent: these pass through switches that send on only what they have received.
    """
    unit_bytes = sizes[0] / units[0]
    room = [_room(topology, node, unit_bytes, max(units)) for node in range(len(topology.nodes))]
    once = np.array([node.kind is NodeKind.SWITCH and not node.multicast for node in topology.nodes])
    passing = np.array([r == 0 or (summed and bool(o)) for r, o in zip(room, once, strict=True)])
    ways = _ways(topology, passing)
    tick_s, exact = _tick(topology, sizes)
    latency = [ceil(link.latency_s / tick_s) for link in topology.links]
    parts = [link for way in ways for link in way]
    window = np.array([[ceil(size / topology.links[e].bandwidth_Bps / tick_s) for e in parts] for size in sizes])
    hops = np.array([len(way) for way in ways], dtype=np.int64)
    part_first = np.concatenate([[0], np.cumsum(hops)]).astype(np.int64)
    full = window + np.array([latency[e] for e in parts], dtype=np.int64)
    before = np.concatenate([np.zeros((len(sizes), 1), dtype=np.int64), np.cumsum(full, axis=1)], axis=1)
    begin = np.repeat(part_first[:-1], hops)
    tail = np.array([topology.link_ends[way[0]][0] for way in ways], dtype=np.int64)
    head = np.array([topology.link_ends[way[-1]][1] for way in ways], dtype=np.int64)
    first, leaving = _by_tail(tail, len(topology.nodes))
    net = Net(
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
    return Ticked(net, tick_s, exact)


def _room(topology: Topology, node: int, unit_bytes: Fraction, largest: int) -> int:
    """Units that a node can hold, -1 without limit; 0 if the largest chunk does not fit."""
    limit = topology.nodes[node].buffer_bytes
    if topology.nodes[node].kind is NodeKind.COMPUTE or limit is None:
        return -1
    units = int(limit / unit_bytes)
    return units if units >= largest else 0


def _ways(topology: Topology, passing: np.ndarray) -> list[tuple[int, ...]]:
    """List links between nodes that store, and the shortest ways between them through switches that do not.

    Raises
    ------
    InputError
        If there are too many ways.
    """
    leaving: list[list[int]] = [[] for _ in topology.nodes]
    for link, (tail, _) in enumerate(topology.link_ends):
        leaving[tail].append(link)
    ways: list[tuple[int, ...]] = [(link,) for link, (tail, _) in enumerate(topology.link_ends) if not passing[tail]]
    found: dict[tuple[int, int], list[tuple[int, ...]]] = {}
    for way in ways:
        at = topology.link_ends[way[-1]][1]
        if not passing[at]:
            same = found.setdefault((way[0], at), [])
            if len(same) < ALIKE and (not same or len(way) == len(same[0])):
                same.append(way)
        elif len(ways) > MAX_WAYS:
            raise InputError(f"more than {MAX_WAYS:,} ways through switches that cannot store", place="network")
        elif len(way) < MAX_LINKS:
            passed = {topology.link_ends[way[0]][0], *(topology.link_ends[link][1] for link in way)}
            ways.extend((*way, link) for link in leaving[at] if topology.link_ends[link][1] not in passed)
    return [way for same in found.values() for way in same]


def _tick(topology: Topology, sizes: Sequence[Fraction]) -> tuple[Fraction, bool]:
    """Give the largest tick that all times are multiples of; a coarser one where times would be too many ticks."""
    rates = {link.bandwidth_Bps for link in topology.links}
    times = [size / rate for size in sizes for rate in rates]
    times += list({link.latency_s for link in topology.links} - {Fraction(0)})
    scale = lcm(*(time.denominator for time in times))
    common = np.gcd.reduce([int(time * scale) for time in times], dtype=object)
    exact, coarse = Fraction(int(common), scale), max(times) / FINEST
    return (exact, True) if exact >= coarse else (coarse, False)


def far_of(net: Net, targets: Ints) -> Far:
    """Give the distances of all nodes to the targets; those to others are not looked at.

    Raises
    ------
    InputError
        If the network is too large for such a table.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    nodes = len(net.branches)
    if nodes > MAX_NODES:
        raise InputError(f"{nodes:,} nodes; expected at most {MAX_NODES:,}", place="network.nodes")
    order = np.lexsort((net.delay.min(axis=0), net.tail, net.head))
    head, tail, delay = net.head[order], net.tail[order], net.delay.min(axis=0)[order]
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = (np.diff(head) != 0) | (np.diff(tail) != 0)
    head, tail, delay = head[first], tail[first], delay[first].astype(np.float64)
    wanted = np.unique(targets)
    hops = np.zeros((nodes, nodes), dtype=np.int32)
    ticks = np.zeros((nodes, nodes), dtype=np.int64)
    for table, weight in ((hops, np.ones(len(head))), (ticks, delay)):
        # Backwards from the targets: a row of the matrix holds the edges that enter a node.
        found = dijkstra(csr_array((weight, (head, tail)), shape=(nodes, nodes)), indices=wanted)
        table[wanted] = np.where(np.isinf(found), NEVER if table is ticks else 2**20, found)
    return Far(hops, ticks)
