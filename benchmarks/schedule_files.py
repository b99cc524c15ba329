"""Write and read schedules in every form of file: ``python benchmarks/schedule_files.py [--smoke]``.

The same schedule goes to ``.json``, ``.json.gz`` and ``.npz``; bytes for each send, seconds of writing and reading, the
best of three, and what they are of the JSON text's.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import cwb
from cwb.schedules.files import read_schedule, write_schedule

#: Method, instance and collective of the schedules.
CASES = [("tacos", "torus(32,32)", "all_gather"), ("ring", "ring(1024)", "all_gather")]
SMOKE = [("tacos", "torus(8,8)", "all_gather")]


def seconds(work: Callable[[], object], repeat: int) -> float:
    """Return the least time of some runs."""
    times = []
    for _ in range(repeat):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return min(times)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="one small schedule, once")
    smoke = parser.parse_args().smoke
    for method, instance, collective in SMOKE if smoke else CASES:
        run = cwb.solve(instance, method, collective=collective, size="1 GiB")
        compare(run, repeat=1 if smoke else 3)


def compare(run: cwb.Run, repeat: int) -> None:
    """Print a line for every form of the file."""
    sends = len(run.schedule.sends.chunk)
    print(f"{run.model} on {run.instance}, {run.collective}: {sends:,} sends")
    base: tuple[float, float] | None = None
    with tempfile.TemporaryDirectory() as folder:
        for suffix in (".json", ".json.gz", ".npz"):
            path = Path(folder) / f"s{suffix}"
            wrote = seconds(partial(write_schedule, path, run.problem, run.schedule), repeat)
            read = seconds(partial(read_schedule, path), repeat)
            base = base or (wrote, read)
            print(
                f"{suffix:9}{path.stat().st_size / sends:6.2f} B a send, written in {wrote:.3f} s"
                f" ({base[0] / wrote:.1f}x), read in {read:.3f} s ({base[1] / read:.1f}x)"
            )


if __name__ == "__main__":
    main()
