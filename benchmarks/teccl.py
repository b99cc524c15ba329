"""Proof before search: seconds per reference row of all-gathers, scale beyond the paper, chunks per GPU.

    python benchmarks/teccl.py rows
    python benchmarks/teccl.py scale [--large]
    python benchmarks/teccl.py chunks
    python benchmarks/teccl.py random FIRST LAST [EFFORT]

Seconds are those of the processor. ``random`` solves random problems of five families, one for every seed from FIRST
up to LAST, which is left out.
"""

from __future__ import annotations

import argparse
import csv
import resource
import sys
import time
from fractions import Fraction
from pathlib import Path

from cwb.core.collective import Collective, Demand
from cwb.core.record import RunRecord
from cwb.harness import Request, run_one
from cwb.instances import load

ROWS = Path(__file__).parent.parent / "tests" / "reference" / "teccl-allgather.csv"

#: Networks by the names of the reference; of NDv2 with two chassis the published files have GPU 0 as a switch.
NETWORKS = {
    ("NDv2", "2"): ("ndv2(chassis=2, variant=repo)", 16),
    ("NDv2", "4"): ("ndv2(chassis=4)", 32),
    ("DGX2", "2"): ("dgx2(chassis=2)", 32),
}

SCALE = ["ndv2(chassis=8)", "ndv2(chassis=16)", "ndv2(chassis=32)", "torus(4,4,4)", "torus(6,6,6)"]
LARGE = [
    "torus(8,8,8)",
    "ndv2(chassis=64)",
    "torus(8,8,16)",
    "ndv2(chassis=128)",
    "amd(chassis=2)",
    "amd(chassis=4)",
    "amd(chassis=8)",
    "amd(chassis=16)",
]


def solve(spec: str, size: Fraction, **options: object) -> tuple[RunRecord, float]:
    """Solve one all-gather; the record, and processor seconds with everything that belongs to it."""
    instance = load(spec).with_changes(demand=Demand(Collective.ALL_GATHER, size))
    begin = time.process_time()
    record = run_one(instance, Request("teccl", options=options))
    return record, time.process_time() - begin


def line(name: str, record: RunRecord, seconds: float, *more: str) -> None:
    """Print one row."""
    metrics = record.metrics
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    low, high = metrics.get("lower_bound_epochs"), metrics.get("epochs")
    gap = f"{100 * (high - low) / low:.2f} %" if low and high else "-"
    cells = [name, low, high, gap, record.status, record.verified, f"{seconds:.2f}", memory, *more]
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def head(*more: str) -> None:
    """Print the head of a table."""
    cells = ["instance", "bound", "epochs", "gap", "status", "verified", "seconds", "MB", *more]
    print("| " + " | ".join(cells) + " |\n" + "|---" * len(cells) + "|")


def rows() -> None:
    """Print every all-gather of the reference."""
    head("reference", "reference's seconds")
    total, theirs = 0.0, 0.0
    solve("ndv2(chassis=4)", Fraction(10**9))  # compiles
    for row in csv.DictReader(ROWS.read_text().splitlines()):
        spec, gpus = NETWORKS[row["topology"], row["chassis"]]
        if row["topology"] == "DGX2" and row["epoch_type"] == "Fast_Early_Stop":
            gpus = 16  # the published inputs have eight GPUs a chassis there, and so chunks of twice the size
        chunk = Fraction(row["output_bytes"]) / gpus
        record, seconds = solve(
            spec,
            chunk * int(row["gpus_in_model"]),
            chunk_size=f"{float(chunk):.12g} B",
            epoch_duration=f"{float(row['epoch_duration_s']):.10g} s",
        )
        name = " ".join(row[key] for key in ("topology", "chassis", "epoch_type", "size"))
        line(name, record, seconds, row["epochs"], row["solver_time_s"])
        total, theirs = total + seconds, theirs + float(row["solver_time_s"])
    print(f"\n{total:.1f} s; the reference {theirs:.0f} s")


def scale(specs: list[str]) -> None:
    """Print all-gathers of 1 GB and of 1 MB on large networks, with the fastest link's epoch."""
    head()
    for spec in specs:
        for name, size in (("1 GB", 10**9), ("1 MB", 10**6)):
            record, seconds = solve(spec, Fraction(size))
            line(f"{spec} {name}", record, seconds)


def chunks() -> None:
    """Print all-gathers of 1 GB in more and more chunks."""
    head("finish in ms")
    for spec in ("ndv2(chassis=2)", "ndv2(chassis=4)", "dgx1()", "amd(chassis=2)"):
        for count in (1, 2, 4, 8):
            record, seconds = solve(spec, Fraction(10**9), chunks=count)
            line(f"{spec} {count} chunks", record, seconds, f"{1000 * (record.objective or 0):.3f}")


def random_problems(seeds: range, effort: int) -> None:
    """Print what stays open, and a summary by family."""
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "models" / "teccl"))
    from search_families import FAMILIES, instance_of, random_case

    head("proof")
    proved = dict.fromkeys(FAMILIES, 0)
    tried, refused, worst, begin = dict.fromkeys(FAMILIES, 0), 0, 0.0, time.process_time()
    for seed in seeds:
        case = random_case(seed)
        instance, options = instance_of(case)
        started = time.process_time()
        record = run_one(instance, Request("teccl", options={**options, "effort": effort}))
        tried[case.family] += 1
        proved[case.family] += record.status == "optimal"
        refused += record.verified is not True
        if record.status != "optimal" or record.verified is not True:
            low, high = record.metrics.get("lower_bound_epochs", 0), record.metrics.get("epochs", 0)
            worst = max(worst, high / low - 1 if low else 0.0)
            line(f"{seed} {record.instance}", record, time.process_time() - started, record.metrics.get("proof", "-"))
    print(
        f"\nseeds {seeds.start} to {seeds.stop - 1}: {sum(proved.values())} of {sum(tried.values())} proved optimal, ",
        end="",
    )
    print(
        f"the others within {100 * worst:.1f} %, {refused} refused by the verifier, {time.process_time() - begin:.0f} s"
    )
    print(", ".join(f"{family} {proved[family]} of {tried[family]}" for family in FAMILIES))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    sections = parser.add_subparsers(dest="section", required=True)
    sections.add_parser("rows")
    sections.add_parser("scale").add_argument("--large", action="store_true")
    sections.add_parser("chunks")
    seeds = sections.add_parser("random")
    seeds.add_argument("first", type=int)
    seeds.add_argument("last", type=int)
    seeds.add_argument("effort", type=int, nargs="?", default=200)
    asked = parser.parse_args()
    match asked.section:
        case "rows":
            rows()
        case "scale":
            scale(LARGE if asked.large else SCALE)
        case "chunks":
            chunks()
        case _:
            random_problems(range(asked.first, asked.last), asked.effort)
