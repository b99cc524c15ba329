"""Predicted times beside those measured over emulated networks (``cwb run --emulate``), which takes root on Linux.

    python benchmarks/emulation.py -o docs/benchmarks/emulation.csv             # all: some ten minutes
    python benchmarks/emulation.py --summary docs/benchmarks/emulation.csv      # the tables of the page
    python docs/images/charts.py

Every method of the list answers collectives on small networks, whose rates are scaled to 1 to 3 MB/s. The size is
chosen such that the fastest method takes about a second: as latencies stay, data and rates that are scaled by the same
factor take the same time. The pieces of trees are those of the completion time, or fewer, so
that no schedule has more messages than the machine keeps up with. Both predictions are those of ``cwb run``, by the
common time model. Every schedule that is verified is in the table. The load is that of the machine when it ends.
"""

from __future__ import annotations

import argparse
import csv
import os
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import NamedTuple

import cwb
from cwb.schedules.completion import completion_of

#: Networks, with the factor of their rates.
NETWORKS = {
    "ring(8, bandwidth='1.25 GB/s', latency='0 s')": "1/1000",
    "hypercube(3, bandwidth='1.25 GB/s', latency='0 s')": "1/1000",
    "switch(6, bandwidth='1.25 GB/s', latency='10 ms')": "1/1000",
    "ring(6, bandwidth='1.25 GB/s', latency='20 ms')": "1/1000",
    "gscale": "1/10",
    "torus(4,2, bandwidth='1.25 GB/s', latency='0 s')": "1/1000",
}

#: Methods for each collective.
METHODS = {
    "all_gather": ("ring", "direct", "tacos", "forestcoll", "multitree"),
    "all_reduce": ("ring", "rhd", "dbt", "tacos", "forestcoll", "mtree", "gost"),
}

#: Seconds of the fastest method, and messages of a repetition, that are aimed at.
SECONDS, MESSAGES = 1.0, 6000

#: Rows whose measured times differ by more than this factor are a pair.
DIFFERENT = 1.05


class Row(NamedTuple):
    """A schedule with its predicted and measured seconds; ``headers_s`` is the prediction with the bytes of headers."""

    network: str
    scale: str
    collective: str
    method: str
    size_bytes: int
    pieces: str
    messages: int
    predicted_s: float
    headers_s: float
    measured_s: float
    low_s: float
    high_s: float
    right: str
    load: float

    @property
    def task(self) -> tuple[str, str, int]:
        """Network, collective and size, which all methods of a task share."""
        return self.network, self.collective, self.size_bytes

    @property
    def error(self) -> float:
        """Measured over predicted time with headers, less 1."""
        return self.measured_s / self.headers_s - 1


#: Types of the cells of a row.
KINDS = (str, str, str, str, int, str, int, float, float, float, float, float, str, float)


def solve_all(network: str, scale: str, collective: str) -> dict[str, cwb.Run]:
    """Return the verified schedules of all methods that have one."""
    found = {}
    for method in METHODS[collective]:
        size = Fraction(800_000) / Fraction(scale)
        done = cwb.solve(cwb.load(network), method, collective=collective, size=f"{size} B", time_limit_s=60)
        if done.verified is True:
            found[method] = done
        else:
            print(f"{network}: {collective} by {method}: {done.message}", flush=True)
    return found


def measure(method: str, done: cwb.Run, scale: str, size: int, repeat: int) -> Row:
    """Run a schedule, in fewer pieces if it would have too many messages."""
    pieces = done.metrics.get("pieces")
    if pieces is not None:
        pieces = max(1, min(pieces, MESSAGES // completion_of(done.problem, done.schedule, 1).sends))
    found = cwb.run(done, emulate=True, scale=scale, size=f"{size} B", repeat=repeat, warmup=0, pieces=pieces)
    told = found.to_json()
    return Row(
        told["instance"],
        scale,
        told["collective"],
        method,
        size,
        str(pieces or ""),
        found.messages,
        told["predicted_s"],
        told["predicted_with_headers_s"],
        told["median_s"],
        *told["interval_s"],
        "yes" if found.ok else "no",
        round(os.getloadavg()[0], 1),
    )


def read(file: Path) -> list[Row]:
    """Read a table of measurements."""
    with file.open(encoding="utf-8", newline="") as opened:
        return [
            Row(*(kind(cell[name]) for name, kind in zip(Row._fields, KINDS, strict=True)))
            for cell in csv.DictReader(opened)
        ]


def count_ordered_pairs(rows: Sequence[Row]) -> tuple[int, int]:
    """Return pairs of methods for one task that are predicted in the measured order, and all that differ enough."""
    right = total = 0
    for one, two in combinations(rows, 2):
        measured = one.measured_s, two.measured_s
        if one.task == two.task and max(measured) > DIFFERENT * min(measured):
            total += 1
            right += (measured[0] > measured[1]) == (one.predicted_s > two.predicted_s)
    return right, total


def summary(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a table of errors by network."""
    yield "| network | schedules | median error | largest | within 2 % | within 10 % | pairs in order |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for network in [*dict.fromkeys(row.network for row in rows), "all"]:
        some = [row for row in rows if network in (row.network, "all")]
        errors = [row.error for row in some]
        within = [sum(abs(error) <= part for error in errors) / len(errors) for part in (0.02, 0.1)]
        right, total = count_ordered_pairs(some)
        yield (
            f"| {network if network == 'all' else f'`{network}`'} | {len(some)} | {median(map(abs, errors)):.1%} "
            f"| {max(errors, key=abs):+.1%} | {within[0]:.0%} | {within[1]:.0%} | {right} of {total} |"
        )


def main() -> None:
    """Measure, write and print."""
    parser = argparse.ArgumentParser(description="Predicted times beside those measured over emulated networks.")
    parser.add_argument("-o", "--output", type=Path, help="CSV file of all rows")
    parser.add_argument("--summary", type=Path, help="print the table of this file, and measure nothing")
    parser.add_argument("--repeat", type=int, default=3, help="repetitions of each schedule")
    given = parser.parse_args()
    rows = read(given.summary) if given.summary else []
    tasks = [] if given.summary else [(*network, collective) for network in NETWORKS.items() for collective in METHODS]
    for network, scale, collective in tasks:
        solved = solve_all(network, scale, collective)
        fastest_s = min(done.metrics["completion_time_s"] for done in solved.values())
        for method, done in solved.items():
            row = measure(method, done, scale, round(800_000 * SECONDS / fastest_s), given.repeat)
            rows.append(row)
            print(f"{network}: {collective} by {method}: {row.error:+.1%}", flush=True)
            if given.output is not None:
                write(given.output, rows)
    for line in summary(rows):
        print(line)


def write(file: Path, rows: Sequence[Row]) -> None:
    """Write a table of measurements."""
    with file.open("w", encoding="utf-8", newline="") as opened:
        out = csv.writer(opened, lineterminator="\n")
        out.writerow(Row._fields)
        out.writerows([f"{cell:.6g}" if isinstance(cell, float) else cell for cell in row] for row in rows)


if __name__ == "__main__":
    main()
