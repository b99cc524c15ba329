"""Gets tasks done: claims them, hands them to an executor, and appends their records to the ledger."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from ..core.budget import silent
from ..core.errors import CwbError
from ..core.record import RunRecord
from .executors import RunExecutor
from .failure import failure
from .ledger import Claims, Ledger
from .supervise import supervise
from .task import Task

#: How often it is asked whether another comparison is done with what it has claimed, in seconds.
_ASK_S = 0.5


@dataclass(frozen=True)
class Tally:
    """Where a comparison is.

    Parameters
    ----------
    total : int
        Runs to be made.
    done, running, failed : int
        How many have a record now, are at work, and have the record of an error.
    others : int
        How many another comparison has recorded meanwhile.
    seconds_left : float or None
        An estimate, by the mean of those that are done.
    """

    total: int
    done: int = 0
    running: int = 0
    failed: int = 0
    others: int = 0
    seconds_left: float | None = None


def unseen(tally: Tally) -> None:
    """Show nothing."""
    del tally


def due(tasks: Iterable[Task], ledger: Ledger, retry: Sequence[str] = ()) -> list[Task]:
    """Tasks that the ledger has no record of, and those that are to be run again."""

    def is_due(task: Task) -> bool:
        entry = ledger.entry(task.key)
        if entry is None or "all" in retry:
            return True
        return ("failed" in retry and entry.failed) or ("limit" in retry and entry.limited)

    return [task for task in tasks if is_due(task)]


class ExecutorGoneError(CwbError):
    """The executor gave up runs that nobody has cancelled."""


class ComparisonDriver:
    """One comparison at work.

    Parameters
    ----------
    tasks : sequence of Task
        What is due.
    ledger, claims : Ledger, Claims
        Where records go, and who is at work on what.
    executor : RunExecutor
        Makes the runs.
    progress, watch : callable
        Called with a line for each record; called with the tally whenever it changes.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        ledger: Ledger,
        claims: Claims,
        executor: RunExecutor,
        progress: Callable[[str], None] = silent,
        watch: Callable[[Tally], None] = unseen,
    ) -> None:
        self._todo = list(tasks)
        self._begun_with = {task.key: _count(ledger, task.key) for task in tasks}
        self._ledger, self._claims, self._executor = ledger, claims, executor
        self._progress, self._watch = progress, watch
        self._running: dict[Future[dict[str, Any]], Task] = {}
        self.tally = Tally(len(tasks))
        self._start_s = time.perf_counter()
        self.records: list[RunRecord] = []

    def run(self, stop: threading.Event) -> None:
        """Work until everything has a record, or the event is set."""
        while (self._todo or self._running) and not stop.is_set():
            self._fill()
            finished, _ = wait(self._running, timeout=_ASK_S if self._running else 0, return_when=FIRST_COMPLETED)
            for future in [each for each in self._running if each in finished]:
                self._keep(future)
                if stop.is_set():
                    return
            if self._todo and not self._running and not finished:
                stop.wait(_ASK_S)  # others are at work on all that is left

    def _fill(self) -> None:
        """Hand over as many tasks as the executor takes; those that others have claimed are asked for again later."""
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
                self._told(others=self.tally.others + 1)
                continue
            if task.record is not None:
                self._running[_done(task.record)] = task
                continue
            self._running[self._executor.submit(supervise, task.to_json())] = task
            free -= _slots(task)
        self._todo = kept
        self._told(running=len(self._running))

    def _keep(self, future: Future[dict[str, Any]]) -> None:
        """Append the record of a run."""
        task = self._running.pop(future)
        record = self._ledger.append(_record(future, task), self._begun_with[task.key])
        self._claims.give_back(task.key)
        if record is None:
            self._told(others=self.tally.others + 1, running=len(self._running))
            return
        self.records.append(record)
        failed = self.tally.failed + (record.status == "error")
        done = len(self.records)
        left = self.tally.total - done - self.tally.others
        seconds_left = (time.perf_counter() - self._start_s) / done * left
        self._told(done=done, running=len(self._running), failed=failed, seconds_left=seconds_left)
        seconds = record.seconds.get("total", 0.0)
        self._progress(f"{done}/{self.tally.total} {record.shown_status} in {seconds:.2f} s: {task.cell}")

    def _told(self, **changes: Any) -> None:
        self.tally = replace(self.tally, **changes)
        self._watch(self.tally)


def _slots(task: Task) -> int:
    """Threads that a run takes; none where the record is known without it."""
    return 0 if task.record is not None else task.cell.request.threads


def _done(record: Mapping[str, Any]) -> Future[dict[str, Any]]:
    """A future that has its result."""
    future: Future[dict[str, Any]] = Future()
    future.set_result(dict(record))
    return future


def _count(ledger: Ledger, key: str) -> int:
    """Records that the ledger has of a key."""
    entry = ledger.entry(key)
    return 0 if entry is None else entry.count


def _record(future: Future[dict[str, Any]], task: Task) -> RunRecord:
    """Record of a run, or of a failure where the executor lost it."""
    try:
        return RunRecord.from_json(future.result(), source="executor", place="record")
    except (CancelledError, asyncio.CancelledError):
        raise ExecutorGoneError("the executor has ended with runs in progress; start again to resume") from None
    except Exception as error:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        return failure(task, f"the run was lost: {type(error).__name__}: {error}", now)
