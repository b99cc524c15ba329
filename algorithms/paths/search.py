"""Path search: earliest arrival of a chunk over partly reserved links, condition after condition.

Algorithms 4 and 5 of the dissertation (docs/methods/pccl.md): Dijkstra's search over arrivals, with the distance to a
single target as A*'s estimate; among equal arrivals fewer edges win.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.kernel import kernel
from ...core.schedule import Ints
from ..graphs.bits import ZERO, draw
from .reservations import NEVER, PathNetwork, Words, can_stay, earliest, give_back, has_room, stay, take

_HOPS = 4096  #: hops are below this in the keys of the heap; more of them only blur the order
_ANY = 2**40  #: more edges than any way has
SOURCE = -1  #: starts and parents in a pool: no parent, the source itself

#: Why placing has come to a halt: more room is needed for sends, for intervals, or for ticks.
DONE, SENDS, INTERVALS, TICKS = range(4)


class Jobs(NamedTuple):
    """Conditions (section 6.4.1): chunks with their source and targets."""

    chunk: Ints  #: (jobs,) number of the chunk, its source node, its size class, and the tick from which it is there
    source: Ints
    size: Ints
    release: Ints
    target_first: Ints  #: (jobs + 1,) and (targets,) nodes that need it, without the source
    target: Ints

    @property
    def number(self) -> int:
        """Number of jobs."""
        return len(self.chunk)


class SendPool(NamedTuple):
    """Paths of all jobs: sends over edges, each after the one that brings the chunk to its tail."""

    #: (room,) edge and start tick of every send, and the index of its parent among the job's sends, or :data:`SOURCE`
    edge: Ints
    start: Ints
    parent: Ints
    fill: Ints  #: (1,) number of sends that are or were in use
    first: Ints  #: (jobs,) first send of a job, their number, and the tick at which the last target has the chunk
    length: Ints
    finish: Ints


class DistanceTables(NamedTuple):
    """Distances in the network without reservations."""

    #: (nodes, nodes) fewest edges, and ticks of the smallest chunk, from the second node to the first
    hops: NDArray[np.int32]
    ticks: Ints


class SearchScratch(NamedTuple):
    """Scratch space of one search."""

    #: (nodes,) labels: tick and number of edges of a chunk's arrival at a node, its last edge and that edge's start
    arrival: Ints
    hop: Ints
    via: Ints
    start: Ints
    #: (nodes,) stamps of nodes with a label, with the final one, of targets still to be reached; index of nodes of the
    #: tree among the job's sends, and the last tick at which the chunk has left a node of the tree
    mark: Ints
    final: Ints
    target: Ints
    place: Ints
    departure: Ints
    inside: Ints  #: (nodes,) stamps of the nodes of the tree, and the nodes
    tree: Ints
    key: Ints  #: (edges + nodes,) keys and nodes of the heap
    node: Ints
    walk: Ints  #: (nodes,) a path while it is traced back
    state: Words
    #: (4,) stamps of the search and of the job, numbers of nodes in the tree and of targets still to be reached
    stamp: Ints


def scratch_of(net: PathNetwork, seed: int) -> SearchScratch:
    """Create scratch space with a seed."""
    nodes, edges = len(net.branches), len(net.tail)
    names = set(SearchScratch._fields) - {"state"}
    lengths = dict.fromkeys(names, nodes) | {"key": edges + nodes, "node": edges + nodes, "stamp": 4}
    columns: dict[str, Any] = {name: np.zeros(lengths[name], dtype=np.int64) for name in names}
    state = np.array([(seed * 0x9E3779B97F4A7C15 + 0x1234567) % 2**64 | 1], dtype=np.uint64)
    return SearchScratch(**columns, state=state)


def empty_pool(jobs: int, room: int) -> SendPool:
    """Create a pool without sends."""
    edge, start, parent = (np.zeros(room, dtype=np.int64) for _ in range(3))
    first, length, finish = (np.zeros(jobs, dtype=np.int64) for _ in range(3))
    return SendPool(edge, start, parent, np.zeros(1, dtype=np.int64), first, length, finish)


@kernel
def _push(key: Any, node: Any, size: int, k: int, v: int) -> None:
    at = size
    while at > 0:
        above = (at - 1) >> 1
        if key[above] <= k:
            break
        key[at], node[at] = key[above], node[above]
        at = above
    key[at], node[at] = k, v


@kernel
def _pop(key: Any, node: Any, size: int) -> None:
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


@kernel
def spreads(net: Any, scratch: Any, v: int, begin: int) -> bool:
    """Check if a node of the job's tree may send once more; late searches exclude limited switches."""
    if scratch.inside[v] != scratch.stamp[1]:
        return False
    return bool(v == scratch.tree[0] or (net.branches[v] and not (begin > 0 and net.room[v] >= 0)))


