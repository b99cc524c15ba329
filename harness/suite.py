"""Runs the cells of a suite and keeps a record of every one: once, whatever happens meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from ..core.budget import silent
from ..core.record import RunRecord, read_records
from .cell import run_cell
from .drive import ComparisonDriver, Tally, due, unseen
from .executors import open_executor
from .interrupt import stop_on_interrupt
from .ledger import Claims, Ledger
from .plan import Cell, cells
from .suite_file import load_suite, with_seeds
from .task import Limits, Task, tasks

__all__ = ["Settings", "SuiteResult", "Tally", "plan_of", "run_cell", "run_cells", "run_suite"]

#: Seconds for which an instance is loaded to find out whether its run is recorded.
PLAN_S = 5.0


@dataclass(frozen=True)
class SuiteResult:
    """What came of running cells.

    Parameters
    ----------
    records : list of RunRecord
        The records that were written, in that order.
    planned : int
        Number of different runs.
    interrupted : bool
        Whether Ctrl-C ended it; the runs that it cut short have no record.
    skipped : int
        How many had a record before.
    others : int
        How many another comparison has recorded meanwhile.
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
    """How a comparison is run.

    Parameters
    ----------
    limits : Limits
        Instead of those of the suite.
    retry : sequence of str
        What is run again though it has a record: ``failed``, ``limit``, ``all``.
    executor : str
        See :func:`~cwb.harness.executors.open_executor`.
    jobs : int, optional
        Threads of runs at a time.
    """

    limits: Limits = field(default_factory=Limits)
    retry: Sequence[str] = ()
    executor: str = "local"
    jobs: int | None = None


def plan_of(plan: Sequence[Cell], ledger: Path, settings: Settings | None = None) -> tuple[list[Task], list[Task]]:
    """The different runs of cells, and those of them that would be made now; changes nothing.

    What takes longer than :data:`PLAN_S` to be loaded is not looked up in the ledger: its digest is empty.

    Raises
    ------
    InputError
        If the ledger cannot be read.
    """
    settings = settings or Settings()
    everything = tasks(plan, settings.limits, load_s=PLAN_S)
    return everything, due(everything, Ledger(ledger, to_write=False), settings.retry)


def run_cells(
    plan: Sequence[Cell],
    ledger: Path,
    progress: Callable[[str], None] = silent,
    settings: Settings | None = None,
    watch: Callable[[Tally], None] = unseen,
) -> SuiteResult:
    """Run the cells that have no record yet, each in its own process, and append each record as soon as it is made.

    Ctrl-C ends the comparison and runs in progress, which are made when it is started again. Several comparisons may
    work on the same ledger at once: what one does the others leave.

    Parameters
    ----------
    plan : sequence of Cell
        What to run; cells that ask the same are one run.
    ledger : Path
        The JSONL file; its folder is made.
    progress : callable
        Called with ``done/total`` and what was done.
    settings : Settings, optional
        Limits, what is run again, and where.
    watch : callable
        Called with a :class:`~cwb.harness.drive.Tally` whenever it changes.

    Raises
    ------
    InputError
        If the ledger cannot be written, or the executor cannot be had.
    CwbError
        If the executor goes away; what is recorded stays.
    """
    settings = settings or Settings()
    everything = tasks(plan, settings.limits, progress)
    kept = Ledger(ledger)
    todo = due(everything, kept, settings.retry)
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
    spec: str | Path,
    output: Path,
    progress: Callable[[str], None] = silent,
    settings: Settings | None = None,
    seeds: int | None = None,
) -> list[RunRecord]:
    """Run every cell of a suite that ``output/records.jsonl`` has no record of, and give the records of all of them.

    With ``seeds``, every run is made with so many seeds instead of the suite's.

    Raises
    ------
    InputError
        If the suite is wrong or the records cannot be written.
    KeyboardInterrupt
        If Ctrl-C ended it; the records up to there are written.
    """
    plan, ledger = cells(with_seeds(load_suite(spec), seeds)), output / "records.jsonl"
    if run_cells(plan, ledger, progress, settings).interrupted:
        raise KeyboardInterrupt
    last = {record.key: record for record in read_records(ledger)}
    asked = tasks(plan, (settings or Settings()).limits)
    return [last[task.key] for task in asked]
