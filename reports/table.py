"""Makes a table from a spec and records: every cell decided and written, nothing laid out."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..core.errors import InputError
from ..core.record import RunRecord
from .marks import MISSING, Mark, mark_of
from .numbers import number
from .records import latest
from .spec import Column, Entry, Footer, Key, Label, TableSpec


@dataclass(frozen=True)
class Cell:
    """A cell: its text, and its number in base units where it has one."""

    text: str
    value: float | None = None
    best: bool = False


@dataclass(frozen=True)
class Row:
    """A row of the table.

    Parameters
    ----------
    labels : tuple of Label
        One for each key of the spec.
    cells : tuple of tuple of Cell
        ``[group][column]``.
    statuses : tuple of str
        Status of the record of each group; ``missing`` where there is none, ``invalid`` where verification failed.
    """

    labels: tuple[Label, ...]
    cells: tuple[tuple[Cell, ...], ...]
    statuses: tuple[str, ...]


@dataclass(frozen=True)
class FooterRow:
    """A row that sums up the others; a column that it says nothing of has None."""

    heading: str
    cells: tuple[tuple[Cell | None, ...], ...]


@dataclass(frozen=True)
class Table:
    """A finished table.

    Parameters
    ----------
    spec : TableSpec
        What it is.
    shown : tuple of int
        Keys that readers are shown; the others say the same in every row.
    rows, footers : tuple
        Its rows.
    notes : tuple of str
        What is told below it; the marks that occur are explained here.
    """

    spec: TableSpec
    shown: tuple[int, ...]
    rows: tuple[Row, ...]
    footers: tuple[FooterRow, ...]
    notes: tuple[str, ...]

    @property
    def keys(self) -> tuple[Key, ...]:
        """The keys that readers are shown."""
        return tuple(self.spec.keys[i] for i in self.shown)

    @property
    def headed(self) -> tuple[Key | Column, ...]:
        """What every column of the layout has above it: the shown keys, then the columns of each group."""
        return (*self.keys, *self.spec.columns * len(self.spec.groups))

    def label_texts(self, row: Row) -> tuple[str, ...]:
        """Texts of the shown labels of a row."""
        return tuple(label_text(self.spec.keys[i], row.labels[i]) for i in self.shown)


def build(spec: TableSpec, records: Sequence[RunRecord]) -> Table:
    """Make a table.

    Parameters
    ----------
    spec : TableSpec
        What it is.
    records : sequence of RunRecord
        In any order, of any methods; of every cell the latest counts.

    Returns
    -------
    Table
        The same for the same records.

    Raises
    ------
    InputError
        If no record fits the table.
    """
    entries = spec.entries(records)
    if not entries:
        raise InputError(f"none of {len(records)} records fits; expected {spec.expects}", source=spec.name)
    found = latest(entries, lambda e: (e.labels, e.group), lambda e: e.record)
    order = sorted({e.labels for e in entries}, key=lambda labels: [natural(label) for label in labels])
    rows = tuple(_row(spec, labels, found) for labels in order)
    shown = tuple(i for i, key in enumerate(spec.keys) if not key.optional or len({row.labels[i] for row in rows}) > 1)
    footers = tuple(_footer(spec, footer, rows) for footer in spec.footers)
    return Table(spec, shown, rows, footers, _notes(rows, found, spec))


def _row(spec: TableSpec, labels: tuple[Label, ...], found: Mapping[Hashable, Entry]) -> Row:
    """Fill one row; the best number of every column stands out."""
    cells: list[list[Cell]] = []
    statuses: list[str] = []
    for group in spec.groups:
        entry = found.get((labels, group.name))
        record = None if entry is None else entry.record
        mark = mark_of(record)
        cells.append([_cell(column, record, mark) for column in spec.columns])
        statuses.append("missing" if record is None else "invalid" if record.verified is False else record.status)
    for c, column in enumerate(spec.columns):
        for line, cell in zip(cells, _with_best(column, [line[c] for line in cells]), strict=True):
            line[c] = cell
    return Row(labels, tuple(map(tuple, cells)), tuple(statuses))


def _cell(column: Column, record: RunRecord | None, mark: Mark | None) -> Cell:
    if mark is not None or record is None:
        return Cell((mark or MISSING).text)
    value = number(column.value(record))
    return Cell(MISSING.text) if value is None else Cell(column.form.show(value), value)


def _with_best(column: Column, cells: Sequence[Cell]) -> list[Cell]:
    """Set the best of the cells apart; numbers that are written the same are equally good, a lone one is not the best."""
    values = [cell.value for cell in cells if cell.value is not None]
    if column.best is None or len(values) < 2:
        return list(cells)
    best = column.form.show(max(values) if column.best == "largest" else min(values))
    return [replace(cell, best=cell.value is not None and cell.text == best) for cell in cells]


def _footer(spec: TableSpec, footer: Footer, rows: Sequence[Row]) -> FooterRow:
    """Sum up what the rows have."""
    groups: list[tuple[Cell | None, ...]] = []
    for g in range(len(spec.groups)):
        cells: list[Cell | None] = []
        for c, column in enumerate(spec.columns):
            if column.name not in footer.columns:
                cells.append(None)
                continue
            value = footer.value([v for row in rows if (v := row.cells[g][c].value) is not None])
            cells.append(Cell(MISSING.text) if value is None else Cell(column.form.show(value), value))
        groups.append(tuple(cells))
    return FooterRow(footer.heading, tuple(groups))


def _notes(rows: Sequence[Row], found: Mapping[Hashable, Entry], spec: TableSpec) -> tuple[str, ...]:
    """Explain the marks that occur, and what they mean for the footers."""
    marks = {mark for entry in found.values() if (mark := mark_of(entry.record)) is not None}
    if any(cell.text == MISSING.text for row in rows for group in row.cells for cell in group):
        marks.add(MISSING)
    legend = "; ".join(f"{mark.text} {mark.meaning}" for mark in sorted(marks, key=lambda mark: mark.text))
    notes = [*spec.notes, *([legend + "."] if legend else [])]
    if spec.footers and marks:
        notes.append("The last rows are over the cells that have a number.")
    return tuple(notes)


def label_text(key: Key, label: Label) -> str:
    """Write a label for readers."""
    if label is None:
        return MISSING.text
    if isinstance(label, str):
        return key.display(label)
    return key.form.show(label) if key.form else repr(label)


def natural(label: Label) -> tuple[Any, ...]:
    """Sort key: numbers before text, and numbers inside text by their value (``gpt-3`` before ``gpt-20``)."""
    if label is None:
        return (2,)
    if not isinstance(label, str):
        return (0, label)
    parts: list[Any] = re.split(r"([0-9]+)", label)
    for i in range(1, len(parts), 2):  # what was split at stands at the odd places
        digits = parts[i].lstrip("0")
        parts[i] = (len(digits), digits)
    return (1, parts, label)
