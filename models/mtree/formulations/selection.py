"""MILP (1) of MTree: at most K trees of a pool with rates; two models with its constraints.

===================  ==================  =========================================================
model                function            what it chooses
===================  ==================  =========================================================
``mtree-selection``  ``build``           MILP (1): trees of a pool, and their rates
``wan-rates``        ``build_rates``     rates of given trees (linear program)
``mtree-repair``     ``build_repair``    rates of old trees, and at most m new ones beside them
===================  ==================  =========================================================

M is as small as it may be, and each tree's own: ``M_i = c_i``, the smallest capacity of its links, since no rate can
be larger. Constraints of one row are declared with ``@m.Constraint``, those of all trees or links with ``@rows``.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pyomo.environ as pyo

from ....algorithms.trees.network import Wan
from ....algorithms.trees.trees import RatedTrees, bottlenecks
from ....core.limits import require_buildable
from ....core.rows import Lists, Table, rows
from ....core.schedule import Ints
from ..index_sets import OldAndNew, PosedPool


def model_unit(wan: Wan) -> float:
    """Return the capacity that is 1 in the models: a unit, or more to avoid large numbers."""
    return max(1.0, float(wan.capacity.max(initial=1)) / 1000)


def build(wan: Wan, trees: Ints, most_trees: int | None, floor: Fraction | float) -> Any:
    """Build model ``mtree-selection``: MILP (1).

    Parameters
    ----------
    trees : array of int, shape (trees, sites - 1)
        Links of every tree of the pool.
    most_trees : int or None
        K; None is no limit.
    floor : Fraction or float
        Smallest rate of a chosen tree, in units; at most the smallest capacity of every tree of the pool.
    """
    m = pyo.ConcreteModel("mtree-selection")
    sets(m, wan, trees)
    variables(m)
    link_capacity(m, wan, trees)
    least_rate(m, wan, trees, floor)
    chosen_rate(m, wan, trees)
    tree_count(m, most_trees)
    objective(m)
    return m


def build_of_pool(pool: PosedPool) -> Any:
    """Build model ``mtree-selection`` of a pool (``Formulation.build``)."""
    return build(pool.problem.wan, pool.trees, pool.most_trees, pool.problem.floor)


def build_rates_of_pool(pool: PosedPool) -> Any:
    """Build model ``wan-rates`` of a pool (``Formulation.build``)."""
    return build_rates(pool.problem.wan, pool.trees)


def build_repair_of(index: OldAndNew) -> Any:
    """Build model ``mtree-repair`` of old trees and all others (``Formulation.build``)."""
    problem = index.problem
    return build_repair(problem.wan, index.trees, len(index.old), index.new_trees, index.most_trees, problem.floor)


def build_rates(wan: Wan, trees: Ints) -> Any:
    """Build model ``wan-rates``, the linear program of the best rates of given trees: MILP (1) without choice.

    Parameters
    ----------
    trees : array of int, shape (trees, sites - 1)
        Links of every given tree.
    """
    m = pyo.ConcreteModel("wan-rates")
    sets(m, wan, trees)
    m.rate = pyo.Var(m.T, domain=pyo.NonNegativeReals)
    link_capacity(m, wan, trees)
    objective(m)
    return m


def build_repair(
    wan: Wan, trees: Ints, old: int, new_trees: int, most_trees: int | None, floor: Fraction | float
) -> Any:
    """Build model ``mtree-repair``: MILP (1) with old trees and at most m new ones.

    Parameters
    ----------
    trees : array of int, shape (trees, sites - 1)
        The old trees, then new ones.
    old : int
        Number of old trees among them.
    new_trees : int
        m, the largest number of new trees.
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


def sets(m: Any, wan: Wan, trees: Ints) -> None:
    """Trees i and links j."""
    require_buildable(2 * len(trees), f"{len(trees):,} trees", 4e-6)
    m.T = pyo.RangeSet(0, len(trees) - 1)
    m.E = pyo.RangeSet(0, len(wan) - 1)


def variables(m: Any) -> None:
    """``r_i``, the rate of a tree, and ``y_i``, 1 if it is chosen; (1f)."""
    m.rate = pyo.Var(m.T, domain=pyo.NonNegativeReals)
    m.chosen = pyo.Var(m.T, domain=pyo.Binary)


def carrier_users(wan: Wan, trees: Ints) -> Lists:
    """List the trees on every used carrier."""
    users = Lists()
    for i, tree in enumerate(trees.tolist()):
        for c in wan.carriers(tree):
            users[c].append(i)
    return users


def link_capacity(m: Any, wan: Wan, trees: Ints) -> None:
    """``sum_i a_ij r_i <= b_j`` for every carrier of a link that a tree has; (1b)."""
    users, unit = carrier_users(wan, trees), model_unit(wan)

    capacity = Table((c, int(wan.room[c]) / unit) for c in users)

    @rows(m, sorted(users))
    def link_capacity(m: Any, c: int) -> Any:
        return sum(m.rate[i] for i in users[c]) <= capacity[c]


def least_rate(m: Any, wan: Wan, trees: Ints, floor: Fraction | float) -> None:
    """``M_i (1 - y_i) + r_i >= rbar``; (1c)."""
    most, least = largest_rates(wan, trees), float(floor) / model_unit(wan)

    @rows(m, m.T)
    def least_rate(m: Any, i: int) -> Any:
        return most[i] * (1 - m.chosen[i]) + m.rate[i] >= least


def chosen_rate(m: Any, wan: Wan, trees: Ints) -> None:
    """``r_i <= M_i y_i``; (1d)."""
    most = largest_rates(wan, trees)

    @rows(m, m.T)
    def chosen_rate(m: Any, i: int) -> Any:
        return m.rate[i] <= most[i] * m.chosen[i]


def largest_rates(wan: Wan, trees: Ints) -> Table:
    """``M_i``, the smallest capacity of each tree."""
    unit = model_unit(wan)
    return Table((i, most / unit) for i, most in enumerate(bottlenecks(wan, trees).tolist()))


def tree_count(m: Any, most_trees: int | None) -> None:
    """``sum_i y_i <= K``; (1e)."""
    most = len(m.T) if most_trees is None else most_trees

    @m.Constraint()
    def tree_count(m: Any) -> Any:
        return pyo.quicksum(m.chosen[i] for i in m.T) <= most


def objective(m: Any) -> None:
    """Maximize ``sum_i r_i``; (1a)."""
    m.objective = pyo.Objective(expr=pyo.quicksum(m.rate[i] for i in m.T), sense=pyo.maximize)


def new_tree_count(m: Any, old: int, new_trees: int) -> None:
    """``sum_{i new} y_i <= m``."""

    @m.Constraint()
    def new_tree_count(m: Any) -> Any:
        fresh = [i for i in m.T if i >= old]
        return pyo.quicksum(m.chosen[i] for i in fresh) <= new_trees if fresh else pyo.Constraint.Feasible


def set_start(model: Any, wan: Wan, trees: Ints, start: RatedTrees) -> None:
    """Set the variables to the values of known rates."""
    known = {tuple(tree): float(rate) for tree, rate in zip(start.trees.tolist(), start.rates, strict=True)}
    for i, tree in enumerate(trees.tolist()):
        rate = known.get(tuple(tree), 0.0)
        model.rate[i].value = rate / model_unit(wan)
        model.chosen[i].value = 1 if rate else 0
