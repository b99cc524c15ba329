"""Schedules played link by link, store and forward: a link serves one chunk at a time, and latency does not hold it.

A method that chooses among schedules of several kinds compares them so. All times are whole multiples of one tick,
hence exact.
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from heapq import heapify, heappop, heappush
from itertools import chain
from math import lcm

import numpy as np

from ...core.schedule import Chunks, Floats, Ints, Schedule, Sends, StepSchedule
from ...core.topology import Topology

#: Given times that differ by less than this part of the schedule's length are the same.
_SAME_TIME = 1e-9


class _Links:
    """How many ticks a chunk takes to enter each link, and the latency of each, and from when on each is free."""

    def __init__(self, topology: Topology, chunks: Chunks) -> None:
        sizes = [int(units) * chunks.unit_bytes for units in np.unique(chunks.units)]
        passing = [[size / link.bandwidth_Bps for link in topology.links] for size in sizes]
        latency = [Fraction(link.latency_s) for link in topology.links]
        scale = lcm(*(time.denominator for time in chain(latency, *passing)))
        self.tick_s = Fraction(1, scale)
        self._size: list[int] = np.unique(chunks.units, return_inverse=True)[1].tolist()
        self._passing = [[int(time * scale) for time in row] for row in passing]
        self._latency = [int(time * scale) for time in latency]
        self._free = [0] * len(latency)

    def take(self, chunk: int, link: int, asks: int) -> tuple[int, int]:
        """Let a chunk pass a link; give when it begins and when it has arrived."""
        begin = max(asks, self._free[link])
        self._free[link] = begin + self._passing[self._size[chunk]][link]
        return begin, self._free[link] + self._latency[link]


def first_come(topology: Topology, steps: StepSchedule) -> Fraction:
    """When the last chunk of a schedule in steps arrives, in seconds: who asks for a link first is served first.

    Parameters
    ----------
    topology : Topology
        The network.
    steps : StepSchedule
        A schedule on it. A send waits for what brings its chunk to its source in earlier steps.
    """
    order = np.argsort(steps.step, kind="stable")
    sends, step = steps.sends.take(order), steps.step[order]
    waits = _waits(sends, step, step + 1)
    missing = [len(some) for some in waits]
    releases: list[list[int]] = [[] for _ in waits]
    for send, some in enumerate(waits):
        for other in some:
            releases[other].append(send)
    links = _Links(topology, steps.chunks)
    chunk, owner = sends.chunk.tolist(), sends.hop_send.tolist()
    first, path = sends.path_offset.tolist(), sends.path_links.tolist()
    last = 0
    heap = [(0, first[send]) for send, count in enumerate(missing) if not count]
    heapify(heap)
    while heap:
        asks, hop = heappop(heap)
        send = owner[hop]
        arrives = links.take(chunk[send], path[hop], asks)[1]
        if hop + 1 < first[send + 1]:
            heappush(heap, (arrives, hop + 1))
            continue
        last = max(last, arrives)
        for other in releases[send]:
            missing[other] -= 1
            if not missing[other]:
                heappush(heap, (arrives, first[other]))
    return last * links.tick_s


def in_order(topology: Topology, schedule: Schedule) -> tuple[Schedule, Fraction]:
    """Play a schedule in time: links serve its sends in the order of their starts, whoever is ready first.

    Parameters
    ----------
    topology : Topology
        The network.
    schedule : Schedule
        A schedule on it. Of its times, only what comes before what counts.

    Returns
    -------
    (Schedule, Fraction)
        The same sends in the order in which they are served, with the times that they then have, and exactly when the
        last one ends, in seconds.
    """
    order = np.lexsort((schedule.end_s, schedule.start_s))
    sends = schedule.sends.take(order)
    same = _SAME_TIME * float(schedule.end_s.max(initial=0.0))
    links = _Links(topology, schedule.chunks)
    start: list[int] = []
    end: list[int] = []
    for send, waits in enumerate(_waits(sends, schedule.start_s[order], schedule.end_s[order] - same)):
        at = max((end[other] for other in waits), default=0)
        begins = []
        for link in sends.path(send):
            begin, at = links.take(int(sends.chunk[send]), link, at)
            begins.append(begin)
        start.append(begins[0])
        end.append(at)
    start_s, end_s = (np.array([float(time * links.tick_s) for time in ticks]) for ticks in (start, end))
    played = Schedule(schedule.instance_sha256, schedule.chunks, sends, start_s, end_s)
    return played, max(end, default=0) * links.tick_s


def _waits(sends: Sends, leaves: Ints | Floats, arrives: Ints | Floats) -> list[list[int]]:
    """For each send, those that bring its chunk to its source before it leaves."""
    into: dict[tuple[int, int], list[int]] = defaultdict(list)
    for send, key in enumerate(zip(sends.chunk.tolist(), sends.target.tolist(), strict=True)):
        into[key].append(send)
    left, came = leaves.tolist(), arrives.tolist()
    keys = zip(sends.chunk.tolist(), sends.source.tolist(), strict=True)
    return [[other for other in into.get(key, ()) if came[other] <= left[send]] for send, key in enumerate(keys)]
