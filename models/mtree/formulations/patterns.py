"""The best K trees, exactly, with a binary variable for every carrier and set of trees on it.

MILP (1) over all spanning trees has a bound that stays at that of unlimited K. A carrier e is a link (a
pair of directed links, forth and back), or a directed link that several pairs share. Here its capacity is a
constraint for each pattern S, the set of the trees on it: ``sum_{k in S} r_k <= b_e`` where S is the pattern,
nearly void elsewhere. Beside old trees with rates rho_i it is
``sum_{k in S} r_k + sum_{i old: e in T_i} rho_i <= b_e`` where S is the pattern of new trees on carrier e.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyomo.environ as pyo

from ....algorithms.trees.network import HeightLimit, Wan
from ....algorithms.trees.trees import bottlenecks
from ....core.limits import require_buildable
from ....core.rows import Lists
from ....core.schedule import Ints
from ..index_sets import OldAndNew, TreeCount
from .pricing import Uses, spanning
from .selection import model_unit


def build(
    wan: Wan, limit: HeightLimit | None, most_trees: int, widest: int, ceiling: float, floor: Fraction | int = 0
) -> Any:
    """Build model ``mtree-patterns``: the best K trees.

    Parameters
    ----------
    limit : HeightLimit or None
        Height of the trees; None is any.
    widest : int
        Upper bound on the rate of one tree, in units.
    ceiling : float
        Upper bound on the sum of all rates, in units.
    floor : Fraction or int
        Smallest rate of a tree that is used, in units.
    """
    m = pyo.ConcreteModel("mtree-patterns")
    sets(m, wan, most_trees)
    m.rate = pyo.Var(m.K, bounds=(0, widest / model_unit(wan)))
    m.pattern = pyo.Var(m.C, m.S, domain=pyo.Binary)
    uses = spanning(m, wan, limit)
    one_pattern(m)
    tree_on_link(m, wan, uses)
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
    """Build model ``mtree-repair-patterns``: old trees and at most m new ones.

    Parameters
    ----------
    limit : HeightLimit or None
        Height of new trees; None is any.
    old : array of int, shape (trees, sites - 1)
        Links of the old trees.
    new_trees : int
        m, the largest number of new trees.
    most_trees : int or None
        K; None is no limit.
    widest : int
        Upper bound on the rate of one new tree, in units.
    ceiling : float
        Upper bound on the sum of all rates, in units.
    """
    m = pyo.ConcreteModel("mtree-repair-patterns")
    sets(m, wan, new_trees)
    m.O = pyo.RangeSet(0, len(old) - 1)
    m.rate = pyo.Var(m.K, bounds=(0, widest / model_unit(wan)))
    m.old_rate = pyo.Var(m.O, domain=pyo.NonNegativeReals)
    m.pattern = pyo.Var(m.C, m.S, domain=pyo.Binary)
    uses = spanning(m, wan, limit)
    one_pattern(m)
    tree_on_link(m, wan, uses)
    shared_capacity(m, wan, old, widest)
    falling_rates(m, new_trees)
    site_reached(m, wan)
    ceiling_of_all(m, wan, ceiling)
    if most_trees is not None and most_trees < len(old) + new_trees:
        used_trees(m, wan, old, most_trees, widest)
    objective(m)
    return m


def build_of(index: TreeCount) -> Any:
    """Build model ``mtree-patterns`` of K trees (``Formulation.build``)."""
    problem = index.problem
    limit, ceiling = None if problem.any_height else problem.limit, float(problem.strongest.rate)
    return build(problem.wan, limit, index.most_trees, index.widest, ceiling, problem.floor)


def build_repair_of(index: OldAndNew) -> Any:
    """Build model ``mtree-repair-patterns`` of old trees and m new ones (``Formulation.build``)."""
    problem = index.problem
    limit, ceiling = None if problem.any_height else problem.limit, float(problem.strongest.rate)
    return build_repair(problem.wan, limit, index.old, index.new_trees, index.most_trees, index.widest, ceiling)


def sets(m: Any, wan: Wan, most_trees: int) -> None:
    """Declare trees k, links e, carriers c, sites v, and patterns S, with bit k for tree k."""
    columns = len(wan.room) * 2 ** min(most_trees, 60)
    require_buildable(columns, f"patterns of {most_trees:,} trees on {len(wan.room):,} links", 8e-6)
    m.K = pyo.RangeSet(0, most_trees - 1)
    m.E = pyo.RangeSet(0, len(wan) - 1)
    m.C = pyo.RangeSet(0, len(wan.room) - 1)
    m.V = pyo.RangeSet(0, wan.nodes - 1)
    m.S = pyo.RangeSet(0, 2**most_trees - 1)


def one_pattern(m: Any) -> None:
    """``sum_S z_{c,S} = 1``."""

    @m.Constraint(m.C)
    def one_pattern(m: Any, c: int) -> Any:
        return pyo.quicksum(m.pattern[c, s] for s in m.S) == 1


def tree_on_link(m: Any, wan: Wan, uses: Uses) -> None:
    """``sum_{e of c} x_{k,e} = sum_{S with k} z_{c,S}``."""
    links = Lists()
    for e in m.E:
        for c in wan.carriers([e]):
            links[c].append(e)

    @m.Constraint(m.K, m.C)
    def tree_on_link(m: Any, k: int, c: int) -> Any:
        return sum(uses(k, e) for e in links[c]) == pyo.quicksum(m.pattern[c, s] for s in m.S if s >> k & 1)


def pattern_capacity(m: Any, wan: Wan, widest: int) -> None:
    """``sum_{k in S} r_k <= b_e + (|S| c - b_e) (1 - z_{e,S})`` where ``|S| c > b_e``, c the largest rate of a tree."""
    unit = model_unit(wan)

    def members(s: int) -> list[int]:
        return [k for k in m.K if s >> k & 1]

    @m.Constraint([(c, s) for c in m.C for s in m.S if len(members(s)) * widest > wan.room[c]])
    def pattern_capacity(m: Any, c: int, s: int) -> Any:
        capacity, most = int(wan.room[c]) / unit, len(members(s)) * widest / unit
        return pyo.quicksum(m.rate[k] for k in members(s)) <= capacity + (most - capacity) * (1 - m.pattern[c, s])


def falling_rates(m: Any, most_trees: int) -> None:
    """``r_k >= r_{k+1}``: trees are interchangeable."""

    @m.Constraint(range(most_trees - 1))
    def falling_rates(m: Any, k: int) -> Any:
        return m.rate[k] >= m.rate[k + 1]


def site_reached(m: Any, wan: Wan) -> None:
    """``sum_{c at v} sum_{S with k} z_{c,S} >= 1``; implied, but not without integrality."""

    @m.Constraint(m.K, m.V)
    def site_reached(m: Any, k: int, v: int) -> Any:
        near = sorted(set(wan.carriers(np.flatnonzero((wan.tail == v) | (wan.head == v)).tolist())))
        return pyo.quicksum(m.pattern[c, s] for c in near for s in m.S if s >> k & 1) >= 1


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
    unit, rows = model_unit(wan), [wan.carriers(tree) for tree in old.tolist()]

    @m.Constraint(m.C, m.S)
    def shared_capacity(m: Any, c: int, s: int) -> Any:
        members = [k for k in m.K if s >> k & 1]
        users = [i for i in m.O if c in rows[i]]
        if not users and len(members) * widest <= wan.room[c]:
            return pyo.Constraint.Skip
        load = pyo.quicksum(m.rate[k] for k in members) + pyo.quicksum(m.old_rate[i] for i in users)
        slack = len(members) * widest / unit * (1 - m.pattern[c, s])
        return load <= int(wan.room[c]) / unit + slack


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
    """Limit the sum of all rates by the bound for any number of trees."""

    @m.Constraint()
    def ceiling_of_all(m: Any) -> Any:
        return total_rate(m) <= ceiling / model_unit(wan)


def objective(m: Any) -> None:
    """Maximize the sum of all rates."""
    m.objective = pyo.Objective(expr=total_rate(m), sense=pyo.maximize)
