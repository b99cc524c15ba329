"""Strict reading of files that may be invalid, truncated or hostile.

Sizes are bounded, and errors name the place in the file.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from ..core.errors import InputError, locate_errors, show_value
from ..core.json_stream import LazyColumn, read_stream
from ..core.schedule import Floats, Ints

#: Text of a file, after decompression; a larger one is rejected before it is in memory.
MAX_BYTES = 2**29

#: Keys in one object: each that is wrong costs memory before the first is reported.
MAX_KEYS = 1000

#: Seconds beyond this are no time of a schedule.
MAX_S = 1e30

_FRACTION = re.compile(r"(0|[1-9][0-9]{0,59})(/[1-9][0-9]{0,59})?\Z")


def read_json(path: Path, max_bytes: int = MAX_BYTES) -> Any:
    """Read a JSON file, decompressed if its name ends in ``.gz``; long columns of numbers are lazy.

    No duplicate keys, no NaN, no more than ``max_bytes``, and no more values than fit in memory.
    """
    try:
        if path.is_dir():
            raise InputError("is a directory; expected a file")
        with path.open("rb") as plain:
            stream: Any = gzip.GzipFile(fileobj=plain) if path.suffix == ".gz" else plain
            return read_stream(stream, max_bytes, MAX_KEYS, "reading a schedule")
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise InputError("not a gzip file, or cut off") from None
    except OSError as error:
        raise InputError((error.strerror or "cannot be read").lower()) from None
    except ValueError:
        raise InputError("cannot be read: invalid file name") from None


def is_list(value: Any) -> bool:
    """Return whether a value is a list or an array read from a column of numbers."""
    return isinstance(value, list | np.ndarray)


class Fields:
    """An object of a file whose fields are consumed one by one.

    Parameters
    ----------
    place : str
        JSON path of the object; empty for the whole file.
    """

    def __init__(self, data: Any, place: str = "") -> None:
        if not isinstance(data, dict):
            raise InputError(f"{show_value(data)} is wrong; expected an object", place=place or None)
        self._data: dict[str, Any] = data
        self._left = set(data)
        self.place = place

    def at(self, name: str) -> str:
        """Return the JSON path of a field."""
        return f"{self.place}.{name}" if self.place else name

    def has(self, name: str) -> bool:
        """Return whether a field is present and not null."""
        self._left.discard(name)
        return self._data.get(name) is not None

    def take(self, name: str) -> Any:
        """Return a required field unchecked and mark it as read."""
        if name not in self._data:
            raise InputError("missing, but required", place=self.at(name))
        self._left.discard(name)
        value = self._data[name]
        if isinstance(value, LazyColumn):
            with locate_errors(place=self.at(name)):
                return value.read()
        return value

    def reject_unread(self) -> None:
        """Reject fields that were never read."""
        for name in sorted(self._left)[:1]:
            raise InputError("unknown field", place=self.at(name[:60]))

    def fields(self, name: str) -> Fields:
        """Read a field that is an object."""
        return Fields(self.take(name), self.at(name))

    def word(self, name: str, words: Sequence[str] | None = None) -> str:
        """Read a text field, one of ``words`` if given."""
        value = self.take(name)
        if not isinstance(value, str) or (words is not None and value not in words):
            expected = "a text" if words is None else f"one of {', '.join(words)}"
            raise InputError(f"{show_value(value)} is wrong; expected {expected}", place=self.at(name))
        return value

    def integer(self, name: str, low: int, high: int) -> int:
        """Read an integer of at least ``low`` and below ``high``."""
        return int(integers([self.take(name)], low, high, self.at(name), indexed=False)[0])

    def fraction(self, name: str) -> Fraction:
        """Read an exact number, written like ``"1/3"``."""
        return fraction(self.take(name), self.at(name))

    def list_(self, name: str, length: int | None = None) -> Any:
        """Read a list or a column of the given length."""
        value = self._data.get(name)
        if length is not None and isinstance(value, LazyColumn) and len(value) != length:
            raise InputError(f"{len(value):,} entries; expected {length:,}", place=self.at(name))
        value = self.take(name)
        if not is_list(value):
            raise InputError(f"{show_value(value)} is wrong; expected a list", place=self.at(name))
        if length is not None and len(value) != length:
            raise InputError(f"{len(value):,} entries; expected {length:,}", place=self.at(name))
        return value

    def length(self, name: str) -> int:
        """Return the number of entries of a list or a column; a column is not expanded."""
        value = self._data.get(name)
        return len(value if isinstance(value, LazyColumn) else self.list_(name))

    def integers(self, name: str, low: int, high: int, length: int | None = None) -> Ints:
        """Read a list of integers, each at least ``low`` and below ``high``."""
        return integers(self.list_(name, length), low, high, self.at(name))

    def flags(self, name: str, length: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Read a list of zeros and ones."""
        return self.integers(name, 0, 2, length).astype(np.bool_)

    def times(self, name: str, length: int) -> Floats:
        """Read a list of seconds: non-negative numbers below :data:`MAX_S`."""
        values, first = self.list_(name, length), 0
        if isinstance(values, np.ndarray):
            inside = (values >= 0) & (values < MAX_S)
            if inside.all():
                return values.astype(np.float64)
            first = int(inside.argmin())
        for index, value in enumerate(values[first:], first):
            if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0 <= value < MAX_S:
                raise InputError(
                    f"{_plain(value)} is wrong; expected seconds of at least 0 and below {MAX_S:.0e}",
                    place=f"{self.at(name)}[{index}]",
                )
        return np.array(values, dtype=np.float64)

    def fractions(self, name: str, length: int) -> list[Fraction]:
        """Read a list of exact numbers."""
        known: dict[Any, Fraction] = {}
        found: list[Fraction] = []
        for index, value in enumerate(self.list_(name, length)):
            if not isinstance(value, str) or value not in known:
                known[str(value)] = fraction(value, f"{self.at(name)}[{index}]")
            found.append(known[value])
        return found


def integers(values: Any, low: int, high: int, place: str, *, indexed: bool = True) -> Ints:
    """Convert a list or column to an array of integers, each at least ``low`` and below ``high``."""
    first = 0
    if isinstance(values, np.ndarray):
        inside = (values >= low) & (values < high) & (values.dtype == np.int64)
        if inside.all():
            return values
        first = int(inside.argmin())
        values = values[first : first + 1].tolist()
    elif set(map(type, values)) <= {int} and (not values or (low <= min(values) and max(values) < high)):
        return np.array(values, dtype=np.int64)
    for index, value in enumerate(values, first):
        if type(value) is not int or not low <= value < high:
            expected = f"expected an integer from {low} to {high - 1}" if high > low else "expected none"
            where = f"{place}[{index}]" if indexed else place
            raise InputError(f"{show_value(value)} is wrong; {expected}", place=where)
    raise AssertionError("a wrong value was not found again")


def _plain(value: Any) -> str:
    return show_value(value.item() if isinstance(value, np.number) else value)


def fraction(value: Any, place: str) -> Fraction:
    """Read an exact non-negative number, written like ``"3"`` or ``"1/3"``."""
    if not isinstance(value, str) or not _FRACTION.match(value):
        raise InputError(f"{show_value(value)} is wrong; expected an exact number such as '1/3'", place=place)
    return Fraction(value)
