"""Write the list of rows that cannot be checked into the page on reproducing: ``python docs/unchecked_rows.py``.

``tests/docs/test_reproducing.py`` compares.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from cwb.reports.formats import escape_markdown as escape
from cwb.studies.reproduce import load_paper, papers, unchecked_rows

PAGE = Path(__file__).parent / "reproducing.md"

#: Where the list stands in the page.
BEGIN, END = "<!-- list: written by python docs/unchecked_rows.py -->\n", "<!-- end of the list -->\n"


def lines() -> Iterator[str]:
    """The list: for each paper what is needed, and by how many rows of which tables."""
    for name in papers():
        paper = load_paper(name)
        missing = unchecked_rows(paper.row)
        if not missing:
            yield f"`{name}`: none of {len(paper.row)} rows.\n\n"
            continue
        yield f"`{name}`, {sum(map(len, missing.values()))} of {len(paper.row)} rows:\n\n"
        yield "| needs | rows | where |\n|---|---|---|\n"
        for needs, rows in missing.items():
            where = ", ".join(dict.fromkeys(row.table for row in rows))
            yield f"| {escape(needs)} | {len(rows)} | {where} |\n"
        yield "\n"


def fill_page(page: str) -> str:
    """Return the page with today's list."""
    before, rest = page.split(BEGIN)
    return before + BEGIN + "\n" + "".join(lines()) + END + rest.split(END)[1]


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__.partition("\n")[0]).parse_args()
    PAGE.write_text(fill_page(PAGE.read_text()))
