"""How much faster a comparison is with more processes at a time.

    python benchmarks/compare_scaling.py              # 1 and 2 jobs, 24 runs
    python benchmarks/compare_scaling.py --smoke      # 4 runs
    python benchmarks/compare_scaling.py --dask       # the same on 1 and 2 workers of a Dask cluster

Prints seconds of the wall, seconds of the processor in all processes, and the speedup by the wall. On a machine that is
busy with something else the wall says little: the share is the processor's part of what the jobs could have had.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from cwb.harness.plan import Cell
from cwb.harness.request import Request
from cwb.harness.suite import Settings, run_cells


def cells(number: int) -> list[Cell]:
    """Make runs of about a second each."""
    return [Cell("torus(6,6)", Request("multitree", seed=seed), "all_reduce", "1 MiB") for seed in range(number)]


def cluster(workers: int, *, dask: bool) -> AbstractContextManager[Any]:
    """A Dask cluster, or nothing."""
    if not dask:
        return nullcontext()
    from distributed import LocalCluster

    made: AbstractContextManager[Any] = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None)
    return made


def main() -> None:
    """Print a line for each number of jobs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--dask", action="store_true")
    parser.add_argument("--jobs", type=int, nargs="+", default=[1, 2])
    asked = parser.parse_args()
    runs = cells(4 if asked.smoke else 24)
    first = None
    print("| jobs | runs | wall (s) | processor (s) | share | speedup |\n|---|---|---|---|---|---|")
    for jobs in asked.jobs:
        with tempfile.TemporaryDirectory() as folder, cluster(jobs, dask=asked.dask) as made:
            where = made.scheduler_address.replace("tcp://", "dask://") if made else "local"
            begin, before = time.perf_counter(), os.times()
            comparison = run_cells(runs, Path(folder) / "records.jsonl", settings=Settings(executor=where, jobs=jobs))
            wall, after = time.perf_counter() - begin, os.times()
        used = sum(after[:4]) - sum(before[:4])
        first = first or wall
        processor, share = ("-", "-") if asked.dask else (f"{used:.1f}", f"{used / wall / jobs:.0%}")
        print(
            f"| {jobs} | {len(comparison.records)} | {wall:.1f} | {processor} | {share} | {first / wall:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
