"""Hold every method and formulation to its time limit and to Ctrl-C, on an instance that is too large for it.

    python benchmarks/limits.py                                  # everything: hours
    python benchmarks/limits.py --limits 5 --busy 0 --moments    # every method once
    python benchmarks/limits.py --only teccl-milp sccl --limits 2 5
    python benchmarks/limits.py --page docs/limits.md -o limits.jsonl    # the table of the page: an hour
    python benchmarks/limits.py --smoke                          # a few seconds

Each cell is one process of ``cwb solve``. The table says by how many seconds it was over its limit, all counted: by the
wall and by its own processor time after the limit (which other processes do not prolong), what the verifier and the
file took of them, and whether a record and a file were left. Ctrl-C is sent when the process has used so many seconds
of the processor, and the limit is that moment. With ``-o`` every cell is written to a file as it comes, and those that
are in the file are not run again.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GATHER, REDUCE, ALL_TO_ALL = "all_gather", "all_reduce", "all_to_all"
LATE = "late_all_reduce"

RAILS = ('bandwidth=["200 GB/s","100 GB/s","50 GB/s"]',)

#: Instances on which a method has work for more than a few seconds, or the largest that it accepts.
METHODS: dict[str, tuple[str, str | None, tuple[str, ...]]] = {
    "libra": ("gpt-3-4d", None, ()),
    "libra-equal": ("gpt-3-4d", None, ()),
    "libra-codesign": ("msft-1t-hp-4d", None, ()),
    "ring": ("mesh(50,90)", GATHER, ()),
    "direct": ("torus(32,32)", REDUCE, ()),
    "rhd": ("torus(32,32)", REDUCE, ()),
    "bruck": ("torus(32,32)", GATHER, ()),
    "bine": ("torus(32,32)", REDUCE, ()),
    "dbt": ("torus(64,64)", REDUCE, ()),
    "knomial": ("torus(64,64)", REDUCE, ()),
    "torus-rings": ("torus(32,32)", REDUCE, ()),
    "shifted-ring": ("circulant(n=1025, offsets=[1,2])", REDUCE, ()),
    "swing": ("torus(32,32)", REDUCE, ()),
    "bfb": ("torus(32,32)", GATHER, ()),
    "bfb-lp": ("torus(16,16)", GATHER, ()),
    "bfb-chunked": ("torus(16,16)", GATHER, ()),
    "bfb-heterogeneous": ("torus(16,16)", GATHER, ()),
    "all-to-all-mcf": ("random_regular(n=200,degree=4,seed=1)", ALL_TO_ALL, ()),
    "all-to-all-schedule": ("random_regular(n=160,degree=4,seed=1)", ALL_TO_ALL, ()),
    "blueconnect": ("RI(32)_FC(8)_SW(32)", REDUCE, RAILS),
    "themis": ("RI(32)_FC(8)_SW(32)", REDUCE, RAILS),
    "themis-lp": ("RI(32)_FC(8)_SW(32)", REDUCE, RAILS),
    "teccl-milp": ("a100(boxes=64)", GATHER, ()),
    "teccl-lp": ("torus(16,16)", GATHER, ()),
    "teccl-astar": ("torus(16,16)", GATHER, ()),
    "teccl": ("torus(16,16)", GATHER, ()),
    "teccl-all-to-all": ("torus(16,16)", ALL_TO_ALL, ()),
    "sccl": ("torus(16,16)", GATHER, ()),
    "fast": ("dgx_h100(boxes=16)", ALL_TO_ALL, ("rails=optimal",)),
    "straggler": ("switch(512)", LATE, ()),
    "expert-placement": ("experts(gpus=144, slots=2, experts=256, layers=58)", None, ("search=exact",)),
    "spff": ("torus(16,16)", GATHER, ()),
    "tacos": ("torus(32,32)", GATHER, ()),
    "taccl": ("torus(16,16)", GATHER, ()),
    "forestcoll": ("torus(32,32)", GATHER, ("symmetry=none",)),
    "forestcoll, tree-orbits": ("torus(32,16,16)", GATHER, ()),
    "forestcoll-lp": ("torus(16,16)", GATHER, ()),
    "forestcoll-allreduce": ("torus(16,16)", REDUCE, ()),
    "blink": ("torus(16,16)", REDUCE, ()),
    "blink-switch": ("a100(boxes=16)", REDUCE, ()),
    "multitree": ("torus(32,32)", REDUCE, ()),
    "switch-trees": ("dgx_h100(boxes=256,nvls=true)", REDUCE, ("trees=4096",)),
    "hierarchical": ("a100(boxes=32)", REDUCE, ()),
    "nccl": ("dgx_h100(boxes=64)", GATHER, ()),
    "rccl": ("mi300x(boxes=64)", GATHER, ()),
    "c-cube": ("dgx1()", REDUCE, ()),
    "tto": ("mesh(32,32)", REDUCE, ()),
    "ten-ilp": ("torus(16,16)", GATHER, ()),
    "pccl": ("mesh(10,10,10)", ALL_TO_ALL, ()),
    "mtree": ("torus(16,16)", REDUCE, ("trees=3", "height=20")),
    "gost": ("torus(16,16)", REDUCE, ("trees=5", "height=20")),
    "mtree-repair": (
        "ring(4)",
        REDUCE,
        (
            'previous=[{"links": [["0","1",0],["1","2",0],["2","3",0]], "root": "1", "units": 1}]',
            'changes=["0-1=0.5"]',
        ),
    ),
    "topoadopt": ("torus(16,16)", REDUCE, ("trees=3",)),
    "blink-wan": ("torus(16,16)", REDUCE, ()),
    "single-tree": ("torus(16,16)", REDUCE, ()),
    "wan-ring": ("torus(16,16)", REDUCE, ()),
    "plink": ("torus(16,16)", REDUCE, ()),
    "psld": ("torus(16,16)", REDUCE, ()),
}

FORMULATIONS: dict[str, tuple[str, str | None, tuple[str, ...]]] = {
    "libra/allocation": ("gpt-3-4d", None, ()),
    "bfb/lp": ("torus(16,16)", GATHER, ()),
    "bfb/chunked": ("torus(16,16)", GATHER, ()),
    "bfb/heterogeneous": ("torus(16,16)", GATHER, ()),
    "mcf/flow": ("torus(14,14)", ALL_TO_ALL, ()),
    "mcf/classes": ("random_regular(n=200,degree=4,seed=1)", ALL_TO_ALL, ()),
    "forestcoll/optimum": ("torus(20,20)", GATHER, ()),
    "forestcoll/max-flow": ("torus(32,32)", GATHER, ()),
    "forestcoll/allreduce": ("torus(16,16)", REDUCE, ()),
    "taccl/routing": ("torus(16,16)", GATHER, ()),
    "taccl/contiguity": ("torus(16,16)", GATHER, ()),
    "ten/ilp": ("torus(16,16)", GATHER, ()),
    "multirail/themis": METHODS["themis-lp"],
    "expert-placement/slots": ("experts(gpus=64, slots=5, experts=256)", None, ()),
    "fast/rails": ("dgx_h100(boxes=16)", ALL_TO_ALL, ()),
    "straggler/rounds": ("switch(12)", LATE, ()),
    "sccl/rounds": ("torus(16,16)", GATHER, ()),
    "teccl/milp": ("torus(10,10)", GATHER, ()),
    "teccl/lp": ("torus(16,16)", GATHER, ()),
    "teccl/astar": ("torus(16,16)", GATHER, ()),
    "teccl/all-to-all": ("torus(16,16)", ALL_TO_ALL, ()),
    "mtree/selection": ("gscale", None, ("trees=3", "height=4")),
    "mtree/patterns": ("torus(16,16)", REDUCE, ("trees=3",)),
    "mtree/rates": ("torus(16,16)", REDUCE, ()),
    "mtree/restricted-master": ("gscale", None, ()),
    "mtree/pricing": ("torus(16,16)", REDUCE, ()),
    "mtree/repair": METHODS["mtree-repair"],
    "mtree/repair-patterns": METHODS["mtree-repair"],
    "wan/blink-units": ("torus(16,16)", REDUCE, ()),
}

#: A cell that is not over by so many seconds is left to itself no longer.
PATIENCE_S = 60.0

#: Of the page: limits, processes beside, when Ctrl-C comes in parts of the largest limit, and where the table is.
PAGE_LIMITS, PAGE_BUSY, MOMENTS = (2.0, 5.0), 8, (0.2, 0.5, 0.9)
MARKS = ("<!-- begin: python benchmarks/limits.py --page docs/limits.md -->", "<!-- end -->")

#: Seconds that a run may go on after its limit or Ctrl-C on a quiet machine.
ALLOWED_S = 2.0


@dataclass(frozen=True)
class Cell:
    """One process: a method or formulation, its limit, how many processes are beside it, and when Ctrl-C comes."""

    name: str
    limit_s: float
    busy: int
    moment: float | None = None

    def command(self, folder: Path) -> list[str]:
        """The command line."""
        kind = "--formulation" if "/" in self.name else "--model"
        instance, collective, options = (FORMULATIONS if "/" in self.name else METHODS)[self.name]
        model = self.name.partition(",")[0]  # after a comma: what differs from another row of the same method
        command = [sys.executable, "-m", "cwb", "solve", kind, model, instance, "--quiet"]
        command += ["--collective", collective] if collective else []
        command += ["--solver", "scip"] if self.name == "libra/allocation" else []  # HiGHS cannot
        for option in options:
            command += ["-O", option]
        if self.moment is None:
            command += ["--time-limit", str(self.limit_s)]
        return [*command, "--append", str(folder / "records.jsonl"), "-o", str(folder / "answer.json")]


@dataclass(frozen=True)
class Measurement:
    """The end of a cell; ``over_s`` is negative if it finished early."""

    cell: Cell
    wall_s: float
    over_s: float
    over_cpu_s: float
    verified_s: float
    written_s: float
    exit_status: int | None
    status: str
    record: bool
    file: bool
    message: str

    def late_s(self, *, by_cpu: bool = False) -> float:
        """Seconds over the limit, those of the verifier and of the file included; beside others its own alone."""
        return max(0.0, self.over_cpu_s if by_cpu or self.cell.busy else self.over_s)


def measure(cell: Cell) -> Measurement:
    """Run a cell; it is killed where it does not end."""
    with tempfile.TemporaryDirectory(prefix="cwb-limits-") as name:
        folder = Path(name)
        due_s = cell.limit_s if cell.moment is None else cell.moment * cell.limit_s
        start = time.perf_counter()
        with (folder / "err").open("wb") as errors:
            before = signal.signal(signal.SIGINT, signal.SIG_DFL)  # inherited: a job in the background ignores it
            process = subprocess.Popen(cell.command(folder), stdout=subprocess.DEVNULL, stderr=errors)
            signal.signal(signal.SIGINT, before)
        cpu_s = wait(process, due_s) if cell.moment is None else wait_until_used(process, due_s)
        due_s = due_s if cell.moment is None else time.perf_counter() - start
        if cell.moment is not None and process.poll() is None:
            process.send_signal(signal.SIGINT)
        used_s = wait(process, due_s + PATIENCE_S - (time.perf_counter() - start), cpu_s)
        wall_s = time.perf_counter() - start
        status = process.poll()
        if status is None:
            process.kill()
            process.wait()
        record = last_record(folder / "records.jsonl")
        seconds: dict[str, float] = record.get("seconds", {})
        lines = (folder / "err").read_text(errors="replace").strip().splitlines()
        return Measurement(
            cell,
            wall_s,
            wall_s - due_s,
            max(0.0, used_s - cpu_s) if wall_s > due_s else 0.0,
            seconds.get("verify", 0.0) + seconds.get("simulate", 0.0),
            seconds.get("write", 0.0),
            status,
            record.get("status", "killed" if status is None else "none"),
            bool(record),
            (folder / "answer.json").exists(),
            lines[-1][:200] if lines else "",
        )


def wait(process: subprocess.Popen[bytes], seconds: float, used_s: float = 0.0) -> float:
    """Wait for a process, at most so long; give the processor seconds that it has used, as far as they were seen."""
    until = time.perf_counter() + seconds
    while process.poll() is None and time.perf_counter() < until:
        used_s = max(used_s, cpu_seconds(process.pid))
        time.sleep(min(0.02, max(0.0, until - time.perf_counter())))
    return used_s


def wait_until_used(process: subprocess.Popen[bytes], seconds: float) -> float:
    """Wait until a process has used so many processor seconds, or ten times as many have passed."""
    used_s = 0.0
    until = time.perf_counter() + 10 * seconds
    while used_s < seconds and time.perf_counter() < until and process.poll() is None:
        used_s = wait(process, 0.02, used_s)
    return used_s


def cpu_seconds(pid: int) -> float:
    """Processor seconds of a process; none where the system does not say."""
    with suppress(OSError, IndexError, ValueError):
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def last_record(path: Path) -> dict[str, Any]:
    """The record that the process has left, if any."""
    with suppress(OSError, ValueError, IndexError):
        found: dict[str, Any] = json.loads(path.read_text().splitlines()[-1])
        return found
    return {}


@contextmanager
def beside(number: int) -> Iterator[None]:
    """Keep so many processes busy."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(number)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def cells(arguments: argparse.Namespace) -> list[Cell]:
    """Yield every name with every limit and load, and with Ctrl-C at every moment."""
    names = arguments.only or [*METHODS, *FORMULATIONS]
    if arguments.page:
        return [cell for name in names for cell in on_page(name)]
    found = []
    for busy in arguments.busy:
        for name in names:
            if not arguments.no_limits:
                found += [Cell(name, limit, busy) for limit in arguments.limits]
            found += [Cell(name, max(arguments.limits), busy, moment) for moment in arguments.moments]
    return found


