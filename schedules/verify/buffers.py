"""Check of buffer limits of ranks on a grid of epochs.

A limit on a rank is room for chunks of others: neither for its own data nor for data that it needs itself. A chunk
is held from the index of its arrival to that of its last forwarding before it arrives again; a chunk that is never
forwarded, at its arrival alone. A whole chunk that is sent at an index is still there at that index. Where chunks
may be split, data sent at an index makes room at once for data arriving at it, as a link forwards what comes in.
Contributions to a sum that a rank adds to its own take no room.

A rank with room for nothing forwards what it receives at the index of its arrival or never, even data that it needs
itself.
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

#: Part of a limit that is taken for rounding where chunks are split.
ROUNDING = Fraction(1, 10**7)

#: Node, chunk, and whether it is reduced: what arrives at a rank or leaves it.
Kind = tuple[int, int, bool]


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
    came, left = _by_rank(schedule, end, limits, arriving=True), _by_rank(schedule, start, limits, arriving=False)
    for key, sends in left.items():
        if limits[key[0]] < grid.chunk_bytes:
            for send in _late(network, schedule, key, sends, came):
                text = f"{network.name(key[0])} has no room, and sends on later what it has received"
                findings.add(at_send("buffer", text, send))
    for node, limit in limits.items():
        if limit >= grid.chunk_bytes:
            held = [_stays(grid, key, arrivals, left) for key, arrivals in came.items() if key[0] == node]
            full = _first_overfull(grid, network, schedule, node, limit, [stay for part in held for stay in part])
            if full is not None:
                text = f"{network.name(node)} holds more for others than its {float(limit):g} bytes"
                findings.add(at_send("buffer", text, full))


def _by_rank(
    schedule: Schedule, index: Ints, limits: dict[int, Fraction], *, arriving: bool
) -> dict[Kind, list[tuple[int, int]]]:
    """Return sorted (index, send) of arrivals or departures for each limited rank and chunk."""
    sends = schedule.sends
    ends = (sends.target if arriving else sends.source).tolist()
    found: dict[Kind, list[tuple[int, int]]] = defaultdict(list)
    rows = zip(ends, sends.chunk.tolist(), sends.reduce.tolist(), index.tolist(), strict=True)
    for send, (node, chunk, reduced, at) in enumerate(rows):
        if node in limits:
            found[node, chunk, reduced].append((at, send))
    return {key: sorted(times) for key, times in found.items()}


def _has_it(network: Network, schedule: Schedule, node: int, chunk: int, groups: Ints) -> bool:
    return network.rank(node) in schedule.chunks.groups[int(groups[chunk])]


def _late(
    network: Network,
    schedule: Schedule,
    key: Kind,
    sends: list[tuple[int, int]],
    came: dict[Kind, list[tuple[int, int]]],
) -> list[int]:
    """Find sends of data that the rank received at an earlier index.

    For contributions, those that have waited; for other data, all but the rank's own.
    """
    node, chunk, reduced = key
    arrivals = [at for at, _ in came.get(key, [])]
    times = [at for at, _ in sends]
    if reduced:
        waiting = {bisect_left(times, at) for at in arrivals if at not in times}
        return [sends[i][1] for i in sorted(waiting) if i < len(sends)]
    is_sum = bool(schedule.chunks.reduced[chunk])
    if not is_sum and _has_it(network, schedule, node, chunk, schedule.chunks.held_by):
        return []
    # Who has made the sum has received no copy of it.
    return [send for at, send in sends if at not in arrivals and (not is_sum or (arrivals and arrivals[0] <= at))]


def _stays(
    grid: Grid, key: Kind, arrivals: list[tuple[int, int]], left: dict[Kind, list[tuple[int, int]]]
) -> list[tuple[int, int, int, int]]:
    """List when a rank holds a chunk: first index, end (exclusive), chunk, arriving send."""
    times = [at for at, _ in left.get(key, [])]
    found: list[tuple[int, int, int, int]] = []
    for position, (at, send) in enumerate(arrivals):
        again = arrivals[position + 1][0] if position + 1 < len(arrivals) else None
        until = len(times) if again is None else bisect_left(times, again)
        last = max(at, times[until - 1]) if until else at
        found.append((at, last if grid.timing.fluid else last + 1, key[1], send))
    return found


def _first_overfull(
    grid: Grid,
    network: Network,
    schedule: Schedule,
    node: int,
    limit: Fraction,
    stays: list[tuple[int, int, int, int]],
) -> int | None:
    """Return the first send that does not fit; data that a rank needs or owns takes no room."""
    chunks = schedule.chunks
    changes: list[tuple[int, int, int]] = []
    for first, end, chunk, send in stays:
        own = any(_has_it(network, schedule, node, chunk, groups) for groups in (chunks.held_by, chunks.needed_by))
        if not own and end > first:
            units = int(chunks.units[chunk])
            changes += [(first, units, send), (end, -units, send)]
    most, now = limit * (1 + ROUNDING if grid.timing.fluid else 1), 0
    for _, units, send in sorted(changes):
        now += units
        if now * chunks.unit_bytes > most:
            return send
    return None
