"""Present loads of links, for choices between additional sends."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .changes import Change, Ways
from .reroute import best_path, links_out


class Loads:
    """Bytes over every link of a changed network; nodes are those of the old one.

    A send is assumed to use the path with the fastest slowest link, and of those the shortest.
    """

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
        return max((self._finish_after(link, size * count) for link, count in self._links(sends).items()), default=0.0)

    def _finish_after(self, link: int, size: float) -> float:
        return float((self._busy[link] + size) / self._rate[link]) if link >= 0 else np.inf

    def _links(self, sends: Iterable[tuple[int, int]]) -> dict[int, int]:
        """Count the sends over each link; -1 stands for a missing path."""
        found: dict[int, int] = {}
        for source, target in sends:
            for link in self._path(source, target):
                found[link] = found.get(link, 0) + 1
        return found

    def _path(self, source: int, target: int) -> tuple[int, ...]:
        ends = int(self._change.node[source]), int(self._change.node[target])
        if ends not in self._paths:
            way = best_path(self._out, np.zeros(len(self._rate)), self._rate, *ends, 1.0) if min(ends) >= 0 else None
            self._paths[ends] = None if way is None else tuple(way.tolist())
        return self._paths[ends] or (-1,)
