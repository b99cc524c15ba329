"""Description of a table: rows, columns, source and format of the numbers, summaries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from ..core.record import RunRecord
from .numbers import MISSING, NumberFormat
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


ALONE = (ColumnGroup("", ""),)  #: The only group of tables whose rows compete.


@dataclass(frozen=True)
class TableSpec:
    """A table as data; :func:`cwb.reports.table.build` makes it from records."""

    name: str
    title: str
    expects: str  #: kind of records it is made from, for the error without any
    entries: Callable[[Sequence[RunRecord]], list[RecordPlace]]  #: places the records that fit; leaves out the others
    keys: tuple[Key, ...]
    groups: tuple[ColumnGroup, ...]
    columns: tuple[Column, ...]
    footers: tuple[Footer, ...] = ()
    notes: tuple[str, ...] = ()  #: notes for readers, below the table
    #: Keys whose equality makes rows compete for the best number; without any, the groups of a row compete
    block: tuple[str, ...] = ()
    #: Further notes, made from the places that are shown
    remarks: Callable[[Sequence[RecordPlace]], Sequence[str]] = lambda entries: ()
