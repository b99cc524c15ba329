"""Effect of network changes on the paths of sends or tree edges, paths around lost links, and present loads."""

import heapq
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np

from ...core.errors import InputError
from ...core.grouping import group_by_key
from ...core.schedule import Bools, Floats, Ints, offsets, ranges
from ...core.topology import Topology
from ..graphs.network import links_out

MOST_PARTS = 16  #: into so many parts at most what a pair of nodes sends is divided, each with a path of its own


@dataclass(frozen=True, eq=False)
class ReroutedPaths:
    """Paths in the changed network."""

    offset: Ints  #: first index of each path in ``links``, and the links of all
    links: Ints
    is_new: Bools  #: (paths,) True if a path differs from the old one


def reroute(new: Topology, source: Ints, target: Ints, offset: Ints, links: Ints, size: Floats) -> ReroutedPaths:
    """Keep paths whose links all exist, and lead the others around.

    A lost link is -1, and a path without links has to be found. It is replaced by one whose busiest link, with its
    present load, finishes first; among those by one with the fewest links. Raise InputError if no path is left.
    """
    hops = np.diff(offset)
    is_lost = hops == 0
    np.logical_or.at(is_lost, np.repeat(np.arange(len(size)), hops), links < 0)
    busy = np.zeros(len(new.links))
    intact = np.repeat(~is_lost, hops)
    np.add.at(busy, links[intact], np.repeat(size, hops)[intact])
    rate = np.array([float(link.bandwidth_Bps) for link in new.links])
    paths = [links[a:b] for a, b in pairwise(offset.tolist())]
    groups = group_by_key(((int(source[path]), int(target[path])), path) for path in np.flatnonzero(is_lost).tolist())
    out = links_out(new)
    for (first, last), members in groups.items():
        for part in np.array_split(np.array(members), min(len(members), MOST_PARTS)):
            route = best_path(out, busy, rate, first, last, float(size[part].sum()))
            if route is None:
                ends = f"{new.nodes[first].name} to {new.nodes[last].name}"
                raise InputError(f"no path is left from {ends}", place="network.links")
            busy[route] += size[part].sum()
            for path in part.tolist():
                paths[path] = route
    return ReroutedPaths(np.cumsum([0, *map(len, paths)]), np.concatenate(paths or [links[:0]]), is_lost)


def best_path(
    out: list[list[tuple[int, int]]], busy: Floats, rate: Floats, source: int, target: int, size: float
) -> Ints | None:
    """Find the path whose busiest link finishes first, of those the shortest; None if there is none."""
    best: dict[int, tuple[float, int]] = {source: (0.0, 0)}
    heap: list[tuple[float, int, int, tuple[int, ...]]] = [(0.0, 0, source, ())]
    while heap:
        seconds, hops, node, path = heapq.heappop(heap)
        if node == target and path:
            return np.array(path, dtype=np.int64)
        if (seconds, hops) > best[node]:
            continue
        for link, end in out[node]:
            reached = max(seconds, (busy[link] + size) / rate[link]), hops + 1
            if end not in best or reached < best[end]:
                best[end] = reached
                heapq.heappush(heap, (*reached, end, (*path, link)))
    return None


