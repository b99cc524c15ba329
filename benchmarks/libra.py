"""LIBRA's solve times: every reference row on every installed solver, in one run.

    python benchmarks/libra.py            # all rows of tests/reference/libra.csv
    python benchmarks/libra.py --solver highs
    python benchmarks/libra.py --smoke    # two rows, to see that it runs

Prints, for every solver and objective, the median of build + transfer + solve and its ratio to HiGHS, the median of
the whole run with its verification, and the most linear programs (nodes on Gurobi and SCIP); the objectives' largest
relative difference from HiGHS; the peak memory of the process. A first run of each solver is not counted: it imports
libraries.
"""

from __future__ import annotations

import argparse
import csv
import resource
from pathlib import Path
from statistics import median

from cwb import solvers
from cwb.core.record import RunRecord
from cwb.harness import Request, run_one
from cwb.instances import load
from rich.console import Console
from rich.table import Table

REFERENCE = Path(__file__).parents[1] / "tests" / "reference" / "libra.csv"
SLUGS = {"GPT_3": "gpt-3", "MSFT_1T": "msft-1t", "Turing_NLG": "turing-nlg", "ResNet_50": "resnet-50", "DLRM": "dlrm"}
HEADINGS = (
    *("solver", "objective", "answered", "median s", "largest s", "to highs", "median of all s", "most LPs"),
    *("largest difference", "largest gap"),
)
OBJECTIVES = {"PerfOpt": "perf", "PerfPerCostOpt": "perf-per-cost"}


def cells() -> list[tuple[str, dict[str, str]]]:
    """Instance and options of every reference row."""
    found: list[tuple[str, dict[str, str]]] = []
    with REFERENCE.open() as lines:
        for row in csv.DictReader(lines):
            name = f"{SLUGS[row['workload']]}-{row['net']}"
            options = {"objective": OBJECTIVES[row["objective"]]}
            if row["constraint"] == "multiple":
                found.append((f"{name}-multiple", options))
            else:
                found.append((name, options | {"total_bandwidth": f"{row['constraint']} GB/s"}))
    return found


def solve_seconds(record: RunRecord) -> float:
    """Build, transfer and solve, as the record has them."""
    return sum(record.seconds.get(phase, 0.0) for phase in ("build", "transfer", "solve"))


def main() -> None:
    """Run the rows and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smoke", action="store_true", help="two rows only")
    parser.add_argument("--solver", action="append", help="this solver beside HiGHS instead of all")
    args = parser.parse_args()
    rows = cells()
    if args.smoke:
        rows = [rows[0], rows[-1]]
    console = Console(width=140)
    results: dict[str, list[RunRecord]] = {}
    for solver in dict.fromkeys(("highs", *(args.solver or solvers.names()))):
        if not solvers.get(solver).installation().ok:
            console.print(f"{solver}: not installed, left out")
            continue
        name, options = rows[0]
        run_one(load(name), Request("libra", solver, options))
        results[solver] = [run_one(load(name), Request("libra", solver, options)) for name, options in rows]
    table = Table(title=f"libra on {len(rows)} reference rows")
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading in HEADINGS[:2] else "right")
    for objective in OBJECTIVES.values():
        chosen = [i for i, (_, options) in enumerate(rows) if options["objective"] == objective]
        baseline = [results["highs"][i] for i in chosen]
        for solver, records in results.items():
            table.add_row(solver, objective, *summary([records[i] for i in chosen], baseline))
    console.print(table)
    console.print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10:.0f} MiB")


def summary(records: list[RunRecord], baseline: list[RunRecord]) -> list[str]:
    """One solver's numbers on the rows of one objective, beside those of HiGHS."""
    times = [solve_seconds(record) for record in records]
    answered = [(r, b) for r, b in zip(records, baseline, strict=True) if r.objective is not None]
    difference = max((abs(r.objective / b.objective - 1) for r, b in answered), default=float("nan"))
    return [
        f"{len(answered)}/{len(records)}",
        f"{median(times):.4f}",
        f"{max(times):.4f}",
        f"{median(times) / median(map(solve_seconds, baseline)):.2f}",
        f"{median(record.seconds['total'] for record in records):.4f}",
        str(max(record.metrics.get("iterations", 0) for record in records)),
        f"{difference:.1e}",
        f"{max((r.gap for r in records if r.gap is not None), default=float('nan')):.1e}",
    ]


if __name__ == "__main__":
    main()
