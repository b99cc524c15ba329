"""Simulation in windows of time, many hops at once.

An event at time t has consequences only from ``t + d`` on, where d is the least time that any chunk takes over any
link. So all requests for links within d of the earliest can be served together, each link's sends in their order.
"""

from __future__ import annotations

import numpy as np

from ...core.schedule import Floats, Ints
from .gates import gates_of
from .network import Wires
from .queues import Queues
from .timing import Rules, Timeline
from .transfers import Transfers

#: A window is shorter than d by this part of it, so that rounded times stay out of it.
MARGIN = 1e-6

#: A window costs as much as so many hops in the event loop, and one more for every so many hops that are kept waiting.
HOPS_PER_WINDOW, WAITING_PER_HOP = 32, 512

#: Number of windows before the costs are compared.
TRIAL = 64


def simulate_by_windows(transfers: Transfers, wires: Wires, rules: Rules) -> Timeline | None:
    """Simulate window by window.

    Parameters
    ----------
    rules : Rules
        Timing of chunks on links, with contention.

    Returns
    -------
    Timeline or None
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
    end_s, came, hop_start, hop_end = (
        np.zeros(len(sends)),
        np.zeros(len(sends)),
        np.zeros(len(links)),
        np.zeros(len(links)),
    )
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
