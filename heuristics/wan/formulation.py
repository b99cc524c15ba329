"""``blink-units``: whole units of data along trees, Blink's cut of its packing."""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo

from ...algorithms.trees.network import Wan
from ...core.schedule import Ints
from ...models.mtree.formulations.selection import carrier_users, sets
from ...models.mtree.index_sets import CandidateTrees


def build(wan: Wan, trees: Ints, unit: int) -> Any:
    """Model ``blink-units``.

    Parameters
    ----------
    trees : array of int, shape (trees, sites - 1)
        Links of every tree of the pool.
    unit : int
        Rate of a tree with multiplicity one, u, in units of capacity.
    """
    m = pyo.ConcreteModel("blink-units")
    pool = CandidateTrees(wan, trees)
    sets(m, pool)
    variables(m)
    unit_capacity(m, pool, unit)
    objective(m)
    return m


def variables(m: Any) -> None:
    """``k_i in {0, 1}``: whether a tree carries a unit."""
    m.count = pyo.Var(m.T, domain=pyo.Binary)


def unit_capacity(m: Any, pool: CandidateTrees, unit: int) -> None:
    """``sum_i a_ie k_i <= floor(b_e / u)`` for every carrier that a tree has; the units are whole."""
    users = carrier_users(pool)

    @m.Constraint(sorted(users))
    def unit_capacity(m: Any, c: int) -> Any:
        return pyo.quicksum(m.count[i] for i in users[c]) <= int(pool.wan.room[c]) // unit


def objective(m: Any) -> None:
    """Maximize ``sum_i k_i``; the rate is u times that."""
    m.objective = pyo.Objective(expr=pyo.quicksum(m.count[i] for i in m.T), sense=pyo.maximize)
