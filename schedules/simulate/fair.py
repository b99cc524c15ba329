"""Simulation of flows: simultaneous sends share every link, max-min fairly.

A send flows over all links of its path at once, at one rate; the last byte arrives the path's latency after it has
left. Rates change only when a send begins or ends; the simulation jumps from one such event to the next.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np

from ...core.errors import InputError
from ...core.ragged import ranges
from ...core.schedule import Floats, Ints
from .gates import gates_of
from .network import Wires
from .timing import Timeline
from .transfers import Transfers

#: Sends whose ends differ by less than this part of the time end together: they differ by rounding only.
SAME_TIME = 1e-12


def simulate_flows(transfers: Transfers, wires: Wires) -> Timeline:
    """Simulate sends, in any order, as fluid flows.

    Raises
    ------
    InputError
        If a bandwidth varies over time.
    """
    if wires.varying:
        raise InputError("flows share links of constant bandwidth only", place="timing.changes")
    sends = transfers.sends
    count = len(sends)
    delay = np.add.reduceat(wires.latency_s[sends.path_links], sends.path_offset[:-1]) if count else np.zeros(0)
    left = transfers.chunk_bytes[sends.chunk]
    start_s, left_s = np.zeros(count), np.zeros(count)
    gates = gates_of(transfers)
    coming = [(0.0, send) for send in gates.at_start().tolist()]
    heapify(coming)
    active: Ints = np.zeros(0, dtype=np.int64)
    now = 0.0
    while coming or len(active):
        if not len(active):
            now = coming[0][0]
        begun: list[int] = []
        while coming and coming[0][0] <= now * (1 + SAME_TIME):
            begun.append(heappop(coming)[1])
        start_s[begun] = now
        active = np.concatenate([active, np.array(begun, dtype=np.int64)])
        rate = fair_rates(sends.path_links, sends.path_offset, active, wires.bandwidth_Bps)
        ends = now + left[active] / rate
        until = min(float(ends.min()), coming[0][0] if coming else np.inf)
        ended = ends <= until * (1 + SAME_TIME)
        left[active] -= rate * (until - now)
        finished, active, now = active[ended], active[~ended], until
        left_s[finished] = now
        released, times = gates.arrive(finished, now + delay[finished])
        for arrival in zip(times.tolist(), released.tolist(), strict=True):
            heappush(coming, arrival)
    gates.require_all_open()
    return Timeline(left_s + delay, np.repeat(start_s, sends.hops), np.repeat(left_s, sends.hops))


def fair_rates(path_links: Ints, path_offset: Ints, flows: Ints, bandwidth_Bps: Floats) -> Floats:
    """Compute max-min fair rates: a flow can only gain from flows that are no faster.

    Parameters
    ----------
    path_links, path_offset : array of int
        Links of the paths of all sends.
    flows : array of int
        Sends that are active at the time.

    Returns
    -------
    array of float, shape (flows,)
        Rates by water filling: a link whose equal share is the smallest on the path of any of its flows is a
        bottleneck and fixes their rates. The remaining bandwidth is shared by the other flows in the same way.
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
