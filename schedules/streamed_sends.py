"""Schedules generated step by step as schedules whose sends are stored, where these are few enough."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ..core.collective import Demand
from ..core.errors import Unsupported
from ..core.instance import Instance
from ..core.schedule import Chunks, Ints, Sends, StepSchedule
from ..core.streamed_steps import StreamedSteps
from ..core.trees import TreeKind
from .verify.translated_trees import demand_of_all

#: Sends that are stored at most.
MOST_SENDS = 5_000_000


def store_sends(instance: Instance, answer: StreamedSteps) -> StepSchedule:
    """Generate all sends of a schedule, and store them.

    Raises
    ------
    Unsupported
        If there are too many, or the schedule is not for the instance's collective.
    """
    demand = demand_of_all(instance, answer.kind)
    if demand is None or answer.sends > MOST_SENDS:
        raise Unsupported(f"{answer.sends:,} sends that are generated step by step; at most {MOST_SENDS:,} are stored")
    ends = np.array(instance.topology.link_ends, dtype=np.int64).reshape(-1, 2)
    chunk, link, step = _gather(answer)
    source, target = ends[link].T
    if answer.kind is TreeKind.OUT:
        columns = chunk, link, source, target, step, np.zeros(len(chunk), dtype=np.bool_)
    elif answer.kind is TreeKind.IN:  # what is generated is the gather over reversed links that it reverses
        columns = chunk, link, source, target, answer.gather_steps - 1 - step, np.ones(len(chunk), dtype=np.bool_)
    else:
        numbers = {(int(a), int(b)): number for number, (a, b) in enumerate(ends.tolist())}
        opposite = np.array([numbers[b, a] for a, b in ends.tolist()], dtype=np.int64)[link]
        columns = (
            np.tile(chunk, 2),
            np.concatenate([opposite, link]),
            np.concatenate([target, source]),
            np.concatenate([source, target]),
            np.concatenate([answer.gather_steps - 1 - step, answer.gather_steps + step]),
            np.repeat(np.array([True, False]), len(chunk)),
        )
    chunks, links, sources, targets, steps, adds = columns
    sends = Sends(chunks, sources, targets, adds, np.arange(len(chunks) + 1), links)
    return StepSchedule(answer.instance_sha256, _chunks(demand, answer.kind, instance.npus), sends, steps)


def _gather(answer: StreamedSteps) -> tuple[Ints, Ints, Ints]:
    """Return chunk, link and step of every send of the gather."""
    parts, steps = [], 0
    for block in answer.blocks():
        step, link = np.nonzero(block >= 0)
        parts.append((block[step, link].astype(np.int64), link, step + steps))
        steps += len(block)
    chunk, link, step = (np.concatenate(column) for column in zip(*parts, strict=True))
    return chunk, link, step


def _chunks(demand: Demand, kind: TreeKind, ranks: int) -> Chunks:
    """Return the chunks: some for each rank, whose data, or part of the sum, they are."""
    groups = (*((rank,) for rank in range(ranks)), tuple(range(ranks)))
    count = ranks * demand.chunks
    own, everybody = np.arange(count) // demand.chunks, np.full(count, ranks)
    held = own if kind is TreeKind.OUT else everybody
    needed = own if kind is TreeKind.IN else everybody
    size = Fraction(demand.size_bytes, count)
    return Chunks(np.ones(count, dtype=np.int64), size, groups, held, needed, np.full(count, kind is not TreeKind.OUT))
