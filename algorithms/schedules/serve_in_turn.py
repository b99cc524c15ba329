"""Order of service of pieces with fixed paths over links.

A link serves one piece at a time, and as soon as one waits: if chosen so, first one whose next link is about to be
idle; then the one with the most links to go; of these one for the next link with the shortest queue, in the order
of arrival. So pieces with far to go start early, and at the end only pieces with one link to go are left: where
many pieces wait everywhere, the busiest link is hardly ever idle.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...core.kernel import kernel
from ...core.schedule import Ints, offsets
from ..epochs.insertion import Heap, drop_first, empty_heap, push_entry

_EVENTS = 500_000  #: events that one call of the kernel takes: a fraction of a second


class Ways(NamedTuple):
    """Links of every piece, in order."""

    first: Ints  #: (pieces + 1,) first index of each piece in ``link``
    link: Ints  #: links of all pieces together


class _Service(NamedTuple):
    """Simulation: queues of pieces by link, index of the next link at its tail, and links to go; events."""

    first: Any  #: as in :class:`Ways`
    link: Any
    window: Any
    delay: Any
    place: Any  #: (links,) index of every link among those that leave the same node, from 1 on
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
    ways: Ways,
    tails: Ints,
    window: Ints,
    delay: Ints,
    order: Ints,
    exhausted: Callable[[], bool] = lambda: False,
    few: int = 2,
) -> Ints | None:
    """Compute the ticks at which pieces start over each of their links; None if time is over.

    A piece holds a link for ``window`` ticks and is at the other end after ``delay``; below 2^53 in all. ``order`` is
    that of the pieces in the initial queues. A link with fewer than ``few`` pieces in its queue is about to be idle.
    """
    pieces, links, hops = len(ways.first) - 1, len(window), np.diff(ways.first)
    by_tail = np.argsort(tails, kind="stable")
    place = np.empty(links, dtype=np.int64)
    place[by_tail] = np.arange(links) - offsets(np.bincount(tails))[tails[by_tail]] + 1
    shape = links, int(place.max(initial=0)) + 2, int(hops.max(initial=0)) + 1
    head, tail, after = np.full(shape, -1), np.full(shape, -1), np.full(pieces, -1)
    most, count = np.zeros(shape[:2], dtype=np.int64), np.zeros(links, dtype=np.int64)
    busy, marked = np.zeros(links, dtype=np.bool_), np.zeros(links, dtype=np.bool_)
    start, heap = np.zeros(len(ways.link), dtype=np.int64), empty_heap(pieces + 2 * links + 1)
    queues = head, tail, after, most, count, busy, marked, np.arange(links), start
    service = _Service(*ways, window, delay, place, ways.first[:-1].copy(), *queues, heap, few)
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
    for place in range(service.most.shape[1]):
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
