"""``cwb export msccl``, ``cwb import msccl``, and ``cwb check`` of MSCCL files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..core.errors import ExitStatus, InputError, located
from .options import OUTPUT_FILE, PATH
from .programs import busiest_link, network_of_spec, read_flow, show_checked, size_range, unlinked
from .streams import echo

if TYPE_CHECKING:
    from ..core.topology import Topology
    from ..exchange.msccl.check import Checked
    from ..exchange.msccl.dialects import Dialect


#: Names of the dialects and placements, as :mod:`cwb.exchange.msccl` has them.
DIALECTS = ("msccl", "msccl-executor", "rccl")
PLACEMENTS = ("out", "in", "both")
PROTOCOLS = ("Simple", "LL", "LL128")


@click.command("msccl")
@click.argument("schedule", type=PATH, metavar="SCHEDULE")
@click.option("--output", "-o", required=True, type=OUTPUT_FILE, metavar="XML", help="Where the algorithm is written.")
@click.option("--dialect", type=click.Choice(DIALECTS), default="msccl", show_default=True, help="The runtime.")
@click.option("--proto", type=click.Choice(PROTOCOLS), default="Simple", show_default=True)
@click.option(
    "--instances",
    type=click.IntRange(1, 128),
    default=1,
    show_default=True,
    help="Copies that each carry a part, on channels of their own.",
)
@click.option(
    "--placement",
    type=click.Choice(PLACEMENTS),
    default="out",
    show_default=True,
    help="For calls whose output is other memory than the input, the same, or either.",
)
@click.option("--min-bytes", metavar="SIZE", default="0 B", show_default=True, help="First size that it is for.")
@click.option("--max-bytes", metavar="SIZE", help="Last size that it is for.  [default: 1 GiB, or the schedule's]")
@click.option("--fused/--no-fused", default=None, help="Steps that do two things at once.  [default: the runtime's]")
@click.option("--name", help="Name of the algorithm; by default the file's.")
def export_msccl(
    schedule: Path,
    output: Path,
    dialect: str,
    proto: str,
    instances: int,
    placement: str,
    min_bytes: str,
    max_bytes: str | None,
    fused: bool | None,
    name: str | None,
) -> None:
    """Write the schedule in SCHEDULE as an MSCCL algorithm (XML).

    \b
    cwb export msccl s.json -o a.xml
    cwb export msccl s.json -o a.xml --dialect rccl --placement both --instances 2

    The schedule is verified first, and the program is run with symbolic data before it is written. A schedule that
    exceeds a limit of the runtime is rejected with that limit.
    """
    from ..core.files import write_whole
    from ..exchange.msccl.dialects import dialect_of
    from ..exchange.msccl.lower import Target, lower
    from ..exchange.msccl.write import xml_text

    flow = read_flow(schedule)
    low, high = size_range(min_bytes, max_bytes, flow)
    target = Target(dialect_of(dialect), name or output.stem, proto, instances, placement, low, high, fused)
    with located(source=str(schedule)):
        found = lower(flow, target)
    write_whole(output, "".join(xml_text(found)).encode())
    blocks = max(len(gpu.blocks) for gpu in found.gpus)
    told = f"{found.coll} of {found.ngpus} GPUs, {found.nchunksperloop:,} chunks, {found.steps:,} steps"
    echo(f"{output}: {told}, {found.nchannels} channels, at most {blocks} thread blocks of a GPU", err=True)


@click.command("msccl")
@click.argument("file", type=PATH, metavar="XML")
@click.option("--topology", required=True, metavar="SPEC", help="The network; GPU i is its rank i.")
@click.option("--size", metavar="SIZE", default="1 GiB", show_default=True, help="Full buffer of the collective.")
@click.option("--name", help="Name of the instance; by default the file's.")
@click.option("--output", "-o", required=True, type=OUTPUT_FILE, metavar="JSON", help="Where the schedule is written.")
def import_msccl(file: Path, topology: str, size: str, name: str | None, output: Path) -> None:
    """Import an MSCCL algorithm (XML) of any origin as a schedule in steps.

    \b
    cwb import msccl a.xml --topology "dgx_a100()" -o s.json

    It is run with symbolic data, and the schedule is verified before it is written; then it can be simulated, drawn and
    compared. SPEC is a file, the name of a shipped instance or an expression such as "torus(4,4)".
    """
    from ..core.units import UnitKind, parse
    from ..exchange.msccl.lift import lift
    from ..exchange.msccl.read import read_algorithm
    from ..schedules.files import write_schedule
    from ..schedules.verify import verify

    algorithm = read_algorithm(file)
    network = network_of_spec(topology)
    with located(source="--size"):
        size_bytes = parse(size, UnitKind.SIZE, allow_zero=False)
    with located(source=str(file)):
        instance, schedule = lift(algorithm, network, size_bytes, name or file.stem)
        report = verify(instance, schedule)
        if not report.ok:
            raise InputError(f"cannot be expressed as a schedule in steps: {report.violations[0]}")
    write_schedule(output, instance, schedule, extra={"source": f"{file.name}, an MSCCL algorithm"})
    echo(f"{output}: {algorithm.coll}, {len(schedule.sends):,} sends in {schedule.steps:,} steps", err=True)


def check_msccl(path: Path, dialect: str | None, topology: str | None, *, as_json: bool) -> int:
    """Check an MSCCL file, or all of a folder, and show what is found; the exit status."""
    from ..exchange.msccl.check import check_file, ranges
    from ..exchange.msccl.dialects import dialect_of

    dialects = [dialect_of(name) for name in (DIALECTS if dialect is None else (dialect,))]
    network = None if topology is None else network_of_spec(topology)
    files = sorted(path.glob("*.xml")) if path.is_dir() else [path]
    if not files:
        raise InputError("has no file that ends in .xml", source=str(path))
    checked = [check_file(file, dialects) for file in files]
    gaps = [line for one in dialects for line in ranges([c for c in checked if one.name in c.runs_on], one)]
    wrong = False
    found: list[dict[str, Any]] = []
    for one in checked:
        problems = one.problems + list(unlinked(one.algorithm, network))
        wrong = wrong or bool(problems)
        found.append(_told(one, network, problems))
    if as_json:
        echo(json.dumps({"files": found, "ranges": gaps}, allow_nan=False))
    else:
        _show(found, gaps if path.is_dir() else [], dialects)
    return int(ExitStatus.VERIFICATION_FAILED if wrong else ExitStatus.OK)


def _told(checked: Checked, network: Topology | None, problems: list[str]) -> dict[str, Any]:
    """What is found in a file, as plain data."""
    algorithm = checked.algorithm
    data: dict[str, Any] = {
        "file": str(checked.path),
        "collective": algorithm.coll,
        "gpus": algorithm.ngpus,
        "chunks": algorithm.nchunksperloop,
        "steps": algorithm.steps,
        "root": checked.root,
        "verified": not problems,
        "runs_on": list(checked.runs_on),
        "placements": list(checked.runs),
        "violations": problems,
        "notes": checked.notes,
        "transfers": [[*pair, count] for pair, count in sorted(algorithm.transfers.items())],
        "busiest_link": None,
    }
    if network is not None and len(network.ranks) == algorithm.ngpus:
        data["busiest_link"] = busiest_link(algorithm, algorithm.nchunksperloop, network)
    return data


def _show(found: list[dict[str, Any]], gaps: list[str], dialects: list[Dialect]) -> None:
    """Print what is found, a few lines a file."""
    for data in found:
        placed = " and ".join({"in": "in place", "out": "out of place"}[name] for name in data["placements"])
        runs = "" if len(dialects) == 1 else f"; runs on {', '.join(data['runs_on'])}"
        show_checked(data, f"{data['steps']:,} steps", placed, runs)
    for line in gaps:
        echo(line)
