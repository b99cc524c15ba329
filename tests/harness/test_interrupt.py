"""Interruption of work that does not end by itself; results found so far are kept and verified."""

from __future__ import annotations

import _thread
import importlib
import signal
import sys
import threading
from fractions import Fraction
from typing import Any

import pytest
from cwb.algorithms.bounds.schedule_bounds import best_bound
from cwb.core.budget import Budget, Incumbent
from cwb.core.collective import Collective, Demand
from cwb.core.errors import OutOfTime
from cwb.core.method import Kind, Method
from cwb.core.outcome import Outcome
from cwb.core.schedule import StepSchedule
from cwb.harness import Request, interrupt, registry, run
from cwb.harness.clock import WallClock
from cwb.harness.interrupt import RunInterrupted, command_limits, stop_on_interrupt, time_limited
from cwb.instances import load

RING = load("ring(4)").with_changes(demand=Demand(Collective.ALL_GATHER, Fraction(2**20)))


def exhausted_budget() -> Budget:
    """A budget that has come to its end."""
    budget = Budget(time_limit_s=1)
    budget.stop.set()
    return budget


def for_ever() -> None:
    """Work that looks at no budget."""
    while True:
        sum(range(100))


def make_method(name: str, solve: Any) -> Method:
    """A method of the registry."""
    method = Method(name, Kind.HEURISTIC, "of a test", "none", StepSchedule, registry.get("ring").options, solve)
    registry.register(method)
    return method


@pytest.fixture(autouse=True)
def _forget_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drop methods that a test registered after it."""
    monkeypatch.setattr(registry, "_registered", {})


def test_work_that_looks_at_no_budget_is_broken_off() -> None:
    """A loop without end is left when its budget is exhausted, and Ctrl-C is what it was before."""
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(RunInterrupted), time_limited(exhausted_budget(), 0.0):
        for_ever()
    assert signal.getsignal(signal.SIGINT) is before


def test_work_that_takes_the_exception_is_broken_off_again() -> None:
    """If code swallows the exception, it is raised again."""
    taken = 0
    with pytest.raises(RunInterrupted), time_limited(exhausted_budget(), 0.0):
        while True:
            try:
                for_ever()
            except BaseException:
                taken += 1
                if taken == 3:
                    raise


def test_what_has_ended_is_not_broken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt of the watch that comes when the block has ended is ignored."""
    watches: list[interrupt._Watch] = []
    # A bound method of the list would not receive the watch.
    monkeypatch.setattr(interrupt._Watch, "start", lambda watch: watches.append(watch))  # noqa: PLW0108
    with time_limited(exhausted_budget(), 0.0):
        watches[0].end()
        watches[0].due = True
        _thread.interrupt_main()
        for _ in range(1000):
            sum(range(10))


def test_two_interrupts_of_the_watch_are_no_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine the watch repeats itself before the first interrupt has arrived; neither is the user's."""
    watches: list[interrupt._Watch] = []
    monkeypatch.setattr(interrupt._Watch, "start", lambda watch: watches.append(watch))  # noqa: PLW0108
    with time_limited(exhausted_budget(), 0.0):
        watches[0].due = True
        for _ in range(2):
            with pytest.raises(RunInterrupted):
                signal.raise_signal(signal.SIGINT)


