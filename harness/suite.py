"""Execution of a suite's cells: every one is run once and recorded, even across interruptions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from ..core.budget import ignore
from ..core.record import RunRecord, read_records
from .cell import run_cell
from .drive import ComparisonDriver, ComparisonProgress, due_tasks, ignore_tally
from .executors import open_executor
from .interrupt import stop_on_interrupt
from .ledger import Claims, Ledger
from .plan import Cell, cells
from .suite_file import Suite, load_suite, with_seeds
from .task import Limits, Task, tasks

__all__ = ["ComparisonProgress", "Settings", "SuiteResult", "plan_of", "run_cell", "run_cells", "run_suite"]

#: Seconds for which an instance is loaded to find out whether its run is recorded.
PLAN_S = 5.0


@dataclass(frozen=True)
class SuiteResult:
    """Result of running cells.

    Parameters
    ----------
    interrupted : bool
        True if Ctrl-C ended it; interrupted runs have no record.
    skipped : int
        Number of runs with an earlier record.
    healed : int
        Lines of the ledger that were no records, and were moved aside.
    """

    records: list[RunRecord] = field(default_factory=list)
    planned: int = 0
    interrupted: bool = False
    skipped: int = 0
    others: int = 0
    healed: int = 0


@dataclass(frozen=True)
class Settings:
    """Settings of a comparison.

    Parameters
    ----------
    retry : sequence of str
        Kinds of records to run again: ``failed``, ``limit``, ``all``.
    jobs : int, optional
        Threads of simultaneous runs; by default the executor's own.
    """

    limits: Limits = field(default_factory=Limits)
    retry: Sequence[str] = ()
    executor: str = "local"
    jobs: int | None = None


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
    watch: Callable[[ComparisonProgress], None] = ignore_tally,
) -> SuiteResult:
    """Run the cells without a record, each in its own process, and append every record immediately.

    Ctrl-C ends the comparison and the runs in progress, which are repeated when it is started again. Several
    comparisons may share a ledger at once: each skips the runs of the others.

    Parameters
    ----------
    progress : callable
        Called with ``done/total`` and a description of the run.
    watch : callable
        Called with a :class:`~cwb.harness.drive.ComparisonProgress` whenever it changes.

    Raises
    ------
    CwbError
        If the executor disappears; existing records remain.
    """
    settings = settings or Settings()
    everything = tasks(plan, settings.limits, progress)
    kept = Ledger(ledger)
    todo = due_tasks(everything, kept, settings.retry)
    stop = threading.Event()
    records: list[RunRecord] = []
    others = 0
    if todo:
        executor = open_executor(settings.executor, ledger.parent / "jobs", settings.jobs)
        claims = Claims(ledger.with_name(f".{ledger.name}.claims"))
        drive = ComparisonDriver(todo, kept, claims, executor, progress, watch)
        records = drive.records
        try:
            with stop_on_interrupt(stop), suppress(KeyboardInterrupt):
                executor.expect(todo)
                drive.run(stop)
            others = drive.tally.others
        finally:
            executor.shutdown(cancel_futures=True)
            claims.close()
    return SuiteResult(records, len(everything), stop.is_set(), len(everything) - len(todo), others, kept.healed)


def run_suite(
    spec: str | Path | Suite,
    output: Path,
    progress: Callable[[str], None] = ignore,
    settings: Settings | None = None,
    seeds: int | None = None,
) -> list[RunRecord]:
    """Run every cell of a suite without a record in ``output/records.jsonl``; return all records.

    With ``seeds``, every run is repeated with that many seeds instead of the suite's.

    Raises
    ------
    KeyboardInterrupt
        If Ctrl-C ended it; the records so far are written.
    """
    plan, ledger = (
        cells(with_seeds(spec if isinstance(spec, Suite) else load_suite(spec), seeds)),
        output / "records.jsonl",
    )
    if run_cells(plan, ledger, progress, settings).interrupted:
        raise KeyboardInterrupt
    last = {record.key: record for record in read_records(ledger)}
    asked = tasks(plan, (settings or Settings()).limits)
    return [last[task.key] for task in asked]
