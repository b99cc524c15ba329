"""Tasks on streams: start times, lower bounds, and the breakdown of a stage's time.

A stream executes one task at a time. A stage computes in program order, like a GPU's stream of kernels; a
communication stream executes first the task that became ready first. All times are exact.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

COMPUTE = "compute"  #: The stream of computations of every stage.
IDLE = "idle"  #: What a stage does while it neither computes nor communicates.
Stream = tuple[int, str]  #: Stage and name.


@dataclass(frozen=True)
class Task:
    """A computation or a collective."""

    name: str
    what: str  #: Category of its time, such as ``forward`` or ``dp all_reduce``.
    stage: int
    #: :data:`COMPUTE`, a communication stream, or None if it waits for nothing but its predecessors.
    stream: str | None
    seconds: Fraction
    after: tuple[int, ...] = ()  #: Positions of its predecessors, all earlier in the list.

    @property
    def line(self) -> Stream | None:
        """The stage and stream of the task, None without a stream."""
        return None if self.stream is None else (self.stage, self.stream)


@dataclass
class _Line:
    """State of a simulated stream: ready tasks, and the next one in program order."""

    program: list[int] = field(default_factory=list)
    waiting: list[tuple[int, int]] = field(default_factory=list)
    done: int = 0
    idle: bool = True

    def next(self, *, in_order: bool) -> int | None:
        """Remove and return the task that starts now, None if none can."""
        if not self.idle or not self.waiting:
            return None
        if in_order and self.waiting[0][1] != self.program[self.done]:
            return None
        self.idle = False
        self.done += 1
        return heapq.heappop(self.waiting)[1]


def simulate(tasks: Sequence[Task]) -> tuple[Fraction, ...]:
    """Return the start of every task in seconds: when its predecessors have ended and its stream is free.

    The computations of a stream are in program order. Of tasks that become ready for a communication stream
    simultaneously, the first in the list starts first.
    """
    followers, missing = _followers(tasks), [len(task.after) for task in tasks]
    lines: dict[Stream, _Line] = defaultdict(_Line)
    for index, task in enumerate(tasks):
        if task.line is not None:
            lines[task.line].program.append(index)
    starts: list[Fraction] = [Fraction(0)] * len(tasks)
    running: list[tuple[Fraction, int]] = []
    now, arrivals = Fraction(0), 0
    arrived, freed = [index for index, count in enumerate(missing) if not count], set[Stream]()

    def begin(index: int) -> None:
        starts[index] = now
        heapq.heappush(running, (now + tasks[index].seconds, index))

    while True:
        for index in arrived:
            line = tasks[index].line
            if line is None:
                begin(index)
                continue
            arrivals += 1
            heapq.heappush(lines[line].waiting, (index if line[1] == COMPUTE else arrivals, index))
            freed.add(line)
        for line in freed:
            if (chosen := lines[line].next(in_order=line[1] == COMPUTE)) is not None:
                begin(chosen)
        if not running:
            return tuple(starts)
        now, arrived, freed = running[0][0], [], set()
        while running and running[0][0] == now:
            _, index = heapq.heappop(running)
            if (line := tasks[index].line) is not None:
                lines[line].idle = True
                freed.add(line)
            for follower in followers[index]:
                missing[follower] -= 1
                if not missing[follower]:
                    arrived.append(follower)
        arrived.sort()


def _followers(tasks: Sequence[Task]) -> list[list[int]]:
    followers: list[list[int]] = [[] for _ in tasks]
    for index, task in enumerate(tasks):
        for before in task.after:
            if not 0 <= before < index:
                raise ValueError(f"task {index} is after {before}, which does not come before it")
            followers[before].append(index)
    return followers


def lower_bound(tasks: Sequence[Task]) -> tuple[Fraction, Fraction]:
    """Bound the time of these tasks in any order, by critical path and by busiest stream.

    A stream starts no earlier than its first possible task, works all seconds of its tasks, and is followed by at
    least the shortest remainder after one of them.
    """
    head = [Fraction(0)] * len(tasks)
    tail = [Fraction(0)] * len(tasks)
    for index, task in enumerate(tasks):
        head[index] = max((head[before] + tasks[before].seconds for before in task.after), default=Fraction(0))
    for index in range(len(tasks) - 1, -1, -1):
        for before in tasks[index].after:
            tail[before] = max(tail[before], tasks[index].seconds + tail[index])
    path = max((head[i] + task.seconds + tail[i] for i, task in enumerate(tasks)), default=Fraction(0))
    on: dict[Stream, list[int]] = defaultdict(list)
    for index, task in enumerate(tasks):
        if task.line is not None:
            on[task.line].append(index)
    busiest = max(
        (min(head[i] for i in at) + sum(tasks[i].seconds for i in at) + min(tail[i] for i in at) for at in on.values()),
        default=Fraction(0),
    )
    return path, busiest


def time_breakdown(tasks: Sequence[Task], starts: Sequence[Fraction], stage: int) -> dict[str, Fraction]:
    """Break down the time of a stage: computation first, then the earliest running collective, then :data:`IDLE`."""
    total = max((start + task.seconds for task, start in zip(tasks, starts, strict=True)), default=Fraction(0))
    events: list[tuple[Fraction, int, int]] = []
    for index, task in enumerate(tasks):
        if task.stage == stage and task.seconds:
            events += [(starts[index], 1, index), (starts[index] + task.seconds, 0, index)]
    found: dict[str, Fraction] = defaultdict(Fraction)
    active: set[int] = set()
    now = Fraction(0)
    for time, begins, index in sorted(events):
        if time > now:
            first = min(active, key=lambda i: (tasks[i].stream != COMPUTE, starts[i], i), default=None)
            found[IDLE if first is None else tasks[first].what] += time - now
            now = time
        (active.add if begins else active.remove)(index)
    if total > now:
        found[IDLE] += total - now
    return dict(found)
