"""The best K trees, exactly: a Pyomo model with a binary variable for every link and every set of trees that may use it.

MILP (1) over all spanning trees has a bound that stays at that of unlimited K. Here the capacity of a link is a row for each pattern S, the set
of the trees on it: ``sum_{k in S} r_k <= b_e`` where S is the pattern, and nothing much where it is not.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyomo.environ as pyo

from ...core.budget import Budget
from ...core.schedule import Ints
from ...core.solver import Solver, SolverOptions, SolverResult
from ..common.wan.network import Limit, Wan
from ..common.wan.selection import model_unit
from .rooted import Uses, flowing, labelled, layered

#: Nodes of the search, so that every run ends, and ends in the same way on every machine.
NODES = 2000


def build(
    wan: Wan, limit: Limit | None, most_trees: int, widest: int, ceiling: float, floor: Fraction | int = 0
) -> Any:
    """Build the model.

    Parameters
    ----------
    wan : Wan
        The network.
    limit : Limit or None
        Height of the trees; None is any.
    most_trees : int
        K.
    widest : int
        A rate that no single tree exceeds, in units.
    ceiling : float
        A rate that all trees together do not exceed, in units.
    floor : Fraction or int
        Smallest rate of a tree that is used, in units.
    """
    m = pyo.ConcreteModel("mtree-patterns")
    sets(m, wan, most_trees)
    m.rate = pyo.Var(m.K, bounds=(0, widest / model_unit(wan)))
    m.pattern = pyo.Var(m.E, m.S, domain=pyo.Binary)
    uses = flowing(m, wan) if limit is None else (layered if limit.unit == "hops" else labelled)(m, wan, limit)
    one_pattern(m)
    tree_on_link(m, uses)
    pattern_capacity(m, wan, widest)
    falling_rates(m, most_trees)
    site_reached(m, wan)
    if floor:
        used_rate(m, wan, widest, floor)
    objective(m, wan, ceiling)
    return m


def sets(m: Any, wan: Wan, most_trees: int) -> None:
    """Trees k, links e, sites v, and patterns S: bit k of S says whether tree k is on the link."""
    m.K = pyo.RangeSet(0, most_trees - 1)
    m.E = pyo.RangeSet(0, len(wan) - 1)
    m.V = pyo.RangeSet(0, wan.nodes - 1)
    m.S = pyo.RangeSet(0, 2**most_trees - 1)


def one_pattern(m: Any) -> None:
    """``sum_S z_{e,S} = 1``."""

    @m.Constraint(m.E)
    def one_pattern(m: Any, e: int) -> Any:
        return pyo.quicksum(m.pattern[e, s] for s in m.S) == 1


def tree_on_link(m: Any, uses: Uses) -> None:
    """``x_{k,e} = sum_{S with k} z_{e,S}``."""

    @m.Constraint(m.K, m.E)
    def tree_on_link(m: Any, k: int, e: int) -> Any:
        return uses(k, e) == pyo.quicksum(m.pattern[e, s] for s in m.S if s >> k & 1)


def pattern_capacity(m: Any, wan: Wan, widest: int) -> None:
    """``sum_{k in S} r_k <= b_e + (|S| c - b_e) (1 - z_{e,S})`` where ``|S| c > b_e``, c the largest rate of a tree; else it holds always."""
    unit = model_unit(wan)

    def members(s: int) -> list[int]:
        return [k for k in m.K if s >> k & 1]

    @m.Constraint([(e, s) for e in m.E for s in m.S if len(members(s)) * widest > wan.capacity[e]])
    def pattern_capacity(m: Any, e: int, s: int) -> Any:
        capacity, most = int(wan.capacity[e]) / unit, len(members(s)) * widest / unit
        return pyo.quicksum(m.rate[k] for k in members(s)) <= capacity + (most - capacity) * (1 - m.pattern[e, s])


def falling_rates(m: Any, most_trees: int) -> None:
    """``r_k >= r_{k+1}``: trees have no names."""

    @m.Constraint(range(most_trees - 1))
    def falling_rates(m: Any, k: int) -> Any:
        return m.rate[k] >= m.rate[k + 1]


def site_reached(m: Any, wan: Wan) -> None:
    """``sum_{e at v} sum_{S with k} z_{e,S} >= 1``; implied, but not without integrality."""

    @m.Constraint(m.K, m.V)
    def site_reached(m: Any, k: int, v: int) -> Any:
        near = np.flatnonzero((wan.tail == v) | (wan.head == v)).tolist()
        return pyo.quicksum(m.pattern[e, s] for e in near for s in m.S if s >> k & 1) >= 1


def used_rate(m: Any, wan: Wan, widest: int, floor: Fraction | int) -> None:
    """``rbar u_k <= r_k <= c u_k``: a tree that is used has at least the smallest rate."""
    unit = model_unit(wan)
    m.used = pyo.Var(m.K, domain=pyo.Binary)

    @m.Constraint(m.K)
    def used_most(m: Any, k: int) -> Any:
        return m.rate[k] <= widest / unit * m.used[k]

    @m.Constraint(m.K)
    def used_least(m: Any, k: int) -> Any:
        return m.rate[k] >= float(floor) / unit * m.used[k]


def objective(m: Any, wan: Wan, ceiling: float) -> None:
    """Maximize ``sum_k r_k``, which is at most the bound for any number of trees."""
    total = pyo.quicksum(m.rate[k] for k in m.K)

    @m.Constraint()
    def ceiling_of_all(m: Any) -> Any:
        return total <= ceiling / model_unit(wan)

    m.objective = pyo.Objective(expr=total, sense=pyo.maximize)


def solve(model: Any, wan: Wan, solver: Solver, budget: Budget) -> tuple[Ints | None, SolverResult]:
    """Solve the model, and read the trees of its best solution; the rates are found anew, exactly."""
    result = solver.solve(model, budget, SolverOptions(rel_gap=1e-7, node_limit=NODES))
    if not result.has_solution:
        return None, result
    rows = [[e for e in model.E if _on(model, k, e)] for k in model.K if model.rate[k].value > 1e-9]
    return np.array([row for row in rows if len(row) == wan.nodes - 1], dtype=np.int64).reshape(
        -1, wan.nodes - 1
    ), result


def _on(model: Any, k: int, e: int) -> bool:
    return bool(sum(model.pattern[e, s].value for s in model.S if s >> k & 1) > 0.5)
