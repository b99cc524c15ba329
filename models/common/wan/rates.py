"""The best rates of given trees, as a Pyomo model: MILP (1) without its choice."""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo

from ....core.budget import Budget
from ....core.schedule import Ints
from ....core.solver import Solver, SolverOptions, SolverResult
from .network import Wan
from .selection import link_capacity, model_unit, objective, sets
from .trees import Rated, exact_rates


def build(wan: Wan, trees: Ints) -> Any:
    """Build the model: maximize ``sum_i r_i`` subject to ``sum_i a_ij r_i <= b_j``.

    Parameters
    ----------
    wan : Wan
        The network.
    trees : array of int, shape (trees, sites - 1)
        Links of the trees.
    """
    m = pyo.ConcreteModel("wan-rates")
    sets(m, wan, trees)
    variables(m)
    link_capacity(m, wan, trees)
    objective(m)
    return m


def variables(m: Any) -> None:
    """``r_i >= 0``, the rate of a tree."""
    m.rate = pyo.Var(m.T, domain=pyo.NonNegativeReals)


def best_rates(wan: Wan, trees: Ints, solver: Solver, budget: Budget) -> tuple[Rated | None, SolverResult]:
    """Solve the model, and make its rates exact; no trees if the solver found none."""
    with budget.clock.phase("build"):
        model = build(wan, trees)
    result = solver.solve(model, budget, SolverOptions())
    if not result.has_solution:
        return None, result
    return exact_rates(wan, trees, [model_unit(wan) * model.rate[i].value for i in model.T]), result
