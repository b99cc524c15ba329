"""Shortening of circuit schedules by moving late sends into earlier gaps; they never become longer.

*Justification.* Sends, those that start last first, are placed as late as links and dependent sends allow; then, in
the new order of starts, as early as possible, also into gaps. When a send is placed, those placed before it, on its
links or of its chunk, are where they were or have moved away: so its old place is still free, and the schedule does
not become longer.

*Other parents.* A copy that arrives last and is not forwarded may come over any link to its target from any holder
of the chunk, if that link has an earlier gap.

Both alternate until neither helps.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

import numpy as np

from ...core.grouping import group_by_key
from ...core.instance import Instance
from ...core.schedule import Bools, Schedule, sends_from_lists
from ...core.timing import Semantics
from ...core.topology import NodeKind, Topology

MAX_ROUNDS = 50  #: rounds of justification and of other parents, at most

#: ``(first, second, lag)``: the second send starts at least ``lag`` ticks after the start of the first.
Precedence = tuple[int, int, int]


class BusyIntervals:
    """Busy intervals of links in whole ticks, and the earliest interval in which several links are free."""

    def __init__(self) -> None:
        self._spans: dict[int, list[tuple[int, int]]] = {}

    def take(self, links: Sequence[int], begin: int, end: int) -> None:
        """Reserve free links from one tick to another."""
        for link in links:
            insort(self._spans.setdefault(link, []), (begin, end))

    def give_back(self, links: Sequence[int], begin: int, end: int) -> None:
        """Undo :meth:`take`."""
        for link in links:
            self._spans[link].remove((begin, end))

    def earliest(self, links: Sequence[int], ready: int, ticks: int) -> int:
        """Return the first tick from ``ready`` on from which all links are free for so many ticks."""
        begin, clash = ready, True
        while clash:
            clash = False
            for link in links:
                spans = self._spans.get(link, [])
                last = bisect_left(spans, (begin + ticks,)) - 1  # the last busy interval that may overlap
                if last >= 0 and spans[last][1] > begin:
                    begin, clash = spans[last][1], True
        return begin


@dataclass
class TimedSends:
    """Sends with times in ticks."""

    chunk: list[int]  #: chunk and both nodes of every send
    source: list[int]
    target: list[int]
    links: list[tuple[int, ...]]  #: path of every send, in order
    begin: list[int]  #: start and duration of every send
    ticks: list[int]
    reduce: list[bool]  #: True for sends that add to the receiver's data
    precedences: list[Precedence]

    @property
    def finish(self) -> int:
        """Ticks until the last arrival."""
        return max((b + t for b, t in zip(self.begin, self.ticks, strict=True)), default=0)


def justify_schedule(instance: Instance, schedule: Schedule, stop: Callable[[], bool] = lambda: False) -> Schedule:
    """Return a schedule of the same chunks over the same network that is no longer than a verified one.

    This is the schedule itself if nothing is gained, or if it is not supported: timing other than that of circuits,
    chunks that share a link at a switch, or a sum that a rank forwards while a later contribution is in transit to it.
    """
    topology, timing = instance.network, instance.timing
    if not isinstance(topology, Topology) or timing is None or timing.semantics is not Semantics.CIRCUIT:
        return schedule
    timed = _to_timed_sends(schedule, timing.epoch_s)
    if timed is None:
        return schedule
    before, gains = timed.finish, True
    for _ in range(MAX_ROUNDS):
        if not gains or stop():
            break
        last = timed.finish
        _justify(timed, stop)
        gains = _change_parents(timed, schedule, topology, timing.epoch_s) or timed.finish < last
        timed.precedences = _list_precedences(timed, schedule.chunks.reduced)
    if timed.finish >= before:
        return schedule
    sends = sends_from_lists(timed.chunk, timed.source, timed.target, timed.reduce, timed.links)
    begin, duration = np.array(timed.begin, dtype=np.int64), np.array(timed.ticks, dtype=np.int64)
    up, down = map(float, timing.epoch_s.as_integer_ratio())
    start_s, end_s = (np.asarray(ticks * up / down, dtype=np.float64) for ticks in (begin, begin + duration))
    return replace(schedule, sends=sends, start_s=start_s, end_s=end_s)


def _to_timed_sends(schedule: Schedule, tick: Fraction) -> TimedSends | None:
    """Convert a schedule; None if sends share a link at the same time or start against their precedences."""
    sends = schedule.sends
    times = schedule.start_s, schedule.end_s
    begin, end = (np.rint(column / float(tick)).astype(np.int64).tolist() for column in times)
    ticks = [e - b for b, e in zip(begin, end, strict=True)]
    paths = [sends.path(i) for i in range(len(sends))]
    chunk, source, target = (column.tolist() for column in (sends.chunk, sends.source, sends.target))
    timed = TimedSends(chunk, source, target, paths, begin, ticks, sends.reduce.tolist(), [])
    spans = sorted((link, begin[i], end[i]) for i, path in enumerate(paths) for link in path)
    shared = any(a[0] == b[0] and b[1] < a[2] for a, b in pairwise(spans))
    timed.precedences = _list_precedences(timed, schedule.chunks.reduced)
    respected = all(begin[i] + lag <= begin[j] for i, j, lag in timed.precedences)
    return timed if respected and not shared and min(ticks, default=1) >= 1 else None


def _list_precedences(timed: TimedSends, reduced: Bools) -> list[Precedence]:
    """List precedences: arrivals at a source before its sends; for sums, also sends before later arrivals."""
    into = group_by_key((key, i) for i, key in enumerate(zip(timed.chunk, timed.target, strict=True)))
    precedences: list[Precedence] = []
    for j, key in enumerate(zip(timed.chunk, timed.source, strict=True)):
        for i in into[key]:
            if timed.begin[i] + timed.ticks[i] <= timed.begin[j]:
                precedences.append((i, j, timed.ticks[i]))
            elif reduced[timed.chunk[j]]:
                precedences.append((j, i, 1))
    return precedences


def _justify(timed: TimedSends, stop: Callable[[], bool]) -> None:
    """Move all sends late, then early, until nothing is gained."""
    while not stop():
        before, finish = timed.begin, timed.finish
        end = [finish - b - t for b, t in zip(timed.begin, timed.ticks, strict=True)]
        # In reversed time a send starts at its end, so that lags change by the difference of the durations.
        mirrored = [(j, i, lag + timed.ticks[j] - timed.ticks[i]) for i, j, lag in timed.precedences]
        order = sorted(range(len(end)), key=lambda i: (-before[i], i))
        reversed_begin = _place_in_order(timed, order, mirrored)
        latest = [finish - b - t for b, t in zip(reversed_begin, timed.ticks, strict=True)]
        timed.begin = _place_in_order(timed, sorted(range(len(end)), key=lambda i: (latest[i], i)), timed.precedences)
        if timed.finish == finish:
            return


def _place_in_order(timed: TimedSends, order: Sequence[int], precedences: Sequence[Precedence]) -> list[int]:
    """Place the sends in order, each as early as possible, also into gaps."""
    predecessors = group_by_key((j, (i, lag)) for i, j, lag in precedences)
    busy, begin = BusyIntervals(), [0] * len(timed.begin)
    for j in order:
        ready = max((begin[i] + lag for i, lag in predecessors[j]), default=0)
        begin[j] = busy.earliest(timed.links[j], max(0, ready), timed.ticks[j])
        busy.take(timed.links[j], begin[j], begin[j] + timed.ticks[j])
    return begin


def _change_parents(timed: TimedSends, schedule: Schedule, topology: Topology, tick: Fraction) -> bool:
    """Let copies that arrive last and are not forwarded come from another parent, if that is earlier."""
    finish, busy = timed.finish, BusyIntervals()
    for links, b, t in zip(timed.links, timed.begin, timed.ticks, strict=True):
        busy.take(links, b, b + t)
    arrival: dict[tuple[int, int], int] = {}  # the tick from which a node has a chunk, by chunk and node
    for chunk, target, b, t in zip(timed.chunk, timed.target, timed.begin, timed.ticks, strict=True):
        arrival[chunk, target] = min(arrival.get((chunk, target), b + t), b + t)
    for chunk, group in enumerate(schedule.chunks.held_by.tolist()):
        arrival.update(((chunk, topology.rank_nodes[rank]), 0) for rank in schedule.chunks.groups[group])
    forwarded = {(timed.chunk[i], timed.source[i]) for i in range(len(timed.begin))}
    size = schedule.chunks.unit_bytes
    gains = False
    for i in range(len(timed.begin)):
        key = timed.chunk[i], timed.target[i]
        if timed.begin[i] + timed.ticks[i] < finish or key in forwarded or schedule.chunks.reduced[key[0]]:
            continue
        best: tuple[int, int, int] | None = None
        for e, (a, b) in enumerate(topology.link_ends):
            if b != key[1] or (key[0], a) not in arrival or topology.nodes[a].kind is NodeKind.SWITCH:
                continue
            link = topology.links[e]
            seconds = link.latency_s + int(schedule.chunks.units[key[0]]) * size / link.bandwidth_Bps
            ticks = -int(-seconds // tick)
            start = busy.earliest((e,), arrival[key[0], a], ticks)
            if best is None or start + ticks < best[0]:
                best = start + ticks, e, ticks
        if best is not None and best[0] < finish:
            busy.give_back(timed.links[i], timed.begin[i], timed.begin[i] + timed.ticks[i])
            end, e, timed.ticks[i] = best
            timed.begin[i], timed.links[i], timed.source[i] = end - best[2], (e,), topology.link_ends[e][0]
            busy.take((e,), timed.begin[i], end)
            gains = True
    return gains
