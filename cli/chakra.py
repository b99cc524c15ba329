"""``cwb export chakra``, and ``cwb check`` of folders of Chakra execution traces."""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..core.errors import ExitStatus, InputError, located
from ..core.topology import Topology
from .folders import check_new, new_folder
from .options import OUTPUT_FILE, PATH
from .programs import network_of_spec, read_flow, slowest, unlinked
from .streams import echo

if TYPE_CHECKING:
    from ..exchange.chakra.trace import Trace
    from ..exchange.msccl.flow import Flow


@click.command("chakra")
@click.argument("schedule", type=PATH, metavar="SCHEDULE")
@click.option("--output", "-o", required=True, type=PATH, metavar="FOLDER", help="Where the files are written.")
@click.option("--name", metavar="PREFIX", help="Files are PREFIX.RANK.et; by default the folder's name.")
def export_chakra(schedule: Path, output: Path, name: str | None) -> None:
    """Write the schedule in SCHEDULE as Chakra execution traces, one for each rank, for ASTRA-sim.

    \b
    cwb export chakra s.json -o traces/
    cwb check traces/ --topology "torus(4,4)"

    The schedule is verified first, and the trace is run before it is written. Needs protobuf, cwb[chakra].
    """
    from ..core.files import write_whole
    from ..exchange.chakra.files import file_of

    prefix = _prefix(output, name)
    flow, trace = _traced(schedule)
    names = [f"{prefix}.{rank}.et" for rank in range(trace.ngpus)]
    _make_folder(output, set(names))
    for rank, file in enumerate(names):
        write_whole(output / file, file_of(trace, rank))
    _tell(output, flow, trace)


@click.command("astra")
@click.argument("schedule", type=PATH, metavar="SCHEDULE")
@click.option("--output", "-o", required=True, type=PATH, metavar="FOLDER", help="A new folder.")
@click.option("--name", metavar="PREFIX", help="Traces are PREFIX.RANK.et; by default the folder's name.")
def export_astra(schedule: Path, output: Path, name: str | None) -> None:
    """Write the schedule in SCHEDULE as all that ASTRA-sim needs to run it: traces, workload, network, system, memory.

    \b
    cwb export astra s.json -o run/
    cwb check run/traces --topology "torus(4,4)"

    The network has to be one of rings, switches and fully connected dimensions. The schedule is verified first, and the
    trace is run before it is written. Needs protobuf, cwb[chakra].
    """
    from ..exchange.astra_files import COLLECTIVES, MEMORY, dimensions_of, network_text, system_text
    from ..exchange.chakra.files import file_of, workload_of
    from ..schedules.files import read_schedule

    check_new(output)
    prefix = _prefix(output, name)
    flow, trace = _traced(schedule)
    network = read_schedule(schedule).instance.network
    with located(source=str(schedule)):
        if flow.kind is None or not isinstance(network, Topology) or len(network.ranks) != flow.ranks:
            raise InputError("expected one collective of all ranks", place="instance.collective")
        texts = {
            "network.yml": network_text(dimensions_of(network)),
            "system.json": system_text(flow.kind, f"traces/{prefix}"),
            "memory.json": MEMORY,
        }
    size = ceil(flow.grains * flow.grain_bytes)
    with new_folder(output) as made:
        for file, text in texts.items():
            (made / file).write_text(text, encoding="utf-8")
        for folder in ("traces", "workload"):
            (made / folder).mkdir()
        for rank in range(trace.ngpus):
            (made / "traces" / f"{prefix}.{rank}.et").write_bytes(file_of(trace, rank))
            content = workload_of(flow.kind.value, COLLECTIVES[flow.kind][1], size)
            (made / "workload" / f"{prefix}.{rank}.et").write_bytes(content)
    _tell(output, flow, trace)


@click.command("chakra")
@click.argument("folder", type=PATH, metavar="FOLDER")
@click.option("--topology", required=True, metavar="SPEC", help="The network, with the trace's number of ranks.")
@click.option(
    "--collective", required=True, metavar="NAME", help="What the trace does; point_to_point is messages alone."
)
@click.option("--size", metavar="SIZE", help="Full buffer of the collective.  [default: as the messages say]")
@click.option("--name", help="Name of the instance; by default the folder's.")
@click.option("--output", "-o", required=True, type=OUTPUT_FILE, metavar="JSON", help="Where the schedule is written.")
def import_chakra(
    folder: Path, topology: str, collective: str, size: str | None, name: str | None, output: Path
) -> None:
    """Import the Chakra execution traces in FOLDER, one for each rank, as a schedule in steps.

    \b
    cwb import chakra traces/ --topology "torus(4,4)" --collective all_reduce -o s.json

    Which data a message carries follows from what it waits for, and the schedule is verified before it is written. Nodes
    that are whole collectives contain no schedule, and are rejected. Needs protobuf, cwb[chakra].
    """
    from ..core.collective import CollectiveKind
    from ..core.text import one_of
    from ..core.units import UnitKind, parse
    from ..exchange.chakra.files import read_trace
    from ..exchange.chakra.lift import lift_trace
    from ..schedules.files import write_schedule

    kinds = [kind.value for kind in CollectiveKind]
    if collective not in kinds:
        raise InputError(f"{collective!r} is unknown{one_of(collective, kinds)}", source="--collective")
    with located(source="--size"):
        size_bytes = None if size is None else parse(size, UnitKind.SIZE, allow_zero=False)
    trace, network = read_trace(folder), network_of_spec(topology)
    with located(source=str(folder)):
        found = lift_trace(trace, network, CollectiveKind(collective), size_bytes, name or folder.resolve().name)
    instance, schedule = found
    write_schedule(output, instance, schedule, extra={"source": f"{folder.name}, Chakra execution traces"})
    echo(f"{output}: {collective}, {len(schedule.sends):,} sends in {schedule.steps:,} steps", err=True)


