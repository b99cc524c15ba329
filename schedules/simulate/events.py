"""Simulation of events from a heap, compiled for many sends, and with arrays by levels or windows of time.

Sends of one chunk from one node at one level wait for the same arrivals, at one *gate*.

Levels are processed in turn. That preserves the first-come-first-served order of a link only if no send of a later
level asks for it before a send of an earlier one, which is checked for every send; otherwise windows or events are
needed. Windows: an event at time t has consequences only from ``t + d`` on, where d is the least time that any chunk
takes over any link. So all requests within d of the earliest are served together, each link's in their order.
"""

import heapq
from typing import Any, NamedTuple

import numpy as np

from ...core.errors import InputError
from ...core.kernel import interpreted_form, kernel, worth_compiling
from ...core.schedule import Floats, Ints
from .network import Rules, Timeline, Wires
from .transfers import Transfers

#: In place of the entry after one that came over the same link: there is none yet, or this one waits no longer.
_LAST, _SERVED = -1, -2


class Gates(NamedTuple):
    """State of all gates during a simulation: arrays for compiled code, else lists, which are faster one by one."""

    fed_by: Any  #: For each send, the gate that its arrival feeds, or -1.
    following: Any  #: For each gate, the next one of the same slot, which waits for it, or -1.
    missing: Any  #: For each gate, the number of outstanding arrivals and gates.
    opens_s: Any  #: For each gate, the time of its latest arrival.
    #: Sends that wait for each gate.
    members: Any
    member_offset: Any

    def require_all_open(self) -> None:
        """Reject schedules with cyclic waiting of sends that take no time."""
        if (waiting := np.flatnonzero(self.missing)).size:
            send = int(self.members[self.member_offset[waiting[0]]])
            raise InputError("waits for itself through sends of zero duration", place=f"sends[{send}]")


def gates_of(transfers: Transfers, *, compiled: bool = False) -> Gates:
    """Return the gates of all sends in their first state."""
    fed_by, following, missing, members, offset = transfers.gate_columns
    columns = fed_by, following, missing.copy(), np.zeros(len(missing)), members, offset
    if compiled:
        return Gates(*columns)
    lists = Gates(*(column.tolist() for column in columns))
    return lists._replace(opens_s=[0] * len(missing))  # integers stay integers


def start_sends(gates: Gates, came: Any, heap: Any, item: Any) -> None:
    """Queue the sends that wait for nothing, see :func:`count_arrival`."""
    for gate in [number for number, missing in enumerate(gates.missing) if missing == 0]:
        gates.missing[gate] = 1
        count_arrival(gate, gates.opens_s[gate], gates, came, heap, item)


def count_arrival(gate: int, time: Any, gates: Gates, came: Any, heap: Any, item: Any) -> None:
    """Count an arrival at a gate; queue the sends that gates release, by time."""
    while gate >= 0:
        gates.opens_s[gate] = time = max(time, gates.opens_s[gate])
        gates.missing[gate] -= 1
        if gates.missing[gate]:
            break
        for send in gates.members[gates.member_offset[gate] : gates.member_offset[gate + 1]]:
            came[send] = time
            heapq.heappush(heap, (time, item[send]))
        gate = gates.following[gate]


def simulate_by_events(transfers: Transfers, wires: Wires, rules: Rules) -> Timeline:
    """Simulate one hop after the other.

    Chunks ask for links in the order of time, ties in the order of the sends, so that a link can be granted at once.
    Where the order of the sends is fixed, or links are not contended, sends are simulated in turn, ready or not.
    """
    sends, hops, ranks = transfers.sends, len(transfers.sends.path_links), wires.rank_links
    seconds = wires.passing_s(transfers.chunk_bytes, np.repeat(sends.chunk, sends.hops), sends.path_links)
    compiled = worth_compiling(hops) and not wires.varying and seconds.dtype == np.float64
    pays = np.ones(len(sends)) if transfers.pays is None else transfers.pays
    columns = sends.hop_send, sends.path_offset, sends.path_links, seconds, wires.latency_s, pays.astype(np.int64)
    sizes = len(wires), len(sends), len(sends), hops, hops
    how = rules.streaming, rules.contended, rules.hold_latency, ranks.while_receiving, ranks.adders, ranks.senders
    in_order = transfers.fixed_order or not rules.contended
    orders, number = [*(transfers.service.get(how, ()) if compiled else ()), np.zeros(hops, np.int64)], 0
    while True:
        order, number = orders[number], number + 1
        gates = gates_of(transfers, compiled=compiled)
        state: Any = tuple(np.zeros(size) if compiled else [0] * size for size in sizes)  # integers stay integers
        queues = np.full(hops + 1, _SERVED), np.full(len(wires) + 1, -1), order
        if hops and compiled:
            if not _play(columns, how, in_order, gates, state, queues, None, number < len(orders)):
                continue
            transfers.service[how] = (order, *(each for each in orders[:-1] if each is not order))[:2]
        elif hops:
            lists, links = (tuple(column.tolist() for column in each) for each in (columns, queues))
            interpreted_form(_play)(lists, how, in_order, gates, state, links, wires.varying or None, False)
        break
    gates.require_all_open()
    return Timeline(*map(np.array, state[2:]))


