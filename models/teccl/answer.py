"""From sends in epochs to a schedule in seconds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from ...core.instance import Instance
from ...core.schedule import Chunks, Schedule, sends_from_lists
from .commodities import chunks_of
from .epochs import EpochProblem


@dataclass(frozen=True, order=True)
class EpochSend:
    """A chunk that goes over a link, or over several through nodes that pass it on at once.

    Parameters
    ----------
    start : int
        Epoch in which it starts over the first link; over each further link it starts at the index at which it arrives there.
    commodity : int
        Position in the problem's commodities.
    path : tuple of int
        Links.
    """

    start: int
    commodity: int
    path: tuple[int, ...]


@dataclass(frozen=True)
class PathFlow:
    """A part of a fluid commodity with its ways.

    Parameters
    ----------
    commodity : int
        Position in the problem's commodities.
    amount : Fraction
        Part of the commodity's chunk, above 0.
    hops : tuple of (int, int)
        Links with the epochs in which the part goes over them, one way after the other; once for each destination that it goes there for.
    """

    commodity: int
    amount: Fraction
    hops: tuple[tuple[int, int], ...]


def hops(problem: EpochProblem, send: EpochSend) -> list[tuple[int, int]]:
    """Give the links of a send with the index at which it starts over each."""
    found, at = [], send.start
    for link in send.path:
        found.append((link, at))
        at += problem.links[link].delay
    return found


def arrival(problem: EpochProblem, send: EpochSend) -> int:
    """Index at which a send is at the end of its path."""
    return send.start + sum(problem.links[link].delay for link in send.path)


def finish(problem: EpochProblem, sends: Iterable[EpochSend]) -> int:
    """Epochs that a schedule takes: the index of its last arrival."""
    return max((arrival(problem, send) for send in sends), default=0)


def schedule_of(problem: EpochProblem, instance: Instance, sends: Sequence[EpochSend]) -> Schedule:
    """Make the schedule of whole chunks.

    Data that is copied is written from node to node that copies, so that what a switch copies is on the link to it once, even if
    several sends name it. Through a switch that does not copy a send keeps its path, and what ends at one is there as often as it is sent. A
    contribution to a sum keeps its whole path, since what passes through a switch is not added there.

    Parameters
    ----------
    problem : EpochProblem
        The grid.
    instance : Instance
        What it was made of.
    sends : sequence of EpochSend
        In any order.
    """
    rows = Counter[tuple[EpochSend, bool]]()
    for send in sends:
        commodity = problem.commodities[send.commodity]
        for piece in [send] if commodity.summed else _pieces(problem, send):
            rows[replace(piece, commodity=commodity.chunk), commodity.summed] += 1
    flat: list[tuple[EpochSend, bool]] = []
    for (send, summed), count in sorted(rows.items()):
        flat += [(send, summed)] * (1 if problem.copies[problem.links[send.path[-1]].target] else count)
    return _timed(problem, chunks_of(instance), [send for send, _ in flat], [summed for _, summed in flat])


def _pieces(problem: EpochProblem, send: EpochSend) -> list[EpochSend]:
    """Cut a send at the nodes that copy."""
    found: list[EpochSend] = []
    begin, start = 0, send.start
    for index, (link, at) in enumerate(hops(problem, send), start=1):
        start = at if begin == index - 1 else start
        if problem.copies[problem.links[link].target] or index == len(send.path):
            found.append(EpochSend(start, send.commodity, send.path[begin:index]))
            begin = index
    return found


def fluid_schedule_of(problem: EpochProblem, instance: Instance, flows: Sequence[PathFlow]) -> Schedule:
    """Make the schedule of parts of chunks: every flow is a chunk of its own.

    The amounts of a commodity must sum to 1 exactly.
    """
    whole = chunks_of(instance)
    unit = Fraction(1, int(np.lcm.reduce([flow.amount.denominator for flow in flows], dtype=object)))
    of = np.array([problem.commodities[flow.commodity].chunk for flow in flows], dtype=np.int64)
    units = np.array([int(flow.amount / unit) for flow in flows], dtype=np.int64)
    chunks = Chunks(
        units, whole.unit_bytes * unit, whole.groups, whole.held_by[of], whole.needed_by[of], whole.reduced[of]
    )
    sends = sorted(EpochSend(k, index, (e,)) for index, flow in enumerate(flows) for e, k in flow.hops)
    return _timed(problem, chunks, sends, [False] * len(sends))


def _timed(problem: EpochProblem, chunks: Chunks, sends: Sequence[EpochSend], summed: Sequence[bool]) -> Schedule:
    """Make the columns; the second number of a send is a chunk here."""
    links, epoch = problem.links, problem.timing.epoch_s
    columns = sends_from_lists(
        [send.commodity for send in sends],
        [links[send.path[0]].source for send in sends],
        [links[send.path[-1]].target for send in sends],
        summed,
        [send.path for send in sends],
    )
    start = np.array([float(send.start * epoch) for send in sends], dtype=np.float64)
    end = np.array([float(arrival(problem, send) * epoch) for send in sends], dtype=np.float64)
    return Schedule(problem.instance_sha256, chunks, columns, start, end)