def on_page(name: str) -> list[Cell]:
    """The cells of a row of the page: two limits, one of them beside others, and Ctrl-C at three moments."""
    moments = [Cell(name, PAGE_LIMITS[-1], 0, moment) for moment in MOMENTS]
    return [*(Cell(name, limit, 0) for limit in PAGE_LIMITS), Cell(name, PAGE_LIMITS[-1], PAGE_BUSY), *moments]


def write_page(page: Path, measured: Sequence[Measurement], *, by_cpu: bool) -> None:
    """Put the table between the marks of the page; a cell that was not measured stays as it is there."""
    known = {m.cell: m for m in measured}
    old = {row[1].strip(" `"): row[2:-1] for line in page.read_text().splitlines() if (row := line.split("|"))[1:]}
    rows = [
        f"| | {' | '.join(f'{limit:g} s' for limit in PAGE_LIMITS)} "
        f"| {PAGE_LIMITS[-1]:g} s, {PAGE_BUSY} processes beside | Ctrl-C | ends with |",
        f"|---|{'---|' * (len(PAGE_LIMITS) + 3)}",
    ]
    for name in (*METHODS, *FORMULATIONS):
        found = [known.get(cell) for cell in on_page(name)]
        limits, moments = found[: len(PAGE_LIMITS) + 1], [m for m in found[len(PAGE_LIMITS) + 1 :] if m]
        last = max(moments, key=lambda m: m.late_s(by_cpu=by_cpu), default=None)
        before = [cell.strip() for cell in old.get(name, [""] * (len(limits) + 2))]
        made = [over(m, by_cpu=by_cpu) if m else cell for m, cell in zip((*limits, last), before, strict=False)]
        statuses = {m.status for m in found if m} | {*filter(None, before[-1].split(", "))}
        rows.append(f"| `{name}` | {' | '.join(made)} | {', '.join(sorted(statuses))} |")
    before, begin, rest = page.read_text().partition(MARKS[0])
    _, end, after = rest.partition(MARKS[1])
    if not (begin and end):
        raise SystemExit(f"{page}: expected {' and '.join(MARKS)}")
    page.write_text("\n".join([f"{before}{begin}\n", *rows, f"\n{end}{after}"]))


