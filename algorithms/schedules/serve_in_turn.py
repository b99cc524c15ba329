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
from ...core.ragged import offsets
from ...core.schedule import Ints
from ..epochs.insertion import Heap, drop_first, empty_heap, push_entry

#: Events that one call of the kernel takes: a fraction of a second.
_EVENTS = 500_000


class Ways(NamedTuple):
    """Links of every piece, in order."""

    first: Ints  #: (pieces + 1,) first index of each piece in ``link``
    link: Ints  #: links of all pieces together


class _PieceQueues(NamedTuple):
    """Queues of pieces, by link, index of the next link at its tail, and links to go."""

    head: Any
    tail: Any
    after: Any
    most: Any
    count: Any
    place: Any
    busy: Any
    marked: Any
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
    start = np.zeros(len(ways.link), dtype=np.int64)
    place = _places(tails)
    shape = links, int(place.max(initial=0)) + 2, int(hops.max(initial=0)) + 1
    waiting = _PieceQueues(
        np.full(shape, -1),
        np.full(shape, -1),
        np.full(pieces, -1),
        np.zeros(shape[:2], dtype=np.int64),
        np.zeros(links, dtype=np.int64),
        place,
        np.zeros(links, dtype=np.bool_),
        np.zeros(links, dtype=np.bool_),
        few,
    )
    at, heap, touched = ways.first[:-1].copy(), empty_heap(pieces + 2 * links + 1), np.arange(links)
    _begin(ways, at, waiting, order)
    size = _start(ways, window, delay, at, waiting, heap, 0, 0, touched, links, start)
    while size:
        size = _serve(ways, window, delay, at, waiting, heap, size, touched, start, _EVENTS)
        if exhausted():
            return None
    return start


def _places(tails: Ints) -> Ints:
    """Return the index of every link among those that leave the same node, from 1 on."""
    order = np.argsort(tails, kind="stable")
    first = offsets(np.bincount(tails))
    place = np.empty(len(tails), dtype=np.int64)
    place[order] = np.arange(len(tails)) - first[tails[order]] + 1
    return place


@kernel
def _begin(ways: Any, at: Any, waiting: Any, order: Any) -> None:
    for piece in order:
        if ways.first[piece] < ways.first[piece + 1]:
            _enqueue_piece(ways, waiting, at[piece], ways.first[piece + 1] - at[piece], piece)


@kernel
def _enqueue_piece(ways: Any, waiting: Any, at: int, left: int, piece: int) -> None:
    link = ways.link[at]
    place = waiting.place[ways.link[at + 1]] if left > 1 else 0
    if waiting.head[link, place, left] < 0:
        waiting.head[link, place, left] = piece
    else:
        waiting.after[waiting.tail[link, place, left]] = piece
    waiting.tail[link, place, left] = piece
    waiting.after[piece] = -1
    waiting.most[link, place] = max(waiting.most[link, place], left)
    waiting.count[link] += 1


@kernel
def _next_queue(ways: Any, at: Any, waiting: Any, link: int) -> int:
    """Return the queue whose first piece the link serves next; -1 if none waits."""
    best, most, fewest = -1, 0, 0
    for place in range(waiting.most.shape[1]):
        left = waiting.most[link, place]
        while left > 0 and waiting.head[link, place, left] < 0:
            left -= 1
        waiting.most[link, place] = left
        count = waiting.count[ways.link[at[waiting.head[link, place, left]] + 1]] if left > 1 else 0
        if left > 1 and count < waiting.few:
            left += waiting.head.shape[2]
        if left > most or (left == most and count < fewest):
            best, most, fewest = place, left, count
    return best


@kernel
def _start(
    ways: Any,
    window: Any,
    delay: Any,
    at: Any,
    waiting: Any,
    heap: Heap,
    size: int,
    now: int,
    touched: Any,
    count: int,
    start: Any,
) -> int:
    """Let idle touched links serve their first piece; return the new size of the heap."""
    pieces = len(at)
    for number in range(count):
        link = touched[number]
        waiting.marked[link] = False
        if waiting.busy[link] or waiting.count[link] == 0:
            continue
        place = _next_queue(ways, at, waiting, link)
        left = waiting.most[link, place]
        piece = waiting.head[link, place, left]
        waiting.head[link, place, left] = waiting.after[piece]
        waiting.count[link] -= 1
        waiting.busy[link] = True
        start[at[piece]] = now
        size = push_entry(heap, size, float(now + window[link]), pieces + link, 0)
        size = push_entry(heap, size, float(now + delay[link]), piece, 0)
    return size


@kernel
def _serve(
    ways: Any,
    window: Any,
    delay: Any,
    at: Any,
    waiting: Any,
    heap: Heap,
    size: int,
    touched: Any,
    start: Any,
    events: int,
) -> int:
    """Process a number of events, up to the end of a tick; return the new size of the heap."""
    pieces = len(at)
    while size > 0 and events > 0:
        now, count = heap.key[0], 0
        while size > 0 and heap.key[0] == now:
            item = heap.item[0]
            size = drop_first(heap, size)
            events -= 1
            if item >= pieces:
                link = item - pieces
                waiting.busy[link] = False
            else:
                at[item] += 1
                if at[item] == ways.first[item + 1]:
                    continue
                link = ways.link[at[item]]
                _enqueue_piece(ways, waiting, at[item], ways.first[item + 1] - at[item], item)
            if not waiting.marked[link]:
                waiting.marked[link] = True
                touched[count] = link
                count += 1
        size = _start(ways, window, delay, at, waiting, heap, size, int(now), touched, count, start)
    return size
