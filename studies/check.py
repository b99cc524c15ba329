"""The verb ``check``: verdicts on schedules, placements, and files of runtimes, of any origin."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.bounds import CutCertificate
from ..core.budget import Budget, Progress, ignore, limited_by
from ..core.errors import InputError
from ..core.option_names import DIALECTS, WrongUse, verb
from ..core.topology import Link, Topology
from ..exchange.chakra.files import read_trace
from ..exchange.chakra.trace import problems_of
from ..exchange.msccl.dialects import dialect_of
from ..exchange.mscclpp.files import is_plan
from ..exchange.mscclpp.run import meaning_of
from ..harness.clock import WallClock
from ..harness.interrupt import command_limits
from ..schedules.collective import Proof, proof_of
from ..schedules.completion import Completion, completion_if_any
from ..schedules.files import ScheduleFile, begins_with, read_schedule
from ..schedules.metrics import question_of
from ..schedules.placement import SCHEMA, PlacementFile, assess_placement, read_placement
from ..schedules.verify import Report, verify
from .exports import messages_and_bytes
from .inputs import Spec, load, network_of, seconds_or_none

if TYPE_CHECKING:
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


CLAIM_TOLERANCE = 1e-9  #: Relative difference up to which a claimed bound is the one that is proved.


def check_placement(file: Path, instance: Spec) -> Check:
    """Verify a placement and its certificate."""
    read = read_placement(file)
    if instance is not None and load(instance).experts != read.experts:
        raise InputError(f"has different experts than {instance}", source=str(file), place="experts")
    violations, loads, bound = assess_placement(read.experts, read.answer, read.certificate)
    total = sum(loads, Fraction(0)) if loads else None
    claimed = read.extra.get("bound")
    if bound is not None and isinstance(claimed, int | float) and claimed > float(bound) * (1 + CLAIM_TOLERANCE):
        violations.append(f"the file claims the bound {claimed!r}, its certificate proves {float(bound)!r}")
    data = {
        "file": str(file),
        "instance": read.name,
        "instance_sha256": read.instance_sha256,
        "answer": "Placement",
        "verified": not violations,
        "violations": violations,
        "layer_loads": list(map(float, loads)),
        "load": None if total is None else float(total),
        "bound": None if bound is None else float(bound),
        "exact": {"load": total and str(total), "bound": bound and str(bound)},
    }
    lines = _placement_lines(file, read, violations, total or Fraction(0), bound)
    return Check(data, tuple(lines), not violations)


def _placement_lines(
    file: Path, read: PlacementFile, violations: list[str], load: Fraction, bound: Fraction | None
) -> Iterator[str]:
    yield from violations[:20]
    experts = read.experts
    layers = "" if len(experts.loads) == 1 else f", {len(experts.loads):,} layers"
    what = f"a placement of {experts.count:,} experts on {experts.gpus:,} GPUs{layers}"
    if violations:
        number = "1 violation" if len(violations) == 1 else f"{len(violations):,} violations"
        yield f"{file}: WRONG, {number} in {what}"
        return
    yield f"{file}: right, {what}"
    yield f"largest load of a GPU{', added up over layers' if layers else ''}: {float(load):.9g}, exactly {load}"
    if bound is not None:
        gap = "optimal" if bound == load else f"gap {float((load - bound) / load):.3%}"
        yield f"its certificate proves {float(bound):.9g}: {gap}"


@verb
def check(
    file: str | Path,
    *,
    instance: Spec = None,
    topology: Spec = None,
    dialect: str | None = None,
    time_limit_s: float | None = None,
    progress: Progress = ignore,
) -> Check:
    """Verify the schedule in a file and its certificate, or files of runtimes, as ``cwb check`` does.

    Parameters
    ----------
    file : str or Path
        A schedule, a placement, an MSCCL algorithm (.xml) or a folder of them, an MSCCL++ plan, or a folder of Chakra
        traces.
    instance, topology, dialect : optional
        Problem that the schedule must be for; network of files of runtimes, which must have their links; and runtime of
        MSCCL files, by default any.
    """
    with command_limits(WallClock(seconds_or_none(time_limit_s, "time_limit_s"))):
        return _check(Path(file), instance, topology, dialect, progress)


def _check(file: Path, instance: Spec, topology: Spec, dialect: str | None, progress: Progress) -> Check:
    if file.suffix == ".et":
        raise InputError("is one rank of a trace; expected its folder", source=str(file))
    of_runtime = file.suffix == ".xml" or file.is_dir()
    traces, algorithms = (file.is_dir() and any(file.glob(f"*{suffix}")) for suffix in (".et", ".xml"))
    if traces and algorithms:
        raise InputError("has .et and .xml files; expected one of the two", source=str(file))
    if of_runtime and instance is not None:
        raise WrongUse("--instance is of schedules; expected --topology with MSCCL files and traces")
    if traces and dialect is not None:
        raise WrongUse("--dialect is of MSCCL files, but the folder has Chakra traces")
    plan = not of_runtime and is_plan(file)
    if plan and (instance is not None or dialect is not None):
        raise WrongUse("--instance is of schedules and --dialect of MSCCL files; expected --topology")
    if not of_runtime and not plan and (topology is not None or dialect is not None):
        raise WrongUse(
            "--topology and --dialect are of MSCCL files, which end in .xml, and --topology of plans and traces"
        )
    network = None if topology is None else network_of(topology, progress)
    if of_runtime:
        return check_chakra(file, network) if traces else check_msccl(file, dialect, network)
    if plan:
        return check_mscclpp(file, network)
    if begins_with(file, SCHEMA):
        return check_placement(file, instance)
    return _check_schedule(file, instance, progress)


def _check_schedule(file: Path, instance: Spec, progress: Progress) -> Check:
    read = read_schedule(file, others=[SCHEMA])
    if instance is not None:
        with limited_by(Budget(progress=progress)):
            expected, own = load(instance), read.instance
            if expected.demand is None:
                expected = expected.with_changes(demand=own.demand)
            if expected.sha256 != own.sha256:
                text = f"is for the instance {own.sha256[:12]}…, not for {instance} ({expected.sha256[:12]}…)"
                raise InputError(text, source=str(file), place="instance_sha256")
    report = verify(read.instance, read.answer)
    completion = completion_if_any(read.instance, read.answer, read.pieces) if report.ok else None
    proof, missed = proof_of(read, right=report.ok, completion_s=completion.seconds if completion else None)
    violations = [*map(str, report.violations), *missed]
    data = _verdict(file, read, report, proof, completion, violations)
    return Check(data, tuple(_lines(data, read, proof, completion)), not violations)


def _cut_of(read: ScheduleFile) -> dict[str, Any] | None:
    """Describe the node set of the cut that certifies the bound of a file; None without one."""
    topology, certificate = read.instance.network, read.certificate
    if not isinstance(certificate, CutCertificate) or not isinstance(topology, Topology):
        return None
    inside = set(certificate.nodes)
    ends = zip(topology.links, topology.link_ends, strict=True)
    leaving = sum((link.bandwidth_Bps for link, (a, b) in ends if a in inside and b not in inside), Fraction(0))
    ranks = len(inside.intersection(topology.rank_nodes))
    return {"nodes": len(inside), "ranks": ranks, "bandwidth_Bps": float(leaving)}


def _verdict(
    file: Path, read: ScheduleFile, report: Report, proof: Proof, completion: Completion | None, violations: list[str]
) -> dict[str, Any]:
    exact = {"bound": proof.bound_s, "flow_time": proof.time_s, "gap": proof.gap}
    return {
        "file": str(file),
        "instance": read.instance.name,
        "instance_sha256": read.instance.sha256,
        "answer": type(read.answer).__name__,
        "verified": not violations,
        "violations": violations,
        "warnings": list(map(str, report.warnings)),
        "counts": dict(report.counts),
        "completion_time_s": completion and completion.seconds,
        "pieces": completion and completion.pieces,
        "bound_s": None if proof.bound_s is None else float(proof.bound_s),
        "flow_time_s": None if proof.time_s is None else float(proof.time_s),
        "gap": None if proof.gap is None else float(proof.gap),
        "exact": {name: None if value is None else str(value) for name, value in exact.items()},
        "cut": _cut_of(read),
    }


def _lines(data: dict[str, Any], read: ScheduleFile, proof: Proof, completion: Completion | None) -> Iterator[str]:
    file, violations, cut = data["file"], data["violations"], data["cut"]
    yield from violations
    for warning in data["warnings"][:3]:
        yield f"warning: {warning}"
    name = read.instance.collective_name
    what = f"{name} of {read.instance.npus} ranks" if name else read.instance.name
    proved = "" if proof.bound_s is None else f"; its certificate proves {float(proof.bound_s):.9g} s"
    if violations:
        total = max(sum(n for kind, n in data["counts"].items() if kind != "useless"), len(violations))
        number = "1 violation" if total == 1 else f"{total} violations"
        yield f"{file}: WRONG, {number} in a schedule of {what}{proved}"
        return
    yield f"{file}: right, a schedule of {what}{proved}"
    if cut is not None and proof.bound_s is not None:
        total, rate = len(read.instance.topology.nodes), f"{cut['bandwidth_Bps'] / 1e9:.9g} GB/s"
        yield f"cut: {cut['nodes']} of {total} nodes, {cut['ranks']} of {read.instance.npus} ranks; {rate} leave it"
    if completion is not None:
        text = completion.why if completion.seconds is None else f"{completion.seconds:.9g} s, {completion.model}"
        yield f"completion time: {text}"
    if read.instance.rank_costs is not None:
        yield f"costs of ranks: {read.instance.rank_costs.in_words}"
    if proof.bound_s is not None and read.instance.timing is not None:
        yield f"the bound is of the objective: {question_of(read.instance, read.answer)['question']}"
    if proof.time_s is not None:
        yield f"flow time: {float(proof.time_s):.9g} s, of the most loaded link, latency left out"
    if proof.gap == 0:
        yield f"optimal (flow, latency left out): flow time and bound are the same fraction, {proof.time_s} s"
    elif proof.gap is not None:
        yield f"gap: {float(proof.gap):.3%}, exactly {proof.gap} of the flow time"


def check_msccl(path: Path, dialect: str | None, network: Topology | None) -> Check:
    """Check an MSCCL file, or all in a folder."""
    from ..exchange.msccl.check import check_file, ranges

    dialects = [dialect_of(name) for name in (DIALECTS if dialect is None else (dialect,))]
    files = sorted(path.glob("*.xml")) if path.is_dir() else [path]
    if not files:
        raise InputError("has no .xml file", source=str(path))
    checked = [check_file(file, dialects) for file in files]
    gaps = [line for one in dialects for line in ranges([c for c in checked if one.name in c.runs_on], one)]
    rows = [_algorithm(one, network) for one in checked]
    lines: list[str] = []
    for data in rows:
        placed = " and ".join({"in": "in place", "out": "out of place"}[name] for name in data["placements"])
        runs = "" if len(dialects) == 1 else f"; runs on {', '.join(data['runs_on'])}"
        lines += _program_lines(data, f"{data['steps']:,} steps", placed, runs)
    lines += gaps if path.is_dir() else []
    return Check({"files": rows, "ranges": gaps}, tuple(lines), all(data["verified"] for data in rows))


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
    from ..exchange.mscclpp.rules import channels_between_boxes

    checked = check_file(path)
    plan, chunks = checked.plan, meaning_of(checked.plan).grains
    boxes = network.box_names() if network is not None and len(network.ranks) == plan.ngpus else None
    problems = [*checked.problems, *_sends_without_link(plan, network), *map(str, channels_between_boxes(plan, boxes))]
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
    lines = _program_lines(data, f"{plan.steps:,} operations", placed, ran=checked.ran)
    return Check(data, tuple(lines), not problems)


def check_chakra(folder: Path, network: Topology | None) -> Check:
    """Run the Chakra execution trace in a folder without data."""
    trace = read_trace(folder)
    problems = [*problems_of(trace), *_sends_without_link(trace, network)]
    sends, volume = messages_and_bytes(trace)
    busiest = None
    if not problems and (slowest := _slowest(trace, network)) is not None:
        link, load, rate = slowest
        busiest = {"source": link.source, "target": link.target, "bytes": float(load), "seconds": float(1 / rate)}
    data: dict[str, Any] = {
        "folder": str(folder),
        "ranks": trace.ngpus,
        "nodes": sum(map(len, trace.ranks)),
        "messages": sends,
        "bytes": volume,
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
    busiest = loads.busiest(network)
    return None if busiest is None else (network.links[busiest[0]], loads.chunks[busiest[0]], busiest[1])


def _busiest_link(program: Program, chunks: int, network: Topology | None) -> dict[str, Any] | None:
    """Return the slowest link, and the rate of the full buffer that it allows."""
    if (slowest := _slowest(program, network)) is None:
        return None
    link, load, rate = slowest
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


def _program_lines(
    data: dict[str, Any], length: str, placed: str, runs: str = "", *, ran: bool = True
) -> Iterator[str]:
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
