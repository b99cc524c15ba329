"""An all-reduce whose halves overlap: every chunk is added up along a tree to its root and then spread along it, each as soon as it can be.

Back to back, the links into a corner of a mesh have nothing to do while sums leave it, and the links out of it nothing while they come back.
Trees are Prim's, shallow and with little load on every link both ways; then the links serve what is ready by priority: chunks that come early in
the order, and of these what has the longest way before it.
"""

from __future__ import annotations

import heapq
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from .bits import draw, seeded
from .network import Arcs
from .stepped import Rows, rows_for

Ints = NDArray[np.int64]

#: Part of a chunk's place in the order that counts against the length of its way, in the shortest transfer's time.
_TURN = 0.25


class Plan(NamedTuple):
    """An all-reduce: transfers with ``adds`` for those of the first half, and when the last one arrives."""

    rows: Rows
    adds: NDArray[np.bool_]
    ticks: int


def opposite(arcs: Arcs) -> Ints | None:
    """Give for each arc one back; None if one has none, or arcs share ports."""
    if not arcs.alone or len(np.unique(arcs.tail * arcs.ranks + arcs.head)) < len(arcs.tail):
        return None
    number = {ends: arc for arc, ends in enumerate(zip(arcs.tail.tolist(), arcs.head.tolist(), strict=True))}
    back = [number.get((b, a), -1) for a, b in zip(arcs.tail.tolist(), arcs.head.tolist(), strict=True)]
    return None if min(back, default=-1) < 0 else np.array(back, dtype=np.int64)


def overlapped(arcs: Arcs, back: Ints, owner: Ints, members: NDArray[np.bool_], depth: float, seed: int) -> Plan:
    """Make trees and a schedule for them.

    Parameters
    ----------
    arcs : Arcs
        The network; all ranks are members.
    back : array of int
        See :func:`opposite`.
    owner : array of int, shape (chunks,)
        Root of every chunk.
    members : array of bool, shape (ranks,)
        The process group, without which a rank takes no part.
    depth : float
        What a tick of a tree's depth weighs against one of a link's load.
    seed : int
        Of ties.
    """
    out = np.argsort(arcs.tail, kind="stable").astype(np.int64)
    first = np.concatenate([[0], np.cumsum(np.bincount(arcs.tail, minlength=arcs.ranks))]).astype(np.int64)
    # Chunks take turns: one of every root, then the next ones.
    place = np.zeros(len(owner), dtype=np.int64)
    seen: dict[int, int] = {}
    for chunk, root in enumerate(owner.tolist()):
        seen[root] = seen.get(root, -1) + 1
        place[chunk] = seen[root]
    order = np.lexsort((np.arange(len(owner)), place)).astype(np.int64)
    parent = _trees(first, out, arcs.head, arcs.ticks, back, owner, members, order, depth, seed)
    count = 2 * len(owner) * (int(members.sum()) - 1)
    rows = rows_for(count)
    adds = np.empty(count, dtype=np.bool_)
    turn = np.empty(len(owner), dtype=np.float64)
    turn[order] = np.arange(len(owner)) * (_TURN * float(arcs.ticks.min()))
    ticks = _run(arcs.tail, arcs.head, arcs.ticks, back, owner, parent, turn, rows, adds)
    return Plan(rows, adds, int(ticks))


@numba.njit(cache=True)
def _trees(
    first: Any, out: Any, head: Any, ticks: Any, back: Any, owner: Any, member: Any, order: Any, depth: float, seed: int
) -> Any:
    """Grow a tree for every chunk, one after the other; give the arc into every rank, -1 for roots and others; shape (chunks, ranks)."""
    n = len(first) - 1
    random = seeded(seed)
    load, parent = np.zeros(len(head), np.float64), np.full((len(owner), n), -1, np.int64)
    far = np.zeros(n, np.float64)
    for chunk in order:
        done = np.zeros(n, np.bool_)
        done[owner[chunk]] = True
        far[owner[chunk]] = 0.0
        heap = [(0.0, 0, 0) for _ in range(0)]
        node = owner[chunk]
        while True:
            for index in range(first[node], first[node + 1]):
                arc = out[index]
                if member[head[arc]] and not done[head[arc]]:
                    cost = load[arc] + load[back[arc]] + depth * (far[node] + ticks[arc])
                    heapq.heappush(heap, (cost, draw(random, 1024), arc))
            while len(heap) > 0 and done[head[heap[0][2]]]:
                heapq.heappop(heap)
            if len(heap) == 0:
                break
            arc = heapq.heappop(heap)[2]
            node = head[arc]
            done[node] = True
            parent[chunk, node] = arc
            far[node] = far[head[back[arc]]] + ticks[arc]
            load[arc] += ticks[arc]
            load[back[arc]] += ticks[back[arc]]
    return parent


