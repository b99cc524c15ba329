"""Schedules in seconds, built from sends in epochs by whole columns."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from ...algorithms.epochs.search import EpochPlan
from ...algorithms.schedules.commodities import chunks_of
from ...core.ragged import offsets
from ...core.schedule import Chunks, Floats, Ints, Schedule, Sends
from .extract import EpochSend, PathFlow, finish
from .problem import MAX_COMMODITIES, EpochProblem


def plan_of(problem: EpochProblem, sends: Sequence[EpochSend]) -> EpochPlan:
    """Convert a list of sends to columns."""
    hops = [len(send.path) for send in sends]
    return EpochPlan(
        finish(problem, sends),
        np.array([send.commodity for send in sends], dtype=np.int64),
        np.array([send.start for send in sends], dtype=np.int64),
        offsets(np.array(hops, dtype=np.int64)),
        np.array([link for send in sends for link in send.path], dtype=np.int64),
    )


def schedule_of(problem: EpochProblem, plan: EpochPlan) -> Schedule:
    """Build the schedule of whole chunks from sends in any order.

    Data that is copied is written from copying node to copying node, so that what a switch copies is on the link to it
    once, even if several sends name it. Through a switch that does not copy a send keeps its path, and a send that
    ends at one appears as often as it is sent. A contribution to a sum keeps its whole path, since switches on it do
    not add.
    """
    rows, start = _pieces(problem, plan)
    rank = _ranks(rows)
    order = np.lexsort((rows.reduce, rank, rows.chunk, start))
    keys = (start[order], rows.chunk[order], rank[order], rows.reduce[order])
    repeated = np.concatenate([[False], np.logical_and.reduce([key[1:] == key[:-1] for key in keys])])
    once = np.array(problem.copies, dtype=np.bool_)[rows.target[order]]
    kept = order[~(repeated & once)]
    return _schedule_in_seconds(problem, chunks_of(problem.instance, MAX_COMMODITIES), rows.take(kept), start[kept])


def _pieces(problem: EpochProblem, plan: EpochPlan) -> tuple[Sends, Ints]:
    """Cut all sends but contributions to sums at copying nodes; return pieces and start epochs."""
    tail, head, delay = problem.columns[:3]
    copies = np.array(problem.copies, dtype=np.bool_)
    summed = np.array([commodity.summed for commodity in problem.commodities], dtype=np.bool_)
    chunk = np.array([commodity.chunk for commodity in problem.commodities], dtype=np.int64)
    of = np.repeat(np.arange(len(plan.start)), np.diff(plan.offset))
    before = offsets(delay[plan.links])
    at = (plan.start - before[plan.offset[:-1]])[of] + before[:-1]
    ends = copies[head[plan.links]] & ~summed[plan.chunk][of]
    ends[plan.offset[1:] - 1] = True
    last = np.flatnonzero(ends)
    first = np.concatenate([[0], last[:-1] + 1])[: len(last)]
    commodity = plan.chunk[of[first]]
    source, target = tail[plan.links[first]], head[plan.links[last]]
    offset = np.concatenate([first, [len(of)]])
    return Sends(chunk[commodity], source, target, summed[commodity], offset, plan.links), at[first]


def _ranks(sends: Sends) -> Ints:
    """Assign numbers to the paths in lexicographic order of their links."""
    rank = sends.path_links[sends.path_offset[:-1]]
    for place in range(1, int(sends.hops.max(initial=0))):
        there = np.flatnonzero(sends.hops > place)
        link = np.zeros(len(rank), dtype=np.int64)
        link[there] = sends.path_links[sends.path_offset[there] + place] + 1
        rank = np.unique(rank * (int(link.max()) + 1) + link, return_inverse=True)[1].reshape(-1)
    return rank


def fluid_schedule_of(problem: EpochProblem, flows: Sequence[PathFlow]) -> Schedule:
    """Build the schedule with a chunk for every flow; a commodity's amounts must sum to 1 exactly."""
    whole = chunks_of(problem.instance, MAX_COMMODITIES)
    unit = Fraction(1, int(np.lcm.reduce([flow.amount.denominator for flow in flows], dtype=object)))
    of = np.array([problem.commodities[flow.commodity].chunk for flow in flows], dtype=np.int64)
    units = np.array([int(flow.amount / unit) for flow in flows], dtype=np.int64)
    chunks = Chunks(
        units, whole.unit_bytes * unit, whole.groups, whole.held_by[of], whole.needed_by[of], whole.reduced[of]
    )
    hops = np.array(
        sorted((k, index, e) for index, flow in enumerate(flows) for e, k in flow.hops), dtype=np.int64
    ).reshape(-1, 3)
    start, index, link = hops.T
    tail, head = problem.columns[:2]
    summed = np.zeros(len(link), dtype=np.bool_)
    rows = Sends(index, tail[link], head[link], summed, np.arange(len(link) + 1), link)
    return _schedule_in_seconds(problem, chunks, rows, start)


def _schedule_in_seconds(problem: EpochProblem, chunks: Chunks, rows: Sends, start: Ints) -> Schedule:
    """Convert to seconds, as exactly as floats allow: each distinct number of epochs is multiplied once."""
    epoch_s, delay = problem.timing.epoch_s, problem.columns[2]
    before = offsets(delay[rows.path_links])
    end = start + before[rows.path_offset[1:]] - before[rows.path_offset[:-1]]

    def seconds(epochs: Ints) -> Floats:
        values, which = np.unique(epochs, return_inverse=True)
        return np.array([float(value * epoch_s) for value in values.tolist()], dtype=np.float64)[which.reshape(-1)]

    return Schedule(problem.instance.sha256, chunks, rows, seconds(start), seconds(end))
