"""Tables: their description as data, and how they are made from records.

Records of one cell, such as seeds, are combined; the best numbers are marked, and marks explain missing ones.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias, TypeVar

from ..core.errors import InputError
from ..core.grouping import group_by_key
from ..core.record import RunRecord
from ..core.text import escape_unprintable
from .numbers import MISSING, NumberFormat, mark_of, natural, number
from .runs import identity, latest
from .statistics import mean

Label: TypeAlias = str | float | None  #: What identifies a row: text, a number, or None where a record does not tell.


@dataclass(frozen=True)
class Key:
    """A column that identifies rows."""

    name: str  #: name of the column in CSV files
    heading: str
    unit: str = ""
    form: NumberFormat | None = None  #: format of numbers, aligned at the point
    words: Callable[[float], str] | None = None  #: formats numbers as text, such as sizes with their units
    display: Callable[[str], str] = str  #: formats text for readers; CSV files keep it as it is
    optional: bool = False  #: whether the column is left out if all rows have the same value

    def text(self, label: Label) -> str:
        """Write a label for readers."""
        if label is None:
            return MISSING.text
        if isinstance(label, str):
            return self.display(label)
        if self.form:
            return self.form.show(label)
        return self.words(label) if self.words else repr(label)


@dataclass(frozen=True)
class ColumnGroup:
    """Columns under one heading, from records of one kind, such as an objective or a solver."""

    name: str
    heading: str


@dataclass(frozen=True)
class RecordPlace:
    """A record's place in the table: a label for each key, and the name of the column group."""

    record: RunRecord
    labels: tuple[Label, ...]
    group: str = ""
    #: Facts from other records, such as the gap to the best bound of all
    facts: Mapping[str, float | None] = field(default_factory=dict)
    ranked: bool = True  #: whether its numbers may be the best of the table's blocks


@dataclass(frozen=True)
class Column:
    """A column of numbers, repeated in every group."""

    name: str  #: name of the column in CSV files
    heading: str
    value: Callable[[RecordPlace], float | None]  #: number of a place, in base units
    form: NumberFormat  #: format of the numbers; CSV files have them in full
    unit: str = ""
    #: Number in bold, over the groups of a row or the rows of a block: ``largest`` or ``smallest``
    best: Literal["largest", "smallest"] | None = None
    #: Combines the numbers of several runs, such as seeds; the same runs in every column of a row
    over: Callable[[Sequence[float]], float | None] = mean
    every: bool = False  #: whether failed runs have a number as well, such as a count or the time limit
    optional: bool = False  #: whether the column is left out if no cell has a number
    #: Keys whose equality makes rows compete in this column; by default those of the table
    block: tuple[str, ...] | None = None
    note: str = ""


@dataclass(frozen=True)
class Footer:
    """A row below the others that summarizes the columns of these names, in the order of the rows."""

    heading: str
    columns: tuple[str, ...]
    value: Callable[[Sequence[float]], float | None]


@dataclass(frozen=True)
class TableSpec:
    """A table as data; :func:`cwb.reports.table.build` makes it from records."""

    name: str
    title: str
    expects: str  #: kind of records it is made from, for the error without any
    entries: Callable[[Sequence[RunRecord]], list[RecordPlace]]  #: places the records that fit; leaves out the others
    keys: tuple[Key, ...]
    columns: tuple[Column, ...]
    groups: tuple[ColumnGroup, ...] = (ColumnGroup("", ""),)  #: by default one without a heading, whose rows compete
    footers: tuple[Footer, ...] = ()
    notes: tuple[str, ...] = ()  #: notes for readers, below the table
    #: Keys whose equality makes rows compete for the best number; without any, the groups of a row compete
    block: tuple[str, ...] = ()
    #: Further notes, made from the places that are shown
    remarks: Callable[[Sequence[RecordPlace]], Sequence[str]] = lambda entries: ()


@dataclass(frozen=True)
class TableCell:
    """A cell: its text, and its number in base units if it has one.

    A cell whose text is neither a number nor a mark has ``words``, which CSV files print in place of the number.
    """

    text: str
    value: float | None = None
    best: bool = False
    words: str | None = None

    @property
    def data(self) -> str | float | None:
        """Value for other programs: a number, or words; None for a mark."""
        return self.words if self.value is None else self.value


