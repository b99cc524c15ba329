"""Bytes that leave groups of nodes: Bine trees beside recursive halving-doubling, Bruck's, Swing and binomial trees.

    python benchmarks/bine.py                                  # 64 ranks, 20 random allocations, and one on Leonardo
    python benchmarks/bine.py --ranks 128 --allocations 5
    python benchmarks/bine.py --nodes nodes.csv --group 180    # lines RANK,NAME: the digits of a name number its node

Every schedule is verified. A row is a collective on an allocation; numbers are relative to Bine trees, means over the
allocations.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cwb
import numpy as np
from cwb.core.schedule import Ints, StepSchedule
from rich.console import Console
from rich.table import Table

#: Nodes of a job of 32 on Leonardo, whose groups have 180 nodes: tracer/ in HLC-Lab/pico on GitHub (MIT), commit
#: 413bc5d.
LEONARDO = (
    *(155, 543, 568, 1196, 1414, 1430, 1431, 1484, 1507, 1557, 1567, 1697, 1822, 1898, 1923, 1931),
    *(1958, 2010, 2065, 2280, 2408, 2440, 2457, 2551, 2643, 2883, 2892, 2992, 3000, 3027, 3034, 3093),
)
GROUP = 180

#: Columns: method and options, and the network that it needs.
ALGORITHMS: dict[str, tuple[str, dict[str, Any], str]] = {
    "bine": ("bine", {}, "complete({n})"),
    "rhd near": ("rhd", {"order": "near-first"}, "complete({n})"),
    "rhd far": ("rhd", {"order": "far-first"}, "complete({n})"),
    "bruck": ("bruck", {}, "complete({n})"),
    "swing": ("swing", {}, "ring({n})"),
    "knomial": ("knomial", {}, "complete({n})"),
}
COLLECTIVES = ("all_gather", "all_reduce", "all_to_all", "broadcast")


def allocations(ranks: int, count: int, random: np.random.Generator) -> Iterator[Ints]:
    """The group of every rank, in groups of random sizes."""
    for _ in range(count):
        most = max(2, ranks // 8)
        cuts = random.choice(np.arange(1, ranks), size=int(random.integers(1, most)), replace=False)
        yield np.searchsorted(np.sort(cuts), np.arange(ranks), side="right")


def nodes_of(path: Path) -> list[int]:
    """Numbers of the nodes in a file of ranks and names."""
    rows = [line.split(",") for line in path.read_text().splitlines()[1:] if line]
    return [int("".join(re.findall(r"\d+", row[1].split(".")[0]))) for row in rows]


def crossing(ranks: int, collective: str) -> dict[str, StepSchedule]:
    """Schedules of the algorithms that define a collective."""
    found: dict[str, StepSchedule] = {}
    for name, (method, options, network) in ALGORITHMS.items():
        run = cwb.solve(network.format(n=ranks), method, collective=collective, **options)
        if run.verified and isinstance(run.schedule, StepSchedule):
            found[name] = run.schedule
        elif run.status != "unsupported":
            raise SystemExit(f"{name} has no schedule of {collective} for {ranks} ranks: {run.status}, {run.message}")
    return found


def bytes_between(schedule: StepSchedule, group: Ints) -> float:
    """Bytes that are sent from one group to another one."""
    sends = schedule.sends
    leaves = group[sends.source] != group[sends.target]
    return float(schedule.chunks.sizes_bytes[sends.chunk[leaves]].sum())


def add_rows(table: Table, ranks: int, where: str, groups: list[Ints]) -> None:
    """A row for every collective."""
    for collective in COLLECTIVES:
        sent = {
            name: [bytes_between(schedule, group) for group in groups]
            for name, schedule in crossing(ranks, collective).items()
        }
        base = np.array(sent["bine"])
        cells = [f"{np.mean(np.array(sent[name]) / base):.2f}" if name in sent else "" for name in ALGORITHMS]
        table.add_row(where, collective, f"{base.mean() / 2**30:.2f}", *cells)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=64, help="any number; rhd and swing have powers of two")
    parser.add_argument("--allocations", type=int, default=20, help="random ones")
    parser.add_argument("--nodes", type=Path, help="a file of ranks and node names instead")
    parser.add_argument("--group", type=int, default=GROUP, help="nodes of a group")
    parser.add_argument("--smoke", action="store_true", help="16 ranks, two allocations")
    arguments = parser.parse_args()
    ranks, count = (16, 2) if arguments.smoke else (arguments.ranks, arguments.allocations)
    table = Table("allocation", "collective", "GiB by bine", *ALGORITHMS)
    if arguments.nodes is None:
        random = np.random.default_rng(1)
        add_rows(table, ranks, f"{ranks} ranks, random groups", list(allocations(ranks, count, random)))
    nodes = list(LEONARDO) if arguments.nodes is None else nodes_of(arguments.nodes)
    where = "Leonardo" if arguments.nodes is None else arguments.nodes.name
    add_rows(table, len(nodes), f"{len(nodes)} ranks, {where}", [(np.array(nodes) - 1) // arguments.group])
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
