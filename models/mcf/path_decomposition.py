"""Paths of whole pieces from flows.

Every pair's data is cut into equal pieces. A piece is traced back from its target: at every node over the link with
the largest remaining flow of its source. Deviations of a link's load from its flow are offset against the flows of
later sources, so that over all sources a link is off by a few pieces.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...algorithms.schedules.serve_in_turn import Ways
from ...core.kernel import kernel
from ...core.ragged import offsets
from ...core.schedule import Floats, Ints
from .problem import Exchange

#: Flows of less than this part of a piece are rounding.
_LEAST = 1e-4

#: Pieces by which a link's excess counts at most, so that no source leaves its flow by more than it must.
_MOST = 0.5


def ways_of(
    exchange: Exchange, wanted: Callable[[int], Floats], pieces: int, exhausted: Callable[[], bool] = lambda: False
) -> Ways | None:
    """Return the paths of all pieces, by source, target and piece.

    Parameters
    ----------
    exchange : Exchange
        Exchange with weights 0 and 1.
    wanted : callable
        ``wanted(source)``: its flow over every link, in pieces.
    pieces : int
        Number of pieces of every pair.

    Returns
    -------
    Ways or None
        None when the time is over.
    """
    order = np.argsort(exchange.heads, kind="stable")
    first = offsets(np.bincount(exchange.heads, minlength=exchange.points))
    excess = np.zeros(len(exchange.tails))
    hops, links = list[Ints](), list[Ints]()
    for number, source in enumerate(exchange.sources.tolist()):
        if exhausted():
            return None
        flow = wanted(number)
        targets = np.flatnonzero(exchange.weights[number] > 0)
        count = np.zeros(len(targets) * pieces, dtype=np.int64)
        room = np.empty(len(targets) * pieces * exchange.points, dtype=np.int64)
        left = np.where(flow > _LEAST, flow - np.clip(excess, -_MOST, _MOST), -np.inf)
        place = np.full(exchange.points, -1)
        used = _follow(source, targets, pieces, left, exchange.tails, first, order, place, count, room)
        links.append(room[:used].copy())
        hops.append(count)
        excess += np.bincount(links[-1], minlength=len(excess)) - flow
    return Ways(offsets(np.concatenate(hops)), np.concatenate(links))


@kernel
def _follow(
    source: int,
    targets: Any,
    pieces: int,
    left: Any,
    tails: Any,
    first: Any,
    entering: Any,
    place: Any,
    count: Any,
    room: Any,
) -> int:
    """Trace all pieces of a source back to it; return their total number of links.

    A path that returns to a node continues from its first visit there; the cycle has used up its links' flow.
    """
    used = 0
    for index in range(len(targets)):
        for piece in range(pieces):
            node, length = targets[index], 0
            while node != source:
                best = entering[first[node]]
                for at in range(first[node], first[node + 1]):
                    if left[entering[at]] > left[best]:
                        best = entering[at]
                left[best] -= 1.0
                place[node] = length
                room[used + length] = best
                length += 1
                node = tails[best]
                if place[node] >= 0:
                    for back in range(place[node] + 1, length):
                        place[tails[room[used + back - 1]]] = -1
                    length = place[node]
            place[targets[index]] = -1
            for back in range(length):
                place[tails[room[used + back]]] = -1
            for back in range(length // 2):
                other = used + length - 1 - back
                room[used + back], room[other] = room[other], room[used + back]
            count[index * pieces + piece] = length
            used += length
    return used
