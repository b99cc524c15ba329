"""Simulation level by level, for schedules with millions of sends.

Levels are processed in turn. That preserves the first-come-first-served order of a link only if no send of a later
level asks for it before a send of an earlier one, which is checked for every send; otherwise :mod:`.windows` or
:mod:`.events` is needed.
"""

from __future__ import annotations

import numpy as np

from ...core.schedule import Ints
from .network import Wires
from .queues import Queues
from .timing import Rules, Timeline
from .transfers import Transfers

#: Fewer sends than this per call of numpy are faster in the event loop.
WORTHWHILE = 16


def level_starts(leaves: Ints) -> list[int]:
    """Return the first position of each level among sends sorted by level."""
    return [0, *(np.flatnonzero(leaves[1:] != leaves[:-1]) + 1).tolist()] if len(leaves) else []


def simulate_by_levels(transfers: Transfers, wires: Wires, rules: Rules) -> Timeline | None:
    """Simulate level by level.

    Parameters
    ----------
    transfers : Transfers
        Sends that all arrive for the next level.

    Returns
    -------
    Timeline or None
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
