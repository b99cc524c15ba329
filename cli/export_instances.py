"""``cwb export-instances``: the models that methods pass to their solvers, as files."""

from __future__ import annotations

from pathlib import Path

import click

from ..core.errors import ExitStatus
from . import completion
from .options import Command, quiet_flag, working_on_stderr
from .streams import echo


@click.command("export-instances", cls=Command)
@click.argument("suite", default="library", shell_complete=completion.complete_names(completion.suites, files=True))
@click.option(
    "--output",
    "-o",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("library"),
    show_default=True,
    help="Folder for the files and index.json.",
)
@quiet_flag
def export_instances(suite: str, output: Path, quiet: bool) -> int:
    """Write the models of a SUITE's runs as MPS and LP files, for developers of solvers.

    Each model is written as it is passed to the solver, with its size, checksums, best known objective and bound in
    index.json. Equal models are written once.

    \b
    cwb export-instances -o library/
    cwb export-instances my-suite.toml -o library/
    """
    from ..studies.exports import export_instances as export

    with working_on_stderr(quiet=quiet) as progress:
        runs, models, failures = export(suite, output=output, progress=progress)
    for failure in failures:
        echo(f"not exported: {failure}", err=True)
    echo(f"{len(models)} models of {runs} runs: {output}")
    return ExitStatus.OK if models else ExitStatus.FAILURE
