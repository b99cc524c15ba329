"""Pieces with fixed ways over links: which link serves which of them when.

A link serves one piece at a time, and as soon as one waits: first the one with the most links before it, of these the
one that has come first. So what has far to go is under way early, and at the end of all there is only what has one link
left: where many pieces wait everywhere, the busiest link is never idle.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...core.kernel import kernel
from ...core.schedule import Ints
from ..epochs.insertion import Heap, drop_first, empty_heap, enter

#: Events that one call of the kernel takes: a fraction of a second.
_EVENTS = 500_000


class Ways(NamedTuple):
    """The links of every piece, in order.

    Parameters
    ----------
    first : array of int, shape (pieces + 1,)
        Where its links begin.
    link : array of int
        Links of all pieces.
    """

    first: Ints
    link: Ints


class _Waiting(NamedTuple):
    """Queues of pieces, by link and number of links that are left."""

    head: Any
    tail: Any
    after: Any
    most: Any
    busy: Any
    marked: Any


def served(
    ways: Ways, window: Ints, delay: Ints, order: Ints, exhausted: Callable[[], bool] = lambda: False
) -> Ints | None:
    """Ticks at which pieces start over each of their links.

    Parameters
    ----------
    ways : Ways
        Ways of all pieces.
    window, delay : array of int, shape (links,)
        Ticks for which a piece takes a link, and after which it is at the other end; below 2^53 in all.
    order : array of int, shape (pieces,)
        In which order pieces wait at the start.
    exhausted : callable
        Whether the time is over.

    Returns
    -------
    array of int, shape (links of all ways,) or None
        None where the time is over.
    """
    pieces, links, hops = len(ways.first) - 1, len(window), np.diff(ways.first)
    start = np.zeros(len(ways.link), dtype=np.int64)
    shape = links, int(hops.max(initial=0)) + 1
    waiting = _Waiting(
        np.full(shape, -1),
        np.full(shape, -1),
        np.full(pieces, -1),
        np.zeros(links, dtype=np.int64),
        np.zeros(links, dtype=np.bool_),
        np.zeros(links, dtype=np.bool_),
    )
    at, heap, touched = ways.first[:-1].copy(), empty_heap(pieces + 2 * links + 1), np.arange(links)
    _begin(ways.link, at, hops, waiting, order)
    size = _start(ways, window, delay, at, waiting, heap, 0, 0, touched, links, start)
    while size:
        size = _serve(ways, window, delay, at, waiting, heap, size, touched, start, _EVENTS)
        if exhausted():
            return None
    return start


@kernel
def _begin(links: Any, at: Any, hops: Any, waiting: Any, order: Any) -> None:
    for piece in order:
        if hops[piece] > 0:
            _wait(waiting, links[at[piece]], hops[piece], piece)


@kernel
def _wait(waiting: Any, link: int, left: int, piece: int) -> None:
    if waiting.head[link, left] < 0:
        waiting.head[link, left] = piece
    else:
        waiting.after[waiting.tail[link, left]] = piece
    waiting.tail[link, left] = piece
    waiting.after[piece] = -1
    waiting.most[link] = max(waiting.most[link], left)


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
    """Let idle links of those touched serve their first piece; give the new size of the heap."""
    pieces = len(at)
    for place in range(count):
        link = touched[place]
        waiting.marked[link] = False
        while waiting.most[link] > 0 and waiting.head[link, waiting.most[link]] < 0:
            waiting.most[link] -= 1
        left = waiting.most[link]
        if waiting.busy[link] or left == 0:
            continue
        piece = waiting.head[link, left]
        waiting.head[link, left] = waiting.after[piece]
        waiting.busy[link] = True
        start[at[piece]] = now
        size = enter(heap, size, float(now + window[link]), pieces + link, 0)
        size = enter(heap, size, float(now + delay[link]), piece, 0)
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
    """Take so many events, and all that happen at the same time as the last; give the new size of the heap."""
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
                _wait(waiting, link, ways.first[item + 1] - at[item], item)
            if not waiting.marked[link]:
                waiting.marked[link] = True
                touched[count] = link
                count += 1
        size = _start(ways, window, delay, at, waiting, heap, size, int(now), touched, count, start)
    return size
