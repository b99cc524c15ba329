"""Checks of files of runtimes: MSCCL algorithms, MSCCL++ plans and Chakra traces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import InputError
from ..core.option_names import DIALECTS
from ..core.topology import Topology
from .exports import messages_and_bytes

if TYPE_CHECKING:
    from ..core.topology import Link
    from ..exchange.msccl.check import AlgorithmReport
    from ..exchange.msccl.links import Program


@dataclass(frozen=True, eq=False)
class Check:
    """Verdict on a file."""

    data: dict[str, Any]
    lines: tuple[str, ...]
    ok: bool

    def to_json(self) -> dict[str, Any]:
        """Return the output of ``cwb check --json``."""
        return self.data

    def text(self) -> str:
        """Return the verdict as text for people."""
        return "\n".join(self.lines)


def check_msccl(path: Path, dialect: str | None, network: Topology | None) -> Check:
    """Check an MSCCL file, or all in a folder."""
    from ..exchange.msccl.check import check_file, ranges
    from ..exchange.msccl.dialects import dialect_of

    dialects = [dialect_of(name) for name in (DIALECTS if dialect is None else (dialect,))]
    files = sorted(path.glob("*.xml")) if path.is_dir() else [path]
    if not files:
        raise InputError("has no .xml file", source=str(path))
    checked = [check_file(file, dialects) for file in files]
    gaps = [line for one in dialects for line in ranges([c for c in checked if one.name in c.runs_on], one)]
    found = [_algorithm(one, network) for one in checked]
    lines: list[str] = []
    for data in found:
        placed = " and ".join({"in": "in place", "out": "out of place"}[name] for name in data["placements"])
        runs = "" if len(dialects) == 1 else f"; runs on {', '.join(data['runs_on'])}"
        lines += _lines(data, f"{data['steps']:,} steps", placed, runs)
    lines += gaps if path.is_dir() else []
    return Check({"files": found, "ranges": gaps}, tuple(lines), all(data["verified"] for data in found))


def _algorithm(checked: AlgorithmReport, network: Topology | None) -> dict[str, Any]:
    algorithm = checked.algorithm
    problems = checked.problems + list(_sends_without_link(algorithm, network))
    return {
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
        "busiest_link": _busiest_link(algorithm, algorithm.nchunksperloop, network),
    }


def check_mscclpp(path: Path, network: Topology | None) -> Check:
    """Check an MSCCL++ execution plan."""
    from ..exchange.mscclpp.check import check_file
    from ..exchange.mscclpp.run import meaning_of

    checked = check_file(path)
    plan, chunks = checked.plan, meaning_of(checked.plan).grains
    problems = checked.problems + list(_sends_without_link(plan, network))
    data: dict[str, Any] = {
        "file": str(checked.path),
        "collective": plan.collective,
        "protocol": plan.protocol,
        "gpus": plan.ngpus,
        "chunks": chunks,
        "operations": plan.steps,
        "inplace": plan.inplace,
        "root": checked.root,
        "ran": checked.ran,
        "verified": not problems,
        "violations": problems,
        "notes": checked.notes,
        "transfers": [[*pair, str(count)] for pair, count in sorted(plan.transfers.items())],
        "busiest_link": _busiest_link(plan, chunks, network),
    }
    placed = "in place" if plan.inplace else "out of place"
    lines = _lines(data, f"{plan.steps:,} operations", placed, ran=checked.ran)
    return Check(data, tuple(lines), not problems)


def check_chakra(folder: Path, network: Topology | None) -> Check:
    """Run the Chakra execution trace in a folder without data."""
    from ..exchange.chakra.files import read_trace
    from ..exchange.chakra.trace import problems_of

    trace = read_trace(folder)
    problems = [*problems_of(trace), *_sends_without_link(trace, network)]
    sends, moved = messages_and_bytes(trace)
    busiest = None
    if not problems and (found := _slowest(trace, network)) is not None:
        link, load, rate = found
        busiest = {"source": link.source, "target": link.target, "bytes": float(load), "seconds": float(1 / rate)}
    data: dict[str, Any] = {
        "folder": str(folder),
        "ranks": trace.ngpus,
        "nodes": sum(map(len, trace.ranks)),
        "messages": sends,
        "bytes": moved,
        "verified": not problems,
        "violations": problems,
        "transfers": [[*pair, size] for pair, size in sorted(trace.transfers.items())],
        "busiest_link": busiest,
    }
    return Check(data, tuple(_trace_lines(data)), not problems)


def _sends_without_link(program: Program, network: Topology | None) -> Iterator[str]:
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


def _slowest(program: Program, network: Topology | None) -> tuple[Link, Fraction, Fraction] | None:
    """Return the slowest link, its load in chunks, and the rate of each chunk on it in bytes per second."""
    from ..exchange.msccl.links import loads_of

    if network is None or len(network.ranks) != program.ngpus:
        return None
    loads = loads_of(program, network)
    found = loads.busiest(network)
    return None if found is None else (network.links[found[0]], loads.chunks[found[0]], found[1])


def _busiest_link(program: Program, chunks: int, network: Topology | None) -> dict[str, Any] | None:
    """Return the slowest link, and the rate of the full buffer that it allows."""
    if (found := _slowest(program, network)) is None:
        return None
    link, load, rate = found
    return {
        "source": link.source,
        "target": link.target,
        "chunks": str(load),
        "bandwidth_GBps": float(link.bandwidth_Bps / 10**9),
        "algbw_at_most_GBps": float(rate * chunks / 10**9),
    }


def _trace_lines(data: dict[str, Any]) -> Iterator[str]:
    yield from data["violations"]
    what = f"{data['ranks']:,} ranks, {data['nodes']:,} nodes, {data['messages']:,} messages, {data['bytes']:,} B"
    yield f"{data['folder']}: {'WRONG' if data['violations'] else 'right'}, {what}"
    if (busiest := data["busiest_link"]) is not None:
        link = f"{busiest['source']} -> {busiest['target']}"
        yield f"busiest link: {link} carries {busiest['bytes']:,.9g} B, which takes {busiest['seconds']:.9g} s"


def _lines(data: dict[str, Any], length: str, placed: str, runs: str = "", *, ran: bool = True) -> Iterator[str]:
    """Yield the verdict on a program: its length, its calls and its network."""
    yield from data["violations"]
    for line in data["notes"]:
        yield f"  {line}"
    what = f"{data['collective']} of {data['gpus']} GPUs, {data['chunks']:,} chunks, {length}"
    if data["violations"]:
        yield f"{data['file']}: WRONG, {what}{'' if ran else '; not run'}"
        return
    root = "" if data["root"] is None else f", root {data['root']}"
    yield f"{data['file']}: right, {what}, {placed}{root}{runs}"
    if (link := data["busiest_link"]) is not None:
        name = f"{link['source']} -> {link['target']} ({link['bandwidth_GBps']:.9g} GB/s)"
        load = f"{link['chunks']} chunk{'' if link['chunks'] == '1' else 's'}, each 1/{data['chunks']:,} of the data"
        yield f"busiest link: {name} carries {load}; algbw at most {link['algbw_at_most_GBps']:.9g} GB/s"
