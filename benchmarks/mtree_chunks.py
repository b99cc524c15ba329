"""Effects of chunks, splits and latency models on MTree's own trees, and errors of the printed formulas.

    python benchmarks/mtree_chunks.py              # three networks, ten seeds of capacities
    python benchmarks/mtree_chunks.py --smoke      # one network, one seed, to see that it runs

1 GB at skewness 0.7 along at most ten trees of `gost` (on the larger networks with `rate=bottleneck`, where MILP (1)
ends). Means over the seeds, in seconds: the reduction alone (section IV-D) and the all-reduce, in the best chunks and
in one message, at reserved rates; the reduction in one message with max-min fair shares; chunks of a tree; and the
largest number of chunks of a reduction by equation (8) as it is printed, in Mb and s. The last line has random trees in
which the longest path, which is all the text looks at, is not the last to end.
"""

from __future__ import annotations

import argparse
from math import sqrt
from random import Random
from statistics import fmean

import cwb
import numpy as np
from cwb.core.instance import Instance
from cwb.core.pipelining import Forest, Leaves
from cwb.core.trace import SimulationMode
from cwb.core.trees import TreePacking
from cwb.harness import Request, run
from cwb.schedules.simulate import simulate
from cwb.schedules.simulate.pipeline import pipeline

NETWORKS = {
    "gscale(0.7, {})": {},
    "equinix_size(0.7, {})": {"rate": "bottleneck"},
    "idn_size(0.7, {})": {"rate": "bottleneck"},
}
PLANS: dict[str, dict[str, object]] = {
    "occupancy": {},
    "occupancy, equal finish": {"split": "equal-finish"},
    "propagation, 5 ms a chunk": {"latency_model": "propagation", "chunk_overhead": "5 ms"},
}
METRICS = ("reduce_time_s", "unpipelined_reduce_time_s", "pipelined_time_s", "unpipelined_time_s")
HEADINGS = (
    "network", "plan", "reduce", "reduce, 1 chunk", "all-reduce", "all-reduce, 1 chunk", "reduce, fair shares",
    "chunks",
    "printed (8)",
)  # fmt: skip


def measure_chunks(instance: Instance, options: dict[str, object], seed: int) -> dict[str, float]:
    """Solve and measure one instance."""
    done = run(instance, Request("gost", options=options, seed=seed))
    if not isinstance(done.answer, TreePacking) or done.answer.reduction is None:
        raise SystemExit(f"{instance.name}: {done.record.status}")
    found = {name: float(done.record.metrics[name]) for name in METRICS}
    found["shared"] = simulate(instance, done.answer.reduction, SimulationMode.FAIR_SHARE).completion_s
    found["chunks"] = fmean(done.record.metrics["chunks_per_tree"])
    return found | {
        "printed": printed_chunks(instance, done.answer.reduction, done.record.metrics["allreduce_rate_Bps"])
    }


def printed_chunks(instance: Instance, packing: TreePacking, rate_Bps: float) -> float:
    """Return the most chunks by equation (8) as printed, with each tree's longest path and slowest link."""
    rates_Mbps = packing.units / packing.units.sum() * rate_Bps * 8e-6
    heights = pipeline(instance, packing).heights
    largest = 0.0
    for tree, (rate, links) in enumerate(zip(rates_Mbps.tolist(), heights.tolist(), strict=True)):
        used = packing.path_links[packing.edge_offset[tree] : packing.edge_offset[tree + 1]]
        slowest = max(float(instance.network.links[link].latency_s) for link in used)
        largest = max(largest, sqrt((links - 1) / rate / slowest))
    return largest


def longest_path_alone(trees: int) -> str:
    """Compare all leaves with the one that is most links away, in random trees of 4 to 13 sites and 50 to 400 ms."""
    source = Random(0)  # noqa: S311
    short = []
    for _ in range(trees):
        parent = [0, *(source.randrange(i) for i in range(1, source.randint(4, 13)))]
        way = [(0, 0.0, 0.0)]
        for above in parent[1:]:
            links, waits, slowest = way[above]
            latency = source.uniform(0.05, 0.4)
            way.append((links + 1, waits + latency, max(slowest, latency)))
        leaves = [path for site, path in enumerate(way) if site not in parent]
        flow = np.array([source.uniform(5, 40)])
        every, alone = (best_time(paths, flow) for paths in (leaves, [max(leaves)]))
        short.append(1 - alone / every)
    wrong = [share for share in short if share > 1e-12]
    return f"longest path alone: too short in {len(wrong)} of {trees} random trees, by up to {max(wrong):.1%}"


def best_time(paths: list[tuple[int, float, float]], flow: np.ndarray) -> float:
    """Time of one tree in its best chunks."""
    links, waits, pace = (np.array(column) for column in zip(*paths, strict=True))
    forest = Forest((Leaves(np.zeros(1, dtype=np.int64), links, waits, pace),))
    return float(forest.seconds(flow, forest.best_chunks(flow))[0])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="one network, one seed")
    parser.add_argument("--seeds", type=int, default=10, help="number of seeds")
    arguments = parser.parse_args()
    networks = dict(list(NETWORKS.items())[:1]) if arguments.smoke else NETWORKS
    demand = cwb.load("gscale").demand
    print(" | ".join(HEADINGS))
    for name, options in networks.items():
        for plan, more in PLANS.items():
            seeds = range(1 if arguments.smoke else arguments.seeds)
            rows = [
                measure_chunks(cwb.load(name.format(seed)).with_changes(demand=demand), {**options, **more}, seed)
                for seed in seeds
            ]
            means = [fmean(row[key] for row in rows) for key in (*METRICS, "shared", "chunks")]
            cells = [name.format("*"), plan, *(f"{mean:.1f}" for mean in means)]
            # Of an equal finish, data is not in proportion to the rates that equation (8) asks for.
            largest = "-" if "split" in more else f"{max(row['printed'] for row in rows):.2f}"
            print(" | ".join((*cells, largest)), flush=True)
    print(longest_path_alone(100 if arguments.smoke else 1000))


if __name__ == "__main__":
    main()
