"""Interpreted simulation, hop by hop from a heap of events, or by levels or windows of time.

Sends of one chunk from one node at one level wait for the same arrivals, at one *gate*.

Levels are processed in turn. That preserves the first-come-first-served order of a link only if no send of a later
level asks for it before a send of an earlier one, which is checked for every send; otherwise windows or
events are needed.

Windows: an event at time t has consequences only from ``t + d`` on, where d is the least time that any chunk takes
over any link. So all requests for links within d of the earliest can be served together, each link's sends in their
order.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heappop, heappush, heapreplace
from typing import Any

import numpy as np

from ...core.errors import InputError
from ...core.kernel import kernel
from ...core.ragged import offsets, ranges
from ...core.schedule import Floats, Ints
from .network import Rules, Timeline, Wires
from .transfers import Transfers


@dataclass(eq=False)
class Gates:
    """State of all gates during a simulation."""

    fed_by: Ints  #: For each send, the gate that its arrival feeds, or -1.
    following: Ints  #: For each gate, the next one of the same slot, which waits for it, or -1.
    missing: Ints  #: For each gate, the number of outstanding arrivals and gates.
    opens_s: Floats  #: For each gate, the time of its latest arrival.
    #: Sends that wait for each gate.
    members: Ints
    member_offset: Ints

    def at_start(self) -> Ints:
        """Return the sends that wait for nothing, in order."""
        return np.sort(self._open(np.flatnonzero(self.missing == 0))[0])

    def arrive(self, sends: Ints, times_s: Floats) -> tuple[Ints, Floats]:
        """Count arrivals; return the sends they release, with their times."""
        gates = self.fed_by[sends]
        feeding = gates >= 0
        gates = gates[feeding]
        np.maximum.at(self.opens_s, gates, times_s[feeding])
        np.subtract.at(self.missing, gates, 1)
        gates = np.unique(gates)
        return self._open(gates[self.missing[gates] == 0])

    def require_all_open(self) -> None:
        """Reject schedules with cyclic waiting of sends that take no time."""
        if (waiting := np.flatnonzero(self.missing)).size:
            send = int(self.members[self.member_offset[waiting[0]]])
            raise InputError("waits for itself through sends of zero duration", place=f"sends[{send}]")

    def _open(self, gates: Ints) -> tuple[Ints, Floats]:
        """Open gates, and all later ones that wait for nothing else; return their members."""
        opened = [gates]
        while len(gates):
            behind = self.following[gates]
            gates, behind = gates[behind >= 0], behind[behind >= 0]
            self.opens_s[behind] = np.maximum(self.opens_s[behind], self.opens_s[gates])
            self.missing[behind] -= 1
            gates = behind[self.missing[behind] == 0]
            opened.append(gates)
        gates = np.concatenate(opened)
        first = self.member_offset[gates]
        counts = self.member_offset[gates + 1] - first
        return self.members[ranges(first, counts)], np.repeat(self.opens_s[gates], counts)


def gates_of(transfers: Transfers) -> Gates:
    """Find the gates of all sends."""
    levels = int(max(transfers.leaves.max(initial=0), transfers.arrives.max(initial=0))) + 1
    keys, waits = np.unique(transfers.waits_at * levels + transfers.leaves, return_inverse=True)
    slot = keys // levels
    fed_by = np.searchsorted(keys, transfers.feeds * levels + transfers.arrives)
    inside = fed_by < len(keys)
    inside[inside] = slot[fed_by[inside]] == transfers.feeds[inside]
    fed_by = np.where(inside, fed_by, -1)
    chained = slot[1:] == slot[:-1]
    missing = np.bincount(fed_by[inside], minlength=len(keys))
    missing[1:] += chained
    following = np.full(len(keys), -1)
    following[:-1][chained] = np.flatnonzero(chained) + 1
    counts = np.bincount(waits, minlength=len(keys))
    offset = offsets(counts)
    return Gates(fed_by, following, missing, np.zeros(len(keys)), np.argsort(waits, kind="stable"), offset)


def simulate_by_events(transfers: Transfers, wires: Wires, rules: Rules) -> Timeline:
    """Simulate one hop after the other.

    Chunks ask for links in the order of time, ties in the order of the sends, so that a link can be granted at
    once.
    """
    sends = transfers.sends
    owner, offset = sends.hop_send.tolist(), sends.path_offset.tolist()
    gates = gates_of(transfers)
    heap: list[tuple[float, int]] = [(0, offset[send]) for send in gates.at_start().tolist()]
    heapify(heap)
    arrivals = _Arrivals(gates)
    hops = _Hops(transfers, wires, rules)
    came: list[float] = [0] * len(sends)
    end_s: list[float] = [0] * len(sends)
    while heap:
        asks, entry = heap[0]
        send = owner[entry]
        head, tail = hops.take(entry, asks, came[send])
        if entry + 1 < offset[send + 1]:
            came[send] = tail
            heapreplace(heap, (head if hops.streams(entry + 1) else tail, entry + 1))
            continue
        heappop(heap)
        end_s[send] = tail
        for released, time in arrivals.count(send, tail):
            came[released] = time
            heappush(heap, (time, offset[released]))
    arrivals.require_all()
    return hops.timeline(end_s)


def simulate_in_order(transfers: Transfers, wires: Wires, rules: Rules) -> Timeline:
    """Simulate sends in turn: links serve them in the order of the transfers, ready or not."""
    sends = transfers.sends
    offset = sends.path_offset.tolist()
    gates = gates_of(transfers)
    heap: list[int] = gates.at_start().tolist()
    arrivals = _Arrivals(gates)
    hops = _Hops(transfers, wires, rules)
    ready: list[float] = [0] * len(sends)
    end_s: list[float] = [0] * len(sends)
    while heap:
        send = heappop(heap)
        head = tail = ready[send]
        for entry in range(offset[send], offset[send + 1]):
            head, tail = hops.take(entry, head if hops.streams(entry) else tail, tail)
        end_s[send] = tail
        for released, time in arrivals.count(send, tail):
            ready[released] = time
            heappush(heap, released)
    arrivals.require_all()
    return hops.timeline(end_s)


class _Hops:
    def __init__(self, transfers: Transfers, wires: Wires, rules: Rules) -> None:
        sends = transfers.sends
        passing = wires.passing_s(transfers.chunk_bytes, np.repeat(sends.chunk, sends.hops), sends.path_links)
        self._rules = rules
        self._link: list[int] = sends.path_links.tolist()
        self._serialization: list[float] = passing.tolist()
        self._latency: list[float] = wires.latency_s.tolist()
        self._varying = wires.varying
        self._ranks = wires.rank_links
        pays = np.zeros(0) if transfers.pays is None else transfers.pays[sends.hop_send]
        self._pays: list[int] = pays.astype(np.int64).tolist()  # integers stay integers
        self._free: list[float] = [0] * len(wires)  # integers stay integers
        self._start: list[float] = [0] * len(self._link)
        self._end: list[float] = [0] * len(self._link)

    def streams(self, entry: int) -> bool:
        """Return whether a chunk asks for a hop's link when its first byte has arrived."""
        return self._rules.streaming if self._link[entry] < self._ranks.adders else self._ranks.while_receiving

    def take(self, entry: int, asks: float, tail: float) -> tuple[float, float]:
        """Occupy a hop's link with its chunk; return the arrivals of first and last byte."""
        link = self._link[entry]
        begin = max(asks, self._free[link])
        if link in self._varying:
            end = max(self._varying[link].end_s(begin, self._serialization[entry]), tail)
        else:
            end = max(begin + self._serialization[entry], tail)
        latency, hold = self._latency[link], self._rules.hold_latency
        if link >= self._ranks.senders:
            latency, hold = latency * self._pays[entry], True
        if self._rules.contended:
            self._free[link] = end + latency if hold else end
        self._start[entry], self._end[entry] = begin, end
        return begin + latency, end + latency

    def timeline(self, end_s: list[float]) -> Timeline:
        """Return the times of all hops."""
        return Timeline(np.array(end_s), np.array(self._start), np.array(self._end))


