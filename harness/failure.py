"""The record of a run that did not come to its own."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..core.errors import ExitStatus
from ..core.record import RunRecord
from .environment import environment

if TYPE_CHECKING:
    from .task import Task

#: What a record says that has found nothing.
NOTHING_FOUND: Mapping[str, Any] = {
    "objective": None,
    "bound": None,
    "gap": None,
    "verified": None,
    "violations": (),
    "metrics": {},
    "answer": None,
    "certificate": None,
}


def failure(task: Task, message: str, started_at: str, exit_status: int = ExitStatus.FAILURE) -> RunRecord:
    """Record of an error, described in one line."""
    return RunRecord(
        **task.known,
        key=task.key,
        status="error",
        message=" ".join(message.split()),
        host=platform.node(),
        started_at=started_at,
        exit_status=int(exit_status),
        environment=environment(),
    )


def not_json(record: RunRecord, error: Exception) -> RunRecord:
    """Make the record of a method whose record JSON cannot hold."""
    return replace(
        record,
        status="error",
        message=f"internal error: the record is not JSON: {error}",
        exit_status=int(ExitStatus.FAILURE),
        **NOTHING_FOUND,
    )
