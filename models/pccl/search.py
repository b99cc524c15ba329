"""Path finding: the earliest arrival of a chunk over links that are partly taken (algorithm 4), condition after condition (algorithm 5).

Waiting at a node costs nothing, and who comes earlier leaves no later. So the search is Dijkstra's over arrivals, with the distance to a single
target as A*'s estimate; among equal arrivals the fewer edges win. A chunk for several targets grows a tree: either one search until all are
reached, of which the ways to targets are kept (the paper's), or one search after another from the whole tree to the nearest target.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from .busy import NEVER, can_stay, earliest

#: Hops are below this in the keys of the heap; more of them only blur the order.
_HOPS = 4096

#: More edges than any way has.
_ANY = 2**40


@numba.njit(cache=True)
def random_below(state: Any, limit: int) -> int:
    """Give a random number below a limit (xorshift, 64 bits)."""
    x = state[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    state[0] = x
    return int(np.int64((x >> np.uint64(11)) % np.uint64(limit)))


@numba.njit(cache=True)
def _push(key: Any, node: Any, size: int, k: int, v: int) -> None:
    """Put an entry into the heap."""
    at = size
    while at > 0:
        above = (at - 1) >> 1
        if key[above] <= k:
            break
        key[at], node[at] = key[above], node[above]
        at = above
    key[at], node[at] = k, v


@numba.njit(cache=True)
def _pop(key: Any, node: Any, size: int) -> None:
    """Take the smallest entry, the first one, out of a heap."""
    size -= 1
    k, v = key[size], node[size]
    at = 0
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        if below + 1 < size and key[below + 1] < key[below]:
            below += 1
        if key[below] >= k:
            break
        key[at], node[at] = key[below], node[below]
        at = below
    key[at], node[at] = k, v


@numba.njit(cache=True)
def spreads(net: Any, work: Any, v: int, begin: int) -> bool:
    """Tell whether a node is in the job's tree and may send its chunk on once more: late searches do without full switches."""
    if work.inside[v] != work.stamp[1]:
        return False
    return bool(v == work.tree[0] or (net.branches[v] and not (begin > 0 and net.room[v] >= 0)))


@numba.njit(cache=True)
def _key(far: Any, goal: int, v: int, arrival: int, hop: int) -> int:
    """Give the key of a label: its arrival, with what is still to come where there is a single target; then edges."""
    if goal < 0:
        return int(arrival * _HOPS + hop)
    return int((arrival + far.ticks[goal, v]) * _HOPS + hop + far.hops[goal, v])


@numba.njit(cache=True)
def _improve(
    net: Any, busy: Any, far: Any, work: Any, size: int, goal: int, edge: int, ready: int, in_tree: bool, most: int
) -> int:
    """Better the label of an edge's head by way of its tail; give its key, -1 if it is no better."""
    v, w, now = net.tail[edge], net.head[edge], work.stamp[0]
    hop = work.hop[v] + 1
    if most < _ANY and hop + far.hops[goal, w] > most:
        return -1
    start = earliest(net, busy, size, edge, ready)
    if start >= NEVER:
        return -1
    if net.room[v] >= 0 and not can_stay(net, busy, size, v, work.left[v] + 1 if in_tree else ready, start):
        return -1
    arrival = start + net.delay[size, edge]
    if work.mark[w] == now and (arrival, hop) >= (work.arrival[w], work.hop[w]):
        return -1
    work.mark[w] = now
    work.arrival[w], work.hop[w], work.via[w], work.start[w] = arrival, hop, edge, start
    return _key(far, goal, w, arrival, hop)


@numba.njit(cache=True)
def reach(
    net: Any, busy: Any, far: Any, work: Any, size: int, members: int, goal: int, wanted: int, slack: int, begin: int
) -> int:
    """Search from the nodes of a tree; give the last target that was reached, -1 if the search ended before.

    Parameters
    ----------
    members : int
        Nodes of the tree so far, in ``work.tree`` with their labels.
    goal : int
        The only target, or -1: then all nodes that ``work.wanted`` stamps are targets.
    wanted : int
        Targets after which to stop.
    slack : int
        Edges that the way to the only target may be longer than the shortest; -1 for any number.
    begin : int
        Tick from which on the chunk leaves the nodes of the tree.
    """
    work.stamp[0] += 1
    now, job = work.stamp[0], work.stamp[1]
    entries = 0
    for index in range(members):
        v = work.tree[index]
        if spreads(net, work, v, begin):
            work.mark[v], work.hop[v] = now, 0
            _push(work.key, work.node, entries, _key(far, goal, v, max(work.arrival[v], begin), 0), v)
            entries += 1
    most = far.hops[goal, work.tree[0]] + slack if goal >= 0 and slack >= 0 else _ANY
    while entries:
        v = work.node[0]
        _pop(work.key, work.node, entries)
        entries -= 1
        if work.done[v] == now:
            continue
        work.done[v] = now
        in_tree = spreads(net, work, v, begin)
        if not in_tree and (v == goal or (goal < 0 and work.wanted[v] == job)):
            wanted -= 1
            if not wanted:
                return int(v)
        ready = max(work.arrival[v], begin) if in_tree else work.arrival[v]
        first, degree = net.first[v], net.first[v + 1] - net.first[v]
        turn = random_below(work.state, degree) if degree > 1 else 0
        for index in range(degree):
            edge = net.leaving[first + (index + turn) % degree]
            w = net.head[edge]
            if work.done[w] == now or spreads(net, work, w, begin):
                continue
            k = _improve(net, busy, far, work, size, goal, edge, ready, in_tree, most)
            if k >= 0:
                _push(work.key, work.node, entries, k, w)
                entries += 1
    return -1
