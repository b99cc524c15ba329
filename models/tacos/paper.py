"""Algorithms 1 and 2 of the dissertation (sections 5.4.4 and 5.4.5), at the instants at which something arrives.

Where all links are equal these instants are the time spans of the time-expanded network. A chunk that is under way counts as received, so that
it is not sent twice, but is sent on only when it has arrived; the published code differs in both where links are unequal, see the method's page.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from .bits import draw, has, put, seeded, shuffle
from .events import Roads
from .stepped import Rows, start_state, unserved

#: Where nothing is under way.
_NEVER = 2**62


@numba.njit(cache=True)
def match_in_turns(roads: Roads, owner: Any, member: Any, seed: int, limit: int, rows: Rows) -> tuple[int, int]:
    """Bring every chunk to every member: whenever a link is free, postconditions in random order, each over a way of the lowest cost.

    Other ranks, which may have to pass chunks on, have postconditions too; that one of them cannot be met is no failure.

    Parameters
    ----------
    roads : Roads
        The network.
    owner, member, seed, limit, rows
        As :func:`.stepped.gather_in_steps`, in ticks.

    Returns
    -------
    ticks, count : int
        When the last chunk arrives, 0 if it was given up; number of rows.
    """
    n, m = len(member), len(owner)
    state, random = start_state(n, owner), seeded(seed)
    ticks = roads.ticks
    free = np.zeros(len(roads.woken_first) - 1, np.int64)
    pairs, unsatisfied = np.empty(n * m, np.int64), 0
    for rank in range(n):
        for chunk in range(m):
            if owner[chunk] != rank:
                pairs[unsatisfied] = rank * m + chunk
                unsatisfied += 1
    way = np.empty(len(ticks), np.int64)  # rows under way, at most one for each arc
    now, count, moving, last = 0, 0, 0, 0
    while unsatisfied > 0 or moving > 0:
        if now >= limit:
            return 0, count
        begin = count
        unsatisfied, count = _match(roads, state.have, pairs, unsatisfied, free, now, random, rows, count)
        for row in range(begin, count):
            way[moving] = row
            moving += 1
        if moving == 0:
            break
        now = _NEVER
        for place in range(moving):
            now = min(now, rows.start[way[place]] + ticks[rows.arc[way[place]]])
        kept = 0
        for place in range(moving):
            row = way[place]
            if rows.start[row] + ticks[rows.arc[row]] > now:
                way[kept] = row
                kept += 1
                continue
            put(state.have[rows.head[row]], rows.chunk[row])
            state.lacking[rows.head[row]] -= 1
            if member[rows.head[row]]:
                last = now
        moving = kept
    return (0 if unserved(state.lacking, member) else last), count


@numba.njit(cache=True)
def _match(
    roads: Roads,
    have: Any,
    pairs: Any,
    size: int,
    free: Any,
    now: int,
    random: Any,
    rows: Rows,
    count: int,
) -> tuple[int, int]:
    """Algorithm 1: give the new number of unsatisfied postconditions and of rows."""
    into, ticks = roads.into, roads.ticks
    m = len(pairs) // have.shape[0]
    shuffle(pairs, size, random)
    kept = 0
    for place in range(size):
        rank, chunk = pairs[place] // m, pairs[place] % m
        best, ties, cost = -1, 0, _NEVER
        for index in range(into.first[rank], into.first[rank + 1]):
            arc = into.arc[index]
            if ticks[arc] > cost or not has(have[into.tail[index]], chunk) or not _is_free(roads, free, arc, now):
                continue
            ties = ties + 1 if ticks[arc] == cost else 1
            cost = ticks[arc]
            if ties == 1 or draw(random, ties) == 0:
                best = arc
        if best < 0:
            pairs[kept] = pairs[place]
            kept += 1
            continue
        for index in range(roads.port_first[best], roads.port_first[best + 1]):
            free[roads.port[index]] = now + ticks[best]
        rows.arc[count], rows.chunk[count], rows.head[count], rows.start[count] = best, chunk, rank, now
        count += 1
    return kept, count


@numba.njit(cache=True)
def _is_free(roads: Roads, free: Any, arc: int, now: int) -> bool:
    """Whether nothing holds a port of an arc."""
    free_now = True
    for place in range(roads.port_first[arc], roads.port_first[arc + 1]):
        free_now = free_now and free[roads.port[place]] <= now
    return free_now
