"""Store-and-forward simulation of links, of given schedules and of pieces with fixed paths.

A link serves one chunk at a time; latency does not occupy it. All times are whole multiples of one tick, hence exact.
Schedules of several kinds are compared by serving their sends first come, first served, or in their order.
"""

from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from itertools import chain
from math import lcm
from typing import Any, NamedTuple

import numpy as np

from ...core.kernel import interpreted_form, kernel
from ...core.schedule import Chunks, Ints, Schedule, Sends, StepSchedule, offsets, ranges
from ...core.topology import Topology
from ..epochs.insertion import Heap, drop_first, empty_heap, push_entry
from ..graphs.distances import Paths

_SAME_TIME = 1e-9  #: given times that differ by less than this part of the schedule's length are the same

#: Ticks below this are exact in the keys of a heap; events that one call of a kernel takes: a fraction of a second.
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
    waits, reads, writes = _dependences(sends, leaves.tolist(), arrives.tolist(), schedule.chunks)
    release = [0] * len(sends)
    rounds = _ROUNDS
    while True:
        links = _Links(topology, schedule.chunks)
        start, end = _serve_in_order(links, sends, waits, release)
        early = [(send, start[other]) for send, other in reads if end[send] <= start[other]]
        early += [(send, end[other]) for send, other in writes if end[send] <= end[other]]
        if not early or rounds == 0:
            break
        rounds -= 1
        for send, until in early:
            release[send] = max(release[send], until)
    start_s, end_s = (np.array([float(time * links.tick_s) for time in ticks]) for ticks in (start, end))
    played = Schedule(schedule.instance_sha256, schedule.chunks, sends, start_s, end_s)
    return played, max(end, default=0) * links.tick_s


def _serve_in_order(
    links: _Links, sends: Sends, waits: list[list[int]], release: list[int]
) -> tuple[list[int], list[int]]:
    """Serve sends in sequence, none before its release; return start and arrival ticks."""
    start, end = list[int](), list[int]()
    for send, others in enumerate(waits):
        at, begins = max([release[send], *(end[other] for other in others)]), list[int]()
        for link in sends.path(send):
            begin, at = links.take(int(sends.chunk[send]), link, at)
            begins.append(begin)
        start.append(begins[0])
        end.append(at)
    return start, end


_Pairs = list[tuple[int, int]]


def _dependences(
    sends: Sends, left: list[float], came: list[float], chunks: Chunks
) -> tuple[list[list[int]], _Pairs, _Pairs]:
    """List, for each send, those that bring its chunk to its source before it leaves; and pair sends of sums.

    The pairs are a send that changes a sum and one that forwards the sum before the change; and a send with an earlier
    arrival at the same target, if either replaces the sum.
    """
    chunk, adds = sends.chunk.tolist(), sends.reduce.tolist()
    here, there = (list(zip(chunk, ends.tolist(), strict=True)) for ends in (sends.source, sends.target))
    out, into = defaultdict[tuple[int, int], list[int]](list), defaultdict[tuple[int, int], list[int]](list)
    for send in range(len(sends)):
        out[here[send]].append(send)
        into[there[send]].append(send)
    waits = [[other for other in into.get(key, ()) if came[other] <= left[send]] for send, key in enumerate(here)]
    sums = np.flatnonzero(chunks.reduced[sends.chunk]).tolist()
    reads = [(send, other) for send in sums for other in out.get(there[send], ()) if came[send] > left[other]]
    late = ((send, other) for send in sums for other in into[there[send]] if came[send] > came[other])
    return waits, reads, [(send, other) for send, other in late if not (adds[send] and adds[other])]


class _Service(NamedTuple):
    """Simulation: queues of pieces by link, index of the next link at its tail, and links to go; events."""

    first: Any  #: offsets and links of the pieces' paths
    link: Any
    window: Any
    delay: Any
    place: Any  #: (links,) index of every link among those that leave the same node, from 1 on
    shift: Any  #: (links,) place that is looked at first: of equal queues, the next one
    at: Any  #: (pieces,) next entry of ``link``
    head: Any
    tail: Any
    after: Any
    most: Any
    count: Any
    busy: Any
    marked: Any
    touched: Any
    start: Any
    heap: Heap
    few: int


