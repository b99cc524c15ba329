"""Tables as CSV for other programs: quoted text, every number in full and in base units.

A missing number is ``nan``, which every reader of numbers accepts; the column ``<group>_status`` gives the reason.
Text that a spreadsheet would read as a formula, since it begins with ``=``, ``+``, ``-`` or ``@``, is preceded by
``'``.
"""

from __future__ import annotations

import csv
import io
from math import nan

from ..core.text import printable
from .spec import Label
from .table import Table

#: What a formula of a spreadsheet begins with.
_FORMULA = ("=", "+", "-", "@")


def render(table: Table) -> str:
    """Write the rows of a table with all keys, without footers."""
    spec = table.spec
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    header = [key.name for key in spec.keys]
    for group in spec.groups:
        prefix = f"{group.name.replace('-', '_')}_" if group.name else ""
        header += [f"{prefix}status", *(prefix + column.name for column in spec.columns)]
    writer.writerow(header)
    for row in table.rows:
        line: list[str | float] = [_label(label) for label in row.labels]
        for status, cells in zip(row.statuses, row.cells, strict=True):
            line += [status, *(_label(cell.data) for cell in cells)]
        writer.writerow(line)
    return stream.getvalue()


def _label(label: Label) -> str | float:
    """Return a label as a number, or as text that no spreadsheet evaluates."""
    if label is None:
        return nan
    if not isinstance(label, str):
        return label
    text = printable(label)
    return f"'{text}" if text.startswith(_FORMULA) else text
