"""A simulated iteration: its time, lower bounds and breakdown."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from ...core.workload import Workload
from .passes import Cost, Plan, tasks_of
from .tasks import COMPUTE, Task, lower_bound, simulate, time_breakdown


@dataclass(frozen=True)
class Iteration:
    """A simulated iteration."""

    plan: Plan
    tasks: tuple[Task, ...]
    starts_s: tuple[Fraction, ...]

    @cached_property
    def seconds(self) -> Fraction:
        """End of the last task in seconds."""
        ends = (start + task.seconds for task, start in zip(self.tasks, self.starts_s, strict=True))
        return max(ends, default=Fraction(0))

    @cached_property
    def bounds_s(self) -> tuple[Fraction, Fraction]:
        """Critical path and busiest stream, both lower bounds for any order of these tasks."""
        return lower_bound(self.tasks)

    @cached_property
    def stages(self) -> int:
        """Number of pipeline stages."""
        return 1 + max((task.stage for task in self.tasks), default=0)

    def breakdown_s(self, stage: int) -> dict[str, Fraction]:
        """Return a stage's seconds of computation, exposed communication, and waiting for other stages."""
        return time_breakdown(self.tasks, self.starts_s, stage)

    @cached_property
    def mean_breakdown_s(self) -> dict[str, Fraction]:
        """Mean breakdown over the stages: computations first, then by decreasing time."""
        found: dict[str, Fraction] = defaultdict(Fraction)
        for stage in range(self.stages):
            for what, seconds in self.breakdown_s(stage).items():
                found[what] += seconds / self.stages
        computed = {task.what for task in self.tasks if task.stream == COMPUTE}
        return dict(sorted(found.items(), key=lambda pair: (pair[0] not in computed, -pair[1], pair[0])))

    @property
    def exposed_s(self) -> Fraction:
        """Mean seconds per stage of communication without simultaneous computation."""
        return sum((s for what, s in self.mean_breakdown_s.items() if what in self.communication_s), Fraction(0))

    @property
    def compute_s(self) -> Fraction:
        """Mean seconds of computation per stage."""
        return sum((t.seconds for t in self.tasks if t.stream == COMPUTE), Fraction(0)) / self.stages

    @cached_property
    def communication_s(self) -> dict[str, Fraction]:
        """Mean seconds of collectives per stage by kind, exposed or not."""
        found: dict[str, Fraction] = defaultdict(Fraction)
        for task in self.tasks:
            if task.stream != COMPUTE:
                found[task.what] += task.seconds / self.stages
        return dict(found)


def simulate_iteration(workload: Workload, plan: Plan, cost: Cost) -> Iteration:
    """Simulate an iteration.

    Raises
    ------
    InputError
        If the workload cannot be divided into stages, or there are too many tasks.
    """
    tasks = tuple(tasks_of(workload, plan, cost))
    return Iteration(plan, tasks, simulate(tasks))