def serve_pieces(
    ways: Paths,
    tails: Ints,
    window: Ints,
    delay: Ints,
    order: Ints,
    exhausted: Callable[[], bool] = lambda: False,
    few: int = 2,
    shift: Ints | int = 0,
) -> Ints | None:
    """Compute the ticks at which pieces start over each of their links; None if time is over.

    A piece holds a link for ``window`` ticks and is at the other end after ``delay``; below 2^53 in all. ``order`` is
    that of the pieces in the initial queues. A link with fewer than ``few`` pieces in its queue is about to be idle.
    Of equal queues for next links, a link serves that for the ``shift``-th link out of its head first, or one after it.
    """
    pieces, links, hops = len(ways.offset) - 1, len(window), np.diff(ways.offset)
    by_tail = np.argsort(tails, kind="stable")
    place = np.empty(links, dtype=np.int64)
    place[by_tail] = np.arange(links) - offsets(np.bincount(tails))[tails[by_tail]] + 1
    shape = links, int(place.max(initial=0)) + 2, int(hops.max(initial=0)) + 1
    head, tail, after = np.full(shape, -1), np.full(shape, -1), np.full(pieces, -1)
    most, count = np.zeros(shape[:2], dtype=np.int64), np.zeros(links, dtype=np.int64)
    busy, marked = np.zeros(links, dtype=np.bool_), np.zeros(links, dtype=np.bool_)
    start, heap = np.zeros(len(ways.links), dtype=np.int64), empty_heap(pieces + 2 * links + 1)
    queues = head, tail, after, most, count, busy, marked, np.arange(links), start
    at, turn = ways.offset[:-1].copy(), np.zeros(links, dtype=np.int64) + shift
    service = _Service(ways.offset, ways.links, window, delay, place, turn, at, *queues, heap, few)
    size = _begin(service, order)
    while size:
        size = _serve(service, size, _EVENTS)
        if exhausted():
            return None
    return start


@kernel
def _begin(service: Any, order: Any) -> int:
    """Fill the queues and let all links serve their first piece; return the size of the heap."""
    for piece in order:
        if service.first[piece] < service.first[piece + 1]:
            _enqueue_piece(service, piece)
    return int(_start(service, 0, 0, len(service.touched)))


@kernel
def _enqueue_piece(service: Any, piece: int) -> None:
    at = service.at[piece]
    link, left = service.link[at], service.first[piece + 1] - at
    place = service.place[service.link[at + 1]] if left > 1 else 0
    if service.head[link, place, left] < 0:
        service.head[link, place, left] = piece
    else:
        service.after[service.tail[link, place, left]] = piece
    service.tail[link, place, left] = piece
    service.after[piece] = -1
    service.most[link, place] = max(service.most[link, place], left)
    service.count[link] += 1


@kernel
def _next_queue(service: Any, link: int) -> int:
    """Return the queue whose first piece the link serves next; -1 if none waits."""
    best, most, fewest = -1, 0, 0
    for index in range(service.most.shape[1]):
        place = (index + service.shift[link]) % service.most.shape[1]
        left = service.most[link, place]
        while left > 0 and service.head[link, place, left] < 0:
            left -= 1
        service.most[link, place] = left
        count = service.count[service.link[service.at[service.head[link, place, left]] + 1]] if left > 1 else 0
        if left > 1 and count < service.few:
            left += service.head.shape[2]
        if left > most or (left == most and count < fewest):
            best, most, fewest = place, left, count
    return best


@kernel
def _start(service: Any, size: int, now: int, count: int) -> int:
    """Let idle touched links serve their first piece; return the new size of the heap."""
    pieces, heap = len(service.at), service.heap
    for number in range(count):
        link = service.touched[number]
        service.marked[link] = False
        if service.busy[link] or service.count[link] == 0:
            continue
        place = _next_queue(service, link)
        left = service.most[link, place]
        piece = service.head[link, place, left]
        service.head[link, place, left] = service.after[piece]
        service.count[link] -= 1
        service.busy[link] = True
        service.start[service.at[piece]] = now
        size = push_entry(heap, size, float(now + service.window[link]), pieces + link, 0)
        size = push_entry(heap, size, float(now + service.delay[link]), piece, 0)
    return size


@kernel
def _serve(service: Any, size: int, events: int) -> int:
    """Process a number of events, up to the end of a tick; return the new size of the heap."""
    pieces, heap = len(service.at), service.heap
    while size > 0 and events > 0:
        now, count = heap.key[0], 0
        while size > 0 and heap.key[0] == now:
            item = heap.item[0]
            size = drop_first(heap, size)
            events -= 1
            if item >= pieces:
                link = item - pieces
                service.busy[link] = False
            else:
                service.at[item] += 1
                if service.at[item] == service.first[item + 1]:
                    continue
                link = service.link[service.at[item]]
                _enqueue_piece(service, item)
            if not service.marked[link]:
                service.marked[link] = True
                service.touched[count] = link
                count += 1
        size = _start(service, size, int(now), count)
    return size