class _Arrivals:
    """Gates for single arrivals, on lists, which are faster for that than arrays.

    The gates at the start are open already.
    """

    def __init__(self, gates: Gates) -> None:
        self._gates = gates
        self._fed_by: list[int] = gates.fed_by.tolist()
        self._following: list[int] = gates.following.tolist()
        self._missing: list[int] = gates.missing.tolist()
        self._opens_s: list[float] = [0] * len(gates.opens_s)
        self._members: list[int] = gates.members.tolist()
        self._offset: list[int] = gates.member_offset.tolist()

    def count(self, send: int, time_s: float) -> list[tuple[int, float]]:
        """Count an arrival; return the sends it releases, with their times."""
        found: list[tuple[int, float]] = []
        gate = self._fed_by[send]
        while gate >= 0:
            self._opens_s[gate] = time_s = max(time_s, self._opens_s[gate])
            self._missing[gate] -= 1
            if self._missing[gate]:
                break
            found += [(send, time_s) for send in self._members[self._offset[gate] : self._offset[gate + 1]]]
            gate = self._following[gate]
        return found

    def require_all(self) -> None:
        """Reject schedules with cyclic waiting of sends that take no time."""
        self._gates.missing[:] = self._missing
        self._gates.require_all_open()


COMPILED = 2**15  #: So many sends at a time are served by a compiled loop.


