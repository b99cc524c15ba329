"""Compiled simulation of millions of sends: by levels, as in :mod:`.events`, or in the order of given times."""

from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ...core.kernel import kernel
from ...core.schedule import Floats, Schedule
from ..verify.copies import numbered_slots
from .events import level_starts
from .network import MOST_TICKS, Rules, TickWires, Timeline, Wires
from .transfers import SAME_TIME, Transfers, served_order


class CompiledResult(NamedTuple):
    """Totals of a compiled simulation."""

    #: Arrival of the last byte with and without congestion; 0 where not requested.
    latest: float
    alone: float
    busy: Floats  #: Seconds that every link is held; shape (links,).
    timeline: Timeline  #: Times of all sends and hops; empty unless requested.

    def in_seconds(self, links: Wires) -> "CompiledResult | None":
        """Convert the result on links that may count ticks; None if floats cannot hold these."""
        if not isinstance(links, TickWires):
            return self
        timeline = links.in_seconds(self.timeline)
        if timeline is None or self.latest >= MOST_TICKS:
            return None
        latest, alone = (float(Fraction(ticks) * links.unit_s) for ticks in (self.latest, self.alone))
        return CompiledResult(latest, alone, self.busy * float(links.unit_s), timeline)


def compiled_levels(
    transfers: Transfers, wires: Wires, rules: Rules, *, keep: bool, unaware: bool = False
) -> CompiledResult | None:
    """Simulate level by level; None if sends overtake others of earlier levels."""
    sends, slots = transfers.sends, transfers.slot_columns[:-1]
    starts, hops = level_starts(transfers.leaves), len(sends.path_links)
    times = tuple(np.empty(size) for size in ((len(sends), hops, hops) if keep else (0, 0, 0)))
    busy, latest = np.zeros(len(wires)), np.zeros(2)
    complete, free = np.zeros((transfers.slots, 2 if unaware else 1)), np.zeros(len(wires))
    latest_ask, latest_by = np.full(len(wires), -1.0), np.full(len(wires), -1, dtype=np.int64)
    of_ranks, pays = wires.rank_links, np.zeros(0) if transfers.pays is None else transfers.pays
    how = rules.streaming, rules.contended, rules.hold_latency, of_ranks.while_receiving
    ranks = of_ranks.adders, of_ranks.senders, pays
    columns, speeds = (sends.path_offset, sends.path_links, sends.chunk), durations(transfers.chunk_bytes, wires)
    state = complete, free, latest_ask, latest_by, busy, latest
    for a, b in pairwise([*starts, len(sends)]):
        if not _level(a, b, columns, slots, (*speeds, wires.latency_s), how, ranks, state, times):
            return None
    return CompiledResult(float(latest[0]), float(latest[1]), busy, Timeline(*times))


def durations(chunk_bytes: Floats, wires: Wires) -> tuple[Any, Any, Any, Any, Any]:
    """Return durations by size and rate, or an empty table; and bytes and bandwidths."""
    if isinstance(wires, TickWires):
        return wires.table, wires.size_of, wires.rate_of, chunk_bytes, wires.bandwidth_Bps
    none = np.zeros(0, dtype=np.int64)
    return np.zeros((0, 0)), none, none, chunk_bytes, wires.bandwidth_Bps


@kernel
def _level(
    first: int, last: int, columns: Any, slots: Any, speeds: Any, how: Any, ranks: Any, state: Any, times: Any
) -> bool:
    """Simulate the sends of a level hop by hop; return False if one overtakes a send served before.

    ``complete`` is the time at which all data that a slot waits for has arrived; its second column, if any, is the
    time without congestion.
    """
    offset, links, chunk = columns
    per_chunk, per_number, leaving, arriving = slots
    table, size_of, rate_of, chunk_bytes, bandwidth, latency = speeds
    streaming, contended, hold_latency, while_receiving = how
    adders, senders, pays = ranks
    complete, free, latest_ask, latest_by, busy, latest = state
    end, hop_start, hop_end = times
    head, tail, most = np.empty(last - first), np.empty(last - first), 0
    alone = np.empty(last - first if complete.shape[1] > 1 else 0)
    for send in range(first, last):
        size = chunk[send]
        slot = size * per_chunk + leaving[send] * per_number
        head[send - first] = tail[send - first] = complete[slot, 0]
        most = max(most, offset[send + 1] - offset[send])
        if len(alone):
            clear = clear_tail = complete[slot, 1]
            for entry in range(offset[send], offset[send + 1]):
                link = links[entry]
                seconds = table[size_of[size], rate_of[link]] if len(table) else chunk_bytes[size] / bandwidth[link]
                late = latency[link] * pays[send] if link >= senders else latency[link]
                start = clear if link < adders or while_receiving else clear_tail
                clear, clear_tail = start + late, max(start + seconds, clear_tail) + late
            alone[send - first] = clear_tail
    for hop in range(most):
        asks = (head if streaming else tail).copy()
        asking = asks, head if while_receiving else tail, adders
        for send in _in_turn(first, last, hop, (offset, links), asking, contended, (latest_ask, latest_by)):
            entry = offset[send] + hop
            link = links[entry]
            at = begin = asks[send - first]
            if contended:
                if at < latest_ask[link] or (at == latest_ask[link] and send < latest_by[link]):
                    return False
                begin = max(at, free[link])
                latest_ask[link], latest_by[link] = at, send
            size = chunk[send]
            seconds = table[size_of[size], rate_of[link]] if len(table) else chunk_bytes[size] / bandwidth[link]
            finish = max(begin + seconds, tail[send - first])
            late = latency[link] * pays[send] if link >= senders else latency[link]
            free[link] = finish + late if hold_latency or link >= senders else finish
            busy[link] += finish - begin
            if len(hop_start):
                hop_start[entry], hop_end[entry] = begin, finish
            head[send - first], tail[send - first] = begin + late, finish + late
    for send in range(first, last):
        slot = chunk[send] * per_chunk + arriving[send] * per_number
        complete[slot, 0] = max(complete[slot, 0], tail[send - first])
        latest[0] = max(latest[0], tail[send - first])
        if len(alone):
            complete[slot, 1] = max(complete[slot, 1], alone[send - first])
            latest[1] = max(latest[1], alone[send - first])
    if len(end):
        end[first:last] = tail
    return True


