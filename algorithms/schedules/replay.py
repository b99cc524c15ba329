"""Store-and-forward simulation of links, of given schedules and of pieces with fixed paths.

A link serves one chunk at a time; latency does not occupy it. All times are whole multiples of one tick, hence exact.
Schedules of several kinds are compared by serving their sends first come, first served, or in their order.
"""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import chain
from math import lcm
from typing import Any, NamedTuple

import numpy as np

from ...core.kernel import interpreted_form, kernel
from ...core.schedule import Bools, Chunks, Floats, Ints, Schedule, Sends, StepSchedule, number_within, offsets, ranges
from ...core.topology import Topology
from ..epochs.insertion import Heap, drop_first, empty_heap, push_entry
from ..graphs.distances import Paths

_SAME_TIME = 1e-9  #: given times that differ by less than this part of the schedule's length are the same

#: Ticks below this are exact in the keys of a heap; events that one call of a kernel takes: a fraction of a second.
_EXACT, _EVENTS = 2**53, 500_000

_ROUNDS = 200  #: most replays after which sends may still change a sum before it was forwarded


def _ticks_of_hops(topology: Topology, chunks: Chunks, sends: Sends) -> tuple[Any, Any, Fraction]:
    """Return service time and latency of each hop in ticks, as unbounded integers if necessary, and the tick in s."""
    kinds, kind = topology.kind_links, np.array(topology.link_kinds, dtype=np.int64)
    units, size = np.unique(chunks.units, return_inverse=True)
    passing = [[int(unit) * chunks.unit_bytes / link.bandwidth_Bps for link in kinds] for unit in units]
    latency = [Fraction(link.latency_s) for link in kinds]
    scale = lcm(*(time.denominator for time in chain(latency, *passing)))
    kinds_of_hops, sizes_of_hops = kind[sends.path_links], size[sends.chunk][sends.hop_send]
    table = np.array([[int(time * scale) for time in row] for row in passing], dtype=object)
    late = np.array([int(time * scale) for time in latency], dtype=object)
    longest = len(sends.path_links) * (int(table.max(initial=0)) + int(late.max(initial=0)))
    number: Any = np.int64 if longest < _EXACT / 2 else object
    return table.astype(number)[sizes_of_hops, kinds_of_hops], late.astype(number)[kinds_of_hops], Fraction(1, scale)


def first_come(topology: Topology, steps: StepSchedule, limit_s: Fraction | None = None) -> Fraction:
    """Return the last arrival in seconds if links serve sends first come, first served.

    If it is beyond the limit, return some time beyond it instead, from which on the simulation is left out.
    """
    play, tick_s = _play_steps(topology, steps, limit_s)
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
    rest: Any  #: Ticks that each link has still to serve.
    limit: int  #: Tick; the simulation ends once the last arrival is known to be later; -1 for never.


def _play_steps(topology: Topology, steps: StepSchedule, limit_s: Fraction | None = None) -> tuple[_Play, Fraction]:
    """Simulate a step schedule; return start and arrival ticks of its sends, and the tick in seconds."""
    sends, step = steps.sends, steps.step
    if (step[1:] < step[:-1]).any():
        order = np.argsort(step, kind="stable")
        play, tick_s = _play_steps(topology, replace(steps, sends=sends.take(order), step=step[order]), limit_s)
        place = np.argsort(order)
        return play._replace(start=play.start[place], end=play.end[place]), tick_s
    passing, latency, tick_s = _ticks_of_hops(topology, steps.chunks, sends)
    kind, small = passing.dtype, passing.dtype != object
    after, first_after, missing = _releases(sends, step)
    hops, rest = len(sends.path_links), np.zeros(len(topology.links), dtype=kind)
    np.add.at(rest, sends.path_links, passing)
    limit = -1 if limit_s is None else int(limit_s / tick_s)
    play = _Play(
        sends.path_offset,
        sends.hop_send,
        sends.path_links,
        passing,
        latency,
        np.zeros(len(topology.links), dtype=kind),
        after,
        first_after,
        missing,
        np.zeros(len(sends), dtype=kind),
        np.zeros(len(sends), dtype=kind),
        rest,
        min(limit, _EXACT) if small else limit,
    )
    heap = empty_heap(hops) if small else Heap(np.empty(hops, dtype=object), *empty_heap(hops)[1:])
    serve = _serve_hops if small else interpreted_form(_serve_hops)
    begin = play.first[:-1][play.missing == 0]  # all sends without predecessors, at tick 0: equal keys are a heap
    size = len(begin)
    heap.key[:size], heap.item[:size] = 0, begin
    while size:
        size = serve(play, heap, size, _EVENTS)
    return play, tick_s