@dataclass(frozen=True, eq=False)
class Change:
    """Difference between two networks."""

    old: Topology  #: the network before and after
    new: Topology
    losses: list[int]  #: nodes of the old network that are gone
    node: Ints  #: position in the new network of every old node and link, of parallel links in order; -1 if it is gone
    link: Ints

    @classmethod
    def of(cls, old: Topology, new: Topology) -> Self:
        """Compare networks by the names of their nodes."""
        node = np.array([new.node_index.get(each.name, -1) for each in old.nodes], dtype=np.int64)
        free = group_by_key(((link.source, link.target), number) for number, link in enumerate(new.links))
        ends = ((link.source, link.target) for link in old.links)
        links = np.array([free[pair].pop(0) if free[pair] else -1 for pair in ends], dtype=np.int64)
        return cls(old, new, np.flatnonzero(node < 0).tolist(), node, links)

    @property
    def rank(self) -> Ints:
        """New number of every old rank; -1 if it is gone."""
        place = {name: rank for rank, name in enumerate(self.new.ranks)}
        return np.array([place.get(name, -1) for name in self.old.ranks], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Ways:
    """Paths of sends, or of edges of trees, with their bytes."""

    source: Ints  #: (ways,) first and last node of every path
    target: Ints
    offset: Ints  #: first index of each path in ``links``, and the links of all
    links: Ints
    size: Floats  #: (ways,) bytes sent over every path

    def __len__(self) -> int:
        return len(self.source)

    @property
    def path_loads(self) -> Floats:
        """Bytes times links of each path."""
        return np.diff(self.offset) * self.size

    def lost_ways(self, change: Change) -> Bools:
        """Mark the paths that have lost a link or an end."""
        is_lost: Bools = (change.node[self.source] < 0) | (change.node[self.target] < 0)
        np.logical_or.at(is_lost, np.repeat(np.arange(len(self)), np.diff(self.offset)), change.link[self.links] < 0)
        return is_lost


@dataclass(frozen=True, eq=False)
class ReplacementWays:
    """Replacement paths between nodes of the old network."""

    source: Ints  #: (ways,) first and last node of every path
    target: Ints
    number: Ints  #: (ways,) old path of each, which is kept if the ends are the same; -1 for none
    size: Floats  #: (ways,) bytes sent over every path

    def reroute(self, ways: Ways, change: Change) -> ReroutedPaths:
        """Route the replacements over links of the new network."""
        old = self.number
        same = (old >= 0) & (self.source == ways.source[old]) & (self.target == ways.target[old])
        hops = np.where(same, np.diff(ways.offset)[old], 0)
        offset = offsets(hops)
        links = change.link[ways.links[ranges(ways.offset[old], hops)]]
        return reroute(change.new, change.node[self.source], change.node[self.target], offset, links, self.size)

    def affected_nodes(self, ways: Ways, change: Change, other: Bools, stays: Bools) -> list[str]:
        """Name the remaining nodes with ``other`` new paths, or old paths, whose data ``stays``, that are left out."""
        left_out = np.setdiff1d(np.flatnonzero(stays), self.number)
        ends = self.source[other], self.target[other], ways.source[left_out], ways.target[left_out]
        nodes = np.unique(np.concatenate(ends))
        return [change.old.nodes[node].name for node in nodes.tolist() if change.node[node] >= 0]


class Loads:
    """Bytes over every link of a changed network, by sends over paths with the fastest slowest link."""

    def __init__(self, change: Change) -> None:
        self._change = change
        self._out = links_out(change.new)
        self._rate = np.array([float(link.bandwidth_Bps) for link in change.new.links])
        self._busy = np.zeros(len(self._rate))
        self._paths: dict[tuple[int, int], tuple[int, ...] | None] = {}

    def keep(self, ways: Ways) -> None:
        """Count all paths that have lost no link and no end."""
        stays = ~ways.lost_ways(self._change)
        hops = np.diff(ways.offset)
        links = self._change.link[ways.links[np.repeat(stays, hops)]]
        np.add.at(self._busy, links, np.repeat(ways.size[stays], hops[stays]))

    def add(self, sends: Iterable[tuple[int, int]], size: float) -> None:
        """Count sends from node to node."""
        for link, count in self._links(sends).items():
            self._busy[link] += size * count

    def seconds(self, sends: Iterable[tuple[int, int]], size: float) -> float:
        """Return the time of the busiest link of some sends, including its present load; infinite without a path."""
        ends = (
            float((self._busy[link] + size * count) / self._rate[link]) if link >= 0 else np.inf
            for link, count in self._links(sends).items()
        )
        return max(ends, default=0.0)

    def _links(self, sends: Iterable[tuple[int, int]]) -> Counter[int]:
        """Count the sends over each link; -1 stands for a missing path."""
        return Counter(link for ends in sends for link in self._path(*ends))

    def _path(self, source: int, target: int) -> tuple[int, ...]:
        ends = int(self._change.node[source]), int(self._change.node[target])
        if ends not in self._paths:
            way = best_path(self._out, np.zeros(len(self._rate)), self._rate, *ends, 1.0) if min(ends) >= 0 else None
            self._paths[ends] = None if way is None else tuple(way.tolist())
        return self._paths[ends] or (-1,)
