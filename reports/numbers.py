"""Numbers of a report: read from records, formatted, averaged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, fsum, isfinite, log
from typing import Any, Literal

from ..core.units import UnitKind, show


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
    """Format of a column's numbers.

    Parameters
    ----------
    kind : str
        ``fixed`` digits after the point, ``scientific`` with so many, or ``general`` with so many significant ones.
    scale : float
        Divisor of every number: 1e6 for millions.
    """

    kind: Literal["fixed", "scientific", "general"]
    digits: int
    scale: float = 1.0

    def show(self, value: float) -> str:
        """Write a number in ASCII, such as ``1.041`` or ``1.2e-8``.

        A nonzero number is never written as zero, nor with dozens of digits, but in scientific notation.
        """
        scaled = value / self.scale
        if scaled == 0:
            return "0" if self.kind != "fixed" else f"{0:.{self.digits}f}"
        if self.kind == "general":
            return _plain_exponent(f"{scaled:.{self.digits}g}")
        if self.kind == "fixed" and abs(scaled) < 1e9:
            text = f"{scaled:.{self.digits}f}"
            if float(text) != 0:
                return text
        return _plain_exponent(f"{scaled:.{self.digits}e}")


def _plain_exponent(text: str) -> str:
    """Write ``1.2e-08`` as ``1.2e-8``."""
    mantissa, e, exponent = text.partition("e")
    return f"{mantissa}e{int(exponent)}" if e else mantissa


def geometric_mean(values: Sequence[float]) -> float | None:
    """Return the geometric mean; None without values or if one is not positive."""
    if not values or min(values) <= 0:
        return None
    return exp(fsum(map(log, values)) / len(values))


def largest(values: Sequence[float]) -> float | None:
    """Return the largest value; None without values."""
    return max(values, default=None)


def size_text(size: float) -> str:
    """Write bytes in the largest unit that divides them, a binary one first."""
    units = UnitKind.SIZE.units
    for unit in ("GiB", "MiB", "KiB", "GB", "MB", "kB"):
        if size % float(units[unit]) == 0:
            return show(size, unit)
    return show(size, "B" if size < 10_000 else "KiB")
