"""Rip-up and re-route: a few chunks are withdrawn and inserted anew, again and again, until all arrive by the target."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from .grow import Taste, insert, prune, scattered
from .heap import Heap
from .state import Roads, State, retrace, withdraw

#: Most chunks that are withdrawn at once.
MOST = 6

#: Weights of the prices, before they are scattered.
WEIGHTS = (0.0, 0.3, 1.0, 3.0, 10.0)


@numba.njit(cache=True)
def lateness(state: State, lacking: Any, chunk: int, target: int) -> int:
    """Sum the epochs beyond the target over all who lack the chunk."""
    late = 0
    for node in range(lacking.shape[1]):
        if lacking[chunk, node]:
            late += max(0, state.arrival[chunk, node] - target)
    return late


@numba.njit(cache=True)
def makespan(state: State, lacking: Any) -> int:
    """Give the last arrival that somebody needs."""
    last = 0
    for chunk in range(lacking.shape[0]):
        for node in range(lacking.shape[1]):
            if lacking[chunk, node]:
                last = max(last, state.arrival[chunk, node])
    return last


@numba.njit(cache=True)
def chosen(late: Any, total: int, draw: Any, members: Any) -> int:
    """Choose one late chunk, the later the likelier, and up to five others; give how many. ``draw`` is a row of numbers from 0 to 1."""
    at = draw[0] * total
    critical = 0
    for chunk in range(len(late)):
        at -= late[chunk]
        if late[chunk] > 0:
            critical = chunk
        if at < 0:
            break
    members[0] = critical
    count = 1
    for i in range(int(draw[1] * MOST)):
        other = int(draw[2 + i] * len(late))
        fresh = True
        for j in range(count):
            fresh = fresh and members[j] != other
        if fresh:
            members[count] = other
            count += 1
    return count


@numba.njit(cache=True)
def drawn_taste(draw: Any, seed: int) -> Taste:
    """Draw what the insertion prefers; ``draw`` is a row of numbers from 0 to 1."""
    weight = WEIGHTS[int(draw[8] * len(WEIGHTS))] * 2 * draw[9]
    slowness = 1.0 if draw[10] < 0.5 else 0.0
    tail = 0.5 if draw[11] < 0.3 else 0.0
    noise = 2.0 * draw[12] if draw[13] < 0.7 else 0.0
    return Taste(weight, slowness, tail, noise, seed)


@numba.njit(cache=True)
def reinsert(
    roads: Roads,
    state: State,
    lacking: Any,
    partial: Any,
    tail_of: Any,
    price: Any,
    ecc: Any,
    members: Any,
    taste: Taste,
    heap: Heap,
    target: int,
    allowed: int,
    together: bool,
) -> tuple[int, int]:
    """Insert withdrawn chunks, all at once or one after the other; give their lateness, -1 where it is beyond what is allowed, and the work."""
    if together:
        late, work = insert(roads, state, lacking, tail_of, price, ecc, members, taste, heap, target, allowed)
        if late >= 0:
            for i in range(len(members)):
                if partial[members[i]]:
                    prune(roads, state, lacking, tail_of, members[i])
        return late, work
    total, work = 0, 0
    for i in range(len(members)):
        late, seen = insert(
            roads, state, lacking, tail_of, price, ecc, members[i : i + 1], taste, heap, target, allowed - total
        )
        work += seen
        if late < 0:
            return -1, work
        total += late
        if partial[members[i]]:
            prune(roads, state, lacking, tail_of, members[i])
    return total, work


@numba.njit(cache=True)
def walk(
    roads: Roads,
    state: State,
    lacking: Any,
    partial: Any,
    tail_of: Any,
    prices: Any,
    ecc: Any,
    heap: Heap,
    target: int,
    counter: int,
    seed: int,
    effort: int,
) -> tuple[bool, int, int]:
    """Make moves until every arrival is by the target, or the effort is spent.

    Returns
    -------
    tuple
        Whether the target is met; the number of moves made, which goes on from ``counter``; the number of arcs looked at.
    """
    chunks, nodes = lacking.shape
    late = np.zeros(chunks, np.int64)
    for chunk in range(chunks):
        late[chunk] = lateness(state, lacking, chunk, target)
    total = late.sum()
    draw = np.empty(16)
    members = np.empty(MOST + 1, np.int64)
    old_arc, old_start = np.empty((MOST + 1, nodes), np.int32), np.empty((MOST + 1, nodes), np.int32)
    work = 0
    while total > 0 and work < effort:
        counter += 1
        for i in range(len(draw)):
            draw[i] = scattered(counter * 16 + i, seed)
        count = chosen(late, total, draw, members)
        before = 0
        for i in range(count):
            chunk = members[i]
            old_arc[i], old_start[i] = state.arc[chunk], state.start[chunk]
            before += int(late[chunk])
            withdraw(roads, state, chunk)
        taste = drawn_taste(draw, counter)
        price = prices[int(draw[14] * len(prices))]
        now, seen = reinsert(
            roads,
            state,
            lacking,
            partial,
            tail_of,
            price,
            ecc,
            members[:count],
            taste,
            heap,
            target,
            before,
            draw[15] < 0.5,
        )
        work += seen + count
        if now < 0:
            for i in range(count):
                withdraw(roads, state, members[i])
            for i in range(count):
                retrace(roads, state, members[i], old_arc[i], old_start[i])
        else:
            total += now - before
            for i in range(count):
                late[members[i]] = lateness(state, lacking, members[i], target)
    return total == 0, counter, work
