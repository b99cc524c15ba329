"""Checks of buffer limits of ranks and switches, and of copies by switches without multicast.

The limit of a rank on a grid of epochs is room for chunks of others: its own data, data that it needs, and
contributions that it adds to its own take no room. A chunk takes room from the index at which it arrives to that of
its last send before it arrives again; if it is never sent on, only at its arrival. A whole chunk still takes room at
the index at which it is sent. Where chunks may be split, data sent at an index makes room at once for data that
arrives at it.

A rank without room for one chunk has to send on what it receives at the index of its arrival, even data that it
needs.
"""

from bisect import bisect_left
from fractions import Fraction
from math import floor

import numpy as np

from ...core.grouping import group_by_key
from ...core.schedule import Chunks, Ints, Schedule
from ...core.topology import NodeKind
from .answers import SendFindings
from .grid import Grid
from .holdings import NOTHING, Block
from .network import Network

ROUNDING = Fraction(1, 10**7)  #: Relative excess over a limit that counts as rounding where chunks are split.
ChunkAtRank = tuple[int, int, bool]  #: Node, chunk, and True for a contribution to its sum.
Holding = tuple[int, int, int, int]  #: First index, end (exclusive), chunk, arriving send.
Event = tuple[int, int]  #: Index of an epoch, and position of the send that arrives or starts at it.


def check_rank_buffers(
    grid: Grid, network: Network, schedule: Schedule, start: Ints, end: Ints, at: SendFindings
) -> None:
    """Check the ranks that have a buffer limit, given the indices at which each send starts and arrives."""
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
                at.add("buffer", f"{network.name(key[0])} has no room, and sends on later what it has received", send)
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
                at.add("buffer", f"{network.name(node)} holds more for others than its {float(limit):g} bytes", full)


def _events_by_chunk(
    schedule: Schedule, index: Ints, limits: dict[int, Fraction], *, arriving: bool
) -> dict[ChunkAtRank, list[Event]]:
    sends = schedule.sends
    ends = (sends.target if arriving else sends.source).tolist()
    keys = zip(ends, sends.chunk.tolist(), sends.reduce.tolist(), strict=True)
    rows = enumerate(zip(keys, index.tolist(), strict=True))
    events = group_by_key((key, (at, send)) for send, (key, at) in rows if key[0] in limits)
    return {key: sorted(times) for key, times in events.items()}


def _is_in_group(network: Network, schedule: Schedule, node: int, chunk: int, groups: Ints) -> bool:
    return network.rank(node) in schedule.chunks.groups[int(groups[chunk])]


def _late_sends(
    network: Network, schedule: Schedule, key: ChunkAtRank, departures: list[Event], arrivals: list[Event]
) -> list[int]:
    """Find sends of data received at an earlier index: contributions that waited, or data not the rank's own."""
    node, chunk, reduced = key
    came, went = [at for at, _ in arrivals], [at for at, _ in departures]
    if reduced:
        waiting = {bisect_left(went, at) for at in came if at not in went}
        return [departures[i][1] for i in sorted(waiting) if i < len(departures)]
    is_sum = bool(schedule.chunks.reduced[chunk])
    if not is_sum and _is_in_group(network, schedule, node, chunk, schedule.chunks.held_by):
        return []
    # The rank that makes the sum has received no copy of it.
    return [send for at, send in departures if at not in came and (not is_sum or (came and came[0] <= at))]


def _holding_times(grid: Grid, chunk: int, arrivals: list[Event], departures: list[Event]) -> list[Holding]:
    """List the times at which a rank holds a chunk."""
    times = [at for at, _ in departures]
    holdings: list[Holding] = []
    for position, (at, send) in enumerate(arrivals):
        again = arrivals[position + 1][0] if position + 1 < len(arrivals) else None
        until = len(times) if again is None else bisect_left(times, again)
        last = max(at, times[until - 1]) if until else at
        holdings.append((at, last if grid.timing.fluid else last + 1, chunk, send))
    return holdings


