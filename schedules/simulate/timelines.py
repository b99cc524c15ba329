"""Choice of the simulator for transfers, its times in the order of the answer, and link utilization over time.

Simultaneous sends that share links do so max-min fairly (docs/schedules/simulators.md, "Fair-share"); the simulation
jumps from one begin or end of a send to the next.
"""

from heapq import heappop, heappush

import numpy as np

from ...core.answers import Answer
from ...core.errors import InputError
from ...core.instance import Instance
from ...core.kernel import worth_compiling
from ...core.schedule import Floats, Ints, Sends, offsets, ranges
from ...core.trace import SimulationMode, Trace
from .compiled_runs import compiled_levels
from .events import count_arrival, gates_of, simulate_by_events, simulate_by_levels, simulate_by_windows, start_sends
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
    if len(begin) != len(path_links):
        raise InputError(f"{len(begin):,} hops; expected {len(path_links):,} over the schedule's paths", place="trace")
    if not (end > begin).all():
        raise InputError("hops take no time within the precision of floats; expected slower links", place="trace")
    width = trace.completion_s / bins
    density = occupied_s(trace.mode, sends, chunk_bytes, columns, end - begin) / (end - begin)
    first, last = (np.minimum((when / width).astype(np.int64), bins - 1) for when in (begin, end))
    cells, at = links * (bins + 1), path_links * (bins + 1)
    # A hop fills the bins between its first and its last one; at both ends, what is too much is taken away again.
    steps = np.bincount(at + first, density, cells) - np.bincount(at + last + 1, density, cells)
    full = np.cumsum(steps.reshape(links, bins + 1), axis=1) * width
    excess = np.bincount(at + first, density * (begin - first * width), cells)
    excess += np.bincount(at + last, density * ((last + 1) * width - end), cells)
    share = (full - excess.reshape(links, bins + 1))[:, :bins] / width
    return edges, np.maximum(share, 0.0).astype(np.float64)


def timeline_of(
    transfers: Transfers, columns: Wires, mode: SimulationMode, *, hold_latency: bool, levels: bool = True
) -> Timeline:
    """Simulate in whole numbers of a common unit if there is one, see :mod:`.network`; by levels only if that works."""
    if mode is SimulationMode.FAIR_SHARE:
        return simulate_flows(transfers, columns)
    how = rules(mode, hold_latency=hold_latency)
    for exact in (False, True):
        counted = to_ticks(transfers, len(transfers.sends.path_links), columns, exact=exact)
        timeline = (_simulate if levels or exact else simulate_by_events)(transfers, counted, how)
        if not isinstance(counted, TickWires):
            return timeline
        if (result := counted.in_seconds(timeline)) is not None:
            return result
    raise AssertionError("integers of any size hold all times")


def _simulate(transfers: Transfers, columns: Wires, how: Rules) -> Timeline:
    """Simulate by the fastest suitable simulator; all suitable ones give the same times."""
    timeline: Timeline | None = None
    if not (transfers.fixed_order or columns.varying or (isinstance(columns, TickWires) and columns.exact)):
        if worth_compiling(len(transfers.sends)):
            played = compiled_levels(transfers, columns, how, keep=True)
            timeline = None if played is None else played.timeline
        elif transfers.pays is None:
            timeline = simulate_by_levels(transfers, columns, how)
            if timeline is None and how.contended and not worth_compiling(len(transfers.sends.path_links)):
                timeline = simulate_by_windows(transfers, columns, how)
    return simulate_by_events(transfers, columns, how) if timeline is None else timeline


def trace_of(
    mode: SimulationMode, sends: Sends, chunk_bytes: Floats, links: Wires, timeline: Timeline, place: Ints | None = None
) -> Trace:
    """Return a trace with the times of sends in the order of the answer."""
    hop_s = timeline.hop_end_s - timeline.hop_start_s
    seconds = occupied_s(mode, sends, chunk_bytes, links, hop_s)
    busy = link_totals(len(links), sends.path_links, seconds)
    start_s, end_s = timeline.hop_start_s[sends.path_offset[:-1]], timeline.end_s
    hop_start_s, hop_end_s = timeline.hop_start_s, timeline.hop_end_s
    if place is not None:
        hops, back = np.empty(len(sends), dtype=np.int64), np.argsort(place)
        hops[place] = sends.hops
        hop_times = np.empty((2, len(hop_start_s)))
        hop_times[:, ranges(offsets(hops)[place], sends.hops)] = hop_start_s, hop_end_s
        (hop_start_s, hop_end_s), start_s, end_s = hop_times, start_s[back], end_s[back]
    return Trace(mode, start_s, end_s, hop_start_s, hop_end_s, busy, float(end_s.max(initial=0.0)))


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
    rest = transfers.chunk_bytes[sends.chunk]
    start_s, left_s = np.zeros(count), np.zeros(count)
    gates, ranks = gates_of(transfers), _Ranks(transfers, wires)
    first = _SENT if transfers.pays is None else _READY
    # What is coming is (time, stage * count + send); what gates release comes in the first stage.
    coming: list[tuple[float, int]] = []
    released = gates, start_s, coming, range(first * count, (first + 1) * count)
    start_sends(*released)
    end_s, now = np.zeros(count), 0.0
    active: Ints = np.zeros(0, dtype=np.int64)
    while coming or len(active):
        if not len(active):
            now = coming[0][0]
        fresh: list[int] = []
        while coming and coming[0][0] <= now * (1 + SAME_TIME):
            time, event = heappop(coming)
            stage, send = divmod(event, count)
            if stage == _READY and (leaves := ranks.send(send, time)) > now * (1 + SAME_TIME):
                heappush(coming, (leaves, _SENT * count + send))
            elif stage == _ARRIVED:
                end_s[send] = ranks.add(send, time)
                heappush(coming, (float(end_s[send]), _ADDED * count + send))
            elif stage == _ADDED:
                count_arrival(gates.fed_by[send], time, *released)
            else:
                fresh.append(send)
        start_s[fresh] = now
        active = np.concatenate([active, np.array(fresh, dtype=np.int64)])
        if not len(active):
            continue
        rate = fair_rates(sends.path_links, sends.path_offset, active, ranks.bandwidth_Bps)
        ends = now + rest[active] / rate
        until = min(float(ends.min()), coming[0][0] if coming else np.inf)
        ended = ends <= until * (1 + SAME_TIME)
        rest[active] -= rate * (until - now)
        finished, active, now = active[ended], active[~ended], until
        left_s[finished] = now
        end_s[finished] = now + delay[finished]
        for send in finished.tolist():
            if ranks.adds_later[send]:
                heappush(coming, (float(end_s[send]), _ARRIVED * count + send))
            else:
                count_arrival(gates.fed_by[send], float(end_s[send]), *released)
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
        least = np.minimum.reduceat(share[link], first)
        smallest = np.full(links, np.inf)
        np.minimum.at(smallest, link, np.repeat(least, hops))
        bottleneck = smallest >= share * (1 - SAME_TIME)
        settled = np.logical_or.reduceat(bottleneck[link], first)
        rates[unsettled[settled]] = least[settled]
        is_fixed = np.repeat(settled, hops)
        capacity -= np.bincount(link[is_fixed], np.repeat(least[settled], hops[settled]), links)
        capacity = np.maximum(capacity, 0)
        link, hops, unsettled = link[~is_fixed], hops[~settled], unsettled[~settled]
    return rates
