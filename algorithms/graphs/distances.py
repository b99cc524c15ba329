"""Shortest distances over links of integer lengths, and shortest paths of fewest links for many pairs.

A path of :func:`route` has the fewest links; among those the least latency; among those, at every node, the link
that comes first in the topology. The generators and :func:`~cwb.core.fabric.expand` list links one dimension after
the other, the clockwise one first on rings: there, ties are broken in dimension order. Paths may lead through
switches and through other ranks. Of parallel links the first of least latency is used. The search runs layer by
layer, from all sources of a block at once, in time proportional to what it reaches; Dijkstra's algorithm would need
the lexicographic order in its lengths.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import lcm
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.errors import InputError, Unsupported
from ...core.schedule import Ints, offsets, ranges
from ...core.topology import Topology
from .network import edges_by, mask_of

_RELAXED, _FEW_NODES = 2**16, 512  #: most starts times links, and nodes, whose distances need no scipy
_TABLE = 2**22  #: entries of the table (targets x nodes) that one search fills


def distances(
    nodes: int, tail: Ints, head: Ints, length: ArrayLike, sources: ArrayLike | None = None, *, backwards: bool = False
) -> NDArray[np.float64]:
    """Compute exact integer distances from ``sources``, by default all nodes, to all nodes, or ``backwards``.

    Lengths are integers of at least 0; parallel links are allowed. The result, of shape (sources, nodes), has integers
    below 2^53, infinite where there is no path. Raise InputError if the lengths add up to 2^53 or more, from which on
    floats skip integers.
    """
    values: NDArray[Any] = np.asarray(length)
    if sum(values.tolist()) >= 2**53:
        raise InputError("lengths of links have no common unit in which their sum is below 2^53", place="network.links")
    ends = (head, tail) if backwards else (tail, head)
    starts = np.arange(nodes) if sources is None else np.atleast_1d(np.asarray(sources))
    if len(starts) * len(values) <= _RELAXED and nodes <= _FEW_NODES:
        return _relax(nodes, *ends, values.astype(np.float64), starts)
    from scipy.sparse.csgraph import dijkstra

    graph = least_lengths(nodes, *ends, values)
    table: NDArray[np.float64] = dijkstra(graph, indices=None if sources is None else np.asarray(sources))
    return table


def _relax(nodes: int, tail: Ints, head: Ints, length: NDArray[np.float64], starts: Ints) -> NDArray[np.float64]:
    """Compute the distances of a small network without scipy, whose import takes longer."""
    far = np.full((nodes, len(starts)), np.inf)
    far[starts, np.arange(len(starts))] = 0
    order = np.argsort(head, kind="stable")
    tail, head, length = tail[order], head[order], length[order]
    first = np.flatnonzero(np.diff(head, prepend=-1))
    ends = head[first]
    while len(first):
        shorter = far.copy()
        shorter[ends] = np.minimum(far[ends], np.minimum.reduceat(far[tail] + length[:, None], first))
        if np.array_equal(shorter, far):
            break
        far = shorter
    return far.T.copy()


def shortest_paths(nodes: int, tail: Ints, head: Ints, length: Ints) -> tuple[Ints, Ints]:
    """Compute shortest paths between all nodes over bidirectional links, of the fewest links among equals.

    Return distances, -1 where there is no path, and the last node before the second one on the path from the first;
    shape (nodes, nodes). Parameters are those of :func:`distances`.
    """
    from scipy.sparse.csgraph import dijkstra

    # A link of no length must not be taken for none: lengths are one more than n times what they are, which keeps their
    # order.
    graph = least_lengths(nodes, tail, head, length * nodes + 1)
    far, before = dijkstra(graph, directed=False, return_predecessors=True)
    reach = np.where(np.isinf(far), -1, far) // nodes
    return reach.astype(np.int64), before.astype(np.int64)


def least_lengths(nodes: int, tail: Ints, head: Ints, length: NDArray[Any]) -> Any:
    """Return lengths as a sparse matrix, with the shortest of parallel links instead of their sum.

    Its indices have 32 bits, since graph algorithms of SciPy 1.15 take no others.
    """
    from scipy.sparse import csr_array

    order = np.lexsort((length, head, tail))
    a, b, values = tail[order].astype(np.int32), head[order].astype(np.int32), length[order].astype(np.float64)
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = (a[1:] != a[:-1]) | (b[1:] != b[:-1])
    return csr_array((values[first], (a[first], b[first])), shape=(nodes, nodes))


@dataclass(frozen=True, eq=False)
class Paths:
    """Paths of several pairs of nodes."""

    offset: Ints  #: (pairs + 1,) first link of every pair, as an index into ``links``
    links: Ints  #: links of all pairs, in order from source to target

    def take(self, index: Ints) -> "Paths":
        """Return the paths of some pairs, in the order of the index; repetitions are allowed."""
        if len(self.links) == len(self.offset) - 1:  # one link for every pair
            return Paths(np.arange(len(index) + 1), self.links[index])
        hops = np.diff(self.offset)[index]
        return Paths(offsets(hops), self.links[ranges(self.offset[index], hops)])


@dataclass(frozen=True, eq=False)
class _LeavingLinks:
    """Links as arrays, grouped by the node that they leave."""

    source: Ints
    target: Ints
    latency: NDArray[Any]  # in a common fraction of a second
    leaving: Ints  # links, sorted by source
    first: Ints  # where each node's leaving links begin


def route(topology: Topology, source: Ints, target: Ints) -> Paths:
    """Find a shortest path for each pair of different nodes, which may occur more than once."""
    nodes = len(topology.nodes)
    keys, inverse = _distinct(source * nodes + target, nodes * nodes)
    if not len(keys):
        return Paths(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64))
    graph = _leaving_links(topology)
    blocks = [_search(topology, graph, keys // nodes, keys % nodes, part) for part in _parts(keys // nodes, nodes)]
    hops = np.concatenate([np.diff(block.offset) for block in blocks])
    unique = Paths(offsets(hops), np.concatenate([block.links for block in blocks]))
    return unique.take(inverse)


def _distinct(keys: Ints, limit: int) -> tuple[Ints, Ints]:
    """Return the sorted distinct keys, and the index of each key among them."""
    if limit > max(16 * len(keys), 2**16):
        distinct, inverse = np.unique(keys, return_inverse=True)
        return distinct, inverse.astype(np.int64)
    place = np.zeros(limit, dtype=np.int64)
    place[keys] = 1
    distinct = np.flatnonzero(place)
    place[distinct] = np.arange(len(distinct))
    return distinct, place[keys]


def _leaving_links(topology: Topology) -> _LeavingLinks:
    ends = np.array(topology.link_ends, dtype=np.int64).reshape(-1, 2)
    different = {link.latency_s for link in topology.links}
    scale = lcm(*(seconds.denominator for seconds in different))
    ticks = {seconds: int(seconds * scale) for seconds in different}
    fits = max(ticks.values(), default=0) * (len(topology.nodes) + 1) < 2**62
    latency: NDArray[Any] = np.array(
        [ticks[link.latency_s] for link in topology.links], dtype=np.int64 if fits else object
    )
    first, order = edges_by(ends[:, 0], len(topology.nodes))
    return _LeavingLinks(ends[:, 0], ends[:, 1], latency, order, first)


def _parts(source: Ints, nodes: int) -> Iterator[slice]:
    """Split sorted pairs into blocks of whole sources whose tables fit."""
    starts = np.flatnonzero(np.concatenate([[True], np.diff(source) != 0]))
    block = starts[:: max(1, _TABLE // nodes)]
    for begin, end in zip(block, [*block[1:], len(source)], strict=True):
        yield slice(int(begin), int(end))


def _search(topology: Topology, graph: _LeavingLinks, source: Ints, target: Ints, part: slice) -> Paths:
    """Search from all sources of a block, hop by hop, until every target is reached; then walk backwards."""
    source, target = source[part], target[part]
    starts, start = np.unique(source, return_inverse=True)
    nodes = len(graph.first) - 1
    before = np.full(len(starts) * nodes, -1, dtype=np.int64)  # last link from each start; -2 at the start
    distance = np.zeros(len(starts) * nodes, dtype=graph.latency.dtype)
    goal = start * nodes + target
    frontier = np.arange(len(starts)) * nodes + starts
    before[frontier] = -2
    while len(frontier) and (before[goal] == -1).any():
        seeking = mask_of(len(starts), start[before[goal] == -1])
        frontier = _layer(graph, frontier[seeking[frontier // nodes]], before, distance)
    if (missing := np.flatnonzero(before[goal] == -1)).size:
        ends = (topology.nodes[int(where[missing[0]])].name for where in (source, target))
        raise Unsupported("no path leads from {!r} to {!r}".format(*ends))
    return _walk(graph, source, target, start * nodes, before)


def _layer(graph: _LeavingLinks, frontier: Ints, before: Ints, distance: NDArray[Any]) -> Ints:
    """Reach the nodes one hop further from their sources; return their entries of the table.

    Entries are in the order of their paths, compared link by link from the source on, so that of equal paths to a node
    the first one in this order is that which takes the first link at every node.
    """
    nodes = len(graph.first) - 1
    node = frontier % nodes
    count = graph.first[node + 1] - graph.first[node]
    link = graph.leaving[ranges(graph.first[node], count)]
    entry = np.repeat(frontier - node, count) + graph.target[link]
    latency: NDArray[Any] = np.repeat(distance[frontier], count) + graph.latency[link]
    new = np.asarray(before[entry] == -1)
    link, entry, latency = link[new], entry[new], latency[new]
    if latency.dtype == object:
        latency = np.unique(latency, return_inverse=True)[1]
    order = np.lexsort((latency, entry))
    best = np.concatenate([[True], np.diff(entry[order]) != 0])[: len(entry)]
    fresh = np.flatnonzero(mask_of(len(order), order[best]))
    link, reached = link[fresh], np.asarray(entry[fresh], dtype=np.int64)
    before[reached] = link
    distance[reached] = distance[reached - graph.target[link] + graph.source[link]] + graph.latency[link]
    return reached


def _walk(graph: _LeavingLinks, source: Ints, target: Ints, row: Ints, before: Ints) -> Paths:
    here, active = target.copy(), np.flatnonzero(source != target)
    walked: list[tuple[Ints, Ints]] = []
    while len(active):
        link = before[row[active] + here[active]]
        walked.append((active, link))
        here[active] = graph.source[link]
        active = active[here[active] != source[active]]
    pair, path = (np.concatenate(column) for column in zip(*walked[::-1], strict=True))
    offset, order = edges_by(pair, len(source))
    return Paths(offset, path[order])
