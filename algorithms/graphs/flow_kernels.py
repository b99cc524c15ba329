"""Compiled inner loops of the exact maximum flow.

With object arrays the same source runs uncompiled, on Python's unbounded integers.

Flow starts at nodes that are ``grown`` (without limit) and at all others up to ``supply``, and ends at one sink. The
search runs backwards from the sink: where the sink is close to grown nodes, it visits only a few nodes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...core.kernel import kernel


class Arcs(NamedTuple):
    """Two arcs for every pair of neighbours, each other's ``mate``; those of node x begin at ``first[x]``."""

    first: Any
    head: Any
    mate: Any


class FlowState(NamedTuple):
    """Residual capacities of arcs, and where flow may start: without limit, or up to ``supply``."""

    cap: Any
    supply: Any
    grown: Any


class Scratch(NamedTuple):
    """Working arrays of the search; ``touched`` are the arcs whose capacity has changed."""

    level: Any
    queue: Any
    cursor: Any
    path: Any
    touched: Any


@kernel
def search(sink: int, arcs: Arcs, state: FlowState, level: Any, queue: Any) -> tuple[int, int]:
    """Label nodes by distance to the sink; return the first level where flow can start, or -1, and their number."""
    first, head, mate = arcs
    cap, supply, grown = state
    level[sink] = 0
    queue[0] = sink
    size, at, found = 1, 0, -1
    while at < size:
        y = queue[at]
        at += 1
        if found >= 0 and level[y] >= found:
            break
        for arc in range(first[y], first[y + 1]):
            x = head[arc]
            if level[x] < 0 and cap[mate[arc]] > 0:
                level[x] = level[y] + 1
                queue[size] = x
                size += 1
                if found < 0 and (grown[x] or supply[x] > 0):
                    found = level[x]
    return found, size


@kernel
def push(
    end: int, wanted: Any, depth: int, mate: Any, state: FlowState, path: Any, touched: Any, count: int
) -> tuple[Any, int, int]:
    """Send the most along a path to the sink; return it, the nearest saturated arc, and the ``touched`` arcs."""
    cap, supply, grown = state
    amount = wanted
    if not grown[end]:
        amount = min(amount, supply[end])
    for i in range(depth):
        amount = min(amount, cap[mate[path[i]]])
    if not grown[end]:
        supply[end] -= amount
    if count + depth > len(touched):
        count = -1
    full = depth - 1
    for i in range(depth - 1, -1, -1):
        arc = path[i]
        cap[mate[arc]] -= amount
        cap[arc] += amount
        if cap[mate[arc]] <= 0:
            full = i
        if count >= 0:
            touched[count] = arc
            count += 1
    return amount, full, count


@kernel
def augment(
    sink: int, wanted: Any, depth: int, arcs: Arcs, state: FlowState, work: Scratch, count: int
) -> tuple[Any, int]:
    """Send a blocking flow on shortest paths, up to ``wanted``; return it, and the ``touched`` arcs, -1 if too many."""
    first, head, mate = arcs
    cap, supply, grown = state
    level, _, cursor, path, touched = work
    sent = wanted - wanted
    at, y = 0, sink
    while sent < wanted:
        if at == depth:
            amount, at, count = push(y, wanted - sent, depth, mate, state, path, touched, count)
            sent += amount
        else:
            arc = cursor[y]
            while arc < first[y + 1]:
                x = head[arc]
                if level[x] == at + 1 and cap[mate[arc]] > 0 and (at + 1 < depth or grown[x] or supply[x] > 0):
                    break
                arc += 1
            cursor[y] = arc
            if arc < first[y + 1]:
                path[at] = arc
                at += 1
                y = head[arc]
                continue
            if at == 0:
                break
            level[y] = -2
            at -= 1
        y = sink if at == 0 else head[path[at - 1]]
        cursor[y] += 1
    return sent, count


@kernel
def flow_into(sink: int, wanted: Any, arcs: Arcs, state: FlowState, work: Scratch) -> tuple[Any, int, int]:
    """Compute a maximum flow into a sink, at most ``wanted``.

    ``cap`` and ``supply`` are left in their state after the flow; ``level`` is at least 0 exactly on the nodes of
    the last search: if less than ``wanted`` is returned, they are the sink's side of a minimum cut. Return the
    flow; the number of nodes in ``queue`` that the last search labelled; and the number of ``touched`` arcs, -1 if
    there were too many to remember.
    """
    level, queue, cursor, _, _ = work
    flow = wanted - wanted
    if not state.grown[sink]:
        amount = min(state.supply[sink], wanted)
        state.supply[sink] -= amount
        flow += amount
    count, size = 0, 0
    while flow < wanted:
        depth, size = search(sink, arcs, state, level, queue)
        if depth < 0:
            break
        for i in range(size):
            cursor[queue[i]] = arcs.first[queue[i]]
        sent, count = augment(sink, wanted - flow, depth, arcs, state, work, count)
        flow += sent
        for i in range(size):
            level[queue[i]] = -1
        size = 0
    return flow, size, count


@kernel
def rooted_pass(
    at: int, sinks: Any, wanted: Any, arcs: Arcs, state: FlowState, capacity: Any, demand: Any, work: Scratch, side: Any
) -> tuple[int, Any]:
    """Test, from ``sinks[at]`` on, that every sink can receive ``wanted``.

    A sink that can becomes a source for those after it: in any set of nodes without some sink, consider the first
    sink left out; all earlier ones are inside, so they may send without limit when it is tested. ``capacity`` and
    ``demand`` are the values of ``cap`` and ``supply`` before any flow. Return the at of the first sink that
    cannot, or the number of sinks; and its shortfall. ``side`` is then its side of a minimum cut.
    """
    head, mate = arcs.head, arcs.mate
    cap, supply, grown = state
    level, queue, _, _, touched = work
    lacking = wanted - wanted
    while at < len(sinks):
        sink = sinks[at]
        flow, size, count = flow_into(sink, wanted, arcs, state, work)
        if flow < wanted:
            side[:] = False
            for i in range(size):
                side[queue[i]] = True
            side[sink] = True
        for i in range(size):
            level[queue[i]] = -1
        level[sink] = -1
        if count < 0:
            cap[:] = capacity
            supply[:] = demand
        else:
            for i in range(count):
                arc = touched[i]
                cap[arc] = capacity[arc]
                cap[mate[arc]] = capacity[mate[arc]]
                supply[head[arc]] = demand[head[arc]]
            supply[sink] = demand[sink]
        if flow < wanted:
            lacking = wanted - flow
            break
        grown[sink] = True
        at += 1
    return at, lacking


def scratch(nodes: int, arcs: int) -> Scratch:
    """Return working arrays of a network."""
    return Scratch(
        np.full(nodes, -1, dtype=np.int64),
        np.empty(nodes, dtype=np.int64),
        np.zeros(nodes, dtype=np.int64),
        np.empty(nodes + 1, dtype=np.int64),
        np.empty(max(arcs, 64) + nodes, dtype=np.int64),
    )