@kernel
def _serve_hops(play: Any, heap: Heap, size: int, events: int) -> int:
    """Serve up to ``events`` hops in the order of their requests; return the size of the heap."""
    while size > 0 and events > 0:
        events -= 1
        asks, hop = heap.key[0], heap.item[0]
        size = drop_first(heap, size)
        send, link = play.owner[hop], play.link[hop]
        begin = max(int(asks), play.free[link])
        last = begin + play.rest[link] + play.latency[hop]  # earliest arrival of the last send over the link
        if 0 <= play.limit < last:
            play.end[send] = last
            return 0
        play.rest[link] -= play.passing[hop]
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
            play.start[other] = max(play.start[other], arrives)
            if play.missing[other] == 0:
                size = push_entry(heap, size, play.start[other], play.first[other], 0)
    return size


def _releases(sends: Sends, step: Ints) -> tuple[Ints, Ints, Ints]:
    """Return sends that wait for each of the sends by step, their first positions, and how many each waits for."""
    top, slots = int(step.max(initial=0)), _slots(sends)
    came, leave = (slot * (top + 1) for slot in slots)
    kind = np.min_scalar_type(int(max(slot.max(initial=0) for slot in slots)))  # of 16 bits, order takes half as long
    by_slot, order = (np.argsort(slot.astype(kind), kind="stable") for slot in slots)
    keys, low, high = (leave + step)[order], *np.empty((2, len(step)), dtype=np.int64)
    low[by_slot] = np.searchsorted(keys, (came + step)[by_slot], side="right")  # several times faster in order
    high[by_slot] = np.searchsorted(keys, (came + top)[by_slot], side="right")
    after = order[ranges(low, high - low)]
    return after, offsets(high - low), np.bincount(after, minlength=len(step))


def _slots(sends: Sends) -> tuple[Ints, Ints]:
    """Return the chunk and target of each send as a number, and its chunk and source."""
    nodes = int(max(sends.source.max(initial=0), sends.target.max(initial=0))) + 1
    return sends.chunk * nodes + sends.target, sends.chunk * nodes + sends.source


def _earlier_pairs(ones: tuple[Ints, Any], others: tuple[Ints, Any], side: Any = "left") -> tuple[Ints, Ints]:
    """Pair each with all others of its slot before its time; not after it, if the side is right."""
    (slot, time), (other_slot, other_time) = ones, others
    times, rank = np.unique(other_time, return_inverse=True)
    keys = other_slot * (len(times) + 1) + rank
    order = np.argsort(keys, kind="stable")
    low = np.searchsorted(keys[order], slot * (len(times) + 1))
    high = np.searchsorted(keys[order], slot * (len(times) + 1) + np.searchsorted(times, time, side=side))
    return np.repeat(np.arange(len(slot)), high - low), order[ranges(low, high - low)]


