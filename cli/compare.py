"""``cwb compare``: run every cell of a suite in a process of its own; one record each."""

from __future__ import annotations

import sys
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..core.budget import Progress, ignore
from ..core.errors import ExitStatus
from ..core.option_names import RETRIES
from . import completion
from . import options as common
from .streams import console, echo, notice

if TYPE_CHECKING:
    from ..harness.suite import ComparisonProgress, SuiteResult
    from ..harness.task import Task

_NOT_RUN = ("error", "unsupported")  #: Statuses of runs that could not be done.
_MAX_REASONS = 5  #: Reasons for failures that the summary lists; the records have all.


@click.command(cls=common.Command)
@click.argument("suite", required=False, shell_complete=completion.complete("suites", files=True))
@common.methods_option(
    "Instead of a suite: methods, such as ring,tacos,forestcoll.",
    "NAMES",
    shell_complete=completion.complete("models", is_list=True),
)
@click.option(
    "--instances",
    shell_complete=completion.complete("instances", files=True, is_list=True),
    metavar="NAMES",
    help="Instances of --models, such as 'torus(4,4),my.json'.",
)
@click.option(
    "--collectives",
    shell_complete=completion.complete("collectives", is_list=True),
    metavar="NAMES",
    help="Collectives for --instances.  [default: their own, else all_reduce]",
)
@click.option(
    "--sizes",
    metavar="SIZES",
    help="Sizes for --collectives: '1MiB,1GiB'; 1KiB..1GiB multiplies by 4, 1KiB..1GiB*2 by 2.",
)
@click.option(
    "--solvers",
    shell_complete=completion.complete("solvers", is_list=True),
    metavar="NAMES",
    help="Solvers for those --models that use one.  [default: highs]",
)
@common.options_of("the --models", "--option", text="Option of {}; the values of a list are tried in turn.")
@common.folder_option("results", "Folder of records.jsonl, to which records are appended.")
@click.option("--schedules", is_flag=True, help="Keep the schedules of verified answers, for 'cwb report' to play.")
@click.option("--dry-run", is_flag=True, help="Print the plan and the existing records, and run nothing.")
@click.option(
    "--retry",
    multiple=True,
    type=click.Choice(RETRIES),
    help="Rerun recorded runs: errors and rejected answers, runs that hit a limit, or all.",
)
@click.option(
    "--seeds", type=click.IntRange(1, 1000), help="Number of seeds of every run, from 0, instead of the suite's."
)
@click.option(
    "--jobs",
    "-j",
    type=click.IntRange(1, 10_000),
    help="Total threads of all concurrent runs.  [default: the number of cores]",
)
@common.duration_option("time-limit", "Time limit of a run, instead of the suite's: 60, '60 s', '5 min'.")
@common.duration_option("grace", "Time after the limit at which a run is killed.", "10 s")
@click.option("--memory", metavar="SIZE", help="Largest resident memory of a run: '4 GiB'.")
@click.option(
    "--executor",
    default="local",
    metavar="WHERE",
    help="local, dask://HOST:PORT, slurm, slurm:NAME=VALUE,… or slurm-local.",
)
@common.quiet_flag
@common.network_edits
@common.plugin_option
def compare(
    suite: str | None,
    output: Path,
    schedules: bool,
    dry_run: bool,
    retry: tuple[str, ...],
    seeds: int | None,
    jobs: int | None,
    time_limit_s: float | None,
    grace_s: float,
    memory: str | None,
    executor: str,
    quiet: bool,
    edits: common.Edits,
    **options: Any,
) -> int:
    """Run every cell of SUITE, a TOML file or the name of a shipped suite, or of --models and --instances.

    A suite is a grid of instances, methods, solvers, options and seeds. Every run has a process of its own and leaves a
    record, even if it fails. Runs that have a record are not repeated: a comparison that was interrupted resumes when
    it is started again.

    \b
    cwb compare suites/paper-libra.toml -o results/
    cwb compare smoke --dry-run
    cwb compare --models ring,tacos,forestcoll --instances "torus(4,4),dgx1()" --sizes 1KiB..1GiB
    cwb compare scaling --retry limit --time-limit "10 min"
    """
    from ..harness.plan import cells
    from ..harness.suite import Settings, plan_of, run_cells
    from ..harness.suite_file import load_suite, with_seeds
    from ..studies.grid import GridOptions, limits_of, suite_of

    settings = Settings(limits_of(time_limit_s, grace_s, memory), retry, executor, jobs, schedules)
    grid = GridOptions(**options)
    with grid.locate_option_errors():
        spec = load_suite(suite) if suite is not None and not grid.given_options else suite_of(suite, grid, notice)
        plan, ledger = cells(with_seeds(spec, seeds)), output / "records.jsonl"
    plan = [replace(cell, edits=edits) for cell in plan] if edits else plan
    if dry_run:
        return _print_plan(*plan_of(plan, ledger, settings))
    with comparison_on_stderr(quiet=quiet) as (progress, watch):
        comparison = run_cells(plan, ledger, progress, settings, watch)
    echo(summary(comparison, ledger))
    return exit_status(comparison)


