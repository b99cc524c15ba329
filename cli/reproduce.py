"""``cwb reproduce``: a paper's printed numbers beside cwb's; ``cwb cite``: BibTeX entries."""

from pathlib import Path
from typing import Any

import click

from ..core.errors import ExitStatus, InputError
from ..core.paper_results import PublishedRow
from . import completion
from .options import OUTPUT_FILE, Command, duration_option, format_option, progress_on_stderr, quiet_flag
from .streams import INTERRUPTED, echo


@click.command(cls=Command)
@click.argument("paper", required=False)
@click.argument("table", required=False)
@click.option("--list", "list_only", is_flag=True, help="Print the tables and their numbers of rows, and run nothing.")
@click.option(
    "--unchecked", is_flag=True, help="Print the rows that cannot be checked, and the reason for each; run nothing."
)
@click.option("--quick", is_flag=True, help="Skip rows that need a slow run.")
@click.option(
    "--emulate", is_flag=True, help="Measure a figure's methods on an emulated network; once each with --quick."
)
@duration_option("time-limit", "Time limit of each run: '60 s'; verdicts then depend on the machine.")
@format_option("text", "latex", "md", "csv", "json", otherwise="text")
@click.option("--output", "-o", type=OUTPUT_FILE, help="Write to this file (.tex, .md, .csv, .txt, .json).")
@quiet_flag
def reproduce(
    paper: str | None,
    table: str | None,
    list_only: bool,
    unchecked: bool,
    form: str | None,
    output: Path | None,
    quiet: bool,
    **options: Any,
) -> int:
    """Compute the printed numbers of PAPER, or of one of its tables, and compare.

    Every row is reproduced, differs (with the reason), is predicted by a model of time where the paper measured, or
    cannot be checked here. The exit status is 1 if a row that should be reproduced is not: its run failed, or it
    differs without a known reason. Errors of predictions and of computing times do not affect the exit status. Ctrl-C
    ends with the rows computed so far. Without PAPER the papers are listed.

    With --emulate, processes send real data over links with the rates of the figure's network, scaled; this takes root
    on Linux. Measured times are printed beside predicted ones; the exit status is 1 if any data is wrong.

    \b
    cwb reproduce mtree --emulate -o measured.csv
    cwb reproduce forestcoll --list
    cwb reproduce mtree --unchecked
    cwb reproduce te-ccl "Table 3" -f md
    """
    from ..studies.reproduce import load_paper, papers, select_rows
    from ..studies.reproduce import reproduce as compute

    if (paper is None or list_only or unchecked) and (form is not None or output is not None):
        raise InputError("only for the rows of a paper", source="--format" if output is None else "--output")
    if paper is None:
        for name in papers():
            echo(f"{name}: {load_paper(name).title}")
        return ExitStatus.OK
    if list_only:
        rows = select_rows(load_paper(paper), table)
        for name in dict.fromkeys(row.table for row in rows):
            count = sum(row.table == name for row in rows)
            echo(f"{name}: {count} {'row' if count == 1 else 'rows'}")
        return ExitStatus.OK
    if unchecked:
        _print_unchecked(select_rows(load_paper(paper), table))
        return ExitStatus.OK
    with progress_on_stderr(quiet=quiet) as progress:
        comparison = compute(paper, table, **options, format=form, output=output, progress=progress)
    if output is None:
        echo(comparison.text(form or "text"), nl=False)
    echo(comparison.summary, err=True)
    if comparison.interrupted:
        return INTERRUPTED
    return ExitStatus.OK if comparison.is_explained else ExitStatus.FAILURE


def _print_unchecked(rows: list[PublishedRow]) -> None:
    """Print the requirements of rows that cannot be checked, equal ones once."""
    from ..studies.reproduce import unchecked_rows

    if not (by_need := unchecked_rows(rows)):
        echo("every row is checked", err=True)
    for needs, group in by_need.items():
        echo(f"{needs}:")
        for row in group:
            echo(f"  {row.place}: {row.printed}{row.unit and ' ' + row.unit}")


@click.command(cls=Command)
@click.argument("methods", nargs=-1, metavar="[METHOD]...", shell_complete=completion.complete("models"))
def cite(methods: tuple[str, ...]) -> None:
    """Print BibTeX entries of cwb and of the papers of each METHOD, by default of all methods.

    \b
    cwb cite forestcoll teccl-milp > references.bib
    """
    from ..studies.cite import cite as entries

    echo(entries(*methods), nl=False)
