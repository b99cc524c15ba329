"""Records of files, checked and filtered; column selection and pivots of finished tables."""

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Self

from ..core.errors import InputError, did_you_mean, one_of, show_value
from ..core.record import RunRecord, read_records, record_files
from ..core.text import escape_unprintable
from .numbers import MISSING, natural
from .table import Column, ColumnGroup, Key, Label, Row, Table, TableCell, keep_columns

#: Types of the fields that a report relies on, and what to call them, by their annotation in :class:`RunRecord`.
_TYPES: Mapping[Any, tuple[Any, str]] = {
    str: (str, "text"),
    str | None: (str | None, "text or null"),
    bool | None: (bool | None, "true, false or null"),
    int: (int, "an integer"),
    tuple[str, ...]: (tuple, "a list"),
    Mapping[str, Any]: (Mapping, "an object"),
    Mapping[str, int]: (Mapping, "an object"),
    Mapping[str, float]: (Mapping, "an object"),
    Sequence[Mapping[str, Any]]: (list, "a list"),
    Mapping[str, Any] | None: (Mapping | None, "an object or null"),
}


def load_records(paths: Sequence[Path]) -> list[RunRecord]:
    """Read the records of JSONL files and of folders of them, at least one, in the order of the files.

    An error names the file and the line that is no record.
    """
    # Every line is a record, so that the number of a record is that of its line.
    records = [
        _check_types(record, file, line)
        for path in paths
        for file in record_files(path)
        for line, record in enumerate(read_records(file), start=1)
    ]
    if not records:
        raise InputError("no records in it", source=", ".join(map(str, paths)))
    return records


def _check_types(record: RunRecord, file: Path, line: int) -> RunRecord:
    """Reject a record whose fields are not of the types that reports rely on."""
    for each in fields(RunRecord):
        value, (types, expected) = getattr(record, each.name), _TYPES.get(each.type, (object, ""))
        if not isinstance(value, types):
            place = f"line {line}.{each.name}"
            raise InputError(f"{show_value(value)} is wrong; expected {expected}", source=str(file), place=place)
    return record


_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_CONDITION = re.compile(r"\s*(?P<field>[^<>=!\s]+)\s*(?P<sign><=|>=|!=|=|<|>)\s*(?P<value>.*?)\s*", re.DOTALL)


@dataclass(frozen=True)
class Condition:
    """A condition on a field of a record, nested ones after dots: ``seconds.total``.

    ``=`` and ``!=`` compare text, and patterns such as ``torus*``; the other signs compare numbers.
    """

    field: str
    sign: str
    value: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a condition such as ``model=ring`` or ``seconds.total<1`` on a field that records have."""
        match = _CONDITION.fullmatch(text)
        if match is None:
            raise InputError(f"{text!r} is not a condition; expected one such as model=ring or seconds.total<1")
        condition = cls(match["field"], match["sign"], match["value"])
        names = RunRecord.__dataclass_fields__
        if (name := condition.field.partition(".")[0]) not in names:
            raise InputError(f"no record has a field {name!r}{one_of(name, names)}")
        if condition.sign in _COMPARISONS and _number(condition.value) is None:
            raise InputError(f"{condition.value!r} is not a number; expected one after {condition.sign!r}")
        return condition

    def value_in(self, record: RunRecord) -> Any:
        """Return the field's value in a record; None if it has none."""
        value: Any = record
        for name in self.field.split("."):
            value = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
        return value

    def holds(self, record: RunRecord) -> bool:
        """Return whether a record meets the condition; one without the field meets only ``!=``."""
        value = self.value_in(record)
        if self.sign in _COMPARISONS:
            number, other = _number(value), _number(self.value)
            return number is not None and other is not None and _COMPARISONS[self.sign](number, other)
        number, text = _number(value), str(value).lower() if isinstance(value, bool) else str(value)
        same = fnmatchcase(text, self.value) or (number is not None and number == _number(self.value))
        same = value is not None and same
        return same if self.sign == "=" else not same


def _number(value: Any) -> float | None:
    try:
        return None if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def filter_records(
    records: Sequence[RunRecord], conditions: Iterable[Condition], models: Sequence[str] = ()
) -> list[RunRecord]:
    """Return the records that meet all conditions, and match one of the model names or patterns; at least one."""
    filters = list(conditions)
    for condition in filters:
        values = map(condition.value_in, records)
        parts = next((value for value in values if isinstance(value, Mapping) and value), None)
        if parts is not None:
            text = f"{condition.field} has parts; expected one of them, such as {condition.field}.{next(iter(parts))}"
            raise InputError(text, source="--where")
    matches = [record for record in records if all(condition.holds(record) for condition in filters)]
    if models:
        matches = [record for record in matches if any(fnmatchcase(record.model, pattern) for pattern in models)]
    if not matches:
        there = sorted({record.model for record in records})
        hint = did_you_mean(models[0], there) if models else ""
        asked_for = " and ".join(["--where"] * bool(filters) + ["--only"] * bool(models))
        raise InputError(
            f"none of {len(records)} records is left; their models are {', '.join(there)}{hint}", source=asked_for
        )
    return matches


