"""The best K trees, exactly, with a binary variable for every carrier and set of trees on it.

A carrier e is a link (a pair of directed links), or a directed link that several pairs share. Its capacity is a
constraint for each pattern S, a set of trees (docs/methods/mtree.md). Beside old trees with rates rho_i it is
``sum_{k in S} r_k + sum_{i old: e in T_i} rho_i <= b_e`` where S is the pattern of new trees on e.
"""

from typing import Any

import numpy as np
import pyomo.environ as pyo

from ....algorithms.trees.network import Wan
from ....algorithms.trees.trees import bottlenecks
from ....core.budget import require_buildable
from ....core.rows import Lists
from ....core.schedule import Ints
from ..problem import TreePatterns
from .pricing import Uses, spanning
from .selection import model_unit


def build(trees: TreePatterns) -> Any:
    """Build model ``mtree-patterns``, the best K trees, or ``mtree-repair-patterns``, at most m beside old ones."""
    m = pyo.ConcreteModel("mtree-patterns" if trees.old is None else "mtree-repair-patterns")
    sets(m, trees)
    variables(m, trees)
    uses = spanning(m, trees.wan, trees.limit)
    one_pattern(m)
    tree_on_link(m, trees.wan, uses)
    if trees.old is None:
        pattern_capacity(m, trees)
    else:
        shared_capacity(m, trees, trees.old)
    falling_rates(m, trees.count)
    site_reached(m, trees.wan)
    if trees.floor:
        used_rate(m, trees)
    ceiling_of_all(m, trees)
    if trees.old is not None and trees.most_trees is not None and trees.most_trees < len(trees.old) + trees.count:
        used_trees(m, trees, trees.old, trees.most_trees)
    objective(m)
    return m


def sets(m: Any, trees: TreePatterns) -> None:
    """Declare trees k, old trees i, links e, carriers c, sites v, patterns S (bit k is tree k)."""
    wan, count = trees.wan, trees.count
    require_buildable(
        len(wan.room) * 2 ** min(count, 60), f"patterns of {count:,} trees on {len(wan.room):,} links", 8e-6
    )
    m.K = pyo.RangeSet(0, count - 1)
    m.E = pyo.RangeSet(0, len(wan) - 1)
    m.C = pyo.RangeSet(0, len(wan.room) - 1)
    m.V = pyo.RangeSet(0, wan.nodes - 1)
    m.S = pyo.RangeSet(0, 2**count - 1)
    if trees.old is not None:
        m.O = pyo.RangeSet(0, len(trees.old) - 1)


def variables(m: Any, trees: TreePatterns) -> None:
    """``0 <= r_k <= c``, the rate of a tree; ``rho_i >= 0``, of an old one; ``z_{c,S}``, 1 if S are the trees on c."""
    m.rate = pyo.Var(m.K, bounds=(0, trees.widest / model_unit(trees.wan)))
    if trees.old is not None:
        m.old_rate = pyo.Var(m.O, domain=pyo.NonNegativeReals)
    m.pattern = pyo.Var(m.C, m.S, domain=pyo.Binary)


def one_pattern(m: Any) -> None:
    """``sum_S z_{c,S} = 1``."""

    @m.Constraint(m.C)
    def one_pattern(m: Any, c: int) -> Any:
        return pyo.quicksum(m.pattern[c, s] for s in m.S) == 1


def tree_on_link(m: Any, wan: Wan, uses: Uses) -> None:
    """``sum_{e on c} x_{k,e} = sum_{S with k} z_{c,S}``."""
    links = Lists()
    for e in m.E:
        for c in wan.carriers([e]):
            links[c].append(e)

    @m.Constraint(m.K, m.C)
    def tree_on_link(m: Any, k: int, c: int) -> Any:
        return sum(uses(k, e) for e in links[c]) == pyo.quicksum(m.pattern[c, s] for s in m.S if s >> k & 1)


def pattern_capacity(m: Any, trees: TreePatterns) -> None:
    """``sum_{k in S} r_k <= b_e + (|S| c - b_e) (1 - z_{e,S})`` where ``|S| c > b_e``; without old trees.

    c is the largest rate of a tree.
    """
    wan, widest, unit = trees.wan, trees.widest, model_unit(trees.wan)

    def members(s: int) -> list[int]:
        return [k for k in m.K if s >> k & 1]

    @m.Constraint([(c, s) for c in m.C for s in m.S if len(members(s)) * widest > wan.room[c]])
    def pattern_capacity(m: Any, c: int, s: int) -> Any:
        capacity, most = int(wan.room[c]) / unit, len(members(s)) * widest / unit
        return pyo.quicksum(m.rate[k] for k in members(s)) <= capacity + (most - capacity) * (1 - m.pattern[c, s])