class Forest(NamedTuple):
    """The trees of all chunks, and where they stand.

    Parameters
    ----------
    tail, back : array of int, shape (arcs,)
        Where each arc begins, and the one back.
    owner, turn : array, shape (chunks,)
        Root of each chunk, and what its place in the order counts.
    parent : array of int, shape (chunks, ranks)
        The arc into each rank, or -1.
    left : array of int, shape (chunks, ranks)
        Children whose parts have not arrived.
    down, up : array of float, shape (chunks, ranks)
        The way to the farthest leaf below, and to the root, in ticks.
    """

    tail: Any
    back: Any
    owner: Any
    turn: Any
    parent: Any
    left: Any
    down: Any
    up: Any


@numba.njit(cache=True)
def _run(tail: Any, head: Any, ticks: Any, back: Any, owner: Any, parent: Any, turn: Any, rows: Rows, adds: Any) -> int:
    """Serve what is ready by priority, on every link by itself; give the last arrival.

    Operation ``2 (chunk n + v)`` adds what v has to its parent, ``2 (chunk n + v) + 1`` gives v the sum.
    """
    chunks, n = parent.shape
    left = np.zeros((chunks, n), np.int64)
    down, up = np.zeros((chunks, n), np.float64), np.zeros((chunks, n), np.float64)
    for chunk in range(chunks):
        _measure(tail, ticks, owner[chunk], parent[chunk], left[chunk], down[chunk], up[chunk])
    forest = Forest(tail, back, owner, turn, parent, left, down, up)
    ready = [[(0.0, 0) for _ in range(0)] for _ in range(len(tail))]
    busy = np.zeros(len(tail), np.bool_)
    heap = [(0, 0) for _ in range(0)]
    fresh = [0 for _ in range(0)]
    for chunk in range(chunks):
        for v in range(n):
            if left[chunk, v] == 0:
                _go_on(forest, ticks, chunk, v, False, ready, fresh)
    now, count = 0, 0
    while True:
        for arc in fresh:
            if not busy[arc] and len(ready[arc]) > 0:
                item = heapq.heappop(ready[arc])[1]
                busy[arc] = True
                rows.arc[count], rows.chunk[count] = arc, item // 2 // n
                rows.head[count], rows.start[count], adds[count] = head[arc], now, item % 2 == 0
                heapq.heappush(heap, (now + ticks[arc], item))
                count += 1
        fresh.clear()
        if len(heap) == 0:
            return now
        now = heap[0][0]
        while len(heap) > 0 and heap[0][0] == now:
            item = heapq.heappop(heap)[1]
            chunk, v, spread = item // 2 // n, item // 2 % n, item % 2 == 1
            into = parent[chunk, v]
            arc, node = (into, v) if spread else (back[into], tail[into])
            busy[arc] = False
            fresh.append(arc)
            if not spread:
                left[chunk, node] -= 1
            if left[chunk, node] == 0:
                _go_on(forest, ticks, chunk, node, spread, ready, fresh)


@numba.njit(cache=True)
def _go_on(forest: Forest, ticks: Any, chunk: int, node: int, spread: bool, ready: Any, fresh: Any) -> None:
    """Let a rank that has all parts add them to its parent, and one that has the sum, as the root then has, give it to its children."""
    parent, turn, n = forest.parent[chunk], forest.turn[chunk], forest.parent.shape[1]
    if not spread and parent[node] >= 0:
        arc = forest.back[parent[node]]
        way = forest.up[chunk, node] + forest.down[chunk, forest.owner[chunk]]
        heapq.heappush(ready[arc], (turn - way, 2 * (chunk * n + node)))
        fresh.append(arc)
    elif spread or node == forest.owner[chunk]:
        for child in range(n):
            arc = parent[child]
            if arc >= 0 and forest.tail[arc] == node:
                way = ticks[arc] + forest.down[chunk, child]
                heapq.heappush(ready[arc], (turn - way, 2 * (chunk * n + child) + 1))
                fresh.append(arc)


@numba.njit(cache=True)
def _measure(tail: Any, ticks: Any, root: int, parent: Any, left: Any, down: Any, up: Any) -> None:
    """Count children, and measure the way from the root to every rank and from it to its farthest leaf."""
    n = len(parent)
    for v in range(n):
        length, node = 0.0, v
        while parent[node] >= 0:
            length += ticks[parent[node]]
            node = tail[parent[node]]
            down[node] = max(down[node], length)
        up[v] = length
        if parent[v] >= 0:
            left[tail[parent[v]]] += 1
