"""Whether what links carry is enough where nothing is copied: chunks that may be split are a flow to every target by itself.

In the fluid problem (TE-CCL, section 4.1) a part of a chunk that two ranks need is sent twice over every link that both ways have in common.
A schedule may name such a link once. So the way of every target is found anew, over the sends of the part, and what all ways together put on
a link in an epoch must fit. Sums are no such flows: contributions merge.

Where a part comes to a node several times, it may have gone on from any of them. First the earliest takes all but one for each of the others; if
that does not fit, a linear program looks for ways that do. From a node that has room for nothing, only what arrives at an index leaves at it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...core.schedule import Floats, Ints, Schedule
from ...core.topology import NodeKind
from .grid import Grid
from .network import Network
from .report import Findings, Violation

#: Ways times sends that are written as a linear program; beyond, the first try decides.
MAX_FLOWS = 2_000_000


def check_uncopied(
    grid: Grid, network: Network, schedule: Schedule, start: Ints, hop_start: Ints, overload: float, findings: Findings
) -> None:
    """Check the load of links with every target counted by itself.

    Parameters
    ----------
    grid, network, schedule : Grid, Network, Schedule
        What is checked.
    start : array of int, shape (sends,)
        Index at which each send starts.
    hop_start : array of int, shape (hops,)
        Index at which each hop starts.
    overload : float
        Part of what a link can carry that is taken for rounding.
    findings : Findings
        Takes what is found.
    """
    sends, chunks = schedule.sends, schedule.chunks
    targets = _targets(network, schedule)
    if not any(len(nodes) > 1 for nodes in targets.values()) or not len(sends):
        return
    end = start + np.add.reduceat(grid.delay[sends.path_links], sends.path_offset[:-1])
    passing = _passing(grid)
    parts: dict[int, list[int]] = defaultdict(list)
    for send in np.argsort(-start, kind="stable").tolist():
        parts[int(sends.chunk[send])].append(send)
    times = np.ones(len(sends), dtype=np.float64)
    for chunk, mine in parts.items():
        if chunk in targets:
            times[mine] = _first_try(schedule, mine, (start, end), targets[chunk], passing)
    slots, where = np.unique(np.stack([sends.path_links, hop_start]), axis=1, return_inverse=True)
    room = np.array([float(grid.rate[e] * grid.timing.factor(e, k)) for e, k in slots.T.tolist()])
    size = chunks.sizes_bytes[sends.chunk] / float(grid.chunk_bytes)
    where = where.ravel()
    load = np.bincount(where, weights=(size * times)[sends.hop_send], minlength=len(room))
    full = np.flatnonzero(load > room * (1 + overload))
    # A send over a link that is down is wrong however the ways are.
    if not len(full) or (
        room.all()
        and _some_ways_fit(network, schedule, parts, targets, (start, end), passing, size, where, room, overload)
    ):
        return
    link, epoch = slots[:, full[0]].tolist()
    nodes = grid.topology.nodes
    a, b = nodes[int(grid.source[link])].name, nodes[int(grid.target[link])].name
    text = f"{a} -> {b} carries {load[full[0]]:.9g} chunks for all targets, but can carry {room[full[0]]:.9g}"
    findings.add(
        Violation("copied", f"{text} in epoch {epoch}; where chunks may be split, nothing is copied", link=link)
    )


def _targets(network: Network, schedule: Schedule) -> dict[int, frozenset[int]]:
    """Nodes that need each chunk and do not have it, of chunks that are no sums."""
    chunks, known = schedule.chunks, dict[tuple[int, int], frozenset[int]]()
    found: dict[int, frozenset[int]] = {}
    rows = zip(chunks.held_by.tolist(), chunks.needed_by.tolist(), chunks.reduced.tolist(), strict=True)
    for chunk, (held, needed, summed) in enumerate(rows):
        if not summed:
            if (held, needed) not in known:
                ranks = set(chunks.groups[needed]) - set(chunks.groups[held])
                known[held, needed] = frozenset(network.rank_node[sorted(ranks)].tolist())
            found[chunk] = known[held, needed]
    return found


def _passing(grid: Grid) -> frozenset[int]:
    """Nodes that have room for nothing: switches with a buffer of 0, and ranks whose limit is below a chunk."""
    return frozenset(
        n
        for n, node in enumerate(grid.topology.nodes)
        if node.buffer_bytes is not None
        and (node.buffer_bytes == 0 or (node.kind is NodeKind.COMPUTE and node.buffer_bytes < grid.chunk_bytes))
    )


def _first_try(
    schedule: Schedule, mine: list[int], times: tuple[Ints, Ints], targets: frozenset[int], passing: frozenset[int]
) -> list[float]:
    """How many targets each send of a part is for, of sends from the last to the first."""
    sends, (start, end) = schedule.sends, times
    into: dict[int, list[int]] = defaultdict(list)
    for send in mine:
        into[int(sends.target[send])].append(int(end[send]))
    # What leaves each node, and when; what stays leaves after all else.
    leaving: dict[int, list[list[int]]] = defaultdict(list)
    stays = int(end[mine].max()) + 1
    for node in targets:
        leaving[node].append([stays, 1])
    found: list[float] = []
    for send in mine:
        node, arrives = int(sends.target[send]), int(end[send])
        into[node].remove(arrives)
        served = sorted((way for way in leaving[node] if way[0] >= arrives and way[1]), reverse=True)
        before = any(other <= arrives for other in into[node])
        if node in passing:
            served = [way for way in served if way[0] in (arrives, stays)]
            before = arrives in into[node]
        wanted = min(sum(way[1] for way in served), 1) if before else sum(way[1] for way in served)
        found.append(float(wanted))
        leaving[int(sends.source[send])].append([int(start[send]), wanted])
        for way in served:
            taken = min(way[1], wanted)
            way[1] -= taken
            wanted -= taken
    return found


def _some_ways_fit(
    network: Network,
    schedule: Schedule,
    parts: dict[int, list[int]],
    targets: dict[int, frozenset[int]],
    times: tuple[Ints, Ints],
    passing: frozenset[int],
    size: Floats,
    where: Ints,
    room: Floats,
    overload: float,
) -> bool:
    """Whether a linear program finds ways for all targets that links can carry."""
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    if sum(len(mine) * len(targets.get(chunk, ())) for chunk, mine in parts.items()) > MAX_FLOWS:
        return False
    offset, slots = schedule.sends.path_offset.tolist(), where.tolist()
    # The first column is by how much links are overloaded at most; rows are links in epochs, then what nodes have.
    entries: list[tuple[int, int, float]] = [(row, 0, -1.0) for row in range(len(room))]
    limits, columns = [1.0] * len(room), 1
    for chunk, mine in parts.items():
        holders = set(network.rank_node[list(schedule.chunks.groups[int(schedule.chunks.held_by[chunk])])].tolist())
        for target in targets.get(chunk, ()):
            for column, send in enumerate(mine, start=columns):
                entries += [(row, column, size[send] / room[row]) for row in slots[offset[send] : offset[send + 1]]]
            for row, limit in _kept(schedule, mine, columns, times, passing, holders, target):
                entries += [(len(limits), column, sign) for column, sign in row]
                limits.append(limit)
            columns += len(mine)
        if chunk not in targets:
            for send in mine:
                for row in slots[offset[send] : offset[send + 1]]:
                    limits[row] -= size[send] / room[row]
    rows, cols, values = (np.array(column) for column in zip(*entries, strict=True))
    matrix: Any = coo_array((values, (rows, cols)), shape=(len(limits), columns)).tocsr()
    cost = np.zeros(columns)
    cost[0] = 1.0
    found: Any = linprog(cost, A_ub=matrix, b_ub=np.array(limits), bounds=(0, None), method="highs")
    return bool(found.status == 0 and found.fun <= overload)


def _kept(
    schedule: Schedule,
    mine: list[int],
    columns: int,
    times: tuple[Ints, Ints],
    passing: frozenset[int],
    holders: set[int],
    target: int,
) -> Iterator[tuple[list[tuple[int, float]], float]]:
    """Give rows of one target's flow: what has left a node has arrived there by then, and the target keeps one in the end.

    What leaves a node that has room for nothing arrives there at the same index.
    """
    sends, (start, end) = schedule.sends, times
    events: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for column, send in enumerate(mine, start=columns):
        events[int(sends.source[send])].append((int(start[send]), 1, column))
        events[int(sends.target[send])].append((int(end[send]), 0, column))
    for node in events.keys() - holders:
        row: list[tuple[int, float]] = []
        since, first = -1, 0
        for index, leaves, column in sorted(events[node]):
            if node in passing and index > since:
                since, first = index, len(row)
            row.append((column, 1.0 if leaves else -1.0))
            if leaves:
                yield row[first:], 0.0
        if node == target:
            yield row, -1.0
