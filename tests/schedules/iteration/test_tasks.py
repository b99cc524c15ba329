"""Tasks on streams, against a direct check of what a simulation must be."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import pytest
from cwb.core.collective import Collective
from cwb.core.workload import Communication
from cwb.schedules.iteration import COMPUTE, IDLE, Task, lower_bound, simulate, time_breakdown
from hypothesis import given
from hypothesis import strategies as st


@st.composite
def programs(draw, most=12):
    """Tasks on computations and two streams of communication of two stages, some on none."""
    tasks = []
    for index in range(draw(st.integers(0, most))):
        before = draw(st.sets(st.integers(0, index - 1), max_size=3)) if index else set()
        stream = draw(st.sampled_from([COMPUTE, "a", "b", None]))
        seconds = Fraction(draw(st.integers(0, 6)), 3)
        what = "work" if stream == COMPUTE else "talk"
        tasks.append(Task(str(index), what, draw(st.integers(0, 1)), stream, seconds, tuple(sorted(before))))
    return tasks


def starts_of(tasks):
    """Simulate tasks that do not slow each other down: each ends as long after its start as it takes."""
    spans = simulate(tasks)
    assert all(end - start == task.seconds for task, (start, end) in zip(tasks, spans, strict=True))
    return [start for start, _ in spans]


def ends(tasks, starts):
    return [start + task.seconds for task, start in zip(tasks, starts, strict=True)]


@given(programs())
def test_every_task_begins_as_soon_as_it_can(tasks):
    """A task begins when its last predecessor or the task before it on its stream ends, whichever is later: the time is
    the longest path, the order of the streams included; computations are in program order, the others in that of their
    readiness."""
    starts = starts_of(tasks)
    ended = ends(tasks, starts)
    ready = [max((ended[i] for i in task.after), default=Fraction(0)) for task in tasks]
    lines = {task.line for task in tasks if task.line}
    for line in lines:
        mine = [i for i, task in enumerate(tasks) if task.line == line]
        key = (lambda i: i) if line[1] == COMPUTE else (lambda i: (starts[i], ended[i], ready[i]))
        ordered = sorted(mine, key=key)
        free = Fraction(0)
        for i in ordered:
            assert starts[i] == max(ready[i], free), i
            free = ended[i]
        if line[1] != COMPUTE:
            assert [ready[i] for i in ordered] == sorted(ready[i] for i in ordered)
    assert all(starts[i] == ready[i] for i, task in enumerate(tasks) if task.line is None)


@given(programs())
def test_the_bound_is_no_larger_and_what_is_spent_is_the_time(tasks):
    """No time is below the bound, without streams the critical path is the time, and what each stage does sums to
    it."""
    starts = starts_of(tasks)
    total = max(ends(tasks, starts), default=Fraction(0))
    path, busiest = lower_bound(tasks)
    assert max(path, busiest) <= total <= sum((task.seconds for task in tasks), Fraction(0))
    free = [Task(t.name, t.what, t.stage, None, t.seconds, t.after) for t in tasks]
    assert max(ends(free, starts_of(free)), default=Fraction(0)) == path
    for stage in (0, 1):
        parts = time_breakdown(tasks, starts, stage)
        assert sum(parts.values()) == total
        work = sum(t.seconds for t in tasks if t.stage == stage and t.stream == COMPUTE)
        assert parts.get("work", 0) == work
        assert set(parts) <= {"work", "talk", IDLE}


def best(tasks):
    """The least time of all orders of the tasks, each of which begins as early as its stream and predecessors allow."""
    least = None
    for order in permutations(range(len(tasks))):
        place = {index: at for at, index in enumerate(order)}
        if any(place[before] > place[i] for i, task in enumerate(tasks) for before in task.after):
            continue
        ended, free = {}, {}
        for i in order:
            task = tasks[i]
            start = max((ended[before] for before in task.after), default=Fraction(0))
            start = max(start, free.get(task.line, Fraction(0))) if task.line else start
            ended[i] = start + task.seconds
            free[task.line] = ended[i]
        total = max(ended.values(), default=Fraction(0))
        least = total if least is None else min(least, total)
    return least


@given(programs(most=5))
def test_no_order_is_faster_than_the_bound(tasks):
    """The bound holds for the best of all orders of the streams, which is no slower than the simulation."""
    total = max(ends(tasks, starts_of(tasks)), default=Fraction(0))
    assert max(lower_bound(tasks)) <= best(tasks) <= total


def test_what_is_exposed():
    """While a stage computes, communication beside it does not count; the rest of it does, and waiting is idle."""
    tasks = [
        Task("a", "forward", 0, COMPUTE, Fraction(2)),
        Task("a", "dp all_reduce", 0, "communication", Fraction(3), (0,)),
        Task("b", "forward", 0, COMPUTE, Fraction(1), (0,)),
        Task("c", "forward", 1, COMPUTE, Fraction(1), (1,)),
    ]
    starts = starts_of(tasks)
    assert starts == [0, 2, 2, 5]
    assert time_breakdown(tasks, starts, 0) == {"forward": 3, "dp all_reduce": 2, IDLE: 1}
    assert time_breakdown(tasks, starts, 1) == {IDLE: 5, "forward": 1}
    assert lower_bound(tasks) == (6, 6)


def test_a_task_after_a_later_one_is_refused():
    """A task can only wait for tasks before it in the list."""
    with pytest.raises(ValueError, match="does not come before it"):
        simulate([Task("a", "forward", 0, COMPUTE, Fraction(1), (0,))])


def test_collectives_that_run_at_once_slow_each_other_down():
    """Two collectives of 4 s and 2 s, of which the second begins after 1 s and each takes twice as long beside the
    other: the second ends at 5, the first has 1 s left then. A computation beside them and another stage are as fast as
    ever."""
    said = [Communication(Collective.ALL_REDUCE, Fraction(1), group) for group in ("a", "b", "c")]
    tasks = [
        Task("first", "talk", 0, "a", Fraction(4), (), said[0]),
        Task("before", "work", 0, COMPUTE, Fraction(1)),
        Task("second", "talk", 0, "b", Fraction(2), (1,), said[1]),
        Task("beside", "work", 0, COMPUTE, Fraction(7), (1,)),
        Task("elsewhere", "talk", 1, "c", Fraction(5), (), said[2]),
    ]
    spans = simulate(tasks, lambda together: [Fraction(len(together))] * len(together))
    assert spans == [(0, 6), (0, 1), (1, 5), (1, 8), (0, 5)]
