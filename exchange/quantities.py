"""Rates and times of links in graphs and tables: under several names, with units in value or name.

Names and units: docs/exchange/graphs.md. 0.7 is read as exactly 7/10. Ambiguous input is rejected: a number without a
unit, ``bandwidth_gbps`` (bytes or bits), two values that differ.
"""

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from ..core.errors import InputError, locate_errors, show_value
from ..core.units import UnitKind, exact, parse

_NAMES = {UnitKind.RATE: ("bandwidth", "bw", "capacity", "rate"), UnitKind.TIME: ("latency", "delay")}
_NUMBER = re.compile(r"\s*[+-]?(?:[0-9]+/[0-9]+|[0-9.]+(?:[eE][+-]?[0-9]+)?)\s*\Z")
#: The Topology Zoo's rate in bits per second, and SNDlib's in a unit that its files do not say; 0 is none.
RAW, OF_MODULE = "LinkSpeedRaw", "capacity of module"


def quantity(
    fields: Mapping[str, Any], kind: UnitKind, unit: str | None = None, default: str | None = None
) -> str | None:
    """Return the rate or time of a link as in an instance file; None without field and default.

    ``unit`` is that of numbers whose unit is neither in the value nor in the name. With a default, a number called
    ``weight`` does not count.
    """
    texts: dict[str, str] = {}
    for name, value, own_unit in _stated_quantities(fields, kind, unit):
        with locate_errors(name):
            texts[name] = _text(value, kind, own_unit or unit)
    values = {parse(text, kind) for text in texts.values()}
    if len(values) > 1:
        listing = " and ".join(f"{name} {show_value(text)}" for name, text in texts.items())
        raise InputError(f"{listing} differ; expected one of them")
    if not texts and default is not None:
        parse(default, kind, allow_zero=kind is UnitKind.TIME)
        return default
    if not texts and kind is UnitKind.RATE and _is_number(fields.get("weight")):
        text = f"{show_value(fields['weight'])} may be anything; expected bandwidth or capacity"
        raise InputError(f"{text}, or a text such as '25 GB/s'", place="weight")
    return next(iter(texts.values()), None)


def is_quantity(name: str) -> bool:
    """Return whether a field of this name is a rate or a time."""
    matches = ((_pattern(kind).fullmatch(name), kind) for kind in _NAMES)
    return any(match is not None and _unit_of(match[1] or "", kind)[0] for match, kind in matches)


def _stated_quantities(
    fields: Mapping[str, Any], kind: UnitKind, unit: str | None
) -> Iterator[tuple[str, Any, str | None]]:
    for name, value in fields.items():
        if value is None or (isinstance(value, str) and not value):
            continue
        if name in (RAW, OF_MODULE):
            own_unit = "b/s" if name == RAW else unit
            if kind is UnitKind.RATE and own_unit is not None and parse(f"{_value_text(value)} {own_unit}", kind):
                yield name, value, own_unit
        elif name == "weight":
            if isinstance(value, str) and not _is_number(value) and _has_unit(value, kind):
                yield name, value, None
        elif (match := _pattern(kind).fullmatch(name)) is not None:
            is_known, own_unit = _unit_of(match[1] or "", kind)
            if is_known:
                yield name, value, own_unit


def _pattern(kind: UnitKind) -> re.Pattern[str]:
    return re.compile(rf"(?i:{'|'.join(_NAMES[kind])})(?:[ _]*[ _\[(]([A-Za-zµμ/_]+?)[\])]?)?")


def _unit_of(suffix: str, kind: UnitKind) -> tuple[bool, str | None]:
    if not suffix:
        return True, None
    spellings = (suffix, suffix.replace("_", "/"), re.sub("(?:_per_|p)s$", "/s", suffix))
    if (unit := next((text for text in spellings if text in kind.units), None)) is not None:
        return True, unit
    near = sorted(unit for unit in kind.units if unit.lower() in {text.lower() for text in spellings})
    if near:
        raise InputError(f"{show_value(suffix)} may be {' or '.join(near)}; expected the unit in that spelling")
    return False, None


def _text(value: Any, kind: UnitKind, unit: str | None) -> str:
    rate = kind is UnitKind.RATE
    if not _is_number(value):
        parse(value, kind, allow_zero=not rate)
        return str(value).strip()
    if unit is None:
        name = "bandwidth_GBps" if rate else "latency_us"
        expected = f"{kind.example!r}, a name such as {name}, or a unit for all numbers"
        raise InputError(f"{show_value(value)} has no unit; expected {expected}")
    parse(f"{_value_text(value)} {unit}", kind, allow_zero=not rate)
    return exact(Fraction(_value_text(value)), unit)


def _has_unit(text: str, kind: UnitKind) -> bool:
    try:
        parse(text, kind)
    except InputError:
        return False
    return True


def _is_number(value: Any) -> bool:
    if isinstance(value, str):
        return _NUMBER.match(value) is not None
    return isinstance(_plain(value), int | float | Fraction | Decimal) and not isinstance(_plain(value), bool)


def _plain(value: Any) -> Any:
    """Convert a number of numpy to one of Python; short floats keep their decimal text."""
    if not hasattr(value, "dtype") or getattr(value, "shape", None) != ():
        return value
    plain = value.item()
    return float(str(value)) if isinstance(plain, float) else plain


def _value_text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else str(_plain(value))
