"""Paths other than the schedule's: by a hash of the flow, or equal parts over all shortest ones.

Only sends whose own path has the fewest links between its ends are routed; a detour is the schedule's own choice.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from math import lcm
from typing import NamedTuple
from zlib import crc32

import numpy as np

from ...core.budget import require_schedulable
from ...core.errors import InputError
from ...core.schedule import Ints, Sends, offsets
from ...core.topology import Topology
from ...core.trace import Routing, Trace
from .transfers import Transfers

MOST_PATHS = 4096  #: Shortest paths between two nodes that are distinguished at most.


class RoutedTransfers(NamedTuple):
    """Transfers over other paths."""

    transfers: Transfers
    part_of: Ints  #: The send of the answer that each is a part of, itself or one of several; shape (sends,).
    sends: int

    def of_answer(self, trace: Trace) -> Trace:
        """Return the trace with one start and end for each send of the answer; hops are those of the parts."""
        start_s, end_s = np.full(self.sends, np.inf), np.zeros(self.sends)
        np.minimum.at(start_s, self.part_of, trace.start_s)
        np.maximum.at(end_s, self.part_of, trace.end_s)
        return replace(trace, start_s=start_s, end_s=end_s)


def route(topology: Topology, transfers: Transfers, routing: Routing) -> RoutedTransfers:
    """Move sends to other shortest paths of the network.

    An :class:`InputError` if more than :data:`MOST_PATHS` join two nodes among which data is to be sprayed.
    """
    sends, network = transfers.sends, _Distances(topology)
    ways: list[Sequence[Sequence[int]]] = []
    known: dict[tuple[int, int], Sequence[Sequence[int]]] = {}
    for send, ends in enumerate(zip(sends.source.tolist(), sends.target.tolist(), strict=True)):
        own = sends.path(send)
        if len(own) > network.distance(ends[1])[ends[0]]:
            ways.append((own,))
            continue
        if ends not in known:
            known[ends] = network.paths(*ends) if routing is Routing.SPRAY else (network.hashed_path(*ends),)
        ways.append(known[ends])
    parts = np.array([len(each) for each in ways], dtype=np.int64)
    require_schedulable(int(parts.sum()), sum(len(each) * len(each[0]) for each in ways))
    part_of = np.repeat(np.arange(len(sends)), parts)
    paths = [path for each in ways for path in each]
    pair = np.stack([sends.chunk[part_of], parts[part_of]])
    pairs, chunk = np.unique(pair, axis=1, return_inverse=True) if len(sends) else (pair, part_of)
    several = lcm(*np.unique(parts).tolist())
    units = transfers.units
    if units is not None:  # exact only while they are no larger than numbers may be
        fits = int(units.max(initial=0)) * several < 2**63
        units = units[pairs[0]] * (several // pairs[1]) if fits else None
    routed = Sends(
        chunk.ravel().astype(np.int64),
        sends.source[part_of],
        sends.target[part_of],
        sends.reduce[part_of],
        offsets(np.array([len(path) for path in paths], dtype=np.int64)),
        np.array([link for path in paths for link in path], dtype=np.int64),
    )
    place = part_of if transfers.place is None else transfers.place[part_of]
    moved = replace(
        transfers,
        sends=routed,
        chunk_bytes=transfers.chunk_bytes[pairs[0]] / pairs[1],
        leaves=transfers.leaves[part_of],
        arrives=transfers.arrives[part_of],
        place=None,
        units=units,
        unit_bytes=transfers.unit_bytes / several,
        data=sends.chunk[part_of],
        first_link=sends.path_links[sends.path_offset[:-1]][part_of],
    )
    return RoutedTransfers(moved, place, len(sends))


class _Distances:
    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._to: dict[int, list[int]] = {}

    @cached_property
    def _links(self) -> tuple[list[list[tuple[int, int]]], list[list[int]]]:
        """Links that leave every node with their targets, and nodes with a link to every node."""
        leaving: list[list[tuple[int, int]]] = [[] for _ in self._topology.nodes]
        before: list[list[int]] = [[] for _ in self._topology.nodes]
        for link, (source, target) in enumerate(self._topology.link_ends):
            leaving[source].append((link, target))
            before[target].append(source)
        return leaving, before

    def distance(self, target: int) -> list[int]:
        """Return the fewest links from every node to one."""
        if target not in self._to:
            _, before = self._links
            far = len(before)
            found = [far] * far
            found[target] = 0
            waiting = deque([target])
            while waiting:
                node = waiting.popleft()
                for other in before[node]:
                    if found[other] == far:
                        found[other] = found[node] + 1
                        waiting.append(other)
            self._to[target] = found
        return self._to[target]

    def _onward(self, node: int, target: int) -> list[tuple[int, int]]:
        """Return links from a node that come nearer to the target, with their ends."""
        distance, (leaving, _) = self.distance(target), self._links
        return [(link, other) for link, other in leaving[node] if distance[other] < distance[node]]

    def paths(self, source: int, target: int) -> list[list[int]]:
        """Return all paths of the fewest links."""
        found: list[list[int]] = []
        waiting: list[tuple[int, list[int]]] = [(source, [])]
        while waiting:
            node, path = waiting.pop()
            if node == target:
                found.append(path)
                continue
            waiting += [(other, [*path, link]) for link, other in reversed(self._onward(node, target))]
            if len(found) + len(waiting) > MOST_PATHS:
                names = [self._topology.nodes[end].name for end in (source, target)]
                problem = f"more than {MOST_PATHS:,} shortest paths from {names[0]} to {names[1]}"
                raise InputError(problem, place="routing")
        return found

    def hashed_path(self, source: int, target: int) -> list[int]:
        """Return the path that every node on it chooses by a hash of the two ends and itself."""
        path, node = [], source
        while node != target:
            onward = self._onward(node, target)
            link, node = onward[crc32(f"{source} {target} {node}".encode()) % len(onward)]
            path.append(link)
        return path