def over(m: Measurement, *, by_cpu: bool) -> str:
    """By how much a cell was late, as the page says it."""
    late_s = m.late_s(by_cpu=by_cpu)
    return ("-" if late_s < 0.05 else f"{late_s:.1f}") + ("" if m.record else ", no record")


def earlier(path: Path | None) -> list[Measurement]:
    """Return the results of an earlier run from a file."""
    if path is None or not path.exists():
        return []
    rows = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]
    return [Measurement(**{**row, "cell": Cell(**row["cell"])}) for row in rows]


TABLE_COLUMNS = (
    "method", "ends at", "beside", "wall s", "over s", "over, own CPU s",
    "verify s", "write s", "status", "record", "file",
)  # fmt: skip


def table(measured: Sequence[Measurement]) -> Iterator[str]:
    """Lines of a Markdown table."""
    yield "".join(f"| {column} " for column in TABLE_COLUMNS) + "|"
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for m in measured:
        cell = m.cell
        end = f"limit {cell.limit_s:g} s" if cell.moment is None else f"Ctrl-C {cell.moment * cell.limit_s:g} s"
        over = f"{m.over_s:.1f}" if m.over_s > 0 else "-"
        used = f"{m.over_cpu_s:.1f}" if m.over_s > 0 else "-"
        yield (
            f"| {cell.name} | {end} | {cell.busy} | {m.wall_s:.1f} | {over} | {used} | {m.verified_s:.1f} "
            f"| {m.written_s:.1f} | {m.status} | {'yes' if m.record else 'no'} | {'yes' if m.file else 'no'} |"
        )