@kernel
def _key(dist: Any, goal: int, v: int, arrival: int, hop: int) -> int:
    """Return the key of a label: arrival plus remaining distance to a single target, then edges."""
    if goal < 0:
        return int(arrival * _HOPS + hop)
    return int((arrival + dist.ticks[goal, v]) * _HOPS + hop + dist.hops[goal, v])


@kernel
def _improve(
    net: Any, busy: Any, dist: Any, scratch: Any, size: int, goal: int, edge: int, ready: int, in_tree: bool, most: int
) -> int:
    """Improve the label of an edge's head by way of its tail; return its key, or -1."""
    v, w, now = net.tail[edge], net.head[edge], scratch.stamp[0]
    hop = scratch.hop[v] + 1
    if most < _ANY and hop + dist.hops[goal, w] > most:
        return -1
    start = earliest(net, busy, size, edge, ready)
    if start >= NEVER:
        return -1
    if net.room[v] >= 0 and not can_stay(net, busy, size, v, scratch.departure[v] + 1 if in_tree else ready, start):
        return -1
    arrival = start + net.delay[size, edge]
    if scratch.mark[w] == now and (arrival, hop) >= (scratch.arrival[w], scratch.hop[w]):
        return -1
    scratch.mark[w] = now
    scratch.arrival[w], scratch.hop[w], scratch.via[w], scratch.start[w] = arrival, hop, edge, start
    return _key(dist, goal, w, arrival, hop)


@kernel
def reach(
    net: Any, busy: Any, dist: Any, scratch: Any, size: int, goal: int, targets: int, slack: int, begin: int
) -> int:
    """Search from the nodes of a tree; return the last target reached, -1 if the search ended before.

    The chunk leaves the nodes ``scratch.tree``, which have labels, from tick ``begin`` on. ``goal`` is the only target,
    or -1 for those that ``scratch.target`` stamps, of which ``targets`` are sought. ``slack`` limits the edges by which
    the path to the only target may exceed the shortest; -1 for any number.
    """
    scratch.stamp[0] += 1
    now, job = scratch.stamp[0], scratch.stamp[1]
    entries = ZERO
    for index in range(scratch.stamp[2]):
        v = scratch.tree[index]
        if spreads(net, scratch, v, begin):
            scratch.mark[v], scratch.hop[v] = now, 0
            _push(scratch.key, scratch.node, entries, _key(dist, goal, v, max(scratch.arrival[v], begin), ZERO), v)
            entries += 1
    most = dist.hops[goal, scratch.tree[0]] + slack if goal >= 0 and slack >= 0 else _ANY
    while entries:
        v = scratch.node[0]
        _pop(scratch.key, scratch.node, entries)
        entries -= 1
        if scratch.final[v] == now:
            continue
        scratch.final[v] = now
        in_tree = spreads(net, scratch, v, begin)
        if not in_tree and (v == goal or (goal < 0 and scratch.target[v] == job)):
            targets -= 1
            if not targets:
                return int(v)
        ready = max(scratch.arrival[v], begin) if in_tree else scratch.arrival[v]
        first, degree = net.first[v], net.first[v + 1] - net.first[v]
        turn = draw(scratch.state, degree) if degree > 1 else 0
        for index in range(degree):
            edge = net.leaving[first + (index + turn) % degree]
            w = net.head[edge]
            if scratch.final[w] == now or spreads(net, scratch, w, begin):
                continue
            k = _improve(net, busy, dist, scratch, size, goal, edge, ready, in_tree, most)
            if k >= 0:
                _push(scratch.key, scratch.node, entries, k, w)
                entries += 1
    return -1


@kernel
def _keep(net: Any, busy: Any, pool: Any, scratch: Any, j: int, size: int, reached: int, begin: int) -> int:
    """Reserve the path from the tree to a reached node; return :data:`DONE` or the resource that ran out."""
    job = scratch.stamp[1]
    steps, v = 0, reached
    while not spreads(net, scratch, v, begin):
        scratch.walk[steps] = v
        steps += 1
        v = net.tail[scratch.via[v]]
    for index in range(steps - 1, -1, -1):
        w = scratch.walk[index]
        edge, start, at = scratch.via[w], scratch.start[w], pool.fill[0]
        if at >= len(pool.edge):
            return SENDS
        if not has_room(net, busy, edge) or (net.room[v] >= 0 and busy.stays[v] >= busy.stay_begin.shape[1]):
            return INTERVALS
        if net.room[v] >= 0:
            stay(net, busy, size, v, scratch.departure[v] + 1, start)
            scratch.departure[v] = max(scratch.departure[v], start)
        take(net, busy, size, edge, start)
        pool.edge[at], pool.start[at] = edge, start
        pool.parent[at] = -1 if v == scratch.tree[0] else scratch.place[v]
        pool.fill[0] = at + 1
        scratch.place[w] = pool.length[j]
        pool.length[j] += 1
        if scratch.inside[w] != job:
            scratch.inside[w] = job
            scratch.tree[scratch.stamp[2]] = w
            scratch.stamp[2] += 1
        scratch.departure[w] = scratch.arrival[w] - 1
        if scratch.target[w] == job:
            scratch.target[w] = 0
            scratch.stamp[3] -= 1
            pool.finish[j] = max(pool.finish[j], scratch.arrival[w])
        v = w
    return DONE


