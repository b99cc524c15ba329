"""Trees with exact rates from solved models."""

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
from .index_sets import CandidateTrees, LinkPrices, PosedPatterns, PosedPool, TreePatterns

#: Nodes of the search of a model of patterns, so that every run ends, and ends in the same way on every machine.
NODES = 2000


def select(
    pool: CandidateTrees, solver: Solver, budget: Budget, options: SolverOptions, start: RatedTrees | None = None
) -> tuple[RatedTrees | None, SolverResult]:
    """Solve MILP (1), if possible from some trees of the pool with rates, and make its rates exact.

    Return the chosen trees, None if the solver found none, and the solver's report.
    """
    with budget.clock.phase("build"):
        model = selection.build(pool)
        if start is not None:
            selection.set_start(model, pool, start)
    result = solver.solve(model, budget, options)
    if not result.has_solution:
        return None, result
    return chosen_rates(model, pool), result


def chosen_rates(model: Any, pool: CandidateTrees) -> RatedTrees:
    """Return the trees that a solved MILP has chosen, with exact rates."""
    unit = model_unit(pool.wan)
    rates = [unit * model.rate[i].value if model.chosen[i].value > 0.5 else 0.0 for i in model.T]
    return exact_rates(pool.wan, pool.trees, rates, pool.floor)


def pattern_rates(model: Any, patterns: TreePatterns) -> RatedTrees:
    """Return a solved pattern model's new trees and used old trees, with exact rates."""
    wan, rates = patterns.wan, dict[tuple[int, ...], float]()
    for k in model.K:
        tree = tuple(e for e in model.E if _on(model, wan, k, e))
        if len(tree) == wan.nodes - 1:
            rates[tree] = rates.get(tree, 0.0) + model_unit(wan) * model.rate[k].value
    for i, row in enumerate([] if patterns.old is None else np.sort(patterns.old, axis=1).tolist()):
        rates[tuple(row)] = rates.get(tuple(row), 0.0) + model_unit(wan) * model.old_rate[i].value
    trees = np.array(list(rates), dtype=np.int64).reshape(-1, wan.nodes - 1)
    return exact_rates(wan, trees, list(rates.values()), patterns.floor)


def seconds(index: PosedPool | PosedPatterns, objective: float) -> float:
    """Convert the model's objective, a rate, to the time of the all-reduce (``Formulation.value``)."""
    rate = Fraction(objective) * Fraction(model_unit(index.problem.wan))
    return float(index.problem.seconds(rate)) if rate > 0 else float("inf")


def seconds_of_prices(index: LinkPrices, objective: float) -> float | None:
    """Return the time by the bound ``b.w / min_T w(T)`` on rates; None if all are free (``Formulation.value``)."""
    total = float(index.problem.wan.capacity @ index.price)
    return max(0.0, objective) * float(index.problem.seconds(Fraction(1))) / total if total > 0 else None


def bound_of(result: SolverResult, wan: Wan) -> Fraction | None:
    """Return the solver's bound on the total rate in units, loosened by 1e-8 for its tolerances."""
    if result.bound is None:
        return None
    return Fraction(result.bound) * Fraction(model_unit(wan)) * Fraction(1 + 1e-8)


def best_rates(wan: Wan, trees: Ints, solver: Solver, budget: Budget) -> tuple[RatedTrees | None, SolverResult]:
    """Solve the linear program of given trees' rates and make them exact; None if no solution has any.

    A solver that is stopped at once may return the rates that it began with, all zero.
    """
    wan = within_reach(wan, trees)
    with budget.clock.phase("build"):
        model = selection.build_rates(CandidateTrees(wan, trees))
    result = solver.solve(model, budget, SolverOptions())
    if not result.has_solution:
        return None, result
    rated = exact_rates(wan, trees, [model_unit(wan) * model.rate[i].value for i in model.T])
    return rated if rated.total else None, result


def cheapest_low_tree(
    wan: Wan, limit: HeightLimit, price: Floats, solver: Solver, budget: Budget, options: SolverOptions
) -> tuple[Ints | None, SolverResult]:
    """Solve the pricing problem; return the tree's links, None if none was found, and the report."""
    with budget.clock.phase("build"):
        model = pricing.build(wan, limit, price)
    result = solver.solve(model, budget, options)
    if not result.has_solution:
        return None, result
    used = [e for e in model.E if pyo.value(pricing.uses_of(model, e)) > 0.5]
    return np.array(used, dtype=np.int64), result


def pattern_trees(model: Any, wan: Wan, solver: Solver, budget: Budget) -> tuple[Ints | None, SolverResult]:
    """Solve a model of patterns and read its trees; their rates are recomputed exactly."""
    result = solver.solve(model, budget, SolverOptions(rel_gap=1e-7, node_limit=NODES))
    if not result.has_solution:
        return None, result
    rows = [[e for e in model.E if _on(model, wan, k, e)] for k in model.K if model.rate[k].value > 1e-9]
    return np.array([row for row in rows if len(row) == wan.nodes - 1], dtype=np.int64).reshape(
        -1, wan.nodes - 1
    ), result


def _on(model: Any, wan: Wan, k: int, e: int) -> bool:
    return all(sum(model.pattern[c, s].value for s in model.S if s >> k & 1) > 0.5 for c in wan.carriers([e]))
