"""Reductions as what they undo, backwards in time.

Links serve who asks first, so that a first phase of many steps delays the next one, where a last phase of many steps
does no harm. Backwards in time, a schedule keeps its times: a reduce-scatter is an all-gather backwards, a reduce a
broadcast backwards, and an all-reduce the one and then the other.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from ...algorithms.schedules.compose import concatenate, reverse
from ...algorithms.schedules.problem import GroupProblem
from ...algorithms.schedules.replay import in_order, timed_first_come
from ...core.collective import Collective
from ...core.errors import Unsupported
from ...core.schedule import Schedule
from .phases import AG, AR, BROADCAST, REDUCE, RS
from .search import MOST_HOPS, PLAYED, Choice

#: What is run backwards.
_FORWARDS = {RS: AG, REDUCE: BROADCAST, AR: AG}


def mirror_problem(problem: GroupProblem) -> GroupProblem | None:
    """Return the collective that a reduction reverses; None for one that reduces nothing."""
    kind: Collective | None = _FORWARDS.get(problem.collective)
    if kind is None:
        return None
    demand = replace(problem.demand, collective=kind)
    return replace(problem, instance=problem.instance.with_single_demand(demand), demand=demand)


def reverse_choice(problem: GroupProblem, forwards: Choice) -> Choice | None:
    """Return a reduction as a timed schedule; None without reverse links, or with too many sends to simulate.

    With many sends, reverse links are assumed to be as fast.
    """
    steps = forwards.schedule
    if isinstance(steps, Schedule) or len(steps.sends.path_links) > MOST_HOPS:
        return None
    there = timed_first_come(problem.topology, steps)
    last = float(there.end_s.max())
    try:
        back = reverse(steps, problem.topology)
    except Unsupported:
        return None
    start, end = last - there.end_s, last - there.start_s
    if problem.collective is AR:
        back = concatenate(back, steps)
        start, end = (np.concatenate(pair) for pair in ((start, last + there.start_s), (end, last + there.end_s)))
    made = Schedule(problem.instance.sha256, back.chunks, back.sends, np.maximum(start, 0.0), end)
    if len(made.sends.path_links) > PLAYED:
        return replace(forwards, schedule=made, seconds=Fraction(float(end.max())), backwards=True)
    played, seconds = in_order(problem.topology, made)
    return replace(forwards, schedule=played, seconds=seconds, backwards=True)