@dataclass(frozen=True)
class Row:
    """A row of the table: a label for each key of the spec, and cells by position, ``[group][column]``."""

    labels: tuple[Label, ...]
    cells: tuple[tuple[TableCell, ...], ...]
    #: Status of each group's record, for several runs all that occur; ``missing`` without one, ``invalid`` if
    #: verification failed
    statuses: tuple[str, ...]
    records: tuple[RunRecord, ...] = ()

    def texts(self, write: Callable[[TableCell], str]) -> list[str]:
        """Return the texts of its cells."""
        return [write(cell) for group in self.cells for cell in group]


@dataclass(frozen=True)
class FooterRow:
    """A row that summarizes the others; a column without a summary has None."""

    heading: str
    cells: tuple[tuple[TableCell | None, ...], ...]

    def texts(self, write: Callable[[TableCell], str]) -> list[str]:
        """Return the texts of its cells; empty without a summary."""
        return ["" if cell is None else write(cell) for group in self.cells for cell in group]


@dataclass(frozen=True)
class Table:
    """A finished table."""

    spec: TableSpec
    visible: tuple[int, ...]  #: keys shown to readers; the others are the same in every row
    rows: tuple[Row, ...]
    footers: tuple[FooterRow, ...]
    notes: tuple[str, ...]  #: notes below it, with explanations of the marks that occur

    @property
    def keys(self) -> tuple[Key, ...]:
        """Keys shown to readers."""
        return tuple(self.spec.keys[i] for i in self.visible)

    @property
    def header_columns(self) -> tuple[Key | Column, ...]:
        """Key or column of every column of the layout: shown keys, then the columns of each group."""
        return (*self.keys, *self.spec.columns * len(self.spec.groups))

    def label_texts(self, row: Row) -> tuple[str, ...]:
        """Texts of the shown labels of a row."""
        return tuple(escape_unprintable(self.spec.keys[i].text(row.labels[i])) for i in self.visible)


_AnyRow = TypeVar("_AnyRow", Row, FooterRow)


def keep_columns(rows: Iterable[_AnyRow], columns: Sequence[int]) -> tuple[_AnyRow, ...]:
    """Return rows with the cells of some columns of each group."""
    return tuple(replace(row, cells=tuple(tuple(line[c] for c in columns) for line in row.cells)) for row in rows)


def build(spec: TableSpec, records: Sequence[RunRecord]) -> Table:
    """Make a table of records in any order, of any methods; the latest of every cell counts."""
    entries = spec.entries(records)
    if not entries:
        raise InputError(f"none of {len(records)} records fits; expected {spec.expects}", source=spec.name)
    recent = latest(entries, lambda e: (e.labels, e.group, identity(e.record)), lambda e: e.record)
    in_order = sorted(recent.values(), key=lambda e: (e.record.seed, identity(e.record)))
    by_cell = group_by_key(((entry.labels, entry.group), entry) for entry in in_order)
    order = sorted({e.labels for e in entries}, key=lambda labels: [natural(label) for label in labels])
    rows = _mark_blocks(spec, [_row(spec, labels, by_cell) for labels in order], by_cell)
    nonempty = {c for row in rows for line in row.cells for c, cell in enumerate(line) if cell.value is not None}
    columns = [c for c, column in enumerate(spec.columns) if not column.optional or c in nonempty]
    spec = replace(spec, columns=tuple(spec.columns[c] for c in columns))
    rows = keep_columns(rows, columns)
    keys = tuple(i for i, key in enumerate(spec.keys) if not key.optional or len({row.labels[i] for row in rows}) > 1)
    footers = tuple(_footer(spec, footer, rows) for footer in spec.footers)
    return Table(spec, keys, rows, footers, _notes(rows, by_cell, spec))


#: The entries of every cell: of every run the latest, in order of their seeds.
_Cells = Mapping[tuple[tuple[Label, ...], str], Sequence[RecordPlace]]


def _row(spec: TableSpec, labels: tuple[Label, ...], by_cell: _Cells) -> Row:
    cells: list[list[TableCell]] = []
    statuses: list[str] = []
    records: list[RunRecord] = []
    for group in spec.groups:
        entries = by_cell.get((labels, group.name), ())
        records += [entry.record for entry in entries]
        cells.append([_cell(column, entries) for column in spec.columns])
        statuses.append("+".join(sorted({status_of(entry.record) for entry in entries})) or "missing")
    return Row(labels, tuple(map(tuple, cells)), tuple(statuses), tuple(records))


