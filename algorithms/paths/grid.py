"""Grids: which networks are one, and ways that go along one dimension after the other.

On a grid half of the ways of an all-to-all take the dimensions in order and half in reverse. Then no link carries more
than the bisection makes some carry, and it is enough that links serve the chunk first that has farthest to go.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from ...core.kernel import kernel
from ...core.schedule import Ints
from ...core.topology import Topology
from .reservations import PathNetwork


def sides_of(topology: Topology) -> tuple[int, ...] | None:
    """The sides of a network that is a grid, see :func:`grid_sides`."""
    ends = np.array(topology.link_ends, dtype=np.int64).reshape(-1, 2)
    return grid_sides(ends[:, 0], ends[:, 1], len(topology.nodes))


def grid_sides(tail: Ints, head: Ints, nodes: int) -> tuple[int, ...] | None:
    """The sides of a grid whose nodes are numbered row by row, the last side first; None if the network is none.

    The neighbours of the first node tell the strides, hence the sides; then every link must be there once and no other.
    """
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
    wanted = np.sort(np.concatenate([tails * nodes + heads, heads * nodes + tails]))
    return sides if np.array_equal(wanted, np.sort(tail * nodes + head)) else None


def grid_ways(
    net: PathNetwork, sides: tuple[int, ...], source: Ints, target: Ints, backwards: Any
) -> tuple[Ints, Ints]:
    """A way along the dimensions for each pair, in order or in reverse.

    Returns
    -------
    tuple of array
        Where each pair's edges begin, and the edges.
    """
    strides = np.concatenate([[1], np.cumprod(sides)])[:-1].astype(np.int64)
    hops = np.zeros(len(source), dtype=np.int64)
    for stride, side in zip(strides, sides, strict=True):
        hops += np.abs(source // stride % side - target // stride % side)
    first = np.concatenate([[0], np.cumsum(hops)]).astype(np.int64)
    towards = np.full((len(net.branches), 2 * len(sides)), -1, dtype=np.int64)
    for d, stride in enumerate(strides):
        for up, step in enumerate((-stride, stride)):
            mine = np.flatnonzero(net.head - net.tail == step)
            towards[net.tail[mine], 2 * d + up] = mine
    edges = np.zeros(int(first[-1]), dtype=np.int64)
    _walk(source, target, np.asarray(backwards), np.array(sides), strides, towards, first, edges)
    return first, edges


@kernel
def _walk(
    source: Any, target: Any, backwards: Any, sides: Any, strides: Any, towards: Any, first: Any, edges: Any
) -> None:
    """Write down the edges of every pair."""
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
def farthest_first(links: Any, order: Any, first: Any, edges: Any, start: Any) -> int:
    """Send chunks along given ways: in every step each link takes the waiting chunk with the most links to go.

    Parameters
    ----------
    links : int
        Number of edges of the network.
    order : array of int, shape (jobs,)
        Who comes first where ways are equally long.
    first, edges : array of int, shape (jobs + 1,) and (hops,)
        The ways.
    start : array of int, shape (hops,)
        Filled with the steps.

    Returns
    -------
    int
        Number of steps.
    """
    jobs = len(order)
    longest = 0
    for j in range(jobs):
        longest = max(longest, first[j + 1] - first[j])
    head = np.full((links, longest + 1), -1, dtype=np.int32)
    tail = np.full((links, longest + 1), -1, dtype=np.int32)
    behind = np.full(jobs, -1, dtype=np.int32)
    top = np.zeros(links, dtype=np.int64)  # nobody at the link has more to go than this
    at, come = first[:-1].copy(), order.copy()
    left, step, count = jobs, 0, jobs
    while left:
        for j in come[:count]:
            e, ahead = edges[at[j]], first[j + 1] - at[j]
            if tail[e, ahead] < 0:
                head[e, ahead] = j
            else:
                behind[tail[e, ahead]] = j
            tail[e, ahead], behind[j] = j, -1
            top[e] = max(top[e], ahead)
        count = 0
        for e in range(links):
            while top[e] and head[e, top[e]] < 0:
                top[e] -= 1
            if not top[e]:
                continue
            j = _next(head[e], tail[e], behind, top[e])
            start[at[j]] = step
            at[j] += 1
            if at[j] < first[j + 1]:
                come[count] = j
                count += 1
            else:
                left -= 1
        step += 1
    return step


@kernel
def _next(head: Any, tail: Any, behind: Any, ahead: int) -> int:
    """Take the first of the chunks that have so many links to go out of its queue."""
    j = int(head[ahead])
    head[ahead] = behind[j]
    if behind[j] < 0:
        tail[ahead] = -1
    return j
