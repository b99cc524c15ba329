"""Strict reading of files that may be invalid, truncated or hostile: JSON, and ``.npz`` with binary columns.

Sizes are bounded, and errors name the place in the file. In the ``.npz`` form, smaller and faster to read than JSON,
``file.json`` is the object of the JSON form without its columns, and ``sends/chunk.npy`` is the column ``chunk`` of
the object ``sends``: integers in the smallest type that holds them. ``numpy.load`` opens the columns too.
"""

import gzip
import json
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from ..core.budget import check_time
from ..core.errors import InputError, locate_errors, show_value
from ..core.json_stream import MAX_NUMBERS, LazyColumn, read_stream
from ..core.schedule import Floats, Ints

MAX_BYTES = 2**29  #: Text of a file, after decompression; a larger one is rejected before it is in memory.
MAX_KEYS = 1000  #: Keys in one object: each that is wrong costs memory before the first is reported.
MAX_S = 1e30  #: Seconds beyond this are no time of a schedule.

_FRACTION = re.compile(r"(0|[1-9][0-9]{0,59})(/[1-9][0-9]{0,59})?\Z")


def read_json(path: Path, max_bytes: int = MAX_BYTES) -> Any:
    """Read a JSON file, or ``.gz``, of a limited size, no key twice and no NaN; long columns of numbers are lazy."""
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


def reject_if(wrong: object, problem: str, *, place: str | None = None) -> None:
    """Raise an :class:`InputError` with a problem and its place if something is wrong."""
    if wrong:
        raise InputError(problem, place=place)


def is_list(value: Any) -> bool:
    """Return whether a value is a list or an array read from a column of numbers."""
    return isinstance(value, list | np.ndarray)


class Fields:
    """Object of a file whose fields are consumed one by one; its JSON path is empty for the whole file."""

    def __init__(self, data: Any, place: str = "") -> None:
        if not isinstance(data, dict):
            raise InputError(f"{show_value(data)} is wrong; expected an object", place=place or None)
        self._data: dict[str, Any] = data
        self._unread = set(data)
        self.place = place

    def at(self, name: str) -> str:
        """Return the JSON path of a field."""
        return f"{self.place}.{name}" if self.place else name

    def has(self, name: str) -> bool:
        """Return whether a field is present and not null."""
        self._unread.discard(name)
        return self._data.get(name) is not None

    def take(self, name: str) -> Any:
        """Return a required field unchecked and mark it as read."""
        reject_if(name not in self._data, "missing, but required", place=self.at(name))
        self._unread.discard(name)
        value = self._data[name]
        if isinstance(value, LazyColumn):
            with locate_errors(place=self.at(name)):
                return value.read()
        return value

    def reject_unread(self) -> None:
        """Reject fields that were never read."""
        for name in sorted(self._unread)[:1]:
            raise InputError("unknown field", place=self.at(name[:60]))

    def fields(self, name: str) -> "Fields":
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
        value: Any = self._data.get(name)
        if not isinstance(value, LazyColumn) and not is_list(value := self.take(name)):
            raise InputError(f"{show_value(value)} is wrong; expected a list", place=self.at(name))
        if length is not None and len(value) != length:  # a column is not read before
            raise InputError(f"{len(value):,} entries; expected {length:,}", place=self.at(name))
        return self.take(name)

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
                text = show_value(value.item() if isinstance(value, np.number) else value)
                expected = f"expected seconds of at least 0 and below {MAX_S:.0e}"
                raise InputError(f"{text} is wrong; {expected}", place=f"{self.at(name)}[{index}]")
        return np.array(values, dtype=np.float64)

    def fractions(self, name: str, length: int) -> list[Fraction]:
        """Read a list of exact numbers."""
        values_of: dict[Any, Fraction] = {}
        values: list[Fraction] = []
        for index, value in enumerate(self.list_(name, length)):
            if not isinstance(value, str) or value not in values_of:
                values_of[str(value)] = fraction(value, f"{self.at(name)}[{index}]")
            values.append(values_of[value])
        return values


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


def fraction(value: Any, place: str) -> Fraction:
    """Read an exact non-negative number, written like ``"3"`` or ``"1/3"``."""
    if not isinstance(value, str) or not _FRACTION.match(value):
        raise InputError(f"{show_value(value)} is wrong; expected an exact number such as '1/3'", place=place)
    return Fraction(value)


_OBJECT, _MAX_OBJECT = "file.json", 2**26  #: The object without columns, and the largest one that is read.
_MAX_COLUMNS = 64  #: Columns of one file, and the numbers in all of them.

#: Types of columns.
_TYPES = tuple(np.dtype(code) for code in ("|u1", "<u2", "<u4", "|i1", "<i2", "<i4", "<i8", "<f8"))

#: What stands before the numbers: numpy's format, version 1.0, of one axis.
_HEADER = re.compile(
    rb"\{'descr': '([|<][ui][1248]|<f8)', 'fortran_order': False, 'shape': \(([0-9]{1,12}),\), \} *\n\Z"
)
_LEVEL = 1  #: Of compression: what is more costs much and gains little.
_MAGIC = b"\x93NUMPY\x01\x00"


def write_columns(stream: BinaryIO, data: Mapping[str, Any]) -> None:
    """Write an object whose arrays are columns."""
    columns: dict[str, np.ndarray[Any, Any]] = {}
    plain = _without_columns(data, "", columns)
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as archive:
        _add(archive, _OBJECT, [json.dumps(plain, allow_nan=False).encode()])
        for path, column in columns.items():
            _add(archive, f"{path}.npy", _npy(_narrow_column(column)))


