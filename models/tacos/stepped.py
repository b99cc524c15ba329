"""Equal links: in every step a maximum matching of links and chunks at every destination, given what is held when the step begins.

Destinations do not disturb one another within a step, since a link leads to one of them; so a matching that is maximum for each is maximum. What
a link takes is chosen among the chunks that no other neighbour of the destination has, where there are such; and the rarest where that is asked for.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from .bits import choose, drop, has, put, seeded, shuffle

Ints = NDArray[np.int64]


class Inwards(NamedTuple):
    """The arcs into every rank: rank d has those from ``first[d]`` up to ``first[d + 1]``.

    Parameters
    ----------
    first : array of int, shape (ranks + 1,)
        Where each rank's arcs begin.
    tail, arc : array of int, shape (arcs,)
        The rank that each comes from, and its number.
    """

    first: Any
    tail: Any
    arc: Any


class Rows(NamedTuple):
    """Transfers: arc, chunk, the rank that it reaches, and when it starts."""

    arc: Any
    chunk: Any
    head: Any
    start: Any


def rows_for(count: int) -> Rows:
    """Make room for so many transfers; only times need 64 bits."""
    arc, chunk, head = (np.empty(count, dtype=np.int32) for _ in range(3))
    return Rows(arc, chunk, head, np.empty(count, dtype=np.int64))


class State(NamedTuple):
    """Who has what.

    Parameters
    ----------
    have : array of uint64, shape (ranks, words)
        Chunks of every rank.
    lacking : array of int, shape (ranks,)
        How many each does not have.
    copies : array of int, shape (chunks,)
        How many ranks have each chunk, or are about to get it.
    full : array of uint64, shape (words,)
        All chunks.
    """

    have: Any
    lacking: Any
    copies: Any
    full: Any


class Desk(NamedTuple):
    """Room to work on one destination.

    Parameters
    ----------
    miss, single, offer : array of uint64, shape (words,)
        Chunks that it lacks, those that exactly one neighbour has, and those that an arc may take.
    given, order : array of int, shape (arcs,)
        The chunk that each of its arcs takes, and the order in which they choose.
    before, queue : array of int, shape (arcs,)
        For augmenting paths: the arc before each, and those to go on from.
    """

    miss: Any
    single: Any
    offer: Any
    given: Any
    order: Any
    before: Any
    queue: Any


@numba.njit(cache=True)
def start_state(ranks: int, owner: Any) -> State:
    """Let the owners alone have their chunks."""
    m = len(owner)
    size = (m + 63) >> 6
    have, full = np.zeros((ranks, size), np.uint64), np.zeros(size, np.uint64)
    lacking = np.full(ranks, m, np.int64)
    for chunk in range(m):
        put(full, chunk)
        put(have[owner[chunk]], chunk)
        lacking[owner[chunk]] -= 1
    return State(have, lacking, np.ones(m, np.int64), full)


@numba.njit(cache=True)
def gather_in_steps(
    into: Inwards, owner: Any, member: Any, how: int, seed: int, limit: int, rows: Rows
) -> tuple[int, int]:
    """Bring every chunk to every member.

    Parameters
    ----------
    into : Inwards
        The network.
    owner : array of int, shape (chunks,)
        The rank that has each chunk at the start.
    member : array of bool, shape (ranks,)
        Who needs all chunks; the others relay.
    how : int
        See :func:`.bits.choose`.
    seed : int
        Of the random order.
    limit : int
        With so many steps or more it is given up.
    rows : Rows
        Filled with the transfers, ``start`` with steps; long enough for one of every chunk to every rank.

    Returns
    -------
    steps, count : int
        Number of steps, and of rows; no steps if it was given up or nothing more can be sent.
    """
    n = len(member)
    state, random = start_state(n, owner), seeded(seed)
    size, widest = len(state.full), 1
    for rank in range(n):
        widest = max(widest, into.first[rank + 1] - into.first[rank])
    words, places = np.zeros((3, size), np.uint64), np.empty((4, widest), np.int64)
    desk = Desk(words[0], words[1], words[2], places[0], places[1], places[2], places[3])
    ranks: Any = np.arange(n)
    step, count = 0, 0
    while unserved(state.lacking, member):
        if step + 1 >= limit:
            return 0, count
        shuffle(ranks, n, random)
        begin = count
        for rank in ranks:
            if state.lacking[rank] > 0:
                count = _serve(into, state, desk, rank, how, step, random, rows, count)
        if count == begin:
            return 0, count
        for row in range(begin, count):
            put(state.have[rows.head[row]], rows.chunk[row])
            state.lacking[rows.head[row]] -= 1
        step += 1
    return step, count


@numba.njit(cache=True)
def unserved(lacking: Any, member: Any) -> bool:
    """Whether a member lacks a chunk."""
    found = False
    for rank in range(len(member)):
        found = found or (member[rank] and lacking[rank] > 0)
    return found


@numba.njit(cache=True)
def _serve(
    into: Inwards, state: State, desk: Desk, rank: int, how: int, step: int, random: Any, rows: Rows, count: int
) -> int:
    """Match the arcs into one rank with chunks that it lacks; give the new number of rows."""
    first = into.first[rank]
    degree = into.first[rank + 1] - first
    _prepare(into, state, desk, rank, first, degree)
    for place in range(degree):
        desk.given[place] = -1
        desk.order[place] = place
    shuffle(desk.order, degree, random)
    for turn in range(degree):
        place = desk.order[turn]
        have = state.have[into.tail[first + place]]
        for word in range(len(desk.miss)):
            desk.offer[word] = have[word] & desk.miss[word] & desk.single[word]
        chunk = choose(desk.offer, state.copies, how, random)
        if chunk < 0:
            for word in range(len(desk.miss)):
                desk.offer[word] = have[word] & desk.miss[word]
            chunk = choose(desk.offer, state.copies, how, random)
        if chunk < 0:
            chunk = _augment(into, state, desk, first, degree, place, how, random)
        else:
            desk.given[place] = chunk
        if chunk >= 0:
            drop(desk.miss, chunk)
            state.copies[chunk] += 1
    for place in range(degree):
        if desk.given[place] >= 0:
            rows.arc[count], rows.chunk[count] = into.arc[first + place], desk.given[place]
            rows.head[count], rows.start[count] = rank, step
            count += 1
    return count


@numba.njit(cache=True)
def _prepare(into: Inwards, state: State, desk: Desk, rank: int, first: int, degree: int) -> None:
    """Find what a rank lacks, and what exactly one of its neighbours has."""
    mine = state.have[rank]
    for word in range(len(mine)):
        once, twice = np.uint64(0), np.uint64(0)
        for place in range(degree):
            theirs = state.have[into.tail[first + place], word]
            twice |= once & theirs
            once |= theirs
        desk.single[word] = once & ~twice
        desk.miss[word] = state.full[word] & ~mine[word]


@numba.njit(cache=True)
def _augment(
    into: Inwards, state: State, desk: Desk, first: int, degree: int, start: int, how: int, random: Any
) -> int:
    """Find a chunk for an arc by giving others different ones: the shortest augmenting path. Give the chunk that is newly used, or -1."""
    for place in range(degree):
        desk.before[place] = -2
    desk.before[start] = -1
    desk.queue[0] = start
    head, tail = 0, 1
    while head < tail:
        place = desk.queue[head]
        head += 1
        have = state.have[into.tail[first + place]]
        if place != start:
            for word in range(len(desk.miss)):
                desk.offer[word] = have[word] & desk.miss[word]
            fresh = choose(desk.offer, state.copies, how, random)
            if fresh >= 0:
                chunk = fresh
                while place != -1:
                    chunk, desk.given[place] = desk.given[place], chunk
                    place = desk.before[place]
                return fresh
        for other in range(degree):
            if desk.before[other] == -2 and desk.given[other] >= 0 and has(have, desk.given[other]):
                desk.before[other] = place
                desk.queue[tail] = other
                tail += 1
    return -1
