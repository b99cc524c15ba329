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
from ...core.budget import Budget, Clock, NoClock, ignore
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
        """Return the seconds until half of the time is over; None without a limit."""
        left = self._clock.remaining_s()
        return None if left is None else max(0.0, left - self._rest_s)


def other_answers(
    instance: Instance, topology: Topology, solver: Solver, budget: Budget
) -> Iterator[tuple[str, StepSchedule | Schedule, Fraction]]:
    """Yield answers of other methods: the first one, and more while half of the time lasts.

    Parameters
    ----------
    instance : Instance
        The problem as ``pccl`` poses it.
    solver : Solver
        Not used by these methods.

    Yields
    ------
    (str, StepSchedule or Schedule, Fraction)
        The method, its answer, and its completion time in seconds. A timed schedule comes with its simulated times,
        first repeated to a fixed point, then simulated once; on a grid of ticks it comes as it is, and schedules in
        steps, which have no ticks, are left out.
    """
    # What the others tell is about answers of their own.
    half = replace(budget, tell=ignore, clock=_HalfClock(budget.clock))
    found = False
    for method in _METHODS:
        if found and half.is_exhausted:
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
            # As it is, copies of a chunk may share a link, as circuits do and sends in time do not.
            for schedule in (_settle_schedule(topology, answer, half), in_order(topology, answer)[0]):
                yield method.name, schedule, in_order(topology, schedule)[1]


def _settle_schedule(topology: Topology, schedule: Schedule, budget: Budget) -> Schedule:
    """Simulate a schedule to a fixed point, where no send ends later than declared, or until the time is over."""
    for played in range(_ROUNDS):
        if played and budget.is_exhausted:
            break
        before, (schedule, _) = schedule, in_order(topology, schedule)
        if np.array_equal(before.start_s, schedule.start_s):
            break
    return schedule


def _answer(method: Method, instance: Instance, solver: Solver, budget: Budget) -> object:
    """Return a method's answer with default options; None if it does not support the instance."""
    if method.supports(instance) is not None:
        return None
    options = method.options()
    return method.run(method.pose(instance, options), solver, budget, options).answer
