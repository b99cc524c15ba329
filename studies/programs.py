"""Schedules for files of runtimes, and the networks that these files run on."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.budget import Budget, Progress, ignore
from ..core.errors import InputError, locate_errors
from ..core.limits import limited_by
from .inputs import Spec, load

if TYPE_CHECKING:
    from ..core.topology import Link, Topology
    from ..core.trace import SimulationMode
    from ..exchange.msccl.flow import Flow
    from ..exchange.msccl.links import Program


def read_flow(schedule: Path, mode: SimulationMode | None = None, pieces: int | None = None) -> Flow:
    """Read a schedule as the data flow between its GPUs; reject a wrong one.

    Parameters
    ----------
    mode : SimulationMode, optional
        Mode of a simulation that gives the order of messages; then trees are in pieces.
    """
    from ..core.trees import Forest
    from ..exchange.msccl.flow import flow_of
    from ..schedules.completion import completion_if_any
    from ..schedules.files import read_schedule
    from ..schedules.verify import verify

    read = read_schedule(schedule)
    with locate_errors(source=str(schedule)):
        report = verify(read.instance, read.answer)
        if not report.ok:
            raise InputError(f"the schedule is invalid: {report.violations[0]}; see cwb check")
        if mode is None:
            return flow_of(read.instance, read.answer)
        if isinstance(read.answer, Forest):
            pieces = completion_if_any(read.instance, read.answer, pieces or read.pieces).pieces
        elif pieces is not None:
            raise InputError("only trees are divided into pieces", source="--pieces")
        return flow_of(read.instance, read.answer, mode, pieces or 1)


def size_range(min_bytes: str, max_bytes: str | None, flow: Flow) -> tuple[int, int]:
    """Return the smallest and largest size that a file is for."""
    from ..core.units import UnitKind, parse

    with locate_errors(source="--min-bytes"):
        low = int(parse(min_bytes, UnitKind.SIZE))
    high = max(2**30, int(flow.grains * flow.grain_bytes))
    if max_bytes is not None:
        with locate_errors(source="--max-bytes"):
            high = int(parse(max_bytes, UnitKind.SIZE, allow_zero=False))
    if low > high:
        raise InputError(f"{low:,} B is more than {high:,} B; expected a range of sizes", source="--min-bytes")
    return low, high


def network_of(spec: Spec, progress: Progress = ignore) -> Topology:
    """Return the network that ``--topology`` names: that of an instance, or of the schedule in a file."""
    from ..core.topology import Topology
    from ..schedules.files import is_schedule, read_schedule

    with limited_by(Budget(progress=progress)), locate_errors(source="--topology"):
        of_file = isinstance(spec, str | Path) and is_schedule(Path(spec))
        network = (read_schedule(Path(spec)).instance if of_file else load(spec)).network
        if not isinstance(network, Topology):
            raise InputError(f"{spec} has dimensions without bandwidth; expected a network of nodes and links")
    return network


def sends_without_link(program: Program, network: Topology | None) -> Iterator[str]:
    """Yield the sends of a program between ranks without a link."""
    from ..exchange.msccl.links import loads_of

    if network is None:
        return
    if len(network.ranks) != program.ngpus:
        yield f"network: {len(network.ranks)} ranks, but the file is for {program.ngpus} GPUs"
        return
    missing = loads_of(program, network).missing
    for source, target in missing[:5]:
        names = f"{network.ranks[source]!r} to {network.ranks[target]!r}"
        yield f"network: gpu {source} sends to gpu {target}, but there is no link from {names}"


def slowest(program: Program, network: Topology) -> tuple[Link, Fraction, Fraction] | None:
    """Return the slowest link, its load in chunks, and the rate of each chunk on it in bytes per second."""
    from ..exchange.msccl.links import loads_of

    loads = loads_of(program, network)
    found = loads.busiest(network)
    return None if found is None else (network.links[found[0]], loads.chunks[found[0]], found[1])


def busiest_link(program: Program, chunks: int, network: Topology) -> dict[str, Any] | None:
    """Return the slowest link, and the rate of the full buffer that it allows."""
    found = slowest(program, network)
    if found is None:
        return None
    link, load, rate = found
    return {
        "source": link.source,
        "target": link.target,
        "chunks": str(load),
        "bandwidth_GBps": float(link.bandwidth_Bps / 10**9),
        "algbw_at_most_GBps": float(rate * chunks / 10**9),
    }
