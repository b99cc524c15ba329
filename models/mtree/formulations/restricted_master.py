"""The restricted master problem of column generation, ``mtree-cover``, by its dual: trees are added as rows.

Each link has a price w_e, the sum of the prices of its carriers, and each tree a price p; without K there is no p. The
dual values of the rows are the rates, and any prices prove a bound (docs/methods/mtree.md).
"""

from typing import Any

import numpy as np
import pyomo.environ as pyo

from ....algorithms.trees.network import Wan
from ....algorithms.trees.trees import bottlenecks
from ....core.schedule import Floats
from ..problem import CandidateTrees
from .selection import model_unit


def build(pool: CandidateTrees) -> Any:
    """Build the model with the trees of a pool."""
    m = pyo.ConcreteModel("mtree-cover")
    variables(m, pool.wan, pool.most_trees)
    tree_cost(m)
    for tree, bottleneck in zip(pool.trees.tolist(), bottlenecks(pool.wan, pool.trees).tolist(), strict=True):
        add_tree(m, pool.wan, tree, bottleneck)
    objective(m, pool.wan, pool.most_trees)
    return m


def variables(m: Any, wan: Wan, most_trees: int | None) -> None:
    """Declare prices of carriers, in the model's unit of capacity, and the price p of a tree."""
    m.C = pyo.RangeSet(0, len(wan.room) - 1)
    m.price = pyo.Var(m.C, domain=pyo.NonNegativeReals)
    if most_trees is not None:
        m.tree_price = pyo.Var(domain=pyo.NonNegativeReals)


def tree_cost(m: Any) -> None:
    """``sum_{e in T} w_e + p / c_T >= 1`` for every tree; rows come with :func:`add_tree`."""
    m.tree_cost = pyo.Constraint(pyo.NonNegativeIntegers)


def add_tree(m: Any, wan: Wan, tree: list[int], threshold: int) -> Any:
    """Add the constraint of a tree with ``c_T``, or a smaller threshold at which it is used, and return it."""
    cost = pyo.quicksum(m.price[c] for c in wan.carriers(tree))
    if hasattr(m, "tree_price"):
        cost += model_unit(wan) / threshold * m.tree_price
    index = len(m.tree_cost)
    m.tree_cost.add(index, cost >= 1)
    return m.tree_cost[index]


def objective(m: Any, wan: Wan, most_trees: int | None) -> None:
    """Minimize ``sum_e b_e w_e + K p``."""
    unit = model_unit(wan)
    cost = pyo.quicksum(int(wan.room[c]) / unit * m.price[c] for c in m.C)
    if most_trees is not None:
        cost += most_trees * m.tree_price
    m.objective = pyo.Objective(expr=cost, sense=pyo.minimize)


def prices(m: Any, wan: Wan) -> tuple[Floats, float]:
    """Read the prices of carriers per unit of capacity, and of a tree."""
    carrier = np.array([max(0.0, m.price[c].value or 0.0) for c in m.C]) / model_unit(wan)
    return carrier, max(0.0, m.tree_price.value or 0.0) if hasattr(m, "tree_price") else 0.0
