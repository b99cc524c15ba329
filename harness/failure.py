"""Records of runs whose outcome cannot be written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..core.errors import ExitStatus
from ..core.record import RunRecord

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


def not_json_record(record: RunRecord, error: Exception) -> RunRecord:
    """Return the failure record of a method whose record JSON cannot represent."""
    return replace(
        record,
        status="error",
        message=f"internal error: the record is not JSON: {error}",
        exit_status=int(ExitStatus.FAILURE),
        **NOTHING_FOUND,
    )
