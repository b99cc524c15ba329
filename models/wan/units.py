"""Whole units of data along trees, as a Pyomo model: Blink's cut of its packing."""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo

from ...core.schedule import Ints
from ..common.wan.network import Wan
from ..common.wan.selection import sets


def build(wan: Wan, trees: Ints, unit: int) -> Any:
    """Build the model.

    Parameters
    ----------
    wan : Wan
        The network.
    trees : array of int, shape (trees, sites - 1)
        The pool.
    unit : int
        Rate of a tree that is taken once, u, in units of capacity.
    """
    m = pyo.ConcreteModel("blink-units")
    sets(m, wan, trees)
    variables(m)
    unit_capacity(m, wan, trees, unit)
    objective(m)
    return m


def variables(m: Any) -> None:
    """``k_i`` in {0, 1}: whether a tree carries a unit."""
    m.count = pyo.Var(m.T, domain=pyo.Binary)


def unit_capacity(m: Any, wan: Wan, trees: Ints, unit: int) -> None:
    """``sum_i a_ie k_i <= floor(b_e / u)`` for every link that a tree has; the units are whole."""
    users: dict[int, list[int]] = {}
    for i, tree in enumerate(trees.tolist()):
        for e in tree:
            users.setdefault(e, []).append(i)

    @m.Constraint(sorted(users))
    def unit_capacity(m: Any, e: int) -> Any:
        return pyo.quicksum(m.count[i] for i in users[e]) <= int(wan.capacity[e]) // unit


def objective(m: Any) -> None:
    """Maximize ``sum_i k_i``; the rate is u times that."""
    m.objective = pyo.Objective(expr=pyo.quicksum(m.count[i] for i in m.T), sense=pyo.maximize)
