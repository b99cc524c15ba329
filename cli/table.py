"""``cwb table``: records to a table."""

from __future__ import annotations

from pathlib import Path

import click

from ..core.errors import InputError
from ..core.files import write_whole
from .streams import echo

RECORDS = (Path("results"),)


@click.command()
@click.argument("name", required=False)
@click.argument("records", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--format",
    "-f",
    "form",
    type=click.Choice(["latex", "md", "csv", "text", "html"]),
    help="By default that of the output's suffix, else latex.",
)
@click.option(
    "--output", "-o", type=click.Path(path_type=Path), help="Write to this file (.tex, .md, .csv, .txt, .html)."
)
@click.option("--standalone", is_flag=True, help="A LaTeX document that compiles by itself.")
def table(name: str | None, records: tuple[Path, ...], form: str | None, output: Path | None, standalone: bool) -> None:
    """Make the table NAME from RECORDS: JSONL files, or folders of them (./results).

    LaTeX needs the packages booktabs and siunitx. Of runs of the same cell the latest counts; runs without a number
    have a mark that is explained below the table. Without NAME the known tables are listed.

    \b
    cwb table libra-perf
    cwb table libra-perf results/ -o libra.md
    """
    from ..reports import latex
    from ..reports.formats import FORMATS, format_of
    from ..reports.records import load_records
    from ..reports.table import build
    from ..reports.tables import TABLES, get

    if name is None:
        raise InputError(f"which table? expected one of {', '.join(TABLES)}")
    spec = get(name)
    if form is None:
        form = "latex" if output is None else format_of(output)
    if standalone and form != "latex":
        raise InputError(f"a document is made of LaTeX only, not of {form}", source="--standalone")
    finished = build(spec, load_records(records or RECORDS))
    text = latex.standalone(finished) if standalone else FORMATS[form](finished)
    if output is None:
        echo(text, nl=False)
    else:
        write_whole(output, text.encode(errors="backslashreplace"))
