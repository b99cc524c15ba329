"""A simulated iteration: its time, the least that it could be, and where the time goes."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from ...core.workload import Workload
from .passes import Cost, Plan, tasks_of
from .tasks import COMPUTE, Task, lower_bound, simulate, spent


@dataclass(frozen=True)
class Iteration:
    """An iteration that was simulated.

    Parameters
    ----------
    plan : Plan
        How it was run.
    tasks : tuple of Task
        What was done.
    starts_s : tuple of Fraction
        When each of the tasks began.
    """

    plan: Plan
    tasks: tuple[Task, ...]
    starts_s: tuple[Fraction, ...]

    @cached_property
    def seconds(self) -> Fraction:
        """When the last task has ended."""
        ends = (start + task.seconds for task, start in zip(self.tasks, self.starts_s, strict=True))
        return max(ends, default=Fraction(0))

    @cached_property
    def bounds_s(self) -> tuple[Fraction, Fraction]:
        """Critical path and busiest stream: no order of these tasks takes less than the larger one."""
        return lower_bound(self.tasks)

    @cached_property
    def stages(self) -> int:
        """Number of stages of the pipeline."""
        return 1 + max((task.stage for task in self.tasks), default=0)

    def breakdown_s(self, stage: int) -> dict[str, Fraction]:
        """What a stage does: computations, exposed communication, and waiting for other stages."""
        return spent(self.tasks, self.starts_s, stage)

    @cached_property
    def mean_breakdown_s(self) -> dict[str, Fraction]:
        """The same, the mean of the stages; computations first, then what takes longest."""
        found: dict[str, Fraction] = defaultdict(Fraction)
        for stage in range(self.stages):
            for what, seconds in self.breakdown_s(stage).items():
                found[what] += seconds / self.stages
        computed = {task.what for task in self.tasks if task.stream == COMPUTE}
        return dict(sorted(found.items(), key=lambda pair: (pair[0] not in computed, -pair[1], pair[0])))

    @property
    def exposed_s(self) -> Fraction:
        """Seconds in which a stage communicates and does not compute, the mean of the stages."""
        return sum((s for what, s in self.mean_breakdown_s.items() if what in self.communication_s), Fraction(0))

    @property
    def compute_s(self) -> Fraction:
        """Seconds of computation of a stage, the mean of the stages."""
        return sum((t.seconds for t in self.tasks if t.stream == COMPUTE), Fraction(0)) / self.stages

    @cached_property
    def communication_s(self) -> dict[str, Fraction]:
        """Seconds of collectives of a stage by what they are, exposed or not, the mean of the stages."""
        found: dict[str, Fraction] = defaultdict(Fraction)
        for task in self.tasks:
            if task.stream != COMPUTE:
                found[task.what] += task.seconds / self.stages
        return dict(found)


def simulate_iteration(workload: Workload, plan: Plan, cost: Cost) -> Iteration:
    """Simulate an iteration.

    Parameters
    ----------
    workload : Workload
        What is computed and communicated.
    plan : Plan
        How it is run.
    cost : callable
        Seconds of a collective.

    Raises
    ------
    InputError
        If the workload cannot be divided into stages, or there are too many tasks.
    """
    tasks = tuple(tasks_of(workload, plan, cost))
    return Iteration(plan, tasks, simulate(tasks))
