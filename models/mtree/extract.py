"""Trees with exact rates out of the solved models."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyomo.environ as pyo

from ...algorithms.trees.network import HeightLimit, Wan
from ...algorithms.trees.trees import RatedTrees, exact_rates, within_reach
from ...core.budget import Budget
from ...core.schedule import Floats, Ints
from ...core.solver import Solver, SolverOptions, SolverResult
from .formulations import pricing, selection
from .formulations.selection import model_unit
from .index_sets import LinkPrices, OldAndNew, PosedPool, TreeCount

#: Nodes of the search of a model of patterns, so that every run ends, and ends in the same way on every machine.
NODES = 2000


def select(
    wan: Wan,
    trees: Ints,
    most_trees: int | None,
    floor: Fraction | int,
    solver: Solver,
    budget: Budget,
    options: SolverOptions,
    start: RatedTrees | None = None,
) -> tuple[RatedTrees | None, SolverResult]:
    """Solve MILP (1), and make its rates exact.

    Parameters
    ----------
    wan, trees, most_trees, floor
        As of :func:`.selection.build`.
    solver, budget, options
        Who solves, and within what limits.
    start : RatedTrees or None
        Some trees of the pool with rates, to start from.

    Returns
    -------
    tuple
        The chosen trees, None if the solver found none, and the solver's report.
    """
    with budget.clock.phase("build"):
        model = selection.build(wan, trees, most_trees, floor)
        if start is not None:
            selection.set_start(model, wan, trees, start)
    result = solver.solve(model, budget, options)
    if not result.has_solution:
        return None, result
    return chosen_rates(model, wan, trees, floor), result


def chosen_rates(model: Any, wan: Wan, trees: Ints, floor: Fraction | int) -> RatedTrees:
    """The trees that a solved MILP has chosen, with exact rates."""
    rates = [model_unit(wan) * model.rate[i].value if model.chosen[i].value > 0.5 else 0.0 for i in model.T]
    return exact_rates(wan, trees, rates, floor)


def pattern_rates(model: Any, wan: Wan, old: Ints, floor: Fraction | int) -> RatedTrees:
    """The trees that a solved model of patterns has made, and those of old ones that it uses, with exact rates."""
    rates: dict[tuple[int, ...], float] = {}
    for k in model.K:
        tree = tuple(e for e in model.E if _on(model, k, e))
        if len(tree) == wan.nodes - 1:
            rates[tree] = rates.get(tree, 0.0) + model_unit(wan) * model.rate[k].value
    for i, row in enumerate(np.sort(old, axis=1).tolist()):
        rates[tuple(row)] = rates.get(tuple(row), 0.0) + model_unit(wan) * model.old_rate[i].value
    trees = np.array(list(rates), dtype=np.int64).reshape(-1, wan.nodes - 1)
    return exact_rates(wan, trees, list(rates.values()), floor)


def seconds(index: PosedPool | TreeCount | OldAndNew, objective: float) -> float:
    """The model's objective, a rate, as the time of the all-reduce (``Formulation.value``)."""
    rate = Fraction(objective) * Fraction(model_unit(index.problem.wan))
    return float(index.problem.seconds(rate)) if rate > 0 else float("inf")


def seconds_of_prices(index: LinkPrices, objective: float) -> float | None:
    """What the cost of the cheapest tree proves: no trees carry more than ``b.w / min_T w(T)`` (``Formulation.value``).

    Nothing where all links that carry something are free.
    """
    total = float(index.problem.wan.capacity @ index.price)
    return max(0.0, objective) * float(index.problem.seconds(Fraction(1))) / total if total > 0 else None


def bound_of(result: SolverResult, wan: Wan) -> Fraction | None:
    """The solver's bound on the sum of rates in units, a little loosened, since its tolerances are no proof."""
    if result.bound is None:
        return None
    return Fraction(result.bound) * Fraction(model_unit(wan)) * Fraction(1 + 1e-8)


def best_rates(wan: Wan, trees: Ints, solver: Solver, budget: Budget) -> tuple[RatedTrees | None, SolverResult]:
    """Solve the linear program of rates of given trees, and make these exact; no trees if the solver found none."""
    wan = within_reach(wan, trees)
    with budget.clock.phase("build"):
        model = selection.build_rates(wan, trees)
    result = solver.solve(model, budget, SolverOptions())
    if not result.has_solution:
        return None, result
    return exact_rates(wan, trees, [model_unit(wan) * model.rate[i].value for i in model.T]), result


def cheapest_low_tree(
    wan: Wan, limit: HeightLimit, price: Floats, solver: Solver, budget: Budget, options: SolverOptions
) -> tuple[Ints | None, SolverResult]:
    """Solve the pricing problem; give the links of the tree, None if none was found, and the solver's report."""
    with budget.clock.phase("build"):
        model = pricing.build(wan, limit, price)
    result = solver.solve(model, budget, options)
    if not result.has_solution:
        return None, result
    used = [e for e in model.E if pyo.value(pricing.uses_of(model, e)) > 0.5]
    return np.array(used, dtype=np.int64), result


def pattern_trees(model: Any, wan: Wan, solver: Solver, budget: Budget) -> tuple[Ints | None, SolverResult]:
    """Solve a model of patterns, and read the trees of its best solution; the rates are found again, exactly."""
    result = solver.solve(model, budget, SolverOptions(rel_gap=1e-7, node_limit=NODES))
    if not result.has_solution:
        return None, result
    rows = [[e for e in model.E if _on(model, k, e)] for k in model.K if model.rate[k].value > 1e-9]
    return np.array([row for row in rows if len(row) == wan.nodes - 1], dtype=np.int64).reshape(
        -1, wan.nodes - 1
    ), result


def _on(model: Any, k: int, e: int) -> bool:
    return bool(sum(model.pattern[e, s].value for s in model.S if s >> k & 1) > 0.5)
