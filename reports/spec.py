"""The description of a table.

What its rows and columns are, where cells get their numbers, and how these are written and summarized.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from ..core.record import RunRecord
from .numbers import NumberFormat
from .statistics import mean

#: What identifies a row: text, a number, or None where a record does not tell.
Label: TypeAlias = str | float | None


@dataclass(frozen=True)
class Key:
    """A column that identifies rows.

    Parameters
    ----------
    name : str
        Name in CSV files.
    heading, unit : str
        What stands above it.
    form : NumberFormat or None
        How numbers are written, aligned at the point.
    words : callable or None
        How numbers are written as text, such as sizes with their units.
    display : callable
        How text is written for readers; CSV files keep it as it is.
    optional : bool
        Whether the column is left out where all rows say the same.
    """

    name: str
    heading: str
    unit: str = ""
    form: NumberFormat | None = None
    words: Callable[[float], str] | None = None
    display: Callable[[str], str] = str
    optional: bool = False


@dataclass(frozen=True)
class ColumnGroup:
    """Columns side by side under one heading, made from records of one kind: an objective, a solver."""

    name: str
    heading: str


@dataclass(frozen=True)
class RecordPlace:
    """A record's place in the table.

    Parameters
    ----------
    record : RunRecord
        The record.
    labels : tuple of Label
        The row: one for each key.
    group : str
        Name of the group.
    facts : mapping of str to number or None
        What the record does not tell by itself, such as its gap to the best bound of all records.
    ranked : bool
        Whether its numbers may be the best ones of the table's blocks.
    """

    record: RunRecord
    labels: tuple[Label, ...]
    group: str = ""
    facts: Mapping[str, float | None] = field(default_factory=dict)
    ranked: bool = True


@dataclass(frozen=True)
class Column:
    """A column of numbers, repeated in every group.

    Parameters
    ----------
    name : str
        Name in CSV files.
    heading, unit : str
        What stands above it.
    value : callable
        Takes the number out of an entry, in base units.
    form : NumberFormat
        How numbers are written; CSV files have them in full.
    best : str or None
        Which number, over the groups of a row or over the rows of a block, is in bold: the ``largest`` or the
        ``smallest``.
    over : callable
        Makes one number of those of several runs, such as seeds: in every column of a row of the same runs.
    every : bool
        Whether failed runs are asked for their number as well, because one stands for them: a count, a time at the
        limit.
    optional : bool
        Whether the column is left out where no cell has a number.
    block : tuple of str or None
        Names of the keys that rows have in common which compete in this column; by default those of the table.
    note : str
        What a reader has to know where the column is shown.
    """

    name: str
    heading: str
    value: Callable[[RecordPlace], float | None]
    form: NumberFormat
    unit: str = ""
    best: Literal["largest", "smallest"] | None = None
    over: Callable[[Sequence[float]], float | None] = mean
    every: bool = False
    optional: bool = False
    block: tuple[str, ...] | None = None
    note: str = ""


@dataclass(frozen=True)
class Footer:
    """A row below the others that sums up some columns.

    Parameters
    ----------
    heading : str
        What it is.
    columns : tuple of str
        Names of the columns that are summed up.
    value : callable
        Takes the numbers of a column, in the order of the rows.
    """

    heading: str
    columns: tuple[str, ...]
    value: Callable[[Sequence[float]], float | None]


def no_remarks(entries: Sequence[RecordPlace]) -> Sequence[str]:
    """Return nothing."""
    del entries
    return ()


#: The only group of tables whose rows compete.
ALONE = (ColumnGroup("", ""),)


@dataclass(frozen=True)
class TableSpec:
    """A table as data; :func:`cwb.reports.table.build` makes it from records.

    Parameters
    ----------
    name : str
        Name on the command line.
    title : str
        What the table shows; the caption of a standalone document.
    expects : str
        Which records it is made from, for the error where there are none.
    entries : callable
        Places the records that fit; leaves out the others.
    keys, groups, columns, footers
        Its parts, in order.
    notes : tuple of str
        What a reader has to know, below the table.
    block : tuple of str
        Names of the keys that rows have in common which compete for the best number; without any, the groups of a row
        compete.
    remarks : callable
        Takes the entries that are shown, gives what else a reader has to know.
    """

    name: str
    title: str
    expects: str
    entries: Callable[[Sequence[RunRecord]], list[RecordPlace]]
    keys: tuple[Key, ...]
    groups: tuple[ColumnGroup, ...]
    columns: tuple[Column, ...]
    footers: tuple[Footer, ...] = ()
    notes: tuple[str, ...] = ()
    block: tuple[str, ...] = ()
    remarks: Callable[[Sequence[RecordPlace]], Sequence[str]] = no_remarks
