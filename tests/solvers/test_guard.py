"""Limits and interruptions are kept by solvers that ignore them."""

from __future__ import annotations

import gc
import os
import signal
import threading
import weakref
from collections.abc import Callable
from typing import Any

import exam_models
import numpy as np
import pyomo.environ as pe
import pytest
from cwb.core.budget import Budget
from cwb.core.errors import CwbError
from cwb.core.solver import Capability, SolverOptions, Termination
from cwb.solvers import get, guard
from cwb.solvers import session as sessions
from cwb.solvers.base import Adapter, Session, SessionResult, Track
from cwb.solvers.guard import StopReason, Worker
from cwb.solvers.matrix import compile_matrix

HANG_S = 30.0
"""Longest wait of a test for something that should have happened long ago."""


class DeafSession(Session):
    """A solver that finds a point, tells about it, and then ignores its limit and every request to stop."""

    def __init__(self) -> None:
        self.version = "1"
        self.track = Track("deaf")
        self.started = threading.Event()
        self.asked = threading.Event()
        self.may_return = threading.Event()
        self.closed = threading.Event()

    def load(self, matrix: Any, *, start: bool) -> None:
        pass

    def run(self, limit_s: float | None) -> SessionResult:
        self.track.values = np.array([2.0])
        self.track.tell(3, 2.0, 1.0)
        self.started.set()
        self.may_return.wait(HANG_S)
        return SessionResult(Termination.OPTIMAL, np.array([1.0]), 1.0)

    def request_stop(self) -> None:
        self.asked.set()

    def close(self) -> None:
        self.closed.set()


class Deaf(Adapter):
    """An adapter whose solver is deaf; its library is one that is always there."""

    name = "deaf"
    title = "Deaf"
    package = "numpy"
    requirement = "numpy"
    capabilities = Capability.LP

    def __init__(self) -> None:
        self.session = DeafSession()

    def open(self, budget: Budget, options: SolverOptions) -> Session:
        return self.session


def model() -> Any:
    m = pe.ConcreteModel()
    m.x = pe.Var(bounds=(0, 9))
    m.o = pe.Objective(expr=m.x)
    return m


