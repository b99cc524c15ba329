"""The verb ``check``: verdicts on schedules, placements, and files of runtimes, of any origin."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from ..core.bounds import CutCertificate, LeastLoads
from ..core.budget import Budget, Progress, ignore, limited_by
from ..core.errors import InputError
from ..core.instance import Instance
from ..core.option_names import WrongUse, verb
from ..core.topology import Topology
from ..exchange.mscclpp.files import is_plan
from ..harness.clock import WallClock
from ..harness.interrupt import command_limits
from ..schedules.collective import Proof, proof_of
from ..schedules.completion import Completion, completion_if_any
from ..schedules.files import ScheduleFile, read_schedule
from ..schedules.metrics import contradictions, question_of
from ..schedules.placement import (
    SCHEMA,
    PlacementFile,
    bound_of,
    is_placement,
    loads_of,
    read_placement,
    violations_of,
)
from ..schedules.verify import Report, verify
from .check_programs import Check, check_chakra, check_msccl, check_mscclpp
from .inputs import Spec, load, network_of, seconds_or_none

CLAIM_TOLERANCE = 1e-9  #: Relative difference up to which a claimed bound is the one that is proved.


def check_placement(file: Path, instance: Spec) -> Check:
    """Verify a placement and its certificate."""
    read = read_placement(file)
    if instance is not None and load(instance).experts != read.experts:
        raise InputError(f"has different experts than {instance}", source=str(file), place="experts")
    violations = violations_of(read.experts, read.answer)
    loads = [] if violations else loads_of(read.experts, read.answer)
    bound = bound_of(read.experts, read.certificate)
    total = sum(loads, Fraction(0)) if loads else None
    violations += [] if total is None else contradictions(total, bound, unit="load")
    if bound is None and isinstance(read.certificate, LeastLoads):
        violations.append(f"certificate: it has other layers than the {len(read.experts.loads):,} of the experts")
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
        told = "1 violation" if len(violations) == 1 else f"{len(violations):,} violations"
        yield f"{file}: WRONG, {told} in {what}"
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
    instance : Instance or other, optional
        Problem that the schedule must be for.
    topology : Instance or other, optional
        Network of files of runtimes, which must have their links.
    dialect : str, optional
        Runtime of MSCCL files; by default any.
    """
    with command_limits(WallClock(seconds_or_none(time_limit_s, "time_limit_s"))):
        return _check(Path(file), instance, topology, dialect, progress)


def _check(file: Path, instance: Spec, topology: Spec, dialect: str | None, progress: Progress) -> Check:
    if file.suffix == ".et":
        raise InputError("is one rank of a trace; expected its folder", source=str(file))
    of_runtime, traces = file.suffix == ".xml" or file.is_dir(), file.is_dir() and _has_traces(file)
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
    if is_placement(file):
        return check_placement(file, instance)
    return _check_schedule(file, instance, progress)


def _check_schedule(file: Path, instance: Spec, progress: Progress) -> Check:
    read = read_schedule(file, others=[SCHEMA])
    if instance is not None:
        with limited_by(Budget(progress=progress)):
            _check_same(file, read.instance, instance)
    report = verify(read.instance, read.answer)
    completion = completion_if_any(read.instance, read.answer, read.pieces) if report.ok else None
    proof, missed = proof_of(read, right=report.ok, completion_s=completion.seconds if completion else None)
    violations = [*map(str, report.violations), *missed]
    data = _verdict(file, read, report, proof, completion, violations)
    return Check(data, tuple(_lines(file, read, report, proof, completion, violations)), not violations)


def _has_traces(folder: Path) -> bool:
    """Return True if a folder has Chakra traces; reject one that also has .xml files."""
    traces, algorithms = (any(folder.glob(f"*{suffix}")) for suffix in (".et", ".xml"))
    if traces and algorithms:
        raise InputError("has .et and .xml files; expected one of the two", source=str(folder))
    return traces


def _check_same(file: Path, found: Instance, spec: Spec) -> None:
    expected = load(spec)
    if expected.demand is None:
        expected = expected.with_changes(demand=found.demand)
    if expected.sha256 != found.sha256:
        text = f"is for the instance {found.sha256[:12]}…, not for {spec} ({expected.sha256[:12]}…)"
        raise InputError(text, source=str(file), place="instance_sha256")


@dataclass(frozen=True)
class CutDescription:
    """Node set of a cut certificate."""

    nodes: int
    of: int
    ranks: int
    bandwidth_Bps: Fraction  #: Total bandwidth of the links that leave the set.


def cut_of(read: ScheduleFile) -> CutDescription | None:
    """Describe the cut that certifies the bound of a file; None without one."""
    topology, certificate = read.instance.network, read.certificate
    if not isinstance(certificate, CutCertificate) or not isinstance(topology, Topology):
        return None
    inside = set(certificate.nodes)
    ends = zip(topology.links, topology.link_ends, strict=True)
    leaving = sum((link.bandwidth_Bps for link, (a, b) in ends if a in inside and b not in inside), Fraction(0))
    return CutDescription(len(inside), len(topology.nodes), len(inside.intersection(topology.rank_nodes)), leaving)


def _verdict(
    file: Path, read: ScheduleFile, report: Report, proof: Proof, completion: Completion | None, violations: list[str]
) -> dict[str, Any]:
    exact = {"bound": proof.bound_s, "flow_time": proof.time_s, "gap": proof.gap}
    cut = cut_of(read)
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
        "cut": cut and {"nodes": cut.nodes, "ranks": cut.ranks, "bandwidth_Bps": float(cut.bandwidth_Bps)},
    }


def _lines(
    file: Path, read: ScheduleFile, report: Report, proof: Proof, completion: Completion | None, violations: list[str]
) -> Iterator[str]:
    yield from violations
    for warning in report.warnings[:3]:
        yield f"warning: {warning}"
    name = read.instance.collective_name
    what = f"{name} of {read.instance.npus} ranks" if name else read.instance.name
    proved = "" if proof.bound_s is None else f"; its certificate proves {float(proof.bound_s):.9g} s"
    if violations:
        total = max(sum(n for kind, n in report.counts.items() if kind != "useless"), len(violations))
        told = "1 violation" if total == 1 else f"{total} violations"
        yield f"{file}: WRONG, {told} in a schedule of {what}{proved}"
        return
    yield f"{file}: right, a schedule of {what}{proved}"
    if (cut := cut_of(read)) is not None and proof.bound_s is not None:
        rate = f"{float(cut.bandwidth_Bps / 10**9):.9g} GB/s"
        yield f"cut: {cut.nodes} of {cut.of} nodes, {cut.ranks} of {read.instance.npus} ranks; {rate} leave it"
    if completion is not None:
        told = completion.why if completion.seconds is None else f"{completion.seconds:.9g} s, {completion.model}"
        yield f"completion time: {told}"
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
