"""Runs the cells of a suite, one after another, and keeps a record of every one.

:func:`run_cell` needs nothing but the cell and makes a record whatever happens, so that it can be called in any process.
"""

from __future__ import annotations

import platform
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .. import instances
from ..core.budget import silent
from ..core.errors import CwbError, ExitStatus, InputError
from ..core.instance import Instance
from ..core.record import RunRecord, append_record
from ..models import registry
from .demand import with_demand
from .interrupt import stop_on_interrupt
from .plan import Cell, cells, load_suite
from .run import cwb_version, plain_option, run_one

#: What a record says that has found nothing.
_NOTHING_FOUND: Mapping[str, Any] = {
    "objective": None,
    "bound": None,
    "gap": None,
    "verified": None,
    "violations": (),
    "metrics": {},
    "answer": None,
    "certificate": None,
}


def run_cell(cell: Cell, stop: threading.Event | None = None) -> RunRecord:
    """Make the record of a cell, whatever happens: what cannot be run is a record that says why."""
    instance: Instance | None = None
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        instance = with_demand(instances.load(cell.instance), cell.collective, cell.size, cell.chunks)
        return run_one(instance, cell.request, stop=stop)
    except CwbError as error:
        message, exit_status = str(error), error.exit_status
    except Exception as error:
        message, exit_status = f"internal error: {type(error).__name__}: {error}", ExitStatus.FAILURE
    return _failure(cell, instance, message, exit_status, started_at)


def _failure(
    cell: Cell, instance: Instance | None, message: str, exit_status: ExitStatus, started_at: str
) -> RunRecord:
    """Make the record of a run that did not come about."""
    request = cell.request
    try:
        kind = registry.get(request.model).kind.value
    except Exception:
        kind = ""
    demand = None if instance is None else instance.demand
    return RunRecord(
        cwb_version=cwb_version(),
        model=request.model,
        kind=kind,
        instance=cell.instance if instance is None else instance.name,
        instance_sha256="" if instance is None else instance.sha256,
        collective=None if demand is None else demand.collective.value,
        solver=request.solver,
        solver_version=None,
        options={name: plain_option(value) for name, value in request.options.items()},
        seed=request.seed,
        threads=request.threads,
        status="error",
        message=" ".join(message.split()),
        host=platform.node(),
        started_at=started_at,
        exit_status=int(exit_status),
    )


@dataclass(frozen=True)
class Comparison:
    """What came of running cells.

    Parameters
    ----------
    records : list of RunRecord
        The records that were written, in order.
    planned : int
        Number of cells.
    interrupted : bool
        Whether Ctrl-C ended it; the run that it cut short has no record.
    """

    records: list[RunRecord]
    planned: int
    interrupted: bool


def run_cells(plan: Sequence[Cell], ledger: Path, progress: Callable[[str], None] = silent) -> Comparison:
    """Run cells one after another and append each record as soon as it is made.

    The first Ctrl-C asks the run at hand to stop, the second does not wait for it; either ends the comparison.

    Parameters
    ----------
    plan : sequence of Cell
        What to run.
    ledger : Path
        The JSONL file; its folder is made.
    progress : callable
        Told ``done/total`` and what was done.

    Raises
    ------
    InputError
        If the ledger cannot be written.
    """
    records: list[RunRecord] = []
    try:
        ledger.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError((error.strerror or "cannot be made").lower(), source=str(ledger.parent)) from None
    stop = threading.Event()
    with stop_on_interrupt(stop):
        for done, cell in enumerate(plan):
            try:
                record = run_cell(cell, stop)
            except KeyboardInterrupt:
                break
            if stop.is_set():
                break
            records.append(_append(ledger, record))
            seconds = record.seconds.get("total", 0.0)
            progress(f"{done + 1}/{len(plan)} {record.status} in {seconds:.2f} s: {cell}")
    return Comparison(records, len(plan), len(records) < len(plan))


def run_suite(spec: str | Path, output: Path, progress: Callable[[str], None] = silent) -> list[RunRecord]:
    """Run every cell of a suite and append the records to ``output/records.jsonl``.

    Raises
    ------
    InputError
        If the suite is wrong or the records cannot be written.
    KeyboardInterrupt
        If Ctrl-C ended it; the records up to there are written.
    """
    comparison = run_cells(cells(load_suite(spec)), output / "records.jsonl", progress)
    if comparison.interrupted:
        raise KeyboardInterrupt
    return comparison.records


def _append(ledger: Path, record: RunRecord) -> RunRecord:
    """Append a record; one that JSON cannot hold is written as the method's failure."""
    try:
        append_record(ledger, record)
    except (TypeError, ValueError) as error:
        record = replace(
            record,
            status="error",
            message=f"internal error: the record is not JSON: {error}",
            exit_status=int(ExitStatus.FAILURE),
            **_NOTHING_FOUND,
        )
        append_record(ledger, record)
    return record