def _without_columns(value: Any, place: str, columns: dict[str, np.ndarray[Any, Any]]) -> Any:
    """Return an object without its arrays, which are moved to ``columns`` under their paths."""
    if not isinstance(value, Mapping):
        return value
    columns |= {f"{place}{key}": item for key, item in value.items() if isinstance(item, np.ndarray)}
    return {
        key: _without_columns(item, f"{place}{key}/", columns)
        for key, item in value.items()
        if not isinstance(item, np.ndarray)
    }


def _narrow_column(column: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    if column.dtype.kind == "f" or not len(column):
        return column.astype("<f8" if column.dtype.kind == "f" else "|u1")
    low, high = int(column.min()), int(column.max())
    fits = (kind for kind in _TYPES if kind.kind != "f" and np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)
    return column.astype(next(fits))


def _npy(column: np.ndarray[Any, Any]) -> Iterator[bytes]:
    header = f"{{'descr': '{column.dtype.str}', 'fortran_order': False, 'shape': ({len(column)},), }}"
    header += " " * (-(len(_MAGIC) + 3 + len(header)) % 64) + "\n"
    yield _MAGIC + len(header).to_bytes(2, "little") + header.encode()
    for begin in range(0, len(column), 2**20):
        yield column[begin : begin + 2**20].tobytes()


def _add(archive: zipfile.ZipFile, name: str, content: Iterable[bytes]) -> None:
    with archive.open(name, "w", force_zip64=True) as stream:
        for piece in content:
            stream.write(piece)


def read_columns(path: Path) -> Any:
    """Read the object of a ``.npz`` file with every :class:`Column` in its place."""
    with _open_archive(path) as archive:
        members = _members(archive)
        with archive.open(members.pop(_OBJECT)) as stream:
            data = read_stream(cast(BinaryIO, stream), _MAX_OBJECT, _MAX_OBJECT, "reading a schedule")
        for name, member in members.items():
            inner, place = data, name.removesuffix(".npy").replace("/", ".")
            keys = place.split(".")
            for key in keys[:-1]:
                inner = inner.get(key) if isinstance(inner, dict) else None
            if not isinstance(inner, dict):
                raise InputError(f"has no object in {_OBJECT}; expected no {name}", place=place)
            reject_if(keys[-1] in inner, f"is in {_OBJECT} too; expected it in {name} alone", place=place)
            inner[keys[-1]] = Column(path, member, *_header(archive, member))
        return data


@contextmanager
def _open_archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open an archive; turn read errors into :class:`InputError`."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except (zipfile.BadZipFile, EOFError, zlib.error, NotImplementedError, RuntimeError):
        raise InputError("not an .npz file of a schedule, or cut off") from None
    except OSError as error:
        raise InputError((error.strerror or "cannot be read").lower()) from None


def _members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """Return the members by name; reject too many, duplicates, and too large a total."""
    members = {member.filename: member for member in archive.infolist()}
    if len(members) != len(archive.infolist()) or len(members) > _MAX_COLUMNS or _OBJECT not in members:
        raise InputError(f"expected {_OBJECT} and at most {_MAX_COLUMNS} columns, each once")
    numbers = sum(member.file_size for member in members.values()) // 8
    reject_if(numbers > MAX_NUMBERS, f"{numbers * 8:,} bytes when decompressed; expected at most {MAX_NUMBERS * 8:,}")
    for name, member in members.items():
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise InputError("another compression; expected a .npz file as numpy writes it", place=name[:60])
        if name != _OBJECT and not re.fullmatch(r"[a-z_]+(/[a-z_]+)*\.npy", name):
            raise InputError(f"{name[:60]!r} is wrong; expected a column such as sends/chunk.npy")
    return members


@dataclass(frozen=True)
class Column(LazyColumn):
    """A column of known length that is decompressed only when read."""

    path: Path
    member: zipfile.ZipInfo
    kind: np.dtype[Any]
    #: Count of its numbers, and bytes before the first.
    length: int
    begin: int

    def __len__(self) -> int:
        return self.length

    def read(self) -> Any:
        """Read the numbers as 64-bit integers or as floats; an empty column is a list."""
        check_time("reading a schedule")
        with _open_archive(self.path) as archive, archive.open(self.member) as stream:
            stream.read(self.begin)
            size = self.length * self.kind.itemsize
            content = stream.read(size + 1)
        reject_if(len(content) != size, f"{len(content):,} bytes of numbers; expected {size:,}")
        values = np.frombuffer(content, dtype=self.kind)
        return values.astype(np.float64 if values.dtype.kind == "f" else np.int64) if self.length else []


def _header(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> tuple[np.dtype[Any], int, int]:
    with archive.open(member) as stream:
        start = stream.read(len(_MAGIC) + 2)
        text = stream.read(int.from_bytes(start[-2:], "little"))
    header = _HEADER.match(text)
    if not start.startswith(_MAGIC) or header is None or np.dtype(header[1].decode()) not in _TYPES:
        value = show_value(text.decode("latin-1").strip() if start.startswith(_MAGIC) else start)
        raise InputError(f"{value} is wrong; expected one axis of numbers as of numpy.save", place=member.filename)
    kind, length, begin = np.dtype(header[1].decode()), int(header[2]), len(start) + len(text)
    if member.file_size != begin + length * kind.itemsize:
        problem = f"{member.file_size - begin:,} bytes of numbers; expected {length * kind.itemsize:,}"
        raise InputError(problem, place=member.filename)
    return kind, length, begin
