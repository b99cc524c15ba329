"""Check of link loads without copies: chunks that may be split are a separate flow to every target.

In the fluid problem (TE-CCL, section 4.1) a part of a chunk that two ranks need is sent twice over every link that
both paths share. A schedule may name such a link once. So the path to every target is reconstructed over the sends
of the part, and the total load of all paths on a link in an epoch must fit. Sums are no such flows: contributions
merge.

Where a part arrives at a node several times, any of the arrivals may have been forwarded. First the earliest takes
all but one for each of the others; if that does not fit, a linear program searches for a feasible flow. From a node
that has room for nothing, only arrivals at an index leave at it. A node with a limit stores data on its way to
every target, each separately, within that limit; data leaving at an index makes room at it, and a rank's own data
and data that it needs itself take none, as in :mod:`.buffers`.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...core.grouping import group_by_key
from ...core.schedule import Floats, Ints, Schedule
from ...core.topology import NodeKind
from .answers import Findings, Violation
from .grid import Grid
from .network import Network

#: For each node with a limit and index: the sends that leave there (-1) or arrive (1) of what takes room.
Stored = dict[int, dict[int, list[tuple[int, float]]]]

MAX_FLOWS = 2_000_000  #: Ways times sends that are written as a linear program; beyond, the first try decides.


def check_uncopied(
    grid: Grid, network: Network, schedule: Schedule, start: Ints, hop_start: Ints, overload: float, findings: Findings
) -> None:
    """Check link loads and the contents of limited nodes with every target counted separately, up to rounding."""
    sends = schedule.sends
    targets = _targets(network, schedule)
    if not any(len(nodes) > 1 for nodes in targets.values()) or not len(sends):
        return
    end = start + np.add.reduceat(grid.delay[sends.path_links], sends.path_offset[:-1])
    bounded = [(n, x.kind, x.buffer_bytes) for n, x in enumerate(grid.topology.nodes) if x.buffer_bytes is not None]
    small = (n for n, kind, limit in bounded if kind is NodeKind.COMPUTE and limit < grid.chunk_bytes)
    passing = frozenset([*small, *(n for n, _, limit in bounded if limit == 0)])
    limits = {n: float(limit / grid.chunk_bytes) for n, _, limit in bounded if n not in passing}
    parts = group_by_key((int(sends.chunk[send]), send) for send in np.argsort(-start, kind="stable").tolist())
    flows = _Flows(network, schedule, targets, parts, start, end, passing, limits)
    times = np.ones(len(sends), dtype=np.float64)
    for chunk, mine in parts.items():
        if chunk in targets:
            times[mine] = flows.first_try(mine, targets[chunk])
    slots, where = np.unique(np.stack([sends.path_links, hop_start]), axis=1, return_inverse=True)
    room = np.array([float(grid.rate[e] * grid.timing.factor(e, k)) for e, k in slots.T.tolist()])
    size = schedule.chunks.sizes_bytes[sends.chunk] / float(grid.chunk_bytes)
    where = where.ravel()
    load = np.bincount(where, weights=(size * times)[sends.hop_send], minlength=len(room))
    full = np.flatnonzero(load > room * (1 + overload))
    overfull = flows.first_overfull(size * times, overload)
    # A send over a link that is down is wrong however the ways are.
    if (not len(full) and overfull is None) or (room.all() and flows.fit(size, where, room, overload)):
        return
    if len(full):
        link, epoch = slots[:, full[0]].tolist()
        a, b = network.name(int(grid.source[link])), network.name(int(grid.target[link]))
        text = f"{a} -> {b} carries {load[full[0]]:.9g} chunks for all targets, but can carry {room[full[0]]:.9g}"
        text, place = f"{text} in epoch {epoch}", link
    else:
        assert overfull is not None  # noqa: S101 (one of the two is too full)
        node, index, amount = overfull
        text = f"{network.name(node)} keeps {amount:.9g} chunks for all targets, but has room for {limits[node]:.9g}"
        text, place = f"{text} at index {index}", None
    findings.add(Violation("copied", f"{text}; where chunks may be split, nothing is copied", link=place))


def _targets(network: Network, schedule: Schedule) -> dict[int, frozenset[int]]:
    """Return the nodes that need each chunk and lack it; chunks that are sums are left out."""
    chunks, lacking = schedule.chunks, dict[tuple[int, int], frozenset[int]]()
    targets: dict[int, frozenset[int]] = {}
    rows = zip(chunks.held_by.tolist(), chunks.needed_by.tolist(), chunks.reduced.tolist(), strict=True)
    for chunk, (holders, receivers, summed) in enumerate(rows):
        if not summed:
            if (holders, receivers) not in lacking:
                ranks = set(chunks.groups[receivers]) - set(chunks.groups[holders])
                lacking[holders, receivers] = frozenset(network.rank_node[sorted(ranks)].tolist())
            targets[chunk] = lacking[holders, receivers]
    return targets


@dataclass(frozen=True, eq=False)
class _Flows:
    """Flows of all parts to their targets."""

    network: Network
    schedule: Schedule
    targets: Mapping[int, frozenset[int]]
    parts: Mapping[int, list[int]]  #: Sends of every chunk, from the last to the first.
    start: Ints
    end: Ints
    passing: frozenset[int]  #: Nodes without room: switches with a buffer of 0, and ranks with a limit below a chunk.
    limits: Mapping[int, float]  #: Room of all other nodes with a limit, in chunks.

    @cached_property
    def storage_changes(self) -> Stored:
        """Arrivals and departures at limited nodes, except a rank's own data and its needs."""
        sends, chunks = self.schedule.sends, self.schedule.chunks
        changes: Stored = defaultdict(lambda: defaultdict(list))
        for nodes, indices, sign in ((sends.source, self.start, -1.0), (sends.target, self.end, 1.0)):
            for send in np.flatnonzero(np.isin(nodes, list(self.limits))).tolist():
                chunk, node = int(sends.chunk[send]), int(nodes[send])
                groups = (chunks.groups[int(group[chunk])] for group in (chunks.held_by, chunks.needed_by))
                if chunk in self.targets and not any(self.network.rank(node) in group for group in groups):
                    changes[node][int(indices[send])].append((send, sign))
        return changes

    def first_overfull(self, amounts: Floats, overload: float) -> tuple[int, int, float] | None:
        """Return the first overfull node for given amounts of sends, with index and content."""
        for node, changes in self.storage_changes.items():
            now = 0.0
            for index in sorted(changes):
                now += sum(sign * float(amounts[send]) for send, sign in changes[index])
                if now > self.limits[node] * (1 + overload):
                    return node, index, now
        return None

    def first_try(self, mine: list[int], targets: frozenset[int]) -> list[float]:
        """Return the number of targets of each send of a part, from the last send to the first."""
        sends, start, end = self.schedule.sends, self.start, self.end
        into = group_by_key((int(sends.target[send]), int(end[send])) for send in mine)
        # What leaves each node, and when; what stays leaves after all else.
        leaving: dict[int, list[list[int]]] = defaultdict(list)
        stays = int(end[mine].max()) + 1
        for node in targets:
            leaving[node].append([stays, 1])
        counts: list[float] = []
        for send in mine:
            node, arrives = int(sends.target[send]), int(end[send])
            into[node].remove(arrives)
            served = sorted((way for way in leaving[node] if way[0] >= arrives and way[1]), reverse=True)
            before = any(other <= arrives for other in into[node])
            if node in self.passing:
                served = [way for way in served if way[0] in (arrives, stays)]
                before = arrives in into[node]
            count = min(sum(way[1] for way in served), 1) if before else sum(way[1] for way in served)
            counts.append(float(count))
            leaving[int(sends.source[send])].append([int(start[send]), count])
            for way in served:
                part = min(way[1], count)
                way[1] -= part
                count -= part
        return counts

    def fit(self, size: Floats, where: Ints, room: Floats, overload: float) -> bool:
        """Return whether a linear program finds flows to all targets within link and node limits."""
        from scipy.optimize import linprog
        from scipy.sparse import coo_array

        parts, targets, chunks = self.parts, self.targets, self.schedule.chunks
        if sum(len(mine) * len(targets.get(chunk, ())) for chunk, mine in parts.items()) > MAX_FLOWS:
            return False
        offset, slots = self.schedule.sends.path_offset.tolist(), where.tolist()
        # The first column is by how much links and nodes are overloaded at most; rows are links in epochs, then what
        # nodes have and keep.
        entries: list[tuple[int, int, float]] = [(row, 0, -1.0) for row in range(len(room))]
        bounds, columns = [1.0] * len(room), 1
        flows: dict[int, list[int]] = defaultdict(list)
        for chunk, mine in parts.items():
            holders = set(self.network.rank_node[list(chunks.groups[int(chunks.held_by[chunk])])].tolist())
            for target in targets.get(chunk, ()):
                for column, send in enumerate(mine, start=columns):
                    flows[send].append(column)
                    entries += [(row, column, size[send] / room[row]) for row in slots[offset[send] : offset[send + 1]]]
                for row, bound in self._rows(mine, columns, holders, target):
                    entries += [(len(bounds), column, sign) for column, sign in row]
                    bounds.append(bound)
                columns += len(mine)
            if chunk not in targets:
                for send in mine:
                    for row in slots[offset[send] : offset[send + 1]]:
                        bounds[row] -= size[send] / room[row]
        for node, changes in self.storage_changes.items():
            # A column for each index: the part of the limit that is kept from then on, which is what was kept and has
            # come and not left.
            for step, index in enumerate(sorted(changes)):
                entries += [(len(bounds), columns, 1.0), (len(bounds), 0, -1.0), (len(bounds) + 1, columns, -1.0)]
                entries += [(len(bounds) + 1, columns - 1, 1.0)] if step else []
                for send, sign in changes[index]:
                    amount = sign * float(size[send]) / self.limits[node]
                    entries += [(len(bounds) + 1, column, amount) for column in flows[send]]
                bounds += [1.0, 0.0]
                columns += 1
        rows, cols, values = (np.array(column) for column in zip(*entries, strict=True))
        matrix: Any = coo_array((values, (rows, cols)), shape=(len(bounds), columns)).tocsr()
        cost = np.zeros(columns)
        cost[0] = 1.0
        solution: Any = linprog(cost, A_ub=matrix, b_ub=np.array(bounds), bounds=(0, None), method="highs")
        return bool(solution.status == 0 and solution.fun <= overload)

    def _rows(
        self, mine: list[int], columns: int, holders: set[int], target: int
    ) -> Iterator[tuple[list[tuple[int, float]], float]]:
        """Yield constraints of a target's flow: departures never exceed arrivals, of one index if there is no room."""
        sends = self.schedule.sends
        events: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
        for column, send in enumerate(mine, start=columns):
            events[int(sends.source[send])].append((int(self.start[send]), 1, column))
            events[int(sends.target[send])].append((int(self.end[send]), 0, column))
        for node in events.keys() - holders:
            row: list[tuple[int, float]] = []
            since, first = -1, 0
            for index, leaves, column in sorted(events[node]):
                if node in self.passing and index > since:
                    since, first = index, len(row)
                row.append((column, 1.0 if leaves else -1.0))
                if leaves:
                    yield row[first:], 0.0
            if node == target:
                yield row, -1.0