@kernel
def _play(  # noqa: PLR0912, PLR0915 (one loop: calls with so many arrays take half of the time)
    columns: Any, how: Any, in_order: bool, gates: Gates, state: Any, queues: Any, varying: Any, again: bool
) -> bool:
    """Take hops from a heap by time of request, or whole sends by their order.

    Requests that come over a link are mostly in order, and only the first one is in the heap. Until it is served, a hop
    has its request in place of its start. The last column of ``queues`` becomes the order of all hops, or has that of
    another size to do it ``again``: return False if links would not serve in this order, by the times of requests.
    """
    owner, offset, links, seconds, latency, pays = columns
    streaming, contended, hold_latency, while_receiving, adders, senders = how
    free, came, end, hop_start, hop_end = state
    after, last, order = queues
    heap, latest, served = [(free[0], 0)], np.full(len(free), -1.0), 0
    heap.pop()
    starting = [gate for gate in range(len(gates.missing) - 1, -1, -1) if gates.missing[gate] == 0]
    for gate in starting:
        gates.missing[gate] = 1
    while len(starting) + len(heap) > 0 or (again and served < len(order)):
        if len(starting) > 0:
            gate, link = starting.pop(), -1
            tail = gates.opens_s[gate]
        else:
            if again:
                entry = order[served]
                asks = hop_start[entry]
            else:
                asks, entry = heap[0]
                following, after[entry] = after[entry], _SERVED
                if following >= 0:
                    heapq.heapreplace(heap, (hop_start[following], following))
                else:
                    heapq.heappop(heap)
            send = owner[entry]
            tail = came[send]
            if in_order:
                asks = tail
            while True:
                link = links[entry]
                if again and not in_order:
                    if asks < latest[link] or (asks == latest[link] and entry < last[link]):
                        return False
                    latest[link], last[link] = asks, entry
                begin = max(asks, free[link])
                if varying is None:
                    finish = max(begin + seconds[entry], tail)
                else:
                    own = varying[link].end_s(begin, seconds[entry]) if link in varying else begin + seconds[entry]
                    finish = max(own, tail)
                late = latency[link] * pays[send] if link >= senders else latency[link]
                if contended:
                    free[link] = finish + late if hold_latency or link >= senders else finish
                hop_start[entry], hop_end[entry] = begin, finish
                order[served], served = entry, served + 1
                tail = finish + late
                entry += 1
                if entry == offset[send + 1]:
                    break
                asks = begin + late if (streaming if links[entry] < adders else while_receiving) else tail
                if not in_order:
                    break
            if entry < offset[send + 1]:
                came[send] = tail
                _add_request(again, heap, hop_start, after, last, link, asks, entry)
                continue
            end[send], gate = tail, gates.fed_by[send]
        while gate >= 0:
            gates.opens_s[gate] = tail = max(tail, gates.opens_s[gate])
            gates.missing[gate] -= 1
            if gates.missing[gate]:
                break
            for place in range(gates.member_offset[gate], gates.member_offset[gate + 1]):
                send = gates.members[place]
                came[send] = tail
                key = send if in_order else tail
                _add_request(again, heap, hop_start, after, last, link, key, offset[send])
            gate = gates.following[gate]
    return True


@kernel
def _add_request(again: bool, heap: Any, asks: Any, after: Any, last: Any, link: int, key: Any, entry: int) -> None:
    """Add an entry behind the last one over its link, if that waits and is earlier; else to the heap."""
    asks[entry] = key
    if again:
        return
    before = last[link]
    if after[before] == _LAST and (asks[before] < key or (asks[before] == key and before < entry)):
        after[before] = entry
    else:
        heapq.heappush(heap, (key, entry))
    after[entry], last[link] = _LAST, entry


WORTHWHILE = 16  #: Fewer sends than this per call of numpy are faster in the event loop.


def level_starts(leaves: Ints) -> list[int]:
    """Return the first position of each level among sends sorted by level."""
    return [0, *(np.flatnonzero(leaves[1:] != leaves[:-1]) + 1).tolist()] if len(leaves) else []


class _Queues:
    """Queues of all links, served with arrays."""

    def __init__(self, wires: Wires, rules: Rules) -> None:
        self._contended, self._free = rules.contended, np.zeros(len(wires))
        self._latency_s = wires.latency_s if rules.hold_latency else np.zeros(len(wires))

    def serve(self, link: Ints, asks: Floats, tail: Floats, seconds: Floats) -> tuple[Floats, Floats]:
        """Serve sends that ask for links, ties in their order; return when each begins and ends."""
        begin, end = asks.copy(), np.maximum(asks + seconds, tail)
        if self._contended:
            order = np.lexsort((asks, link))
            by_link, first = link[order], np.ones(len(order), dtype=np.bool_)
            first[1:] = by_link[1:] != by_link[:-1]  # faster than np.diff
            place = np.append(np.flatnonzero(first), len(order))
            place, length = place[:-1], place[1:] - place[:-1]
            for k in range(int(length.max())):  # the k-th of every link's queue
                now = order[place[length > k] + k]
                begin[now] = np.maximum(asks[now], self._free[link[now]])
                end[now] = np.maximum(begin[now] + seconds[now], end[now])
                self._free[link[now]] = end[now] + self._latency_s[link[now]]
        return begin, end


