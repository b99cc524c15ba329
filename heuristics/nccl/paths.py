"""Links from rank to rank: within a box over switches, between boxes from NIC to NIC of a channel.

A rank reaches a NIC of another rank by passing through it, as NCCL does (PXN), so that a channel enters and leaves
every box over the same NIC and stays on its rail.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from ...algorithms.graphs.distances import Paths, route
from ...core.limits import check_time
from ...core.ragged import offsets
from .boxes import Boxes, Nic


class Hops:
    """Links of hops between ranks of a machine."""

    def __init__(self, boxes: Boxes) -> None:
        self.boxes = boxes
        self._box_of = {rank: index for index, box in enumerate(boxes.boxes) for rank in box.ranks}
        inside = {boxes.of_node[node] for node in boxes.nodes}
        self._inside = [name in inside for name in boxes.of_node]
        self._fabric: dict[tuple[int, int], tuple[int, ...] | None] = {}

    def links(self, a: int, b: int, channel: int, nic: int) -> tuple[int, ...]:
        """Return the links from a rank to another one, of a channel that uses a NIC of every box.

        Parameters
        ----------
        a, b : int
            Positions of the two ranks.
        channel : int
            Number of the channel: of equally short paths channels use one in turn.
        nic : int
            Number of the NIC in its box.
        """
        check_time("ways are searched")
        boxes = self.boxes
        here, there = (boxes.boxes[self._box_of[rank]] for rank in (a, b))
        inside = here is there
        way = boxes.within(a, b, channel) if inside else self._between(a, b, channel, here.nics, there.nics, nic)
        return way if way is not None else self._any(a, b)

    def _between(
        self, a: int, b: int, channel: int, out: Sequence[Nic], into: Sequence[Nic], nic: int
    ) -> tuple[int, ...] | None:
        """Through the NIC of the channel on both sides; else through the first pair of NICs that are joined."""
        if not out or not into:
            return None
        count = max(len(out), len(into))
        pairs = [(nic, nic), *((nic, nic + k) for k in range(1, count)), *((nic + k, nic) for k in range(1, count))]
        for i, j in pairs:
            leave, enter = out[i % len(out)], into[j % len(into)]
            ends = self.boxes.topology.link_ends
            first = self._pick(self.boxes.ways(self.boxes.nodes[a]).get(ends[leave.out][0]), channel)
            last = self._pick(self.boxes.ways(ends[enter.back][1]).get(self.boxes.nodes[b]), channel)
            middle = self._over_fabric(leave.out, enter.back)
            if first is not None and last is not None and middle is not None:
                return (*first, *middle, *last)
        return None

    @staticmethod
    def _pick(ways: tuple[tuple[int, ...], ...] | None, turn: int) -> tuple[int, ...] | None:
        return None if ways is None else ways[turn % len(ways)]

    def _over_fabric(self, out: int, back: int) -> tuple[int, ...] | None:
        """Return the links between two boxes, from one that leaves to one that enters, over nodes of no box."""
        if (out, back) not in self._fabric:
            self._fabric[out, back] = self._search(out, back)
        return self._fabric[out, back]

    def _search(self, out: int, back: int) -> tuple[int, ...] | None:
        ends, links_of = self.boxes.topology.link_ends, self.boxes.leaving
        if ends[out] == ends[back]:  # a cable from box to box
            return (out,)
        start, goal = ends[out][1], ends[back][0]
        before: dict[int, int] = {start: out}
        waiting = deque([start] if not self._inside[start] else [])
        while waiting:
            here = waiting.popleft()
            if here == goal:
                break
            for link in links_of[here]:
                there = ends[link][1]
                if there not in before and not self._inside[there]:
                    before[there] = link
                    waiting.append(there)
        if goal not in before or self._inside[goal]:
            return None
        way = [back]
        while way[-1] != out:
            way.append(before[ends[way[-1]][0]])
        return tuple(reversed(way))

    def _any(self, a: int, b: int) -> tuple[int, ...]:
        """Return a shortest path over any nodes."""
        nodes = self.boxes.nodes
        found = route(self.boxes.topology, np.array([nodes[a]]), np.array([nodes[b]]))
        return tuple(found.links.tolist())


def as_paths(ways: Sequence[tuple[int, ...]]) -> Paths:
    """Ways as columns."""
    offset = offsets([len(way) for way in ways])
    return Paths(offset, np.array([link for way in ways for link in way], dtype=np.int64))
