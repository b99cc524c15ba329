"""Compiled simulation of sends in the order in which links serve them, for schedules of millions of sends."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.kernel import kernel
from .gates import gates_of
from .network import Wires
from .timing import Rules, Timeline
from .transfers import Transfers


def compiled_in_order(transfers: Transfers, wires: Wires, rules: Rules) -> Timeline | None:
    """Simulate one send after the other; None if one waits for another one that comes later in the order.

    Parameters
    ----------
    transfers : Transfers
        What is sent, in the order in which links serve it.
    wires : Wires
        The links.
    rules : Rules
        How chunks pass them.
    """
    sends, gates = transfers.sends, gates_of(transfers)
    gate = np.empty(len(sends), dtype=np.int64)
    gate[gates.members] = np.repeat(np.arange(len(gates.missing)), np.diff(gates.member_offset))
    chunk = np.repeat(sends.chunk, sends.hops)
    serialization = wires.passing_s(transfers.chunk_bytes, chunk, sends.path_links)
    times = [np.zeros(len(column)) for column in (sends, sends.path_links, sends.path_links)]
    columns = (sends.path_offset, sends.path_links, serialization, wires.latency_s)
    waits = (gate, gates.fed_by, gates.following, gates.missing, gates.opens_s)
    how = (rules.streaming, rules.contended, rules.hold_latency)
    return Timeline(*times) if _run(*columns, *waits, *how, *times) else None


@kernel
def _run(
    offset: Any,
    links: Any,
    serialization: Any,
    latency: Any,
    gate: Any,
    fed_by: Any,
    following: Any,
    missing: Any,
    opens: Any,
    streaming: bool,
    contended: bool,
    hold_latency: bool,
    end: Any,
    hop_start: Any,
    hop_end: Any,
) -> bool:
    """Fill in the times; see :class:`~cwb.schedules.simulate.timing.Rules`."""
    free = np.zeros(len(latency))
    ready = np.zeros(len(missing), dtype=np.bool_)
    for first in range(len(missing)):  # what waits for nothing, and what waits behind it for nothing else
        at = first
        while at >= 0 and missing[at] == 0 and not ready[at]:
            ready[at] = True
            at = following[at]
            if at >= 0:
                missing[at] -= 1
    for send in range(len(gate)):
        if missing[gate[send]]:
            return False
        head = tail = opens[gate[send]]
        for entry in range(offset[send], offset[send + 1]):
            link = links[entry]
            begin = head if streaming else tail
            begin = max(begin, free[link])
            last = max(begin + serialization[entry], tail)
            if contended:
                free[link] = last + latency[link] if hold_latency else last
            hop_start[entry], hop_end[entry] = begin, last
            head, tail = begin + latency[link], last + latency[link]
        end[send] = tail
        at, time = fed_by[send], tail
        while at >= 0:
            time = max(time, opens[at])
            opens[at] = time
            missing[at] -= 1
            if missing[at]:
                break
            at = following[at]
    return True