def falling_rates(m: Any, count: int) -> None:
    """``r_k >= r_{k+1}``: trees are interchangeable."""

    @m.Constraint(range(count - 1))
    def falling_rates(m: Any, k: int) -> Any:
        return m.rate[k] >= m.rate[k + 1]


def site_reached(m: Any, wan: Wan) -> None:
    """``sum_{c at v} sum_{S with k} z_{c,S} >= 1``; implied, but not without integrality."""

    @m.Constraint(m.K, m.V)
    def site_reached(m: Any, k: int, v: int) -> Any:
        near = sorted(set(wan.carriers(np.flatnonzero((wan.tail == v) | (wan.head == v)).tolist())))
        return pyo.quicksum(m.pattern[c, s] for c in near for s in m.S if s >> k & 1) >= 1


def used_rate(m: Any, trees: TreePatterns) -> None:
    """``rbar u_k <= r_k <= c u_k``: a tree that is used has at least the smallest rate."""
    unit = model_unit(trees.wan)
    m.use = pyo.Var(m.K, domain=pyo.Binary)

    @m.Constraint(m.K)
    def used_most(m: Any, k: int) -> Any:
        return m.rate[k] <= trees.widest / unit * m.use[k]

    @m.Constraint(m.K)
    def used_least(m: Any, k: int) -> Any:
        return m.rate[k] >= float(trees.floor) / unit * m.use[k]


def shared_capacity(m: Any, trees: TreePatterns, old: Ints) -> None:
    """``sum_{k in S} r_k + sum_{i old: e in T_i} rho_i <= b_e + |S| c (1 - z_{e,S})``; beside old trees."""
    wan, widest, unit = trees.wan, trees.widest, model_unit(trees.wan)
    rows = [wan.carriers(tree) for tree in old.tolist()]

    @m.Constraint(m.C, m.S)
    def shared_capacity(m: Any, c: int, s: int) -> Any:
        members = [k for k in m.K if s >> k & 1]
        users = [i for i in m.O if c in rows[i]]
        if not users and len(members) * widest <= wan.room[c]:
            return pyo.Constraint.Skip
        load = pyo.quicksum(m.rate[k] for k in members) + pyo.quicksum(m.old_rate[i] for i in users)
        slack = len(members) * widest / unit * (1 - m.pattern[c, s])
        return load <= int(wan.room[c]) / unit + slack


def used_trees(m: Any, trees: TreePatterns, old: Ints, most_trees: int) -> None:
    """``r_k <= c u_k``, ``rho_i <= c_i y_i``, ``sum_k u_k + sum_i y_i <= K``; beside old trees."""
    unit, most = model_unit(trees.wan), bottlenecks(trees.wan, old).tolist()
    m.use = pyo.Var(m.K, domain=pyo.Binary)
    m.old_used = pyo.Var(m.O, domain=pyo.Binary)

    @m.Constraint(m.K)
    def used_new(m: Any, k: int) -> Any:
        return m.rate[k] <= trees.widest / unit * m.use[k]

    @m.Constraint(m.O)
    def used_old(m: Any, i: int) -> Any:
        return m.old_rate[i] <= most[i] / unit * m.old_used[i]

    @m.Constraint()
    def used_in_all(m: Any) -> Any:
        return pyo.quicksum(m.use[k] for k in m.K) + pyo.quicksum(m.old_used[i] for i in m.O) <= most_trees


def total_rate(m: Any) -> Any:
    """``sum_k r_k``, and ``sum_i rho_i`` where there are old trees."""
    new = pyo.quicksum(m.rate[k] for k in m.K)
    return new + pyo.quicksum(m.old_rate[i] for i in m.O) if hasattr(m, "O") else new


def ceiling_of_all(m: Any, trees: TreePatterns) -> None:
    """``sum_k r_k + sum_i rho_i <= R``, the bound on any number of trees."""

    @m.Constraint()
    def ceiling_of_all(m: Any) -> Any:
        return total_rate(m) <= trees.ceiling / model_unit(trees.wan)


def objective(m: Any) -> None:
    """Maximize ``sum_k r_k + sum_i rho_i``."""
    m.objective = pyo.Objective(expr=total_rate(m), sense=pyo.maximize)
