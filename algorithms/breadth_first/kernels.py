"""Compiled kernels: distances, classes of shards, and theorem 19 for every node and step.

Theorem 19 gives the smallest load, and whole pieces that attain it. numba is imported only when something is computed.
"""

from typing import Any

import numpy as np

from ...core.kernel import kernel


@kernel
def place(over: Any, counts: Any, capacity: int, pieces: int, share: Any) -> Any:
    """Fill ``share`` with pieces of classes on links of limited capacity; mark the links that are too few, if any."""
    classes, width = over.shape
    free, rest = _fill(over, counts, capacity, pieces, share)
    owner, origin, queue = np.empty((3, width), np.int64)
    reached = np.zeros(width, np.bool_)
    for c in range(classes):
        while rest[c]:
            end = _search(c, over, share, free, reached, owner, origin, queue)
            if end < 0:
                return reached
            _move(c, end, rest, free, share, owner, origin)
    reached[:] = False
    return reached


@kernel
def _fill(over: Any, counts: Any, capacity: int, pieces: int, share: Any) -> Any:
    """Send pieces greedily, classes with the fewest links first; return free room and unsent pieces."""
    classes, width = over.shape
    share[:] = 0
    free = np.full(width, capacity)
    rest = counts * pieces
    choice = over.sum(axis=1)
    for size in range(1, choice.max() + 1):  # those that have least choice come first
        for c in range(classes):
            if choice[c] == size:
                for i in range(width):
                    if over[c, i]:
                        amount = min(free[i], rest[c])
                        share[c, i] += amount
                        free[i] -= amount
                        rest[c] -= amount
    return free, rest


@kernel
def _move(c: int, end: int, rest: Any, free: Any, share: Any, owner: Any, origin: Any) -> None:
    """Send more of a class by moving pieces along an augmenting path to a link with room."""
    amount, i = min(free[end], rest[c]), end
    while origin[i] >= 0:
        amount = min(amount, share[owner[i], origin[i]])
        i = origin[i]
    free[end] -= amount
    rest[c] -= amount
    i = end
    while i >= 0:
        share[owner[i], i] += amount
        if origin[i] >= 0:
            share[owner[i], origin[i]] -= amount
        i = origin[i]


@kernel
def _search(c: int, over: Any, share: Any, free: Any, reached: Any, owner: Any, origin: Any, queue: Any) -> Any:
    """Search an augmenting path to a link with room, or -1; mark ``owner`` and ``origin`` of pieces to be moved."""
    classes, width = share.shape
    begin, end = 0, 0
    for i in range(width):
        reached[i] = over[c, i]
        if reached[i]:
            owner[i], origin[i], queue[end] = c, -1, i
            end += 1
    while begin < end:
        i = queue[begin]
        begin += 1
        if free[i]:
            return i
        for k in range(classes):
            if share[k, i]:
                for j in range(width):
                    if over[k, j] and not reached[j]:
                        reached[j] = True
                        owner[j], origin[j], queue[end] = k, i, j
                        end += 1
    return -1


@kernel
def least_load(over: Any, counts: Any, above: int, below: int) -> Any:
    """Raise a load, ``above / below`` shards on a link, until it suffices for all classes (docs/methods/bfb.md)."""
    classes, width = over.shape
    share = np.empty((classes, width), np.int64)
    links = over.sum(axis=0) > 0
    while True:
        shards, size = _within(links, over, counts)
        if not size:
            return above, below
        if shards * below > above * size:
            above, below = shards, size
        links = place(over, counts, above, below, share)


@kernel
def _within(links: Any, over: Any, counts: Any) -> Any:
    """Count the shards that need links of a set, and the links of the set."""
    shards, size = 0, 0
    for i in range(len(links)):
        size += links[i]
    for c in range(len(over)):
        inside = True
        for i in range(len(links)):
            inside &= links[i] or not over[c, i]
        if inside:
            shards += counts[c]
    return shards, size


@kernel
def distances(source: Any, targets: Any, zero: Any) -> Any:
    """Compute distances from all nodes (columns) to some (rows), 0 also without a path, by the tails of links."""
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


@kernel
def _refine(own: int, near: Any, distance: Any, steps: int) -> Any:
    """Partition the shards that a node receives by step and possible links, one link at a time.

    Return the class of every shard (label); of every class, its step, the class (parent) and the link that it was
    split by, and its number of shards (size).
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


@kernel
def _problems(own: int, near: Any, distance: Any, steps: int) -> Any:
    """Return the classes of the shards that a node receives, step by step.

    Classes of step t are ``first[t]`` to ``first[t + 1] - 1``; ``over`` and ``counts`` are possible links and
    number of shards of each; ``label`` is the class of every shard, -1 for the node's own.
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


@kernel
def busiest(own: Any, near: Any, distance: Any, steps: int) -> Any:
    """Return the largest load of a link into the nodes per step, as numerators and denominators."""
    above, below = np.zeros(steps, np.int64), np.ones(steps, np.int64)
    for u in range(len(own)):
        first, over, counts, _ = _problems(own[u], near[u], distance, steps)
        for t in range(1, steps + 1):
            a, b = first[t], first[t + 1]
            if a < b:
                above[t - 1], below[t - 1] = least_load(over[a:b], counts[a:b], above[t - 1], below[t - 1])
    return above, below


@kernel
def receive(targets: Any, own: Any, near: Any, distance: Any, steps: int, pieces: int) -> Any:
    """Return columns receiver, owner of the shard, slot of the link, step, first piece, end (exclusive)."""
    rows = [(0, 0, 0, 0, 0, 0) for _ in range(0)]
    for u in range(len(own)):
        _split(targets[u], _problems(own[u], near[u], distance, steps), pieces, rows)
    columns = np.empty((6, len(rows)), np.int64)
    for row in range(len(rows)):
        for k in range(6):
            columns[k, row] = rows[row][k]
    return columns


@kernel
def _split(target: int, problems: Any, pieces: int, rows: Any) -> None:
    """Append the shares of one node to the rows."""
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
        share = np.empty((b - a, width), np.int64)
        place(over[a:b], counts[a:b], -(-pieces * above // below), pieces, share)
        for c in range(a, b):
            shard, start = ends[c] - counts[c], 0
            for i in range(width):
                amount = share[c - a, i]
                while amount:
                    part = min(amount, pieces - start)
                    rows.append((target, shards[shard], i, t - 1, start, start + part))
                    amount -= part
                    start += part
                    if start == pieces:
                        shard, start = shard + 1, 0
