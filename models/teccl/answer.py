"""From sends in epochs to a schedule in seconds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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
    """A part of a fluid commodity with its way.

    Parameters
    ----------
    commodity : int
        Position in the problem's commodities.
    amount : Fraction
        Part of the commodity's chunk, above 0.
    hops : tuple of (int, int)
        Links with the epochs in which the part goes over them, in order.
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

    Data that is copied is written link by link, also through switches, so that what a switch copies is on the link to it once, even if
    several sends name it. A contribution to a sum keeps its path, since what passes through a switch is not added there; so does a sum where a
    switch does not copy.

    Parameters
    ----------
    problem : EpochProblem
        The grid.
    instance : Instance
        What it was made of.
    sends : sequence of EpochSend
        In any order.
    """
    rows: dict[tuple[int, int, tuple[int, ...]], bool] = {}
    for send in sends:
        commodity = problem.commodities[send.commodity]
        between = [problem.links[e].target for e in send.path[:-1]]
        whole = commodity.summed or (bool(commodity.after) and not all(problem.copies[n] for n in between))
        pieces = [(send.start, send.path)] if whole else [(k, (e,)) for e, k in hops(problem, send)]
        for start, path in pieces:
            rows[start, commodity.chunk, path] = commodity.summed
    flat = [(EpochSend(start, chunk, path), summed) for (start, chunk, path), summed in sorted(rows.items())]
    return _timed(problem, chunks_of(instance), [send for send, _ in flat], [summed for _, summed in flat])


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
