"""Enforcement of time limits and Ctrl-C, whatever a native solver does (docs/solvers.md).

A call that has not returned ``GRACE_S`` seconds after it was asked to stop is *abandoned*: its thread, memory and
processor stay busy until the solver returns or the process ends. The thread is a daemon, so it does not keep the
process alive. The clock here serves only these limits: reported seconds come from the budget's clock.
"""

import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum, auto
from queue import SimpleQueue
from time import monotonic
from typing import Any, Generic, TypeVar

from ..core.budget import Budget

GRACE_S = 0.5  #: Seconds that a solver has to return after it was asked to stop.

_FIRST_TICK_S = 0.005
_LAST_TICK_S = 0.05

T = TypeVar("T")


class StopReason(Enum):
    """Reason why a solver was asked to stop."""

    TIME_IS_UP = auto()
    BY_USER = auto()


@dataclass(frozen=True)
class CallOutcome(Generic[T]):
    """Outcome of a guarded call.

    ``value`` is None if it was abandoned, ``stop_reason`` if the solver was not asked to stop.
    """

    value: T | None
    stop_reason: StopReason | None
    abandoned: bool


def time_left_s(budget: Budget) -> float | None:
    """Return the seconds left for a solve: the clock's, else the whole limit, else None."""
    remaining = budget.clock.remaining_s()
    return budget.time_limit_s if remaining is None else remaining


class _Call(Future[T]):
    """One call; its function, which may keep a whole solver alive, is released before the outcome is known."""

    def __init__(self, function: Callable[[], T]) -> None:
        super().__init__()
        self._function: Callable[[], T] | None = function

    def make(self) -> None:
        function, self._function = self._function, None
        try:
            value = function()  # type: ignore[misc]
        except BaseException as error:
            del function
            self.set_exception(error)  # raised again in the thread that waits
        else:
            del function
            self.set_result(value)


class _Patience:
    """Waiting policy: asks the solver to stop in time, and tracks the end of the grace period."""

    def __init__(
        self, budget: Budget, limit_s: float | None, grace_s: float, ask: Callable[[], None], tick: Callable[[], None]
    ) -> None:
        self.stop_reason: StopReason | None = None
        self.next_wait_s = _FIRST_TICK_S
        self._budget = budget
        self._limit_s = limit_s
        self._grace_s = grace_s
        self._ask = ask
        self._tick = tick
        self._started = monotonic()
        self._grace_ends = 0.0

    def is_over(self) -> bool:
        self.next_wait_s = min(2 * self.next_wait_s, _LAST_TICK_S)
        self._tick()
        now = monotonic()
        if self.stop_reason is not None:
            return now >= self._grace_ends
        if self._budget.stop.is_set():
            self.stop_reason = StopReason.BY_USER
        elif self._limit_s is not None and now - self._started >= self._limit_s:
            self.stop_reason = StopReason.TIME_IS_UP
        if self.stop_reason is not None:
            self._grace_ends = now + self._grace_s
            self._ask()
        return False


def _serve(inbox: SimpleQueue[_Call[Any] | None]) -> None:
    while (call := inbox.get()) is not None:
        call.make()
        del call  # while the next one is waited for


class Worker:
    """Daemon thread that makes native calls, one after another.

    The thread is kept between calls because HiGHS keeps a scheduler for each thread, and because starting a thread
    costs as much as solving a small linear program. It ends with :meth:`close` or with the worker object.
    """

    def __init__(self, name: str) -> None:
        self._inbox: SimpleQueue[_Call[Any] | None] = SimpleQueue()
        self._thread = threading.Thread(target=_serve, args=(self._inbox,), name=f"cwb-{name}", daemon=True)
        self._thread.start()
        self._finalizer = weakref.finalize(self, self._inbox.put, None)
        self.abandoned = False

    def run(
        self,
        function: Callable[[], T],
        budget: Budget,
        *,
        limit_s: float | None,
        request_stop: Callable[[], None],
        tick: Callable[[], None],
        grace_s: float | None = None,
    ) -> CallOutcome[T]:
        """Make one call and wait for it, but never longer than the limit and the grace period.

        ``budget.stop`` is watched, and set at a first Ctrl-C; a second Ctrl-C is raised, as is any exception of the
        call. After ``limit_s`` seconds the solver is asked to stop; one that keeps the limit itself is faster. The
        waiting thread calls ``request_stop``, once at most, and ``tick`` every few hundredths of a second, to show
        progress. ``grace_s`` seconds after asking the call is abandoned.
        """
        call = _Call(function)
        del function
        patience = _Patience(budget, limit_s, GRACE_S if grace_s is None else grace_s, request_stop, tick)
        self._inbox.put(call)
        while not call.done():
            try:
                # The loop is inside the `try` so that Ctrl-C cannot fall between two waits.
                while not call.done():
                    with suppress(TimeoutError):
                        call.exception(timeout=patience.next_wait_s)
                        continue
                    if patience.is_over():
                        self.abandoned = True
                        return CallOutcome(None, patience.stop_reason, abandoned=True)
            except KeyboardInterrupt:
                if budget.stop.is_set():
                    self.abandoned = True
                    raise
                budget.stop.set()
        return CallOutcome(call.result(), patience.stop_reason, abandoned=False)

    def settle(self, last: Callable[[], None]) -> None:
        """Make the last call of a solve, and wait for it; the worker can be reused."""
        call = _Call(last)
        self._inbox.put(call)
        call.result()

    def close(self, last: Callable[[], None] | None = None) -> None:
        """End the thread after a last call, and wait for its end unless a call was abandoned.

        The last call frees the native objects; after an abandoned call it waits until that returns.
        """
        if not self._finalizer.alive:
            return
        if last is not None:
            self._inbox.put(_Call(last))
        self._finalizer()
        if not self.abandoned:
            self._thread.join()


_idle: dict[str, list[Worker]] = {}
_idle_lock = threading.Lock()


@contextmanager
def lend_worker(name: str, last: Callable[[], None], *, again: bool) -> Iterator[Worker]:
    """Lend a worker; ``last`` frees the native objects in its thread, after the block.

    It is a new one whose thread ends then; or, with ``again``, an idle one of earlier solves of this name, if any. That
    is for libraries that number the threads they have seen: the automatic differentiation inside SCIP has room for 64
    and crashes at the next.
    """
    with _idle_lock:
        waiting = _idle.setdefault(name, [])
        worker = waiting.pop() if waiting else Worker(name)
    try:
        yield worker
    finally:
        if worker.abandoned or not again:
            worker.close(last)
        else:
            worker.settle(last)
            with _idle_lock:
                waiting.append(worker)
