"""Marks in place of missing numbers; each is explained below the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..core.record import RunRecord


@dataclass(frozen=True)
class Mark:
    """A mark in a cell and its explanation."""

    text: str
    meaning: str


MISSING = Mark("--", "no value")
INVALID = Mark("inv.", "the answer failed verification")
FAILED = Mark("err.", "the run failed")

#: Marks of the statuses that leave no number; an answer's statuses have none.
MARKS: Mapping[str, Mark | None] = {
    "optimal": None,
    "feasible": None,
    "limit": Mark("t.o.", "limit reached without an answer"),
    "infeasible": Mark("inf.", "proved infeasible"),
    "unbounded": Mark("unb.", "unbounded"),
    "unsupported": Mark("n/a", "not supported"),
    "error": FAILED,
}


def mark_of(record: RunRecord | None) -> Mark | None:
    """Return the mark that replaces all numbers of a record; None if they are valid."""
    if record is None:
        return MISSING
    if record.verified is False:
        return INVALID
    return MARKS.get(record.status, FAILED)
