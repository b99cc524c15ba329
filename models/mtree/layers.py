"""The cheapest spanning tree of a limited height under prices of links, as a Pyomo model: exact pricing for the generation of trees."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo

from ...core.budget import Budget
from ...core.schedule import Floats, Ints
from ...core.solver import Solver, SolverOptions, SolverResult
from ..common.wan.network import Limit, Wan
from .rooted import Uses, labelled, layered


def build(wan: Wan, limit: Limit, price: Floats) -> Any:
    """Build the model of one tree."""
    m = pyo.ConcreteModel("mtree-layers")
    m.K = pyo.RangeSet(0, 0)
    m.E = pyo.RangeSet(0, len(wan) - 1)
    m.V = pyo.RangeSet(0, wan.nodes - 1)
    uses = (layered if limit.unit == "hops" else labelled)(m, wan, limit)
    objective(m, uses, price)
    return m


def objective(m: Any, uses: Uses, price: Floats) -> None:
    """Minimize ``sum_e w_e x_e``."""
    m.objective = pyo.Objective(expr=pyo.quicksum(float(price[e]) * uses(0, e) for e in m.E), sense=pyo.minimize)


def uses_of(m: Any, e: int) -> Any:
    """Give the sum of the arcs of a link, at all depths."""
    return pyo.quicksum(m.arc[0, e, :, ...])


def cheapest(
    wan: Wan, limit: Limit, price: Floats, solver: Solver, budget: Budget, options: SolverOptions
) -> tuple[Ints | None, SolverResult]:
    """Solve the model; give the links of the tree, None if none was found, and the solver's report."""
    with budget.clock.phase("build"):
        model = build(wan, limit, price)
    result = solver.solve(model, budget, options)
    if not result.has_solution:
        return None, result
    used = [e for e in model.E if pyo.value(uses_of(model, e)) > 0.5]
    return np.array(used, dtype=np.int64), result
