"""Execution of one cell in this process, including loading its instance; every outcome becomes a record."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import UTC, datetime

from ..core.budget import Budget
from ..core.errors import CwbError, ExitStatus, OutOfTime
from ..core.limits import limited_by
from ..core.record import RunRecord
from .clock import WallClock
from .interrupt import RunInterrupted, time_limited
from .plan import Cell
from .request import Listener
from .run import FinishedRun, run
from .task import Task, load_cell, task_of, tasks


def run_cell(cell: Cell, stop: threading.Event | None = None) -> RunRecord:
    """Run a cell and return its record; if it cannot run, the record states the reason."""
    return run_task(tasks([cell])[0], stop)


def run_task(task: Task, stop: threading.Event | None = None, listener: Listener | None = None) -> RunRecord:
    """Run a task and return its record, even if it fails."""
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        record = load_and_run(task.cell, stop, listener).record
        return replace(record, key=task.key, limits=task.known["limits"])
    except CwbError as error:
        return task.failure(str(error), started_at, error.exit_status)
    except Exception as error:
        return task.failure(f"internal error: {type(error).__name__}: {error}", started_at, ExitStatus.FAILURE)


def load_and_run(cell: Cell, stop: threading.Event | None = None, listener: Listener | None = None) -> FinishedRun:
    """Load the instance of a cell and run its method, both within the run's time limit.

    Returns
    -------
    FinishedRun
        Without an instance if the time limit ended the loading.

    Raises
    ------
    InputError
        If the instance, the method, the solver or an option is wrong.
    """
    listener, stop = listener or Listener(), stop or threading.Event()
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    clock = WallClock(cell.request.time_limit_s)
    budget = Budget(cell.request.time_limit_s, clock=clock, progress=listener.progress, stop=stop)
    try:
        with clock.phase("load"), limited_by(budget, "loading the instance"), time_limited(budget):
            instance = load_cell(cell)
    except (OutOfTime, RunInterrupted) as error:
        task = task_of(cell, (cell.instance, "", cell.collective))
        message = str(error) or f"{budget.why_exhausted} while loading the instance"
        record = task.failure(message, started_at, ExitStatus.LIMIT)
        return FinishedRun(replace(record, key="", status="limit", seconds=clock.seconds()), None, None, None)
    return run(instance, cell.request, stop=stop, listener=listener, clock=clock)
