"""``cwb export-instances``: the models that methods hand to their solvers, as files."""

from __future__ import annotations

from pathlib import Path

import click

from ..core.errors import ExitStatus
from . import completion
from .options import libraries_on_stderr, progress_on_stderr
from .streams import echo


@click.command("export-instances")
@click.argument("suite", default="library", shell_complete=completion.of(completion.suites, files=True))
@click.option(
    "--output",
    "-o",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("library"),
    show_default=True,
    help="Folder for the files and index.json.",
)
@click.option("--quiet", "-q", is_flag=True, help="No progress on stderr.")
def export_instances(suite: str, output: Path, quiet: bool) -> int:
    """Write the models of a SUITE's runs as MPS and LP files, for developers of solvers.

    Each model is written as it is passed to the solver, with its size, checksums, best known objective and bound in
    index.json. Equal models are written once.

    \b
    cwb export-instances -o library/
    cwb export-instances my-suite.toml -o library/
    """
    from ..harness.library import export_instances as export
    from ..harness.plan import cells
    from ..harness.suite_file import load_suite

    plan = cells(load_suite(suite))
    with libraries_on_stderr(), progress_on_stderr(quiet=quiet) as progress:
        models, failures = export(plan, output, progress)
    for failure in failures:
        echo(f"not exported: {failure}", err=True)
    echo(f"{len(models)} models of {len(plan)} runs: {output}")
    return ExitStatus.OK if models else ExitStatus.FAILURE
