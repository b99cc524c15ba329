"""Seconds and peak memory of `forestcoll`, split into its steps, each case in a process of its own.

    python benchmarks/forestcoll.py boxes      # A100 and MI250 boxes up to 1,024 GPUs, each shuffled twice too
    python benchmarks/forestcoll.py fabrics    # other networks, whole and with names and order mixed up
    python benchmarks/forestcoll.py beyond     # 2,048 GPUs and more, within ten minutes and 20 GiB each
    python benchmarks/forestcoll.py --case "pods(16,4)" --seed 0 --seed 1
    python benchmarks/forestcoll.py --smoke    # small networks, to see that it runs

The rows are those of a Markdown table, printed as they come: an all-gather of 1 GiB with as many trees as are optimal.
All seconds are processor seconds of one thread, which other programs on the machine change less than those of a clock
on the wall. Every process first solves a star of three, so that imports and compiled code are there; neither that nor
making the network counts. `rest` is the search for the smallest number of trees and the simulation. An order is that of
the generator or a seed: with a seed all nodes have new names, and nodes and links stand in a random order. Peak memory
is that of the process, with Python, NumPy and compiled code. Every root has trees of its own (`symmetry=none`):
scaling.py measures forests by symmetry.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from random import Random
from time import process_time

import cwb
from cwb.core.budget import Budget, Lap
from cwb.core.collective import Collective, Demand
from cwb.core.topology import Topology
from cwb.harness import registry
from cwb.schedules import verdict_of

GATHER = Demand(Collective.ALL_GATHER, Fraction(2**30))
PHASES = ("optimum", "split", "pack", "expand", "verify")
HEADINGS = ("network", "order", "GPUs", "k", *PHASES, "rest", "sum s", "peak MiB", "trees", "height")
LIMIT_S, LIMIT_BYTES = 600, 20 * 2**30

BOXES = [f"dgx_a100(boxes={2**i})" for i in range(1, 8)] + [f"mi250(boxes={2**i})" for i in range(1, 7)]
FABRICS = [
    "rail(32,8)",
    "rail(8,8,missing_nics=1)",
    "pods(4,4,8,4,1)",
    "pods(4,4,8,4,2)",
    "pods(4,4,8,4,2,missing_nics=1)",
    "pods(8,4,8,4,4)",
    "pods(16,4,8,4,2)",
    "three_tier()",
    "mixed()",
    "star(256)",
    "nvl72(racks=4, nvls=false)",
    "mi250_8(boxes=2)",
    "dgx_h100(boxes=16, nvls=false)",
    "fat_tree(8)",
    "dragonfly(9,8,4)",
    "torus(16,16)",
    "torus(8,8,8)",
]
BEYOND = [
    f"{box}(boxes={gpus // size})"
    for gpus in (2048, 4096, 8192, 16384)
    for box, size in (("dgx_a100", 8), ("mi250", 16))
]
SMOKE = ["dgx_a100(boxes=2)", "pods(2,2,2,2,2)", "torus(4,4)"]


class ProcessorClock:
    """Times phases, and limits a run, in processor seconds."""

    def __init__(self, limit_s: float | None) -> None:
        self.begin, self.limit_s = process_time(), limit_s
        self.seconds = dict.fromkeys(PHASES, 0.0)

    @contextmanager
    def phase(self, name: str) -> Iterator[Lap]:
        """Add up the seconds of phases of the same name."""
        begin, lap = process_time(), Lap()
        yield lap
        lap.seconds = process_time() - begin
        self.seconds[name] = self.seconds.get(name, 0.0) + lap.seconds

    def remaining_s(self) -> float | None:
        """Seconds until the limit."""
        return None if self.limit_s is None else max(0.0, self.begin + self.limit_s - process_time())


def shuffle_topology(network: Topology, seed: int) -> Topology:
    """All nodes new names, and nodes and links a random order."""
    random = Random(seed)  # noqa: S311 (nobody's secret)
    numbers = random.sample(range(len(network.nodes)), len(network.nodes))
    name = {node.name: f"v{number}" for node, number in zip(network.nodes, numbers, strict=True)}
    nodes = [replace(node, name=name[node.name]) for node in network.nodes]
    links = [replace(link, source=name[link.source], target=name[link.target]) for link in network.links]
    return Topology(tuple(random.sample(nodes, len(nodes))), tuple(random.sample(links, len(links))))


def measure(network: str, seed: int | None, limit_s: float | None, limit_bytes: int | None) -> tuple[str, ...]:
    """Solve, and give a row of the table."""
    if limit_bytes is not None:
        resource.setrlimit(resource.RLIMIT_AS, (limit_bytes, limit_bytes))
    instance = cwb.load(network)
    if seed is not None:
        instance = instance.with_changes(network=shuffle_topology(instance.network, seed))
    cwb.solve(cwb.load("star(3)").with_changes(demand=GATHER), "forestcoll")
    begin = (network, "given" if seed is None else f"seed {seed}", f"{instance.npus:,}")
    method, asked = registry.get("forestcoll"), instance.with_changes(demand=GATHER)
    clock = ProcessorClock(limit_s)
    try:
        outcome = method.run(asked, None, Budget(clock=clock), method.options(symmetry="none"))
        verdict = None if outcome.answer is None else verdict_of(asked, outcome.answer, outcome.certificate, clock)
    except MemoryError:
        return (*begin, "out of memory")
    total = process_time() - clock.begin
    peak = f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10:,.0f}"
    if verdict is None or not verdict.ok or outcome.status.value != "optimal":
        phases = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in clock.seconds.items())
        return (*begin, f"{outcome.status.value}: {outcome.message} ({phases}; {peak} MiB)")
    steps = [clock.seconds[phase] for phase in PHASES]
    times = [f"{value:.2f}" for value in (*steps, total - sum(steps), total)]
    metrics = verdict.metrics
    height = f"{metrics['max_height']} / {metrics['mean_height']:.2f}"
    return (*begin, str(outcome.metrics["k"]), *times, peak, f"{metrics['trees']:,}", height)


def main() -> None:
    """Measure the cases, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", nargs="?", choices=("boxes", "fabrics", "beyond"))
    parser.add_argument("--case", action="append", metavar="NETWORK", help="this network; may be repeated")
    parser.add_argument("--seed", action="append", type=int, help="also with this order; may be repeated")
    parser.add_argument("--smoke", action="store_true", help="small networks only")
    asked = parser.parse_args()
    named = {"boxes": BOXES, "fabrics": FABRICS, "beyond": BEYOND, None: SMOKE}[asked.what]
    seeds = asked.seed or {"boxes": [0, 1], "fabrics": [0], "beyond": [], None: [0]}[asked.what]
    limits = (LIMIT_S, LIMIT_BYTES) if asked.what == "beyond" else (None, None)
    print("|", " | ".join(HEADINGS), "|")
    print("|---" * len(HEADINGS) + "|")
    for network in asked.case or named:
        for seed in (None, *(seeds if asked.smoke or asked.what or asked.seed else ())):
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                row = pool.apply(measure, (network, seed, *limits))
            print("|", " | ".join(row), "|", flush=True)


if __name__ == "__main__":
    main()