#: Columns that answer a question; without any of them the question is not part of a table.
_ANSWER_COLUMNS = frozenset({"objective", "objective_s", "bound", "gap", "time_ratio", "excess"})


def with_columns(table: Table, names: Sequence[str]) -> Table:
    """Return the table with these columns only, in this order; labels stay unless some are named.

    The explanation of objectives is dropped with the last column that depends on it: completion times and bandwidths
    have one time model for all methods.
    """
    spec = table.spec
    keys = [i for name in names for i, key in enumerate(spec.keys) if _is_named(key, name)]
    columns = [c for name in names for c, column in enumerate(spec.columns) if _is_named(column, name)]
    for name in names:
        items: tuple[Key | Column, ...] = (*spec.keys, *spec.columns)
        if not any(_is_named(item, name) for item in items):
            raise _unknown(name, items)
    columns = columns or list(range(len(spec.columns)))
    has_answers = any(spec.columns[c].name in _ANSWER_COLUMNS for c in columns)
    labels = tuple(keys) or tuple(i for i in table.visible if has_answers or spec.keys[i].name != "question")
    return replace(
        table,
        spec=replace(spec, columns=tuple(spec.columns[c] for c in columns)),
        visible=labels,
        rows=keep_columns(table.rows, columns),
        footers=keep_columns(table.footers, columns),
    )


def pivot_table(table: Table, pair: str) -> Table:
    """Return the table pivoted on one label: ``method×size`` has a row for each method.

    Other labels that differ between rows stay, before the row's. Without another choice by :func:`with_columns`, the
    first column of numbers is shown.
    """
    names = [name.strip() for name in re.split(r"×|\*|,| x ", pair)]
    if len(names) != 2 or not all(names):
        raise InputError(f"{pair!r} is no pair of columns; expected one such as method×size")
    if len(table.spec.groups) > 1:
        raise InputError(f"the columns of {table.spec.name} are already grouped; expected another table")
    spec = table.spec
    row_key, column_key = (_key(spec.keys, name) for name in names)
    others = [
        i for i in table.visible if i not in (row_key, column_key) and len({row.labels[i] for row in table.rows}) > 1
    ]
    places = [*others, row_key]
    values = sorted({row.labels[column_key] for row in table.rows}, key=natural)
    pivot: dict[tuple[Label, ...], dict[Label, Row]] = {}
    for row in table.rows:
        cells = pivot.setdefault(tuple(row.labels[i] for i in places), {})
        if row.labels[column_key] in cells:
            raise InputError(f"two rows have the same {pair}; expected --where to leave one of them")
        cells[row.labels[column_key]] = row
    groups = tuple(ColumnGroup(str(value), escape_unprintable(spec.keys[column_key].text(value))) for value in values)
    pivot_spec = replace(spec, keys=tuple(spec.keys[i] for i in places), groups=groups, footers=())
    rows = tuple(_pivot_row(labels, cells, values, len(spec.columns)) for labels, cells in pivot.items())
    meaning = f"{MISSING.text} {MISSING.meaning}"
    missing = any(len(cells) < len(values) for cells in pivot.values())
    is_unexplained = missing and not any(note.startswith(meaning) for note in table.notes)
    notes = (*table.notes, f"{meaning}.") if is_unexplained else table.notes
    return Table(pivot_spec, tuple(range(len(places))), rows, (), tuple(dict.fromkeys(notes)))


def _pivot_row(labels: tuple[Label, ...], cells: Mapping[Label, Row], values: Sequence[Label], count: int) -> Row:
    nothing = tuple(TableCell(MISSING.text) for _ in range(count))
    parts = [cells.get(value) for value in values]
    return Row(
        labels,
        tuple(nothing if part is None else part.cells[0] for part in parts),
        tuple("missing" if part is None else part.statuses[0] for part in parts),
    )


def _key(keys: Sequence[Key], name: str) -> int:
    if (place := next((i for i, key in enumerate(keys) if _is_named(key, name)), None)) is None:
        raise _unknown(name, keys)
    return place


def _is_named(item: Key | Column, name: str) -> bool:
    return name.lower() in (item.name.lower(), item.heading.lower())


def _unknown(name: str, items: Sequence[Key | Column]) -> InputError:
    names = [item.name for item in items]
    hint = did_you_mean(name, [*names, *(item.heading.lower() for item in items)])
    return InputError(f"no column {name!r}; expected one of {', '.join(names)}{hint}")
