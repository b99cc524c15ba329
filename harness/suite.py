"""Execution of a suite's cells: every one is run once and recorded, even across interruptions."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..core.budget import ignore
from ..core.errors import CwbError, locate_os_errors
from ..core.record import RunRecord, read_records
from .environment import time_stamp
from .executors import RunExecutor, open_executor
from .interrupt import stop_on_interrupt
from .ledger import Claims, Ledger
from .plan import Cell, cells
from .suite_file import Suite, load_suite, with_seeds
from .supervise import supervise
from .task import Limits, Task, run_cell, tasks

__all__ = ["ComparisonProgress", "Settings", "SuiteResult", "plan_of", "run_cell", "run_cells", "run_suite"]

_ASK_S = 0.5  #: How often it is asked whether another comparison is done with what it has claimed, in seconds.
PLAN_S = 5.0  #: Seconds for which an instance is loaded to find out whether its run is recorded.


@dataclass(frozen=True)
class ComparisonProgress:
    """Progress of a comparison."""

    total: int
    runs: int = 0  #: Those that have ended.
    running: int = 0
    failed: int = 0
    others: int = 0
    seconds_left: float | None = None  #: Estimate from the mean time per finished run; None before the first.


def due_tasks(tasks: Iterable[Task], ledger: Ledger, retry: Sequence[str] = ()) -> list[Task]:
    """Select the tasks without a record, and those to run again."""
    due = []
    for task in tasks:
        entry = ledger.entry(task.key)
        again = "all" in retry or ("failed" in retry and entry.failed) or ("limit" in retry and entry.limited)
        if again or not entry.count:
            due.append(task)
    return due


class ComparisonDriver:
    """Driver of one comparison: ``progress`` gets a line for each record, ``watch`` the tally whenever it changes."""

    def __init__(
        self,
        tasks: Sequence[Task],
        ledger: Ledger,
        claims: Claims,
        executor: RunExecutor,
        progress: Callable[[str], None] = ignore,
        watch: Callable[[ComparisonProgress], None] = ignore,
    ) -> None:
        # Records that need no run are written first, however fast the others are.
        self._todo = sorted(tasks, key=lambda task: task.record is None)
        self._begun_with = {task.key: ledger.entry(task.key).count for task in tasks}
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
            futures, _ = wait(self._running, timeout=_ASK_S if self._running else 0, return_when=FIRST_COMPLETED)
            for future in [each for each in self._running if each in futures]:
                self._append_record(future)
                if stop.is_set():
                    return
            if self._todo and not self._running and not futures:
                stop.wait(_ASK_S)  # others are at work on all that is left

    def _fill(self) -> None:
        """Submit tasks up to the executor's capacity; retry later those that others have claimed."""
        capacity = self._executor.capacity()
        free = capacity - sum(_slots(task) for task in self._running.values())
        later: list[Task] = []
        for index, task in enumerate(self._todo):
            if self._running and free < min(_slots(task), capacity):
                later += self._todo[index:]
                break
            if not self._claims.take(task.key):
                later.append(task)
                continue
            self._ledger.refresh()
            if self._ledger.entry(task.key).count > self._begun_with[task.key]:
                self._claims.give_back(task.key)
                self._update_tally(others=self.tally.others + 1)
                continue
            if task.record is not None:
                future: Future[RunRecord] = Future()
                future.set_result(task.record)
            else:
                future = self._executor.submit(supervise, task)
                free -= _slots(task)
            self._running[future] = task
        self._todo = later
        self._update_tally(running=len(self._running))

    def _append_record(self, future: Future[RunRecord]) -> None:
        task = self._running.pop(future)
        record = self._ledger.append(_record(future, task), self._begun_with[task.key])
        self._claims.give_back(task.key)
        if record is None:
            self._update_tally(others=self.tally.others + 1, running=len(self._running))
            return
        self.records.append(record)
        failed = self.tally.failed + (record.status == "error")
        count = len(self.records)
        rest = self.tally.total - count - self.tally.others
        seconds_left = (time.perf_counter() - self._start_s) / count * rest
        self._update_tally(runs=count, running=len(self._running), failed=failed, seconds_left=seconds_left)
        seconds = record.seconds.get("total", 0.0)
        self._progress(f"{count}/{self.tally.total} {record.shown_status} in {seconds:.2f} s: {task.cell}")

    def _update_tally(self, **changes: Any) -> None:
        self.tally = replace(self.tally, **changes)
        self._watch(self.tally)


