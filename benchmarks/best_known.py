"""The library of best known schedules: runs of many methods on small problems, verified; the best ones are kept.

    python benchmarks/best_known.py             # writes studies/library/; minutes on one core
    python benchmarks/best_known.py --smoke -o build/library

A problem is a network, a collective and a size. Methods run with seed 0, one thread and a limit, tacos with several
numbers of chunks. The schedule with the least completion time is kept, and the largest bound that can be recomputed
from the network. A schedule that is in the folder already stays if no run is faster. Beside them are the declared
models as MPS and LP files.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any

import cwb
from cwb.core.bounds import CutCertificate, DistanceCertificate, LengthCertificate, PartitionCertificate
from cwb.core.errors import CwbError
from cwb.core.files import write_whole
from cwb.core.instance import Instance
from cwb.core.trees import Forest
from cwb.schedules.collective import exact_bound
from cwb.schedules.files import Written, read_schedule, write_schedule
from cwb.schedules.metrics import SIMULATED
from cwb.studies.best_known import FOLDER, digest_of
from cwb.studies.model_library import slug

NETWORKS = ("ring(8)", "mesh(3,3)", "torus(4,4)", "hypercube(4)", "dgx1()", "dgx_a100()")
COLLECTIVES = ("all_reduce", "all_gather", "all_to_all")
SIZES = ("1 MiB", "1 GiB")

VERSION = 2  #: Of the data set; a new one has other problems, models or better times.

#: Methods that take seconds.
METHODS = (
    *("ring", "direct", "rhd", "bruck", "bine", "torus-rings", "shifted-ring", "swing", "bfb", "bfb-chunked"),
    *("forestcoll", "forestcoll-allreduce", "multitree", "hierarchical", "pccl", "spff", "dbt", "blink", "nccl"),
    *("all-to-all-mcf", "all-to-all-schedule", "c-cube", "tto"),
)
CHUNKS = (1, 2, 4, 8)  #: Chunks of each rank, with which tacos runs.
LIMIT_S = 10.0

#: Methods whose bounds are compared.
BOUNDING = ("direct", "ring", "forestcoll", "all-to-all-mcf")

#: Bounds of the network alone, which hold for every schedule of a problem, however its data is divided.
CERTIFICATES = (CutCertificate, DistanceCertificate, LengthCertificate, PartitionCertificate)


def runs(problem: Instance, methods: tuple[str, ...]) -> Iterator[cwb.Run]:
    """The verified runs of a problem that have a schedule."""
    asked: list[tuple[str, dict[str, Any]]] = [(name, {}) for name in methods]
    asked += [("tacos", {"chunks": chunks}) for chunks in CHUNKS]
    for name, options in asked:
        try:
            run = cwb.solve(problem, name, time_limit_s=LIMIT_S, bounds="none", **options)
        except CwbError:
            continue
        if run.verified and run.metrics.get("completion_time_s") and isinstance(run.schedule, Written):
            yield run


def best_of(problem: Instance, methods: tuple[str, ...]) -> cwb.Run:
    """The run with the least completion time; of equal ones the first."""
    same = [run for run in runs(problem, methods) if digest_of(run.problem) == digest_of(problem)]
    return min(same, key=lambda run: run.metrics["completion_time_s"])


def proof_of(problem: Instance) -> tuple[float, dict[str, Any]]:
    """The largest bound on completion times that a certificate proves, and the certificate."""
    proofs = []
    for name in BOUNDING:
        run = cwb.solve(problem, name, time_limit_s=LIMIT_S, bounds="all")
        if isinstance(certificate := run.proved_by, CERTIFICATES):
            proved = exact_bound(problem, certificate)
            proofs += [] if proved is None else [(proved, certificate.to_json())]
    proved, certificate = max(proofs, key=lambda proof: proof[0])
    return float(proved), certificate


def write_problem(folder: Path, network: str, collective: str, size: str, methods: tuple[str, ...]) -> dict[str, Any]:
    """Write the best schedule of a problem, and return its entry of the index."""
    problem = cwb.load(network, collective=collective, size=size)
    name = slug(f"{network} {collective} {size.replace(' ', '')}")
    path = folder / f"{name}.json.gz"
    best = best_of(problem, methods)
    with tempfile.TemporaryDirectory() as made:
        new = Path(made) / path.name
        options = "".join(f" {option}={value}" for option, value in best.options.items())
        extra = {"model": f"{best.model}{options}"}
        pieces = best.metrics.get("pieces") if isinstance(best.schedule, Forest) else None
        write_schedule(new, best.problem, best.schedule, best.proved_by, extra, pieces)
        found = cwb.check(new).data
        before = cwb.check(path).data if path.exists() else None
        if before is None or not before["verified"] or found["completion_time_s"] < before["completion_time_s"]:
            write_whole(path, new.read_bytes())
        else:
            found = before
    if not found["verified"]:
        raise SystemExit(f"{path}: {found['violations'][0]}")
    time_s, (bound_s, certificate) = found["completion_time_s"], proof_of(problem)
    gap = 1 - bound_s / time_s
    if gap < -SIMULATED:
        raise SystemExit(f"{path}: it takes {time_s!r} s, but the bound is {bound_s!r} s")
    return {
        "name": name,
        "network": network,
        "collective": collective,
        "size": size,
        "problem_sha256": digest_of(problem),
        "time_s": time_s,
        "method": read_schedule(path).extra["model"],
        "file_sha256": sha256(path.read_bytes()).hexdigest(),
        "bound_s": bound_s,
        "certificate": certificate,
        "gap": gap if gap > SIMULATED else 0.0,
    }


def main() -> None:
    """Write the schedules and the index."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", "-o", type=Path, default=FOLDER)
    parser.add_argument("--smoke", action="store_true", help="one problem and few methods")
    asked = parser.parse_args()
    if asked.smoke and asked.output == FOLDER:
        parser.error("--smoke: expected another folder, --output")
    asked.output.mkdir(parents=True, exist_ok=True)
    problems = [*product(NETWORKS, COLLECTIVES, SIZES)][: 1 if asked.smoke else None]
    entries = []
    for network, collective, size in problems:
        entry = write_problem(asked.output, network, collective, size, METHODS[:3] if asked.smoke else METHODS)
        entries.append(entry)
        print(f"{entry['name']}: {entry['time_s']:.6g} s by {entry['method']}, gap {entry['gap']:.2%}", flush=True)
    lines = ",\n".join(map(json.dumps, entries))  # a line for each problem shows what has changed
    index = f'{{"schema": "cwb-best-known/1", "version": {VERSION}, "problems": [\n{lines}\n]}}\n'
    write_whole(asked.output / "index.json", index.encode())
    cwb.export_instances("declared", output=asked.output / "models")


if __name__ == "__main__":
    main()