@kernel
def _in_turn(first: int, last: int, hop: int, paths: Any, asking: Any, contended: bool, before: Any) -> Any:
    """Order sends with a hop such that every link's are by request time, that of adders here, then by number."""
    (offset, links), (asks, of_adders, adders), (before_at, before_by) = paths, asking, before
    moving = np.empty(last - first, dtype=np.int64)
    latest, latest_by = before_at.copy(), before_by.copy()
    count, sorted_ = 0, True
    for send in range(first, last):
        if offset[send] + hop < offset[send + 1]:
            moving[count] = send
            count += 1
            link = links[offset[send] + hop]
            if link >= adders:
                asks[send - first] = of_adders[send - first]
            if contended and sorted_:
                at = asks[send - first]
                sorted_ = at > latest[link] or (at == latest[link] and send > latest_by[link])
                latest[link], latest_by[link] = at, send
    moving = moving[:count]
    return moving if sorted_ else _by_link(moving, first, hop, offset, links, asks, len(before_at))


@kernel
def _by_link(moving: Any, first: int, hop: int, offset: Any, links: Any, asks: Any, count: int) -> Any:
    """Sort sends by link, request time and number."""
    place = np.zeros(count + 1, dtype=np.int64)
    for send in moving:
        place[links[offset[send] + hop] + 1] += 1
    place = np.cumsum(place)
    by_link = np.empty(len(moving), dtype=np.int64)
    for send in moving:
        by_link[place[links[offset[send] + hop]]] = send
        place[links[offset[send] + hop]] += 1
    begin = 0
    for link in range(count):
        mine = by_link[begin : place[link]]
        for k in range(1, len(mine)):
            if asks[mine[k] - first] < asks[mine[k - 1] - first]:
                mine[:] = mine[np.argsort(asks[mine - first], kind="mergesort")]
                break
        begin = place[link]
    return by_link


def compiled_in_order(
    schedule: Schedule, nodes: int, wires: Wires, rules: Rules, *, keep: bool, unaware: bool = False
) -> CompiledResult | None:
    """Simulate sends in turn; None if one waits for a send later in the order."""
    sends, same = schedule.sends, SAME_TIME * float(schedule.end_s.max(initial=0.0))
    table, size_of, rate_of, chunk_bytes, bandwidth = durations(schedule.chunks.sizes_bytes, wires)
    waits, feeds, slots = numbered_slots(sends, len(schedule.chunks), nodes)
    plan, following = np.empty((len(sends), 4), dtype=waits.dtype), np.zeros(0, dtype=waits.dtype)
    original = schedule.start_s, schedule.end_s, same
    columns = sends.path_offset, sends.path_links, sends.chunk
    many = _plan_sends(waits, feeds, slots, columns, original, size_of, plan)
    order = served_order(schedule.start_s, schedule.end_s)
    if many:
        following = _following(order, feeds, slots, schedule.end_s)
    del waits, feeds
    sizes = [len(sends), len(sends.path_links), len(sends.path_links)] if keep else [0, 0, 0]
    times, busy = tuple(np.empty(size) for size in sizes), np.zeros(len(wires))
    came = np.full((len(sends), 2 if unaware else 1), -1.0)
    how = rules.streaming, rules.contended, rules.hold_latency
    of_links = sends.path_links, table, rate_of, chunk_bytes, bandwidth, wires.latency_s
    latest = _fill_times(order, plan, following, original, of_links, how, came, busy, times)
    return None if latest[0] < 0 else CompiledResult(*latest, busy, Timeline(*times))