def _slots(task: Task) -> int:
    """Return the threads of a run; 0 if its record is known already."""
    return 0 if task.record is not None else task.cell.request.threads


def _record(future: Future[RunRecord], task: Task) -> RunRecord:
    try:
        return future.result()
    except (CancelledError, asyncio.CancelledError):
        raise CwbError("the executor has ended with runs in progress; start again to resume") from None
    except Exception as error:
        return task.failure(f"the run was lost: {type(error).__name__}: {error}", time_stamp())


@dataclass(frozen=True)
class SuiteResult:
    """Result of running cells."""

    records: list[RunRecord] = field(default_factory=list)
    planned: int = 0
    interrupted: bool = False  #: True if Ctrl-C ended it; interrupted runs have no record.
    skipped: int = 0  #: Number of runs with an earlier record.
    others: int = 0
    healed: int = 0  #: Lines of the ledger that were no records, and were moved aside.


@dataclass(frozen=True)
class Settings:
    """Settings of a comparison."""

    limits: Limits = field(default_factory=Limits)
    retry: Sequence[str] = ()  #: Kinds of records to run again: ``failed``, ``limit``, ``all``.
    executor: str = "local"
    jobs: int | None = None  #: Threads of simultaneous runs; by default the executor's own.
    schedules: bool = False  #: True to keep the schedules of verified answers, in ``schedules`` beside the ledger.


def plan_of(plan: Sequence[Cell], ledger: Path, settings: Settings | None = None) -> tuple[list[Task], list[Task]]:
    """Return the different runs of cells, and those that would be made now; change nothing.

    An instance that takes longer than :data:`PLAN_S` to load is not looked up in the ledger: its digest is empty.
    """
    settings = settings or Settings()
    everything = tasks(plan, settings.limits, load_s=PLAN_S)
    return everything, due_tasks(everything, Ledger(ledger, to_write=False), settings.retry)


def run_cells(
    plan: Sequence[Cell],
    ledger: Path,
    progress: Callable[[str], None] = ignore,
    settings: Settings | None = None,
    watch: Callable[[ComparisonProgress], None] = ignore,
) -> SuiteResult:
    """Run the cells without a record, each in its own process, and append every record immediately.

    Ctrl-C ends the comparison and the runs in progress, which are repeated when it is started again. Several
    comparisons may share a ledger at once: each skips the runs of the others. If the executor disappears, existing
    records remain.
    """
    settings = settings or Settings()
    everything = tasks(plan, settings.limits, progress)
    journal = Ledger(ledger)
    todo = due_tasks(everything, journal, settings.retry)
    if settings.schedules:
        folder = (ledger.parent / "schedules").resolve()
        with locate_os_errors("cannot be made", str(folder)):
            folder.mkdir(exist_ok=True)
        todo = [replace(task, schedules=folder) for task in todo]
    stop = threading.Event()
    records: list[RunRecord] = []
    others = 0
    if todo:
        executor = open_executor(settings.executor, ledger.parent / "jobs", settings.jobs)
        claims = Claims(ledger.with_name(f".{ledger.name}.claims"))
        drive = ComparisonDriver(todo, journal, claims, executor, progress, watch)
        records = drive.records
        try:
            with stop_on_interrupt(stop), suppress(KeyboardInterrupt):
                executor.expect(todo)
                drive.run(stop)
            others = drive.tally.others
        finally:
            executor.shutdown(cancel_futures=True)
            claims.close()
    return SuiteResult(records, len(everything), stop.is_set(), len(everything) - len(todo), others, journal.healed)


def run_suite(
    spec: str | Path | Suite,
    output: Path,
    progress: Callable[[str], None] = ignore,
    settings: Settings | None = None,
    seeds: int | None = None,
) -> list[RunRecord]:
    """Run every cell of a suite without a record in ``output/records.jsonl``; return all records.

    With ``seeds``, every run is repeated with that many seeds instead of the suite's. If Ctrl-C ends it, the records so
    far are written, and KeyboardInterrupt is raised.
    """
    plan = cells(with_seeds(spec if isinstance(spec, Suite) else load_suite(spec), seeds))
    ledger = output / "records.jsonl"
    if run_cells(plan, ledger, progress, settings).interrupted:
        raise KeyboardInterrupt
    last = {record.key: record for record in read_records(ledger)}
    all_tasks = tasks(plan, (settings or Settings()).limits)
    return [last[task.key] for task in all_tasks]
