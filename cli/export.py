"""``cwb export`` and ``cwb export-instances``: schedules and models in the formats of other programs."""

from pathlib import Path
from typing import Any

import click

from ..core.errors import ExitStatus
from ..core.option_names import DIALECTS, PROTOCOLS
from . import completion
from .options import OUTPUT_FILE, PATH, Command, combine, folder_option, placement_option, quiet_flag, working_on_stderr
from .streams import echo

_schedule = click.argument("schedule", type=PATH, metavar="SCHEDULE")

_copies = click.option(
    "--instances",
    type=click.IntRange(1, 128),
    default=1,
    help="Parallel copies, each with its own channels and share of the data.",
)

_pieces = click.option("--pieces", type=click.IntRange(1), help="Pieces per tree.  [default: as in cwb simulate]")

_sizes = combine(
    click.option("--min-bytes", metavar="SIZE", default="0 B", help="Smallest size for which the file is used."),
    click.option(
        "--max-bytes",
        metavar="SIZE",
        help="Largest size for which the file is used.  [default: 1 GiB, or the schedule's]",
    ),
)


@click.group(no_args_is_help=False)
def export() -> None:
    """Write schedules and formats for other programs."""


@export.command(cls=Command)
@click.option("--of", type=click.Choice(["instance", "workload"]), default="instance")
@click.option("--output", "-o", type=OUTPUT_FILE, metavar="JSON", help="Write to this file.")
def schema(of: str, output: Path | None) -> None:
    """Print the JSON Schema of a file format, for editors and other programs.

    \b
    cwb export schema -o instance.schema.json
    """
    from ..studies.exports import export_schema

    text = export_schema(of, output=output)
    if output is None:
        echo(text, nl=False)


@export.command(cls=Command)
@_schedule
@click.option("--output", "-o", required=True, type=OUTPUT_FILE, metavar="XML", help="Output file.")
@click.option("--dialect", type=click.Choice(DIALECTS), default="msccl", help="Runtime that loads the file.")
@click.option("--proto", type=click.Choice(PROTOCOLS), default="Simple")
@_copies
@placement_option
@_sizes
@click.option("--fused/--no-fused", default=None, help="Allow fused steps.  [default: the runtime's]")
@click.option("--name", help="Name of the algorithm; by default the file's.")
def msccl(**options: Any) -> None:
    """Write the schedule in SCHEDULE as an MSCCL algorithm (XML).

    \b
    cwb export msccl s.json -o a.xml
    cwb export msccl s.json -o a.xml --dialect rccl --placement both --instances 2

    The schedule is verified first, and the program is executed symbolically before it is written. A schedule that
    exceeds a limit of the runtime is rejected with that limit.
    """
    _export("msccl", **options)


@export.command(cls=Command)
@_schedule
@click.option("--output", "-o", required=True, type=OUTPUT_FILE, metavar="JSON", help="Output file.")
@click.option("--protocol", type=click.Choice(["Simple", "LL"]), default="Simple")
@click.option(
    "--channel",
    type=click.Choice(["memory", "port"]),
    default="memory",
    help="Channels between GPUs: mapped memory, or a proxy that copies.",
)
@click.option(
    "--box",
    type=click.IntRange(1),
    metavar="GPUS",
    help="GPUs of a box; channels between boxes are ports.  [default: boxes by names, such as box0.gpu3]",
)
@_copies
@click.option("--inplace", is_flag=True, help="In-place, for calls whose input and output share memory.")
@_sizes
@click.option("--name", help="Name of the plan; by default the file's.")
def mscclpp(**options: Any) -> None:
    """Write the schedule in SCHEDULE as an MSCCL++ execution plan (JSON).

    \b
    cwb export mscclpp s.json -o plan.json
    cwb export mscclpp s.json -o plan.json --protocol LL --inplace

    The schedule is verified first, and the plan is executed symbolically before it is written. A schedule that exceeds
    a limit of the executor is rejected with that limit.
    """
    _export("mscclpp", **options)


@export.command(cls=Command)
@_schedule
@click.option("--output", "-o", required=True, type=OUTPUT_FILE, help="Output file.")
@click.option(
    "--reduce-rate",
    metavar="RATE",
    help="Rate at which a rank adds, such as '1 TB/s'; by default that of the instance, else additions take no time.",
)
@_pieces
def goal(**options: Any) -> None:
    """Write the schedule in SCHEDULE as GOAL text: sends, receives and their dependences.

    \b
    cwb export goal s.json -o s.goal

    The schedule is verified first.
    """
    _export("goal", **options)


@export.command(cls=Command)
@_schedule
@click.option("--output", "-o", required=True, type=OUTPUT_FILE, metavar="CM", help="Output file.")
@_pieces
def htsim(**options: Any) -> None:
    """Write the schedule in SCHEDULE as a connection matrix of Ultra Ethernet's htsim: messages with triggers.

    \b
    cwb export htsim s.json -o s.cm

    The schedule is verified first.
    """
    _export("htsim", **options)


@export.command(cls=Command)
@_schedule
@click.option("--output", "-o", required=True, type=PATH, metavar="FOLDER", help="Output folder.")
@click.option("--name", metavar="PREFIX", help="Files are PREFIX.RANK.et; by default the folder's name.")
@_pieces
def chakra(**options: Any) -> None:
    """Write the schedule in SCHEDULE as Chakra execution traces, one for each rank, for ASTRA-sim.

    \b
    cwb export chakra s.json -o traces/
    cwb check traces/ --topology "torus(4,4)"

    The schedule is verified first, and the trace is run before it is written. Needs protobuf, cwb[chakra].
    """
    _export("chakra", **options)


@export.command(cls=Command)
@_schedule
@click.option("--output", "-o", required=True, type=PATH, metavar="FOLDER", help="A new folder.")
@click.option("--name", metavar="PREFIX", help="Traces are PREFIX.RANK.et; by default the folder's name.")
@_pieces
def astra(**options: Any) -> None:
    """Write the schedule in SCHEDULE as input files of ASTRA-sim: traces, workload, network, system, memory.

    \b
    cwb export astra s.json -o run/
    cwb check run/traces --topology "torus(4,4)"

    The network has to be one of rings, switches and fully connected dimensions. The schedule is verified first, and the
    trace is run before it is written. Needs protobuf, cwb[chakra].
    """
    _export("astra", **options)


def _export(verb: str, /, output: Path, **options: Any) -> None:
    """Call the verb ``export_VERB``, and print a summary of the exported file."""
    from ..studies import exports

    result = getattr(exports, f"export_{verb}")(output=output, **options)
    echo(f"{output}: {result.about}", err=True)
    if result.rounded:
        echo("sizes of messages are rounded up to whole bytes", err=True)


@click.command("export-instances", cls=Command)
@click.argument("suite", default="library", shell_complete=completion.complete("suites", files=True))
@folder_option("library", "Folder for the files and index.json.")
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