def main() -> int:
    """Measure, print the table, and end with 1 if a cell was over (not with ``--smoke``) or left no record."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="*", metavar="NAME", help="methods and formulations; all by default")
    parser.add_argument("--limits", nargs="*", type=float, default=[2.0, 5.0, 20.0], help="seconds")
    parser.add_argument("--no-limits", action="store_true", help="Ctrl-C alone")
    parser.add_argument("--busy", nargs="*", type=int, default=[0, 8], help="processes beside")
    parser.add_argument(
        "--moments",
        nargs="*",
        type=float,
        default=MOMENTS,
        help="when Ctrl-C comes, parts of the largest limit",
    )
    parser.add_argument("--output", "-o", type=Path, help="JSONL file with what was measured, as it comes; it goes on")
    parser.add_argument("--page", type=Path, help="what the table of this page needs, which is written into it")
    parser.add_argument("--by-cpu", action="store_true", help="count processor time: other work is on the machine")
    parser.add_argument("--smoke", action="store_true", help="one limit and one Ctrl-C, of two models")
    arguments = parser.parse_args()
    if arguments.smoke:
        arguments.only, arguments.limits, arguments.busy, arguments.moments = ["sccl", "teccl/milp"], [2.0], [0], [0.75]
        arguments.by_cpu = True
    done = earlier(arguments.output)
    known = {m.cell for m in done}
    print("\n".join(table([])), flush=True)
    for cell in cells(arguments):
        if cell in known:
            continue
        with beside(cell.busy):
            m = measure(cell)
        done.append(m)
        print(list(table([m]))[-1], flush=True)
        if arguments.output:
            with arguments.output.open("a") as stream:
                stream.write(json.dumps({**m.__dict__, "cell": m.cell.__dict__}) + "\n")
    if arguments.page:
        write_page(arguments.page, done, by_cpu=arguments.by_cpu)
    late = [m for m in done if not m.record or m.late_s(by_cpu=arguments.by_cpu) > ALLOWED_S]
    print(f"{len(done)} cells; {len(late)} were over by more than {ALLOWED_S:g} s or left no record")
    for m in late:
        print(f"  {m.cell}: {m.status}, {m.message}")
    if arguments.smoke:  # a busy machine is no reason to fail
        return 0 if all(m.record for m in done) else 1
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
