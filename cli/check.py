"""``cwb check``: verify schedules, placements, MSCCL algorithms, MSCCL++ plans and Chakra traces, of any origin."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..core.errors import ExitStatus, InputError
from .chakra import check_chakra
from .msccl import DIALECTS, check_msccl
from .mscclpp import check_mscclpp
from .options import limited
from .placement import check_placement
from .streams import echo

if TYPE_CHECKING:
    from ..core.instance import Instance
    from ..schedules.completion import Completion
    from ..schedules.files import ScheduleFile
    from ..schedules.proof import Proof
    from ..schedules.verify import Report


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--instance", metavar="SPEC", help="Reject a schedule that is for another instance.")
@click.option("--topology", metavar="SPEC", help="Network of MSCCL files, plans and traces; its links must exist.")
@click.option("--dialect", type=click.Choice(DIALECTS), help="Runtime of MSCCL files.  [default: any]")
@click.option("--json", "as_json", is_flag=True, help="Print the verdict as one JSON object on stdout.")
@limited
def check(file: Path, instance: str | None, topology: str | None, dialect: str | None, as_json: bool) -> int:
    """Verify the schedule in FILE, and its certificate if it has one; or MSCCL algorithms, MSCCL++ plans, Chakra traces.

    \b
    cwb check s.json
    cwb check s.npz --instance instances/torus.json --json
    cwb check a.xml --topology "dgx_a100()"
    cwb check folder/ --dialect rccl
    cwb check placement.json
    cwb check plan.json --topology "dgx_a100()"
    cwb check traces/ --topology "torus(4,4)"

    A FILE that ends in .xml is an MSCCL algorithm, and a folder may have several. Each is checked by the rules of the
    runtimes and run with symbolic data; of a folder, holes and overlaps of sizes are reported.
    A JSON file with the keys of an MSCCL++ execution plan is checked by the rules of the executor and run with
    symbolic data, several calls one after the other.
    A JSON file that gives the experts of all slots is a placement; the loads of all GPUs are added up again.
    A folder of files PREFIX.RANK.et is one Chakra execution trace, which is run without data.

    A schedule that ends before the bound that its own certificate proves is a contradiction, and counts as wrong.

    For trees, the time of the most loaded link is compared with what the certificate proves, in exact fractions. Where
    they are equal, the trees are optimal.

    SPEC is a file, the name of a shipped instance or an expression such as "torus(8,8)"; one without a collective is
    compared by its network. --topology also takes the file of a schedule, whose network it is then. The exit status is
    5 if the schedule is wrong, and 2 if it cannot be read or is for another instance.
    """
    from ..exchange.mscclpp.read import is_plan
    from ..schedules.completion import completion_if_any
    from ..schedules.files import read_schedule
    from ..schedules.placement_file import SCHEMA, is_placement
    from ..schedules.proof import proof_of
    from ..schedules.verify import verify

    if file.suffix == ".et":
        raise InputError("is one rank of a trace; expected the folder of all", source=str(file))
    if file.suffix == ".xml" or file.is_dir():
        if instance is not None:
            raise click.UsageError("--instance is of schedules; expected --topology with MSCCL files and traces")
        if file.is_dir() and _has_traces(file):
            if dialect is not None:
                raise click.UsageError("--dialect is of MSCCL files, but the folder has Chakra traces")
            return check_chakra(file, topology, as_json=as_json)
        return check_msccl(file, dialect, topology, as_json=as_json)
    if is_plan(file):
        if instance is not None or dialect is not None:
            raise click.UsageError("--instance is of schedules and --dialect of MSCCL files; expected --topology")
        return check_mscclpp(file, topology, as_json=as_json)
    if topology is not None or dialect is not None:
        raise click.UsageError(
            "--topology and --dialect are of MSCCL files, which end in .xml, and --topology of plans and traces"
        )
    if is_placement(file):
        return check_placement(file, instance, as_json=as_json)
    read = read_schedule(file, others=[SCHEMA])
    if instance is not None:
        _same_instance(file, read.instance, instance)
    report = verify(read.instance, read.answer)
    completion = completion_if_any(read.instance, read.answer, read.pieces) if report.ok else None
    proof, missed = proof_of(read, right=report.ok, completion_s=completion.seconds if completion else None)
    violations = [*map(str, report.violations), *missed]
    if as_json:
        echo(json.dumps(_verdict(file, read, report, proof, completion, violations), allow_nan=False))
    else:
        _show(file, read, report, proof, completion, violations)
    return int(ExitStatus.VERIFICATION_FAILED if violations else ExitStatus.OK)


def _has_traces(folder: Path) -> bool:
    """Whether a folder has Chakra traces, and no other files that are checked."""
    traces, algorithms = (any(folder.glob(f"*{suffix}")) for suffix in (".et", ".xml"))
    if traces and algorithms:
        raise InputError("has files that end in .et and in .xml; expected one of the two", source=str(folder))
    return traces


def _same_instance(file: Path, found: Instance, spec: str) -> None:
    """Reject a schedule for another instance than the one that the user names."""
    from ..instances import load
    from .options import telling_on_stderr

    with telling_on_stderr():
        expected = load(spec)
    if expected.demand is None:
        expected = expected.with_changes(demand=found.demand)
    if expected.sha256 != found.sha256:
        text = f"is for the instance {found.sha256[:12]}…, not for {spec} ({expected.sha256[:12]}…)"
        raise InputError(text, source=str(file), place="instance_sha256")


@dataclass(frozen=True)
class Cut:
    """The set of nodes of a cut certificate.

    Parameters
    ----------
    nodes, of : int
        Number of nodes in it, and in the network.
    ranks : int
        Number of ranks in it.
    bandwidth_Bps : Fraction
        Of the links that leave it.
    """

    nodes: int
    of: int
    ranks: int
    bandwidth_Bps: Fraction


def cut_of(read: ScheduleFile) -> Cut | None:
    """Describe the cut that a file has as certificate; None if it has another one or none."""
    from ..core.bounds import CutCertificate
    from ..core.topology import Topology

    topology, certificate = read.instance.network, read.certificate
    if not isinstance(certificate, CutCertificate) or not isinstance(topology, Topology):
        return None
    inside = set(certificate.nodes)
    ends = zip(topology.links, topology.link_ends, strict=True)
    leaving = sum((link.bandwidth_Bps for link, (a, b) in ends if a in inside and b not in inside), Fraction(0))
    return Cut(len(inside), len(topology.nodes), len(inside.intersection(topology.rank_nodes)), leaving)


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


def _show(
    file: Path, read: ScheduleFile, report: Report, proof: Proof, completion: Completion | None, violations: list[str]
) -> None:
    for line in violations:
        echo(line)
    for warning in report.warnings[:3]:
        echo(f"warning: {warning}")
    demand = read.instance.demand
    what = f"{demand.collective.value} of {read.instance.npus} ranks" if demand else read.instance.name
    proved = "" if proof.bound_s is None else f"; its certificate proves {float(proof.bound_s):.9g} s"
    if violations:
        total = max(sum(n for kind, n in report.counts.items() if kind != "useless"), len(violations))
        told = "1 violation" if total == 1 else f"{total} violations"
        echo(f"{file}: WRONG, {told} in a schedule of {what}{proved}")
        return
    echo(f"{file}: right, a schedule of {what}{proved}")
    if (cut := cut_of(read)) is not None and proof.bound_s is not None:
        rate = f"{float(cut.bandwidth_Bps / 10**9):.9g} GB/s"
        echo(f"cut: {cut.nodes} of {cut.of} nodes, {cut.ranks} of {read.instance.npus} ranks; {rate} leave it")
    if completion is not None:
        told = completion.why if completion.seconds is None else f"{completion.seconds:.9g} s, {completion.model}"
        echo(f"completion time: {told}")
    if proof.bound_s is not None and read.instance.timing is not None:
        from ..schedules.questions import question_of

        echo(f"the bound is of the objective: {question_of(read.instance, read.answer)['question']}")
    if proof.time_s is not None:
        echo(f"flow time: {float(proof.time_s):.9g} s, of the most loaded link, latency left out")
    if proof.gap == 0:
        echo(f"optimal (flow, latency left out): flow time and bound are the same fraction, {proof.time_s} s")
    elif proof.gap is not None:
        echo(f"gap: {float(proof.gap):.3%}, exactly {proof.gap} of the flow time")
