"""The progress of a comparison on stderr: bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..core.budget import Progress, silent
from .streams import console, echo

if TYPE_CHECKING:
    from ..harness.suite import Tally

Watch = Callable[["Tally"], None]


@contextmanager
def comparison_on_stderr(*, quiet: bool) -> Iterator[tuple[Progress, Watch]]:
    """A display of a line for each record, and what shows where the comparison is."""
    if quiet:
        yield silent, lambda _: None
    elif sys.stderr.isatty():
        with _on_terminal() as shown:
            yield shown
    else:
        yield _plain_lines()


def _plain_lines() -> tuple[Progress, Watch]:
    """Lines with the tally at their end, since there is no other place for it."""
    latest: list[Tally] = []

    def watch(tally: Tally) -> None:
        latest[:] = [tally]

    def progress(line: str) -> None:
        echo(f"{line} [{told(latest[0])}]" if latest else line, err=True)

    return progress, watch


@contextmanager
def _on_terminal() -> Iterator[tuple[Progress, Watch]]:
    """Show a bar under the lines."""
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

        def watch(tally: Tally) -> None:
            bars.update(bar, total=tally.total, completed=tally.done + tally.others, description=told(tally))

        yield printed.print, watch


def told(tally: Tally) -> str:
    """Return what is at work, what has failed, and how long the rest may take."""
    parts = [f"{tally.running} running"]
    if tally.failed:
        parts.append(f"{tally.failed} failed")
    if tally.others:
        parts.append(f"{tally.others} done by others")
    if tally.seconds_left is not None:
        parts.append(f"about {duration(tally.seconds_left)} left")
    return ", ".join(parts)


def duration(seconds: float) -> str:
    """Write a number of seconds as people do."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
