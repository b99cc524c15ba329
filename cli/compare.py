"""``cwb compare``: every run of a suite, one record each."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..core.errors import ExitStatus
from .options import progress_on_stderr

if TYPE_CHECKING:
    from ..bench.suite import Comparison

#: Statuses of runs that did not come about.
_NOT_RUN = ("error", "unsupported")

#: Reasons that the summary tells; the records have all.
_REASONS = 5


@click.command()
@click.argument("suite")
@click.option(
    "--output",
    "-o",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("results"),
    show_default=True,
    help="Folder whose records.jsonl the records are appended to.",
)
@click.option("--dry-run", is_flag=True, help="Print the plan and run nothing.")
@click.option("--quiet", "-q", is_flag=True, help="No progress on stderr.")
def compare(suite: str, output: Path, dry_run: bool, quiet: bool) -> int:
    """Run every cell of SUITE, a TOML file or the name of a shipped suite.

    A suite is a grid of instances, models, solvers, options and seeds. Every run leaves a record, also one that fails.

    \b
    cwb compare suites/paper-libra.toml -o results/
    cwb compare smoke --dry-run
    """
    from ..bench.plan import cells, load_suite
    from ..bench.suite import run_cells

    plan = cells(load_suite(suite))
    if dry_run:
        for cell in plan:
            click.echo(str(cell))
        click.echo(f"{len(plan)} runs planned", err=True)
        return ExitStatus.OK
    ledger = output / "records.jsonl"
    with progress_on_stderr(quiet=quiet) as progress:
        comparison = run_cells(plan, ledger, progress)
    click.echo(summary(comparison, ledger))
    return exit_status(comparison)


def summary(comparison: Comparison, ledger: Path) -> str:
    """Say how many runs ended how, why some failed, and where the records are."""
    records = comparison.records
    statuses = Counter(record.status for record in records)
    counts = ", ".join(f"{count} {status}" for status, count in statuses.most_common()) or "none"
    lines = [f"{len(records)} of {comparison.planned} runs: {counts}"]
    if wrong := sum(record.verified is False for record in records):
        lines.append(f"{wrong} answers failed verification")
    reasons = Counter(f"{record.status}: {record.message}" for record in records if record.status in _NOT_RUN)
    lines += [f"{count} x {reason}" for reason, count in reasons.most_common(_REASONS)]
    if len(reasons) > _REASONS:
        lines.append(f"and {len(reasons) - _REASONS} other reasons")
    if comparison.interrupted:
        lines.append("interrupted: the run at hand has no record")
    lines.append(f"records: {ledger}")
    return "\n".join(lines)


def exit_status(comparison: Comparison) -> int:
    """Give 0 unless nothing could be run: then the status that all runs share, or 1; 130 after Ctrl-C."""
    if comparison.interrupted:
        return 130
    records = comparison.records
    if any(record.status not in _NOT_RUN for record in records):
        return ExitStatus.OK
    shared = {record.exit_status for record in records}
    return shared.pop() if len(shared) == 1 else ExitStatus.FAILURE
