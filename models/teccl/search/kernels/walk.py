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

#: How often the others are chunks that stand in the way of the late one.
TARGETED = 0.5

#: Numbers drawn for a move.
DRAWS = 24

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
def drawn_late(late: Any, total: int, draw: float) -> int:
    """Draw a late chunk, the later the likelier."""
    at = draw * total
    critical = 0
    for chunk in range(len(late)):
        at -= late[chunk]
        if late[chunk] > 0:
            critical = chunk
        if at < 0:
            break
    return critical


@numba.njit(cache=True)
def add(members: Any, count: int, chunk: int) -> int:
    """Add a chunk to those that are withdrawn, if it is not among them; give how many they are."""
    for j in range(count):
        if members[j] == chunk:
            return count
    members[count] = chunk
    return count + 1


@numba.njit(cache=True)
def contested_link(
    roads: Roads,
    state: State,
    lacking: Any,
    tail_of: Any,
    into: Any,
    into_first: Any,
    chunk: int,
    target: int,
    draw: Any,
) -> int:
    """Draw a link of an arc into a node on a late chunk's way to somebody whom it reaches late; -1 for none."""
    nodes = lacking.shape[1]
    node = int(draw[0] * nodes)
    for _ in range(nodes):
        if lacking[chunk, node] and state.arrival[chunk, node] > target:
            break
        node = node + 1 if node + 1 < nodes else 0
    # Half of the time the last arc, else one nearer to the source.
    up = draw[1]
    while up > 0.5 and state.arc[chunk, node] >= 0 and state.arc[chunk, tail_of[state.arc[chunk, node]]] >= 0:
        node = tail_of[state.arc[chunk, node]]
        up = 2 * up - 1
    count = into_first[node + 1] - into_first[node]
    if count == 0:
        return -1
    arc = into[into_first[node] + int(draw[2] * count)]
    hops = roads.hop_first[arc + 1] - roads.hop_first[arc]
    return int(roads.hop_link[roads.hop_first[arc] + int(draw[3] * hops)])


@numba.njit(cache=True)
def chosen(state: State, critical: int, link: int, draw: Any, members: Any) -> int:
    """Choose up to five chunks beside the late one, of those that use a link if one is given; give how many there are. ``draw`` is from 0 to 1."""
    members[0] = critical
    count, chunks = 1, state.arrival.shape[0]
    for i in range(int(draw[1] * MOST)):
        other = int(draw[2 + i] * chunks)
        if link >= 0:
            for _ in range(chunks):
                if state.latest[other, link] >= 0:
                    break
                other = other + 1 if other + 1 < chunks else 0
        count = add(members, count, other)
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
    draw = np.empty(DRAWS)
    into = np.argsort(roads.arc_head, kind="mergesort")
    into_first = np.searchsorted(roads.arc_head[into], np.arange(nodes + 1))
    members = np.empty(MOST + 1, np.int64)
    old_arc, old_start = np.empty((MOST + 1, nodes), np.int32), np.empty((MOST + 1, nodes), np.int32)
    work = 0
    while total > 0 and work < effort:
        counter += 1
        for i in range(len(draw)):
            draw[i] = scattered(counter * DRAWS + i, seed)
        critical, link = drawn_late(late, total, draw[0]), -1
        if draw[16] < TARGETED:
            link = contested_link(roads, state, lacking, tail_of, into, into_first, critical, target, draw[17:])
        count = chosen(state, critical, link, draw, members)
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
