"""Loader of records for a report: files and folders, checked, the latest of every cell."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from ..core.errors import InputError, locate_os_errors
from ..core.record import RunRecord, read_records

T = TypeVar("T")

#: What a report relies on: the field, the types that it may have, and what to call them.
_FIELDS: tuple[tuple[str, tuple[type, ...], str], ...] = (
    ("model", (str,), "text"),
    ("instance", (str,), "text"),
    ("instance_sha256", (str,), "text"),
    ("status", (str,), "text"),
    ("message", (str,), "text"),
    ("started_at", (str,), "text"),
    ("solver", (str, type(None)), "text or null"),
    ("objective_unit", (str, type(None)), "text or null"),
    ("verified", (bool, type(None)), "true, false or null"),
    ("options", (Mapping,), "an object"),
    ("solver_options", (Mapping,), "an object"),
    ("metrics", (Mapping,), "an object"),
    ("seconds", (Mapping,), "an object"),
    ("cwb_version", (str,), "text"),
    ("kind", (str,), "text"),
    ("sense", (str,), "text"),
    ("host", (str,), "text"),
    ("solver_version", (str, type(None)), "text or null"),
    ("collective", (str, type(None)), "text or null"),
    ("size", (Mapping,), "an object"),
    ("limits", (Mapping,), "an object"),
    ("environment", (Mapping,), "an object"),
    ("answer", (Mapping, type(None)), "an object or null"),
    ("certificate", (Mapping, type(None)), "an object or null"),
    ("violations", (tuple,), "a list"),
    ("seed", (int,), "an integer"),
    ("threads", (int,), "an integer"),
    ("stopped", (str, type(None)), "text or null"),
    ("proof", (str,), "text"),
)


def load_records(paths: Sequence[Path]) -> list[RunRecord]:
    """Read the records of JSONL files, and of all such files in folders.

    There is at least one; they are in the order of the files.

    Raises
    ------
    InputError
        If there is no record, or a line is not one; names the file and the line.
    """
    records = [record for path in paths for file in _files(path) for record in _records(file)]
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


def _records(file: Path) -> Iterable[RunRecord]:
    # Every line is a record, so that the number of a record is that of its line.
    for line, record in enumerate(read_records(file), start=1):
        _check(record, file, line)
        yield record


def _check(record: RunRecord, file: Path, line: int) -> None:
    """Reject a record whose fields are not of the types that reports rely on."""
    for name, types, expected in _FIELDS:
        value = getattr(record, name)
        if not isinstance(value, types):
            shown = repr(value)
            shown = shown if len(shown) <= 60 else shown[:57] + "..."
            raise InputError(f"{shown} is wrong; expected {expected}", source=str(file), place=f"line {line}.{name}")


def latest(items: Iterable[T], key: Callable[[T], Hashable], record: Callable[[T], RunRecord]) -> dict[Hashable, T]:
    """Keep the latest record of every cell; of equal start times the last one read.

    Parameters
    ----------
    items : iterable
        Items of the report, each with its record.
    key, record : callable
        Cell and record of an item.
    """
    kept: dict[Hashable, T] = {}
    for item in items:
        cell = key(item)
        if cell not in kept or record(item).started_at >= record(kept[cell]).started_at:
            kept[cell] = item
    return kept
