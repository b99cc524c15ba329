"""Collective time, bound, seconds and memory of tacos beside the published C++ on meshes, tori and grids.

    python benchmarks/tacos.py           # the reference's networks, growth to 4,096 ranks, tori of some 40,000
    python benchmarks/tacos.py --smoke   # a few small ones

Reference numbers: tests/reference/tacos.csv. Its chunks are whole bytes, ours exact fractions, so that its times are up
to 1e-6 shorter than the same number of steps takes here. Seconds are of the processor, without compilation; the peak is
that of a process of its own beyond what it has once compiled.
"""

from __future__ import annotations

import argparse
import csv
import multiprocessing
import resource
from collections.abc import Callable
from fractions import Fraction
from math import log
from pathlib import Path
from typing import Any

from cwb.core.budget import Budget
from cwb.core.collective import Demand, collective_named
from cwb.core.instance import Instance
from cwb.harness.clock import WallClock
from cwb.heuristics.tacos.method import METHOD
from cwb.heuristics.tacos.solve import warm_up
from cwb.instances import load
from rich.console import Console
from rich.table import Table

REFERENCE = Path(__file__).parents[1] / "tests" / "reference" / "tacos.csv"

#: Networks for the growth, by family.
GROWTH = {
    "mesh": ("mesh(12,12)", "mesh(16,16)", "mesh(20,20)", "mesh(32,32)", "mesh(45,45)", "mesh(64,64)"),
    "torus": ("torus(12,12)", "torus(16,16)", "torus(20,20)", "torus(32,32)", "torus(45,45)", "torus(64,64)"),
    "grid": ("mesh(5,5,5)", "mesh(7,7,7)", "mesh(9,9,9)", "mesh(10,10,10)", "mesh(13,13,13)", "mesh(16,16,16)"),
}
MOVED = ("torus(64,64)", "torus(16,16,16)", "hypercube(12)", "torus(100,100)", "torus(200,200)", "torus(34,35,36)")


def reference() -> list[dict[str, str]]:
    """Read the reference's rows."""
    with REFERENCE.open(newline="") as file:
        return list(csv.DictReader(file))


def network_of(row: dict[str, str]) -> str:
    """Name the network of a row: ``hypercube3d`` is a mesh of three dimensions."""
    name = "torus" if row["topology"].startswith("torus") else "mesh"
    sizes = [row[axis] for axis in ("x", "y", "z") if int(row[axis]) > 1]
    return f"{name}({','.join(sizes)}, bandwidth='{float(row['bw_GiBps']):g} GiB/s', latency='{row['lat_us']} us')"


def pose(network: str, chunks: int = 1, mib: float = 1024, kind: str = "all_gather") -> Instance:
    """Make an instance of a network."""
    return load(network).with_changes(demand=Demand(collective_named(kind), Fraction(mib) * 2**20, chunks))


def peak_mib() -> float:
    """Most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


def measure(network: str, chunks: int, mib: float, options: dict[str, Any]) -> dict[str, Any]:
    """Synthesize once, in this process."""
    instance = pose(network, chunks, mib)
    chosen = METHOD.options.model_validate(options)
    posed = METHOD.pose(instance, chosen)
    warm_up()
    before = peak_mib()
    outcome = METHOD.run(posed, None, Budget(clock=WallClock()), chosen)  # type: ignore[arg-type]
    told = outcome.metrics
    return {
        "status": outcome.status.value,
        "time_us": told["synthesized_time_s"] * 1e6,
        "bound_us": told["lower_bound_s"] * 1e6,
        "seconds": told["synthesis_s"],
        "attempts": told["attempts"],
        "peak": peak_mib() - before,
        "npus": posed.npus,
    }


def alone(function: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    """Run a function in a fresh process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def against_reference(rows: list[dict[str, str]]) -> Table:
    """Every row of the reference beside ours."""
    table = _table(
        "all-gather",
        ("network", "chunks", "bound µs", "C++ µs", "ours µs", "status", "C++ s", "ours s", "C++ MiB", "ours MiB"),
    )
    for row in rows:
        ours = alone(measure, network_of(row), int(row["chunks_per_npu"]), float(row["out_MiB"]), {})
        table.add_row(
            network_of(row).partition(", b")[0] + ")",
            row["chunks_per_npu"],
            f"{ours['bound_us']:.2f}",
            f"{float(row['coll_min_us']):.2f}",
            f"{ours['time_us']:.2f}",
            ours["status"],
            f"{float(row['synth_ms_min']) / 1e3:.4g}",
            f"{ours['seconds']:.2g}",
            row["maxrss_MiB"],
            f"{ours['peak']:.1f}",
        )
    return table


def growth(families: dict[str, tuple[str, ...]]) -> Table:
    """Seconds and memory of the general engine, and the exponent of the seconds from one size to the next."""
    table = _table(
        "growth, one chunk for each rank", ("network", "ranks", "status", "attempts", "s", "exponent", "MiB")
    )
    for networks in families.values():
        before: dict[str, Any] | None = None
        for network in networks:
            ours = alone(measure, network, 1, 1024.0, {"answer": "schedule"})
            exponent = "" if before is None else f"{slope(before, ours):.2f}"
            table.add_row(
                network,
                str(ours["npus"]),
                ours["status"],
                str(ours["attempts"]),
                f"{ours['seconds']:.3g}",
                exponent,
                f"{ours['peak']:.0f}",
            )
            before = ours
        table.add_section()
    return table


def slope(small: dict[str, Any], large: dict[str, Any]) -> float:
    """Exponent of the seconds by the ranks."""
    return log(max(large["seconds"], 1e-6) / max(small["seconds"], 1e-6)) / log(large["npus"] / small["npus"])


def translated_trees(networks: tuple[str, ...]) -> Table:
    """One tree for all ranks."""
    table = _table("one tree, moved to all ranks", ("network", "ranks", "status", "time / bound", "s", "MiB"))
    for network in networks:
        ours = alone(measure, network, 1, 1024.0, {"answer": "trees"})
        ratio = f"{ours['time_us'] / ours['bound_us']:.6f}"
        table.add_row(
            network, str(ours["npus"]), ours["status"], ratio, f"{ours['seconds']:.3g}", f"{ours['peak']:.0f}"
        )
    return table


def _table(title: str, headings: tuple[str, ...]) -> Table:
    table = Table(title=title, title_justify="left")
    for heading in headings:
        table.add_column(heading, justify="left" if heading in ("network", "status") else "right")
    return table


def main() -> None:
    """Measure everything and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smoke", action="store_true", help="a few small networks alone")
    console = Console(width=150)
    if parser.parse_args().smoke:
        console.print(against_reference(reference()[:1]))
        console.print(growth({"mesh": GROWTH["mesh"][:1]}), translated_trees(MOVED[:1]))
        return
    console.print(translated_trees(MOVED))
    console.print(against_reference(reference()))
    for family, networks in GROWTH.items():
        console.print(growth({family: networks}))


if __name__ == "__main__":
    main()
