"""Unequal links and switches: whenever something arrives, destinations whose links are free choose again.

Time is counted in whole ticks. A transfer needs all its *ports* at the same time, for as long as it takes: a link between ranks is one, on a way
over switches every link is. What keeps slow links from doing harm:

* The *deadline rule*: an arc may start only if it ends by the time at which all free arcs of the destination could have brought what it lacks,
  or by the proved bound. Otherwise a slow link takes the last chunk.
* *Islands*: the parts of the network that faster links connect. A slow link into one prefers a chunk that nobody there has or is about to get
  (``PREFER``), or takes no other (``INSIST``), so that no two slow links bring the same.
"""

from __future__ import annotations

import heapq
from typing import Any, NamedTuple

import numba
import numpy as np

from .bits import choose, drop, has, put, seeded, shuffle
from .stepped import Inwards, Rows, State, start_state

#: What islands mean for a slow link.
IGNORE, PREFER, INSIST = 0, 1, 2

#: Beyond every tick.
_NEVER = 2**62


class Roads(NamedTuple):
    """Arcs from rank to rank, and what they need.

    Parameters
    ----------
    into : Inwards
        The arcs into every rank.
    head, tail, ticks : array of int, shape (arcs,)
        Ends of each arc, and how long a transfer takes.
    port_first, port : array of int
        Ports of arc a: ``port[port_first[a] : port_first[a + 1]]``.
    woken_first, woken : array of int
        Ranks that the arcs of port p lead to: ``woken[woken_first[p] : woken_first[p + 1]]``.
    copied : array of int, shape (arcs,)
        The port that a switch with multicast can feed several arcs from, or -1.
    island : array of int, shape (arcs,)
        The island that a slow arc leads into, or -1.
    of_first, of : array of int
        Islands that rank d is in: ``of[of_first[d] : of_first[d + 1]]``.
    islands : int
        Number of islands.
    alone : bool
        Whether every arc has a port of its own, so that the deadline rule is exact.
    """

    into: Inwards
    head: Any
    tail: Any
    ticks: Any
    port_first: Any
    port: Any
    woken_first: Any
    woken: Any
    copied: Any
    island: Any
    of_first: Any
    of: Any
    islands: int
    alone: bool


class Taste(NamedTuple):
    """How an arc chooses: see :func:`.bits.choose` and the module; whether chunks of one neighbour alone come first; the seed."""

    how: int
    islands: int
    deadline: bool
    single: bool
    seed: int


class Board(NamedTuple):
    """What the engine keeps.

    Parameters
    ----------
    state : State
        Who has what.
    miss, wanted : array
        Chunks that each rank lacks and that are not under way to it, and how many.
    at_island : array of uint64, shape (islands, words)
        Chunks that somebody there has or is about to get.
    free, carried, since : array of int, shape (ports,)
        When each port is free again, and what it has carried since when.
    dirty, waiting : array
        Ranks that are to choose next, and whether each is one.
    """

    state: State
    miss: Any
    wanted: Any
    at_island: Any
    free: Any
    carried: Any
    since: Any
    dirty: Any
    waiting: Any