@kernel
def _plan_sends(waits: Any, feeds: Any, slots: int, columns: Any, original: Any, size_of: Any, plan: Any) -> bool:
    """Fill the plan, the data of each send side by side; return whether a slot is fed twice.

    A row has the send waited for, -1 for none, or -2 less the slot if that is fed more than once; the number of links,
    and the place of the first one, or the link itself where all paths have one; the row of the size, or the chunk.
    """
    offset, links, chunk = columns
    start, end, same = original
    single = len(links) == len(feeds)
    first, many = np.full(slots, -1, dtype=feeds.dtype), False
    for send in range(len(feeds)):
        many |= first[feeds[send]] != -1
        first[feeds[send]] = send if first[feeds[send]] == -1 else -2
    for send in range(len(feeds)):
        feeder = first[waits[send]] if waits[send] >= 0 else -1
        if feeder == -2:
            feeder = -2 - waits[send]
        elif feeder >= 0 and end[feeder] - same > start[send]:
            feeder = -1
        plan[send, 0], plan[send, 1] = feeder, offset[send + 1] - offset[send]
        plan[send, 2] = links[send] if single else offset[send]
        plan[send, 3] = size_of[chunk[send]] if len(size_of) else chunk[send]
    return many


@kernel
def _following(order: Any, feeds: Any, slots: int, end: Any) -> Any:
    """Return the next send by end that feeds each send's slot, then each slot's first; -1 for none."""
    sends = len(order)
    following = np.full(sends + slots, -1, dtype=feeds.dtype)
    for place in range(sends):
        send = order[sends - 1 - place]
        before = sends + feeds[send]
        while following[before] >= 0 and end[following[before]] < end[send]:
            before = following[before]
        following[send], following[before] = following[before], send
    return following


@kernel
def _fill_times(
    order: Any, plan: Any, following: Any, original: Any, of_links: Any, how: Any, came: Any, busy: Any, times: Any
) -> tuple[float, float]:
    """Simulate into the given arrays; see :class:`~cwb.schedules.simulate.network.Rules`.

    ``came`` has the arrival of each send, with congestion and without; where several sends feed a slot that is
    waited for, the latest arrival among it and those before it.
    """
    start, end, same = original
    links, table, rate_of, chunk_bytes, bandwidth, latency = of_links
    streaming, contended, hold_latency = how
    ends, hop_start, hop_end = times
    free, latest, single = np.zeros(len(latency)), np.zeros(2), len(links) == len(order)
    counted = np.arange(len(order), max(len(order), len(following))).astype(plan.dtype)
    for send in order:
        head = tail = clear = clear_tail = 0.0
        last, hops, first, size = plan[send, 0], plan[send, 1], plan[send, 2], plan[send, 3]
        if last < -1:
            last = _last(-2 - last, start[send], counted, following, end, same, came)
        if 0 <= last < len(order):
            head = tail = came[last, 0]
            clear = clear_tail = came[last, -1]
        if last < -1 or head < 0:
            latest[0] = -1.0
            break
        for entry in range(hops):
            link = first if single else links[first + entry]
            seconds = table[size, rate_of[link]] if len(table) else chunk_bytes[size] / bandwidth[link]
            begin = max(head if streaming else tail, free[link])
            finish = max(begin + seconds, tail)
            if contended:
                free[link] = finish + latency[link] if hold_latency else finish
            busy[link] += finish - begin
            if len(hop_start):
                at = send if single else first + entry
                hop_start[at], hop_end[at] = begin, finish
            head, tail = begin + latency[link], finish + latency[link]
            clear, clear_tail = clear + latency[link], max(clear + seconds, clear_tail) + latency[link]
        came[send, -1], came[send, 0] = clear_tail, tail
        latest[0], latest[1] = max(latest[0], tail), max(latest[1], clear_tail)
        if len(ends):
            ends[send] = tail
    return latest[0], latest[1]


@kernel
def _last(slot: int, start: float, counted: Any, following: Any, end: Any, same: float, came: Any) -> Any:
    """Count the arrivals awaited at a slot; return the last: beyond the sends if none, -2 if some are missing."""
    last, sends = counted[slot], len(came)
    if last < sends and end[last] - same > start:
        return -2
    after = following[last]
    while after >= 0 and end[after] - same <= start:
        if came[after, 0] < 0:
            return -2
        if last < sends:
            came[after, 0], came[after, -1] = max(came[after, 0], came[last, 0]), max(came[after, -1], came[last, -1])
        last, after = after, following[after]
    counted[slot] = last
    return last
