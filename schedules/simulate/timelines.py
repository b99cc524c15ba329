"""Choice of the simulator for transfers, its times in the order of the answer, and link utilization over time."""

from __future__ import annotations

import numpy as np

from ...core.answers import Answer
from ...core.errors import InputError
from ...core.instance import Instance
from ...core.kernel import worth_compiling
from ...core.schedule import Floats, Ints, Sends, offsets, ranges
from ...core.trace import SimulationMode, Trace
from .compiled_runs import compiled_levels
from .events import simulate_by_events, simulate_by_levels, simulate_by_windows
from .fair import simulate_flows
from .network import Rules, TickWires, Timeline, Wires, rules, to_ticks, wires
from .transfers import Transfers, sends_of


def occupied_s(mode: SimulationMode, sends: Sends, chunk_bytes: Floats, columns: Wires, held_s: Floats) -> Floats:
    """Return how long every hop holds its link; where sends share links, its seconds at full bandwidth."""
    if mode in (SimulationMode.CONGESTION_AWARE, SimulationMode.CUT_THROUGH):
        return held_s
    seconds: Floats = np.repeat(chunk_bytes[sends.chunk], sends.hops) / columns.bandwidth_Bps[sends.path_links]
    return seconds


def link_totals(links: int, path_links: Ints, seconds: Floats) -> Floats:
    """Add up the seconds of all hops of each link."""
    return np.bincount(path_links, seconds, minlength=links).astype(np.float64)


def utilization(
    instance: Instance, answer: Answer, trace: Trace, bins: int = 100, *, pieces: int = 1
) -> tuple[Floats, Floats]:
    """Return limits of equal intervals until completion, in seconds, and the utilization of every link in each.

    It is at most 1 with contention; more shows the congestion that a congestion-unaware simulation ignores. The
    seconds of every hop are spread evenly over its duration. The shape is (links, bins).
    """
    if bins < 1:
        raise InputError(f"{bins} parts of the time; expected at least 1", place="bins")
    sends, chunk_bytes = sends_of(instance, answer, pieces=pieces)
    columns, begin, end = wires(instance.topology, instance.timing), trace.hop_start_s, trace.hop_end_s
    links, path_links = len(columns), sends.path_links
    edges = np.linspace(0.0, trace.completion_s, bins + 1)
    if not len(path_links) or trace.completion_s == 0:
        return edges, np.zeros((links, bins))
    width = trace.completion_s / bins
    density = occupied_s(trace.mode, sends, chunk_bytes, columns, end - begin) / (end - begin)
    first = np.minimum((begin / width).astype(np.int64), bins - 1)
    last = np.minimum((end / width).astype(np.int64), bins - 1)
    cells, at = links * (bins + 1), path_links * (bins + 1)
    # A hop fills the bins between its first and its last one; at both ends, what is too much is taken away again.
    steps = np.bincount(at + first, density, cells) - np.bincount(at + last + 1, density, cells)
    full = np.cumsum(steps.reshape(links, bins + 1), axis=1) * width
    excess = np.bincount(at + first, density * (begin - first * width), cells)
    excess += np.bincount(at + last, density * ((last + 1) * width - end), cells)
    used = (full - excess.reshape(links, bins + 1))[:, :bins] / width
    return edges, np.maximum(used, 0.0).astype(np.float64)


def timeline_of(transfers: Transfers, columns: Wires, mode: SimulationMode, *, hold_latency: bool) -> Timeline:
    """Simulate in whole numbers of a common unit if there is one, see :mod:`.network`."""
    if mode is SimulationMode.FAIR_SHARE:
        return simulate_flows(transfers, columns)
    chosen = rules(mode, hold_latency=hold_latency)
    for exact in (False, True):
        counted = to_ticks(transfers, len(transfers.sends.path_links), columns, exact=exact)
        timeline = _simulate(transfers, counted, chosen)
        if not isinstance(counted, TickWires):
            return timeline
        if (found := counted.in_seconds(timeline)) is not None:
            return found
    raise AssertionError("integers of any size hold all times")


def _simulate(transfers: Transfers, columns: Wires, chosen: Rules) -> Timeline:
    """Simulate by the fastest suitable simulator; all suitable ones give the same times."""
    found: Timeline | None = None
    if not (transfers.fixed_order or columns.varying or (isinstance(columns, TickWires) and columns.exact)):
        if worth_compiling(len(transfers.sends)):
            played = compiled_levels(transfers, columns, chosen, keep=True)
            found = None if played is None else played.timeline
        elif transfers.pays is None:
            found = simulate_by_levels(transfers, columns, chosen)
            if found is None and chosen.contended and not worth_compiling(len(transfers.sends.path_links)):
                found = simulate_by_windows(transfers, columns, chosen)
    return simulate_by_events(transfers, columns, chosen) if found is None else found


def trace_of(
    mode: SimulationMode, sends: Sends, chunk_bytes: Floats, links: Wires, timeline: Timeline, place: Ints | None = None
) -> Trace:
    """Return a trace with the times of sends in the order of the answer."""
    held = timeline.hop_end_s - timeline.hop_start_s
    seconds = occupied_s(mode, sends, chunk_bytes, links, held)
    busy = link_totals(len(links), sends.path_links, seconds)
    start_s, end_s = timeline.hop_start_s[sends.path_offset[:-1]], timeline.end_s
    hop_start_s, hop_end_s = timeline.hop_start_s, timeline.hop_end_s
    if place is not None:
        hops, back = np.empty(len(sends), dtype=np.int64), np.argsort(place)
        hops[place] = sends.hops
        moved = np.empty((2, len(hop_start_s)))
        moved[:, ranges(offsets(hops)[place], sends.hops)] = hop_start_s, hop_end_s
        (hop_start_s, hop_end_s), start_s, end_s = moved, start_s[back], end_s[back]
    return Trace(mode, start_s, end_s, hop_start_s, hop_end_s, busy, float(end_s.max(initial=0.0)))
