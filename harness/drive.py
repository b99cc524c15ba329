"""Driver of a comparison: claims tasks, submits them to an executor, and records their results."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from ..core.budget import ignore
from ..core.errors import CwbError
from ..core.record import RunRecord
from .executors import RunExecutor
from .ledger import Claims, Ledger
from .supervise import supervise
from .task import Task

#: How often it is asked whether another comparison is done with what it has claimed, in seconds.
_ASK_S = 0.5


@dataclass(frozen=True)
class ComparisonProgress:
    """Progress of a comparison.

    Parameters
    ----------
    seconds_left : float or None
        Estimate from the mean time per finished run; None before the first.
    """

    total: int
    done: int = 0
    running: int = 0
    failed: int = 0
    others: int = 0
    seconds_left: float | None = None


def ignore_tally(tally: ComparisonProgress) -> None:
    """Ignore the progress."""
    del tally


def due_tasks(tasks: Iterable[Task], ledger: Ledger, retry: Sequence[str] = ()) -> list[Task]:
    """Select the tasks without a record, and those to run again."""

    def is_due(task: Task) -> bool:
        entry = ledger.entry(task.key)
        if entry is None or "all" in retry:
            return True
        return ("failed" in retry and entry.failed) or ("limit" in retry and entry.limited)

    return [task for task in tasks if is_due(task)]


class ExecutorGoneError(CwbError):
    """The executor dropped runs that were not cancelled."""


class ComparisonDriver:
    """Driver of one comparison.

    Parameters
    ----------
    progress, watch : callable
        Called with a line for each record; called with the tally whenever it changes.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        ledger: Ledger,
        claims: Claims,
        executor: RunExecutor,
        progress: Callable[[str], None] = ignore,
        watch: Callable[[ComparisonProgress], None] = ignore_tally,
    ) -> None:
        # Records that need no run are written first, however fast the others are.
        self._todo = sorted(tasks, key=lambda task: task.record is None)
        self._begun_with = {task.key: _count(ledger, task.key) for task in tasks}
        self._ledger, self._claims, self._executor = ledger, claims, executor
        self._progress, self._watch = progress, watch
        self._running: dict[Future[RunRecord], Task] = {}
        self.tally = ComparisonProgress(len(tasks))
        self._start_s = time.perf_counter()
        self.records: list[RunRecord] = []

    def run(self, stop: threading.Event) -> None:
        """Run tasks until all have a record, or the event is set."""
        while (self._todo or self._running) and not stop.is_set():
            self._fill()
            finished, _ = wait(self._running, timeout=_ASK_S if self._running else 0, return_when=FIRST_COMPLETED)
            for future in [each for each in self._running if each in finished]:
                self._append_record(future)
                if stop.is_set():
                    return
            if self._todo and not self._running and not finished:
                stop.wait(_ASK_S)  # others are at work on all that is left

    def _fill(self) -> None:
        """Submit tasks up to the executor's capacity; retry later those that others have claimed."""
        capacity = self._executor.capacity()
        free = capacity - sum(_slots(task) for task in self._running.values())
        kept: list[Task] = []
        for index, task in enumerate(self._todo):
            if self._running and free < min(_slots(task), capacity):
                kept += self._todo[index:]
                break
            if not self._claims.take(task.key):
                kept.append(task)
                continue
            self._ledger.refresh()
            if _count(self._ledger, task.key) > self._begun_with[task.key]:
                self._claims.give_back(task.key)
                self._update_tally(others=self.tally.others + 1)
                continue
            if task.record is not None:
                self._running[_finished_future(task.record)] = task
                continue
            self._running[self._executor.submit(supervise, task)] = task
            free -= _slots(task)
        self._todo = kept
        self._update_tally(running=len(self._running))

    def _append_record(self, future: Future[RunRecord]) -> None:
        """Append the record of a run."""
        task = self._running.pop(future)
        record = self._ledger.append(_record(future, task), self._begun_with[task.key])
        self._claims.give_back(task.key)
        if record is None:
            self._update_tally(others=self.tally.others + 1, running=len(self._running))
            return
        self.records.append(record)
        failed = self.tally.failed + (record.status == "error")
        done = len(self.records)
        left = self.tally.total - done - self.tally.others
        seconds_left = (time.perf_counter() - self._start_s) / done * left
        self._update_tally(done=done, running=len(self._running), failed=failed, seconds_left=seconds_left)
        seconds = record.seconds.get("total", 0.0)
        self._progress(f"{done}/{self.tally.total} {record.shown_status} in {seconds:.2f} s: {task.cell}")

    def _update_tally(self, **changes: Any) -> None:
        self.tally = replace(self.tally, **changes)
        self._watch(self.tally)


def _slots(task: Task) -> int:
    """Return the threads of a run; 0 if its record is known already."""
    return 0 if task.record is not None else task.cell.request.threads


def _finished_future(record: RunRecord) -> Future[RunRecord]:
    future: Future[RunRecord] = Future()
    future.set_result(record)
    return future


def _count(ledger: Ledger, key: str) -> int:
    entry = ledger.entry(key)
    return 0 if entry is None else entry.count


def _record(future: Future[RunRecord], task: Task) -> RunRecord:
    """Return the record of a run, or of a failure if the executor lost it."""
    try:
        return future.result()
    except (CancelledError, asyncio.CancelledError):
        raise ExecutorGoneError("the executor has ended with runs in progress; start again to resume") from None
    except Exception as error:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        return task.failure(f"the run was lost: {type(error).__name__}: {error}", now)