@numba.njit(cache=True)
def gather_by_events(
    roads: Roads, owner: Any, member: Any, taste: Taste, bound: int, limit: int, rows: Rows
) -> tuple[int, int]:
    """Bring every chunk to every member.

    Parameters
    ----------
    roads : Roads
        The network.
    owner, member : array
        As :func:`.stepped.gather_in_steps`.
    taste : Taste
        How arcs choose.
    bound : int
        Ticks by which a transfer may end in any case.
    limit : int
        What cannot end before so many ticks is given up.
    rows : Rows
        Filled with the transfers, ``start`` with ticks.

    Returns
    -------
    ticks, count : int
        When the last chunk arrives, 0 if it was given up; number of rows.
    """
    n, m = len(member), len(owner)
    state, random = start_state(n, owner), seeded(taste.seed)
    board = _board(roads, state, owner, m)
    left = 0
    for rank in range(n):
        if member[rank]:
            left += state.lacking[rank]
    heap = [(0, 0) for _ in range(0)]
    now, count, last, dirty, strict = 0, 0, 0, n, True
    while left > 0:
        begin = count
        shuffle(board.dirty, dirty, random)
        for index in range(dirty):
            rank = board.dirty[index]
            count = _serve(roads, board, taste, rank, now, bound, strict, random, rows, count)
        for row in range(begin, count):
            heapq.heappush(heap, (now + roads.ticks[rows.arc[row]], row))
        dirty = 0
        if len(heap) == 0:
            if not strict or (not taste.deadline and taste.islands != INSIST):
                return 0, count
            strict = False
            for rank in range(n):
                board.dirty[rank] = rank
            dirty = n
            continue
        strict = True
        now = heap[0][0]
        if now >= limit:
            return 0, count
        while len(heap) > 0 and heap[0][0] == now:
            row = heapq.heappop(heap)[1]
            head, arc = rows.head[row], rows.arc[row]
            put(state.have[head], rows.chunk[row])
            state.lacking[head] -= 1
            if member[head]:
                left -= 1
                last = now
            dirty = _wake(roads, board, head, arc, dirty)
    return last, count


@numba.njit(cache=True)
def _board(roads: Roads, state: State, owner: Any, m: int) -> Board:
    """Set up the board for the beginning."""
    n, size = state.have.shape
    ports = len(roads.woken_first) - 1
    miss = np.empty((n, size), np.uint64)
    for rank in range(n):
        for word in range(size):
            miss[rank, word] = state.full[word] & ~state.have[rank, word]
    at_island = np.zeros((max(1, roads.islands), size), np.uint64)
    for chunk in range(m):
        for index in range(roads.of_first[owner[chunk]], roads.of_first[owner[chunk] + 1]):
            put(at_island[roads.of[index]], chunk)
    return Board(
        state,
        miss,
        state.lacking.copy(),
        at_island,
        np.zeros(ports, np.int64),
        np.full(ports, -1, np.int64),
        np.full(ports, -1, np.int64),
        np.arange(n),
        np.ones(n, np.bool_),
    )


@numba.njit(cache=True)
def _wake(roads: Roads, board: Board, head: int, arc: int, dirty: int) -> int:
    """Let those choose again who may send something new: over the ports that are free now, or from the rank that has received."""
    for place in range(roads.port_first[arc], roads.port_first[arc + 1]):
        port = roads.port[place]
        for index in range(roads.woken_first[port], roads.woken_first[port + 1]):
            rank = roads.woken[index]
            if not board.waiting[rank] and board.wanted[rank] > 0:
                board.waiting[rank] = True
                board.dirty[dirty] = rank
                dirty += 1
    # The ports that a rank sends by come last in the list.
    port = len(roads.woken_first) - 1 - len(board.waiting) + head
    for index in range(roads.woken_first[port], roads.woken_first[port + 1]):
        rank = roads.woken[index]
        if not board.waiting[rank] and board.wanted[rank] > 0:
            board.waiting[rank] = True
            board.dirty[dirty] = rank
            dirty += 1
    return dirty


@numba.njit(cache=True)
def _serve(
    roads: Roads,
    board: Board,
    taste: Taste,
    rank: int,
    now: int,
    bound: int,
    strict: bool,
    random: Any,
    rows: Rows,
    count: int,
) -> int:
    """Let the free arcs into a rank choose, the quickest first; give the new number of rows."""
    board.waiting[rank] = False
    first = roads.into.first[rank]
    degree = roads.into.first[rank + 1] - first
    if board.wanted[rank] == 0 or degree == 0:
        return count
    count = _copies(roads, board, rank, now, rows, count)
    order = roads.into.arc[first : first + degree].copy()
    shuffle(order, degree, random)
    order = order[np.argsort(roads.ticks[order], kind="mergesort")]
    latest = _NEVER
    if taste.deadline and strict:
        latest = max(bound, _deadline(roads, board, order, rank, now))
    offer = np.empty(board.miss.shape[1], np.uint64)
    for arc in order:
        if board.wanted[rank] == 0:
            break
        if not _idle(roads, board, arc, now, 0) or now + roads.ticks[arc] > latest:
            continue
        chunk = _pick(roads, board, taste, order, arc, rank, strict, offer, random)
        if chunk >= 0:
            _start(roads, board, arc, rank, chunk, now, rows, count)
            count += 1
    return count