class Queues:
    """Queues of all links: the time from which each is free."""

    def __init__(self, wires: Wires, rules: Rules) -> None:
        self._wires, self._rules = wires, rules
        self._free = np.zeros(len(wires))
        self._stamp = np.zeros(len(wires), dtype=np.int64)

    def serve(
        self, link: Ints, asks: Floats, tail: Floats, serialization: Floats, send: Ints
    ) -> tuple[Floats, Floats, Ints]:
        """Serve sends that ask for links; the number of a send breaks ties between simultaneous requests.

        Return the times at which each occupies and leaves its link, and the order of service, link by link.
        """
        position = np.arange(len(link))
        if not self._rules.contended:
            return asks, np.maximum(asks + serialization, tail), position
        self._stamp[link] = position
        if (self._stamp[link] == position).all():
            return *self._take(link, asks, tail, serialization), position
        order = self._order(link, asks, send)
        begin, end = np.empty(len(link)), np.empty(len(link))
        if len(link) >= COMPILED and asks.dtype == serialization.dtype == np.float64:
            held = self._wires.latency_s if self._rules.hold_latency else np.zeros(len(self._wires))
            _take_in_order(order, link, asks, tail, serialization, held, self._free, begin, end)
            return begin, end, order
        first = np.flatnonzero(np.diff(link[order], prepend=-1))
        length = np.diff(first, append=len(order))
        for k in range(int(length.max())):
            chosen = order[first[length > k] + k]
            begin[chosen], end[chosen] = self._take(link[chosen], asks[chosen], tail[chosen], serialization[chosen])
        return begin, end, order

    def _order(self, link: Ints, asks: Floats, send: Ints) -> Ints:
        if len(self._wires) > 2**16 or (np.diff(send) < 0).any():
            return np.lexsort((send, asks, link))
        by_time = np.argsort(asks, kind="stable")
        return by_time[np.argsort(link[by_time].astype(np.uint16), kind="stable")]

    def _take(self, link: Ints, asks: Floats, tail: Floats, serialization: Floats) -> tuple[Floats, Floats]:
        begin = np.maximum(asks, self._free[link])
        end = np.maximum(begin + serialization, tail)
        self._free[link] = end + self._wires.latency_s[link] if self._rules.hold_latency else end
        return begin, end


@kernel
def _take_in_order(
    order: Any, link: Any, asks: Any, tail: Any, serialization: Any, held: Any, free: Any, begin: Any, end: Any
) -> None:
    for at in order:
        on = link[at]
        begin[at] = max(asks[at], free[on])
        end[at] = max(begin[at] + serialization[at], tail[at])
        free[on] = end[at] + held[on]


WORTHWHILE = 16  #: Fewer sends than this per call of numpy are faster in the event loop.


def level_starts(leaves: Ints) -> list[int]:
    """Return the first position of each level among sends sorted by level."""
    return [0, *(np.flatnonzero(leaves[1:] != leaves[:-1]) + 1).tolist()] if len(leaves) else []