@kernel
def _idle_from(busy: Any) -> int:
    """Return a tick from which on all links and buffers are free."""
    idle = 0
    for link in range(len(busy.runs)):
        if busy.runs[link]:
            idle = max(idle, busy.end[link, busy.runs[link] - 1])
    for node in range(len(busy.stays)):
        for place in range(busy.stays[node]):
            idle = max(idle, busy.stay_end[node, place] + 1)
    return idle


@kernel
def _place(net: Any, busy: Any, jobs: Any, dist: Any, pool: Any, scratch: Any, j: int, whole: bool, slack: int) -> int:
    """Find the paths of one job; return :data:`DONE` or why it cannot be placed."""
    scratch.stamp[1] += 1
    job, size, source = scratch.stamp[1], jobs.size[j], jobs.source[j]
    first, last = jobs.target_first[j], jobs.target_first[j + 1]
    pool.first[j], pool.length[j], pool.finish[j] = pool.fill[0], 0, jobs.release[j]
    scratch.inside[source], scratch.arrival[source] = job, jobs.release[j]
    scratch.tree[0], scratch.stamp[2], scratch.stamp[3] = source, 1, last - first
    for index in range(first, last):
        scratch.target[jobs.target[index]] = job
    goal = jobs.target[first] if last - first == 1 else -1
    while scratch.stamp[3]:
        count = scratch.stamp[3] if whole else 1
        late = ZERO
        target = reach(net, busy, dist, scratch, size, goal, count, slack, late)
        if target < 0:
            if busy.words.shape[1]:
                return TICKS
            # Only full buffers can bar a way for good: when everything is over, there is one.
            late = _idle_from(busy)
            target = reach(net, busy, dist, scratch, size, goal, count, slack, late)
        if not whole:
            halt = _keep(net, busy, pool, scratch, j, size, target, late)
            if halt:
                return halt
            continue
        for index in range(first, last):
            if scratch.inside[jobs.target[index]] != job:
                halt = _keep(net, busy, pool, scratch, j, size, jobs.target[index], late)
                if halt:
                    return halt
    return DONE


@kernel
def remove(net: Any, busy: Any, jobs: Any, pool: Any, j: int) -> None:
    """Release the reservations of a job; its sends stay in the pool."""
    for index in range(pool.first[j], pool.first[j] + pool.length[j]):
        give_back(net, busy, jobs.size[j], pool.edge[index], pool.start[index])


@kernel
def remove_all(net: Any, busy: Any, jobs: Any, pool: Any, numbers: Any) -> None:
    """Release the reservations of jobs."""
    for j in numbers:
        remove(net, busy, jobs, pool, j)


@kernel
def take_all(net: Any, busy: Any, jobs: Any, pool: Any, numbers: Any) -> None:
    """Restore the released reservations of jobs."""
    for j in numbers:
        for index in range(pool.first[j], pool.first[j] + pool.length[j]):
            take(net, busy, jobs.size[j], pool.edge[index], pool.start[index])


@kernel
def place_all(
    net: Any, busy: Any, jobs: Any, dist: Any, pool: Any, scratch: Any, order: Any, begin: int, whole: bool, slack: int
) -> Any:
    """Find the paths of jobs in an order, from position ``begin`` on.

    ``whole`` searches all targets of a chunk at once, as in the paper; otherwise each search starts from the whole
    tree. ``slack`` is that of :func:`reach`. Return the number of placed jobs, and the reason to stop: :data:`DONE`,
    :data:`SENDS`, :data:`INTERVALS` or :data:`TICKS`.
    """
    for index in range(begin, len(order)):
        j = order[index]
        halt = _place(net, busy, jobs, dist, pool, scratch, j, whole, slack)
        if halt:
            remove(net, busy, jobs, pool, j)
            pool.fill[0] = pool.first[j]
            return index, halt
    return len(order), DONE
