"""Discrete-event simulation of a training iteration: computations and collectives as tasks on streams.

Tasks, streams and their order: docs/training.md. One NPU of every stage is simulated, since all others of the stage do
the same at the same time. All times are exact.
"""

import heapq
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, groupby
from math import prod

from ..core.collective import Collective
from ..core.errors import InputError
from ..core.grouping import group_by_key
from ..core.workload import Communication, Layer, Phase, Workload

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
    collective: Communication | None = None  #: What it communicates.

    @property
    def line(self) -> Stream | None:
        """The stage and stream of the task, None without a stream."""
        return None if self.stream is None else (self.stage, self.stream)


@dataclass
class _Line:
    """State of a simulated stream: ready tasks, and the next one in program order."""

    program: list[int] = field(default_factory=list)
    waiting: list[tuple[int, int]] = field(default_factory=list)
    position: int = 0  #: Of the next task in the program.
    idle: bool = True

    def next(self, *, in_order: bool) -> int | None:
        """Remove and return the task that starts now, None if none can."""
        if not self.idle or not self.waiting:
            return None
        if in_order and self.waiting[0][1] != self.program[self.position]:
            return None
        self.idle = False
        self.position += 1
        return heapq.heappop(self.waiting)[1]


#: Factors by which the times of collectives grow that run at once.
Slowdowns = Callable[[Sequence[Communication]], Sequence[Fraction]]
_Ends = list[tuple[Fraction, int]]  # of the running tasks


def simulate(tasks: Sequence[Task], slowdowns: Slowdowns | None = None) -> list[tuple[Fraction, Fraction]]:
    """Return start and end of every task in seconds; it starts when its predecessors and its stream are done.

    The computations of a stream are in program order. Of tasks that become ready for a communication stream
    simultaneously, the first in the list starts first. ``slowdowns`` are those of a stage's collectives.
    """
    followers, missing = _followers(tasks), [len(task.after) for task in tasks]
    lines: dict[Stream, _Line] = defaultdict(_Line)
    for index, task in enumerate(tasks):
        if task.line is not None:
            lines[task.line].program.append(index)
    spans = [(Fraction(0), Fraction(0))] * len(tasks)
    running: _Ends = []
    factors: dict[int, Fraction] = {}
    now, arrivals = Fraction(0), 0
    arrived, freed = [index for index, count in enumerate(missing) if not count], set[Stream]()

    def begin(index: int) -> None:
        spans[index] = now, now
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
            if (following := lines[line].next(in_order=line[1] == COMPUTE)) is not None:
                begin(following)
        if not running:
            return spans
        _stretch(tasks, running, factors, slowdowns, now)
        now, arrived, freed = running[0][0], [], set()
        while running and running[0][0] == now:
            _, index = heapq.heappop(running)
            spans[index] = spans[index][0], now
            if (line := tasks[index].line) is not None:
                lines[line].idle = True
                freed.add(line)
            for follower in followers[index]:
                missing[follower] -= 1
                if not missing[follower]:
                    arrived.append(follower)
        arrived.sort()


def _stretch(
    tasks: Sequence[Task], running: _Ends, factors: dict[int, Fraction], slowdowns: Slowdowns | None, now: Fraction
) -> None:
    """Change the ends of collectives when others begin or end, and keep the factors by which they are slowed down."""
    if slowdowns is None:
        return
    before = dict(factors)
    factors.clear()
    for stage in {tasks[index].stage for _, index in running}:
        here = {i: c for _, i in running if tasks[i].stage == stage and (c := tasks[i].collective) is not None}
        factors |= zip(here, slowdowns(list(here.values())), strict=True)
    for place, (end, index) in enumerate(running):
        ratio = factors.get(index, Fraction(1)) / before.get(index, Fraction(1))
        if ratio != 1:  # rounded, since fractions of fractions grow
            running[place] = now + Fraction(float((end - now) * ratio)), index
    heapq.heapify(running)


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
    on = group_by_key((task.line, index) for index, task in enumerate(tasks) if task.line is not None)
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
    times: dict[str, Fraction] = defaultdict(Fraction)
    active: set[int] = set()
    now = Fraction(0)
    for time, begins, index in sorted(events):
        if time > now:
            first = min(active, key=lambda i: (tasks[i].stream != COMPUTE, starts[i], i), default=None)
            times[IDLE if first is None else tasks[first].what] += time - now
            now = time
        (active.add if begins else active.remove)(index)
    if total > now:
        times[IDLE] += total - now
    return dict(times)


