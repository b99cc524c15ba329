"""Compiled simulation by levels for millions of sends, with the times of :mod:`.levels`."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from ...core.kernel import kernel
from ...core.schedule import Floats
from .levels import level_starts
from .network import Rules, Timeline, Wires
from .ticks import TickWires
from .transfers import Transfers


def compiled_levels(transfers: Transfers, wires: Wires, rules: Rules) -> Timeline | None:
    """Simulate level by level; None if sends overtake others of earlier levels.

    Parameters
    ----------
    transfers : Transfers
        Sends that all arrive for the next level.
    """
    hops = len(transfers.sends.path_links)
    times = np.empty(len(transfers.sends)), np.empty(hops), np.empty(hops)
    return None if _play_levels(transfers, wires, rules, *times) is None else Timeline(*times)


def compiled_totals(
    transfers: Transfers, wires: Wires, rules: Rules, *, unaware: bool = False
) -> tuple[float, Floats, float] | None:
    """Return last arrival, busy time of links, and the last arrival without congestion, if requested.

    The times of all sends are not kept.
    """
    return _play_levels(transfers, wires, rules, *(np.empty(0) for _ in range(3)), unaware=unaware)


def _play_levels(
    transfers: Transfers,
    wires: Wires,
    rules: Rules,
    end: Floats,
    hop_start: Floats,
    hop_end: Floats,
    *,
    unaware: bool = False,
) -> tuple[float, Floats, float] | None:
    """Simulate into the given arrays, as far as they have room."""
    sends, slots = transfers.sends, transfers.slot_columns[:-1]
    starts = level_starts(transfers.leaves)
    seconds, busy, latest = durations(transfers.chunk_bytes, wires), np.zeros(len(wires)), np.zeros(2)
    complete, free = np.zeros((transfers.slots, 2 if unaware else 1)), np.zeros(len(wires))
    asked, asked_by = np.full(len(wires), -1.0), np.full(len(wires), -1, dtype=np.int64)
    ranks, pays = wires.rank_links, np.zeros(0) if transfers.pays is None else transfers.pays
    how = rules.streaming, rules.contended, rules.hold_latency, ranks.while_receiving
    columns = sends.path_offset, sends.path_links, sends.chunk, *slots
    state = complete, free, asked, asked_by, busy, latest, end, hop_start, hop_end
    for a, b in pairwise([*starts, len(sends)]):
        if not _level(a, b, *columns, *seconds, wires.latency_s, *how, ranks.adders, ranks.senders, pays, *state):
            return None
    return float(latest[0]), busy, float(latest[1])


def durations(chunk_bytes: Floats, wires: Wires) -> tuple[Any, Any, Any, Any, Any]:
    """Return durations by size and rate, or an empty table; and bytes and bandwidths."""
    if isinstance(wires, TickWires):
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
    per_chunk: int,
    per_number: int,
    leaving: Any,
    arriving: Any,
    table: Any,
    size_of: Any,
    rate_of: Any,
    chunk_bytes: Any,
    bandwidth: Any,
    latency: Any,
    streaming: bool,
    contended: bool,
    hold_latency: bool,
    while_receiving: bool,
    adders: int,
    senders: int,
    pays: Any,
    complete: Any,
    free: Any,
    asked: Any,
    asked_by: Any,
    busy: Any,
    latest: Any,
    end: Any,
    hop_start: Any,
    hop_end: Any,
) -> bool:
    """Simulate the sends of a level hop by hop; return False if one overtakes a send served before.

    ``complete`` is the time at which all data that a slot waits for has arrived; its second column, if any, is the
    time without congestion.
    """
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
        asks = head if streaming else tail
        if adders < len(latency):
            asks = _asks(asks, head if while_receiving else tail, first, hop, offset, links, adders)
        for send in _in_turn(first, last, hop, offset, links, asks, contended, asked, asked_by):
            entry = offset[send] + hop
            link = links[entry]
            at = begin = asks[send - first]
            if contended:
                if at < asked[link] or (at == asked[link] and send < asked_by[link]):
                    return False
                begin = max(at, free[link])
                asked[link], asked_by[link] = at, send
            size = chunk[send]
            seconds = table[size_of[size], rate_of[link]] if len(table) else chunk_bytes[size] / bandwidth[link]
            done = max(begin + seconds, tail[send - first])
            late = latency[link] * pays[send] if link >= senders else latency[link]
            free[link] = done + late if hold_latency or link >= senders else done
            busy[link] += done - begin
            if len(hop_start):
                hop_start[entry], hop_end[entry] = begin, done
            head[send - first], tail[send - first] = begin + late, done + late
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
def _asks(asks: Any, of_adders: Any, first: int, hop: int, offset: Any, links: Any, adders: int) -> Any:
    """Return when sends ask for a hop's link, with the times of adders where it is one."""
    found = asks.copy()
    for send in range(first, first + len(asks)):
        if offset[send] + hop < offset[send + 1] and links[offset[send] + hop] >= adders:
            found[send - first] = of_adders[send - first]
    return found


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
    """Order sends with a hop such that every link's are by request time, then by number."""
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
    """Sort sends by link, request time and number."""
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
