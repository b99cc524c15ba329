"""Formats of tables: one function each, from a finished table to text."""

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from math import nan
from pathlib import Path

from ..core.errors import InputError
from ..core.text import escape_unprintable
from . import latex, page
from .table import Label, Table, TableCell


def to_csv(table: Table) -> str:
    """Write the rows of a table with all keys for other programs: numbers in full, in base units.

    A missing number is ``nan``, which every reader of numbers accepts; the column ``<group>_status`` gives the reason.
    """
    spec = table.spec
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    header = [key.name for key in spec.keys]
    for group in spec.groups:
        prefix = f"{group.name.replace('-', '_')}_" if group.name else ""
        header += [f"{prefix}status", *(prefix + column.name for column in spec.columns)]
    writer.writerow(header)
    for row in table.rows:
        line = [_csv_value(label) for label in row.labels]
        for status, cells in zip(row.statuses, row.cells, strict=True):
            line += [status, *(_csv_value(cell.data) for cell in cells)]
        writer.writerow(line)
    return stream.getvalue()


def _csv_value(label: Label) -> str | float:
    """Return a number, or text that no spreadsheet evaluates as a formula."""
    if label is None:
        return nan
    if not isinstance(label, str):
        return label
    text = escape_unprintable(label)
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text


def escape_markdown(text: str) -> str:
    """Escape text so that Markdown shows it as it is."""
    return re.sub(r"([\\`*_{}\[\]<>#|~&$])", r"\\\1", " ".join(text.split()))


def to_markdown(table: Table) -> str:
    """Write a table with GitHub's pipes, for a README or an issue."""
    spec = table.spec
    headings = [_heading(key.heading, key.unit) for key in table.keys]
    for group in spec.groups:
        title = group.heading if group.name.replace(".", "").isdigit() else group.name  # a size as 64 KiB
        prefix = f"{title}: " if title else ""
        headings += [prefix + _heading(column.heading, column.unit) for column in spec.columns]
    rules = ["---:" if key.form else "---" for key in table.keys]
    rules += ["---:"] * (len(headings) - len(rules))

    def cell_text(cell: TableCell) -> str:
        return f"**{cell.text}**" if cell.best else cell.text

    rows = [[*map(escape_markdown, headings)], rules]
    rows += [[*map(escape_markdown, table.label_texts(row)), *row.texts(cell_text)] for row in table.rows]
    for footer in table.footers:
        rows.append([f"*{escape_markdown(footer.heading)}*", *[""] * (len(table.keys) - 1), *footer.texts(cell_text)])
    lines = [f"**{escape_markdown(spec.title)}**", "", *(f"| {' | '.join(row)} |" for row in rows)]
    lines += [line for note in table.notes for line in ("", escape_markdown(note))]
    return "\n".join(lines) + "\n"


def _heading(heading: str, unit: str) -> str:
    return f"{heading} ({unit})" if unit else heading


def to_text(table: Table) -> str:
    """Write a table in columns for a terminal or a log; the best number of a row has a star."""
    spec, keys, items = table.spec, len(table.keys), table.header_columns
    head = [[item.heading for item in items]]
    if any(item.unit for item in items):
        head.append([item.unit for item in items])

    # A space where numbers may have a star keeps digits and headings below one another.
    def cell_text(cell: TableCell) -> str:
        return f"{cell.text}{'*' if cell.best else ' '}"

    head = [[*line[:keys], *(f"{text} " for text in line[keys:])] for line in head]
    body = [[*table.label_texts(row), *row.texts(cell_text)] for row in table.rows]
    footers = [(footer.heading, footer.texts(cell_text)) for footer in table.footers]
    widths = [max(map(len, column)) for column in zip(*head, *body, strict=True)]
    for heading, numbers in footers:  # whose heading shares the columns of the keys
        widths[keys:] = map(max, widths[keys:], map(len, numbers))
        widths[keys - 1] += max(0, len(heading) - _total(widths[:keys]))
    flush_left = [key.form is None for key in table.keys] + [False] * (len(items) - keys)

    def padded_line(cells: Sequence[str]) -> str:
        texts = (
            cell.ljust(width) if to_left else cell.rjust(width)
            for cell, width, to_left in zip(cells, widths, flush_left, strict=True)
        )
        return "  ".join(texts).rstrip()

    parts, rows = [padded_line(line) for line in head], [padded_line(line) for line in body]
    below = [
        "  ".join([heading.ljust(_total(widths[:keys])), *map(str.rjust, numbers, widths[keys:])]).rstrip()
        for heading, numbers in footers
    ]
    rule = "-" * max(map(len, [*parts, *rows, *below]))
    groups = [_group_line(table, widths)] if any(group.heading for group in spec.groups) else []
    lines = [spec.title, "", *groups, *parts, rule, *rows, *([rule, *below] if below else []), "", *table.notes]
    return "\n".join(lines).rstrip("\n") + "\n"


def _total(widths: Sequence[int]) -> int:
    """Return the width of neighbouring columns together."""
    return sum(widths) + 2 * (len(widths) - 1)


def _group_line(table: Table, widths: Sequence[int]) -> str:
    """Write the headings of the groups, each centred over its columns."""
    keys, count = len(table.keys), len(table.spec.columns)
    parts = [" " * _total(widths[:keys])]
    for g, group in enumerate(table.spec.groups):
        parts.append(f" {group.heading} ".center(_total(widths[keys + g * count : keys + (g + 1) * count]), "-"))
    return "  ".join(parts)


FORMATS: Mapping[str, Callable[[Table], str]] = {
    "latex": latex.render,
    "md": to_markdown,
    "csv": to_csv,
    "text": to_text,
    "html": page.render,
}

_SUFFIXES = {".tex": "latex", ".md": "md", ".csv": "csv", ".txt": "text", ".html": "html"}


def format_of(path: Path) -> str:
    """Return the format of a file by its suffix."""
    if path.suffix.lower() not in _SUFFIXES:
        expected = ", ".join(_SUFFIXES)
        raise InputError(f"unknown suffix; expected {expected}, or give --format", source=str(path))
    return _SUFFIXES[path.suffix.lower()]
