"""Check of buffer limits of ranks on a grid of epochs.

The limit of a rank is room for chunks of others: its own data, data that it needs, and contributions that it adds to
its own take no room. A chunk takes room from the index at which it arrives to that of its last send before it arrives
again; if it is never sent on, only at its arrival. A whole chunk still takes room at the index at which it is sent.
Where chunks may be split, data sent at an index makes room at once for data that arrives at it.

A rank without room for one chunk has to send on what it receives at the index of its arrival, even data that it needs.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from fractions import Fraction

from ...core.schedule import Ints, Schedule
from ...core.topology import NodeKind
from .grid import Grid
from .network import Network
from .replay import AtSend
from .report import Findings

#: Relative excess over a limit that counts as rounding where chunks are split.
ROUNDING = Fraction(1, 10**7)

#: Node, chunk, and True for a contribution to its sum.
ChunkAtRank = tuple[int, int, bool]

#: Index of an epoch, and position of the send that arrives or starts at it.
Event = tuple[int, int]


def check_rank_buffers(
    grid: Grid, network: Network, schedule: Schedule, start: Ints, end: Ints, at_send: AtSend, findings: Findings
) -> None:
    """Check the ranks that have a buffer limit.

    Parameters
    ----------
    start, end : array of int, shape (sends,)
        Index at which each send starts, and at which it arrives.
    at_send : callable
        Creates a violation at a send.
    """
    nodes = grid.topology.nodes
    limits = {
        n: x.buffer_bytes for n, x in enumerate(nodes) if x.kind is NodeKind.COMPUTE and x.buffer_bytes is not None
    }
    if not limits:
        return
    arrivals = _events_by_chunk(schedule, end, limits, arriving=True)
    departures = _events_by_chunk(schedule, start, limits, arriving=False)
    for key, sends in departures.items():
        if limits[key[0]] < grid.chunk_bytes:
            for send in _late_sends(network, schedule, key, sends, arrivals.get(key, [])):
                text = f"{network.name(key[0])} has no room, and sends on later what it has received"
                findings.add(at_send("buffer", text, send))
    for node, limit in limits.items():
        if limit >= grid.chunk_bytes:
            holdings = [
                holding
                for key, events in arrivals.items()
                if key[0] == node
                for holding in _holding_times(grid, key[1], events, departures.get(key, []))
            ]
            full = _first_overfull(grid, network, schedule, node, limit, holdings)
            if full is not None:
                text = f"{network.name(node)} holds more for others than its {float(limit):g} bytes"
                findings.add(at_send("buffer", text, full))


def _events_by_chunk(
    schedule: Schedule, index: Ints, limits: dict[int, Fraction], *, arriving: bool
) -> dict[ChunkAtRank, list[Event]]:
    """Return sorted (index, send) of arrivals or departures for each limited rank and chunk."""
    sends = schedule.sends
    ends = (sends.target if arriving else sends.source).tolist()
    found: dict[ChunkAtRank, list[Event]] = defaultdict(list)
    rows = zip(ends, sends.chunk.tolist(), sends.reduce.tolist(), index.tolist(), strict=True)
    for send, (node, chunk, reduced, at) in enumerate(rows):
        if node in limits:
            found[node, chunk, reduced].append((at, send))
    return {key: sorted(times) for key, times in found.items()}


def _is_in_group(network: Network, schedule: Schedule, node: int, chunk: int, groups: Ints) -> bool:
    return network.rank(node) in schedule.chunks.groups[int(groups[chunk])]


def _late_sends(
    network: Network, schedule: Schedule, key: ChunkAtRank, departures: list[Event], arrivals: list[Event]
) -> list[int]:
    """Find sends of data that the rank received at an earlier index.

    For contributions, those that have waited; for other data, all but the rank's own.
    """
    node, chunk, reduced = key
    came, left = [at for at, _ in arrivals], [at for at, _ in departures]
    if reduced:
        waiting = {bisect_left(left, at) for at in came if at not in left}
        return [departures[i][1] for i in sorted(waiting) if i < len(departures)]
    is_sum = bool(schedule.chunks.reduced[chunk])
    if not is_sum and _is_in_group(network, schedule, node, chunk, schedule.chunks.held_by):
        return []
    # The rank that makes the sum has received no copy of it.
    return [send for at, send in departures if at not in came and (not is_sum or (came and came[0] <= at))]


def _holding_times(
    grid: Grid, chunk: int, arrivals: list[Event], departures: list[Event]
) -> list[tuple[int, int, int, int]]:
    """List the times at which a rank holds a chunk: first index, end (exclusive), chunk, arriving send."""
    times = [at for at, _ in departures]
    found: list[tuple[int, int, int, int]] = []
    for position, (at, send) in enumerate(arrivals):
        again = arrivals[position + 1][0] if position + 1 < len(arrivals) else None
        until = len(times) if again is None else bisect_left(times, again)
        last = max(at, times[until - 1]) if until else at
        found.append((at, last if grid.timing.fluid else last + 1, chunk, send))
    return found


def _first_overfull(
    grid: Grid,
    network: Network,
    schedule: Schedule,
    node: int,
    limit: Fraction,
    holdings: list[tuple[int, int, int, int]],
) -> int | None:
    """Return the first send that does not fit; data that a rank needs or owns takes no room."""
    chunks = schedule.chunks
    changes: list[tuple[int, int, int]] = []
    for first, end, chunk, send in holdings:
        own = any(_is_in_group(network, schedule, node, chunk, groups) for groups in (chunks.held_by, chunks.needed_by))
        if not own and end > first:
            units = int(chunks.units[chunk])
            changes += [(first, units, send), (end, -units, send)]
    most, now = limit * (1 + ROUNDING if grid.timing.fluid else 1), 0
    for _, units, send in sorted(changes):
        now += units
        if now * chunks.unit_bytes > most:
            return send
    return None
