"""``cwb export mscclpp``, and ``cwb check`` of MSCCL++ execution plans."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..core.errors import ExitStatus, located
from .options import OUTPUT_FILE, PATH
from .programs import busiest_link, network_of_spec, read_flow, show_checked, size_range, unlinked
from .streams import echo

if TYPE_CHECKING:
    from ..exchange.mscclpp.check import Checked


@click.command("mscclpp")
@click.argument("schedule", type=PATH, metavar="SCHEDULE")
@click.option("--output", "-o", required=True, type=OUTPUT_FILE, metavar="JSON", help="Where the plan is written.")
@click.option("--protocol", type=click.Choice(["Simple", "LL"]), default="Simple", show_default=True)
@click.option(
    "--channel",
    type=click.Choice(["memory", "port"]),
    default="memory",
    show_default=True,
    help="Channels between GPUs: mapped memory, or a proxy that copies.",
)
@click.option("--box", type=click.IntRange(1), metavar="GPUS", help="GPUs of a box; channels between boxes are ports.")
@click.option(
    "--instances",
    type=click.IntRange(1, 128),
    default=1,
    show_default=True,
    help="Copies that each carry a part, on channels of their own.",
)
@click.option("--inplace", is_flag=True, help="For calls whose output is the same memory as the input.")
@click.option("--min-bytes", metavar="SIZE", default="0 B", show_default=True, help="First size that it is for.")
@click.option("--max-bytes", metavar="SIZE", help="Last size that it is for.  [default: 1 GiB, or the schedule's]")
@click.option("--name", help="Name of the plan; by default the file's.")
def export_mscclpp(
    schedule: Path,
    output: Path,
    protocol: str,
    channel: str,
    box: int | None,
    instances: int,
    inplace: bool,
    min_bytes: str,
    max_bytes: str | None,
    name: str | None,
) -> None:
    """Write the schedule in SCHEDULE as an MSCCL++ execution plan (JSON).

    \b
    cwb export mscclpp s.json -o plan.json
    cwb export mscclpp s.json -o plan.json --protocol LL --inplace

    The schedule is verified first, and the plan is run with symbolic data before it is written. A schedule that exceeds
    a limit of the executor is rejected with that limit.
    """
    from ..core.files import write_whole
    from ..exchange.mscclpp.lower import Target, lower
    from ..exchange.mscclpp.write import json_text

    flow = read_flow(schedule)
    low, high = size_range(min_bytes, max_bytes, flow)
    target = Target(name or output.stem, protocol, channel, box, instances, inplace, low, high)
    with located(source=str(schedule)):
        found = lower(flow, target)
    write_whole(output, "".join(json_text(found)).encode())
    blocks = max(len(gpu.blocks) for gpu in found.gpus)
    told = f"{found.collective} of {found.ngpus} GPUs, {found.steps:,} operations"
    echo(f"{output}: {told}, at most {blocks} thread blocks of a GPU", err=True)


def check_mscclpp(path: Path, topology: str | None, *, as_json: bool) -> int:
    """Check a plan, and show what is found; the exit status."""
    from ..exchange.mscclpp.check import check_file

    network = None if topology is None else network_of_spec(topology)
    checked = check_file(path)
    problems = checked.problems + list(unlinked(checked.plan, network))
    data = _told(checked, problems)
    if network is not None and len(network.ranks) == checked.plan.ngpus:
        data["busiest_link"] = busiest_link(checked.plan, data["chunks"], network)
    if as_json:
        echo(json.dumps(data, allow_nan=False))
    else:
        placed = "in place" if data["inplace"] else "out of place"
        show_checked(data, f"{data['operations']:,} operations", placed, ran=data["ran"])
    return int(ExitStatus.VERIFICATION_FAILED if problems else ExitStatus.OK)


def _told(checked: Checked, problems: list[str]) -> dict[str, Any]:
    """What is found in a plan, as plain data."""
    from ..exchange.mscclpp.run import meaning_of

    plan = checked.plan
    transfers = [[*pair, str(count)] for pair, count in sorted(plan.transfers.items())]
    return {
        "file": str(checked.path),
        "collective": plan.collective,
        "protocol": plan.protocol,
        "gpus": plan.ngpus,
        "chunks": meaning_of(plan).grains,
        "operations": plan.steps,
        "inplace": plan.inplace,
        "root": checked.root,
        "ran": checked.ran,
        "verified": not problems,
        "violations": problems,
        "notes": checked.notes,
        "transfers": transfers,
        "busiest_link": None,
    }
