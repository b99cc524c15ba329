"""Problem in whole epochs: links with delays and windows, chunks with sources and receivers."""

from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np

from ...core.schedule import Bools, Ints, offsets
from ..graphs.distances import distances
from ..graphs.network import edges_by

FAR = 1 << 40  #: a distance that does not exist; sums of two of them still fit 64 bits

#: Starts in a window that reservations count; more room of a link is not used, which costs time, not correctness.
MOST_STARTS = np.iinfo(np.int16).max

CHAINS = 8  #: chains kept for a pair of nodes; with one only, every 16th random instance with switches stays open


def epoch_distances(
    nodes: int, tail: Ints, head: Ints, delay: Ints, sources: Ints | None = None, *, backwards: bool = False
) -> Ints:
    """Return the fewest epochs from sources, by default all, to all nodes, or back; ``FAR`` without a path."""
    far = distances(nodes, tail, head, delay, sources, backwards=backwards)
    return np.where(np.isinf(far), FAR, far).astype(np.int64)


@dataclass(frozen=True, eq=False)
class EpochNetwork:
    """Chunks of one size on a network, with time in epochs.

    A send that starts on link e at epoch k arrives at ``k + delay[e]``; from that epoch on the receiver may forward
    it. A node that does not store must forward it at that epoch or drop it. A schedule's makespan is its last
    needed arrival.
    """

    nodes: int
    tail: Ints
    head: Ints
    delay: Ints  #: (links,) epochs from start to arrival, at least 0; at least 1 on some link of every cycle
    window: Ints  #: (links,) any ``window`` epochs in a row take at most ``room`` starts; both at least 1
    room: Ints
    stores: Bools  #: (nodes,) True for nodes that keep what they receive: compute nodes
    copies: Bools  #: (nodes,) True for nodes that, without storing, may forward one arrival over several links
    source: Ints  #: (chunks,) initial holder of each chunk: a storing node
    need: Bools  #: (chunks, nodes) receivers of each chunk: storing nodes

    @property
    def chunks(self) -> int:
        """Number of chunks."""
        return len(self.source)

    @cached_property
    def initial_holders(self) -> Bools:
        """Initial holders of each chunk; shape (chunks, nodes)."""
        return np.asarray(self.source[:, None] == np.arange(self.nodes))

    @cached_property
    def lacking(self) -> Bools:
        """Nodes that need a chunk and do not hold it at the start; shape (chunks, nodes)."""
        return np.asarray(self.need & ~self.initial_holders, dtype=np.bool_)

    @cached_property
    def distance(self) -> Ints:
        """Fewest epochs from node to node, ``FAR`` without a path; shape (nodes, nodes)."""
        return epoch_distances(self.nodes, self.tail, self.head, self.delay)

    @cached_property
    def diameter(self) -> int:
        """Largest distance from a chunk's source to a receiver: no schedule is shorter."""
        return int(self.distance[self.source][self.lacking].max(initial=0))


class ArcTable(NamedTuple):
    """Links, and arcs between storing nodes.

    An arc is one link, or a chain of links through nodes that do not store. Arcs are sorted by tail; arc a's hops
    are ``hop_first[a] .. hop_first[a + 1] - 1``.
    """

    row: Any  #: (links,) the row of reservations; links that a symmetry maps to each other have one together
    window: Any  #: (links,)
    room: Any  #: (links,)
    reach: Any  #: (nodes,) largest distance from each node to a storing one
    arc_first: Any  #: (nodes + 1,) where the arcs out of each node begin
    arc_tail: Any  #: (arcs,)
    arc_head: Any  #: (arcs,)
    arc_delay: Any  #: (arcs,)
    hop_first: Any  #: (arcs + 1,)
    hop_link: Any  #: (hops,)
    hop_offset: Any  #: (hops,) epochs from the arc's start to this link's
    hop_copies: Any  #: (hops,) whether the hop's tail copies; True at storing nodes

    @property
    def longest(self) -> int:
        """Hops of the longest arc."""
        return int(np.diff(self.hop_first).max(initial=1))


def arc_table(network: EpochNetwork) -> ArcTable:
    """Return the arcs of a network, sorted by tail, the fastest first."""
    arcs: list[tuple[int, int, int, tuple[int, ...]]] = []
    first, order = edges_by(network.tail, network.nodes)
    leaving = [links.tolist() for links in np.split(order, first[1:-1])]
    columns = network.head.tolist(), network.delay.tolist(), network.stores.tolist()
    for node in np.flatnonzero(network.stores).tolist():
        arcs += sorted(chains(node, leaving, *columns))
    tails = np.array([arc[1] for arc in arcs], dtype=np.int64)
    hops = np.array([len(arc[3]) for arc in arcs], dtype=np.int64)
    links = np.array([link for arc in arcs for link in arc[3]], dtype=np.int64)
    hop_first = offsets(hops)
    before = offsets(network.delay[links])
    offset = before[:-1] - np.repeat(before[hop_first[:-1]], hops)
    copies: Bools = network.stores | network.copies
    reach = np.where(network.stores[None, :] & (network.distance < FAR), network.distance, 0)
    return ArcTable(
        np.arange(len(network.tail)),
        network.window.astype(np.int32),
        np.minimum(network.room, MOST_STARTS).astype(np.int32),
        reach.max(axis=1).astype(np.int64),
        np.searchsorted(tails, np.arange(network.nodes + 1)).astype(np.int64),
        tails,
        network.head[links[hop_first[1:] - 1]].astype(np.int32),
        (before[hop_first[1:]] - before[hop_first[:-1]]).astype(np.int32),
        hop_first,
        links.astype(np.int32),
        offset.astype(np.int32),
        copies[network.tail[links]],
    )


def chains(
    source: int, leaving: list[list[int]], head: list[int], delay: list[int], stores: list[bool]
) -> list[tuple[int, int, int, tuple[int, ...]]]:
    """List delay, source, head and links of up to ``CHAINS`` fastest chains to each storing node."""
    count = [0] * len(leaving)
    heap: list[tuple[int, int, tuple[int, ...]]] = [(0, source, ())]
    complete: list[tuple[int, int, int, tuple[int, ...]]] = []
    while heap:
        total, node, path = heappop(heap)
        passed = {source, *(head[link] for link in path)}
        if path:
            if node == source or count[node] >= CHAINS:
                continue
            count[node] += 1
            if stores[node]:
                complete.append((total, source, node, path))
                continue
        for link in leaving[node]:
            to = head[link]
            if to not in passed and count[to] < CHAINS:
                heappush(heap, (total + delay[link], to, (*path, link)))
    return complete
