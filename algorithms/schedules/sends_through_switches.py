"""Replacement of sends into and out of switches by sends from rank to rank through them.

A switch without multicast or with a limited buffer forwards each received chunk only once. Changing the time or the
partner of one of its sends alone would break this rule; a send whose path contains the switch cannot break it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import numpy as np

from ...core.schedule import Floats, Schedule, Sends, StepSchedule, sends_from_lists
from ...core.topology import NodeKind, Topology

_SAME_TIME = 1e-9  #: times closer than this part of the schedule's length are one instant that was rounded


class _Arrival(NamedTuple):
    """Data of a chunk at a switch: original sender, its departure time, and the links so far."""

    source: int
    left: float
    links: tuple[int, ...]


def join_sends_at_switches(
    topology: Topology, answer: StepSchedule | Schedule, *, sums: bool
) -> StepSchedule | Schedule:
    """Join the sends of a correct schedule at switches without multicast or with a limited buffer.

    The result is a timed schedule if any sends were joined. A joined send leaves its first rank and reaches its last
    one at the times of the old sends. If a switch forwards data several times, or adds data up, there is one send
    through it per copy or summand. ``sums`` joins sends of sums also at switches with an unlimited buffer.
    """
    sends, reduced = answer.sends, answer.chunks.reduced[answer.sends.chunk]
    if isinstance(answer, StepSchedule):
        start: Floats = answer.step.astype(np.float64)
        end: Floats = (answer.step + 1).astype(np.float64)
    else:
        start, end = answer.start_s, answer.end_s
    switches = [(n, x) for n, x in enumerate(topology.nodes) if x.kind is NodeKind.SWITCH]
    full = np.unique([*(n for n, x in switches if x.buffer_bytes is not None), *sends.source[end <= start].tolist()])
    once = [n for n, x in switches if not x.copies]
    at = [np.isin(ends, full) | (np.isin(ends, once) & (sums | ~reduced)) for ends in (sends.source, sends.target)]
    if not (at[0] | at[1]).any():
        return answer
    held: dict[tuple[int, int], list[_Arrival]] = defaultdict(list)
    going: dict[int, list[_Arrival]] = {}
    rows: list[tuple[int, int, int, bool, tuple[int, ...], float, float]] = []
    inside, reads = at[1].tolist(), at[0].tolist()
    copies = [node.copies for node in topology.nodes]
    columns = zip(*(c.tolist() for c in (sends.chunk, sends.source, sends.target, sends.reduce, reduced)), strict=True)
    facts = list(columns)
    count = len(sends)
    for event in _events(answer.sends, start, end):
        send = event % count
        chunk, source, target, adds, summed = facts[send]
        if event < count:
            links = tuple(sends.path(send))
            there = [_Arrival(source, float(start[send]), ())]
            if reads[send]:
                there = held[chunk, source] if summed else held[chunk, source][-1:]
                if not summed and not copies[source]:
                    held[chunk, source] = held[chunk, source][:-1]
            going[send] = [_Arrival(each.source, each.left, each.links + links) for each in there]
        elif inside[send]:
            kept = [] if summed and not adds else held[chunk, target]
            held[chunk, target] = [*kept, *going.pop(send)]
        else:
            arrives = float(end[send])
            came = [each for each in going.pop(send) if each.source != target]
            rows += [(chunk, each.source, target, adds, each.links, each.left, arrives) for each in came]
    chunks, sources, targets, flags, paths, left, arrived = map(list, zip(*rows, strict=True))
    joined = sends_from_lists(chunks, sources, targets, flags, paths)
    return Schedule(answer.instance_sha256, answer.chunks, joined, np.array(left), np.array(arrived))


def _events(sends: Sends, start: Floats, end: Floats) -> list[int]:
    """Sort the events: number i is the start of send i, and ``len(sends) + i`` its arrival.

    At equal times arrivals come first, then sends that take no time, in the order of their path, then other starts.
    """
    instant = np.unique(np.concatenate([start, end]))
    place = np.cumsum(np.diff(instant, prepend=instant[:1]) > _SAME_TIME * instant[-1])
    begin, arrive = (place[np.searchsorted(instant, times)] for times in (start, end))
    at_once = np.flatnonzero(begin == arrive).tolist()
    level = np.zeros(len(sends), dtype=np.int64)
    into: dict[tuple[int, int, int], int] = {}
    keys = [(int(sends.chunk[n]), int(begin[n])) for n in at_once]
    for _ in at_once:
        before = dict(into)
        for send, key in zip(at_once, keys, strict=True):
            level[send] = into.get((*key, int(sends.source[send])), 0)
            there = (*key, int(sends.target[send]))
            into[there] = max(into.get(there, 0), int(level[send]) + 1)
        if into == before:
            break
    last = 2 * int(level.max(initial=0))
    same = begin == arrive
    phase = np.concatenate([np.where(same, 1 + 2 * level, last + 3), np.where(same, 2 + 2 * level, 0)])
    found: list[int] = np.lexsort((phase, np.concatenate([begin, arrive]))).tolist()
    return found
