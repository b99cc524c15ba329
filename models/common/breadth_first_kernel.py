"""Loops of :mod:`.breadth_first`, compiled by numba: they are imported only when values are computed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

#: Further than any node.
_FAR = 32_000


@njit(cache=True)
def distances(source: Any) -> Any:
    """Distances from all nodes (columns) to all nodes (rows), by waves: ``source`` are the ends of the links into every node."""
    nodes, width = source.shape
    distance = np.full((nodes, nodes), np.int16(_FAR))
    for u in range(nodes):
        distance[u, u] = 0
    left = nodes * (nodes - 1)
    step = np.int16(0)
    while left:
        before = left
        for u in range(nodes):
            row = distance[u]
            for i in range(width):
                if source[u, i] < 0:
                    continue
                near = distance[source[u, i]]
                for v in range(nodes):
                    row[v] = step + 1 if (near[v] == step) & (row[v] > step) else row[v]
        step += 1
        left = 0
        for u in range(nodes):
            row = distance[u]
            for v in range(nodes):
                left += row[v] == _FAR
        if left == before:
            break
    return distance


@njit(cache=True)
def _sets(u: int, source: Any, into: Any, distance: Any, sets: Any) -> None:
    """For every node, the links into u, as bits, over which its shard comes on a shortest path."""
    sets[:] = 0
    row = distance[u]
    for i in range(source.shape[1]):
        if into[u, i] >= 0:
            near = distance[source[u, i]]
            bit = np.int64(1) << i
            for v in range(len(row)):
                sets[v] |= bit if near[v] < row[v] else np.int64(0)


@njit(cache=True)
def _bits(word: Any) -> Any:
    count = 0
    while word:
        word &= word - 1
        count += 1
    return count


@njit(cache=True)
def place(masks: Any, counts: Any, capacity: Any, pieces: Any, sent: Any) -> Any:
    """Send whole pieces of classes of shards over links; fill ``sent`` (classes x links).

    Returns
    -------
    int
        0 if all are sent, else links that are too few for those that can come over them alone.
    """
    classes, width = sent.shape
    sent[:] = 0
    free = np.full(width, capacity)
    left = counts * pieces
    for size in range(1, width + 1):  # those that have least choice come first
        for c in range(classes):
            if _bits(masks[c]) == size:
                for i in range(width):
                    if masks[c] >> i & 1:
                        amount = min(free[i], left[c])
                        sent[c, i] += amount
                        free[i] -= amount
                        left[c] -= amount
    owner, origin, queue = np.empty(width, np.int64), np.empty(width, np.int64), np.empty(width, np.int64)
    for c in range(classes):
        while left[c]:
            found, reached = _search(c, masks, sent, free, owner, origin, queue)
            if found < 0:
                return reached
            amount, i = min(free[found], left[c]), found
            while origin[i] >= 0:
                amount = min(amount, sent[owner[i], origin[i]])
                i = origin[i]
            free[found] -= amount
            left[c] -= amount
            i = found
            while i >= 0:
                sent[owner[i], i] += amount
                if origin[i] >= 0:
                    sent[owner[i], origin[i]] -= amount
                i = origin[i]
    return 0


@njit(cache=True)
def _search(c: int, masks: Any, sent: Any, free: Any, owner: Any, origin: Any, queue: Any) -> Any:
    """Find a link with room for more of a class, by moving others' pieces: that link or -1, and the links reached.

    ``owner`` is whose pieces would take a link, and ``origin`` the link that they would leave, or -1.
    """
    classes, width = sent.shape
    reached, begin, end = masks[c], 0, 0
    for i in range(width):
        if reached >> i & 1:
            owner[i], origin[i], queue[end] = c, -1, i
            end += 1
    while begin < end:
        i = queue[begin]
        begin += 1
        if free[i]:
            return i, reached
        for k in range(classes):
            more = masks[k] & ~reached if sent[k, i] else np.int64(0)
            for j in range(width):
                if more >> j & 1:
                    owner[j], origin[j], queue[end] = k, i, j
                    end += 1
            reached |= more
    return -1, reached


@njit(cache=True)
def busiest(source: Any, into: Any, distance: Any, steps: int) -> Any:
    """For every step, the largest load of a link into any node, as numerators and denominators.

    A load that is enough for a node is kept. Where it is not, a minimum cut names links with a larger quotient, and so
    on: Newton's method, which needs no more rounds than there are links.
    """
    nodes, width = source.shape
    above, below = np.zeros(steps, np.int64), np.ones(steps, np.int64)
    counters = np.zeros((steps + 1) << width, np.int32)
    sets, touched = np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    for u in range(nodes):
        _sets(u, source, into, distance, sets)
        end = 0
        for v in range(nodes):
            key = (np.int64(distance[u, v]) << width) | sets[v]
            if counters[key] == 0:
                touched[end] = key
                end += 1
            counters[key] += 1
        keys = np.sort(touched[:end])
        begin = 1  # the first key is u itself, at distance 0
        while begin < end:
            t = keys[begin] >> width
            stop = begin
            while stop < end and keys[stop] >> width == t:
                stop += 1
            masks = keys[begin:stop] & ((np.int64(1) << width) - 1)
            counts = np.empty(stop - begin, np.int64)
            union = np.int64(0)
            for k in range(stop - begin):
                counts[k] = counters[keys[begin + k]]
                union |= masks[k]
            if counts.sum() * below[t - 1] > above[t - 1] * _bits(union):
                above[t - 1], below[t - 1] = counts.sum(), _bits(union)
            sent = np.empty((stop - begin, width), np.int64)
            stuck = place(masks, counts, above[t - 1], below[t - 1], sent)
            while stuck:
                total = 0
                for k in range(stop - begin):
                    if masks[k] & ~stuck == 0:
                        total += counts[k]
                above[t - 1], below[t - 1] = total, _bits(stuck)
                stuck = place(masks, counts, above[t - 1], below[t - 1], sent)
            begin = stop
        for k in range(end):
            counters[touched[k]] = 0
    return above, below


@njit(cache=True)
def receive(u: int, source: Any, into: Any, distance: Any, capacity: Any, pieces: int) -> Any:
    """Rows (whose shard, link, step, first piece, piece behind the last) of what one node receives."""
    nodes, width = source.shape
    sets = np.empty(nodes, np.int64)
    _sets(u, source, into, distance, sets)
    order = np.argsort((distance[u].astype(np.int64) << width) | sets, kind="mergesort")
    rows = np.empty((nodes * (width + 1), 5), np.int64)
    count, begin = 0, 1
    while begin < nodes:
        t = distance[u, order[begin]]
        stop = begin
        while stop < nodes and distance[u, order[stop]] == t:
            stop += 1
        first = [begin]
        for k in range(begin + 1, stop):
            if sets[order[k]] != sets[order[k - 1]]:
                first.append(k)
        first.append(stop)
        masks = np.array([sets[order[k]] for k in first[:-1]])
        counts = np.array([first[k + 1] - first[k] for k in range(len(first) - 1)])
        sent = np.empty((len(masks), width), np.int64)
        place(masks, counts, capacity[t - 1], pieces, sent)
        for c in range(len(masks)):
            at = 0
            for i in range(width):
                amount = sent[c, i]
                while amount:
                    start = at % pieces
                    taken = min(amount, pieces - start)
                    rows[count, 0], rows[count, 1] = order[first[c] + at // pieces], into[u, i]
                    rows[count, 2], rows[count, 3], rows[count, 4] = t - 1, start, start + taken
                    count += 1
                    at += taken
                    amount -= taken
        begin = stop
    return rows[:count].copy()
