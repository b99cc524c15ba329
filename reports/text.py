"""Tables as plain text for a terminal or a log; the best number of a row has a star."""

from __future__ import annotations

from collections.abc import Sequence

from .table import Table, TableCell


def render(table: Table) -> str:
    """Write a table in columns."""
    spec, width, headed = table.spec, len(table.keys), table.header_columns
    lines = [[item.heading for item in headed]]
    if any(item.unit for item in headed):
        lines.append([item.unit for item in headed])
    # A space where numbers may have a star keeps headings above their digits.
    lines = [[*line[:width], *(f"{text} " for text in line[width:])] for line in lines]
    head = len(lines)
    for row in table.rows:
        lines.append([*table.label_texts(row), *row.texts(_cell)])
    body = len(lines)
    for footer in table.footers:
        cells = footer.texts(_cell)
        lines.append([footer.heading, *[""] * (width - 1), *cells])
    widths = _widths(lines[:body], lines[body:], width)
    left = [key.form is None for key in table.keys] + [False] * (len(headed) - width)
    written = [_line(line, widths, left) for line in lines[:body]]
    written += [_footer_line(line, widths, width) for line in lines[body:]]
    rule = "-" * max(map(len, written))
    groups = [_group_line(table, widths)] if any(group.heading for group in spec.groups) else []
    parts = [spec.title, "", *groups, *written[:head], rule, *written[head:body]]
    parts += [rule, *written[body:]] if table.footers else []
    return "\n".join([*parts, "", *table.notes]).rstrip("\n") + "\n"


def _cell(cell: TableCell) -> str:
    # A space where others have a star keeps the digits below one another.
    return f"{cell.text}{'*' if cell.best else ' '}"


def _widths(rows: Sequence[Sequence[str]], footers: Sequence[Sequence[str]], keys: int) -> list[int]:
    """Return the width of every column; labels of a footer share the columns of the keys."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for footer in footers:
        for index in range(keys, len(widths)):
            widths[index] = max(widths[index], len(footer[index]))
        missing = len(footer[0]) - (sum(widths[:keys]) + 2 * (keys - 1))
        widths[keys - 1] += max(0, missing)
    return widths


def _line(cells: Sequence[str], widths: Sequence[int], left: Sequence[bool]) -> str:
    padded = [
        cell.ljust(width) if to_left else cell.rjust(width)
        for cell, width, to_left in zip(cells, widths, left, strict=True)
    ]
    return "  ".join(padded).rstrip()


def _group_line(table: Table, widths: Sequence[int]) -> str:
    """Write the headings of the groups, each centred over its columns."""
    keys, count = len(table.keys), len(table.spec.columns)
    parts = [" " * (sum(widths[:keys]) + 2 * (keys - 1))]
    for g, group in enumerate(table.spec.groups):
        columns = widths[keys + g * count : keys + (g + 1) * count]
        parts.append(f" {group.heading} ".center(sum(columns) + 2 * (count - 1), "-"))
    return "  ".join(parts)


def _footer_line(cells: Sequence[str], widths: Sequence[int], keys: int) -> str:
    label = cells[0].ljust(sum(widths[:keys]) + 2 * (keys - 1))
    numbers = [cell.rjust(width) for cell, width in zip(cells[keys:], widths[keys:], strict=True)]
    return "  ".join([label, *numbers]).rstrip()
