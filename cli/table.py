"""``cwb table``: records to a table."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..core.errors import InputError, located
from ..core.files import write_whole
from . import completion
from .options import OUTPUT_FILE, PATH
from .streams import echo

if TYPE_CHECKING:
    from ..core.record import RunRecord

RECORDS = (Path("results"),)


def selecting(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--where`` and ``--only``, which leave a part of the records."""
    where = click.option(
        "--where",
        multiple=True,
        metavar="CONDITION",
        help="Records alone with model=ring, instance=torus*, seconds.total<1.",
    )
    only = click.option(
        "--only",
        shell_complete=completion.of(completion.models, listed=True),
        metavar="MODELS",
        help="Records of these methods alone, such as 'ring,teccl*'.",
    )
    return where(only(command))


def selected(records: tuple[Path, ...], where: Sequence[str], only: str | None) -> list[RunRecord]:
    """Read records, and leave those that are asked for.

    Raises
    ------
    InputError
        If there are none, or a condition is wrong.
    """
    from ..reports.records import load_records
    from ..reports.select import Condition, chosen

    with located(source="--where"):
        conditions = [Condition.parse(text) for text in where]
    found = load_records(records or RECORDS)
    return chosen(found, conditions, split(only)) if conditions or only is not None else found


@click.command()
@click.argument("name", required=False, shell_complete=completion.of(completion.tables), metavar="NAME")
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
@click.option("--standalone", is_flag=True, help="A LaTeX document that compiles by itself.")
def table(
    name: str | None,
    records: tuple[Path, ...],
    where: tuple[str, ...],
    only: str | None,
    columns: str | None,
    pivot: str | None,
    form: str | None,
    output: Path | None,
    standalone: bool,
) -> None:
    """Make the table NAME from RECORDS: JSONL files, or folders of them (./results).

    LaTeX needs the packages booktabs, longtable and siunitx. If a run was repeated, its latest record counts. Runs
    without a number have a mark that is explained below the table. 'cwb list tables' lists all tables.

    \b
    cwb table libra-perf
    cwb table libra-perf results/ -o libra.md
    cwb table sizes results/ --only ring,forestcoll --pivot method×size --columns busbw
    """
    from ..reports import latex
    from ..reports.formats import FORMATS, format_of
    from ..reports.select import pivoted, with_columns
    from ..reports.table import build
    from ..reports.tables import TABLES, get

    if name is None:
        raise InputError(f"NAME: missing; expected one of {', '.join(TABLES)}")
    spec = get(name)
    if form is None:
        form = (
            format_of(output) if output is not None else "text" if sys.stdout.isatty() and not standalone else "latex"
        )
    if standalone and form != "latex":
        raise InputError(f"a document is made of LaTeX only, not of {form}", source="--standalone")
    finished = build(spec, selected(records, where, only))
    if columns is not None:
        with located(source="--columns"):
            finished = with_columns(finished, split(columns))
    if pivot is not None:
        with located(source="--pivot"):
            finished = pivoted(finished if columns else with_columns(finished, [finished.spec.columns[0].name]), pivot)
    text = latex.standalone(finished) if standalone else FORMATS[form](finished)
    if output is None:
        echo(text, nl=False)
    else:
        write_whole(output, text.encode(errors="backslashreplace"))


def split(text: str | None) -> list[str]:
    """Names between commas."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]
