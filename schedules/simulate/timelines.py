"""Choice of the simulator for transfers, and its times in the order of the answer."""

from __future__ import annotations

import numpy as np

from ...core.kernel import worth_compiling
from ...core.ragged import offsets, ranges
from ...core.schedule import Floats, Ints, Sends
from ...core.trace import SimulationMode, Trace
from .compiled_levels import compiled_levels
from .events import simulate_by_events, simulate_in_order
from .fair import simulate_flows
from .levels import simulate_by_levels
from .network import Wires
from .occupancy import link_totals, occupied_s
from .ticks import TickWires, to_ticks
from .timing import Rules, Timeline, rules
from .transfers import Transfers
from .windows import simulate_by_windows


def timeline_of(transfers: Transfers, columns: Wires, mode: SimulationMode, *, hold_latency: bool) -> Timeline:
    """Simulate in whole numbers of a common unit if there is one, see :mod:`.ticks`."""
    if mode is SimulationMode.FAIR_SHARE:
        return simulate_flows(transfers, columns)
    chosen = rules(mode, hold_latency=hold_latency)
    for exact in (False, True):
        wires = to_ticks(transfers, len(transfers.sends.path_links), columns, exact=exact)
        timeline = _simulate(transfers, wires, chosen)
        if not isinstance(wires, TickWires):
            return timeline
        if (found := wires.in_seconds(timeline)) is not None:
            return found
    raise AssertionError("integers of any size hold all times")


def _simulate(transfers: Transfers, columns: Wires, chosen: Rules) -> Timeline:
    """Simulate by the fastest suitable simulator; all suitable ones give the same times."""
    exact = isinstance(columns, TickWires) and columns.exact
    large = worth_compiling(len(transfers.sends)) and not columns.varying
    one_by_one = simulate_by_events if chosen.contended else simulate_in_order
    if transfers.fixed_order or exact or (transfers.pays is not None and not large):
        return (simulate_in_order if transfers.fixed_order else one_by_one)(transfers, columns, chosen)
    found = (compiled_levels if large else simulate_by_levels)(transfers, columns, chosen)
    if found is None and chosen.contended and transfers.pays is None:
        found = simulate_by_windows(transfers, columns, chosen)
    return one_by_one(transfers, columns, chosen) if found is None else found


def trace_of(
    mode: SimulationMode,
    sends: Sends,
    chunk_bytes: Floats,
    columns: Wires,
    timeline: Timeline,
    place: Ints | None = None,
) -> Trace:
    """Return a trace with the times of sends in the order of the answer."""
    held = timeline.hop_end_s - timeline.hop_start_s
    seconds = occupied_s(mode, sends, chunk_bytes, columns, held)
    busy = link_totals(len(columns), sends.path_links, seconds)
    start_s, end_s = timeline.hop_start_s[sends.path_offset[:-1]], timeline.end_s
    hop_start_s, hop_end_s = timeline.hop_start_s, timeline.hop_end_s
    if place is not None:
        hop_start_s = _in_answer_order(sends, place, hop_start_s)
        hop_end_s = _in_answer_order(sends, place, hop_end_s)
        back = np.argsort(place)
        start_s, end_s = start_s[back], end_s[back]
    return Trace(mode, start_s, end_s, hop_start_s, hop_end_s, busy, float(end_s.max(initial=0.0)))


def _in_answer_order(sends: Sends, place: Ints, column: Floats) -> Floats:
    """Return a column of hops in the order of the answer."""
    hops = np.empty(len(sends), dtype=np.int64)
    hops[place] = sends.hops
    placed = np.empty_like(column)
    placed[ranges(offsets(hops)[place], sends.hops)] = column
    return placed