def _prefix(output: Path, name: str | None) -> str:
    """How the names of the files begin."""
    prefix = name or output.resolve().name
    if not prefix or Path(prefix).name != prefix:
        raise InputError(f"{prefix!r} is no name of a file", source="--name")
    return prefix


def _traced(schedule: Path) -> tuple[Flow, Trace]:
    """A schedule as a trace, which has been run."""
    from ..exchange.chakra.replay import problems_of
    from ..exchange.chakra.schema import messages
    from ..exchange.chakra.trace import trace_of

    messages()
    flow = read_flow(schedule)
    with located(source=str(schedule)):
        trace = trace_of(flow)
        for problem in problems_of(trace)[:1]:
            raise InputError(f"no order of its sends runs: {problem}", place="sends")
    return flow, trace


def _tell(output: Path, flow: Flow, trace: Trace) -> None:
    """Print what was written."""
    sends, moved = _count(trace)
    echo(f"{output}: {trace.ngpus:,} ranks, {sends:,} messages, {moved:,} B", err=True)
    if any((piece.grains * flow.grain_bytes).denominator != 1 for piece in flow.chunks):
        echo("sizes of messages are rounded up to whole bytes", err=True)


def _make_folder(folder: Path, names: set[str]) -> None:
    """Make the folder, unless it is there and has no traces but those that are replaced."""
    with located(source=str(folder)):
        try:
            folder.mkdir(exist_ok=True)
            others = sorted(path.name for path in folder.glob("*.et") if path.name not in names)
        except FileNotFoundError:
            raise InputError("its folder does not exist") from None
        except (OSError, ValueError) as error:
            raise InputError((getattr(error, "strerror", None) or "cannot be made").lower()) from None
        if others:
            raise InputError(f"has {others[0]} of another trace; expected an empty folder")


def _count(trace: Trace) -> tuple[int, int]:
    """Messages, and bytes of all."""
    from ..exchange.chakra.schema import SEND

    sends = sum(node.type == SEND for nodes in trace.ranks for node in nodes)
    return sends, sum(trace.transfers.values())


def check_chakra(folder: Path, topology: str | None, *, as_json: bool) -> int:
    """Run the trace in a folder, and show what is found; the exit status."""
    from ..exchange.chakra.files import read_trace
    from ..exchange.chakra.replay import problems_of

    network = None if topology is None else network_of_spec(topology)
    trace = read_trace(folder)
    problems = [*problems_of(trace), *unlinked(trace, network)]
    sends, moved = _count(trace)
    data: dict[str, Any] = {
        "folder": str(folder),
        "ranks": trace.ngpus,
        "nodes": sum(map(len, trace.ranks)),
        "messages": sends,
        "bytes": moved,
        "verified": not problems,
        "violations": problems,
        "transfers": [[*pair, size] for pair, size in sorted(trace.transfers.items())],
        "busiest_link": None if network is None or problems else _busiest(trace, network),
    }
    if as_json:
        echo(json.dumps(data, allow_nan=False))
    else:
        for line in _lines(data):
            echo(line)
    return int(ExitStatus.VERIFICATION_FAILED if problems else ExitStatus.OK)


def _busiest(trace: Trace, network: Topology) -> dict[str, Any] | None:
    """The link that takes longest."""
    found = slowest(trace, network)
    if found is None:
        return None
    link, load, rate = found
    return {"source": link.source, "target": link.target, "bytes": float(load), "seconds": float(1 / rate)}


def _lines(data: dict[str, Any]) -> Iterator[str]:
    """What is found, for people."""
    yield from data["violations"]
    what = f"{data['ranks']:,} ranks, {data['nodes']:,} nodes, {data['messages']:,} messages, {data['bytes']:,} B"
    yield f"{data['folder']}: {'WRONG' if data['violations'] else 'right'}, {what}"
    if (busiest := data["busiest_link"]) is not None:
        link = f"{busiest['source']} -> {busiest['target']}"
        yield f"busiest link: {link} carries {busiest['bytes']:,.9g} B, which takes {busiest['seconds']:.9g} s"
