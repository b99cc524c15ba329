"""Matching on equal links: in every step a maximum matching of links and chunks at every destination.

Destinations are independent within a step, since a link leads to only one; so a matching that is maximum at each is
maximum overall. Links prefer chunks that no other neighbour of the destination has, if there are any; and the
rarest if so chosen.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...core.kernel import kernel
from ..graphs.bits import ZERO, choose, drop, has, put, seed_state, shuffle
from .network import IncomingArcs


class TransferRows(NamedTuple):
    """Transfers: arc, chunk, receiving rank, and start."""

    arc: Any
    chunk: Any
    head: Any
    start: Any


def room_for(count: int) -> TransferRows:
    """Allocate rows for so many transfers; only times need 64 bits."""
    arc, chunk, head = (np.empty(count, dtype=np.int32) for _ in range(3))
    return TransferRows(arc, chunk, head, np.empty(count, dtype=np.int64))


class ChunkState(NamedTuple):
    """Chunks of every rank."""

    have: Any  #: uint64 (ranks, words) set of chunks of every rank
    lacking: Any
    copies: Any  #: (chunks,) number of ranks that have each chunk, or are about to get it
    full: Any  #: uint64 (words,) set of all the chunks


class _Matching(NamedTuple):
    """Matching in progress, with working arrays for one destination."""

    into: IncomingArcs
    state: ChunkState
    rows: TransferRows
    how: int
    random: Any

    #: uint64 (words,) chunks that it lacks, those that exactly one neighbour has, and those that an arc may take
    miss: Any
    single: Any
    offer: Any
    #: (arcs,) the chunk that each of its arcs takes, and the order in which they choose
    given: Any
    order: Any
    #: (arcs,) for augmenting paths: the predecessor of each arc, and the queue of the search
    before: Any
    queue: Any


@kernel
def start_state(ranks: int, owner: Any) -> ChunkState:
    """Return the state in which only the owners have their chunks."""
    m = len(owner)
    size = (m + 63) >> 6
    have, full = np.zeros((ranks, size), np.uint64), np.zeros(size, np.uint64)
    lacking = np.full(ranks, m, np.int64)
    for chunk in range(m):
        put(full, chunk)
        put(have[owner[chunk]], chunk)
        lacking[owner[chunk]] -= 1
    return ChunkState(have, lacking, np.ones(m, np.int64), full)


@kernel
def gather_in_steps(
    into: IncomingArcs, owner: Any, member: Any, how: int, seed: int, limit: int, rows: TransferRows
) -> tuple[int, int]:
    """Schedule an all-gather: deliver every chunk, at first only at its owner, to every member.

    Ranks that are no members only relay. ``how`` is the choice within a set, see
    :func:`~cwb.algorithms.graphs.bits.choose`. ``rows``, filled with the transfers and their steps, has room for one of
    every chunk to every rank. Return the numbers of steps and of rows; no steps if given up at ``limit`` steps or
    nothing more can be sent.
    """
    n = len(member)
    state, random = start_state(n, owner), seed_state(seed)
    size, widest = len(state.full), 1
    for rank in range(n):
        widest = max(widest, into.first[rank + 1] - into.first[rank])
    words, places = np.zeros((3, size), np.uint64), np.empty((4, widest), np.int64)
    matching = _Matching(
        into, state, rows, how, random, words[0], words[1], words[2], places[0], places[1], places[2], places[3]
    )
    ranks: Any = np.arange(n)
    step, count = ZERO, ZERO
    while is_unserved(state.lacking, member):
        if step + 1 >= limit:
            return 0, count
        shuffle(ranks, n, random)
        begin = count
        for rank in ranks:
            if state.lacking[rank] > 0:
                count = _serve(matching, rank, step, count)
        if count == begin:
            return 0, count
        for row in range(begin, count):
            put(state.have[rows.head[row]], rows.chunk[row])
            state.lacking[rows.head[row]] -= 1
        step += 1
    return step, count


@kernel
def is_unserved(lacking: Any, member: Any) -> bool:
    """Check if a member lacks a chunk."""
    found = False
    for rank in range(len(member)):
        found = found or (member[rank] and lacking[rank] > 0)
    return found


@kernel
def _serve(matching: Any, rank: int, step: int, count: int) -> int:
    """Match the arcs into one rank with chunks that it lacks; return the new number of rows."""
    into, state, rows = matching.into, matching.state, matching.rows
    how, random = matching.how, matching.random
    first = into.first[rank]
    degree = into.first[rank + 1] - first
    _prepare(matching, rank, first, degree)
    for place in range(degree):
        matching.given[place] = -1
        matching.order[place] = place
    shuffle(matching.order, degree, random)
    for turn in range(degree):
        place = matching.order[turn]
        have = state.have[into.tail[first + place]]
        for word in range(len(matching.miss)):
            matching.offer[word] = have[word] & matching.miss[word] & matching.single[word]
        chunk = choose(matching.offer, state.copies, how, random)
        if chunk < 0:
            for word in range(len(matching.miss)):
                matching.offer[word] = have[word] & matching.miss[word]
            chunk = choose(matching.offer, state.copies, how, random)
        if chunk < 0:
            chunk = _augment(matching, first, degree, place)
        else:
            matching.given[place] = chunk
        if chunk >= 0:
            drop(matching.miss, chunk)
            state.copies[chunk] += 1
    for place in range(degree):
        if matching.given[place] >= 0:
            rows.arc[count], rows.chunk[count] = into.arc[first + place], matching.given[place]
            rows.head[count], rows.start[count] = rank, step
            count += 1
    return count


@kernel
def _prepare(matching: Any, rank: int, first: int, degree: int) -> None:
    """Compute the chunks that a rank lacks, and those that exactly one neighbour has."""
    into, state = matching.into, matching.state
    mine = state.have[rank]
    for word in range(len(mine)):
        once, twice = np.uint64(0), np.uint64(0)
        for place in range(degree):
            theirs = state.have[into.tail[first + place], word]
            twice |= once & theirs
            once |= theirs
        matching.single[word] = once & ~twice
        matching.miss[word] = state.full[word] & ~mine[word]


@kernel
def _augment(matching: Any, first: int, degree: int, start: int) -> int:
    """Match an arc by a shortest augmenting path; return the newly used chunk, or -1."""
    into, state = matching.into, matching.state
    for place in range(degree):
        matching.before[place] = -2
    matching.before[start] = -1
    matching.queue[0] = start
    head, tail = 0, 1
    while head < tail:
        place = matching.queue[head]
        head += 1
        have = state.have[into.tail[first + place]]
        if place != start:
            for word in range(len(matching.miss)):
                matching.offer[word] = have[word] & matching.miss[word]
            fresh = choose(matching.offer, state.copies, matching.how, matching.random)
            if fresh >= 0:
                chunk = fresh
                while place != -1:
                    chunk, matching.given[place] = matching.given[place], chunk
                    place = matching.before[place]
                return fresh
        for other in range(degree):
            if matching.before[other] == -2 and matching.given[other] >= 0 and has(have, matching.given[other]):
                matching.before[other] = place
                matching.queue[tail] = other
                tail += 1
    return -1