def in_order(topology: Topology, schedule: Schedule) -> tuple[Schedule, Fraction]:
    """Simulate a timed schedule whose links serve sends in the order of their original starts.

    A send that changes a sum waits for the sends that forward the sum before the change; one that replaces a sum
    keeps its place in the order. Only the order of the original times counts. Return the sends in order of service,
    with their new times, and the exact end of the last one in seconds.
    """
    order = np.lexsort((schedule.end_s, schedule.start_s))
    sends, count = schedule.sends.take(order), len(order)
    leave, came = schedule.start_s[order], schedule.end_s[order] - _SAME_TIME * float(schedule.end_s.max(initial=0.0))
    into, out = _slots(sends)
    arriving, leaving = (into, came), (out, leave)
    send, other = _earlier_pairs(leaving, arriving, "right")
    waits = offsets(np.bincount(send, minlength=count)), other
    sums, adds = schedule.chunks.reduced[sends.chunk], sends.reduce
    reads = _pairs_among(arriving, sums, leaving, sums | ~sums)
    writes = [_pairs_among(arriving, sums & ~adds, arriving, adds | ~adds)]
    writes.append(_pairs_among(arriving, sums & adds, arriving, ~adds))
    passing, latency, tick_s = _ticks_of_hops(topology, schedule.chunks, sends)
    serve = interpreted_form(_serve_in_order) if passing.dtype == object else _serve_in_order
    hops = sends.path_offset, sends.path_links, passing, latency
    release, rounds = np.zeros(count, passing.dtype), _ROUNDS
    while True:
        start, end = np.zeros((2, count), passing.dtype)
        serve(hops, waits, release, np.zeros(len(topology.links), passing.dtype), start, end)
        untils = [(reads[0], start[reads[1]]), *((send, end[other]) for send, other in writes)]
        early = [(send, until, end[send] <= until) for send, until in untils]
        if rounds == 0 or not any(now.any() for _, _, now in early):
            break
        rounds -= 1
        for send, until, now in early:
            np.maximum.at(release, send[now], until[now])
    start_s, end_s = (_seconds_of(ticks, tick_s) for ticks in (start, end))
    played = Schedule(schedule.instance_sha256, schedule.chunks, sends, start_s, end_s)
    return played, int(end.max(initial=0)) * tick_s


def _pairs_among(ones: tuple[Ints, Any], which: Bools, others: tuple[Ints, Any], of_others: Bools) -> tuple[Ints, Ints]:
    """Return the earlier pairs of some sends and some others."""
    mine, theirs = np.flatnonzero(which), np.flatnonzero(of_others)
    one, other = _earlier_pairs((ones[0][mine], ones[1][mine]), (others[0][theirs], others[1][theirs]))
    return mine[one], theirs[other]


def _seconds_of(ticks: Any, tick_s: Fraction) -> Floats:
    """Convert ticks, each with one rounding."""
    distinct, place = np.unique(ticks, return_inverse=True)
    return np.array([float(time * tick_s) for time in distinct.tolist()], dtype=np.float64)[place]


@kernel
def _serve_in_order(hops: Any, waits: Any, release: Any, free: Any, start: Any, end: Any) -> None:
    """Serve sends in sequence, none before its release; fill in start and arrival ticks."""
    first, link, passing, latency = hops
    first_wait, others = waits
    for send in range(len(start)):
        at = release[send]
        for place in range(first_wait[send], first_wait[send + 1]):
            at = max(at, end[others[place]])
        for hop in range(first[send], first[send + 1]):
            begin = max(at, free[link[hop]])
            if hop == first[send]:
                start[send] = begin
            free[link[hop]] = begin + passing[hop]
            at = free[link[hop]] + latency[hop]
        end[send] = at


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
    place = number_within(tails) + 1
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
    link, hops = service.link[at], service.first[piece + 1] - at
    place = service.place[service.link[at + 1]] if hops > 1 else 0
    if service.head[link, place, hops] < 0:
        service.head[link, place, hops] = piece
    else:
        service.after[service.tail[link, place, hops]] = piece
    service.tail[link, place, hops] = piece
    service.after[piece] = -1
    service.most[link, place] = max(service.most[link, place], hops)
    service.count[link] += 1


@kernel
def _next_queue(service: Any, link: int) -> int:
    """Return the queue whose first piece the link serves next; -1 if none waits."""
    best, most, fewest = -1, 0, 0
    for index in range(service.most.shape[1]):
        place = (index + service.shift[link]) % service.most.shape[1]
        hops = service.most[link, place]
        while hops > 0 and service.head[link, place, hops] < 0:
            hops -= 1
        service.most[link, place] = hops
        count = service.count[service.link[service.at[service.head[link, place, hops]] + 1]] if hops > 1 else 0
        if hops > 1 and count < service.few:
            hops += service.head.shape[2]
        if hops > most or (hops == most and count < fewest):
            best, most, fewest = place, hops, count
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
        hops = service.most[link, place]
        piece = service.head[link, place, hops]
        service.head[link, place, hops] = service.after[piece]
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