@numba.njit(cache=True)
def _idle(roads: Roads, board: Board, arc: int, now: int, skip: int) -> bool:
    """Whether the ports of an arc are free, but for the first ones."""
    idle = True
    for place in range(roads.port_first[arc] + skip, roads.port_first[arc + 1]):
        idle = idle and board.free[roads.port[place]] <= now
    return idle


@numba.njit(cache=True)
def _start(roads: Roads, board: Board, arc: int, rank: int, chunk: int, now: int, rows: Rows, count: int) -> None:
    """Send a chunk over an arc."""
    for place in range(roads.port_first[arc], roads.port_first[arc + 1]):
        port = roads.port[place]
        board.free[port], board.carried[port], board.since[port] = now + roads.ticks[arc], chunk, now
    drop(board.miss[rank], chunk)
    board.wanted[rank] -= 1
    board.state.copies[chunk] += 1
    for index in range(roads.of_first[rank], roads.of_first[rank + 1]):
        put(board.at_island[roads.of[index]], chunk)
    rows.arc[count], rows.chunk[count], rows.head[count], rows.start[count] = arc, chunk, rank, now


@numba.njit(cache=True)
def _copies(roads: Roads, board: Board, rank: int, now: int, rows: Rows, count: int) -> int:
    """Take what a switch with multicast is being sent from this very instant on."""
    for place in range(roads.into.first[rank], roads.into.first[rank + 1]):
        arc = roads.into.arc[place]
        port = roads.copied[arc]
        if port < 0 or board.since[port] != now or board.free[port] != now + roads.ticks[arc]:
            continue
        chunk = board.carried[port]
        if has(board.miss[rank], chunk) and _idle(roads, board, arc, now, 1):
            _start(roads, board, arc, rank, chunk, now, rows, count)
            count += 1
    return count


@numba.njit(cache=True)
def _pick(
    roads: Roads, board: Board, taste: Taste, order: Any, arc: int, rank: int, strict: bool, offer: Any, random: Any
) -> int:
    """Choose a chunk for an arc: new to the island, of this neighbour alone, or any; -1 if there is none."""
    have, miss, island = board.state.have[roads.tail[arc]], board.miss[rank], roads.island[arc]
    size = len(miss)
    if island >= 0 and taste.islands != IGNORE:
        for word in range(size):
            offer[word] = have[word] & miss[word] & ~board.at_island[island, word]
        chunk = choose(offer, board.state.copies, taste.how, random)
        if chunk >= 0 or (taste.islands == INSIST and strict):
            return chunk
    if taste.single:
        for word in range(size):
            others = np.uint64(0)
            for other in order:
                if roads.tail[other] != roads.tail[arc]:
                    others |= board.state.have[roads.tail[other], word]
            offer[word] = have[word] & miss[word] & ~others
        chunk = choose(offer, board.state.copies, taste.how, random)
        if chunk >= 0:
            return chunk
    for word in range(size):
        offer[word] = have[word] & miss[word]
    return choose(offer, board.state.copies, taste.how, random)


@numba.njit(cache=True)
def _deadline(roads: Roads, board: Board, order: Any, rank: int, now: int) -> int:
    """Tick by which the arcs into a rank could have brought all that it wants."""
    need = board.wanted[rank]
    low, high = now, now + roads.ticks[order[0]]
    for place in range(roads.port_first[order[0]], roads.port_first[order[0] + 1]):
        high = max(high, board.free[roads.port[place]])
    high += need * roads.ticks[order[0]]
    while low < high:
        middle = (low + high) // 2
        room = 0
        for arc in order:
            ready = now
            for place in range(roads.port_first[arc], roads.port_first[arc + 1]):
                ready = max(ready, board.free[roads.port[place]])
            if middle > ready:
                room += (middle - ready) // roads.ticks[arc]
        if room >= need:
            high = middle
        else:
            low = middle + 1
    return low