MAX_LAYERS = 100_000  #: Layers that are simulated, each as often as it is repeated.
_MAX_DIVIDED = 2_000  #: More layers are not divided among stages.


class Pipeline(Enum):
    """Order of micro-batches in a stage.

    ``GPIPE`` has all forward passes first (Huang et al., NeurIPS 2019); ``ONE_F_ONE_B`` alternates as soon as the
    last stage has one forward pass done, which needs less memory (Narayanan et al., PipeDream, SOSP 2019).
    """

    GPIPE = "gpipe"
    ONE_F_ONE_B = "1f1b"


def unroll_layers(layers: Sequence[Layer]) -> list[Layer]:
    """List layers in forward order, with repetitions; equally repeated neighbours repeat as a block."""
    if (count := sum(layer.repeat for layer in layers)) > MAX_LAYERS:
        raise InputError(f"{count:,} layers; expected at most {MAX_LAYERS:,}", place="layers")
    blocks = groupby(layers, key=lambda layer: layer.repeat)
    return [layer for repeat, block in blocks for layer in list(block) * repeat]


def divide_layers(layers: Sequence[Layer], stages: int) -> list[list[Layer]]:
    """Divide layers among stages, in order, minimizing the longest computation of a stage."""
    if stages == 1:
        return [list(layers)]
    if not stages <= len(layers) <= _MAX_DIVIDED:
        text = f"{len(layers):,} layers for {stages:,} stages; expected one for each, and at most {_MAX_DIVIDED:,}"
        raise InputError(text, place="layers")
    seconds = [x.forward.compute_s + x.input_gradient.compute_s + x.weight_gradient.compute_s for x in layers]
    until = [Fraction(0), *accumulate(seconds)]
    sums = sorted({until[j] - until[i] for i in range(len(layers)) for j in range(i + 1, len(layers) + 1)})
    fits = bisect_left(sums, True, key=lambda most: len(_ends(until, most)) <= stages)
    ends = _ends(until, sums[fits])
    while len(ends) < stages:  # every stage has a layer: a stage of several is divided
        begins = [0, *ends[:-1]]
        ends.append(next(end - 1 for begin, end in zip(begins, ends, strict=True) if end - begin > 1))
        ends.sort()
    return [list(layers[begin:end]) for begin, end in zip([0, *ends[:-1]], ends, strict=True)]


def _ends(until: Sequence[Fraction], most: Fraction) -> list[int]:
    """Return the ends of stages filled up to a limit in seconds, too many if a layer exceeds it."""
    ends = [0]
    for index in range(1, len(until)):
        if until[index] - until[ends[-1]] > most:
            if until[index] - until[index - 1] > most:
                return list(range(1, len(until) + 1))
            ends.append(index - 1)
    return [*ends[1:], len(until) - 1]


def order(pipeline: Pipeline, stage: int, stages: int, microbatches: int) -> list[tuple[str, int]]:
    """List the passes of a stage, each ``forward`` or ``backward`` with its micro-batch."""
    ahead = microbatches if pipeline is Pipeline.GPIPE else min(microbatches, stages - stage - 1)
    passes = [("forward", m) for m in range(ahead)]
    for m in range(ahead, microbatches):
        passes += [("forward", m), ("backward", m - ahead)]
    return passes + [("backward", m) for m in range(microbatches - ahead, microbatches)]


Cost = Callable[[Communication], Fraction]  #: Seconds of a collective among the NPUs of its group.
MAX_TASKS = 1_000_000  #: More tasks are not simulated.

FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT = "forward", "input gradient", "weight gradient"


class Loop(Enum):
    """Overlap of computation and communication (docs/training.md, "Overlap")."""

    NO_OVERLAP = "no-overlap"
    TP_DP_OVERLAP = "tp-dp-overlap"
    DDP = "ddp"


class Streams(Enum):
    """Concurrent collectives of a stage: one, one per group, or all that are ready."""

    ONE = "one"
    GROUP = "group"
    UNLIMITED = "unlimited"


@dataclass(frozen=True)
class Plan:
    """Execution plan of an iteration."""

    loop: Loop = Loop.NO_OVERLAP
    #: Size in bytes at which a gradient bucket is communicated, in the loop ``DDP``.
    bucket_bytes: Fraction = Fraction(25 * 2**20)
    streams: Streams = Streams.ONE
    #: Parts of the batch that pass the layers in turn; gradients are communicated after the last one.
    microbatches: int = 1
    pipeline: Pipeline = Pipeline.ONE_F_ONE_B


