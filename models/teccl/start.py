"""Schedules of other methods as starts of the general form, each send in the earliest epoch that allows it."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from ...core.answers import Answer
from ...core.schedule import Chunks, Schedule, StepSchedule
from .extract import EpochSend, finish, give_start, needed_sends
from .index_sets import IndexSets
from .problem import EpochProblem


def start(model: Any, sets: IndexSets, answer: Answer) -> str:
    """Set the model's sends to those of a schedule; return what does not fit (``Formulation.start``)."""
    if not isinstance(answer, Schedule | StepSchedule):
        return "it is no schedule of sends"
    if sets.hyper_edges or any(commodity.summed or commodity.after for commodity in sets.problem.commodities):
        return "a model with sums or hyper-edges takes none"
    sends = sends_of_schedule(sets, answer)
    if isinstance(sends, str):
        return sends
    if (epochs := finish(sets.problem, sends)) > sets.epochs:
        return f"it takes {epochs} epochs on the grid, and the model has {sets.epochs} (-O epochs={epochs})"
    return "" if give_start(sets, model, sends) else "the model leaves out one of its sends"


def sends_of_schedule(sets: IndexSets, answer: Schedule | StepSchedule) -> list[EpochSend] | str:
    """Return the needed sends, each as early as links allow, in the schedule's order; or what does not fit."""
    problem = sets.problem
    commodity = _commodities(problem, answer.chunks)
    if commodity is None:
        return f"its {len(answer.chunks)} chunks are others than the model's {_numbers(problem, len(answer.chunks))}"
    order = np.argsort(answer.step if isinstance(answer, StepSchedule) else answer.start_s, kind="stable")
    there = {(q, each.source): 0 for q, each in enumerate(problem.commodities)}
    served = {(q, target) for q, each in enumerate(problem.commodities) for target in each.targets}
    taken: dict[int, list[int]] = defaultdict(list)
    sends: list[EpochSend] = []
    rows, names = answer.sends, [node.name for node in problem.topology.nodes]
    for row in order.tolist():
        q, tail, head = commodity[int(rows.chunk[row])], int(rows.source[row]), int(rows.target[row])
        path = tuple(rows.path_links[rows.path_offset[row] : rows.path_offset[row + 1]].tolist())
        if (q, head) in there:
            continue
        if (q, tail) not in there:
            return f"{names[tail]!r} sends a chunk that it does not have"
        begin = there[q, tail]
        waits = problem.holds[tail] != 0
        while not _is_free(sets, taken, path, begin):
            begin += 1
            if not waits or begin > sets.epochs:
                return f"its sends from {names[tail]!r} do not fit into {sets.epochs} epochs"
        for link in path:
            taken[link].append(begin)
            sends.append(EpochSend(begin, q, (link,)))
            begin += problem.links[link].delay
        there[q, head] = begin
    if missing := served - there.keys():
        return f"{names[min(missing)[1]]!r} does not get all its chunks"
    return needed_sends(problem, sends)


def _numbers(problem: EpochProblem, wanted: int) -> str:
    """Return the number of the model's chunks, and the option with which it has as many as wanted, if any."""
    known, demand = len(problem.commodities), problem.instance.demands[0]
    chunks, rest = divmod(wanted * demand.chunks, known)
    return str(known) if rest or chunks in {0, demand.chunks} else f"{known} (-O chunks={chunks})"


def _is_free(sets: IndexSets, taken: dict[int, list[int]], path: tuple[int, ...], begin: int) -> bool:
    """Check if a chunk may start over the links of a path without a stop."""
    for link in path:
        window = sets.problem.links[link].window
        for first in range(begin - window + 1, begin + 1):
            if sum(first <= k < first + window for k in taken[link]) >= sets.room(link, first):
                return False
        begin += sets.problem.links[link].delay
    return True


def _commodities(problem: EpochProblem, chunks: Chunks) -> list[int] | None:
    """Return the commodity of each chunk, by source and receivers; None if they differ."""
    numbers: dict[tuple[int, tuple[int, ...]], list[int]] = defaultdict(list)
    for q, each in enumerate(problem.commodities):
        numbers[each.source, each.targets].append(q)
    ranks, found = problem.topology.rank_nodes, []
    for held, needed, reduced in zip(chunks.held_by, chunks.needed_by, chunks.reduced, strict=True):
        sources = chunks.groups[held]
        targets = tuple(sorted({ranks[rank] for rank in chunks.groups[needed]} - {ranks[sources[0]]}))
        if reduced or len(sources) != 1 or not numbers[ranks[sources[0]], targets]:
            return None
        found.append(numbers[ranks[sources[0]], targets].pop(0))
    return None if any(numbers.values()) else found
