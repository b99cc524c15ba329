"""Runs one cell in this process, with the loading of its instance, and makes a record whatever happens."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import UTC, datetime

from ..core.budget import Budget
from ..core.errors import CwbError, ExitStatus, OutOfTime
from ..core.record import RunRecord
from ..core.watch import watched
from .clock import WallClock
from .failure import failure
from .interrupt import BrokenOff, broken_off
from .plan import Cell
from .request import Listener
from .run import FinishedRun, run
from .task import Task, loaded, task_of, tasks


def run_cell(cell: Cell, stop: threading.Event | None = None) -> RunRecord:
    """Make the record of a cell, whatever happens: what cannot be run is a record that says why."""
    return run_task(tasks([cell])[0], stop)


def run_task(task: Task, stop: threading.Event | None = None, listener: Listener | None = None) -> RunRecord:
    """Make the record of a task, whatever happens."""
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        record = run_loading(task.cell, stop, listener).record
        return replace(record, key=task.key, limits=task.known["limits"])
    except CwbError as error:
        return failure(task, str(error), started_at, error.exit_status)
    except Exception as error:
        return failure(task, f"internal error: {type(error).__name__}: {error}", started_at, ExitStatus.FAILURE)


def run_loading(cell: Cell, stop: threading.Event | None = None, listener: Listener | None = None) -> FinishedRun:
    """Load the instance of a cell and run its method, both within the limit of the run.

    Returns
    -------
    FinishedRun
        Without an instance where the time was over before it was there.

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
        with clock.phase("load"), watched(budget), broken_off(budget):
            instance = loaded(cell)
    except (OutOfTime, BrokenOff) as error:
        task = task_of(cell, (cell.instance, "", cell.collective))
        message = str(error) or f"{budget.why_exhausted} while loading the instance"
        record = failure(task, message, started_at, ExitStatus.LIMIT)
        return FinishedRun(replace(record, key="", status="limit", seconds=clock.seconds()), None, None, None)
    return run(instance, cell.request, stop=stop, listener=listener, clock=clock)
