"""Numbers of a report, marks in place of missing ones, and the natural order of labels."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal

from ..core.outcome import NO_ANSWER
from ..core.record import RunRecord


def number(value: Any) -> float | None:
    """Return a finite number as a float; None for any other value of a record."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        result = float(value)
    except OverflowError:
        return None
    return result if isfinite(result) else None


@dataclass(frozen=True)
class NumberFormat:
    """Format of a column's numbers."""

    #: ``fixed`` digits after the point, ``scientific`` with so many, or ``general`` with so many significant ones
    kind: Literal["fixed", "scientific", "general"]
    digits: int
    scale: float = 1.0  #: divisor of every number: 1e6 for millions

    def show(self, value: float) -> str:
        """Write a number in ASCII, such as ``1.041`` or ``1.2e-8``.

        A nonzero number is never written as zero, nor with dozens of digits, but in scientific notation.
        """
        quotient = value / self.scale
        if quotient == 0:
            return "0" if self.kind != "fixed" else f"{0:.{self.digits}f}"
        if self.kind == "general":
            return _plain_exponent(f"{quotient:.{self.digits}g}")
        if self.kind == "fixed" and abs(quotient) < 1e9:
            text = f"{quotient:.{self.digits}f}"
            if float(text) != 0:
                return text
        return _plain_exponent(f"{quotient:.{self.digits}e}")


def _plain_exponent(text: str) -> str:
    mantissa, e, exponent = text.partition("e")
    return f"{mantissa}e{int(exponent)}" if e else mantissa


def natural(label: str | float | None) -> tuple[Any, ...]:
    """Sort key: numbers before text, and numbers inside text by their value (``gpt-3`` before ``gpt-20``)."""
    if label is None:
        return (2,)
    if not isinstance(label, str):
        return (0, label)
    parts: list[Any] = re.split(r"([0-9]+)", label)
    for i in range(1, len(parts), 2):  # what was split at stands at the odd places
        digits = parts[i].lstrip("0")
        parts[i] = (len(digits), digits)
    return (1, parts, label)


@dataclass(frozen=True)
class Mark:
    """A mark in a cell and its explanation."""

    text: str
    meaning: str


MISSING = Mark("--", "no value")
INVALID = Mark("inv.", "the answer failed verification")
FAILED = Mark("err.", "the run failed")
UNANSWERED = Mark("no ans.", "the model was solved, and its solution is no answer")

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
    if record.message == NO_ANSWER:
        return UNANSWERED
    return MARKS.get(record.status, FAILED)
