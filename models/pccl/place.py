"""Conditions one after the other: each takes the earliest ways that the ones before have left (algorithm 5)."""

from __future__ import annotations

from typing import Any

import numba

from .busy import give_back, has_room, stay, take
from .search import reach, spreads

#: Why placing has come to a halt: more room is needed for sends, for intervals, or for ticks.
DONE, SENDS, INTERVALS, TICKS = range(4)


@numba.njit(cache=True)
def _keep(net: Any, busy: Any, pool: Any, work: Any, j: int, size: int, reached: int, begin: int) -> int:
    """Keep the way to a node that was reached, up to the tree; give why it cannot be."""
    job = work.stamp[1]
    steps, v = 0, reached
    while not spreads(net, work, v, begin):
        work.walk[steps] = v
        steps += 1
        v = net.tail[work.via[v]]
    for index in range(steps - 1, -1, -1):
        w = work.walk[index]
        edge, start, at = work.via[w], work.start[w], pool.fill[0]
        if at >= len(pool.edge):
            return SENDS
        if not has_room(net, busy, edge) or (net.room[v] >= 0 and busy.stays[v] >= busy.stay_begin.shape[1]):
            return INTERVALS
        if net.room[v] >= 0:
            stay(net, busy, size, v, work.left[v] + 1, start)
            work.left[v] = max(work.left[v], start)
        take(net, busy, size, edge, start)
        pool.edge[at], pool.start[at] = edge, start
        pool.parent[at] = -1 if v == work.tree[0] else work.place[v]
        pool.fill[0] = at + 1
        work.place[w] = pool.length[j]
        pool.length[j] += 1
        if work.inside[w] != job:
            work.inside[w] = job
            work.tree[work.stamp[2]] = w
            work.stamp[2] += 1
        work.left[w] = work.arrival[w] - 1
        if work.wanted[w] == job:
            work.wanted[w] = 0
            work.stamp[3] -= 1
            pool.finish[j] = max(pool.finish[j], work.arrival[w])
        v = w
    return DONE


@numba.njit(cache=True)
def _idle_from(busy: Any) -> int:
    """Give a tick from which on no link and no buffer is taken."""
    idle = 0
    for link in range(len(busy.runs)):
        if busy.runs[link]:
            idle = max(idle, busy.end[link, busy.runs[link] - 1])
    for node in range(len(busy.stays)):
        for place in range(busy.stays[node]):
            idle = max(idle, busy.stay_end[node, place] + 1)
    return idle


@numba.njit(cache=True)
def _place(net: Any, busy: Any, jobs: Any, far: Any, pool: Any, work: Any, j: int, whole: bool, slack: int) -> int:
    """Find the ways of one job; give why it cannot be placed."""
    work.stamp[1] += 1
    job, size, source = work.stamp[1], jobs.size[j], jobs.source[j]
    first, last = jobs.target_first[j], jobs.target_first[j + 1]
    pool.first[j], pool.length[j], pool.finish[j] = pool.fill[0], 0, jobs.release[j]
    work.inside[source], work.arrival[source] = job, jobs.release[j]
    work.tree[0], work.stamp[2], work.stamp[3] = source, 1, last - first
    for index in range(first, last):
        work.wanted[jobs.target[index]] = job
    goal = jobs.target[first] if last - first == 1 else -1
    while work.stamp[3]:
        count = work.stamp[3] if whole else 1
        late = 0
        found = reach(net, busy, far, work, size, work.stamp[2], goal, count, slack, late)
        if found < 0:
            if busy.words.shape[1]:
                return TICKS
            # Only full buffers can bar a way for good: when everything is over, there is one.
            late = _idle_from(busy)
            found = reach(net, busy, far, work, size, work.stamp[2], goal, count, slack, late)
        if not whole:
            halt = _keep(net, busy, pool, work, j, size, found, late)
            if halt:
                return halt
            continue
        for index in range(first, last):
            if work.inside[jobs.target[index]] != job:
                halt = _keep(net, busy, pool, work, j, size, jobs.target[index], late)
                if halt:
                    return halt
    return DONE


@numba.njit(cache=True)
def remove(net: Any, busy: Any, jobs: Any, pool: Any, j: int) -> None:
    """Give back what a job has taken; its sends stay in the pool."""
    for index in range(pool.first[j], pool.first[j] + pool.length[j]):
        give_back(net, busy, jobs.size[j], pool.edge[index], pool.start[index])


@numba.njit(cache=True)
def remove_all(net: Any, busy: Any, jobs: Any, pool: Any, chosen: Any) -> None:
    """Give back what jobs have taken."""
    for j in chosen:
        remove(net, busy, jobs, pool, j)


@numba.njit(cache=True)
def take_all(net: Any, busy: Any, jobs: Any, pool: Any, chosen: Any) -> None:
    """Take again what jobs had taken before."""
    for j in chosen:
        for index in range(pool.first[j], pool.first[j] + pool.length[j]):
            take(net, busy, jobs.size[j], pool.edge[index], pool.start[index])


@numba.njit(cache=True)
def place_all(
    net: Any, busy: Any, jobs: Any, far: Any, pool: Any, work: Any, order: Any, begin: int, whole: bool, slack: int
) -> Any:
    """Find the ways of jobs in an order, from a position on.

    Parameters
    ----------
    whole : bool
        Whether one search finds all targets of a chunk, as the paper has it; otherwise each search starts from the whole tree.
    slack : int
        Edges that a way to a single target may be longer than the shortest; -1 for any number.

    Returns
    -------
    tuple of int
        How many are placed, and why no more: :data:`DONE`, :data:`SENDS`, :data:`INTERVALS` or :data:`TICKS`.
    """
    for index in range(begin, len(order)):
        j = order[index]
        halt = _place(net, busy, jobs, far, pool, work, j, whole, slack)
        if halt:
            remove(net, busy, jobs, pool, j)
            pool.fill[0] = pool.first[j]
            return index, halt
    return len(order), DONE
