"""``blink-wan``: Blink's packing of spanning trees by multiplicative weights, and its cut to few trees, on a wide-area network.

Sources: what Wang et al., "Blink: Fast and Generic Collectives for Distributed ML", MLSys 2020, is generally known for: a fractional packing by
multiplicative weights, then an integer program that keeps few trees; and N. Garg and J. Könemann's packing of columns. How
Blink would run on a wide-area network is a guess.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ...core.budget import Budget
from ...core.instance import Instance
from ...core.method import Outcome, Status
from ...core.schedule import Floats, Ints
from ...core.solver import Solver, SolverOptions, SolverResult
from ..common.wan.bottleneck import spanning_tree
from ..common.wan.network import Wan
from ..common.wan.rates import best_rates
from ..common.wan.selection import select
from ..common.wan.trees import Rated, exact_rates
from . import units
from .answer import ask, tree_outcome
from .options import BlinkWanOptions

#: Heaviest trees of the packing that the integer programs are given.
_FOR_UNITS, _FOR_TREES = 200, 60


def run(instance: Instance, solver: Solver, budget: Budget, options: BlinkWanOptions) -> Outcome:
    """Pack, then cut (``Method.run``)."""
    posed = ask(instance, budget)
    with budget.clock.phase("pack"):
        trees, weights = weighted_packing(posed.wan, options.accuracy, options.steps, budget)
    budget.progress(f"{len(trees):,} trees packed")
    rated, report = cut(posed.wan, trees, weights, solver, budget, options)
    if rated is None or not rated.rates:
        return Outcome(Status.LIMIT, message="the budget ended before trees were chosen", **posed.proved)
    metrics = {"pool": len(trees), "packing_rate_Bps": float(weights.sum()) * float(posed.wan.unit_Bps)}
    return tree_outcome(
        posed,
        rated,
        common_root=options.root == "common",
        reports=[report],
        rounds=len(trees),
        metrics=metrics,
    )


def weighted_packing(wan: Wan, accuracy: float, steps: int, budget: Budget) -> tuple[Ints, Floats]:
    """Pack trees by multiplicative weights (Garg and Könemann).

    The cheapest tree under prices ``y_e`` gets ``c = min b_e`` more, and its links' prices rise by ``1 + eps c / b_e``, until the cheapest
    tree costs 1; then all rates are divided by the largest load of a link over its capacity.

    Returns
    -------
    tuple
        Different trees, the heaviest first, and their rates in units.
    """
    capacity = wan.capacity.astype(np.float64)
    price = 1e-6 / capacity
    pushed: dict[tuple[int, ...], float] = {}
    for _ in range(steps):
        tree = spanning_tree(wan, np.argsort(price, kind="stable").tolist()) or []
        if price[tree].sum() >= 1 or (pushed and budget.exhausted):
            break
        least = float(capacity[tree].min())
        pushed[tuple(tree)] = pushed.get(tuple(tree), 0.0) + least
        price[tree] *= 1 + accuracy * least / capacity[tree]
    order = sorted(pushed, key=lambda tree: (-pushed[tree], tree))
    trees, weights = np.array(order, dtype=np.int64), np.array([pushed[tree] for tree in order])
    load = np.bincount(trees.ravel(), np.repeat(weights, wan.nodes - 1), len(wan))
    return trees, weights / (load / capacity).max()


def cut(
    wan: Wan, trees: Ints, weights: Floats, solver: Solver, budget: Budget, options: BlinkWanOptions
) -> tuple[Rated | None, SolverResult]:
    """Keep few trees, or all, at the best rates."""
    if options.cut == "none":
        return best_rates(wan, trees, solver, budget)
    search = SolverOptions(node_limit=options.nodes)
    if options.cut == "trees":
        few = trees[:_FOR_TREES]
        start = exact_rates(wan, few[: options.trees], weights[: options.trees])
        return select(wan, few, options.trees, 0, solver, budget, search, start)
    few, unit = trees[:_FOR_UNITS], int(wan.capacity.min())
    with budget.clock.phase("build"):
        model = units.build(wan, few, unit)
    result = solver.solve(model, budget, search)
    if not result.has_solution:
        return None, result
    counts = [round(model.count[i].value) for i in model.T]
    chosen = [i for i, count in enumerate(counts) if count]
    return Rated(few[chosen], tuple(Fraction(counts[i] * unit) for i in chosen)), result
