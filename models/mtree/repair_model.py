"""At most m new trees beside old ones, and all rates, as a Pyomo model: MILP (1) in which the new trees are counted."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pyomo.environ as pyo

from ...core.schedule import Ints
from ..common.wan.network import Wan
from ..common.wan.selection import (
    chosen_rate,
    least_rate,
    link_capacity,
    objective,
    sets,
    tree_count,
    variables,
)


def build(wan: Wan, trees: Ints, old: int, new_trees: int, most_trees: int | None, floor: Fraction | float) -> Any:
    """Build the model.

    Parameters
    ----------
    wan : Wan
        The network.
    trees : array of int, shape (trees, sites - 1)
        The old trees, then new ones.
    old : int
        How many are old.
    new_trees : int
        m.
    most_trees : int or None
        K; None is no limit.
    floor : Fraction or float
        Smallest rate of a chosen tree, in units; at most the smallest capacity of every tree.
    """
    m = pyo.ConcreteModel("mtree-repair")
    sets(m, wan, trees)
    variables(m)
    link_capacity(m, wan, trees)
    least_rate(m, wan, trees, floor)
    chosen_rate(m, wan, trees)
    tree_count(m, most_trees)
    new_tree_count(m, old, new_trees)
    objective(m)
    return m


def new_tree_count(m: Any, old: int, new_trees: int) -> None:
    """``sum_{i new} y_i <= m``."""

    @m.Constraint()
    def new_tree_count(m: Any) -> Any:
        fresh = [i for i in m.T if i >= old]
        return pyo.quicksum(m.chosen[i] for i in fresh) <= new_trees if fresh else pyo.Constraint.Feasible