def test_an_import_is_whole(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that is being imported is not broken off, but right behind it."""
    (tmp_path / "long_to_import.py").write_text("done = 0\nfor _ in range(10**6):\n    done += 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(RunInterrupted), time_limited(exhausted_budget(), 0.0):
        importlib.import_module("long_to_import")
        for_ever()
    assert sys.modules.pop("long_to_import").done == 10**6


def test_a_second_ctrl_c_is_raised_at_once() -> None:
    """The first sets the event, the second raises KeyboardInterrupt, with and without a watch."""
    for block, stop in (
        (time_limited(budget := Budget()), budget.stop),
        (stop_on_interrupt(s := threading.Event()), s),
    ):
        with block:
            signal.raise_signal(signal.SIGINT)
            assert stop.is_set()
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)


def test_a_command_is_held_to_its_limit() -> None:
    """A command's work outside of runs is interrupted at its limit; Ctrl-C ends it at once or requests a stop."""
    with pytest.raises(OutOfTime, match=r"the time limit of 0\.01 s ran out"), command_limits(WallClock(0.01)):
        for_ever()
    with pytest.raises(KeyboardInterrupt), command_limits(WallClock()):
        _thread.interrupt_main()
        for_ever()
    with command_limits(WallClock(), asks=True) as budget:
        _thread.interrupt_main()
        while not budget.is_exhausted:
            pass


def test_what_takes_the_last_memory_is_broken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run without any limit ends when the machine has hardly any memory left, and says so."""
    monkeypatch.setattr(interrupt, "memory_bytes", lambda process: 21 * 2**30)
    monkeypatch.setattr(interrupt, "spare_bytes", lambda: 2**30)
    with (
        pytest.raises(RunInterrupted, match=r"^the run held 21.0 GiB of memory, and the machine had 1.0 GiB left$"),
        time_limited(Budget()),
    ):
        for_ever()


def test_other_threads_run_as_they_are() -> None:
    """Outside of the main thread, where no signal is handled, nothing is broken off."""
    ended: list[int] = []

    def work() -> None:
        with time_limited(exhausted_budget(), 0.0):
            ended.append(1)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert ended == [1]


def stop_on_answer(request: Request) -> Any:
    """Run a method, and ask it to stop when it tells something with an answer."""
    from cwb.harness.request import Listener

    stop = threading.Event()
    return run(RING, request, stop=stop, listener=Listener(tell=lambda told: told.answer and stop.set()))


def test_what_was_told_is_delivered_and_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    """A method that never returns leaves the answer and the bound that it has told; the verifier checks both."""
    monkeypatch.setattr(interrupt, "GRACE_S", 0.0)
    found = run(RING, Request("ring"))

    def solve(instance: Any, solver: Any, budget: Budget, options: Any) -> Outcome:
        del solver, options
        budget.tell_bound(*best_bound(instance))
        budget.tell(Incumbent(1.0, answer=lambda: found.answer))
        with budget.clock.phase("build"):
            for_ever()
        raise AssertionError

    make_method("endless", solve)
    done = stop_on_answer(Request("endless"))
    assert (done.record.status, done.record.exit_status, done.record.verified) == ("feasible", 0, True)
    assert (done.record.objective, done.record.bound) == (found.record.objective, found.record.bound)
    assert done.record.proof == "recomputed"
    assert done.record.message == "the run was stopped, and the method was broken off in the phase build"
    assert done.answer is found.answer


def test_an_answer_that_takes_no_end_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the answer cannot be assembled in time, only the bound is delivered."""
    monkeypatch.setattr(interrupt, "GRACE_S", 0.0)
    monkeypatch.setattr(sys.modules["cwb.harness.run"], "ANSWER_S", 0.01)

    def solve(instance: Any, solver: Any, budget: Budget, options: Any) -> Outcome:
        del solver, options
        budget.tell_bound(*best_bound(instance))
        budget.tell(Incumbent(1.0, answer=for_ever))
        for_ever()
        raise AssertionError

    make_method("endless", solve)
    record = stop_on_answer(Request("endless")).record
    assert (record.status, record.exit_status, record.answer) == ("limit", 4, None)
    assert record.bound is not None
    assert record.proof == "recomputed"


def test_verification_ends_at_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer whose verification is stopped is left out, and the record says so."""
    runs = sys.modules["cwb.harness.run"]

    def verdict_of(*parts: Any) -> None:
        del parts
        _thread.interrupt_main()
        for_ever()

    monkeypatch.setattr(runs, "verdict_of", verdict_of)
    done = run(RING, Request("ring"))
    assert (done.record.status, done.record.exit_status, done.record.verified) == ("limit", 4, None)
    assert done.record.message == "the run was stopped while the answer was verified; it is left out"
    assert done.answer is None
