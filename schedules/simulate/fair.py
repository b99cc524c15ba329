"""Simulation of flows: simultaneous sends share every link, max-min fairly.

A send flows over all links of its path at once, at one rate; the last byte arrives the path's latency after it has
left. Rates change only when a send begins or ends; the simulation jumps from one such event to the next.
"""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np

from ...core.errors import InputError
from ...core.kernel import interpreted_form
from ...core.schedule import Floats, Ints, ranges
from .events import count_arrival, gates_of, start_sends
from .network import Timeline, Wires
from .transfers import Transfers

#: Sends whose ends differ by less than this part of the time end together: they differ by rounding only.
SAME_TIME = 1e-12

_READY, _SENT, _ARRIVED, _ADDED = range(4)  #: Stages of a send: waiting for its rank, leaving it, to be added, added.


def simulate_flows(transfers: Transfers, wires: Wires) -> Timeline:
    """Simulate sends, in any order, as fluid flows."""
    if wires.varying:
        raise InputError("flows share links of constant bandwidth only", place="timing.changes")
    sends, count = transfers.sends, len(transfers.sends)
    latency_s = wires.latency_s.copy()
    latency_s[wires.rank_links.senders :] = 0.0  # spent before a send begins
    delay = np.add.reduceat(latency_s[sends.path_links], sends.path_offset[:-1]) if count else np.zeros(0)
    left = transfers.chunk_bytes[sends.chunk]
    start_s, left_s = np.zeros(count), np.zeros(count)
    gates, ranks = gates_of(transfers), _Ranks(transfers, wires)
    first = _SENT if transfers.pays is None else _READY
    # What is coming is (time, stage * count + send); what gates release comes in the first stage.
    coming: list[tuple[float, int]] = []
    released = gates, start_s, coming, range(first * count, (first + 1) * count), False
    arrive = interpreted_form(count_arrival)
    interpreted_form(start_sends)(*released)
    end_s, now = np.zeros(count), 0.0
    active: Ints = np.zeros(0, dtype=np.int64)
    while coming or len(active):
        if not len(active):
            now = coming[0][0]
        begun: list[int] = []
        while coming and coming[0][0] <= now * (1 + SAME_TIME):
            time, event = heappop(coming)
            stage, send = divmod(event, count)
            if stage == _READY and (leaves := ranks.send(send, time)) > now * (1 + SAME_TIME):
                heappush(coming, (leaves, _SENT * count + send))
            elif stage == _ARRIVED:
                end_s[send] = ranks.add(send, time)
                heappush(coming, (float(end_s[send]), _ADDED * count + send))
            elif stage == _ADDED:
                arrive(gates.fed_by[send], time, *released)
            else:
                begun.append(send)
        start_s[begun] = now
        active = np.concatenate([active, np.array(begun, dtype=np.int64)])
        if not len(active):
            continue
        rate = fair_rates(sends.path_links, sends.path_offset, active, ranks.bandwidth_Bps)
        ends = now + left[active] / rate
        until = min(float(ends.min()), coming[0][0] if coming else np.inf)
        ended = ends <= until * (1 + SAME_TIME)
        left[active] -= rate * (until - now)
        finished, active, now = active[ended], active[~ended], until
        left_s[finished] = now
        end_s[finished] = now + delay[finished]
        for send in finished.tolist():
            if ranks.adds_later[send]:
                heappush(coming, (float(end_s[send]), _ARRIVED * count + send))
            else:
                arrive(gates.fed_by[send], float(end_s[send]), *released)
    gates.require_all_open()
    return Timeline(end_s, np.repeat(start_s, sends.hops), np.repeat(left_s, sends.hops))


class _Ranks:
    """Ranks that send and add one message after the other; nothing costs anything unless the links say so."""

    def __init__(self, transfers: Transfers, wires: Wires) -> None:
        sends = transfers.sends
        self._free: dict[int, float] = {}
        self._wires, self._sends, self._bytes = wires, sends, transfers.chunk_bytes
        self._pays = np.zeros(len(sends)) if transfers.pays is None else transfers.pays
        self.bandwidth_Bps, self.adds_later = wires.bandwidth_Bps, np.zeros(len(sends), dtype=np.bool_)
        ranks = wires.rank_links
        if not ranks.while_receiving and len(sends):
            last = sends.path_links[sends.path_offset[1:] - 1]
            self.adds_later = (last >= ranks.adders) & (last < ranks.senders)
            self.bandwidth_Bps = wires.bandwidth_Bps.copy()
            self.bandwidth_Bps[ranks.adders : ranks.senders] = np.inf

    def send(self, send: int, ready_s: float) -> float:
        """Return when a message leaves its rank."""
        link = int(self._sends.path_links[self._sends.path_offset[send]])
        if link < self._wires.rank_links.senders:
            return ready_s
        return self._serve(link, ready_s, float(self._wires.latency_s[link] * self._pays[send]))

    def add(self, send: int, arrival_s: float) -> float:
        """Return when a contribution is added."""
        link = int(self._sends.path_links[self._sends.path_offset[send + 1] - 1])
        seconds = self._bytes[self._sends.chunk[send]] / self._wires.bandwidth_Bps[link]
        return self._serve(link, arrival_s, float(seconds))

    def _serve(self, link: int, asks_s: float, seconds: float) -> float:
        self._free[link] = max(asks_s, self._free.get(link, 0.0)) + seconds
        return self._free[link]


def fair_rates(path_links: Ints, path_offset: Ints, flows: Ints, bandwidth_Bps: Floats) -> Floats:
    """Compute max-min fair rates of flows: one can only gain from flows that are no faster.

    Water filling: a link whose equal share is the smallest on the path of any of its flows is a bottleneck and fixes
    their rates. The remaining bandwidth is shared by the other flows in the same way.
    """
    hops = path_offset[flows + 1] - path_offset[flows]
    link = path_links[ranges(path_offset[flows], hops)]
    capacity, links = bandwidth_Bps.copy(), len(bandwidth_Bps)
    rates, unsettled = np.zeros(len(flows)), np.arange(len(flows))
    while len(unsettled):
        share = capacity / np.maximum(np.bincount(link, minlength=links), 1)
        first = np.cumsum(hops) - hops
        found = np.minimum.reduceat(share[link], first)
        smallest = np.full(links, np.inf)
        np.minimum.at(smallest, link, np.repeat(found, hops))
        bottleneck = smallest >= share * (1 - SAME_TIME)
        settled = np.logical_or.reduceat(bottleneck[link], first)
        rates[unsettled[settled]] = found[settled]
        gone = np.repeat(settled, hops)
        capacity -= np.bincount(link[gone], np.repeat(found[settled], hops[settled]), links)
        capacity = np.maximum(capacity, 0)
        link, hops, unsettled = link[~gone], hops[~settled], unsettled[~settled]
    return rates
