"""Speed-up of a comparison with more processes at a time.

    python benchmarks/compare_scaling.py              # 1 and 2 jobs, 24 runs
    python benchmarks/compare_scaling.py --smoke      # 4 small runs
    python benchmarks/compare_scaling.py --suite smoke --jobs 2
    python benchmarks/compare_scaling.py --dask       # the same on 1 and 2 workers of a Dask cluster

Prints seconds of the wall, seconds of the processor in all processes, and the speedup by the wall. On a machine that is
busy with something else the wall says little. So the states of all threads of the comparison are looked at every 20 ms
(Linux): ``busy`` is how many of them run or wait for a processor, of as many as there are jobs. It is split into the
time until the first run is done, the time until a job has nothing left to begin, and the rest.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any

from cwb.harness import plan
from cwb.harness.plan import Cell
from cwb.harness.request import Request
from cwb.harness.suite import ComparisonProgress, Settings, run_cells
from cwb.harness.suite_file import load_suite


def cells(network: str, number: int) -> list[Cell]:
    """Make runs, on a torus of 256 ranks of about a second each."""
    return [Cell(network, Request("multitree", seed=seed), "all_reduce", "1 MiB") for seed in range(number)]


class ThreadWatch:
    """Looks every 20 ms at the threads of this process and of all that descend from it.

    Parameters
    ----------
    jobs : int
        More threads than these are not counted.
    """

    def __init__(self, jobs: int) -> None:
        self.jobs, self.seen = jobs, list[tuple[float, int]]()
        self.first = self.last = float("inf")
        self._over, self._thread = threading.Event(), threading.Thread(target=self._look)

    def record_tally(self, tally: ComparisonProgress) -> None:
        """Note when the first run is done, and when fewer are left than jobs."""
        now = time.perf_counter()
        self.first = min(self.first, now if tally.runs else self.first)
        if tally.total - tally.runs - tally.others < self.jobs:
            self.last = min(self.last, now)

    def __enter__(self) -> ThreadWatch:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        """End."""
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        own = threading.get_native_id()
        while not self._over.wait(0.02):
            busy = sum(state in "RD" for thread, state in _threads(os.getpid()) if thread != own)
            self.seen.append((time.perf_counter(), min(busy, self.jobs)))

    def shares(self) -> str:
        """Busy share of all, and of the three times."""
        spans = ((0.0, float("inf")), (0.0, self.first), (self.first, self.last), (self.last, float("inf")))
        found = [[busy for at, busy in self.seen if begin <= at < end] for begin, end in spans]
        whole, *parts = [f"{sum(some) / len(some) / self.jobs:.0%}" if some else "-" for some in found]
        return f"{whole} ({', '.join(parts)})"


def _threads(root: int) -> Iterator[tuple[int, str]]:
    """Every thread of a process and of its descendants with its state."""
    children: dict[int, list[int]] = {}
    for process in Path("/proc").glob("[0-9]*"):
        for _, parent in _stat(process):
            children.setdefault(parent, []).append(int(process.name))
    waiting = [root]
    while waiting:
        process = waiting.pop()
        waiting += children.get(process, [])
        for thread in Path(f"/proc/{process}/task").glob("*"):
            yield from ((int(thread.name), state) for state, _ in _stat(thread))


def _stat(folder: Path) -> list[tuple[str, int]]:
    """State and parent of a process or thread; nothing where it has ended."""
    with suppress(OSError):
        state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
        return [(state, int(parent))]
    return []


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
    parser.add_argument("--suite", help="the runs of a suite")
    parser.add_argument("--jobs", type=int, nargs="+", default=[1, 2])
    asked = parser.parse_args()
    runs = cells("torus(6,6)", 4) if asked.smoke else cells("torus(16,16)", 24)
    if asked.suite is not None:
        runs = plan.cells(load_suite(asked.suite))
    first = None
    heading = ("jobs", "runs", "wall (s)", "processor (s)", "busy (start, middle, end)", "speedup")
    print(f"| {' | '.join(heading)} |\n" + "|---" * len(heading) + "|")
    for jobs in asked.jobs:
        with (
            tempfile.TemporaryDirectory() as folder,
            cluster(jobs, dask=asked.dask) as made,
            ThreadWatch(jobs) as watch,
        ):
            where = made.scheduler_address.replace("tcp://", "dask://") if made else "local"
            begin, before = time.perf_counter(), os.times()
            settings = Settings(executor=where, jobs=jobs)
            comparison = run_cells(runs, Path(folder) / "records.jsonl", settings=settings, watch=watch.record_tally)
            wall, after = time.perf_counter() - begin, os.times()
        used = sum(after[:4]) - sum(before[:4])
        first = first or wall
        processor, busy = ("-", "-") if asked.dask else (f"{used:.1f}", watch.shares())
        cells_of_row = (jobs, len(comparison.records), f"{wall:.1f}", processor, busy, f"{first / wall:.2f}")
        print(f"| {' | '.join(map(str, cells_of_row))} |", flush=True)


if __name__ == "__main__":
    main()
