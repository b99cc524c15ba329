"""Old trees and at most m new ones, exactly: the model of link patterns (:mod:`.patterns`) with the old trees' rates beside.

``sum_{k in S} r_k + sum_{i old: e in T_i} rho_i <= b_e`` where S is the pattern of new trees on link e.
"""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo

from ...core.schedule import Ints
from ..common.wan.network import Limit, Wan
from ..common.wan.selection import model_unit
from ..common.wan.trees import bottlenecks
from .patterns import falling_rates, one_pattern, sets, site_reached, tree_on_link
from .rooted import flowing, labelled, layered


def build(
    wan: Wan, limit: Limit | None, old: Ints, new_trees: int, most_trees: int | None, widest: int, ceiling: float
) -> Any:
    """Build the model.

    Parameters
    ----------
    wan : Wan
        The network.
    limit : Limit or None
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
    uses = flowing(m, wan) if limit is None else (layered if limit.unit == "hops" else labelled)(m, wan, limit)
    one_pattern(m)
    tree_on_link(m, uses)
    shared_capacity(m, wan, old, widest)
    falling_rates(m, new_trees)
    site_reached(m, wan)
    ceiling_of_all(m, wan, ceiling)
    if most_trees is not None and most_trees < len(old) + new_trees:
        used_trees(m, wan, old, most_trees, widest)
    m.objective = pyo.Objective(expr=total(m), sense=pyo.maximize)
    return m


def shared_capacity(m: Any, wan: Wan, old: Ints, widest: int) -> None:
    """``sum_{k in S} r_k + sum_{i old: e in T_i} rho_i <= b_e + |S| c (1 - z_{e,S})``: the old trees alone never have more than ``b_e``."""
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


def total(m: Any) -> Any:
    """``sum_k r_k + sum_i rho_i``."""
    return pyo.quicksum(m.rate[k] for k in m.K) + pyo.quicksum(m.old_rate[i] for i in m.O)


def ceiling_of_all(m: Any, wan: Wan, ceiling: float) -> None:
    """The sum of all rates is at most what is proved."""

    @m.Constraint()
    def ceiling_of_all(m: Any) -> Any:
        return total(m) <= ceiling / model_unit(wan)
