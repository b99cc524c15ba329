"""Proved bounds and the best verified schedules of ten machines at all sizes.

    python benchmarks/findings/size_frontier.py -o docs/benchmarks/size-frontier.csv
    python benchmarks/findings/size_frontier.py --smoke

For every machine and collective, many methods make schedules for the smallest, a middle and the largest size. Each
schedule's time at every size is compared with the largest lower bound there: those without a search, which join
latency and bandwidth, and that of `forestcoll` or of the maximum concurrent flow, which has bandwidth alone.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cwb.studies.fastest_by_size import sizes_between
from cwb.studies.schedule_candidates import candidates, choice_of, distinct_candidates, flow_bound
from rich.console import Console
from rich.table import Table

#: Ten machines of cwb: direct networks, boxes of two vendors, a fat tree and a dragonfly.
MACHINES = (
    "ring(8)",
    "torus(4,4)",
    "hypercube(4)",
    "dgx1()",
    "dgx_a100(boxes=2)",
    "dgx_h100(boxes=2)",
    "mi250(boxes=2)",
    "mi300x(boxes=2)",
    "fat_tree(4)",
    "dragonfly(2,4)",
)
COLLECTIVES = ("all_gather", "all_reduce", "all_to_all")
MODELS = (
    "ring, direct, direct whole=true, rhd, rhd whole=true, bruck, dbt, knomial, torus-rings, shifted-ring, swing, "
    "bine, bfb, multitree, forestcoll k=1, forestcoll k=2, forestcoll, forestcoll-lp, switch-trees, nccl, "
    "nccl algorithm=tree, nccl algorithm=nvls, nccl algorithm=nvls-tree, hierarchical, blueconnect, fast, tacos, "
    "pccl, teccl, teccl-all-to-all"
)
FIRST, LAST = 1 << 10, 1 << 30  #: Sizes in bytes.


def rows(machine: str, collective: str, run_limit_s: float) -> Iterator[dict[str, Any]]:
    """Yield the best schedule and the bound of every half octave."""
    choice = choice_of(machine, collective, FIRST, LAST, MODELS, (1, 4), None, run_limit_s)
    sizes = sizes_between(FIRST, LAST)
    found = candidates(choice, progress=lambda text: print(text, file=sys.stderr))
    curves = distinct_candidates(found, choice, sizes)
    flow_s_per_byte = flow_bound(choice)
    for size in sizes:
        best, bound = min(curves, key=lambda one: one.seconds(size)), choice.bound(size, flow_s_per_byte)
        seconds = best.seconds(size)
        yield {
            "machine": machine,
            "collective": collective,
            "bytes": size,
            "method": best.label,
            "seconds": f"{seconds:.6g}",
            "bound_s": f"{bound:.6g}",
            "gap": f"{max(0.0, 1 - bound / seconds):.4f}",
        }


def main() -> None:
    """Write the table of all sizes, and print one row for each machine and collective."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machines", nargs="+", default=list(MACHINES))
    parser.add_argument("--collectives", nargs="+", default=list(COLLECTIVES))
    parser.add_argument("--run-limit", type=float, default=20.0, help="seconds of each method")
    parser.add_argument("--smoke", action="store_true", help="one small machine")
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    if given.smoke:
        given.machines, given.collectives, given.run_limit = ["ring(4)"], ["all_gather"], 2.0
    columns = "machine", "collective", "largest gap", "at bytes", "gap above 10 %", "within 1 % from", "CPU s"
    table = Table(*columns)
    every: list[dict[str, Any]] = []
    for machine in given.machines:
        for collective in given.collectives:
            begin = time.process_time()
            found = list(rows(machine, collective, given.run_limit))
            every += found
            worst = max(found, key=lambda row: float(row["gap"]))
            wide = [row["bytes"] for row in found if float(row["gap"]) > 0.1]
            near = [row["bytes"] for row in found if float(row["gap"]) > 0.01]
            table.add_row(
                machine,
                collective,
                f"{float(worst['gap']):.1%}",
                f"{worst['bytes']:,}",
                f"{wide[0]:,} to {wide[-1]:,}" if wide else "-",
                "all" if not near else "none" if near[-1] == LAST else f"{near[-1]:,}",
                f"{time.process_time() - begin:.0f}",
            )
            if given.output:
                with given.output.open("w", newline="") as file:
                    writer = csv.DictWriter(file, list(every[0]), lineterminator="\n")
                    writer.writeheader()
                    writer.writerows(every)
    Console(width=160).print(table)


if __name__ == "__main__":
    main()
