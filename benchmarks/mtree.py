"""CPU seconds and gaps of `gost`, `mtree` and its exact models on three families, and times of MILP (1).

    python benchmarks/mtree.py              # five seeds at skewness 0.5, half of them for the pools
    python benchmarks/mtree.py --smoke      # GScale, one seed, to see that it runs

A gap is the bound over the rate, less 1; of `gost` the bound is the best one of the others. Seconds are of the process,
verification included. Pools have the first trees of as many random starts as they need, in one reading of r*, ties
shuffled; the search ends after a number of nodes.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from math import inf
from statistics import fmean
from time import process_time

import cwb
import numpy as np
from cwb import solvers
from cwb.algorithms.trees.gbst import GbstVariant, RateName, random_state, run_gbst
from cwb.algorithms.trees.network import Wan, to_wan
from cwb.algorithms.trees.trees import distinct
from cwb.core.budget import Budget
from cwb.core.solver import SolverOptions, SolverResult, Termination
from cwb.harness import Request, run
from cwb.models.mtree.answer import select
from cwb.models.mtree.problem import CandidateTrees

#: Heights and numbers of trees that are asked of each family.
TreeProblem = tuple[int | str, int | None]
ASKED: dict[str, tuple[TreeProblem, ...]] = {
    "gscale": ((4, None), (4, 2), (4, 3), (4, 4), ("600 ms", None), ("600 ms", 3)),
    "equinix_size": ((3, None), (3, 4), (3, 8), ("300 ms", None), ("300 ms", 8)),
    "idn_size": ((4, None), (4, 4), (4, 8), ("300 ms", None), ("300 ms", 8)),
}
SKEWNESS = 0.5

#: Options of each row; the larger networks have no exact model of K trees, and `mtree` then ends with a gap.
ROWS: dict[str, tuple[str, dict[str, object]]] = {
    "gost, as written": ("gost", {"improve": False}),
    "gost, rate=bottleneck": ("gost", {"improve": False, "rate": "bottleneck"}),
    "mtree, exact=false": ("mtree", {"exact": False}),
    "mtree": ("mtree", {}),
}
POOLS = (10, 20, 40, 80)
NODES = 200


def rows(
    family: str, height: int | str, trees: int | None, seeds: range
) -> Iterator[tuple[str, float, float, float, int]]:
    """Seconds, rate over the normaliser, gap, and how many are optimal, each the mean over the seeds."""
    demand = cwb.load("gscale").demand
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in ROWS}
    for seed in seeds:
        instance = cwb.load(f"{family}({SKEWNESS}, {seed})").with_changes(demand=demand)
        for name, (model, options) in ROWS.items():
            if family != "gscale" and trees is not None and name in ("gost, as written", "mtree, exact=false"):
                continue  # there MILP (1) need not end (see the other table), and no exact model is small enough
            asked: dict[str, object] = {"height": height, "trees": trees or (10_000 if model == "gost" else None)}
            if model == "gost" and isinstance(height, str):
                asked["height_test"] = "radius"  # with latencies the text's own test lets higher trees pass
            started = process_time()
            record = run(instance, Request(model, options={**options, **asked}, seed=seed)).record
            seconds = process_time() - started
            rate = float(record.metrics.get("normalized_throughput", 0.0))
            if rate:
                scale = record.metrics["allreduce_rate_Bps"] / rate
                found[name].append((seconds, rate, record.metrics["exact_bound_Bps"] / scale))
            else:
                found[name].append((seconds, 0.0, inf))
    for name, cells in found.items():
        if not cells:
            continue
        bounds = [min(found[other][i][2] for other in ROWS if found[other]) for i in range(len(cells))]
        gaps = [bound / rate - 1 for (_, rate, _), bound in zip(cells, bounds, strict=True) if rate]
        met = sum(gap < 1e-6 for gap in gaps)
        yield name, fmean(c[0] for c in cells), fmean(c[1] for c in cells), fmean(gaps) if gaps else inf, met


def pool_of(wan: Wan, size: int, reading: RateName, seed: int) -> np.ndarray:
    """Grow trees from random starts until there are enough."""
    state, found = random_state(seed), np.empty((0, wan.nodes - 1), dtype=np.int64)
    for _ in range(1000):
        grown = run_gbst(wan, wan.hops(8), 1, GbstVariant(reading, False, False, True, 0), state)
        found = distinct(np.concatenate([found, grown.trees]))
        if len(found) >= size:
            break
    return found[:size]


def selection(wan: Wan, trees: np.ndarray, most: int, seed: int) -> tuple[float, SolverResult]:
    """Solve MILP (1) with a smallest rate of 10 Mb/s, which is the unit of capacity."""
    started = process_time()
    options = SolverOptions(rel_gap=1e-4, node_limit=NODES)
    _, report = select(CandidateTrees(wan, trees, most, 1), solvers.get(), Budget(seed=seed), options)
    return process_time() - started, report


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="GScale, one seed")
    parser.add_argument("--seeds", type=int, default=5, help="number of seeds")
    arguments = parser.parse_args()
    seeds = range(1 if arguments.smoke else arguments.seeds)
    families = ("gscale",) if arguments.smoke else tuple(ASKED)
    run(cwb.load("gscale"), Request("gost"))  # compiles
    run(cwb.load("gscale"), Request("mtree", options={"trees": 3}))
    print("| network | H | K | method | CPU s | normalized throughput | gap, % | bound met |\n" + "|---" * 8 + "|")
    for family in families:
        for height, trees in ASKED[family][:3] if arguments.smoke else ASKED[family]:
            for name, seconds, rate, gap, met in rows(family, height, trees, seeds):
                start = f"| {family} | {height} | {trees or 'any'} | {name} "
                print(f"{start}| {seconds:.2f} | {rate:.3f} | {100 * gap:.2f} | {met} of {len(seeds)} |", flush=True)
    print("\n| network | r* | trees in the pool | K | CPU s, mean | largest | ended |\n" + "|---" * 7 + "|")
    seeds = seeds[: (len(seeds) + 1) // 2]
    for family in families:
        wans = [
            to_wan(cwb.load(f"{family}({SKEWNESS}, {s})").with_changes(demand=cwb.load("gscale").demand)) for s in seeds
        ]
        for reading in ("global_min", "bottleneck"):
            for size in POOLS[:2] if arguments.smoke else POOLS:
                pools = [pool_of(wan, size, reading, s) for s, wan in enumerate(wans)]
                if size > POOLS[0] and max(map(len, pools)) <= POOLS[0]:
                    break  # there are no more
                for most in (5, 10):
                    done = [selection(wan, pools[s], most, s) for s, wan in enumerate(wans)]
                    cpu = [seconds for seconds, _ in done]
                    ended = sum(report.termination is Termination.OPTIMAL for _, report in done)
                    line = f"| {family} | {reading} | {fmean(map(len, pools)):g} | {most} "
                    line += f"| {fmean(cpu):.2f} | {max(cpu):.2f} "
                    print(f"{line}| {ended} of {len(done)} |", flush=True)


if __name__ == "__main__":
    main()
