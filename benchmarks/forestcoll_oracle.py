"""Speed of `forestcoll` beside its linear program and the published algorithms, written plainly with networkx.

    python benchmarks/forestcoll_oracle.py            # two boxes of A100 and of MI250 GPUs
    python benchmarks/forestcoll_oracle.py --smoke    # small networks, to see that it runs

All three run one after the other in one process, so that the ratios are of the same minutes on the same machine. The
plain implementation is the one that the tests compare with (`tests/models/forestcoll/oracle*.py`): algorithm 1, then 4,
then 5, with exact integers. The whole of `forestcoll`, forest and verification included, is measured with and without
the rounds that make trees lower. `forestcoll-lp` finds the optimum only, and is compared with that step of
`forestcoll`. Processor seconds; imports and compilation are left out.
"""

from __future__ import annotations

import argparse
import sys
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from time import process_time
from typing import Any

import cwb
import numpy as np
from cwb.core.collective import Collective, Demand
from cwb.core.instance import Instance
from cwb.core.trees import TreeKind, TreePacking
from cwb.models.forestcoll.bounds import optimum
from cwb.models.forestcoll.problem import pose

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "models" / "forestcoll"))

GATHER = Demand(Collective.ALL_GATHER, Fraction(2**30))
CASES = ("dgx_a100(boxes=2)", "mi250(boxes=2)")
SMOKE = ("mi250_8(boxes=1)", "star(4)")
HEADINGS = ("network", "k", "plain: algorithm 1", "4", "5", "sum s", "fast s", "repack=0 s", "lp s", "fast, optimum s")
RATIOS = ("plain / fast", "plain / repack=0", "algorithm 1 / fast, optimum", "lp / fast, optimum")


def oracle_forest(instance: Instance, k: int | None = None) -> tuple[TreePacking, list[float]]:
    """Run algorithms 1, 4 and 5, with k trees from every rank 3, 4 and 5; give the forest, and the seconds of each."""
    import oracle
    import oracle_forest
    import oracle_splitting

    network, _ = oracle.from_topology(instance.network)
    times = [process_time()]
    if k is None:
        scale, k = oracle.scale_and_count(network, oracle.optimum(network))
    else:
        scale = oracle.fixed_k(network, k)
    times.append(process_time())
    demand = oracle.uniform(network, k)
    logical = oracle_splitting.remove_switches(oracle.floor_capacities(network, scale), demand)
    times.append(process_time())
    trees = oracle_forest.pack(logical.capacity, demand)
    times.append(process_time())
    oracle_forest.check_forest(network, k, scale, physical := oracle_forest.expand(trees, logical))
    return packing_of(instance, physical, k), [b - a for a, b in pairwise(times)]


def packing_of(instance: Instance, trees: Any, k: int) -> TreePacking:
    """Write trees with several paths for an edge as trees with one: they are divided where a path of an edge ends."""
    rank = {node: i for i, node in enumerate(instance.network.rank_nodes)}
    link = {ends: i for i, ends in enumerate(instance.network.link_ends)}
    roots, units, parents, children, paths = [], [], [], [], []
    for tree in trees:
        ends = {edge: np.cumsum([amount for _, amount in pieces]) for edge, pieces in tree.paths.items()}
        before = 0
        for end in sorted({int(value) for values in ends.values() for value in values}):
            roots.append(rank[tree.root])
            units.append(end - before)
            before = end
            for (a, b), pieces in tree.paths.items():
                parents.append(rank[a])
                children.append(rank[b])
                paths.append([link[hop] for hop in pairwise(pieces[int(np.searchsorted(ends[a, b], end))][0])])
    return TreePacking(
        instance.sha256,
        TreeKind.OUT,
        np.array(roots),
        np.array(units),
        instance.demand.size_bytes / len(rank) / k,
        np.arange(len(roots) + 1) * (len(rank) - 1),
        np.array(parents),
        np.array(children),
        np.cumsum([0, *map(len, paths)]),
        np.concatenate(paths),
    )


def time_solve(instance: Instance, model: str, **options: Any) -> tuple[Any, float]:
    """Solve by a method of the registry; give the record and the seconds."""
    begin = process_time()
    record = cwb.solve(instance, model, **options)
    seconds = process_time() - begin
    if not record.status.startswith(("optimal", "feasible")):
        raise RuntimeError(f"{model}: {record.status}: {record.message}")
    return record, seconds


def optimum_s(instance: Instance, repetitions: int = 20) -> float:
    """Seconds of the fast path's optimum alone, the mean of several."""
    begin = process_time()
    for _ in range(repetitions):
        _, problem = pose(instance)
        optimum(problem)
    return (process_time() - begin) / repetitions


def row(name: str) -> tuple[str, ...]:
    """Run all three on one network and compare their results."""
    instance = cwb.load(name).with_changes(demand=GATHER)
    packing, plain = oracle_forest(instance)
    verdict = cwb.verify(instance, packing)
    lp, lp_s = time_solve(instance, "forestcoll-lp")
    fast, fast_s = time_solve(instance, "forestcoll", symmetry="none")
    _, bare_s = time_solve(instance, "forestcoll", symmetry="none", repack=0)
    if not (verdict.ok and verdict.objective == fast.objective and lp.metrics["inv_x"] == fast.metrics["inv_x"]):
        raise RuntimeError(f"{name}: the three do not agree")
    alone_s = optimum_s(instance)
    ratios = (sum(plain) / fast_s, sum(plain) / bare_s, plain[0] / alone_s, lp_s / alone_s)
    numbers = [f"{value:.2f}" for value in (*plain, sum(plain), fast_s)]
    small = [f"{value:.4f}" for value in (bare_s, lp_s, alone_s)]
    return (name, str(fast.metrics["k"]), *numbers, *small, *(f"{ratio:,.1f}" for ratio in ratios))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smoke", action="store_true", help="small networks only")
    smoke = parser.parse_args().smoke
    row(SMOKE[0])  # imports and compilation
    print("|", " | ".join(HEADINGS + RATIOS), "|")
    print("|---" * len(HEADINGS + RATIOS) + "|")
    for name in SMOKE if smoke else CASES:
        print("|", " | ".join(row(name)), "|", flush=True)


if __name__ == "__main__":
    main()
