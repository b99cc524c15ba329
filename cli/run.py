"""``cwb run``: a schedule on real processes, with real data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..core.errors import CwbError, ExitStatus
from .options import (
    DURATION,
    OUTPUT_FILE,
    PATH,
    Command,
    json_flag,
    plugin_option,
    progress_on_stderr,
    quiet_flag,
)
from .streams import console, echo

if TYPE_CHECKING:
    from ..studies.execution import Execution


@click.command(cls=Command)
@click.argument("file", type=PATH)
@click.option("--repeat", type=click.IntRange(1), default=5, show_default=True, help="Measured repetitions.")
@click.option("--warmup", type=click.IntRange(0), default=1, show_default=True, help="Repetitions before them.")
@click.option(
    "--processes",
    type=click.Choice(("local", "mpi")),
    help="Processes that are started here, or those of mpirun.  [default: mpi if mpirun has started several]",
)
@click.option(
    "--dtype",
    type=click.Choice(("int64", "float32")),
    default="int64",
    show_default=True,
    help="Type of the elements; integers are compared exactly.",
)
@click.option("--size", metavar="SIZE", help="Size of the collective, by which all data is scaled, such as '1 MiB'.")
@click.option("--pieces", type=click.IntRange(1), help="Pieces per tree.  [default: as in cwb simulate]")
@click.option(
    "--emulate",
    is_flag=True,
    help="Emulate the network on this machine: a network namespace for each node, a shaped link for each link.",
)
@click.option("--scale", metavar="FACTOR", help="Factor of the rates of emulated links, such as 1/1000.  [default: 1]")
@json_flag("one JSON object on stdout")
@click.option("--output", "-o", type=OUTPUT_FILE, help="Write the JSON object to a file.")
@quiet_flag
@plugin_option
@click.option(
    "--time-limit",
    "time_limit_s",
    type=DURATION,
    metavar="DURATION",
    help="Stop after this time: 60 (seconds), '5 min'.",
)
def run(file: Path, as_json: bool, quiet: bool, **given: Any) -> int:
    """Execute the schedule in FILE with real data, and compare the result with the collective's definition.

    Every rank is a process, and so is every switch that stores data. Each sends, receives, copies and adds as the
    schedule says. The data is compared after every repetition, integers exactly.

    Without mpirun, processes are started on this machine. Their times are those of this machine; the predicted time
    is that of the network of the schedule.

    With --emulate, processes talk over links with the rates and latencies of the network; this takes root on Linux.
    The measured time is then compared with the predicted one, also with the bytes of TCP's headers.

    The file is not verified; 'cwb check' does that. If any data is wrong, the exit status is 5.

    \b
    cwb run schedule.json
    cwb run schedule.json --size "16 MiB" --repeat 20 --json
    cwb run schedule.json --emulate --scale 1/1000
    mpirun -n 16 cwb run schedule.json
    """
    from ..api.executions import run as execute
    from ..harness.execution.mpi import is_first_process

    first = is_first_process()
    try:
        with progress_on_stderr(quiet=quiet or not first) as progress:
            found = execute(file, progress=progress, **given if first else {**given, "output": None})
    except CwbError as error:
        if first:
            raise
        return int(error.exit_status)  # the first process reports what all have found
    if first and as_json:
        echo(json.dumps(found.to_json(), allow_nan=False))
    elif first:
        show(found)
    return int(ExitStatus.OK if found.ok else ExitStatus.VERIFICATION_FAILED)


def show(found: Execution) -> None:
    """Print the result as a table, and what is wrong below it."""
    from rich.table import Table

    from ..core.units import SIZES, TIMES, amount

    told = found.to_json()
    where = "MPI" if told["processes"] == "mpi" else told["processes"]
    size = amount(told["size_bytes"], SIZES)
    title = f"{told['collective']} of {size} on {len(found.names)} {where} processes: {told['instance']}"
    table = Table(show_header=False, title=title, title_justify="left")
    table.add_column()
    table.add_column(justify="right")
    low, high = told["interval_s"]
    table.add_row("messages", f"{found.messages:,}")
    table.add_row("sent", amount(found.sent_bytes, SIZES))
    table.add_row(f"median of {told['repeat']}", amount(found.median_s, TIMES))
    if told["confidence"]:
        table.add_row(f"{told['confidence']:.1%} interval", f"{amount(low, TIMES)} to {amount(high, TIMES)}")
    time = told["predicted_s"]
    table.add_row("predicted on its network", f"n/a: {told['predicted_by']}" if time is None else amount(time, TIMES))
    if told["ratio"] is not None:
        table.add_row("measured / predicted", f"{told['ratio']:.3f}")
        table.add_row("predicted with headers of TCP", amount(told["predicted_with_headers_s"], TIMES))
        table.add_row("measured / predicted with headers", f"{told['ratio_with_headers']:.3f}")
    exact = "equal to the definition" if told["dtype"] == "int64" else "within the tolerance"
    table.add_row("result", exact if found.ok else "WRONG")
    printed = console()
    printed.print(table)
    for line in found.wrong:
        printed.print(line, soft_wrap=True)
