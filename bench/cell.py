"""Runs one cell in this process and makes a record whatever happens."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import UTC, datetime

from .. import instances
from ..core.errors import CwbError, ExitStatus
from ..core.record import RunRecord
from .demand import with_demand
from .failure import failure
from .plan import Cell
from .request import Listener
from .run import run
from .task import Task, tasks


def run_cell(cell: Cell, stop: threading.Event | None = None) -> RunRecord:
    """Make the record of a cell, whatever happens: what cannot be run is a record that says why."""
    return run_task(tasks([cell])[0], stop)


def run_task(task: Task, stop: threading.Event | None = None, listener: Listener | None = None) -> RunRecord:
    """Make the record of a task, whatever happens."""
    cell, started_at = task.cell, datetime.now(UTC).isoformat(timespec="seconds")
    try:
        instance = with_demand(instances.load(cell.instance), cell.collective, cell.size, cell.chunks)
        record = run(instance, cell.request, stop=stop, listener=listener).record
        return replace(record, key=task.key, limits=task.known["limits"])
    except CwbError as error:
        return failure(task, str(error), started_at, error.exit_status)
    except Exception as error:
        return failure(task, f"internal error: {type(error).__name__}: {error}", started_at, ExitStatus.FAILURE)
