"""Tables as CSV for other programs: one line a row, text in quotes, every number in full and in base units.

A missing number is ``nan``, which every reader of numbers takes; the column ``<group>_status`` says why it is missing.
"""

from __future__ import annotations

import csv
import io
from math import nan

from .table import Table


def render(table: Table) -> str:
    """Write the rows of a table, with all keys and without the rows that sum up."""
    spec = table.spec
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    header = [key.name for key in spec.keys]
    for group in spec.groups:
        prefix = f"{group.name.replace('-', '_')}_" if group.name else ""
        header += [f"{prefix}status", *(prefix + column.name for column in spec.columns)]
    writer.writerow(header)
    for row in table.rows:
        line: list[str | float] = [nan if label is None else label for label in row.labels]
        for status, cells in zip(row.statuses, row.cells, strict=True):
            line += [status, *(nan if cell.value is None else cell.value for cell in cells)]
        writer.writerow(line)
    return stream.getvalue()
