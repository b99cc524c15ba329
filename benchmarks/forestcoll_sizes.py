"""Times of forests of few and of many trees, latency included, and the choice of `-O prefer=latency`.

    python benchmarks/forestcoll_sizes.py            # A100 and MI250 boxes
    python benchmarks/forestcoll_sizes.py --smoke    # one box, two numbers of trees, to see that it runs

A hop inside a box costs 1 us, whether it is one link or two through a switch (0.5 us each); a hop through InfiniBand
costs 5 us (2.5 us for each of its two links). Times are those of `schedules/simulate/pipeline.py`, with the number of
pieces that is chosen for each, in microseconds. Of two boxes there are also rows of the plain implementation of the
published algorithms (`tests/models/forestcoll/oracle*.py`), whose forests are measured the same way.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import cwb
from cwb.core.collective import Collective, Demand
from cwb.core.instance import Instance
from cwb.core.topology import Topology
from cwb.core.trees import TreePacking
from cwb.harness import Request, run
from cwb.schedules.simulate.pipeline import pipeline
from forestcoll_oracle import oracle_forest

SIZES = {"1 KiB": 2**10, "32 KiB": 2**15, "1 MiB": 2**20, "8 MiB": 2**23, "64 MiB": 2**26, "1 GiB": 2**30}
CASES = (
    "dgx_a100(boxes=2)",
    "dgx_a100(boxes=4)",
    "mi250(boxes=1)",
    "mi250(boxes=2)",
    "mi250(boxes=4)",
    "mi250_8(boxes=2)",
)
TWO_BOXES = ("dgx_a100(boxes=2)", "mi250(boxes=2)", "mi250_8(boxes=2)")
HEADINGS = ("network", "forest", "flow algbw GB/s", "trees", "height max / mean", *SIZES)


def with_latency(network: Topology) -> Topology:
    """Links the latencies above."""

    def latency_s(source: str, target: str) -> Fraction:
        box, other = (name.partition(".")[0] for name in (source, target))
        hop = Fraction(1 if box == other else 5, 10**6)
        return hop if {source, target} <= set(network.ranks) else hop / 2

    links = [replace(link, latency_s=latency_s(link.source, link.target)) for link in network.links]
    return Topology(network.nodes, tuple(links))


def row(instance: Instance, forest: str, packing: TreePacking) -> str:
    """Measure a forest."""
    line = pipeline(instance, packing)
    times, _ = line.best(list(SIZES.values()))
    mean = (line.heights * packing.units).sum() / packing.units.sum()
    algbw = float(line.size_bytes / line.flow_s) / 1e9
    cells = [instance.name, forest, f"{algbw:.2f}", f"{len(packing):,}", f"{line.heights.max()} / {mean:.2f}"]
    return " | ".join((*cells, *(f"{seconds * 1e6:,.1f}" for seconds in times)))


def rows(name: str, numbers: tuple[int, ...]) -> Iterator[str]:
    """Rows of a network: fixed numbers of trees, the optimum, what is chosen for 1 MiB, the plain implementation."""
    loaded = cwb.load(name)
    instance = loaded.with_changes(
        network=with_latency(loaded.network), demand=Demand(Collective.ALL_GATHER, Fraction(SIZES["1 MiB"]))
    )
    for k in (*numbers, "optimal"):
        done = run(instance, Request("forestcoll", options={"k": k, "symmetry": "none"}))
        optimal = done.record.metrics["optimal_k"]
        if k == "optimal" and optimal in numbers:
            continue
        mark = ", optimal" if optimal in (k, done.record.metrics["k"]) else ""
        yield row(done.instance, f"k = {done.record.metrics['k']}{mark}", done.answer)
    chosen = run(instance, Request("forestcoll", options={"prefer": "latency", "symmetry": "none"}))
    yield row(chosen.instance, f"prefer=latency at 1 MiB: k = {chosen.record.metrics['k']}", chosen.answer)
    for k in (1, 2, None) if name in TWO_BOXES else ():
        yield row(instance, f"plain, k = {k or optimal}", oracle_forest(instance, k)[0])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smoke", action="store_true", help="one small network only")
    smoke = parser.parse_args().smoke
    print("|", " | ".join(HEADINGS), "|")
    print("|---" * len(HEADINGS) + "|")
    for name in ("mi250_8(boxes=1)",) if smoke else CASES:
        for line in rows(name, (1, 2) if smoke else tuple(range(1, 9))):
            print("|", line, "|", flush=True)


if __name__ == "__main__":
    main()
