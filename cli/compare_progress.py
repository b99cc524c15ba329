"""Progress of a comparison on stderr: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..core.budget import Progress, ignore
from .streams import console, echo

if TYPE_CHECKING:
    from ..harness.suite import ComparisonProgress

Watch = Callable[["ComparisonProgress"], None]


@contextmanager
def comparison_on_stderr(*, quiet: bool) -> Iterator[tuple[Progress, Watch]]:
    """Yield a function that prints a line per record and one that displays the tally."""
    if quiet:
        yield ignore, lambda _: None
    elif sys.stderr.isatty():
        with _on_terminal() as shown:
            yield shown
    else:
        yield _plain_lines()


def _plain_lines() -> tuple[Progress, Watch]:
    """Return functions that print plain lines, each ending with the tally."""
    latest: list[ComparisonProgress] = []

    def watch(tally: ComparisonProgress) -> None:
        latest[:] = [tally]

    def progress(line: str) -> None:
        echo(f"{line} [{progress_text(latest[0])}]" if latest else line, err=True)

    return progress, watch


@contextmanager
def _on_terminal() -> Iterator[tuple[Progress, Watch]]:
    """Yield functions that print lines above a progress bar."""
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    printed = console(err=True)
    with Bars(
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
        console=printed,
        transient=True,
    ) as bars:
        bar = bars.add_task("starting")

        def watch(tally: ComparisonProgress) -> None:
            bars.update(bar, total=tally.total, completed=tally.done + tally.others, description=progress_text(tally))

        yield printed.print, watch


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