def simulate_by_levels(transfers: Transfers, wires: Wires, rules: Rules) -> Timeline | None:
    """Simulate level by level sends that all arrive for the next level.

    None if sends overtake others of earlier levels, the levels are small, or a bandwidth varies over time.
    """
    sends = transfers.sends
    starts = level_starts(transfers.leaves)
    if wires.varying or not len(sends) or len(sends) < WORTHWHILE * len(starts):
        return None
    queues = Queues(wires, rules)
    asked, asked_by = np.full(len(wires), -1.0), np.full(len(wires), -1, dtype=np.int64)
    complete = np.zeros(transfers.slots)
    end_s, hop_start, hop_end = np.empty(len(sends)), np.empty(len(sends.path_links)), np.empty(len(sends.path_links))
    for a, b in zip(starts, [*starts[1:], len(sends)], strict=True):
        head = complete[transfers.waits_at[a:b]]
        tail = head.copy()
        chunk = sends.chunk[a:b]
        first, hops = sends.path_offset[a:b], np.diff(sends.path_offset[a : b + 1])
        for h in range(int(hops.max())):
            moving = np.flatnonzero(hops > h)
            entry, send = first[moving] + h, moving + a
            link = sends.path_links[entry]
            asks = (head if rules.streaming else tail)[moving]
            if rules.contended:
                late = (asks < asked[link]) | ((asks == asked[link]) & (send < asked_by[link]))
                if late.any():
                    return None
            serialization = wires.passing_s(transfers.chunk_bytes, chunk[moving], link)
            begin, end, order = queues.serve(link, asks, tail[moving], serialization, send)
            asked[link[order]], asked_by[link[order]] = asks[order], send[order]
            hop_start[entry], hop_end[entry] = begin, end
            head[moving], tail[moving] = begin + wires.latency_s[link], end + wires.latency_s[link]
        end_s[a:b] = tail
        np.maximum.at(complete, transfers.feeds[a:b], tail)
    return Timeline(end_s, hop_start, hop_end)


MARGIN = 1e-6  #: A window is shorter than d by this part of it, so that rounded times stay out of it.

#: A window costs as much as so many hops in the event loop, and one more for every so many hops that are kept waiting.
HOPS_PER_WINDOW, WAITING_PER_HOP = 32, 512

TRIAL = 64  #: Number of windows before the costs are compared.


def simulate_by_windows(transfers: Transfers, wires: Wires, rules: Rules) -> Timeline | None:
    """Simulate window by window, with contention.

    None if windows are too short to hold many events, or a bandwidth varies over time.
    """
    sends, links = transfers.sends, transfers.sends.path_links
    owner = sends.hop_send
    serialization = wires.passing_s(transfers.chunk_bytes, sends.chunk[owner], links)
    latency = wires.latency_s[links]
    ahead = float((latency if rules.streaming else latency + serialization).min(initial=np.inf)) * (1 - MARGIN)
    if ahead <= 0 or wires.varying:
        return None
    last = np.zeros(len(links), dtype=np.bool_)
    last[sends.path_offset[1:] - 1] = True
    queues, gates = Queues(wires, rules), gates_of(transfers)
    end_s, came = np.zeros(len(sends)), np.zeros(len(sends))
    hop_start, hop_end = np.zeros(len(links)), np.zeros(len(links))
    entry: Ints = sends.path_offset[gates.at_start()]
    asks: Floats = np.zeros(len(entry))
    windows, gain = 0, 0.0
    while len(entry):
        if windows >= TRIAL and gain < 0:
            return None
        now = asks < asks.min() + ahead
        chosen, send = entry[now], owner[entry[now]]
        begin, end, _ = queues.serve(links[chosen], asks[now], came[send], serialization[chosen], chosen)
        hop_start[chosen], hop_end[chosen] = begin, end
        head, tail = begin + latency[chosen], end + latency[chosen]
        over = last[chosen]
        came[send[~over]], end_s[send[over]] = tail[~over], tail[over]
        released, times = gates.arrive(send[over], tail[over])
        came[released] = times
        entry = np.concatenate([entry[~now], chosen[~over] + 1, sends.path_offset[released]])
        asks = np.concatenate([asks[~now], (head if rules.streaming else tail)[~over], times])
        windows += 1
        gain += len(chosen) - HOPS_PER_WINDOW - len(now) / WAITING_PER_HOP
    gates.require_all_open()
    return Timeline(end_s, hop_start, hop_end)
