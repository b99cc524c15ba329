"""The ``.npz`` form of a schedule file: same content, smaller and faster to read than JSON.

``file.json`` is the object of the JSON form without its columns, and ``sends/chunk.npy`` is the column ``chunk`` of
the object ``sends``: integers in the smallest type that holds them. ``numpy.load`` opens the columns too.
"""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from ..core.errors import InputError
from ..core.json_stream import MAX_NUMBERS, LazyColumn, read_stream
from ..core.limits import check_time

#: The object without columns, and the largest one that is read.
_OBJECT, _MAX_OBJECT = "file.json", 2**26

#: Columns of one file, and the numbers in all of them.
_MAX_COLUMNS = 64

#: Types of columns.
_TYPES = tuple(np.dtype(code) for code in ("|u1", "<u2", "<u4", "|i1", "<i2", "<i4", "<i8", "<f8"))

#: What stands before the numbers: numpy's format, version 1.0, of one axis.
_HEADER = re.compile(
    rb"\{'descr': '([|<][ui][1248]|<f8)', 'fortran_order': False, 'shape': \(([0-9]{1,12}),\), \} *\n\Z"
)
#: Of compression: what is more costs much and gains little.
_LEVEL = 1
_MAGIC = b"\x93NUMPY\x01\x00"


def write_columns(stream: BinaryIO, data: Mapping[str, Any]) -> None:
    """Write an object whose arrays are columns.

    Parameters
    ----------
    stream : binary file
        The output, which need not be seekable.
    data : mapping of str to object
        Plain data and nested objects with one-dimensional arrays of integers or floats.
    """
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
    """Yield numpy's file of a column in pieces."""
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
    """Read the object of a ``.npz`` file with every :class:`Column` in its place.

    Raises
    ------
    InputError
        If the file cannot be read, is truncated, exceeds the size of a schedule, or has other members.
    """
    with _open_archive(path) as archive:
        members = _members(archive)
        with archive.open(members.pop(_OBJECT)) as stream:
            data = read_stream(cast(BinaryIO, stream), _MAX_OBJECT, _MAX_OBJECT, "reading a schedule")
        for name, member in members.items():
            _put(data, name.removesuffix(".npy").split("/"), Column(path, member, *_header(archive, member)))
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
    if numbers > MAX_NUMBERS:
        raise InputError(f"{numbers * 8:,} bytes when decompressed; expected at most {MAX_NUMBERS * 8:,}")
    for name, member in members.items():
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise InputError("another compression; expected a .npz file as numpy writes it", place=name[:60])
        if name != _OBJECT and not re.fullmatch(r"[a-z_]+(/[a-z_]+)*\.npy", name):
            raise InputError(f"{name[:60]!r} is wrong; expected a column such as sends/chunk.npy")
    return members


@dataclass(frozen=True)
class Column(LazyColumn):
    """A column of known length that is decompressed only when read.

    Parameters
    ----------
    length, begin : int
        Count of its numbers, and bytes before the first.
    """

    path: Path
    member: zipfile.ZipInfo
    kind: np.dtype[Any]
    length: int
    begin: int

    def __len__(self) -> int:
        return self.length

    def read(self) -> Any:
        """Read the numbers as 64-bit integers or as floats; an empty column is a list.

        Raises
        ------
        InputError
            If the count of numbers differs from the header's.
        """
        check_time("reading a schedule")
        with _open_archive(self.path) as archive, archive.open(self.member) as stream:
            stream.read(self.begin)
            size = self.length * self.kind.itemsize
            content = stream.read(size + 1)
        if len(content) != size:
            raise InputError(f"{len(content):,} bytes of numbers; expected {size:,}")
        values = np.frombuffer(content, dtype=self.kind)
        return values.astype(np.float64 if values.dtype.kind == "f" else np.int64) if self.length else []


def _header(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> tuple[np.dtype[Any], int, int]:
    """Read type, length and header size of a column; reject headers that contradict the archive."""
    with archive.open(member) as stream:
        start = stream.read(len(_MAGIC) + 2)
        text = stream.read(int.from_bytes(start[-2:], "little"))
    header = _HEADER.match(text)
    if not start.startswith(_MAGIC) or header is None or np.dtype(header[1].decode()) not in _TYPES:
        raise InputError("expected a column of numbers as numpy writes it, version 1.0", place=member.filename)
    kind, length, begin = np.dtype(header[1].decode()), int(header[2]), len(start) + len(text)
    if member.file_size != begin + length * kind.itemsize:
        told = f"{member.file_size - begin:,} bytes of numbers; expected {length * kind.itemsize:,}"
        raise InputError(told, place=member.filename)
    return kind, length, begin


def _put(data: Any, keys: list[str], column: Column) -> None:
    """Put a column at its path in the data."""
    place = ".".join(keys)
    for key in keys[:-1]:
        data = data.get(key) if isinstance(data, dict) else None
    if not isinstance(data, dict) or keys[-1] in data:
        raise InputError("a column that the format does not define", place=place)
    data[keys[-1]] = column
