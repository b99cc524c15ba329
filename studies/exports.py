"""Functions ``export_*``: schedules, models and formats as files of other programs.

The schedule of a file is verified first. ``output`` is a new file or folder, and ``pieces`` are those of each tree, by
default as in ``cwb simulate``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

from ..core.budget import Progress, ignore
from ..core.errors import InputError, locate_errors
from ..core.files import check_new, new_folder, write_whole
from ..core.option_names import PLACEMENTS, PROTOCOLS, check_name, verb
from ..core.timing import RankCosts
from ..core.topology import Topology
from ..core.trace import SimulationMode
from ..core.units import UnitKind, parse
from ..exchange.astra import COLLECTIVES, MEMORY, dimensions_of, network_text, system_text
from ..exchange.chakra.files import file_of, messages, workload_of
from ..exchange.chakra.trace import SEND, Trace, problems_of, trace_of
from ..exchange.msccl.dialects import dialect_of
from ..exchange.msccl.files import xml_text
from ..exchange.msccl.flow import Flow
from ..exchange.mscclpp.files import json_text
from ..exchange.simulators import connection_text, goal_text
from ..harness.plan import cells
from ..harness.suite_file import load_suite
from ..instances.schema import schema_text
from ..schedules.files import read_schedule
from .inputs import read_flow, size_range, whole


@dataclass(frozen=True, eq=False)
class ExportedFile:
    """A file or a folder for another program."""

    #: The MSCCL algorithm or MSCCL++ plan, which has been run with symbolic data, the Chakra trace, or the text.
    content: Any
    about: str
    rounded: bool = False  #: True if sizes of messages are rounded up to whole bytes.


@verb
def export_msccl(
    schedule: str | Path,
    *,
    output: str | Path | None = None,
    dialect: str = "msccl",
    proto: str = "Simple",
    instances: int = 1,
    placement: str = "out",
    min_bytes: str = "0 B",
    max_bytes: str | None = None,
    fused: bool | None = None,
    name: str | None = None,
) -> ExportedFile:
    """Convert a schedule into an MSCCL algorithm, as ``cwb export msccl`` does.

    Parameters
    ----------
    output, name : optional
        File for the algorithm, .xml, and its name; by default the file's.
    dialect, proto, placement : str
        The runtime, the protocol, and ``out``, ``in`` or ``both``.
    instances : int
        Parallel copies, each with a part of the data and its own channels.
    min_bytes, max_bytes : str
        Smallest and largest size; the largest is by default 1 GiB, or the schedule's if that is larger.
    fused : bool, optional
        True if steps may be fused; by default if the runtime supports it.
    """
    from ..exchange.msccl.lower import Target, lower

    check_name(proto, PROTOCOLS, "--proto")
    check_name(placement, PLACEMENTS, "--placement")
    copies, called = whole(instances, "instances", 1, 128), name or Path(output or schedule).stem
    flow = read_flow(Path(schedule))
    sizes = size_range(min_bytes, max_bytes, flow)
    target = Target(dialect_of(dialect), called, proto, copies, placement, *sizes, fused)
    with locate_errors(source=str(schedule)):
        algorithm = lower(flow, target)
    _write(output, xml_text(algorithm))
    blocks = max(len(gpu.blocks) for gpu in algorithm.gpus)
    size = f"{algorithm.coll} of {algorithm.ngpus} GPUs, {algorithm.nchunksperloop:,} chunks, {algorithm.steps:,} steps"
    resources = f"{algorithm.nchannels} channels, at most {blocks} thread blocks of a GPU{flow.left_out}"
    return ExportedFile(algorithm, f"{size}, {resources}")


@verb
def export_mscclpp(
    schedule: str | Path,
    *,
    output: str | Path | None = None,
    protocol: str = "Simple",
    channel: str = "memory",
    box: int | None = None,
    instances: int = 1,
    inplace: bool = False,
    min_bytes: str = "0 B",
    max_bytes: str | None = None,
    name: str | None = None,
) -> ExportedFile:
    """Convert a schedule into an MSCCL++ execution plan, as ``cwb export mscclpp`` does.

    Parameters
    ----------
    schedule, output, name, instances, min_bytes, max_bytes
        As in :func:`export_msccl`; the file is .json.
    protocol, channel : str
        ``Simple`` or ``LL``, and ``memory`` or ``port``.
    box, inplace : optional
        Number of GPUs of a box, by default by the names of the network's nodes: channels between boxes are ports. True
        for calls whose output is the input's memory.
    """
    from ..exchange.mscclpp.lower import Target, lower

    check_name(protocol, ("Simple", "LL"), "--protocol")
    check_name(channel, ("memory", "port"), "--channel")
    copies, called = whole(instances, "instances", 1, 128), name or Path(output or schedule).stem
    flow = read_flow(Path(schedule))
    target = Target(called, protocol, channel, box, copies, inplace, *size_range(min_bytes, max_bytes, flow))
    with locate_errors(source=str(schedule)):
        plan = lower(flow, target)
    _write(output, json_text(plan))
    blocks = max(len(gpu.blocks) for gpu in plan.gpus)
    size = f"{plan.collective} of {plan.ngpus} GPUs, {plan.steps:,} operations"
    kinds = " and ".join(sorted({one.type for gpu in plan.gpus for one in gpu.channels})) or "no"
    remark = "" if box or flow.boxes else "; names of nodes give no boxes: all GPUs are taken to be in one (see --box)"
    remark += flow.left_out
    return ExportedFile(plan, f"{size}, at most {blocks} thread blocks of a GPU, {kinds} channels{remark}")


@verb
def export_goal(
    schedule: str | Path, *, output: str | Path | None = None, reduce_rate: str | None = None, pieces: int | None = None
) -> ExportedFile:
    """Convert a schedule into GOAL text for LogGOPSim, as ``cwb export goal`` does.

    Parameters
    ----------
    output, reduce_rate : optional
        File for the text, and rate at which a rank adds, such as ``"1 TB/s"``; by default that of the instance, and
        adding takes no time if it has none.
    """
    rate = None if reduce_rate is None else parse(reduce_rate, UnitKind.RATE, allow_zero=False, source="--reduce-rate")
    flow = read_flow(Path(schedule), SimulationMode.CUT_THROUGH, pieces)
    costs = flow.costs or RankCosts()
    text = goal_text(flow, rate or costs.reduce_rate_Bps)
    _write(output, text)
    remark = "; rank_overhead is left out, a parameter of the simulator (o)" if costs.overhead_s else ""
    return ExportedFile(text, f"{flow.ranks:,} ranks, {len(flow.hops.chunk):,} messages{remark}{flow.left_out}")


@verb
def export_htsim(schedule: str | Path, *, output: str | Path | None = None, pieces: int | None = None) -> ExportedFile:
    """Convert a schedule into a connection matrix for Ultra Ethernet's htsim, as ``cwb export htsim`` does.

    Parameters
    ----------
    schedule, output, pieces
        As in :func:`export_goal`; the file is .cm.
    """
    flow = read_flow(Path(schedule), SimulationMode.CUT_THROUGH, pieces)
    trace = trace_of(flow)
    with locate_errors(source=str(schedule)):
        text = connection_text(trace)
    _write(output, text)
    return _exported_trace(flow, trace, text)


@verb
def export_chakra(
    schedule: str | Path, *, output: str | Path, name: str | None = None, pieces: int | None = None
) -> ExportedFile:
    """Write a schedule as Chakra execution traces, as ``cwb export chakra`` does.

    Parameters
    ----------
    output, name : str or Path
        Folder for the files of all ranks, ``NAME.RANK.et``, and NAME, by default the folder's name.
    """
    folder = Path(output)
    prefix = _prefix(folder, name)
    flow, trace = _trace_of(Path(schedule), pieces)
    names = [f"{prefix}.{rank}.et" for rank in range(trace.ngpus)]
    _make_folder(folder, set(names))
    for rank, file in enumerate(names):
        write_whole(folder / file, file_of(trace, rank))
    return _exported_trace(flow, trace)


@verb
def export_astra(
    schedule: str | Path, *, output: str | Path, name: str | None = None, pieces: int | None = None
) -> ExportedFile:
    """Write a schedule with all other inputs of an ASTRA-sim run, as ``cwb export astra`` does.

    Parameters
    ----------
    schedule : str or Path
        File of the schedule, on a network of rings, switches and fully connected dimensions.
    output, name, pieces : optional
        A new folder, and prefix of the traces and pieces of trees as in :func:`export_chakra`.
    """
    folder = Path(output)
    check_new(folder)
    prefix = _prefix(folder, name)
    flow, trace = _trace_of(Path(schedule), pieces)
    network = read_schedule(Path(schedule)).instance.network
    with locate_errors(source=str(schedule)):
        if flow.kind is None or not isinstance(network, Topology) or len(network.ranks) != flow.ranks:
            raise InputError("expected one collective of all ranks", place="instance.collective")
        texts = {
            "network.yml": network_text(dimensions_of(network)),
            "system.json": system_text(flow.kind, f"traces/{prefix}"),
            "memory.json": MEMORY,
        }
    size = ceil(flow.grains * flow.grain_bytes)
    with new_folder(folder) as target:
        for file, text in texts.items():
            (target / file).write_text(text, encoding="utf-8")
        for inner in ("traces", "workload"):
            (target / inner).mkdir()
        for rank in range(trace.ngpus):
            (target / "traces" / f"{prefix}.{rank}.et").write_bytes(file_of(trace, rank))
            content = workload_of(flow.kind.name, COLLECTIVES[flow.kind][1], size)
            (target / "workload" / f"{prefix}.{rank}.et").write_bytes(content)
    return _exported_trace(flow, trace)


@verb
def export_schema(of: str = "instance", *, output: str | Path | None = None) -> str:
    """Return the JSON Schema of a file format, as ``cwb export schema`` prints it.

    Parameters
    ----------
    of, output : optional
        Format, ``instance`` or ``workload``, and file for the schema.
    """
    text = schema_text(check_name(of, ("instance", "workload"), "--of"))
    _write(output, text)
    return text


@verb
def export_instances(
    suite: str | Path = "library", *, output: str | Path = "library", progress: Progress = ignore
) -> tuple[int, list[Any], list[str]]:
    """Write the models of a suite's runs as MPS and LP files, as ``cwb export-instances`` does.

    Parameters
    ----------
    suite, output : str or Path
        File or name of the suite, and folder for the files and index.json.

    Returns
    -------
    runs, models, failures : tuple
        Number of runs, the written models, and runs without a model with the reason.
    """
    from .model_library import export_models

    plan = cells(load_suite(suite))
    models, failures = export_models(plan, Path(output), progress)
    return len(plan), models, failures


def _write(output: str | Path | None, parts: Iterable[str]) -> None:
    if output is not None:
        write_whole(Path(output), "".join(parts).encode())


def _prefix(folder: Path, name: str | None) -> str:
    prefix = name or folder.resolve().name
    if not prefix or Path(prefix).name != prefix:
        raise InputError(f"{prefix!r} is not a valid file name", source="--name")
    return prefix


def _trace_of(schedule: Path, pieces: int | None) -> tuple[Flow, Trace]:
    messages()
    flow = read_flow(schedule, SimulationMode.CONGESTION_AWARE, pieces)
    with locate_errors(source=str(schedule)):
        trace = trace_of(flow)
        for problem in problems_of(trace)[:1]:
            raise InputError(f"no order of its sends runs: {problem}", place="sends")
    return flow, trace


def _exported_trace(flow: Flow, trace: Trace, text: str | None = None) -> ExportedFile:
    sends, total = messages_and_bytes(trace)
    rounded = any((piece.grains * flow.grain_bytes).denominator != 1 for piece in flow.chunks)
    size = f"{trace.ngpus:,} ranks, {sends:,} messages, {total:,} B"
    return ExportedFile(text or trace, size + flow.left_out, rounded)


def messages_and_bytes(trace: Trace) -> tuple[int, int]:
    """Return the number of messages of a trace and their total bytes."""
    sends = sum(node.type == SEND for nodes in trace.ranks for node in nodes)
    return sends, sum(trace.transfers.values())


def _make_folder(folder: Path, names: set[str]) -> None:
    """Make the folder; reject an existing one with traces that would not be replaced."""
    with locate_errors(source=str(folder)):
        try:
            folder.mkdir(exist_ok=True)
            others = sorted(path.name for path in folder.glob("*.et") if path.name not in names)
        except FileNotFoundError:
            raise InputError("its folder does not exist") from None
        except (OSError, ValueError) as error:
            raise InputError((getattr(error, "strerror", None) or "cannot be made").lower()) from None
        if others:
            raise InputError(f"has {others[0]} of another trace; expected an empty folder")
