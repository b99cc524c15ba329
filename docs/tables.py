"""Write the tables of a Markdown text as one CSV file: ``python benchmarks/bfb.py | python docs/tables.py FILE``.

The tables of a file have the same headings; an empty first cell is that of the row above.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

_TABLE = re.compile(r"^\|.*\n\| ?:?-.*\n(?:\|.*\n?)+", re.MULTILINE)
_CELL = re.compile(r"(?<!\\)\|")


def tables(text: str) -> Iterator[list[list[str]]]:
    """Rows of every table, the headings first."""
    for found in _TABLE.finditer(text):
        rows = [[plain(cell) for cell in _CELL.split(line.strip())[1:-1]] for line in found[0].splitlines()]
        body = rows[2:]
        for above, row in pairwise(body):
            row[0] = row[0] or above[0]
        yield [rows[0], *body]


def plain(cell: str) -> str:
    """A cell without marks of Markdown, and without commas in numbers; those of arguments in code stay."""
    parts = cell.strip().split("`")
    parts[::2] = [re.sub(r"(?<=\d),(?=\d{3}\b)", "", part) for part in parts[::2]]
    return re.sub(r"[$*]|\\(?=\W)", "", "".join(parts))


def write(text: str, path: Path) -> None:
    """Write the rows of all tables of a text."""
    head, *more = tables(text)
    if any(table[0] != head[0] for table in more):
        raise SystemExit(f"{path}: the tables have different headings")
    rows = [*head, *(row for table in more for row in table[1:])]
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file", type=Path, help="CSV file of the tables on stdin")
    target = parser.parse_args().file
    write(sys.stdin.read(), target)
