"""Methods beside their baselines: times over the bound, in percent of the ideal, or in GB/s, one table each.

    python benchmarks/baselines.py trees | python docs/tables.py docs/benchmarks/trees.csv
    python benchmarks/baselines.py [trees|switches|broadcasts|all_gather|all_reduce|fabrics]
    python benchmarks/baselines.py --smoke    # the first row of every table

Every schedule is verified; completion times are those of the records, and the same on every machine.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from itertools import islice
from tempfile import TemporaryDirectory

import cwb

Row = tuple[str, ...]

MULTITREE = ("multitree", "multitree links=equal", "ring", "dbt chunks=1")
TTO = ("tto", "tto roots=any", "ring", "multitree")
C_CUBE = ("c-cube", "ring", "multitree")
#: Networks, sizes and methods of all-reduces along trees.
TREES = (
    *((network, ("1 GiB",), MULTITREE) for network in ("torus(4,4)", "torus(8,8)", "dgx_a100(boxes=2)")),
    ("mi250(boxes=2)", ("1 GiB",), MULTITREE),
    ("dgx1()", ("1 MiB", "8 MiB", "64 MiB", "1 GiB"), C_CUBE),
    ("mesh(3,3)", ("1 MiB", "1 GiB"), TTO),
    *((f"mesh({n},{n})", ("1 GiB",), TTO) for n in (4, 6, 8)),
    ("mesh(10,10)", ("1 MiB", "1 GiB"), TTO),
)
#: Networks with switches, and one that only has links of two rates.
SWITCHES = ("switch2d()", "rfs3d()", "dragonfly(groups=5, routers=4)")
#: Networks of the paper on breadth-first broadcasts, and the methods on them.
BROADCASTS = {
    "circulant(n=12, offsets=[2,3])": ("bfb", "dbt chunks=16"),
    "circulant(n=12, offsets=[1,5])": ("bfb", "shifted-ring", "shifted-ring variant=bfb"),
    "torus(3,3,2)": ("bfb", "torus-rings"),
    "hypercube(dim=4)": ("bfb", "rhd"),
}
#: Fabrics, bandwidths of their dimensions in GiB/s, and the name of the dissertation.
FABRICS = (
    ("SW(512)", (350,), ""),
    ("SW(32)_SW(16)", (250, 250), ", W-2D"),
    ("RI(16)_FC(8)_SW(4)", (200, 100, 50), ", Conv-3D"),
    ("RI(2)_FC(8)_RI(8)_SW(4)", (250, 200, 100, 50), ", Conv-4D"),
    ("RI(2)_FC(8)_RI(8)_SW(4)", (1000, 200, 100, 50), ""),
    ("RI(4)_FC(8)_RI(4)_SW(32)", (250, 250, 250, 250), ""),
)
#: Names of methods with options in the tables.
LABELS = {
    "dbt chunks=1": "dbt",
    "dbt chunks=16": "dbt in 16",
    "shifted-ring variant=bfb": "shifted-ring (bfb)",
    "themis queue=fifo": "themis, fifo",
    "themis chunks=256": "themis, 256 chunks",
    "themis-lp": "themis-lp, rounded",
}
ON_FABRICS = ("blueconnect", "themis queue=fifo", "themis", "themis chunks=256", "themis-lp")


def solve_with(network: object, method: str, collective: str, size: str, **common: object) -> cwb.Run:
    """The run of a method, whose options follow its name."""
    name, *words = method.split()
    options = {key: int(value) if value.isdigit() else value for key, value in (word.split("=") for word in words)}
    return cwb.solve(network, name, collective=collective, size=size, **{**common, **options})


def completion_s(run: cwb.Run) -> float:
    """The completion time of a verified answer."""
    assert run.verified, run
    return run.metrics["completion_time_s"]


def trees() -> Iterator[Row]:
    """Rows of all-reduces along trees."""
    yield "network", "size", "method", "time over bound"
    for network, sizes, methods in TREES:
        for size in sizes:
            for method in methods:
                run = solve_with(network, method, "all_reduce", size)
                yield network, size, LABELS.get(method, method), f"{completion_s(run) / run.bound:.2f}"


def switches() -> Iterator[Row]:
    """Rows of TACOS around switches, in its own epochs; the bound is that of a cut without latency."""
    yield "network", "chunks", "time over cut bound"
    for network in SWITCHES:
        cut_s = cwb.solve(network, "forestcoll", collective="all_gather", size="1 GiB").bound
        for chunks in (1, 4, 16):
            run = solve_with(network, f"tacos chunks={chunks}", "all_gather", "1 GiB")
            yield network, str(chunks), f"{run.objective / cut_s:.3f}"


def broadcasts() -> Iterator[Row]:
    """Rows of all-reduces by bfb and by the baselines of its paper."""
    yield "network", "method", "steps", "1 MiB", "1 GiB"
    for network, methods in BROADCASTS.items():
        rate = "20 Gb/s" if network.startswith("torus") else "25 Gb/s"
        machine = network.replace(")", f", bandwidth='{rate}', latency='10 us')")
        for method in methods:
            small, large = (solve_with(machine, method, "all_reduce", size) for size in ("1 MiB", "1 GiB"))
            times = f"{completion_s(small) * 1e6:.1f} µs", f"{completion_s(large) * 1e6:.0f} µs"
            yield network, LABELS.get(method, method), str(small.schedule.steps), *times


def on_machines(collective: str) -> Iterator[Row]:
    """Rows of bandwidths of the suite ``forestcoll``, in GB/s; a method that does not support a machine has none."""
    with TemporaryDirectory() as folder:
        records = [run for run in cwb.compare("forestcoll", output=folder) if run.collective == collective]
    found = {(run.instance, run.model): run for run in records}
    networks, methods = (list(dict.fromkeys(names)) for names in zip(*found, strict=True))
    yield "network", *methods, "bound"
    for network in networks:
        runs = [found[network, method] for method in methods]
        cells = [f"{run.metrics['algbw_GBps']:.1f}" if run.verified else "–" for run in runs]
        bound_s = max(run.bound for run in runs if run.metrics.get("clock") == "flow")
        yield network, *cells, f"{2**30 / bound_s / 1e9:.1f}"


def fabrics() -> Iterator[Row]:
    """Rows of times on fabrics, in microseconds and in percent of an even distribution over all bandwidth."""
    yield "network", "bandwidth", "ideal", *(LABELS.get(method, method) for method in ON_FABRICS), "bound"
    for network, rates, name in FABRICS:
        ranks = cwb.load(network).npus
        ideal_s = 2 * (ranks - 1) / ranks / sum(rates)
        chosen = {"bandwidth": [f"{rate} GiB/s" for rate in rates], "latency": ["0 s"] * len(rates)}
        runs = [solve_with(network, method, "all_reduce", "1 GiB", **{"chunks": 64, **chosen}) for method in ON_FABRICS]
        times = [f"{completion_s(run) * 1e6:.2f} ({ideal_s / completion_s(run) * 100:.1f} %)" for run in runs]
        bound_s = max(run.metrics["lower_bound_s"] or 0 for run in runs)
        yield network + name, ", ".join(map(str, rates)), f"{ideal_s * 1e6:.2f}", *times, f"{bound_s * 1e6:.2f}"


PARTS: dict[str, Callable[[], Iterator[Row]]] = {
    "trees": trees,
    "switches": switches,
    "broadcasts": broadcasts,
    "all_gather": lambda: on_machines("all_gather"),
    "all_reduce": lambda: on_machines("all_reduce"),
    "fabrics": fabrics,
}


def main() -> None:
    """Print the tables of the parts that are named, by default of all."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="PART")
    parser.add_argument("--smoke", action="store_true", help="the first row of every table")
    asked = parser.parse_args()
    for name in asked.parts or PARTS:
        for place, row in enumerate(islice(PARTS[name](), 2 if asked.smoke else None)):
            print(f"| {' | '.join(row)} |", flush=True)
            if place == 0:
                print(f"|{'---|' * len(row)}")
        print()


if __name__ == "__main__":
    main()