def simulate_by_levels(transfers: Transfers, wires: Wires, rules: Rules) -> Timeline | None:
    """Simulate level by level; None if sends overtake earlier levels, levels are small, or a bandwidth varies."""
    sends, links = transfers.sends, len(wires)
    starts = level_starts(transfers.leaves)
    if wires.varying or not len(sends) or len(sends) < WORTHWHILE * len(starts):
        return None
    queues, latest_ask, latest_by = _Queues(wires, rules), np.full(links, -1.0), np.full(links, -1, dtype=np.int64)
    complete, end_s = np.zeros(transfers.slots), np.empty(len(sends))
    hop_start, hop_end = np.empty((2, len(sends.path_links)))
    for a, b in zip(starts, [*starts[1:], len(sends)], strict=True):
        head = complete[transfers.waits_at[a:b]]
        tail = head.copy()
        first, hops = sends.path_offset[a:b], np.diff(sends.path_offset[a : b + 1])
        for h in range(int(hops.max())):
            moving = np.flatnonzero(hops > h)
            entry, send = first[moving] + h, moving + a
            link, asks = sends.path_links[entry], (head if rules.streaming else tail)[moving]
            if rules.contended:
                if ((asks < latest_ask[link]) | ((asks == latest_ask[link]) & (send < latest_by[link]))).any():
                    return None
                order = np.argsort(asks, kind="stable")
                latest_ask[link[order]], latest_by[link[order]] = asks[order], send[order]  # the last one of each link
            seconds = wires.passing_s(transfers.chunk_bytes, sends.chunk[send], link)
            begin, end = queues.serve(link, asks, tail[moving], seconds)
            hop_start[entry], hop_end[entry] = begin, end
            head[moving], tail[moving] = begin + wires.latency_s[link], end + wires.latency_s[link]
        end_s[a:b] = tail
        np.maximum.at(complete, transfers.feeds[a:b], tail)
    return Timeline(end_s, hop_start, hop_end)


MARGIN = 1e-6  #: A window is shorter than d by this part of it, so that rounded times stay out of it.
TRIAL, HOPS_PER_WINDOW = 64, 32  #: Windows after which those of fewer hops than this are left to the event loop.


def simulate_by_windows(transfers: Transfers, wires: Wires, rules: Rules) -> Timeline | None:
    """Simulate window by window; None if they have few events, or a bandwidth varies."""
    sends, links, owner = transfers.sends, transfers.sends.path_links, transfers.sends.hop_send
    seconds, latency = wires.passing_s(transfers.chunk_bytes, sends.chunk[owner], links), wires.latency_s[links]
    ahead = float((latency if rules.streaming else latency + seconds).min(initial=np.inf)) * (1 - MARGIN)
    if ahead <= 0 or wires.varying:
        return None
    queues, gates, released = _Queues(wires, rules), gates_of(transfers), list[tuple[float, int]]()
    last, end_s, came = np.zeros(len(links), dtype=np.bool_), np.zeros(len(sends)), np.zeros(len(sends))
    last[sends.path_offset[1:] - 1] = True
    hop_start, hop_end, asks = np.zeros((3, len(links)))
    ways = gates, came, released, sends.path_offset.tolist()
    start_sends(*ways)
    waiting, windows, served = np.zeros(0, dtype=np.int64), 0, 0
    while len(waiting) or released:
        times, first = zip(*released, strict=True) if released else ((), ())
        asks[list(first)] = times
        waiting = np.concatenate([waiting, np.array(first, dtype=np.int64)])
        released.clear()
        now = asks[waiting] < asks[waiting].min() + ahead
        hop, waiting = np.sort(waiting[now]), waiting[~now]
        link, send, over = links[hop], owner[hop], last[hop]
        begin, end = queues.serve(link, asks[hop], came[send], seconds[hop])
        hop_start[hop], hop_end[hop] = begin, end
        tail, onward = end + wires.latency_s[link], hop[~over] + 1
        came[send[~over]], end_s[send[over]] = tail[~over], tail[over]
        asks[onward] = (begin + wires.latency_s[link] if rules.streaming else tail)[~over]
        waiting = np.concatenate([waiting, onward])
        for gate, time in zip(map(gates.fed_by.__getitem__, send[over].tolist()), tail[over].tolist(), strict=True):
            count_arrival(gate, time, *ways)
        windows, served = windows + 1, served + len(hop)
        if windows == TRIAL and served < HOPS_PER_WINDOW * windows:
            return None
    gates.require_all_open()
    return Timeline(end_s, hop_start, hop_end)
