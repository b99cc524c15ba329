"""``cwb table``: tables of records."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from ..core.errors import InputError
from . import completion
from .options import OUTPUT_FILE, PATH, Command
from .streams import echo


def selecting(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--where`` and ``--only``, which select records."""
    where = click.option(
        "--where",
        multiple=True,
        metavar="CONDITION",
        help="Only records with model=ring, instance=torus*, seconds.total<1.",
    )
    only = click.option(
        "--only",
        shell_complete=completion.complete_names(completion.models, listed=True),
        metavar="MODELS",
        help="Only records of these methods, such as 'ring,teccl*'.",
    )
    return where(only(command))


@click.command(cls=Command)
@click.argument("name", required=False, shell_complete=completion.complete_names(completion.tables), metavar="NAME")
@click.argument("records", nargs=-1, type=PATH)
@selecting
@click.option("--columns", metavar="NAMES", help="Columns to show, in this order, such as 'method,size,busbw'.")
@click.option("--pivot", metavar="ROWS×COLUMNS", help="A column for each value of a label, such as method×size.")
@click.option(
    "--format",
    "-f",
    "form",
    type=click.Choice(["latex", "md", "csv", "text", "html"]),
    help="By default that of the output's suffix, else text on a terminal and latex elsewhere.",
)
@click.option("--output", "-o", type=OUTPUT_FILE, help="Write to this file (.tex, .md, .csv, .txt, .html).")
@click.option("--standalone", is_flag=True, help="Write a complete LaTeX document.")
def table(
    name: str | None,
    records: tuple[Path, ...],
    form: str | None,
    output: Path | None,
    standalone: bool,
    **given: Any,
) -> None:
    """Make the table NAME from RECORDS: JSONL files, or folders of them (./results).

    LaTeX needs the packages booktabs, longtable and siunitx. If a run was repeated, its latest record is used. Runs
    without a number have a mark that is explained below the table. 'cwb list tables' lists all tables.

    \b
    cwb table libra-perf
    cwb table libra-perf results/ -o libra.md
    cwb table sizes results/ --only ring,forestcoll --pivot method×size --columns busbw
    """
    from ..reports.tables import TABLES
    from ..studies.record_files import table as make

    if name is None:
        raise InputError(f"NAME: missing; expected one of {', '.join(TABLES)}")
    if form is None and output is None:
        form = "text" if sys.stdout.isatty() and not standalone else "latex"
    text = make(name, *records, format=form, output=output, standalone=standalone, **given)
    if output is None:
        echo(text, nl=False)
