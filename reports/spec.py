"""How a table is described: what its rows and columns are, where cells get their numbers, how these are written and summed up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..core.record import RunRecord
from .numbers import NumberFormat

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
        How numbers are written.
    display : callable
        How text is written for readers; CSV files keep it as it is.
    optional : bool
        Whether the column is left out where all rows say the same.
    """

    name: str
    heading: str
    unit: str = ""
    form: NumberFormat | None = None
    display: Callable[[str], str] = str
    optional: bool = False


@dataclass(frozen=True)
class Group:
    """Columns side by side under one heading, made from records of one kind: an objective, a solver."""

    name: str
    heading: str


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
        Takes the number out of a record, in base units.
    form : NumberFormat
        How numbers are written; CSV files have them in full.
    best : str or None
        Which number of a row, over the groups, is in bold: the ``largest`` or the ``smallest``.
    """

    name: str
    heading: str
    value: Callable[[RunRecord], float | None]
    form: NumberFormat
    unit: str = ""
    best: Literal["largest", "smallest"] | None = None


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


@dataclass(frozen=True)
class Entry:
    """A record's place in the table: the row, as one label for each key, and the name of the group."""

    record: RunRecord
    labels: tuple[Label, ...]
    group: str


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
    """

    name: str
    title: str
    expects: str
    entries: Callable[[Sequence[RunRecord]], list[Entry]]
    keys: tuple[Key, ...]
    groups: tuple[Group, ...]
    columns: tuple[Column, ...]
    footers: tuple[Footer, ...] = ()
    notes: tuple[str, ...] = ()
