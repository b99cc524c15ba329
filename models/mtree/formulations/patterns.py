"""The best K trees, exactly, by link patterns: a binary variable for every link and every set of trees that may use it.

MILP (1) over all spanning trees has a bound that stays at that of unlimited K. Here the capacity of a link is a row
for each pattern S, the set of the trees on it: ``sum_{k in S} r_k <= b_e`` where S is the pattern, and nothing much
where it is not. Beside old trees with rates rho_i it is ``sum_{k in S} r_k + sum_{i old: e in T_i} rho_i <= b_e``
where S is the pattern of new trees on link e.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyomo.environ as pyo

from ....algorithms.trees.network import HeightLimit, Wan
from ....algorithms.trees.trees import bottlenecks
from ....core.effort import require_buildable
from ....core.schedule import Ints
from ..index_sets import OldAndNew, TreeCount
from .pricing import Uses, spanning
from .selection import model_unit


def build(
    wan: Wan, limit: HeightLimit | None, most_trees: int, widest: int, ceiling: float, floor: Fraction | int = 0
) -> Any:
    """Model ``mtree-patterns``: the best K trees.

    Parameters
    ----------
    wan : Wan
        The network.
    limit : HeightLimit or None
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
    uses = spanning(m, wan, limit)
    one_pattern(m)
    tree_on_link(m, uses)
    pattern_capacity(m, wan, widest)
    falling_rates(m, most_trees)
    site_reached(m, wan)
    if floor:
        used_rate(m, wan, widest, floor)
    ceiling_of_all(m, wan, ceiling)
    objective(m)
    return m


def build_repair(
    wan: Wan, limit: HeightLimit | None, old: Ints, new_trees: int, most_trees: int | None, widest: int, ceiling: float
) -> Any:
    """Model ``mtree-repair-patterns``: old trees and at most m new ones.

    Parameters
    ----------
    wan : Wan
        The network.
    limit : HeightLimit or None
        Height of new trees; None is any.
    old : array of int, shape (trees, sites - 1)
        Links of the old trees.
    new_trees : int
        m.
    most_trees : int or None
        K; None is no limit.
    widest : int
        A rate that no single new tree exceeds, in units.
    ceiling : float
        A rate that all trees together do not exceed, in units.
    """
    m = pyo.ConcreteModel("mtree-repair-patterns")
    sets(m, wan, new_trees)
    m.O = pyo.RangeSet(0, len(old) - 1)
    m.rate = pyo.Var(m.K, bounds=(0, widest / model_unit(wan)))
    m.old_rate = pyo.Var(m.O, domain=pyo.NonNegativeReals)
    m.pattern = pyo.Var(m.E, m.S, domain=pyo.Binary)
    uses = spanning(m, wan, limit)
    one_pattern(m)
    tree_on_link(m, uses)
    shared_capacity(m, wan, old, widest)
    falling_rates(m, new_trees)
    site_reached(m, wan)
    ceiling_of_all(m, wan, ceiling)
    if most_trees is not None and most_trees < len(old) + new_trees:
        used_trees(m, wan, old, most_trees, widest)
    objective(m)
    return m


def build_of(index: TreeCount) -> Any:
    """Model ``mtree-patterns`` of K trees (``Formulation.build``)."""
    problem = index.problem
    limit, ceiling = None if problem.any_height else problem.limit, float(problem.strongest.rate)
    return build(problem.wan, limit, index.most_trees, index.widest, ceiling, problem.floor)


def build_repair_of(index: OldAndNew) -> Any:
    """Model ``mtree-repair-patterns`` of old trees and m new ones (``Formulation.build``)."""
    problem = index.problem
    limit, ceiling = None if problem.any_height else problem.limit, float(problem.strongest.rate)
    return build_repair(problem.wan, limit, index.old, index.new_trees, index.most_trees, index.widest, ceiling)


def sets(m: Any, wan: Wan, most_trees: int) -> None:
    """Trees k, links e, sites v, and patterns S: bit k of S says whether tree k is on the link."""
    columns = len(wan) * 2 ** min(most_trees, 60)
    require_buildable(columns, f"patterns of {most_trees:,} trees on {len(wan):,} links", 8e-6)
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
    """``sum_{k in S} r_k <= b_e + (|S| c - b_e) (1 - z_{e,S})`` where ``|S| c > b_e``, c the largest rate of a tree."""
    unit = model_unit(wan)

    def members(s: int) -> list[int]:
        return [k for k in m.K if s >> k & 1]

    @m.Constraint([(e, s) for e in m.E for s in m.S if len(members(s)) * widest > wan.capacity[e]])
    def pattern_capacity(m: Any, e: int, s: int) -> Any:
        capacity, most = int(wan.capacity[e]) / unit, len(members(s)) * widest / unit
        return pyo.quicksum(m.rate[k] for k in members(s)) <= capacity + (most - capacity) * (1 - m.pattern[e, s])


def falling_rates(m: Any, most_trees: int) -> None:
    """``r_k >= r_{k+1}``: trees are interchangeable."""

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


def shared_capacity(m: Any, wan: Wan, old: Ints, widest: int) -> None:
    """``sum_{k in S} r_k + sum_{i old: e in T_i} rho_i <= b_e + |S| c (1 - z_{e,S})``."""
    unit, rows = model_unit(wan), old.tolist()

    @m.Constraint(m.E, m.S)
    def shared_capacity(m: Any, e: int, s: int) -> Any:
        members = [k for k in m.K if s >> k & 1]
        users = [i for i in m.O if e in rows[i]]
        if not users and len(members) * widest <= wan.capacity[e]:
            return pyo.Constraint.Skip
        load = pyo.quicksum(m.rate[k] for k in members) + pyo.quicksum(m.old_rate[i] for i in users)
        slack = len(members) * widest / unit * (1 - m.pattern[e, s])
        return load <= int(wan.capacity[e]) / unit + slack


def used_trees(m: Any, wan: Wan, old: Ints, most_trees: int, widest: int) -> None:
    """``r_k <= c u_k``, ``rho_i <= c_i y_i``, ``sum_k u_k + sum_i y_i <= K``."""
    unit, most = model_unit(wan), bottlenecks(wan, old).tolist()
    m.used = pyo.Var(m.K, domain=pyo.Binary)
    m.old_used = pyo.Var(m.O, domain=pyo.Binary)

    @m.Constraint(m.K)
    def used_new(m: Any, k: int) -> Any:
        return m.rate[k] <= widest / unit * m.used[k]

    @m.Constraint(m.O)
    def used_old(m: Any, i: int) -> Any:
        return m.old_rate[i] <= most[i] / unit * m.old_used[i]

    @m.Constraint()
    def used_in_all(m: Any) -> Any:
        return pyo.quicksum(m.used[k] for k in m.K) + pyo.quicksum(m.old_used[i] for i in m.O) <= most_trees


def total_rate(m: Any) -> Any:
    """``sum_k r_k``, and ``sum_i rho_i`` where there are old trees."""
    new = pyo.quicksum(m.rate[k] for k in m.K)
    return new + pyo.quicksum(m.old_rate[i] for i in m.O) if hasattr(m, "O") else new


def ceiling_of_all(m: Any, wan: Wan, ceiling: float) -> None:
    """The sum of all rates is at most what is proved for any number of trees."""

    @m.Constraint()
    def ceiling_of_all(m: Any) -> Any:
        return total_rate(m) <= ceiling / model_unit(wan)


def objective(m: Any) -> None:
    """Maximize the sum of all rates."""
    m.objective = pyo.Objective(expr=total_rate(m), sense=pyo.maximize)
