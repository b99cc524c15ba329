"""Strict reading of files that may be wrong, cut off or hostile.

Bounded sizes, no surprises, an error that names the place.
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

from ..core.errors import InputError, shown
from ..core.schedule import Floats, Ints
from ..core.strict_json import parse_json

#: Text of a file, after decompression; a larger one is refused before it is in memory.
MAX_BYTES = 2**29

#: Keys in one object: each that is wrong costs memory before the first is reported.
MAX_KEYS = 1000

_FRACTION = re.compile(r"(0|[1-9][0-9]{0,59})(/[1-9][0-9]{0,59})?\Z")


def read_json(path: Path, max_bytes: int = MAX_BYTES) -> Any:
    """Read a JSON file, decompressed if its name ends in ``.gz``.

    No duplicate keys, no NaN, no more than ``max_bytes``.

    Raises
    ------
    InputError
        If it cannot be read or is not such JSON.
    """
    return parse_json(_read_bytes(path, max_bytes), MAX_KEYS)


def _read_bytes(path: Path, max_bytes: int) -> bytes:
    try:
        if path.is_dir():
            raise InputError("is a directory; expected a file")
        with path.open("rb") as plain:
            stream = gzip.GzipFile(fileobj=plain) if path.suffix == ".gz" else plain
            parts, size = [], 0
            while part := stream.read(2**20):
                parts.append(part)
                size += len(part)
                if size > max_bytes:
                    raise InputError(f"more than {max_bytes:,} bytes of text")
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise InputError("not a gzip file, or cut off") from None
    except OSError as error:
        raise InputError((error.strerror or "cannot be read").lower()) from None
    except ValueError:
        raise InputError("cannot be read: no file has such a name") from None
    return b"".join(parts)


class Fields:
    """An object of a file whose fields are taken out one by one.

    Parameters
    ----------
    data : object
        What should be an object.
    place : str
        JSON path of it; empty for the whole file.
    """

    def __init__(self, data: Any, place: str = "") -> None:
        if not isinstance(data, dict):
            raise InputError(f"{shown(data)} is wrong; expected an object", place=place or None)
        self._data: dict[str, Any] = data
        self._left = set(data)
        self.place = place

    def at(self, name: str) -> str:
        """JSON path of a field."""
        return f"{self.place}.{name}" if self.place else name

    def has(self, name: str) -> bool:
        """Whether a field is given and not null."""
        self._left.discard(name)
        return self._data.get(name) is not None

    def take(self, name: str) -> Any:
        """A field as it is."""
        if name not in self._data:
            raise InputError("missing, but required", place=self.at(name))
        self._left.discard(name)
        return self._data[name]

    def done(self) -> None:
        """Refuse fields that nobody has asked for."""
        for name in sorted(self._left)[:1]:
            raise InputError("unknown field", place=self.at(name[:60]))

    def fields(self, name: str) -> Fields:
        """A field that is an object."""
        return Fields(self.take(name), self.at(name))

    def word(self, name: str, words: Sequence[str] | None = None) -> str:
        """A field that is a text, one of ``words`` if they are given."""
        value = self.take(name)
        if not isinstance(value, str) or (words is not None and value not in words):
            expected = "a text" if words is None else f"one of {', '.join(words)}"
            raise InputError(f"{shown(value)} is wrong; expected {expected}", place=self.at(name))
        return value

    def integer(self, name: str, low: int, high: int) -> int:
        """An integer of at least ``low`` and below ``high``."""
        return int(integers([self.take(name)], low, high, self.at(name), indexed=False)[0])

    def fraction(self, name: str) -> Fraction:
        """An exact number, written like ``"1/3"``."""
        return fraction(self.take(name), self.at(name))

    def list_(self, name: str, length: int | None = None) -> list[Any]:
        """A list, of the given length."""
        value = self.take(name)
        if not isinstance(value, list):
            raise InputError(f"{shown(value)} is wrong; expected a list", place=self.at(name))
        if length is not None and len(value) != length:
            raise InputError(f"{len(value):,} entries; expected {length:,}", place=self.at(name))
        return value

    def integers(self, name: str, low: int, high: int, length: int | None = None) -> Ints:
        """A list of integers, each at least ``low`` and below ``high``."""
        return integers(self.list_(name, length), low, high, self.at(name))

    def flags(self, name: str, length: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """A list of zeros and ones."""
        return self.integers(name, 0, 2, length).astype(np.bool_)

    def times(self, name: str, length: int) -> Floats:
        """A list of finite numbers that are not negative."""
        values = self.list_(name, length)
        for index, value in enumerate(values):
            if type(value) not in (int, float) or not 0 <= value < float("inf"):
                raise InputError(
                    f"{shown(value)} is wrong; expected seconds of at least 0", place=f"{self.at(name)}[{index}]"
                )
        return np.array(values, dtype=np.float64)

    def fractions(self, name: str, length: int) -> list[Fraction]:
        """A list of exact numbers."""
        known: dict[Any, Fraction] = {}
        found: list[Fraction] = []
        for index, value in enumerate(self.list_(name, length)):
            if not isinstance(value, str) or value not in known:
                known[str(value)] = fraction(value, f"{self.at(name)}[{index}]")
            found.append(known[value])
        return found


def integers(values: list[Any], low: int, high: int, place: str, *, indexed: bool = True) -> Ints:
    """Make an array of integers, each at least ``low`` and below ``high``."""
    if set(map(type, values)) <= {int} and (not values or (low <= min(values) and max(values) < high)):
        return np.array(values, dtype=np.int64)
    for index, value in enumerate(values):
        if type(value) is not int or not low <= value < high:
            expected = f"expected an integer from {low} to {high - 1}" if high > low else "expected none"
            where = f"{place}[{index}]" if indexed else place
            raise InputError(f"{shown(value)} is wrong; {expected}", place=where)
    raise AssertionError("a wrong value was not found again")


def fraction(value: Any, place: str) -> Fraction:
    """Read an exact number that is not negative, written like ``"3"`` or ``"1/3"``."""
    if not isinstance(value, str) or not _FRACTION.match(value):
        raise InputError(f"{shown(value)} is wrong; expected an exact number such as '1/3'", place=place)
    return Fraction(value)
