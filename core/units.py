"""Quantities with units, between text such as ``"25 GiB/s"`` and exact numbers in base units.

Inside cwb everything is in seconds, bytes, bytes per second, US dollars and floating-point operations per second. A
quantity read from text is a :class:`fractions.Fraction` with exactly the written value: a decimal, with or without
an exponent, or a fraction of integers such as ``"100/3 GB/s"``. Sizes written with binary prefixes (KiB, MiB, GiB)
are powers of 1024, with decimal ones (kB, MB, GB) powers of 1000; ``Gb/s`` and ``Gbps`` are bits.
"""

import re
from collections.abc import Iterable, Sequence
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from itertools import count
from math import gcd, lcm

from .errors import InputError, locate_errors, show_value

_DECIMAL = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50}

_SIZE = {f"{prefix}B": Fraction(scale) for prefix, scale in {**_DECIMAL, **_BINARY}.items()}
_SIZE |= {f"{prefix}b": Fraction(scale, 8) for prefix, scale in {**_DECIMAL, **_BINARY}.items()}
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
    """Kind of quantity: its name, an example, and its units with their size in base units."""

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
#: Exact numbers of few digits; a ``Fraction`` of ``1e999999999`` would fill the memory.
_NUMBER = re.compile(
    r"(?=\.?[0-9])[0-9]{0,20}(\.[0-9]{0,20})?(e[+-]?[0-9]{1,3})?|[0-9]{1,40}/[0-9]{1,40}", re.IGNORECASE | re.ASCII
)

_QUANTITY = re.compile(
    rf"""
    \s* (?P<number> [+-]? (?:
        [0-9]{{1,{_DIGITS}}}/[0-9]{{1,{_DIGITS}}} | [0-9.]{{1,{_DIGITS}}}(?:[eE][+-]?[0-9]{{1,3}})? ) )
    \s* (?P<unit> (?:[^\s0-9.]\S*)? )
    \s* \Z""",
    re.VERBOSE,
)


def parse(
    text: object,
    kind: UnitKind,
    *,
    allow_zero: bool = True,
    bare_unit: str = "",
    expected: str = "",
    source: str | None = None,
) -> Fraction:
    """Parse one quantity to base units (B, B/s, s, USD, USD per B/s, FLOP/s).

    Anything but a string is rejected, since a bare number has no unit; ``bare_unit`` is the unit of a string without
    one. Negative values are never accepted, 0 if ``allow_zero``. ``expected`` describes valid text in the message; by
    default the kind and an example. ``source`` is the option that an error names.
    """
    if source is not None:
        with locate_errors(source=source):
            return parse(text, kind, allow_zero=allow_zero, bare_unit=bare_unit, expected=expected)
    if not isinstance(text, str):
        raise InputError(f"{show_value(text)} has no unit; expected {expected or _describe_kind(kind)}")
    return _parse_text(text, kind, allow_zero, bare_unit, expected)


def _describe_kind(kind: UnitKind) -> str:
    return f"{kind.label} with its unit, such as {kind.example!r}"


@lru_cache(maxsize=1024)
def _parse_text(text: str, kind: UnitKind, allow_zero: bool, bare_unit: str, expected: str) -> Fraction:
    """Parse one text; cached, since a large network repeats the same few a million times."""
    expected = f"expected {expected or _describe_kind(kind)}"
    match = _QUANTITY.match(text)
    if match is None:
        raise InputError(f"{show_value(text)} is not a quantity; {expected}")
    unit = match["unit"] or bare_unit
    if not unit:
        raise InputError(f"{show_value(text)} has no unit; {expected}")
    scale = kind.units.get(unit)
    if scale is None:
        raise InputError(f"{show_value(text)} has an unknown unit {show_value(unit)}; {expected}")
    try:
        value = Fraction(match["number"]) * scale
    except (ValueError, ZeroDivisionError):
        raise InputError(f"{show_value(text)} is not a quantity; {expected}") from None
    if value < 0 or (value == 0 and not allow_zero):
        sign = "must not be negative" if value < 0 else "must be greater than zero"
        raise InputError(f"{show_value(text)} {sign}; {expected}")
    if value and not 1 / _LARGEST <= value <= _LARGEST:
        raise InputError(f"{show_value(text)} is too {'large' if value > 1 else 'small'}; {expected}")
    return value


def exact_number(text: str) -> Fraction | None:
    """Parse an exact number of at least 0 such as ``0.3``, ``1e-3`` or ``1/3``; None if it is none."""
    if not _NUMBER.fullmatch(text := text.strip()):
        return None
    try:
        return Fraction(text)
    except ZeroDivisionError:
        return None


def common_unit(values: Iterable[Fraction]) -> Fraction:
    """Return the largest number of which all values are whole multiples; 0 if all are 0, or there are none."""
    distinct = set(values)
    return Fraction(gcd(*(value.numerator for value in distinct)), lcm(*(value.denominator for value in distinct)))


def exact(value: Fraction, unit: str) -> str:
    """Format a number as :func:`parse` reads it: a decimal, or a fraction such as ``100/3 GB/s``."""
    twos, fives = (next(k for k in count() if value.denominator % prime ** (k + 1)) for prime in (2, 5))
    places = max(twos, fives)
    digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    if value.denominator == 2**twos * 5**fives and len(digits) < _DIGITS:
        whole, part = digits[: len(digits) - places], digits[len(digits) - places :]
        return f"{'-' * (value < 0)}{whole}{'.' * bool(part)}{part} {unit}"
    if max(abs(value.numerator), value.denominator) >= 10**_DIGITS:
        raise InputError(f"{show_value(value)} {unit}: expected a fraction of at most {_DIGITS} digits above and below")
    return f"{value} {unit}"


def show(value: float | Fraction, unit: str) -> str:
    """Format a value in base units in the given unit: ``show(5e10, "GB/s")`` is ``"50 GB/s"``."""
    for kind in UnitKind:
        if unit in kind.units:
            return f"{float(value / kind.units[unit]):.6g} {unit}"
    raise ValueError(f"unknown unit {unit!r}")


#: Units of time, of sizes and of rates, the largest first.
TIMES = ("s", "ms", "us", "ns")
SIZES = ("TiB", "GiB", "MiB", "KiB", "B")
RATES = ("TB/s", "GB/s", "MB/s", "KB/s", "B/s")


def unit_for(value: float | Fraction, units: Sequence[str]) -> tuple[str, float]:
    """Return the first unit of which a quantity has at least 1, else the last, and its size."""
    sizes = [(unit, float(kind.units[unit])) for unit in units for kind in UnitKind if unit in kind.units]
    return next((one for one in sizes if value >= one[1]), sizes[-1])


def amount(value: float | Fraction, units: Sequence[str]) -> str:
    """Format a quantity in the largest unit in which it is at least 1."""
    for unit in units:
        if float((text := show(value, unit)).split()[0]) >= 1:
            return text
    return show(value, units[-1]) if value else "0"


def size_text(size: float | Fraction) -> str:
    """Format bytes exactly in the largest unit that divides them, a binary one first; parts of a byte are rounded."""
    scales = UnitKind.SIZE.units
    for unit in ("TiB", "GiB", "MiB", "TB", "GB", "MB", "KiB", "kB", "B"):
        if size >= scales[unit] and not size % scales[unit]:
            return f"{Fraction(size) / scales[unit]} {unit}"
    return amount(size, SIZES)
