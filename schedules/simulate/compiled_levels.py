"""Compiled simulation level by level, for schedules of millions of sends: the times are those of :mod:`.levels`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.kernel import kernel
from ...core.schedule import Floats
from .network import Wires
from .ticks import Counted
from .timing import Rules, Timeline
from .transfers import Transfers


def compiled_levels(transfers: Transfers, wires: Wires, rules: Rules) -> Timeline | None:
    """Simulate level by level; None where sends overtake others of earlier levels.

    Parameters
    ----------
    transfers : Transfers
        What is sent; every send arrives for the next level.
    wires : Wires
        The links; no bandwidth varies over time.
    rules : Rules
        How chunks pass them.
    """
    hops = len(transfers.sends.path_links)
    times = np.empty(len(transfers.sends)), np.empty(hops), np.empty(hops)
    return None if _played(transfers, wires, rules, *times) is None else Timeline(*times)


def compiled_totals(transfers: Transfers, wires: Wires, rules: Rules) -> tuple[float, Floats] | None:
    """The time of the last arrival, and how long every link is held, without the times of all sends."""
    return _played(transfers, wires, rules, *(np.empty(0) for _ in range(3)))


def _played(
    transfers: Transfers, wires: Wires, rules: Rules, end: Floats, hop_start: Floats, hop_end: Floats
) -> tuple[float, Floats] | None:
    """Fill in the times, where there is room for them."""
    sends = transfers.sends
    starts = np.flatnonzero(np.diff(transfers.leaves, prepend=-1)).tolist()
    seconds, busy, latest = durations(transfers.chunk_bytes, wires), np.zeros(len(wires)), 0.0
    complete, free = np.zeros(transfers.slots), np.zeros(len(wires))
    asked, asked_by = np.full(len(wires), -1.0), np.full(len(wires), -1, dtype=np.int64)
    how = rules.streaming, rules.contended, rules.hold_latency
    columns = sends.path_offset, sends.path_links, sends.chunk, transfers.waits_at, transfers.feeds
    state = complete, free, asked, asked_by, busy, end, hop_start, hop_end
    for a, b in zip(starts, [*starts[1:], len(sends)], strict=True):
        arrived = _level(a, b, *columns, *seconds, wires.latency_s, *how, *state)
        if arrived < 0:
            return None
        latest = max(latest, arrived)
    return latest, busy


def durations(chunk_bytes: Floats, wires: Wires) -> tuple[Any, Any, Any, Any, Any]:
    """What chunks take on links: by sizes and rates, or by bytes and bandwidths where the table is empty."""
    if isinstance(wires, Counted):
        return wires.table, wires.size_of, wires.rate_of, chunk_bytes, wires.bandwidth_Bps
    none = np.zeros(0, dtype=np.int64)
    return np.zeros((0, 0)), none, none, chunk_bytes, wires.bandwidth_Bps


@kernel
def _level(
    first: int,
    last: int,
    offset: Any,
    links: Any,
    chunk: Any,
    waits: Any,
    feeds: Any,
    table: Any,
    size_of: Any,
    rate_of: Any,
    chunk_bytes: Any,
    bandwidth: Any,
    latency: Any,
    streaming: bool,
    contended: bool,
    hold_latency: bool,
    complete: Any,
    free: Any,
    asked: Any,
    asked_by: Any,
    busy: Any,
    end: Any,
    hop_start: Any,
    hop_end: Any,
) -> float:
    """Let the sends of a level pass their links, hop by hop.

    Returns
    -------
    float
        When the last of them has arrived; -1 if one asks for a link before one of another level.
    """
    head, tail, most = np.empty(last - first), np.empty(last - first), 0
    for send in range(first, last):
        head[send - first] = tail[send - first] = complete[waits[send]]
        most = max(most, offset[send + 1] - offset[send])
    for hop in range(most):
        asks = head if streaming else tail
        for send in _in_turn(first, last, hop, offset, links, asks, contended, asked, asked_by):
            entry = offset[send] + hop
            link = links[entry]
            at = begin = asks[send - first]
            if contended:
                if at < asked[link] or (at == asked[link] and send < asked_by[link]):
                    return -1.0
                begin = max(at, free[link])
                asked[link], asked_by[link] = at, send
            size = chunk[send]
            seconds = table[size_of[size], rate_of[link]] if len(table) else chunk_bytes[size] / bandwidth[link]
            done = max(begin + seconds, tail[send - first])
            free[link] = done + latency[link] if hold_latency else done
            busy[link] += done - begin
            if len(hop_start):
                hop_start[entry], hop_end[entry] = begin, done
            head[send - first], tail[send - first] = begin + latency[link], done + latency[link]
    arrived = 0.0
    for send in range(first, last):
        arrived = max(arrived, tail[send - first])
        complete[feeds[send]] = max(complete[feeds[send]], tail[send - first])
    if len(end):
        end[first:last] = tail
    return arrived


@kernel
def _in_turn(
    first: int,
    last: int,
    hop: int,
    offset: Any,
    links: Any,
    asks: Any,
    contended: bool,
    asked: Any,
    asked_by: Any,
) -> Any:
    """Sends that have a hop, so that those of a link come in the order in which it serves them: by asking, then by number."""
    moving = np.empty(last - first, dtype=np.int64)
    latest, latest_by = asked.copy(), asked_by.copy()
    count, sorted_ = 0, True
    for send in range(first, last):
        if offset[send] + hop < offset[send + 1]:
            moving[count] = send
            count += 1
            if contended and sorted_:
                link, at = links[offset[send] + hop], asks[send - first]
                sorted_ = at > latest[link] or (at == latest[link] and send > latest_by[link])
                latest[link], latest_by[link] = at, send
    moving = moving[:count]
    return moving if sorted_ else _by_link(moving, first, hop, offset, links, asks, len(asked))


@kernel
def _by_link(moving: Any, first: int, hop: int, offset: Any, links: Any, asks: Any, count: int) -> Any:
    """Sends by link, then by asking, then by number."""
    place = np.zeros(count + 1, dtype=np.int64)
    for send in moving:
        place[links[offset[send] + hop] + 1] += 1
    place = np.cumsum(place)
    found = np.empty(len(moving), dtype=np.int64)
    for send in moving:
        found[place[links[offset[send] + hop]]] = send
        place[links[offset[send] + hop]] += 1
    begin = 0
    for link in range(count):
        mine = found[begin : place[link]]
        for k in range(1, len(mine)):
            if asks[mine[k] - first] < asks[mine[k - 1] - first]:
                mine[:] = mine[np.argsort(asks[mine - first], kind="mergesort")]
                break
        begin = place[link]
    return found
