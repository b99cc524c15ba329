"""The frontier: the sizes and speeds that stand out, in one run on one machine, beside what they took before.

    python benchmarks/frontier.py                        # some minutes
    python benchmarks/frontier.py --only libra pccl      # these methods
    python benchmarks/frontier.py --page docs/scaling.md # and write the table of the page
    python benchmarks/frontier.py --smoke                # the smallest two

Each row is a process of its own, which solves a small instance of the kind first, so that imports and compiled loops do
not count. Seconds are those of its processor time, of one thread: to make the network, to solve, to verify and to
simulate; the share of the method alone is beside them. Memory is the largest that the process had, Python and its
libraries included. What it took before is by the same command on two cores of the same kind, at another time.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
from dataclasses import dataclass
from fractions import Fraction
from multiprocessing.connection import Connection
from pathlib import Path
from time import process_time

import cwb
from cwb.core.collective import Demand, collective_named
from cwb.core.record import RunRecord
from cwb.harness.request import Request
from cwb.harness.run import run

MARKS = ("<!-- begin: python benchmarks/frontier.py --page docs/scaling.md -->", "<!-- end of the frontier -->")
HEADINGS = ("`cwb solve --model`", "before", "CPU s", "the method's", "MiB", "status", "gap")


@dataclass(frozen=True)
class Row:
    """One run.

    Parameters
    ----------
    method, network : str
        What is run.
    small : str
        An instance of the same kind to begin with.
    before : str
        What it took.
    collective : str
        What is asked; nothing where the instance says it.
    size : str
        Its size in bytes.
    options : tuple of (str, object)
        Of the method.
    """

    method: str
    network: str
    small: str
    before: str
    collective: str = "all_gather"
    size: int = 2**30
    options: tuple[tuple[str, object], ...] = ()

    @property
    def command(self) -> str:
        """Return the command that a user types, without the size."""
        asked = f" --collective {self.collective}" if self.collective else ""
        return f'{self.method} "{self.network}"{asked}' + "".join(f' -O {k}="{v}"' for k, v in self.options)

    def record(self, network: str) -> RunRecord:
        """Solve an instance."""
        instance = cwb.load(network)
        if self.collective:
            demand = Demand(collective_named(self.collective), Fraction(self.size))
            instance = instance.with_changes(demand=demand)
        return run(instance, Request(self.method, options=dict(self.options))).record


FOUR_TREES = (("height", 4), ("trees", 4))
RAILS = (("rails", "optimal"),)
PER_COST = (("objective", "perf-per-cost"), ("total_bandwidth", "500 GB/s"))
ROWS = (
    Row("libra", "gpt-3-4d", "gpt-3-3d", "0.136 s, 69 linear programs", "", 0, PER_COST),
    Row("forestcoll", "mi250(boxes=2)", "mi250(boxes=1)", "3.5 s"),
    Row("forestcoll", "dgx_a100(boxes=128)", "dgx_a100(boxes=2)", "1.2 to 2.1 s"),
    Row("forestcoll", "dgx_a100(boxes=512)", "dgx_a100(boxes=2)", "33 s, 2.9 GB"),
    Row("forestcoll", "dgx_a100(boxes=2048)", "dgx_a100(boxes=2)", "25 min, 30 GB (estimate)"),
    Row("forestcoll", "dgx_a100(boxes=12500)", "dgx_a100(boxes=2)", "out of reach"),
    Row("teccl", "torus(8,8,8)", "torus(3,3,3)", "8.8 s"),
    Row("teccl", "torus(8,8,16)", "torus(3,3,3)", "no answer in 240 s"),
    Row("teccl", "amd(chassis=4)", "amd(chassis=1)", "50 s, gap 1.4 %", size=10**9),
    Row("teccl-all-to-all", "torus(6,6,6)", "torus(3,3,3)", "5.5 s", "all_to_all"),
    Row("bfb", "hypercube(10)", "hypercube(4)", "80 to 93 % of the time outside of the method"),
    Row("tacos", "mesh(20,20)", "mesh(4,4)", "0.96 s"),
    Row("tacos", "torus(20,20)", "torus(4,4)", "0.90 s"),
    Row("mtree", "idn_size(0.5,0)", "gscale(0.5,0)", "70 s, gap 2.4 %", "all_reduce", 10**9, FOUR_TREES),
    Row("mtree", "random_wan(80,462,0.5,0)", "gscale(0.5,0)", "20 s, gap 9.5 %", "all_reduce", 10**9, FOUR_TREES),
    Row("fast", "dgx_h100(boxes=16)", "dgx_h100(boxes=2)", "15.8 s", "all_to_all", options=RAILS),
    Row("straggler", "switch(512, latency='0 s')", "switch(8, latency='0 s')", "35 s", "late_all_reduce"),
    Row("pccl", "mesh(8,8,8)", "mesh(3,3)", "gap 0.013 %", "all_to_all"),
    Row("pccl", "mesh(10,10,10)", "mesh(3,3)", "10.2 s and 2.2 GB for the method, gap 0.021 %", "all_to_all"),
)
#: Phases that are not the method's.
_OTHERS = ("load", "verify", "simulate")


def measure(row: Row, sender: Connection) -> None:
    """Run a row and send its cells."""
    row.record(row.small)
    begin = process_time()
    record = row.record(row.network)
    seconds = process_time() - begin
    share = 1 - sum(record.seconds.get(phase, 0.0) for phase in _OTHERS) / record.seconds["total"]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    gap = "" if record.gap is None else f"{record.gap:.2%}" if record.gap > 1e-6 else "0"
    sender.send((row.before, f"{seconds:.2f}", f"{share:.0%}", f"{peak:,.0f}", record.shown_status, gap))


def cells(row: Row) -> tuple[str, ...]:
    """Measure a row in a process of its own."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=measure, args=(row, sender))
    process.start()
    sender.close()
    try:
        found: tuple[str, ...] = receiver.recv()
    except EOFError:
        found = (row.before, "", "", "", f"ended with {process.exitcode}", "")
    process.join()
    return (f"`{row.command}`", *found)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", nargs="+", metavar="METHOD", help="these methods alone")
    parser.add_argument("--page", type=Path, help="write the table into this page")
    parser.add_argument("--smoke", action="store_true", help="two small rows")
    asked = parser.parse_args()
    chosen = ROWS[:2] if asked.smoke else [row for row in ROWS if not asked.only or row.method in asked.only]
    lines = [f"| {' | '.join(HEADINGS)} |", "|---" * len(HEADINGS) + "|"]
    print("\n".join(lines), flush=True)
    for row in chosen:
        lines.append(f"| {' | '.join(cells(row))} |")
        print(lines[-1], flush=True)
    if asked.page is not None:
        before, rest = asked.page.read_text(encoding="utf-8").split(MARKS[0])
        table = "\n".join(lines)
        asked.page.write_text(f"{before}{MARKS[0]}\n\n{table}\n\n{MARKS[1]}{rest.split(MARKS[1])[1]}", encoding="utf-8")


if __name__ == "__main__":
    main()
