"""MILP (1) of MTree as a Pyomo model: at most K trees of a pool, and their rates.

M is as small as it may be, and each tree's own: ``M_i = c_i``, the smallest capacity of its links, since no rate can be larger.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pyomo.environ as pyo

from ....core.budget import Budget
from ....core.schedule import Ints
from ....core.solver import Solver, SolverOptions, SolverResult
from .network import Wan
from .trees import Rated, bottlenecks, exact_rates


def model_unit(wan: Wan) -> float:
    """Give the capacity that the models call 1: a unit, or more where that would make large numbers."""
    return max(1.0, float(wan.capacity.max(initial=1)) / 1000)


def build(wan: Wan, trees: Ints, most_trees: int | None, floor: Fraction | float) -> Any:
    """Build the model.

    Parameters
    ----------
    wan : Wan
        The network.
    trees : array of int, shape (trees, sites - 1)
        The pool.
    most_trees : int or None
        K; None is no limit.
    floor : Fraction or float
        Smallest rate of a chosen tree, in units; at most the smallest capacity of every tree of the pool.
    """
    m = pyo.ConcreteModel("mtree-selection")
    sets(m, wan, trees)
    variables(m)
    link_capacity(m, wan, trees)
    least_rate(m, wan, trees, floor)
    chosen_rate(m, wan, trees)
    tree_count(m, most_trees)
    objective(m)
    return m


def sets(m: Any, wan: Wan, trees: Ints) -> None:
    """Trees i and links j."""
    m.T = pyo.RangeSet(0, len(trees) - 1)
    m.E = pyo.RangeSet(0, len(wan) - 1)


def variables(m: Any) -> None:
    """``r_i``, the rate of a tree, and ``y_i``, whether it is chosen; (1f)."""
    m.rate = pyo.Var(m.T, domain=pyo.NonNegativeReals)
    m.chosen = pyo.Var(m.T, domain=pyo.Binary)


def link_capacity(m: Any, wan: Wan, trees: Ints) -> None:
    """``sum_i a_ij r_i <= b_j`` for every link that a tree has; (1b)."""
    users: dict[int, list[int]] = {}
    for i, tree in enumerate(trees.tolist()):
        for e in tree:
            users.setdefault(e, []).append(i)
    unit = model_unit(wan)

    @m.Constraint(sorted(users))
    def link_capacity(m: Any, e: int) -> Any:
        return pyo.quicksum(m.rate[i] for i in users[e]) <= int(wan.capacity[e]) / unit


def least_rate(m: Any, wan: Wan, trees: Ints, floor: Fraction | float) -> None:
    """``M_i (1 - y_i) + r_i >= rbar``; (1c)."""
    most, unit = bottlenecks(wan, trees).tolist(), model_unit(wan)

    @m.Constraint(m.T)
    def least_rate(m: Any, i: int) -> Any:
        return most[i] / unit * (1 - m.chosen[i]) + m.rate[i] >= float(floor) / unit


def chosen_rate(m: Any, wan: Wan, trees: Ints) -> None:
    """``r_i <= M_i y_i``; (1d)."""
    most, unit = bottlenecks(wan, trees).tolist(), model_unit(wan)

    @m.Constraint(m.T)
    def chosen_rate(m: Any, i: int) -> Any:
        return m.rate[i] <= most[i] / unit * m.chosen[i]


def tree_count(m: Any, most_trees: int | None) -> None:
    """``sum_i y_i <= K``; (1e)."""
    most = len(m.T) if most_trees is None else most_trees

    @m.Constraint()
    def tree_count(m: Any) -> Any:
        return pyo.quicksum(m.chosen[i] for i in m.T) <= most


def objective(m: Any) -> None:
    """Maximize ``sum_i r_i``; (1a)."""
    m.objective = pyo.Objective(expr=pyo.quicksum(m.rate[i] for i in m.T), sense=pyo.maximize)


def select(
    wan: Wan,
    trees: Ints,
    most_trees: int | None,
    floor: Fraction | int,
    solver: Solver,
    budget: Budget,
    options: SolverOptions,
    start: Rated | None = None,
) -> tuple[Rated | None, SolverResult]:
    """Solve the model, and make its rates exact.

    Parameters
    ----------
    wan, trees, most_trees, floor
        As of :func:`build`.
    solver, budget, options
        Who solves, and within what limits.
    start : Rated or None
        Some trees of the pool with rates, to start from.

    Returns
    -------
    tuple
        The chosen trees, None if the solver found none, and the solver's report.
    """
    with budget.clock.phase("build"):
        model = build(wan, trees, most_trees, floor)
        if start is not None:
            set_start(model, wan, trees, start)
    result = solver.solve(model, budget, options)
    if not result.has_solution:
        return None, result
    rates = [model_unit(wan) * model.rate[i].value if model.chosen[i].value > 0.5 else 0.0 for i in model.T]
    return exact_rates(wan, trees, rates, floor), result


def set_start(model: Any, wan: Wan, trees: Ints, start: Rated) -> None:
    """Give the variables the values of known rates."""
    known = {tuple(tree): float(rate) for tree, rate in zip(start.trees.tolist(), start.rates, strict=True)}
    for i, tree in enumerate(trees.tolist()):
        rate = known.get(tuple(tree), 0.0)
        model.rate[i].value = rate / model_unit(wan)
        model.chosen[i].value = 1 if rate else 0