def _print_plan(everything: Sequence[Task], due: Sequence[Task]) -> int:
    """Print a line for each run, marked if recorded, wrong or unsupported; exit with 2 if any is wrong."""
    keys = {task.key for task in due}
    counts: Counter[str] = Counter()
    for task in everything:
        mark = "" if task.key in keys else "recorded"
        if mark:
            counts["recorded"] += 1
        elif task.record is not None:
            mark = f"{task.record.status}: {task.record.message}"
            counts["wrong" if task.record.status == "error" else task.record.status] += 1
        elif not task.facts["instance_sha256"]:
            mark = "not loaded"
        echo(f"{task.cell}  [{mark}]" if mark else str(task.cell))
    notes = "".join(f", {count} of them {what}" for what, count in sorted(counts.items()))
    echo(f"{len(everything)} run{'s' * (len(everything) != 1)} planned{notes}", err=True)
    return ExitStatus.BAD_INPUT if counts["wrong"] else ExitStatus.OK


def summary(comparison: SuiteResult, ledger: Path) -> str:
    """Return the number of runs by status, reasons for failures, and the path of the records."""
    records = comparison.records
    statuses = Counter(sorted(record.shown_status for record in records))
    counts = ", ".join(f"{count} {status}" for status, count in statuses.most_common()) or "none"
    lines = [f"{len(records)} of {comparison.planned} runs: {counts}"]
    if comparison.skipped:
        lines.append(f"{comparison.skipped} were recorded before")
    if comparison.others:
        lines.append(f"{comparison.others} were recorded by another comparison meanwhile")
    if comparison.healed:
        lines.append(f"broken lines of the ledger: {comparison.healed}, moved to {ledger.name}.broken")
    if wrong := sum(record.verified is False for record in records):
        lines.append(f"{wrong} answers failed verification")
    reasons = Counter(f"{record.status}: {record.message}" for record in records if record.status in _NOT_RUN)
    lines += [f"{count} x {reason}" for reason, count in reasons.most_common(_MAX_REASONS)]
    if len(reasons) > _MAX_REASONS:
        lines.append(f"and {len(reasons) - _MAX_REASONS} other reasons")
    if comparison.interrupted:
        total = len(records) + comparison.skipped + comparison.others
        lines.append(
            f"interrupted: {total} records are kept; runs in progress have none, and the same command makes them"
        )
    lines.append(f"records: {ledger}")
    return "\n".join(lines)


def exit_status(comparison: SuiteResult) -> int:
    """Return 0 if any run was possible, else the status that all runs share, or 1; 130 after Ctrl-C."""
    if comparison.interrupted:
        return 130
    records = comparison.records
    if not records or any(record.status not in _NOT_RUN for record in records):
        return ExitStatus.OK
    statuses = {record.exit_status for record in records}
    return statuses.pop() if len(statuses) == 1 else ExitStatus.FAILURE


Watch = Callable[["ComparisonProgress"], None]


@contextmanager
def comparison_on_stderr(*, quiet: bool) -> Iterator[tuple[Progress, Watch]]:
    """Yield two functions: one prints a line per record, the other displays the tally of runs.

    On a terminal, the tally is a bar below the lines; elsewhere, each line ends with it.
    """
    if quiet:
        yield ignore, lambda _: None
        return
    if not sys.stderr.isatty():
        latest: deque[ComparisonProgress] = deque(maxlen=1)
        yield lambda line: echo(f"{line} [{progress_text(latest[0])}]" if latest else line, err=True), latest.append
        return
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    terminal = console(err=True)
    columns = (TextColumn("{task.completed:.0f}/{task.total:.0f}"), BarColumn(), TimeElapsedColumn())
    with Bars(*columns, TextColumn("{task.description}"), console=terminal, transient=True) as bars:
        bar = bars.add_task("starting")

        def watch(tally: ComparisonProgress) -> None:
            bars.update(bar, total=tally.total, completed=tally.runs + tally.others, description=progress_text(tally))

        yield terminal.print, watch


def progress_text(tally: ComparisonProgress) -> str:
    """Return the numbers of runs in progress, failed and done elsewhere, and the estimated time left."""
    parts = [f"{tally.running} running"]
    if tally.failed:
        parts.append(f"{tally.failed} failed")
    if tally.others:
        parts.append(f"{tally.others} done by others")
    if tally.seconds_left is not None:
        parts.append(f"about {duration(tally.seconds_left)} left")
    return ", ".join(parts)


def duration(seconds: float) -> str:
    """Format a duration in seconds, minutes or hours."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
