"""Store-and-forward simulation of schedules, link by link, for comparison of schedules of several kinds.

A link serves one chunk at a time; latency does not occupy it. All times are whole multiples of one tick, hence
exact.
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from itertools import chain
from math import lcm
from typing import Any, NamedTuple

import numpy as np

from ...core.kernel import interpreted_form, kernel
from ...core.schedule import Chunks, Floats, Ints, Schedule, Sends, StepSchedule, ranges
from ...core.topology import Topology
from ..epochs.insertion import Heap, drop_first, empty_heap, push_entry

_SAME_TIME = 1e-9  #: given times that differ by less than this part of the schedule's length are the same

#: Ticks below this are exact in the keys of a heap; hops that one call of the kernel serves.
_EXACT, _EVENTS = 2**53, 500_000

_ROUNDS = 200  #: most replays after which sends may still change a sum before it was forwarded


class _Links:
    """Links with service times and latencies in ticks, and the tick at which each is free."""

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
        """Return service time and latency in ticks of each hop, as unbounded integers if necessary."""
        number: Any = np.int64 if max(map(max, [*self._passing, self._latency])) < _EXACT else object
        size = np.array(self._size, dtype=np.int64)[sends.chunk][sends.hop_send]
        kind = np.array(self._kind, dtype=np.int64)[sends.path_links]
        return np.array(self._passing, dtype=number)[size, kind], np.array(self._latency, dtype=number)[kind]

    def take(self, chunk: int, link: int, asks: int) -> tuple[int, int]:
        """Send a chunk over a link; return its start and arrival."""
        begin = max(asks, self._free[link])
        self._free[link] = begin + self._passing[self._size[chunk]][self._kind[link]]
        return begin, self._free[link] + self._latency[self._kind[link]]


def first_come(topology: Topology, steps: StepSchedule) -> Fraction:
    """Return the last arrival in seconds if links serve sends first come, first served."""
    play, tick_s = _play_steps(topology, steps)
    return int(play.end.max(initial=0)) * tick_s


def timed_first_come(topology: Topology, steps: StepSchedule) -> Schedule:
    """Return the schedule with the times that its sends have in :func:`first_come`."""
    play, tick_s = _play_steps(topology, steps)
    start_s, end_s = (np.asarray(ticks * float(tick_s), dtype=np.float64) for ticks in (play.start, play.end))
    return Schedule(steps.instance_sha256, steps.chunks, steps.sends, start_s, end_s)


def _play_steps(topology: Topology, steps: StepSchedule) -> tuple[_Play, Fraction]:
    """Simulate a step schedule; return start and arrival ticks of its sends, and the tick in seconds."""
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
    serve = _serve_hops if small else interpreted_form(_serve_hops)
    begin = play.first[:-1][play.missing == 0]  # all sends without predecessors, at tick 0: equal keys are a heap
    size = len(begin)
    heap.key[:size], heap.item[:size] = 0, begin
    while size:
        size = serve(play, heap, size, _EVENTS)
    place = np.argsort(order)
    return play._replace(start=play.start[place], end=play.end[place]), links.tick_s


class _Play(NamedTuple):
    """State of a simulation: hops by path position, dependences of sends, and their times."""

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
def _serve_hops(play: Any, heap: Heap, size: int, events: int) -> int:
    """Serve up to ``events`` hops in the order of their requests; return the size of the heap."""
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
            size = push_entry(heap, size, arrives, hop + 1, 0)
            continue
        play.end[send] = arrives
        for place in range(play.first_after[send], play.first_after[send + 1]):
            other = play.after[place]
            play.missing[other] -= 1
            if play.missing[other] == 0:
                size = push_entry(heap, size, arrives, play.first[other], 0)
    return size


def _releases(sends: Sends, step: Ints) -> tuple[Ints, Ints, Ints]:
    """Return sends that wait for each send, their first positions, and the number that each waits for."""
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
    """Simulate a timed schedule whose links serve sends in the order of their original starts.

    A send that changes a sum waits for the sends that forward the sum before the change; one that replaces a sum
    keeps its place in the order. Only the order of the original times counts. Return the sends in order of service,
    with their new times, and the exact end of the last one in seconds.
    """
    order = np.lexsort((schedule.end_s, schedule.start_s))
    sends = schedule.sends.take(order)
    same = _SAME_TIME * float(schedule.end_s.max(initial=0.0))
    leaves, arrives = schedule.start_s[order], schedule.end_s[order] - same
    waits, reads = _waits(sends, leaves, arrives), _forwards_before(sends, leaves, arrives, schedule.chunks)
    writes = _writes(sends, arrives, schedule.chunks)
    release = [0] * len(sends)
    links = _Links(topology, schedule.chunks)
    start, end = _serve_in_order(links, sends, waits, release)
    for _ in range(_ROUNDS):
        early = [(send, start[other]) for send, other in reads if end[send] <= start[other]]
        early += [(send, end[other]) for send, other in writes if end[send] <= end[other]]
        if not early:
            break
        for send, until in early:
            release[send] = max(release[send], until)
        links = _Links(topology, schedule.chunks)
        start, end = _serve_in_order(links, sends, waits, release)
    start_s, end_s = (np.array([float(time * links.tick_s) for time in ticks]) for ticks in (start, end))
    played = Schedule(schedule.instance_sha256, schedule.chunks, sends, start_s, end_s)
    return played, max(end, default=0) * links.tick_s


def _serve_in_order(
    links: _Links, sends: Sends, waits: list[list[int]], release: list[int]
) -> tuple[list[int], list[int]]:
    """Serve sends in sequence, none before its release; return start and arrival ticks."""
    start: list[int] = []
    end: list[int] = []
    for send, others in enumerate(waits):
        at = max((end[other] for other in others), default=0)
        at = max(at, release[send])
        begins = []
        for link in sends.path(send):
            begin, at = links.take(int(sends.chunk[send]), link, at)
            begins.append(begin)
        start.append(begins[0])
        end.append(at)
    return start, end


def _forwards_before(sends: Sends, leaves: Floats, arrives: Floats, chunks: Chunks) -> list[tuple[int, int]]:
    """Pair each send that changes a sum with every send that forwards the sum before the change."""
    out: dict[tuple[int, int], list[int]] = defaultdict(list)
    rows = [(n, int(sends.chunk[n])) for n in np.flatnonzero(chunks.reduced[sends.chunk]).tolist()]
    for send, chunk in rows:
        out[chunk, int(sends.source[send])].append(send)
    left, came = leaves.tolist(), arrives.tolist()
    return [
        (send, other)
        for send, chunk in rows
        for other in out.get((chunk, int(sends.target[send])), ())
        if came[send] > left[other]
    ]


def _writes(sends: Sends, arrives: Floats, chunks: Chunks) -> list[tuple[int, int]]:
    """Pair sends of sums with earlier arrivals at the same target, if either replaces the sum."""
    into: dict[tuple[int, int], list[int]] = defaultdict(list)
    reduced = chunks.reduced[sends.chunk]
    for send in np.flatnonzero(reduced).tolist():
        into[int(sends.chunk[send]), int(sends.target[send])].append(send)
    came, adds = arrives.tolist(), sends.reduce.tolist()
    return [
        (send, other)
        for there in into.values()
        for send in there
        for other in there
        if came[send] > came[other] and not (adds[send] and adds[other])
    ]


def _waits(sends: Sends, leaves: Ints | Floats, arrives: Ints | Floats) -> list[list[int]]:
    """List, for each send, those that bring its chunk to its source before it leaves."""
    into: dict[tuple[int, int], list[int]] = defaultdict(list)
    for send, key in enumerate(zip(sends.chunk.tolist(), sends.target.tolist(), strict=True)):
        into[key].append(send)
    left, came = leaves.tolist(), arrives.tolist()
    keys = zip(sends.chunk.tolist(), sends.source.tolist(), strict=True)
    return [[other for other in into.get(key, ()) if came[other] <= left[send]] for send, key in enumerate(keys)]
