"""TE-CCL's micro-benchmarks (section 6.4) as tables: copies, buffers, length of epochs, and rounds against the optimum.

    python benchmarks/teccl_figures.py [--part copy|buffers|epochs|rounds]

* copy (figure 9): an all-gather by the general form, which copies, and by the linear program, which does not;
* buffers (figure 11): ranks that store what they pass on, and ranks that pass it on at once or never;
* epochs (figure 10): epochs of the fastest and of the slowest link;
* rounds: the A* technique against the optimum.

Every schedule is verified; times are those of the schedules, seconds those of the whole run on the wall.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from fractions import Fraction
from time import perf_counter

from cwb.core.collective import CollectiveKind, Demand
from cwb.core.units import UnitKind as Unit
from cwb.core.units import parse
from cwb.harness.run import Request, run_one
from cwb.instances import load
from rich.console import Console
from rich.table import Table

#: Networks with and without latency.
NETWORKS = ("dgx1()", "dgx1(latency='0 us')", "mesh(3,3)")
SIZES = ("8 KB", "200 KB", "8 MB")
LIMIT_S = 60.0


def solved(model: str, network: str, size: str, **options: object) -> tuple[str, str, str]:
    """Time of the schedule with the bound if it is not proved, epochs, and seconds of the run."""
    demand = Demand(CollectiveKind.ALL_GATHER, Fraction(parse(size, Unit.SIZE)))
    begin = perf_counter()
    record = run_one(load(network).with_changes(demand=demand), Request(model, options=options, time_limit_s=LIMIT_S))
    seconds = f"{perf_counter() - begin:.1f}"
    if record.objective is None:
        return record.status, "", seconds
    assert record.verified, record.violations
    proved = "" if record.status == "optimal" else f" (>= {(record.bound or 0) * 1e6:.4g})"
    return f"{record.objective * 1e6:.4g}{proved}", str(record.metrics["epochs"]), seconds


def compare(title: str, ways: Sequence[tuple[str, str, dict[str, object]]], chunks: Sequence[int] = (1,)) -> None:
    """Print a table of the schedules' times: a row for each network, size and number of chunks, a column for each way."""
    table = Table("network", "size", "chunks", title=title)
    for name, _, _ in ways:
        for column in (f"{name}: us", "epochs", "s"):
            table.add_column(column, justify="right")
    for network in NETWORKS:
        for size in SIZES:
            for count in chunks:
                cells = [c for _, model, o in ways for c in solved(model, network, size, chunks=count, **o)]
                table.add_row(network, size, str(count), *cells)
    Console(width=160).print(table)


SLOW: dict[str, object] = {"epoch": "slow"}
PLAIN: dict[str, object] = {"epoch": "slow", "start": "none"}
PARTS: dict[str, Callable[[], None]] = {
    "copy": lambda: compare("Figure 9: copies", [("copy", "teccl-milp", PLAIN), ("no copy", "teccl-lp", SLOW)]),
    "buffers": lambda: compare(
        "Figure 11: buffers",
        [("store", "teccl-milp", PLAIN), ("pass on", "teccl-milp", {**SLOW, "relays": "pass"})],
        (1, 2),
    ),
    "epochs": lambda: compare(
        "Figure 10: length of an epoch",
        [("fastest", "teccl-milp", {"start": "none"}), ("slowest", "teccl-milp", PLAIN)],
    ),
    "rounds": lambda: compare(
        "Rounds against the optimum", [("optimum", "teccl-milp", PLAIN), ("rounds", "teccl-astar", PLAIN)], (1, 2)
    ),
}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--part", choices=list(PARTS))
    chosen = parser.parse_args().part
    for name, print_table in PARTS.items():
        if chosen in (None, name):
            print_table()


if __name__ == "__main__":
    main()