def _first_overfull(
    grid: Grid, network: Network, schedule: Schedule, node: int, limit: Fraction, holdings: list[Holding]
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


def copied_by_switches(block: Block, network: Network) -> Ints:
    """Find writes by which a switch without multicast sends a chunk again.

    A switch can send copied data as often as it has received it before; of a sum, every state once, and after that it
    must not add to it. Return positions among the block's writes.
    """
    if not block.writes:
        return np.zeros(0, dtype=np.int64)
    out = np.flatnonzero(network.unicast[block.source % block.nodes])
    if not len(out):
        return out
    out = out[np.lexsort((block.read[out], block.source[out]))]
    last = block.last_write(block.source[out], block.read[out])
    sums = block.reduced[block.source[out] // block.nodes]
    starts = np.ones(len(out), dtype=np.bool_)
    starts[1:] = block.source[out][1:] != block.source[out][:-1]
    index = np.arange(len(out))
    number = index - np.maximum.accumulate(np.where(starts, index, 0)) + 1
    received = np.where(last >= 0, last - block.first[np.maximum(last, 0)] + 1, 0)
    again = ~starts & (last == np.roll(last, 1))
    follows = np.minimum(last + 1, block.writes - 1)
    adds = (last + 1 < block.writes) & (block.base_version[follows] == last)
    wrong = np.where(sums, again | adds, number > received) & (last >= 0)
    return out[wrong]


def stays(block: Block, network: Network, chunks: Chunks, leave: Ints | None = None) -> Ints:
    """Find when the switches with a limited buffer hold the chunks of a block; a column for each interval.

    The rows are the switch, the chunk's size in units, the send that brings it, and the orders of its arrival and of
    the first instant after the interval. At the order of a send in ``leave`` it makes room for arrivals, by default
    after it. How long a chunk, a sum or a copy stays: docs/schedules/verifier.md, "Switches".
    """
    limited = np.zeros(network.nodes, dtype=np.bool_)
    limited[list(network.buffer_bytes)] = True
    settled = np.ones(block.writes, dtype=np.bool_)  # writes of one instant leave one chunk
    settled[:-1] = block.keys[1:] != block.keys[:-1]
    single = network.unicast[block.cell % block.nodes] & ~block.sums
    index = np.flatnonzero(limited[block.cell % block.nodes] & (settled | single))
    until = block.order + (leave is None)
    out = np.flatnonzero(limited[block.source % block.nodes])
    version = block.last_write(block.source[out], block.read[out])
    once = network.unicast[block.source[out] % block.nodes] & ~block.reduced[block.source[out] // block.nodes]
    version[once] = _sent_copies(block, index[single[index]], out[once])
    departure = block.read[out] + 1 if leave is None else leave[block.send[out]]
    np.maximum.at(until, version[version >= 0], departure[version >= 0])
    follows = index[index + 1 < block.writes]
    grows = follows[block.base_version[follows + 1] == follows] if len(follows) else follows
    until[grows] = np.maximum(until[grows], block.order[grows + 1])
    cell = block.cell[index]
    units = chunks.units[block.first_chunk + cell // block.nodes]
    return np.stack([cell % block.nodes, units, block.send[index], block.order[index], until[index]])


def _sent_copies(block: Block, into: Ints, out: Ints) -> Ints:
    """Match every send out of switches with its latest previous unmatched arrival; -1 without one.

    This minimizes the copies held at every instant: each is sent as soon after its arrival as can be, and arrivals
    without a match are not held.
    """
    cell = np.concatenate([block.cell[into], block.source[out]])
    change = np.repeat(np.array([1, -1]), [len(into), len(out)])
    order = np.lexsort((np.concatenate([block.order[into], block.read[out]]), cell))
    # A send takes the number that are there back to what it was before the arrival that it is matched with.
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.cumsum(change[order])
    number -= change > 0
    by_number = order[np.lexsort((number[order], cell[order]))]
    arrival, send = by_number[:-1], by_number[1:]
    paired = (change[arrival] > 0) & (cell[arrival] == cell[send]) & (number[arrival] == number[send])
    match_of = np.full(len(out), NOTHING, dtype=np.int64)
    match_of[send[paired] - len(into)] = into[arrival[paired]]
    return match_of


def overfull_switches(parts: list[Ints], network: Network, chunks: Chunks) -> dict[int, int]:
    """Return the switches over their limits, each with the first send that does not fit."""
    if not parts:
        return {}
    node, units, send, first, until = np.concatenate(parts, axis=1)
    first_of: dict[int, int] = {}
    for switch, limit in network.buffer_bytes.items():
        here = node == switch
        change = np.concatenate([units[here], -units[here]])
        when = np.concatenate([first[here], until[here]])
        order = np.lexsort((change, when))
        too_full = np.flatnonzero(np.cumsum(change[order]) > floor(limit / chunks.unit_bytes))
        if len(too_full):
            first_of[switch] = int(send[here][order[too_full[0]]])
    return first_of
