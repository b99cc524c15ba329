"""Tables as CSV for other programs: one line a row, every number in full and in base units.

A missing number is ``nan``, which every reader of numbers takes; the column ``<group>_status`` says why it is missing.
"""

from __future__ import annotations

import csv
import io

from .spec import Label
from .table import Table


def render(table: Table) -> str:
    """Write the rows of a table, with all keys and without the rows that sum up."""
    spec = table.spec
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    header = [key.name for key in spec.keys]
    for group in spec.groups:
        prefix = f"{group.name.replace('-', '_')}_" if group.name else ""
        header += [f"{prefix}status", *(prefix + column.name for column in spec.columns)]
    writer.writerow(header)
    for row in table.rows:
        line = [_text(label) for label in row.labels]
        for status, cells in zip(row.statuses, row.cells, strict=True):
            line += [status, *("nan" if cell.value is None else repr(cell.value) for cell in cells)]
        writer.writerow(line)
    return stream.getvalue()


def _text(label: Label) -> str:
    return "nan" if label is None else label if isinstance(label, str) else repr(label)
