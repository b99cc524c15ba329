"""Loader of records for a report: files and folders, checked, the latest of every cell."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from ..core.errors import InputError, locate_os_errors
from ..core.record import RunRecord, read_records

T = TypeVar("T")

#: Types of the fields that a report relies on, and what to call them, by their annotation in :class:`RunRecord`.
_TYPES: Mapping[str, tuple[Any, str]] = {
    "str": (str, "text"),
    "str | None": (str | None, "text or null"),
    "bool | None": (bool | None, "true, false or null"),
    "int": (int, "an integer"),
    "tuple[str, ...]": (tuple, "a list"),
    "Mapping[str, Any]": (Mapping, "an object"),
    "Mapping[str, int]": (Mapping, "an object"),
    "Mapping[str, float]": (Mapping, "an object"),
    "Mapping[str, Any] | None": (Mapping | None, "an object or null"),
}


def load_records(paths: Sequence[Path]) -> list[RunRecord]:
    """Read the records of JSONL files and of folders of them, at least one, in the order of the files.

    Raises
    ------
    InputError
        If there is no record, or a line is not one; names the file and the line.
    """
    # Every line is a record, so that the number of a record is that of its line.
    records = [
        _check_types(record, file, line)
        for path in paths
        for file in _files(path)
        for line, record in enumerate(read_records(file), start=1)
    ]
    if not records:
        raise InputError("no records in it", source=", ".join(map(str, paths)))
    return records


def _files(path: Path) -> list[Path]:
    """Return the JSONL files of a path."""
    with locate_os_errors("cannot be read", str(path)):
        if not path.exists():
            missing = f"no such file or folder of records; 'cwb compare SUITE -o {path}' makes one"
            raise InputError(missing, source=str(path))
        files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    if not files:
        raise InputError("no *.jsonl file in this folder", source=str(path))
    return files


def _check_types(record: RunRecord, file: Path, line: int) -> RunRecord:
    """Reject a record whose fields are not of the types that reports rely on."""
    for each in fields(RunRecord):
        value, (types, expected) = getattr(record, each.name), _TYPES.get(str(each.type), (object, ""))
        if not isinstance(value, types):
            shown = repr(value)
            shown = shown if len(shown) <= 60 else shown[:57] + "..."
            place = f"line {line}.{each.name}"
            raise InputError(f"{shown} is wrong; expected {expected}", source=str(file), place=place)
    return record


def latest(items: Iterable[T], key: Callable[[T], Hashable], record: Callable[[T], RunRecord]) -> dict[Hashable, T]:
    """Keep the latest record of every cell; of equal start times the last one read."""
    kept: dict[Hashable, T] = {}
    for item in items:
        cell = key(item)
        if cell not in kept or record(item).started_at >= record(kept[cell]).started_at:
            kept[cell] = item
    return kept
