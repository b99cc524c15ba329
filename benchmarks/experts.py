"""Placements of experts: the example of DeepSeek's EPLB, its program's largest load, the usual placement here, and the optimum.

    python benchmarks/experts.py            # with groups on nodes
    python benchmarks/experts.py --free     # without, which takes minutes
    python benchmarks/experts.py --smoke    # six experts of the first layer, on four GPUs

The example and its program are deepseek-ai/EPLB on GitHub (MIT): 12 experts, 16 replicas, 4 groups, 2 nodes, 8 GPUs. Loads of placements
are added up here again from where the replicas are.
"""

from __future__ import annotations

import argparse
from collections import Counter
from fractions import Fraction

from cwb import solvers
from cwb.core.budget import Budget
from cwb.core.solver import SolverOptions
from cwb.instances import load
from cwb.models.experts.formulation import build
from cwb.models.experts.method import PlacementOptions
from cwb.models.experts.problem import Placement, greedy, index, placed
from rich.console import Console
from rich.table import Table

#: Loads of the experts of two layers, and the largest load of the published program's placement of the first.
LAYERS = (
    ([90, 132, 40, 61, 104, 165, 39, 4, 73, 56, 183, 86], "156"),
    ([20, 107, 104, 64, 19, 197, 187, 157, 172, 86, 16, 27], "-"),
)


def largest(loads: list[int], placement: Placement) -> Fraction:
    """The largest load of a GPU, from the slots alone."""
    count = Counter(e for slots in placement for e in slots)
    assert set(count) == set(range(len(loads)))
    return max(sum((Fraction(loads[e], count[e]) for e in slots), Fraction(0)) for slots in placement)


def main() -> None:
    """Print a line for every layer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--free", action="store_true", help="groups are not bound to nodes")
    parser.add_argument("--smoke", action="store_true", help="a small part of the first layer")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for each layer")
    arguments = parser.parse_args()
    table = Table("layer", "published program", "usual placement", "best found", "bound", "status")
    count, gpus, replicas = (6, 4, 8) if arguments.smoke else (12, 8, 16)
    groups, nodes = (1, 1) if arguments.free else (2, 2) if arguments.smoke else (4, 2)
    as_published = not (arguments.smoke or arguments.free)
    for layer, (all_loads, published) in enumerate(LAYERS[: 1 if arguments.smoke else None], 1):
        loads = all_loads[:count]
        options = PlacementOptions(loads=[float(w) for w in loads], replicas=replicas, groups=groups, nodes=nodes)
        problem = index(load(f"star({gpus})"), options)
        model = build(problem)
        result = solvers.get("highs").solve(model, Budget(time_limit_s=arguments.limit), SolverOptions())
        cells = (
            layer,
            published if as_published else "-",
            float(largest(loads, greedy(problem))),
            float(largest(loads, placed(model, problem))),
            f"{result.bound:.6g}",
            result.termination.value,
        )
        table.add_row(*map(str, cells))
    Console().print(table)


if __name__ == "__main__":
    main()
