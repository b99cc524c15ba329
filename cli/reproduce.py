"""``cwb reproduce``: a paper's printed numbers beside ours."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import click

from ..core.errors import ExitStatus, InputError
from ..core.files import write_whole
from ..core.published import Finding, PublishedRow
from .options import OUTPUT_FILE, parse_duration, progress_on_stderr
from .signals import INTERRUPTED
from .streams import echo


@click.command()
@click.argument("paper", required=False)
@click.argument("table", required=False)
@click.option("--list", "listed", is_flag=True, help="Print the tables and their numbers of rows, and run nothing.")
@click.option(
    "--unchecked", is_flag=True, help="Print the rows that cannot be checked, with what each needs; run nothing."
)
@click.option("--quick", is_flag=True, help="Leave out rows that need a slow run.")
@click.option("--time-limit", help="Of each run, with unit: '60 s'; verdicts then depend on the machine.")
@click.option(
    "--format",
    "-f",
    "form",
    type=click.Choice(["text", "latex", "md", "csv", "json"]),
    help="By default that of the output's suffix, else text.",
)
@click.option("--output", "-o", type=OUTPUT_FILE, help="Write to this file (.tex, .md, .csv, .txt, .json).")
@click.option("--quiet", "-q", is_flag=True, help="No progress on stderr.")
def reproduce(
    paper: str | None,
    table: str | None,
    listed: bool,
    unchecked: bool,
    quick: bool,
    time_limit: str | None,
    form: str | None,
    output: Path | None,
    quiet: bool,
) -> int:
    """Compute the printed numbers of PAPER, or of one of its tables, and compare.

    Every row is reproduced, differs (with the reason), is predicted by a model of time where the paper measured, or
    cannot be checked here. The exit status is 1 if a row that should be reproduced is not: its run failed, or it
    differs without a known reason. Errors of predictions and of computing times do not affect the exit status. Ctrl-C ends with
    the rows computed so far. Without PAPER the papers are listed.

    \b
    cwb reproduce forestcoll --list
    cwb reproduce mtree --unchecked
    cwb reproduce te-ccl "Table 3" -f md
    """
    from ..harness.reproduce import chosen, counts, load_paper, papers
    from ..harness.reproduce import reproduce as compute

    if (paper is None or listed or unchecked) and (form is not None or output is not None):
        raise InputError("only for the rows of a paper", source="--format" if output is None else "--output")
    if paper is None:
        for name in papers():
            echo(f"{name}: {load_paper(name).title}")
        return ExitStatus.OK
    published = load_paper(paper)
    rows = chosen(published, table)
    if listed:
        for name in dict.fromkeys(row.table for row in rows):
            count = sum(row.table == name for row in rows)
            echo(f"{name}: {count} {'row' if count == 1 else 'rows'}")
        return ExitStatus.OK
    if unchecked:
        _print_unchecked(rows)
        return ExitStatus.OK
    form = _form(form, output)
    limit_s = parse_duration(time_limit, "--time-limit")
    stop = threading.Event()
    with progress_on_stderr(quiet=quiet) as progress:
        findings = compute(published, rows, quick=quick, time_limit_s=limit_s, progress=progress, stop=stop)
    if form == "json":
        text = json.dumps([_plain(finding) for finding in findings], indent=1, allow_nan=False) + "\n"
    else:
        from ..reports.formats import FORMATS
        from ..reports.reproduction import table as table_of

        text = FORMATS[form](table_of(published, findings))
    if output is None:
        echo(text, nl=False)
    else:
        write_whole(output, text.encode())
    echo(", ".join(f"{count} {name}" for name, count in counts(findings).items() if count), err=True)
    if stop.is_set():
        return INTERRUPTED
    return ExitStatus.OK if all(finding.explained for finding in findings) else ExitStatus.FAILURE


def _print_unchecked(rows: list[PublishedRow]) -> None:
    """Print what each row would need that cannot be checked, equal needs once."""
    from ..harness.reproduce import unchecked

    if not (by_need := unchecked(rows)):
        echo("every row is checked", err=True)
    for needs, found in by_need.items():
        echo(f"{needs}:")
        for row in found:
            echo(f"  {row.place}: {row.printed}{row.unit and ' ' + row.unit}")


def _form(form: str | None, output: Path | None) -> str:
    """Format that is asked for, by name or by the file's suffix."""
    from ..reports.formats import format_of

    if form is not None:
        return form
    if output is None:
        return "text"
    return "json" if output.suffix == ".json" else format_of(output)


def _plain(finding: Finding) -> dict[str, Any]:
    row = finding.row
    return {
        "table": row.table,
        "row": row.row,
        "column": row.column,
        "section": row.section,
        "page": row.page,
        "unit": row.unit,
        "printed": row.printed,
        "ours": finding.ours,
        "difference": finding.difference,
        "verdict": finding.agreement.value,
        "reason": finding.reason,
    }
