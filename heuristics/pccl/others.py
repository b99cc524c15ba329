"""The answers of methods that are quick: none of them is to be complete before that of ``pccl``.

They are made first, so that there is an answer however short the time. Conditions that are placed one after the other
take ports of switches early that later ones need; what takes turns, or exchanges in steps, does not. And some cut
chunks further.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np

from ...algorithms.schedules.replay import first_come, in_order
from ...core.budget import Budget, Clock, NoClock, unheard
from ...core.errors import InputError, OutOfTime, Unsupported
from ...core.instance import Instance
from ...core.method import Method
from ...core.schedule import Schedule, StepSchedule
from ...core.solver import Solver
from ...core.topology import Topology
from ..tacos.method import METHOD as TACOS
from ..textbook.exchanges import BRUCK, DIRECT, RHD
from ..textbook.rings import RING
from ..textbook.trees import DBT, KNOMIAL

#: Methods that are tried, with their default options.
_METHODS = (DIRECT, RHD, RING, BRUCK, DBT, KNOMIAL, TACOS)

#: Times that a schedule is played at most until its links serve in the order of its starts.
_ROUNDS = 20


class _HalfClock(NoClock):
    """A clock that gives half of the time that is left."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rest_s = (clock.remaining_s() or 0.0) / 2

    def remaining_s(self) -> float | None:
        """Seconds until half of the time is over; None without a limit."""
        left = self._clock.remaining_s()
        return None if left is None else max(0.0, left - self._rest_s)


def others(
    instance: Instance, topology: Topology, solver: Solver, budget: Budget
) -> Iterator[tuple[str, StepSchedule | Schedule, Fraction]]:
    """Answers of the other methods that support an instance: the first one, and more while half of the time lasts.

    Parameters
    ----------
    instance : Instance
        As ``pccl`` poses it.
    topology : Topology
        Its network.
    solver : Solver
        Not used by these methods.
    budget : Budget
        Limits, seed and clock of the run.

    Yields
    ------
    (str, StepSchedule or Schedule, Fraction)
        The method, its answer, and when that is complete, in seconds. A schedule in time comes with the times that its
        sends have when it is played, then as it is; where the instance has a grid of ticks, as it is alone, and a
        schedule in steps, which has no ticks, does not.
    """
    # What the others tell is about answers of their own.
    half = replace(budget, tell=unheard, clock=_HalfClock(budget.clock))
    found = False
    for method in _METHODS:
        if found and half.exhausted:
            return
        if instance.timing is not None and method.answer_type is not Schedule:
            continue
        try:
            answer = _answer(method, instance, solver, half)
        except (InputError, OutOfTime, Unsupported):
            continue
        if isinstance(answer, StepSchedule):
            found = True
            yield method.name, answer, first_come(topology, answer)
        elif isinstance(answer, Schedule):
            found = True
            answer = replace(answer, instance_sha256=instance.sha256)
            if instance.timing is not None:
                epoch_s = instance.timing.epoch_s
                yield method.name, answer, round(float(answer.end_s.max() / float(epoch_s))) * epoch_s
                continue
            for schedule in (_settled(topology, answer), answer):
                yield method.name, schedule, in_order(topology, schedule)[1]


def _settled(topology: Topology, schedule: Schedule) -> Schedule:
    """Play a schedule until nothing changes: then no send ends later than it says."""
    for _ in range(_ROUNDS):
        before, (schedule, _) = schedule, in_order(topology, schedule)
        if np.array_equal(before.start_s, schedule.start_s):
            break
    return schedule


def _answer(method: Method, instance: Instance, solver: Solver, budget: Budget) -> object:
    """What a method answers with its default options; None where it does not support the instance."""
    if method.supports(instance) is not None:
        return None
    options = method.options()
    return method.run(method.pose(instance, options), solver, budget, options).answer
