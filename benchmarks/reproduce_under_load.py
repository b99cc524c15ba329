"""Verdicts and exit status of ``cwb reproduce`` on a busy machine, compared with a quiet one.

    python benchmarks/reproduce_under_load.py                      # all papers, alone and beside 8 busy processes
    python benchmarks/reproduce_under_load.py mtree --processes 4  # one paper
    python benchmarks/reproduce_under_load.py --smoke              # one cheap table

Every run is a process of its own, so that nothing of the first is left for the second. Seconds of computing are in no
verdict and are not compared; neither are ours of rows that print them. Exit status 1 says that a row has another
verdict, reason or number under load.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cwb.studies.reproduce import papers

SMOKE = ("te-ccl", "Table 3")


def burn() -> None:
    """Keep a core busy until the process is ended."""
    while True:
        sum(range(10**6))


@contextmanager
def load(processes: int) -> Iterator[None]:
    """Run busy processes beside what is done inside."""
    busy = [multiprocessing.Process(target=burn, daemon=True) for _ in range(processes)]
    for process in busy:
        process.start()
    try:
        yield
    finally:
        for process in busy:
            process.terminate()
            process.join()


def run_reproduction(asked: list[str], folder: Path) -> tuple[list[dict[str, Any]], int, float]:
    """Reproduce a paper or one of its tables in a process of its own: rows, exit status, seconds."""
    file = folder / "rows.json"
    file.unlink(missing_ok=True)
    started = time.perf_counter()
    command = [sys.executable, "-m", "cwb", "reproduce", *asked, "--quiet", "-o", str(file)]
    status = subprocess.run(command, check=False, stderr=subprocess.PIPE, text=True)
    if not file.exists():
        raise SystemExit(status.stderr)
    return json.loads(file.read_text()), status.returncode, time.perf_counter() - started


def stable_cells(row: dict[str, Any]) -> tuple[object, ...]:
    """Return the cells of a row that must not change: all but the computing times."""
    return row["verdict"], row["reason"], None if row["verdict"] == "wall time" else row["ours"]


def compare(asked: list[str], processes: int, folder: Path) -> int:
    """Reproduce alone and under load; print counts and what changed, and give how much did."""
    alone, status, quiet_s = run_reproduction(asked, folder)
    with load(processes):
        beside, loaded, busy_s = run_reproduction(asked, folder)
    changed = [pair for pair in zip(alone, beside, strict=True) if stable_cells(pair[0]) != stable_cells(pair[1])]
    counts = ", ".join(f"{count} {verdict}" for verdict, count in Counter(row["verdict"] for row in alone).items())
    print(f"{' '.join(asked)}: {counts}; exit status {status}, under load {loaded}; {quiet_s:.0f} s, {busy_s:.0f} s")
    for before, after in changed:
        print(
            f"  {before['table']}, {before['row']}, {before['column']}: "
            f"{stable_cells(before)} alone, {stable_cells(after)} under load"
        )
    return len(changed) + (status != loaded)


def main() -> int:
    """Compare what is asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("papers", nargs="*", default=papers(), metavar="PAPER")
    parser.add_argument("--processes", type=int, default=8, help="busy processes beside it (8)")
    parser.add_argument("--quick", action="store_true", help="leave out rows that need a slow run")
    parser.add_argument("--smoke", action="store_true", help="one cheap table beside two processes")
    args = parser.parse_args()
    quick = ["--quick"] if args.quick else []
    todo = [list(SMOKE)] if args.smoke else [[paper, *quick] for paper in args.papers]
    with TemporaryDirectory() as folder:
        changed = sum(compare(asked, 2 if args.smoke else args.processes, Path(folder)) for asked in todo)
    print(f"{changed} differences")
    return 1 if changed else 0


if __name__ == "__main__":
    raise SystemExit(main())
