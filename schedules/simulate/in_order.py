"""Compiled simulation of timed schedules: links serve sends, even millions, by start time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.kernel import kernel
from ...core.schedule import Floats, Schedule
from ..cells import numbered_slots
from .compiled_levels import durations
from .network import Rules, Timeline, Wires
from .transfers import SAME_TIME, served_order


@dataclass(frozen=True, eq=False)
class CompiledResult:
    """Totals of a compiled simulation.

    Parameters
    ----------
    latest, alone : float
        Arrival of the last byte with and without congestion; 0 where not requested.
    busy : array of float, shape (links,)
        Seconds that every link is held.
    timeline : Timeline
        Times of all sends and hops, in the order of the schedule; empty unless requested.
    """

    latest: float
    alone: float
    busy: Floats
    timeline: Timeline


def compiled_in_order(
    schedule: Schedule, nodes: int, wires: Wires, rules: Rules, *, keep: bool, unaware: bool = False
) -> CompiledResult | None:
    """Simulate sends in turn; None if one waits for a send later in the order.

    Parameters
    ----------
    schedule : Schedule
        The sends; all numbers are in range.
    wires : Wires
        Links, all of constant bandwidth.
    """
    sends, same = schedule.sends, SAME_TIME * float(schedule.end_s.max(initial=0.0))
    table, size_of, rate_of, chunk_bytes, bandwidth = durations(schedule.chunks.sizes_bytes, wires)
    waits, feeds, slots = numbered_slots(sends, len(schedule.chunks), nodes)
    plan, following = np.empty((len(sends), 4), dtype=waits.dtype), np.zeros(0, dtype=waits.dtype)
    given = schedule.start_s, schedule.end_s, same
    columns = sends.path_offset, sends.path_links, sends.chunk
    many = _plan_sends(waits, feeds, slots, *columns, *given, size_of, plan)
    order = served_order(schedule.start_s, schedule.end_s)
    if many:
        following = _following(order, feeds, slots, schedule.end_s)
    del waits, feeds
    sizes = [len(sends), len(sends.path_links), len(sends.path_links)] if keep else [0, 0, 0]
    times, busy = [np.empty(size) for size in sizes], np.zeros(len(wires))
    came = np.full((len(sends), 2 if unaware else 1), -1.0)
    how = rules.streaming, rules.contended, rules.hold_latency
    of_links = table, rate_of, chunk_bytes, bandwidth, wires.latency_s
    latest = _fill_times(order, plan, following, sends.path_links, *given, *of_links, *how, came, busy, *times)
    return None if latest[0] < 0 else CompiledResult(*latest, busy, Timeline(*times))


@kernel
def _plan_sends(
    waits: Any,
    feeds: Any,
    slots: int,
    offset: Any,
    links: Any,
    chunk: Any,
    start: Any,
    end: Any,
    same: float,
    size_of: Any,
    plan: Any,
) -> bool:
    """Fill the plan, the data of each send side by side; return whether a slot is fed twice.

    A row has the send waited for, -1 for none, or -2 less the slot if that is fed more than once; the number of
    links, and the place of the first one, or the link itself where all paths have one; the row of the size, or the
    chunk.
    """
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
    order: Any,
    plan: Any,
    following: Any,
    links: Any,
    start: Any,
    end: Any,
    same: float,
    table: Any,
    rate_of: Any,
    chunk_bytes: Any,
    bandwidth: Any,
    latency: Any,
    streaming: bool,
    contended: bool,
    hold_latency: bool,
    came: Any,
    busy: Any,
    ends: Any,
    hop_start: Any,
    hop_end: Any,
) -> tuple[float, float]:
    """Simulate into the given arrays; see :class:`~cwb.schedules.simulate.network.Rules`.

    ``came`` has the arrival of each send, with congestion and without; where several sends feed a slot that is
    waited for, the latest arrival among it and those before it.
    """
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
            done = max(begin + seconds, tail)
            if contended:
                free[link] = done + latency[link] if hold_latency else done
            busy[link] += done - begin
            if len(hop_start):
                at = send if single else first + entry
                hop_start[at], hop_end[at] = begin, done
            head, tail = begin + latency[link], done + latency[link]
            clear, clear_tail = clear + latency[link], max(clear + seconds, clear_tail) + latency[link]
        came[send, -1], came[send, 0] = clear_tail, tail
        latest[0], latest[1] = max(latest[0], tail), max(latest[1], clear_tail)
        if len(ends):
            ends[send] = tail
    return latest[0], latest[1]


@kernel
def _last(slot: int, start: float, counted: Any, following: Any, end: Any, same: float, came: Any) -> Any:
    """Count the arrivals that a send waits for at its slot; return the last of them.

    A number beyond the sends if there is none; -2 if some are not simulated yet, or rounding has changed the order.
    """
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