@pytest.fixture
def deaf(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(guard, "GRACE_S", 0.2)
    solver = Deaf()
    yield solver
    solver.session.may_return.set()


def test_limit_is_kept_by_a_deaf_solver(deaf: Deaf) -> None:
    """After limit and grace the solve returns with the point and the bound that the callbacks have told."""
    m = model()
    result = deaf.solve(m, Budget(time_limit_s=0.2))
    assert result.termination is Termination.TIME_LIMIT
    assert deaf.session.asked.is_set()
    assert result.has_solution
    assert (result.objective, result.bound, result.nodes) == (2.0, 1.0, 3)
    assert m.x.value == 2.0
    assert "abandoned" in result.message


def test_abandoned_solver_is_closed_when_it_returns(deaf: Deaf) -> None:
    """Resources of an abandoned solver are freed by its own thread, after it has returned."""
    deaf.solve(model(), Budget(time_limit_s=0.1))
    assert not deaf.session.closed.is_set()
    deaf.session.may_return.set()
    assert deaf.session.closed.wait(HANG_S)


def test_stop_is_kept_by_a_deaf_solver(deaf: Deaf) -> None:
    """The user's request to stop is kept in the same way, and is told apart from the limit."""
    budget = Budget()
    timer = threading.Timer(0.1, budget.stop.set)
    timer.start()
    result = deaf.solve(model(), budget)
    timer.join()
    assert result.termination is Termination.INTERRUPTED
    assert result.objective == 2.0


def test_second_ctrl_c_is_raised(deaf: Deaf, monkeypatch: pytest.MonkeyPatch) -> None:
    """A first Ctrl-C asks, a second one does not wait any longer."""
    monkeypatch.setattr(guard, "GRACE_S", HANG_S)
    budget = Budget()

    def interrupt_twice() -> None:
        for event in (deaf.session.started, budget.stop):
            event.wait(HANG_S)
            os.kill(os.getpid(), signal.SIGINT)

    user = threading.Thread(target=interrupt_twice)
    user.start()
    with pytest.raises(KeyboardInterrupt):
        deaf.solve(model(), budget)
    user.join()
    assert budget.stop.is_set()


def test_limit_counts_from_the_clock() -> None:
    """The clock's remaining time goes before the whole limit, which goes before none."""

    class Clock:
        def __init__(self, left: float | None) -> None:
            self.left = left

        def remaining_s(self) -> float | None:
            return self.left

    assert guard.time_left_s(Budget(clock=Clock(3.0), time_limit_s=9.0)) == 3.0
    assert guard.time_left_s(Budget(clock=Clock(None), time_limit_s=9.0)) == 9.0
    assert guard.time_left_s(Budget()) is None


def _run(worker: Worker, function: Callable[[], Any], **wanted: Any) -> Any:
    settings: dict[str, Any] = {"limit_s": None, "request_stop": lambda: None, "tick": lambda: None} | wanted
    return worker.run(function, settings.pop("budget", Budget()), **settings)


def test_error_comes_back() -> None:
    """An error of the native call is raised where it was called from."""
    worker = Worker("test")
    with pytest.raises(ZeroDivisionError):
        _run(worker, lambda: 1 / 0)
    assert _run(worker, lambda: 7).value == 7
    worker.close()


def test_calls_come_from_one_thread() -> None:
    """A worker makes all its calls from one thread, the last one too, and ends it."""
    worker, seen = Worker("test"), []
    for _ in range(3):
        _run(worker, lambda: seen.append(threading.get_ident()))
    worker.close(lambda: seen.append(threading.get_ident()))
    assert len(seen) == 4
    assert len(set(seen)) == 1
    assert not any(thread.name == "cwb-test" for thread in threading.enumerate())


def test_worker_ends_with_its_owner() -> None:
    """A worker that nobody closed ends when nobody has it any more, and keeps nothing of its last call alive."""

    class Heavy:
        pass

    heavy = Heavy()
    gone = weakref.ref(heavy)
    worker = Worker("forgotten")
    _run(worker, lambda heavy=heavy: None)
    del heavy
    gc.collect()
    assert gone() is None
    thread = worker._thread
    del worker
    gc.collect()
    thread.join(HANG_S)
    assert not thread.is_alive()


def test_solver_is_asked_once_and_ticks_go_on() -> None:
    """The solver is asked once when the time is up; ticks go on while it finishes in its grace."""
    worker, asked, ticks = Worker("test"), [], []
    may_return = threading.Event()

    def tick() -> None:
        ticks.append(bool(asked))
        if len([late for late in ticks if late]) == 3:
            may_return.set()

    ended = _run(
        worker,
        lambda: may_return.wait(HANG_S),
        limit_s=0.05,
        request_stop=lambda: asked.append(1),
        tick=tick,
        grace_s=HANG_S,
    )
    worker.close()
    assert ended.stop_reason is StopReason.TIME_IS_UP
    assert not ended.abandoned
    assert asked == [1]
    assert ticks.count(True) >= 3


def test_first_ctrl_c_sets_stop_and_waits() -> None:
    """Ctrl-C while waiting is turned into the budget's stop, and the call may finish."""
    worker, budget, may_return = Worker("test"), Budget(), threading.Event()
    timer = threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    ended = _run(worker, lambda: may_return.wait(HANG_S), budget=budget, request_stop=may_return.set, grace_s=HANG_S)
    timer.join()
    worker.close()
    assert budget.stop.is_set()
    assert ended.stop_reason is StopReason.BY_USER


def test_compiled_model_is_dead_after_it_was_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiled model whose solver was left behind says so instead of touching the running solver."""
    monkeypatch.setattr(guard, "GRACE_S", 0.1)
    solver = get("highs")
    m = model()
    compiled = solver.compile(m, Budget())
    session = compiled._session
    may_return = threading.Event()

    def deaf_run(limit_s: float | None) -> SessionResult:
        may_return.wait(HANG_S)
        return SessionResult(Termination.OPTIMAL)

    monkeypatch.setattr(session, "run", deaf_run)
    assert compiled.solve(Budget(time_limit_s=0.05)).termination is Termination.TIME_LIMIT
    with pytest.raises(CwbError, match="compile the model again"):
        compiled.solve(Budget())
    may_return.set()


def test_interrupt_by_a_handler_of_the_library_is_passed_on() -> None:
    """A solver that was interrupted without having been asked was interrupted by the user: the whole run stops."""
    budget = Budget()
    outcome = sessions._explain(
        guard.CallOutcome(SessionResult(Termination.INTERRUPTED), None, abandoned=False), Track("x"), budget
    )
    assert outcome.termination is Termination.INTERRUPTED
    assert budget.stop.is_set()


def test_a_silent_solver_is_told_to_be_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a solver that reports nothing a line says now and then what it works on; new lines come not too often."""
    monkeypatch.setattr(sessions, "_TICKS_OF_SILENCE", 2)
    monkeypatch.setattr(sessions, "_TICKS_OF_A_LINE", 2)
    lines: list[str] = []
    track = Track("some")
    matrix = compile_matrix(exam_models.mip())
    watch = sessions._Watch(track, matrix, Budget(progress=lines.append))
    for _ in range(4):
        watch.tick()
    assert lines == [f"some: {matrix.size.variables} variables, {matrix.size.constraints} rows"] * 2
    for nodes in range(5):
        track.tell(nodes, None, None)
        watch.tick()
    watch.tell()
    assert lines[2:] == [f"some: {nodes} nodes, no solution yet" for nodes in (0, 2, 4)]
