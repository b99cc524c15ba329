"""Distances, classes of shards, and what is done with them; compiled by numba, and imported only when something is computed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from .transport import least_load, place


@njit(cache=True)
def distances(source: Any, targets: Any, zero: Any) -> Any:
    """Distances from all nodes (columns) to some (rows), 0 also where there is no path; ``source`` are the ends of the links into every node.

    ``zero`` is a number of the wanted type.
    """
    nodes, width = source.shape
    distance = np.full((len(targets), nodes), zero)
    queue = np.empty(nodes, np.int64)
    for k in range(len(targets)):
        row = distance[k]
        queue[0] = targets[k]
        begin, end = 0, 1
        while begin < end:
            u = queue[begin]
            begin += 1
            for i in range(width):
                w = source[u, i]
                if row[w] == 0 and w != targets[k]:
                    row[w] = row[u] + 1
                    queue[end] = w
                    end += 1
    return distance


@njit(cache=True)
def _refine(own: int, near: Any, distance: Any, steps: int) -> Any:
    """Put shards that a node receives in the same step over the same links into one class, by splitting classes by one link after the other.

    Returns
    -------
    label, step, parent, link, size
        Class of every shard; of every class, the step, the class that it was split off, the link by which, and how many shards it has.
    """
    nodes, width = distance.shape[1], len(near)
    room = steps + 1 + nodes * width
    step, parent, link, size = np.empty((4, room), np.int64)
    split = np.full(room, -1)
    label = distance[own].astype(np.int64)
    count = steps + 1
    for t in range(count):
        step[t], parent[t], size[t] = t, -1, 0
    for v in range(nodes):
        size[label[v]] += 1
    for i in range(width):
        begin, nearer = count, distance[near[i]]
        for v in range(nodes):
            if nearer[v] < distance[own, v]:
                old = label[v]
                if split[old] < 0:
                    split[old], step[count], parent[count], link[count], size[count] = count, step[old], old, i, 0
                    count += 1
                size[old] -= 1
                size[split[old]] += 1
                label[v] = split[old]
        for c in range(begin, count):
            split[parent[c]] = -1
    return label, step[:count], parent, link, size


@njit(cache=True)
def _problems(own: int, near: Any, distance: Any, steps: int) -> Any:
    """Classes of the shards that a node receives, step by step.

    Returns
    -------
    first, over, counts, label
        Classes of step t are ``first[t]`` to ``first[t + 1] - 1``; links that each can come over, and its number of shards; class of every
        shard, -1 for the node's own.
    """
    label, step, parent, link, size = _refine(own, near, distance, steps)
    first = np.zeros(steps + 2, np.int64)
    for c in range(1, len(step)):
        if size[c]:
            first[step[c] + 1] += 1
    first = np.cumsum(first)
    over = np.zeros((first[-1], len(near)), np.bool_)
    counts = np.empty(first[-1], np.int64)
    number, end = np.full(len(step), -1), first.copy()
    for c in range(1, len(step)):
        if size[c]:
            number[c] = end[step[c]]
            end[step[c]] += 1
            counts[number[c]] = size[c]
            k = c
            while parent[k] >= 0:
                over[number[c], link[k]] = True
                k = parent[k]
    return first, over, counts, number[label]


@njit(cache=True)
def busiest(own: Any, near: Any, distance: Any, steps: int) -> Any:
    """For every step, the largest load of a link into any of some nodes, as numerators and denominators."""
    above, below = np.zeros(steps, np.int64), np.ones(steps, np.int64)
    for u in range(len(own)):
        first, over, counts, _ = _problems(own[u], near[u], distance, steps)
        for t in range(1, steps + 1):
            a, b = first[t], first[t + 1]
            if a < b:
                above[t - 1], below[t - 1] = least_load(over[a:b], counts[a:b], above[t - 1], below[t - 1])
    return above, below


@njit(cache=True)
def receive(targets: Any, own: Any, near: Any, distance: Any, steps: int, pieces: int) -> Any:
    """Columns (who receives, whose shard, slot of the link, step, first piece, piece behind the last) of what some nodes receive."""
    nodes = distance.shape[1]
    columns, count = np.empty((6, nodes * len(own)), np.int64), 0
    for u in range(len(own)):
        problems = _problems(own[u], near[u], distance, steps)
        room = count + nodes + problems[1].size
        if room > columns.shape[1]:
            larger = np.empty((6, 2 * room), np.int64)
            for k in range(6):
                for row in range(count):
                    larger[k, row] = columns[k, row]
            columns = larger
        count = _split(targets[u], problems, pieces, columns, count)
    return columns[:, :count]


@njit(cache=True)
def _split(target: int, problems: Any, pieces: int, columns: Any, count: int) -> int:
    """Fill columns with what one node receives, from some place on, and give the place behind."""
    first, over, counts, label = problems
    ends = np.cumsum(counts)
    at, shards = ends - counts, np.empty(len(label), np.int64)
    for v in range(len(label)):
        if label[v] >= 0:
            shards[at[label[v]]] = v
            at[label[v]] += 1
    width = over.shape[1]
    for t in range(len(first) - 1):
        a, b = first[t], first[t + 1]
        if a == b:
            continue
        above, below = least_load(over[a:b], counts[a:b], 0, 1)
        sent = np.empty((b - a, width), np.int64)
        place(over[a:b], counts[a:b], -(-pieces * above // below), pieces, sent)
        for c in range(a, b):
            shard, start = ends[c] - counts[c], 0
            for i in range(width):
                amount = sent[c - a, i]
                while amount:
                    taken = min(amount, pieces - start)
                    columns[0, count], columns[1, count], columns[2, count] = target, shards[shard], i
                    columns[3, count], columns[4, count], columns[5, count] = t - 1, start, start + taken
                    count += 1
                    amount -= taken
                    start += taken
                    if start == pieces:
                        shard, start = shard + 1, 0
    return count