def status_of(record: RunRecord) -> str:
    """Return the status as tables show it: ``invalid`` if verification failed."""
    return "invalid" if record.verified is False else record.shown_status


def _mark_blocks(spec: TableSpec, rows: Sequence[Row], by_cell: _Cells) -> tuple[Row, ...]:
    """Mark the best numbers of every block of rows if rows compete, else of the groups of every row."""
    cells = [[list(line) for line in row.cells] for row in rows]
    for c, column in enumerate(spec.columns):
        if not spec.block:
            for lines in cells:
                _mark_best(column, lines, c)
            continue
        names = spec.block if column.block is None else column.block
        positions = [i for i, key in enumerate(spec.keys) if key.name in names]
        blocks: dict[tuple[Label, ...], list[int]] = {}
        for r, row in enumerate(rows):
            entries = (entry for group in spec.groups for entry in by_cell.get((row.labels, group.name), ()))
            if column.block is not None or all(entry.ranked for entry in entries):
                blocks.setdefault(tuple(row.labels[i] for i in positions), []).append(r)
        for block in blocks.values():
            for g in range(len(spec.groups)):
                _mark_best(column, [cells[r][g] for r in block], c)
    return tuple(replace(row, cells=tuple(map(tuple, lines))) for row, lines in zip(rows, cells, strict=True))


def _cell(column: Column, entries: Sequence[RecordPlace]) -> TableCell:
    """Combine the numbers of a cell's runs; without any, use the mark of the latest run."""
    if not entries:
        return TableCell(MISSING.text)
    last = max(entries, key=lambda e: e.record.started_at)
    values = [
        value
        for entry in entries
        if (column.every or mark_of(entry.record) is None) and (value := number(column.value(entry))) is not None
    ]
    try:
        value = number(column.over(values)) if values else None
    except OverflowError:
        value = None
    if value is not None:
        return TableCell(column.form.show(value), value)
    return TableCell((MISSING if column.every else mark_of(last.record) or MISSING).text)


def _mark_best(column: Column, lines: Sequence[list[TableCell]], c: int) -> None:
    """Mark the best cells of a column of several numbers; those of the same text are equally good."""
    values = [value for line in lines if (value := line[c].value) is not None]
    if column.best is None or len(values) < 2:
        return
    best = column.form.show(max(values) if column.best == "largest" else min(values))
    for line in lines:
        line[c] = replace(line[c], best=line[c].value is not None and line[c].text == best)


def _footer(spec: TableSpec, footer: Footer, rows: Sequence[Row]) -> FooterRow:
    def cell(group: int, c: int, column: Column) -> TableCell | None:
        if column.name not in footer.columns:
            return None
        value = footer.value([v for row in rows if (v := row.cells[group][c].value) is not None])
        return TableCell(MISSING.text) if value is None else TableCell(column.form.show(value), value)

    groups = range(len(spec.groups))
    return FooterRow(footer.heading, tuple(tuple(cell(g, c, x) for c, x in enumerate(spec.columns)) for g in groups))


def _notes(rows: Sequence[Row], by_cell: _Cells, spec: TableSpec) -> tuple[str, ...]:
    """Explain the marks that occur, and their effect on footers."""
    entries = [entry for cell in by_cell.values() for entry in cell]
    texts = {cell.text for row in rows for group in row.cells for cell in group if cell.value is None}
    marks = {mark for entry in entries if (mark := mark_of(entry.record)) is not None and mark.text in texts}
    if MISSING.text in texts or any(label is None for row in rows for label in row.labels):
        marks.add(MISSING)
    legend = "; ".join(f"{mark.text} {mark.meaning}" for mark in sorted(marks, key=lambda mark: mark.text))
    notes = [*spec.notes, *(column.note for column in spec.columns if column.note)]
    notes += [*spec.remarks(entries), *([legend + "."] if legend else [])]
    if spec.footers and marks:
        notes.append("The last rows are over the cells that have a number.")
    return tuple(dict.fromkeys(map(escape_unprintable, notes)))
