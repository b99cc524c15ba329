"""Effect of network changes on the paths of sends or tree edges."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...core.ragged import offsets, ranges
from ...core.schedule import Bools, Floats, Ints
from ...core.topology import Topology
from .reroute import ReroutedPaths, images, reroute


@dataclass(frozen=True, eq=False)
class Change:
    """Difference between two networks."""

    #: the network before and after
    old: Topology
    new: Topology
    lost: list[int]  #: nodes of the old network that are gone
    #: position in the new network of every old node and link; -1 if it is gone
    node: Ints
    link: Ints

    @classmethod
    def of(cls, old: Topology, new: Topology) -> Change:
        """Compare networks by the names of their nodes."""
        node = np.array([new.node_index.get(each.name, -1) for each in old.nodes], dtype=np.int64)
        return cls(old, new, np.flatnonzero(node < 0).tolist(), node, images(old, new))

    @property
    def rank(self) -> Ints:
        """New number of every old rank; -1 if it is gone."""
        place = {name: rank for rank, name in enumerate(self.new.ranks)}
        return np.array([place.get(name, -1) for name in self.old.ranks], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Ways:
    """Paths of sends, or of edges of trees, with their bytes."""

    #: (ways,) first and last node of every path
    source: Ints
    target: Ints
    #: first index of each path in ``links``, and the links of all
    offset: Ints
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
        found: Bools = (change.node[self.source] < 0) | (change.node[self.target] < 0)
        np.logical_or.at(found, np.repeat(np.arange(len(self)), np.diff(self.offset)), change.link[self.links] < 0)
        return found


@dataclass(frozen=True, eq=False)
class ReplacementWays:
    """Replacement paths between nodes of the old network."""

    #: (ways,) first and last node of every path
    source: Ints
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
        """List the names of remaining nodes that send or receive anything different.

        ``other`` marks new paths that differ from the old ones, ``stays`` old paths whose data are still sent.
        """
        left_out = np.setdiff1d(np.flatnonzero(stays), self.number)
        ends = self.source[other], self.target[other], ways.source[left_out], ways.target[left_out]
        nodes = np.unique(np.concatenate(ends))
        return [change.old.nodes[node].name for node in nodes.tolist() if change.node[node] >= 0]
