"""Schedules played link by link, store and forward: a link serves one chunk at a time, and latency does not hold it.

A method that chooses among schedules of several kinds compares them so. All times are whole multiples of one tick,
hence exact.
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from itertools import chain
from math import lcm
from typing import Any, NamedTuple

import numpy as np

from ...core.kernel import interpreted, kernel
from ...core.ragged import ranges
from ...core.schedule import Chunks, Floats, Ints, Schedule, Sends, StepSchedule
from ...core.topology import Topology
from ..epochs.insertion import Heap, drop_first, empty_heap, enter

#: Given times that differ by less than this part of the schedule's length are the same.
_SAME_TIME = 1e-9

#: Ticks below this are exact in the keys of a heap; hops that one call of the kernel serves.
_EXACT, _EVENTS = 2**53, 500_000


class _Links:
    """How many ticks a chunk takes to enter each link, and the latency of each, and from when on each is free."""

    def __init__(self, topology: Topology, chunks: Chunks) -> None:
        # By identity, since links share their numbers and fractions are slow to compare.
        kinds = {(id(link.bandwidth_Bps), id(link.latency_s)): link for link in topology.links}
        place = {kind: index for index, kind in enumerate(kinds)}
        self._kind = [place[id(link.bandwidth_Bps), id(link.latency_s)] for link in topology.links]
        sizes = [int(units) * chunks.unit_bytes for units in np.unique(chunks.units)]
        passing = [[size / link.bandwidth_Bps for link in kinds.values()] for size in sizes]
        latency = [Fraction(link.latency_s) for link in kinds.values()]
        scale = lcm(*(time.denominator for time in chain(latency, *passing)))
        self.tick_s = Fraction(1, scale)
        self._size: list[int] = np.unique(chunks.units, return_inverse=True)[1].tolist()
        self._passing = [[int(time * scale) for time in row] for row in passing]
        self._latency = [int(time * scale) for time in latency]
        self._free = [0] * len(topology.links)

    def of_hops(self, sends: Sends) -> tuple[Any, Any]:
        """Ticks that each hop takes its link, and its latency, as integers of any size where they must be."""
        number: Any = np.int64 if max(map(max, [*self._passing, self._latency])) < _EXACT else object
        size = np.array(self._size, dtype=np.int64)[sends.chunk][sends.hop_send]
        kind = np.array(self._kind, dtype=np.int64)[sends.path_links]
        return np.array(self._passing, dtype=number)[size, kind], np.array(self._latency, dtype=number)[kind]

    def take(self, chunk: int, link: int, asks: int) -> tuple[int, int]:
        """Let a chunk pass a link; give when it begins and when it has arrived."""
        begin = max(asks, self._free[link])
        self._free[link] = begin + self._passing[self._size[chunk]][self._kind[link]]
        return begin, self._free[link] + self._latency[self._kind[link]]


def first_come(topology: Topology, steps: StepSchedule) -> Fraction:
    """When the last chunk of a schedule in steps arrives, in seconds: who asks for a link first is served first.

    Parameters
    ----------
    topology : Topology
        The network.
    steps : StepSchedule
        A schedule on it. A send waits for what brings its chunk to its source in earlier steps.
    """
    play, tick_s = _played(topology, steps)
    return int(play.end.max(initial=0)) * tick_s


def timed_first_come(topology: Topology, steps: StepSchedule) -> Schedule:
    """The same schedule in time, with the times that its sends have in :func:`first_come`."""
    play, tick_s = _played(topology, steps)
    start_s, end_s = (np.asarray(ticks * float(tick_s), dtype=np.float64) for ticks in (play.start, play.end))
    return Schedule(steps.instance_sha256, steps.chunks, steps.sends, start_s, end_s)


def _played(topology: Topology, steps: StepSchedule) -> tuple[_Play, Fraction]:
    """Play a schedule in steps; ticks at which its sends start and have arrived, and how long a tick is."""
    order = np.argsort(steps.step, kind="stable")
    sends, step = steps.sends.take(order), steps.step[order]
    links = _Links(topology, steps.chunks)
    passing, latency = links.of_hops(sends)
    small = float(passing.sum(dtype=np.float64) + latency.sum(dtype=np.float64)) < _EXACT / 2
    kind: Any = np.int64 if small else object
    after, first_after, missing = _releases(sends, step)
    hops = len(sends.path_links)
    play = _Play(
        sends.path_offset,
        sends.hop_send,
        sends.path_links,
        passing.astype(kind),
        latency.astype(kind),
        np.zeros(len(topology.links), dtype=kind),
        after,
        first_after,
        missing,
        np.zeros(len(sends), dtype=kind),
        np.zeros(len(sends), dtype=kind),
    )
    heap = empty_heap(hops) if small else Heap(np.empty(hops, dtype=object), *empty_heap(hops)[1:])
    serve = _served if small else interpreted(_served)
    size = _begun(heap, play)
    while size:
        size = serve(play, heap, size, _EVENTS)
    place = np.argsort(order)
    return play._replace(start=play.start[place], end=play.end[place]), links.tick_s


def _begun(heap: Heap, play: _Play) -> int:
    """Let all that waits for nothing ask at 0: entries of one key in their order are a heap."""
    start = play.first[:-1][play.missing == 0]
    heap.key[: len(start)] = 0
    heap.item[: len(start)] = start
    return len(start)


class _Play(NamedTuple):
    """A schedule in play: hops by their place in the paths, what each send releases and misses, and when it was sent."""

    first: Any
    owner: Any
    link: Any
    passing: Any
    latency: Any
    free: Any
    after: Any
    first_after: Any
    missing: Any
    start: Any
    end: Any


@kernel
def _served(play: Any, heap: Heap, size: int, events: int) -> int:
    """Let so many hops be served in the order in which they ask; give the size of the heap."""
    while size > 0 and events > 0:
        events -= 1
        asks, hop = heap.key[0], heap.item[0]
        size = drop_first(heap, size)
        send, link = play.owner[hop], play.link[hop]
        begin = max(int(asks), play.free[link])
        play.free[link] = begin + play.passing[hop]
        arrives = play.free[link] + play.latency[hop]
        if hop == play.first[send]:
            play.start[send] = begin
        if hop + 1 < play.first[send + 1]:
            size = enter(heap, size, arrives, hop + 1, 0)
            continue
        play.end[send] = arrives
        for place in range(play.first_after[send], play.first_after[send + 1]):
            other = play.after[place]
            play.missing[other] -= 1
            if play.missing[other] == 0:
                size = enter(heap, size, arrives, play.first[other], 0)
    return size


def _releases(sends: Sends, step: Ints) -> tuple[Ints, Ints, Ints]:
    """Sends that wait for each send, where those of each begin, and for how many each waits."""
    nodes = int(max(sends.source.max(initial=0), sends.target.max(initial=0))) + 1
    into, wanted = sends.chunk * nodes + sends.target, sends.chunk * nodes + sends.source
    by_slot = np.argsort(into, kind="stable")
    low, high = (np.searchsorted(into[by_slot], wanted, side=side) for side in ("left", "right"))
    waiting = np.repeat(np.arange(len(wanted)), high - low)
    other = by_slot[ranges(low, high - low)]
    earlier = step[other] < step[waiting]
    waiting, other = waiting[earlier], other[earlier]
    order = np.argsort(other, kind="stable")
    first = np.searchsorted(other[order], np.arange(len(wanted) + 1))
    return waiting[order], first.astype(np.int64), np.bincount(waiting, minlength=len(wanted))


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
