"""``cwb warm``: compile in advance the code that methods compile at first use."""

from __future__ import annotations

import click

from ..core.errors import ExitStatus
from .streams import console, echo


@click.command()
@click.option("-j", "--jobs", type=click.IntRange(1, 64), help="Number of processes; by default the number of cores.")
def warm(jobs: int | None) -> int:
    """Compile the loops of all methods now instead of at their first use.

    Compiled code is kept in the user's cache folder, or in that of the variable CWB_CACHE_DIR, and recompiled when
    the source changes. Exits with 1 if it cannot be kept, or if a method fails.
    """
    from rich.progress import track

    from ..core.kernel import cache_folder
    from ..harness.compile_time import RUNS
    from ..harness.compile_time import warm as compiled

    folder = cache_folder()
    if folder is None:
        echo("cwb: no folder can be written to: compiled code is not kept (CWB_CACHE_DIR names another)", err=True)
        return ExitStatus.FAILURE
    status = ExitStatus.OK
    for name, _, message in track(compiled(jobs), "compiling", total=len(RUNS), console=console(err=True)):
        if message:
            echo(f"cwb: {name}: {message}", err=True)
            status = ExitStatus.FAILURE
    echo(f"compiled code is in {folder}")
    return status
