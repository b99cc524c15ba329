"""The binary form of a schedule file: a ``.npz`` archive, smaller and quicker to read than JSON, with the same content.

``file.json`` is the object of the JSON form without its columns, and ``sends/chunk.npy`` is the column ``chunk`` of the
object ``sends``: integers in the smallest type that holds them. ``numpy.load`` opens the columns too.
"""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from ..core.errors import InputError
from ..core.json_stream import MAX_NUMBERS, read_stream
from ..core.watch import ask

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
        Where to; it need not be seekable.
    data : mapping of str to object
        Plain data, objects in it, and in these arrays of integers or floats of one axis.
    """
    columns: dict[str, np.ndarray[Any, Any]] = {}
    plain = _without_columns(data, "", columns)
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as archive:
        _add(archive, _OBJECT, [json.dumps(plain, allow_nan=False).encode()])
        for path, column in columns.items():
            _add(archive, f"{path}.npy", _npy(_narrowed(column)))


def _without_columns(value: Any, place: str, columns: dict[str, np.ndarray[Any, Any]]) -> Any:
    """Return an object without its arrays, which are put into ``columns`` under their path."""
    if not isinstance(value, Mapping):
        return value
    columns |= {f"{place}{key}": item for key, item in value.items() if isinstance(item, np.ndarray)}
    return {
        key: _without_columns(item, f"{place}{key}/", columns)
        for key, item in value.items()
        if not isinstance(item, np.ndarray)
    }


def _narrowed(column: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a column in the smallest type that holds it."""
    if column.dtype.kind == "f" or not len(column):
        return column.astype("<f8" if column.dtype.kind == "f" else "|u1")
    low, high = int(column.min()), int(column.max())
    fits = (kind for kind in _TYPES if kind.kind != "f" and np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)
    return column.astype(next(fits))


def _npy(column: np.ndarray[Any, Any]) -> Iterator[bytes]:
    """Return numpy's file of a column, piece by piece."""
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
    """Read the object of a ``.npz`` file, with its columns as arrays where they belong.

    Raises
    ------
    InputError
        If it cannot be read, is cut off, is larger than a schedule may be, or has something else in it.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = _members(archive)
            with archive.open(members.pop(_OBJECT)) as stream:
                data = read_stream(cast(BinaryIO, stream), _MAX_OBJECT, _MAX_OBJECT, "reading a schedule")
            for name, member in members.items():
                ask("reading a schedule")
                _put(data, name.removesuffix(".npy").split("/"), _column(archive, member))
            return data
    except (zipfile.BadZipFile, EOFError, zlib.error, NotImplementedError, RuntimeError):
        raise InputError("not an .npz file of a schedule, or cut off") from None
    except OSError as error:
        raise InputError((error.strerror or "cannot be read").lower()) from None


def _members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """Return the members by name: few, each once, and not too large together."""
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


def _column(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Any:
    """Read a column as integers of 64 bits or as floats."""
    with archive.open(member) as stream:
        start = stream.read(len(_MAGIC) + 2)
        header = _HEADER.match(stream.read(int.from_bytes(start[-2:], "little")))
        if not start.startswith(_MAGIC) or header is None or np.dtype(header[1].decode()) not in _TYPES:
            raise InputError("expected a column of numbers as numpy writes it, version 1.0", place=member.filename)
        content, kind = stream.read(), np.dtype(header[1].decode())
    if len(content) != int(header[2]) * kind.itemsize:
        expected = int(header[2]) * kind.itemsize
        raise InputError(f"{len(content):,} bytes of numbers; expected {expected:,}", place=member.filename)
    values = np.frombuffer(content, dtype=kind)
    return values.astype(np.float64 if values.dtype.kind == "f" else np.int64)


def _put(data: Any, keys: list[str], column: Any) -> None:
    """Put a column where its name says."""
    place = ".".join(keys)
    for key in keys[:-1]:
        data = data.get(key) if isinstance(data, dict) else None
    if not isinstance(data, dict) or keys[-1] in data:
        raise InputError("a column for which the file has no place", place=place)
    data[keys[-1]] = column if len(column) else []
