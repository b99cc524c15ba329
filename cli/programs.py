"""What the commands for files of runtimes share: schedules for them, networks under them, and what is found in them."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import InputError, located
from .streams import echo

if TYPE_CHECKING:
    from ..core.topology import Link, Topology
    from ..exchange.msccl.flow import Flow
    from ..exchange.msccl.links import Program


def read_flow(schedule: Path) -> Flow:
    """Read a schedule, and what its GPUs send one another; a wrong one is rejected."""
    from ..exchange.msccl.flow import flow_of
    from ..schedules.files import read_schedule
    from ..schedules.verify import verify

    read = read_schedule(schedule)
    with located(source=str(schedule)):
        report = verify(read.instance, read.answer)
        if not report.ok:
            raise InputError(f"the schedule is wrong: {report.violations[0]}; see cwb check")
        return flow_of(read.instance, read.answer)


def size_range(min_bytes: str, max_bytes: str | None, flow: Flow) -> tuple[int, int]:
    """First and last size that a file is for."""
    from ..core.units import UnitKind, parse

    with located(source="--min-bytes"):
        low = int(parse(min_bytes, UnitKind.SIZE))
    high = max(2**30, int(flow.grains * flow.grain_bytes))
    if max_bytes is not None:
        with located(source="--max-bytes"):
            high = int(parse(max_bytes, UnitKind.SIZE, allow_zero=False))
    if low > high:
        raise InputError(f"{low:,} B is more than {high:,} B; expected a range of sizes", source="--min-bytes")
    return low, high


def network_of_spec(spec: str) -> Topology:
    """The network that a SPEC names, or that of a schedule's file."""
    from ..core.topology import Topology
    from ..instances import load
    from ..schedules.files import is_schedule, read_schedule
    from .options import telling_on_stderr

    with telling_on_stderr(), located(source="--topology"):
        instance = read_schedule(Path(spec)).instance if is_schedule(Path(spec)) else load(spec)
        network = instance.network
        if not isinstance(network, Topology):
            raise InputError(f"{spec} has dimensions without bandwidth; expected a network of nodes and links")
    return network


def unlinked(program: Program, network: Topology | None) -> Iterator[str]:
    """What a program sends where the network has no link."""
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
    """The link that takes longest, what it carries, and how many of its bytes per second one chunk is per second."""
    from ..exchange.msccl.links import loads_of

    loads = loads_of(program, network)
    found = loads.busiest(network)
    return None if found is None else (network.links[found[0]], loads.chunks[found[0]], found[1])


def busiest_link(program: Program, chunks: int, network: Topology) -> dict[str, Any] | None:
    """The link that takes longest, and the rate of the full buffer of so many chunks that it leaves room for."""
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


def show_checked(data: dict[str, Any], length: str, placed: str, runs: str = "", *, ran: bool = True) -> None:
    """Print what is found in a file.

    Parameters
    ----------
    data : dict
        What is found, as plain data.
    length, placed, runs : str
        How long the program is, for which calls it is, and where it runs.
    ran : bool
        Whether it could be run.
    """
    for line in data["violations"]:
        echo(line)
    for line in data["notes"]:
        echo(f"  {line}")
    what = f"{data['collective']} of {data['gpus']} GPUs, {data['chunks']:,} chunks, {length}"
    if data["violations"]:
        echo(f"{data['file']}: WRONG, {what}{'' if ran else '; not run'}")
        return
    root = "" if data["root"] is None else f", root {data['root']}"
    echo(f"{data['file']}: right, {what}, {placed}{root}{runs}")
    if (link := data["busiest_link"]) is not None:
        name = f"{link['source']} -> {link['target']} ({link['bandwidth_GBps']:.9g} GB/s)"
        load = f"{link['chunks']} chunk{'' if link['chunks'] == '1' else 's'}, each 1/{data['chunks']:,} of the data"
        echo(f"busiest link: {name} carries {load}; algbw at most {link['algbw_at_most_GBps']:.9g} GB/s")