def tasks_of(workload: Workload, plan: Plan, cost: Cost) -> list[Task]:
    """Create the tasks of an iteration, every task after its predecessors.

    Point-to-point messages are those between pipeline stages, whose number is the size of their group: the last layer
    of a stage sends its forward messages, the first one those of its input gradient.
    """
    layers = divide_layers(unroll_layers(workload.layers), stages_of(workload))
    if (count := 10 * plan.microbatches * sum(map(len, layers))) > MAX_TASKS:
        raise InputError(f"some {count:,} tasks; expected at most {MAX_TASKS:,}", source="--microbatches")
    builder = _Builder(workload, plan, cost, layers)
    queues = [order(plan.pipeline, s, len(layers), plan.microbatches)[::-1] for s in range(len(layers))]
    while any(queues):
        for stage, passes in enumerate(queues):
            while passes and builder.can(stage, *passes[-1]):
                builder.add(stage, *passes.pop(), last=not passes)
    return builder.tasks


def stages_of(workload: Workload) -> int:
    """Return the number of stages: the group size of point-to-point messages, 1 without them."""
    phases = [p for x in workload.layers for p in (x.forward, x.input_gradient)]
    groups = {c.group for p in phases for c in p.communication if c.collective is Collective.POINT_TO_POINT}
    if len(groups) > 1:
        raise InputError(f"point-to-point messages in {', '.join(sorted(groups))}; expected one group, the pipeline's")
    return max((prod(workload.groups[name]) for name in groups), default=1)


#: Gradients that are communicated together: their last layer, the collectives, and the tasks that they wait for.
_Bucket = tuple[Layer, tuple[Communication, ...], tuple[int, ...]]


class _Builder:
    def __init__(self, workload: Workload, plan: Plan, cost: Cost, layers: Sequence[Sequence[Layer]]) -> None:
        self.tasks: list[Task] = []
        self._plan, self._cost, self._layers = plan, cost, layers
        self._wait: list[tuple[int, ...]] = [()] * len(layers)  # what the next computation of a stage waits for
        self._messages: dict[tuple[int, str, int], tuple[int, ...]] = {}
        self._buckets: list[dict[tuple[tuple[Collective, str], ...], _Bucket]] = [{} for _ in layers]
        self._synchronized = {c.group for x in workload.layers for c in x.weight_gradient.communication}

    def can(self, stage: int, direction: str, microbatch: int) -> bool:
        """Return whether the neighbouring stage's pass that this one needs exists."""
        neighbour = stage - 1 if direction == "forward" else stage + 1
        return not 0 <= neighbour < len(self._layers) or (neighbour, direction, microbatch) in self._messages

    def add(self, stage: int, direction: str, microbatch: int, *, last: bool) -> None:
        """Add a pass; communicate the gradients after the last one."""
        neighbour = stage - 1 if direction == "forward" else stage + 1
        self._wait[stage] += self._messages.get((neighbour, direction, microbatch), ())
        layers = self._layers[stage]
        if direction == "forward":
            for layer in layers:
                self._blocking(stage, layer, layer.forward, FORWARD)
            boundary, phase, there = layers[-1], layers[-1].forward, stage + 1 < len(self._layers)
        else:
            for layer in reversed(layers):
                self._backward(stage, layer, last=last)
            boundary, phase, there = layers[0], layers[0].input_gradient, stage > 0
        before = self._wait[stage]
        if there:
            messages = [c for c in phase.communication if c.collective is Collective.POINT_TO_POINT]
            before = self._chain(stage, boundary, self._parts(messages), before)
            if self._plan.loop is not Loop.DDP:
                self._wait[stage] = before
        self._messages[stage, direction, microbatch] = before
        if last:
            for bucket in self._buckets[stage].values():
                self._chain(stage, *bucket)

    def _backward(self, stage: int, layer: Layer, *, last: bool) -> None:
        gradient = layer.weight_gradient.communication if last else ()
        if self._plan.loop is not Loop.TP_DP_OVERLAP:
            self._blocking(stage, layer, layer.input_gradient, INPUT_GRADIENT)
            self._compute(stage, layer, layer.weight_gradient, WEIGHT_GRADIENT)
            if self._plan.loop is Loop.DDP:
                self._collect(stage, layer, gradient)
            else:
                self._wait[stage] = self._chain(stage, layer, gradient, self._wait[stage])
            return
        self._compute(stage, layer, layer.input_gradient, INPUT_GRADIENT)
        beside = self._chain(stage, layer, self._collectives(layer.input_gradient), self._wait[stage])
        self._compute(stage, layer, layer.weight_gradient, WEIGHT_GRADIENT)
        self._wait[stage] = beside + self._chain(stage, layer, gradient, self._wait[stage])

    def _blocking(self, stage: int, layer: Layer, phase: Phase, what: str) -> None:
        self._compute(stage, layer, phase, what)
        self._wait[stage] = self._chain(stage, layer, self._collectives(phase), self._wait[stage])

    def _compute(self, stage: int, layer: Layer, phase: Phase, what: str) -> None:
        if phase.compute_s:
            seconds = phase.compute_s / self._plan.microbatches
            self._wait[stage] = self._add(Task(layer.name, what, stage, COMPUTE, seconds, self._wait[stage]))

    def _collectives(self, phase: Phase) -> list[Communication]:
        return self._parts([c for c in phase.communication if c.collective is not Collective.POINT_TO_POINT])

    def _parts(self, communication: Sequence[Communication]) -> list[Communication]:
        """Divide collectives by the micro-batches, except all-gathers of parameters in gradient groups."""
        whole = Collective.ALL_GATHER
        return [
            c
            if c.collective is whole and c.group in self._synchronized
            else replace(c, size_bytes=c.size_bytes / self._plan.microbatches)
            for c in communication
        ]

    def _chain(
        self, stage: int, layer: Layer, communication: Sequence[Communication], after: tuple[int, ...]
    ) -> tuple[int, ...]:
        for c in communication:
            if seconds := self._cost(c):
                names = {Streams.ONE: "communication", Streams.GROUP: c.group, Streams.UNLIMITED: None}
                what, stream = f"{c.group} {c.collective.name}", names[self._plan.streams]
                after = self._add(Task(layer.name, what, stage, stream, seconds, after, c))
        return after

    def _collect(self, stage: int, layer: Layer, gradient: Sequence[Communication]) -> None:
        if not gradient:
            return
        kinds, buckets = tuple((c.collective, c.group) for c in gradient), self._buckets[stage]
        together = tuple(gradient)
        if kinds in buckets:
            pairs = zip(buckets[kinds][1], gradient, strict=True)
            together = tuple(replace(a, size_bytes=a.size_bytes + b.size_bytes) for a, b in pairs)
        buckets[kinds] = layer, together, self._wait[stage]
        if together[0].size_bytes >= self._plan.bucket_bytes:
            self._chain(stage, *buckets.pop(kinds))

    def _add(self, task: Task) -> tuple[int]:
        self.tasks.append(replace(task, after=tuple(sorted(set(task.after)))))
        return (len(self.tasks) - 1,)


