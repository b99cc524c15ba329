"""A shorter schedule from a schedule in time on circuits: what is late is moved into earlier gaps. It never becomes longer.

*Justification.* Sends go, those that start last first, as late as links and what depends on them allow; then, those that now start first
first, as early as they can, also into gaps. When a send has its turn, all that were placed before it, on its links or in its chunk, are where they
were or farther away from it: so its old place is still free, and the time does not grow.

*Other parents.* A copy that arrives last and is not sent on may come over any link to its target from whoever has the chunk, if that link has
an earlier gap.

Both in turns, until neither helps.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

import numpy as np

from ...core.instance import Instance
from ...core.schedule import Bools, Floats, Ints, Schedule, sends_from_lists
from ...core.timing import Semantics
from ...core.topology import NodeKind, Topology
from .intervals import Busy

#: Turns of justification and other parents, at most.
MAX_TURNS = 50

#: A send that must not start before another one has started, and by how many ticks later.
Edge = tuple[int, int, int]


@dataclass
class Plan:
    """Sends in ticks.

    Parameters
    ----------
    chunk, source, target : list of int
        Of every send.
    links : list of tuple of int
        Its path.
    begin, ticks : list of int
        When it starts, and how long it takes.
    reduce : list of bool
        Whether it adds.
    edges : list of Edge
        What depends on what: ``(first, second, lag)``.
    """

    chunk: list[int]
    source: list[int]
    target: list[int]
    links: list[tuple[int, ...]]
    begin: list[int]
    ticks: list[int]
    reduce: list[bool]
    edges: list[Edge]

    @property
    def finish(self) -> int:
        """Ticks until the last arrival."""
        return max((b + t for b, t in zip(self.begin, self.ticks, strict=True)), default=0)


def justified(instance: Instance, schedule: Schedule) -> Schedule:
    """Give a schedule that is no longer, of the same chunks over the same network.

    Parameters
    ----------
    instance : Instance
        The problem, with a network and the timing of circuits.
    schedule : Schedule
        A schedule that has been verified.

    Returns
    -------
    Schedule
        The schedule itself where nothing is gained, or where it cannot be treated: another timing, chunks that share a link at a switch, or
        a sum that a rank sends on at the instant at which more is on its way to it.
    """
    topology, timing = instance.network, instance.timing
    if not isinstance(topology, Topology) or timing is None or timing.semantics is not Semantics.CIRCUIT:
        return schedule
    plan = _plan(schedule, timing.epoch_s)
    if plan is None:
        return schedule
    before, moved = plan.finish, True
    for _ in range(MAX_TURNS):
        if not moved:
            break
        last = plan.finish
        _justify(plan)
        moved = _other_parents(plan, schedule, topology, timing.epoch_s) or plan.finish < last
        plan.edges = _dependences(plan, schedule.chunks.reduced)
    return _schedule(plan, schedule, timing.epoch_s) if plan.finish < before else schedule


def _plan(schedule: Schedule, tick: Fraction) -> Plan | None:
    """Read a schedule; None if links are shared or dependences are no order of starts."""
    sends = schedule.sends
    begin, end = (
        np.rint(column / float(tick)).astype(np.int64).tolist() for column in (schedule.start_s, schedule.end_s)
    )
    ticks = [e - b for b, e in zip(begin, end, strict=True)]
    paths = [sends.path(i) for i in range(len(sends))]
    chunk, source, target = (column.tolist() for column in (sends.chunk, sends.source, sends.target))
    plan = Plan(chunk, source, target, paths, begin, ticks, sends.reduce.tolist(), [])
    spans = sorted((link, begin[i], end[i]) for i, path in enumerate(paths) for link in path)
    shared = any(a[0] == b[0] and b[1] < a[2] for a, b in pairwise(spans))
    plan.edges = _dependences(plan, schedule.chunks.reduced)
    kept = all(begin[i] + lag <= begin[j] for i, j, lag in plan.edges)
    return plan if kept and not shared and min(ticks, default=1) >= 1 else None


def _dependences(plan: Plan, reduced: Bools) -> list[Edge]:
    """Say which sends come before which: what has arrived at a source before it sends; of sums, what has not arrived comes later still."""
    into: dict[tuple[int, int], list[int]] = defaultdict(list)
    for i, key in enumerate(zip(plan.chunk, plan.target, strict=True)):
        into[key].append(i)
    found: list[Edge] = []
    for j, key in enumerate(zip(plan.chunk, plan.source, strict=True)):
        for i in into[key]:
            if plan.begin[i] + plan.ticks[i] <= plan.begin[j]:
                found.append((i, j, plan.ticks[i]))
            elif reduced[plan.chunk[j]]:
                found.append((j, i, 1))
    return found


def _justify(plan: Plan) -> None:
    """Move all sends late, then early, until that gains nothing."""
    while True:
        before, finish = plan.begin, plan.finish
        end = [finish - b - t for b, t in zip(plan.begin, plan.ticks, strict=True)]
        mirrored = [(j, i, lag + plan.ticks[j] - plan.ticks[i]) for i, j, lag in plan.edges]
        order = sorted(range(len(end)), key=lambda i: (-before[i], i))
        late = _serial(plan, order, mirrored)
        right = [finish - b - t for b, t in zip(late, plan.ticks, strict=True)]
        plan.begin = _serial(plan, sorted(range(len(end)), key=lambda i: (right[i], i)), plan.edges)
        if plan.finish == finish:
            return


def _serial(plan: Plan, order: Sequence[int], edges: Sequence[Edge]) -> list[int]:
    """Place the sends in order, each as early as it can, also into gaps."""
    first: list[list[tuple[int, int]]] = [[] for _ in plan.begin]
    for i, j, lag in edges:
        first[j].append((i, lag))
    busy, begin = Busy(), [0] * len(plan.begin)
    for j in order:
        ready = max((begin[i] + lag for i, lag in first[j]), default=0)
        begin[j] = busy.earliest(plan.links[j], max(0, ready), plan.ticks[j])
        busy.take(plan.links[j], begin[j], begin[j] + plan.ticks[j])
    return begin


def _other_parents(plan: Plan, schedule: Schedule, topology: Topology, tick: Fraction) -> bool:
    """Give copies that arrive last and are not sent on another parent where they then arrive earlier; whether there was one."""
    finish, busy = plan.finish, Busy()
    for links, b, t in zip(plan.links, plan.begin, plan.ticks, strict=True):
        busy.take(links, b, b + t)
    have = _arrivals(plan, schedule, topology)
    sent_on = {(plan.chunk[i], plan.source[i]) for i in range(len(plan.begin))}
    size = schedule.chunks.unit_bytes
    moved = False
    for i in range(len(plan.begin)):
        key = plan.chunk[i], plan.target[i]
        if plan.begin[i] + plan.ticks[i] < finish or key in sent_on or schedule.chunks.reduced[key[0]]:
            continue
        best: tuple[int, int, int] | None = None
        for e, (a, b) in enumerate(topology.link_ends):
            if b != key[1] or (key[0], a) not in have or topology.nodes[a].kind is NodeKind.SWITCH:
                continue
            link = topology.links[e]
            seconds = link.latency_s + int(schedule.chunks.units[key[0]]) * size / link.bandwidth_Bps
            ticks = -int(-seconds // tick)
            start = busy.earliest((e,), have[key[0], a], ticks)
            if best is None or start + ticks < best[0]:
                best = start + ticks, e, ticks
        if best is not None and best[0] < finish:
            busy.give_back(plan.links[i], plan.begin[i], plan.begin[i] + plan.ticks[i])
            end, e, plan.ticks[i] = best
            plan.begin[i], plan.links[i], plan.source[i] = end - best[2], (e,), topology.link_ends[e][0]
            busy.take((e,), plan.begin[i], end)
            moved = True
    return moved


def _arrivals(plan: Plan, schedule: Schedule, topology: Topology) -> dict[tuple[int, int], int]:
    """When a node first has a chunk that is copied."""
    have: dict[tuple[int, int], int] = {}
    for i in range(len(plan.begin)):
        key, end = (plan.chunk[i], plan.target[i]), plan.begin[i] + plan.ticks[i]
        have[key] = min(have.get(key, end), end)
    for c, group in enumerate(schedule.chunks.held_by.tolist()):
        have.update(((c, topology.rank_nodes[rank]), 0) for rank in schedule.chunks.groups[group])
    return have


def _schedule(plan: Plan, schedule: Schedule, tick: Fraction) -> Schedule:
    """Write the plan down."""
    sends = sends_from_lists(plan.chunk, plan.source, plan.target, plan.reduce, plan.links)
    begin: Ints = np.array(plan.begin, dtype=np.int64)
    end: Ints = begin + np.array(plan.ticks, dtype=np.int64)
    return replace(schedule, sends=sends, start_s=_seconds(begin, tick), end_s=_seconds(end, tick))


def _seconds(ticks: Ints, tick: Fraction) -> Floats:
    return np.asarray(ticks * float(tick.numerator) / float(tick.denominator), dtype=np.float64)
