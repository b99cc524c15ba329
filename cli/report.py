"""``cwb report``: everything that records say, as one page."""

from __future__ import annotations

from pathlib import Path

import click

from ..core.errors import InputError
from ..core.files import write_whole
from .options import OUTPUT_FILE, PATH
from .streams import echo
from .table import RECORDS


@click.command()
@click.argument("records", nargs=-1, type=PATH)
@click.option(
    "--output",
    "-o",
    type=OUTPUT_FILE,
    default=Path("report.html"),
    show_default=True,
    help="Write to this .html file.",
)
@click.option("--title", default="cwb report", show_default=True, help="Heading of the page.")
def report(records: tuple[Path, ...], output: Path, title: str) -> None:
    """Make a page of RECORDS: JSONL files, or folders of them (./results).

    The page has plots, every table that fits the records, every failure with its reason, and the machines and
    versions. It is self-contained: it needs no network connection and no other file.

    \b
    cwb report results/ -o report.html
    """
    from ..reports.records import load_records
    from ..reports.report import report as make

    if output.suffix.lower() not in (".html", ".htm"):
        raise InputError("a report is a page; expected a name that ends in .html", source=str(output))
    write_whole(output, make(load_records(records or RECORDS), title).encode())
    echo(str(output))
