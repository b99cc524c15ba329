"""TE-CCL's figures 3, 5, 9, 10 and 11 and A* against the optimum as tables.

    python benchmarks/teccl_figures.py [--part latency|taccl|copy|buffers|epochs|rounds]
        [--networks small|internal|machines]

* latency (figure 3): the optimum if links had no latency, and with it;
* taccl (figures 5, 7 and 8): TE-CCL's optimum and TACCL's schedule, by TACCL's own count;
* copy (figure 9): an all-gather by the general form, which copies, and by the linear program, which does not;
* buffers (figure 11): ranks that store what they pass on, and ranks that pass it on at once or never;
* epochs (figure 10): epochs of the fastest and of the slowest link;
* rounds: the A* technique against the optimum.

The paper's internal networks are stood in for by those of this library, with bandwidths of its own, and its machines
are those of two chassis. Every schedule is verified; times are those of the schedules, seconds those of the whole run
on the wall.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from time import perf_counter

from cwb.core.collective import Collective, Demand
from cwb.core.instance import Instance
from cwb.core.units import UnitKind as Unit
from cwb.core.units import parse
from cwb.harness.run import Request, run_one
from cwb.instances import load
from rich.console import Console
from rich.table import Table

#: Small networks with and without latency, what stands in for the internal ones, and two chassis of machines.
NETWORKS = {
    "small": ("dgx1()", "dgx1(latency='0 us')", "mesh(3,3)"),
    "internal": ("internal1(2)", "internal2(2)"),
    "machines": ("ndv2(chassis=2)", "dgx2(chassis=2)"),
}
SIZES = ("8 KB", "200 KB", "8 MB")
LIMIT_S = 60.0


def make_instance(network: str, size: str, *, at_once: bool) -> Instance:
    """An all-gather on a network, whose links have no latency if they carry data at once."""
    instance = load(network).with_changes(demand=Demand(Collective.ALL_GATHER, Fraction(parse(size, Unit.SIZE))))
    topology = instance.topology
    if not at_once:
        return instance
    links = tuple(replace(link, latency_s=Fraction(0)) for link in topology.links)
    return instance.with_changes(network=replace(topology, links=links))


def solve_cell(
    model: str, network: str, size: str, *, at_once: bool = False, **options: object
) -> tuple[str, str, str]:
    """Time of the schedule with the bound if it is not proved, epochs, and seconds of the run."""
    begin = perf_counter()
    if model == "taccl":
        options = {name: value for name, value in options.items() if name not in ("epoch", "chunks")}
    record = run_one(
        make_instance(network, size, at_once=at_once), Request(model, options=options, time_limit_s=LIMIT_S)
    )
    seconds = f"{perf_counter() - begin:.1f}"
    if record.objective is None:
        return record.status, "", seconds
    assert record.verified, record.violations
    if model == "taccl":
        return f"{record.metrics['taccl_cost_s'] * 1e6:.4g}", "", seconds
    proved = "" if record.status == "optimal" else f" (>= {(record.bound or 0) * 1e6:.4g})"
    return f"{record.objective * 1e6:.4g}{proved}", str(record.metrics["epochs"]), seconds


#: A table: its title, the ways to a schedule that it sets side by side, and numbers of chunks.
Part = tuple[str, Sequence[tuple[str, str, dict[str, object]]], Sequence[int]]


def compare(part: Part, networks: Sequence[str]) -> None:
    """Print a table of the schedules' times: a row per network, size and chunks, a column per method."""
    title, ways, chunks = part
    table = Table("network", "size", "chunks", title=title)
    for name, _, _ in ways:
        for column in (f"{name}: us", "epochs", "s"):
            table.add_column(column, justify="right")
    for network in networks:
        for size in SIZES:
            for count in chunks:
                cells = [c for _, model, o in ways for c in solve_cell(model, network, size, chunks=count, **o)]
                table.add_row(network, size, str(count), *cells)
    Console(width=160).print(table)


SLOW: dict[str, object] = {"epoch": "slow"}
PLAIN: dict[str, object] = {"epoch": "slow", "start": "none"}
FAST: dict[str, object] = {"epoch": "fast"}
PARTS: dict[str, Part] = {
    "latency": ("Figure 3: latency", [("without", "teccl", {**FAST, "at_once": True}), ("with", "teccl", FAST)], (1,)),
    "taccl": ("Figures 5, 7 and 8: TACCL", [("TE-CCL", "teccl", FAST), ("TACCL", "taccl", {"nodes": 10})], (1,)),
    "copy": ("Figure 9: copies", [("copy", "teccl", SLOW), ("no copy", "teccl-lp", SLOW)], (1,)),
    "buffers": (
        "Figure 11: buffers",
        [("store", "teccl-milp", PLAIN), ("pass on", "teccl-milp", {**SLOW, "relays": "pass"})],
        (1, 2),
    ),
    "epochs": ("Figure 10: length of an epoch", [("fastest", "teccl", FAST), ("slowest", "teccl", SLOW)], (1,)),
    "rounds": ("Rounds against the optimum", [("optimum", "teccl", SLOW), ("rounds", "teccl-astar", PLAIN)], (1, 2)),
}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--part", choices=list(PARTS))
    parser.add_argument("--networks", choices=list(NETWORKS), default="small")
    chosen = parser.parse_args()
    for name, part in PARTS.items():
        if chosen.part in (None, name):
            compare(part, NETWORKS[chosen.networks])


if __name__ == "__main__":
    main()
