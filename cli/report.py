"""``cwb report``: all results of records on one page."""

from __future__ import annotations

from pathlib import Path

import click

from .options import OUTPUT_FILE, PATH, Command
from .streams import echo


@click.command(cls=Command)
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
    from ..studies.record_files import report as make

    echo(str(make(*records, output=output, title=title)))
