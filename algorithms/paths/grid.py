"""Recognition of grids, and paths along one dimension after the other (docs/methods/pccl.md)."""

from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from ...core.kernel import kernel
from ...core.schedule import Ints, offsets
from ...core.topology import Topology


def sides_of(topology: Topology) -> tuple[int, ...] | None:
    """Return the sides of a topology that is a grid, see :func:`grid_sides`."""
    ends = np.array(topology.link_ends, dtype=np.int64).reshape(-1, 2)
    return grid_sides(ends[:, 0], ends[:, 1], len(topology.nodes))


def grid_sides(tail: Ints, head: Ints, nodes: int) -> tuple[int, ...] | None:
    """Return the sides of a grid with row-major node numbers, the last first; None for other networks."""
    strides = sorted(head[tail == 0].tolist())
    if not strides or strides[0] != 1:
        return None
    bounds = [*strides, nodes]
    if any(b % a for a, b in pairwise(bounds)):
        return None
    sides = tuple(b // a for a, b in pairwise(bounds))
    place = np.arange(nodes)
    forward = [np.flatnonzero(place // s % n < n - 1) for s, n in zip(strides, sides, strict=True)]
    tails = np.concatenate(forward)
    heads = np.concatenate([f + s for f, s in zip(forward, strides, strict=True)])
    expected = np.sort(np.concatenate([tails * nodes + heads, heads * nodes + tails]))
    return sides if np.array_equal(expected, np.sort(tail * nodes + head)) else None


def grid_ways(
    tail: Ints, head: Ints, sides: tuple[int, ...], source: Ints, target: Ints, backwards: Any
) -> tuple[Ints, Ints]:
    """Return a path along the dimensions for each pair, in order or in reverse: first edge of each, and edges."""
    strides = np.concatenate([[1], np.cumprod(sides)])[:-1].astype(np.int64)
    hops = np.zeros(len(source), dtype=np.int64)
    for stride, side in zip(strides, sides, strict=True):
        hops += np.abs(source // stride % side - target // stride % side)
    first = offsets(hops)
    towards = np.full((prod(sides), 2 * len(sides)), -1, dtype=np.int64)
    for d, stride in enumerate(strides):
        for up, step in enumerate((-stride, stride)):
            mine = np.flatnonzero(head - tail == step)
            towards[tail[mine], 2 * d + up] = mine
    edges = np.zeros(int(first[-1]), dtype=np.int64)
    _walk(source, target, np.asarray(backwards), np.array(sides), strides, towards, first, edges)
    return first, edges


@kernel
def _walk(
    source: Any, target: Any, backwards: Any, sides: Any, strides: Any, towards: Any, first: Any, edges: Any
) -> None:
    for pair in range(len(source)):
        at, place = source[pair], first[pair]
        for turn in range(len(sides)):
            d = len(sides) - 1 - turn if backwards[pair] else turn
            ahead = target[pair] // strides[d] % sides[d] - at // strides[d] % sides[d]
            step = 1 if ahead > 0 else -1
            for _ in range(abs(ahead)):
                edges[place] = towards[at, 2 * d + (1 if ahead > 0 else 0)]
                at += step * strides[d]
                place += 1


@kernel
def farthest_first(order: Any, first: Any, edges: Any, window: int, delay: int, start: Any) -> int:
    """Schedule chunks on given paths: a free link takes the waiting chunk with the most links to go.

    All links are alike, so that chunks arrive, and links become free, in the order of sending: two queues hold all
    future events. ``order`` is that of jobs among those with equally many links to go, at least one; ``first`` and
    ``edges`` are their paths. A chunk holds a link for ``window`` ticks and arrives after ``delay``, at least 1. Fill
    ``start`` with the ticks of all hops; return that of the last arrival.
    """
    jobs, links, longest = len(order), edges.max() + 1, np.diff(first).max()
    head = np.full((links, longest + 1), -1, dtype=np.int32)
    tail = np.full((links, longest + 1), -1, dtype=np.int32)
    behind = np.full(jobs, -1, dtype=np.int32)
    top = np.zeros(links, dtype=np.int64)  # nobody at the link has more to go than this
    at = first[:-1].copy()
    # Rings of what is under way and of links in use: the next one that ends, where the one after the last goes.
    come, come_at, under_way, out, into = order.astype(np.int32), np.zeros(jobs, dtype=np.int64), jobs, 0, 0
    freed, freed_at, in_use, oldest, newest = np.empty(links, dtype=np.int32), np.zeros(links, dtype=np.int64), 0, 0, 0
    busy, mark = np.zeros(links, dtype=np.bool_), np.zeros(links, dtype=np.bool_)
    touched = np.empty(links, dtype=np.int64)
    now, rest = 0, jobs
    while rest:
        now = come_at[out] if under_way else freed_at[oldest]
        if in_use:
            now = min(now, freed_at[oldest])
        count = 0
        while in_use and freed_at[oldest] == now:
            e, in_use, oldest = freed[oldest], in_use - 1, oldest + 1 if oldest + 1 < links else 0
            busy[e], mark[e] = False, True
            touched[count], count = e, count + 1
        while under_way and come_at[out] == now:
            j, under_way, out = come[out], under_way - 1, out + 1 if out + 1 < jobs else 0
            e, ahead = edges[at[j]], first[j + 1] - at[j]
            _line_up(head[e], tail[e], behind, j, ahead)
            top[e] = max(top[e], ahead)
            if not busy[e] and not mark[e]:
                mark[e] = True
                touched[count], count = e, count + 1
        for e in np.sort(touched[:count]):
            mark[e] = False
            while top[e] and head[e, top[e]] < 0:
                top[e] -= 1
            if not top[e]:
                continue
            j = _next(head[e], tail[e], behind, int(top[e]))
            start[at[j]], busy[e] = now, True
            freed[newest], freed_at[newest] = e, now + window
            in_use, newest = in_use + 1, newest + 1 if newest + 1 < links else 0
            at[j] += 1
            if at[j] < first[j + 1]:
                come[into], come_at[into] = j, now + delay
                under_way, into = under_way + 1, into + 1 if into + 1 < jobs else 0
            else:
                rest -= 1
    return now + delay


@kernel
def _line_up(head: Any, tail: Any, behind: Any, j: Any, ahead: Any) -> None:
    """Append a chunk to the queue of those with so many links to go."""
    if tail[ahead] < 0:
        head[ahead] = j
    else:
        behind[tail[ahead]] = j
    tail[ahead], behind[j] = j, -1


@kernel
def _next(head: Any, tail: Any, behind: Any, ahead: int) -> int:
    j = int(head[ahead])
    head[ahead] = behind[j]
    if behind[j] < 0:
        tail[ahead] = -1
    return j
