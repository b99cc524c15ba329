"""Quantities with units: from text such as ``"25 GiB/s"`` to exact numbers in base units, and back.

Inside cwb everything is in seconds, bytes, bytes per second, US dollars and floating-point operations per second. A
quantity read from text is a :class:`fractions.Fraction`, exactly the number that was written: a decimal, with or
without an exponent, or a fraction of integers such as ``"100/3 GB/s"``. Sizes written with binary prefixes (KiB, MiB,
GiB) are powers of 1024, with decimal ones (kB, MB, GB) powers of 1000; ``Gb/s`` and ``Gbps`` are bits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from itertools import count

from .errors import InputError, shown

_DECIMAL = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50}


def _size_units() -> dict[str, Fraction]:
    units = {f"{prefix}B": Fraction(scale) for prefix, scale in {**_DECIMAL, **_BINARY}.items()}
    units |= {f"{prefix}b": Fraction(scale, 8) for prefix, scale in {**_DECIMAL, **_BINARY}.items()}
    return units


_SIZE = _size_units()
_RATE = {f"{unit}/s": scale for unit, scale in _SIZE.items()} | {
    f"{prefix}bps": Fraction(scale, 8) for prefix, scale in _DECIMAL.items()
}
_TIME = {
    "ps": Fraction(1, 10**12),
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "µs": Fraction(1, 10**6),
    "μs": Fraction(1, 10**6),
    "ms": Fraction(1, 10**3),
    "s": Fraction(1),
    "min": Fraction(60),
    "h": Fraction(3600),
}
_MONEY = {"USD": Fraction(1), "$": Fraction(1), "kUSD": Fraction(10**3), "MUSD": Fraction(10**6)}
_PRICE = {f"{money}/({rate})": value / scale for money, value in _MONEY.items() for rate, scale in _RATE.items()} | {
    f"{money}/GB/s": value / _RATE["GB/s"] for money, value in _MONEY.items()
}
_SPEED = {f"{prefix}FLOPS": Fraction(scale) for prefix, scale in {**_DECIMAL, **_BINARY}.items()}


class UnitKind(Enum):
    """What a quantity measures: its name, an example, and its units with their size in base units."""

    SIZE = ("a size", "1 GiB", _SIZE)
    RATE = ("a bandwidth", "50 GB/s", _RATE)
    TIME = ("a time", "0.7 us", _TIME)
    MONEY = ("an amount of money", "15e6 USD", _MONEY)
    PRICE = ("a price of bandwidth", "7.8 USD/(GB/s)", _PRICE)
    SPEED = ("a compute speed", "234 TFLOPS", _SPEED)

    def __init__(self, label: str, example: str, units: dict[str, Fraction]) -> None:
        self.label = label
        self.example = example
        self.units = units


#: Quantities beyond this, or below its inverse, in base units are rejected: products of a few of them still fit in a
#: float.
_LARGEST = Fraction(10**30)

#: Digits of a number, or of either part of a fraction; with an exponent of three digits, what is read stays small.
_DIGITS = 40
_QUANTITY = re.compile(
    rf"""
    \s* (?P<number> [+-]? (?: [0-9]{{1,{_DIGITS}}}/[0-9]{{1,{_DIGITS}}} | [0-9.]{{1,{_DIGITS}}}(?:[eE][+-]?[0-9]{{1,3}})? ) )
    \s* (?P<unit> (?:[^\s0-9.]\S*)? )
    \s* \Z""",
    re.VERBOSE,
)


def parse(text: object, kind: UnitKind, *, allow_zero: bool = True) -> Fraction:
    """Read one quantity.

    Parameters
    ----------
    text : object
        Text of the user; anything but a string is rejected, since a bare number has no unit.
    kind : UnitKind
        What the quantity must measure.
    allow_zero : bool
        Whether 0 is a sensible value here; negative values never are.

    Returns
    -------
    Fraction
        The value in base units (B, B/s, s, USD, USD per B/s, FLOP/s).

    Raises
    ------
    InputError
        If the text has no unit, a unit of another kind, or a number that is not finite, non-negative and of a sensible
        size.
    """
    if not isinstance(text, str):
        raise InputError(f"{shown(text)} has no unit; {_expected(kind)}")
    return _parsed(text, kind, allow_zero)


def _expected(kind: UnitKind) -> str:
    return f"expected {kind.label} with its unit, such as {kind.example!r}"


@lru_cache(maxsize=1024)
def _parsed(text: str, kind: UnitKind, allow_zero: bool) -> Fraction:
    """Read one text; a large network says the same few a million times."""
    expected = _expected(kind)
    match = _QUANTITY.match(text)
    if match is None:
        raise InputError(f"{shown(text)} is not a quantity; {expected}")
    if not match["unit"]:
        raise InputError(f"{shown(text)} has no unit; {expected}")
    scale = kind.units.get(match["unit"])
    if scale is None:
        raise InputError(f"{shown(text)} has an unknown unit {shown(match['unit'])}; {expected}")
    try:
        value = Fraction(match["number"]) * scale
    except (ValueError, ZeroDivisionError):
        raise InputError(f"{shown(text)} is not a quantity; {expected}") from None
    if value < 0 or (value == 0 and not allow_zero):
        sign = "must not be negative" if value < 0 else "must be greater than zero"
        raise InputError(f"{shown(text)} {sign}; {expected}")
    if value and not 1 / _LARGEST <= value <= _LARGEST:
        raise InputError(f"{shown(text)} is too {'large' if value > 1 else 'small'}; {expected}")
    return value


def exact(value: Fraction, unit: str) -> str:
    """Write a number with its unit so that :func:`parse` reads the same number.

    As a decimal, or as a fraction such as ``100/3 GB/s``.

    Parameters
    ----------
    value : Fraction
        The number, in this unit.
    unit : str
        The unit.

    Raises
    ------
    InputError
        If it has more digits than a quantity may have.
    """
    twos, fives = (next(k for k in count() if value.denominator % prime ** (k + 1)) for prime in (2, 5))
    places = max(twos, fives)
    digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    if value.denominator == 2**twos * 5**fives and len(digits) < _DIGITS:
        whole, part = digits[: len(digits) - places], digits[len(digits) - places :]
        return f"{'-' * (value < 0)}{whole}{'.' * bool(part)}{part} {unit}"
    if max(abs(value.numerator), value.denominator) >= 10**_DIGITS:
        raise InputError(f"{shown(value)} {unit}: expected a fraction of at most {_DIGITS} digits above and below")
    return f"{value} {unit}"


def show(value: float | Fraction, unit: str) -> str:
    """Write a value in base units in the given unit, for people: ``show(5e10, "GB/s")`` is ``"50 GB/s"``."""
    for kind in UnitKind:
        if unit in kind.units:
            return f"{float(value / kind.units[unit]):.6g} {unit}"
    raise ValueError(f"unknown unit {unit!r}")


#: Units of time and of sizes, the largest first.
TIMES = ("s", "ms", "us", "ns")
SIZES = ("TiB", "GiB", "MiB", "KiB", "B")


def amount(value: float | Fraction, units: Sequence[str]) -> str:
    """Write a quantity in the largest unit in which it is at least 1."""
    for unit in units:
        if float((text := show(value, unit)).split()[0]) >= 1:
            return text
    return show(value, units[-1]) if value else "0"
