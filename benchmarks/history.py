"""CPU seconds of methods by commit, as ratios to a baseline commit that is measured in the same run.

    python benchmarks/history.py --base v0.1.0               # prints the ratios
    python benchmarks/history.py --base HEAD~20 --append     # and adds them to docs/benchmarks/history.csv
    python benchmarks/history.py --smoke                     # one small series against HEAD

The files of both sides, of this checkout with its changes to tracked files, are unpacked into temporary folders, which
have no compiled code. The sides take turns, each time in a process of its own, which runs the method once, so that
imports and compilation do not count, and then for two seconds. Of each side the least processor time counts, which
other programs on the machine change least, but they do change it: on a busy machine, measure a large ratio again. The
exit status is 1 if a series takes more than LIMIT times as long as in the baseline.
"""

from __future__ import annotations

import argparse
import csv
import io
import os
import subprocess
import sys
import tarfile
import tempfile
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "docs" / "benchmarks" / "history.csv"
HEADINGS = ("date", "commit", "baseline", "series", "baseline_s", "seconds", "ratio")

#: Method, network and collective: sizes of benchmarks/scaling.py.
SERIES = (
    ("forestcoll", "dgx_a100(boxes=512)", "all_gather"),
    ("ring", "torus(16,16)", "all_reduce"),
    ("bfb", "torus(24,24)", "all_gather"),
    ("multitree", "torus(16,16)", "all_reduce"),
    ("tacos", "mesh(20,20)", "all_gather"),
    ("pccl", "mesh(5,5,5)", "all_to_all"),
)
SMOKE = (("ring", "torus(4,4)", "all_reduce"),)

#: Program of the measuring process, which gets a series as arguments; it uses public names alone.
MEASURE = """
import os, sys
from time import process_time
import cwb
assert cwb.__file__.startswith(os.getcwd()), cwb.__file__
method, network, collective = sys.argv[1:]
cwb.solve(network, method, collective=collective, size="1 MiB")
times = []
while len(times) < 3 or sum(times) < 2:
    begin = process_time()
    run = cwb.solve(network, method, collective=collective, size="1 MiB")
    times.append(process_time() - begin)
assert run.verified, run.message
print(min(times))
"""


def git(*words: str) -> bytes:
    """Output of a command of git on this checkout."""
    return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, check=True).stdout


def seconds(folder: Path, series: tuple[str, ...]) -> float:
    """Measure a series once with the package ``cwb`` in a folder."""
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    command = [sys.executable, "-c", MEASURE, *series]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(series)}: {done.stderr.strip().splitlines()[-1]}")
    return float(done.stdout.split()[-1])


def main() -> int:
    """Measure both sides and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", default="HEAD", metavar="COMMIT", help="the baseline")
    parser.add_argument("--only", nargs="+", metavar="METHOD", help="these methods alone")
    parser.add_argument("--repeat", type=int, default=5, help="processes of each side")
    parser.add_argument("--limit", type=float, default=1.2, help="ratio above which a series counts as slower")
    parser.add_argument("--append", action="store_true", help=f"add the rows to {FILE.relative_to(ROOT)}")
    parser.add_argument("--smoke", action="store_true", help="one small series, once, of which any ratio is right")
    asked = parser.parse_args()
    commit = git("describe", "--always", "--dirty").decode().strip()
    base = git("rev-parse", "--short", f"{asked.base}^{{commit}}").decode().strip()
    ratios = []
    with tempfile.TemporaryDirectory() as made:
        sides = [Path(made) / "base", Path(made) / "here"]
        for side, tree in zip(sides, (base, git("stash", "create").decode().strip() or "HEAD"), strict=True):
            (side / "cwb").mkdir(parents=True)
            with tarfile.open(fileobj=io.BytesIO(git("archive", tree))) as archive:
                archive.extractall(side / "cwb", filter="data")
        chosen = SMOKE if asked.smoke else [one for one in SERIES if not asked.only or one[0] in asked.only]
        for series in chosen:
            turns = [[seconds(side, series) for side in sides] for _ in range(1 if asked.smoke else asked.repeat)]
            before, after = map(min, zip(*turns, strict=True))
            ratio = after / before
            today = datetime.now(UTC).date().isoformat()
            label = " ".join(series)
            ratios.append(ratio)
            row = (today, commit, base, label, f"{before:.4f}", f"{after:.4f}", f"{ratio:.3f}")
            told = "  SLOWER" if ratio > asked.limit and not asked.smoke else ""
            print(f"{label}: {before:.3f} s in {base}, {after:.3f} s here, ratio {ratio:.2f}{told}", flush=True)
            if asked.append:
                rows = [row] if FILE.exists() else [HEADINGS, row]
                with FILE.open("a", newline="", encoding="utf-8") as stream:
                    csv.writer(stream, lineterminator="\n").writerows(rows)
    return int(not asked.smoke and max(ratios) > asked.limit)


if __name__ == "__main__":
    sys.exit(main())
