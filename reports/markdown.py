"""Tables as Markdown (GitHub's pipes), for a README or an issue."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .table import Table, TableCell

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&$])")


def escape(text: str) -> str:
    """Escape text so that Markdown shows it as it is."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def render(table: Table) -> str:
    """Write a table with its title above and its notes below."""
    spec = table.spec
    headings = [_heading(key.heading, key.unit) for key in table.keys]
    for group in spec.groups:
        prefix = f"{group.name}: " if group.name else ""
        headings += [prefix + _heading(column.heading, column.unit) for column in spec.columns]
    rules = ["---:" if key.form else "---" for key in table.keys]
    rules += ["---:"] * (len(headings) - len(rules))
    lines = [f"**{escape(spec.title)}**", "", _line(map_escape(headings)), _line(rules)]
    for row in table.rows:
        lines.append(_line([*map_escape(table.label_texts(row)), *row.texts(_cell)]))
    for footer in table.footers:
        cells = footer.texts(_cell)
        lines.append(_line([f"*{escape(footer.heading)}*", *[""] * (len(table.keys) - 1), *cells]))
    lines += [line for note in table.notes for line in ("", escape(note))]
    return "\n".join(lines) + "\n"


def map_escape(texts: Sequence[str]) -> list[str]:
    """Escape every text."""
    return [escape(text) for text in texts]


def _heading(heading: str, unit: str) -> str:
    return f"{heading} ({unit})" if unit else heading


def _cell(cell: TableCell) -> str:
    return f"**{cell.text}**" if cell.best else cell.text


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