@dataclass(frozen=True)
class Iteration:
    """A simulated iteration."""

    plan: Plan
    tasks: tuple[Task, ...]
    starts_s: tuple[Fraction, ...]
    #: Critical path and busiest stream of the tasks as if each ran alone: lower bounds for any order.
    bounds_s: tuple[Fraction, Fraction]

    @cached_property
    def seconds(self) -> Fraction:
        """End of the last task in seconds."""
        ends = (start + task.seconds for task, start in zip(self.tasks, self.starts_s, strict=True))
        return max(ends, default=Fraction(0))

    @cached_property
    def stages(self) -> int:
        """Number of pipeline stages."""
        return 1 + max((task.stage for task in self.tasks), default=0)

    @cached_property
    def mean_breakdown_s(self) -> dict[str, Fraction]:
        """Mean breakdown over the stages: computations first, then by decreasing time."""
        of_stages = (time_breakdown(self.tasks, self.starts_s, stage) for stage in range(self.stages))
        times = group_by_key(part for breakdown in of_stages for part in breakdown.items())
        means = {what: sum(some, Fraction(0)) / self.stages for what, some in times.items()}
        computed = {task.what for task in self.tasks if task.stream == COMPUTE}
        return dict(sorted(means.items(), key=lambda pair: (pair[0] not in computed, -pair[1], pair[0])))

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
        times = group_by_key((task.what, task.seconds) for task in self.tasks if task.stream != COMPUTE)
        return {what: sum(some, Fraction(0)) / self.stages for what, some in times.items()}


def simulate_iteration(workload: Workload, plan: Plan, cost: Cost, slowdowns: Slowdowns | None = None) -> Iteration:
    """Simulate an iteration; its tasks take the time that they took."""
    tasks = tasks_of(workload, plan, cost)
    spans = simulate(tasks, slowdowns)
    took = tuple(replace(task, seconds=end - start) for task, (start, end) in zip(tasks, spans, strict=True))
    return Iteration(plan, took, tuple(start for start, _ in spans), lower_bound(tasks))
