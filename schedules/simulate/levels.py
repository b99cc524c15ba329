"""Simulation of many sends at once with arrays: level by level, or in windows of time.

Levels are processed in turn. That preserves the first-come-first-served order of a link only if no send of a later
level asks for it before a send of an earlier one, which is checked for every send; otherwise windows or
:mod:`.events` are needed.

Windows: an event at time t has consequences only from ``t + d`` on, where d is the least time that any chunk takes
over any link. So all requests for links within d of the earliest can be served together, each link's sends in their
order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.kernel import kernel
from ...core.schedule import Floats, Ints
from .events import gates_of
from .network import Rules, Timeline, Wires
from .transfers import Transfers

#: So many sends at a time are served by a compiled loop.
COMPILED = 2**15


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


#: Fewer sends than this per call of numpy are faster in the event loop.
WORTHWHILE = 16


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


#: A window is shorter than d by this part of it, so that rounded times stay out of it.
MARGIN = 1e-6

#: A window costs as much as so many hops in the event loop, and one more for every so many hops that are kept waiting.
HOPS_PER_WINDOW, WAITING_PER_HOP = 32, 512

#: Number of windows before the costs are compared.
TRIAL = 64


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
