"""MILP (1) of MTree: at most K trees of a pool, with their rates; its variants.

Beside trees of an older plan, new ones are counted; the linear program of rates has no choice. ``M_i = c_i`` is each
tree's own, and the smallest possible one.
"""

from typing import Any

import pyomo.environ as pyo

from ....algorithms.trees.network import Wan
from ....algorithms.trees.trees import RatedTrees, bottlenecks
from ....core.budget import require_buildable
from ....core.rows import Lists, Table, Variables, rows
from ..problem import CandidateTrees


def model_unit(wan: Wan) -> float:
    """Return the capacity that is 1 in the models: a unit, or more to avoid large numbers."""
    return max(1.0, float(wan.capacity.max(initial=1)) / 1000)


def build(pool: CandidateTrees) -> Any:
    """Build MILP (1): model ``mtree-selection``, or ``mtree-repair`` where new trees are counted."""
    m = pyo.ConcreteModel("mtree-selection" if pool.new_trees is None else "mtree-repair")
    sets(m, pool)
    variables(m)
    link_capacity(m, pool)
    least_rate(m, pool)
    chosen_rate(m, pool)
    tree_count(m, pool)
    if pool.new_trees is not None:
        new_tree_count(m, pool)
    objective(m)
    return m


def build_rates(pool: CandidateTrees) -> Any:
    """Build model ``wan-rates``, the linear program of the best rates of given trees: MILP (1) without choice."""
    m = pyo.ConcreteModel("wan-rates")
    sets(m, pool)
    m.rate = Variables(m.T, domain=pyo.NonNegativeReals)
    link_capacity(m, pool)
    objective(m)
    return m


def sets(m: Any, pool: CandidateTrees) -> None:
    """Trees i and links j."""
    require_buildable(2 * len(pool.trees), f"{len(pool.trees):,} trees", 4e-6)
    m.T = pyo.RangeSet(0, len(pool.trees) - 1)
    m.E = pyo.RangeSet(0, len(pool.wan) - 1)


def variables(m: Any) -> None:
    """``r_i``, the rate of a tree, and ``y_i``, 1 if it is chosen; (1f)."""
    m.rate = Variables(m.T, domain=pyo.NonNegativeReals)
    m.choice = Variables(m.T, domain=pyo.Binary)


def carrier_users(pool: CandidateTrees) -> Lists:
    """List the trees on every used carrier."""
    users = Lists()
    for i, tree in enumerate(pool.trees.tolist()):
        for c in pool.wan.carriers(tree):
            users[c].append(i)
    return users


def link_capacity(m: Any, pool: CandidateTrees) -> None:
    """``sum_i a_ij r_i <= b_j`` for every carrier of a link that a tree has; (1b)."""
    users, unit = carrier_users(pool), model_unit(pool.wan)
    capacity = Table((c, int(pool.wan.room[c]) / unit) for c in users)

    @rows(m, sorted(users))
    def link_capacity(m: Any, c: int) -> Any:
        return sum(m.rate[i] for i in users[c]) <= capacity[c]


def least_rate(m: Any, pool: CandidateTrees) -> None:
    """``M_i (1 - y_i) + r_i >= rbar``; (1c)."""
    most, least = largest_rates(pool), float(pool.floor) / model_unit(pool.wan)

    @rows(m, m.T)
    def least_rate(m: Any, i: int) -> Any:
        return most[i] * (1 - m.choice[i]) + m.rate[i] >= least


def chosen_rate(m: Any, pool: CandidateTrees) -> None:
    """``r_i <= M_i y_i``; (1d)."""
    most = largest_rates(pool)

    @rows(m, m.T)
    def chosen_rate(m: Any, i: int) -> Any:
        return m.rate[i] <= most[i] * m.choice[i]


def largest_rates(pool: CandidateTrees) -> Table:
    """``M_i``, the smallest capacity of each tree."""
    unit = model_unit(pool.wan)
    return Table((i, most / unit) for i, most in enumerate(bottlenecks(pool.wan, pool.trees).tolist()))


def tree_count(m: Any, pool: CandidateTrees) -> None:
    """``sum_i y_i <= K``; (1e)."""
    most = len(m.T) if pool.most_trees is None else pool.most_trees

    @m.Constraint()
    def tree_count(m: Any) -> Any:
        return pyo.quicksum(m.choice[i] for i in m.T) <= most


def objective(m: Any) -> None:
    """Maximize ``sum_i r_i``; (1a)."""
    m.objective = pyo.Objective(expr=pyo.quicksum(m.rate[i] for i in m.T), sense=pyo.maximize)


def new_tree_count(m: Any, pool: CandidateTrees) -> None:
    """``sum_{i new} y_i <= m``, beside an older plan."""

    @m.Constraint()
    def new_tree_count(m: Any) -> Any:
        fresh = [i for i in m.T if i >= pool.old]
        return pyo.quicksum(m.choice[i] for i in fresh) <= pool.new_trees if fresh else pyo.Constraint.Feasible


def set_start(model: Any, pool: CandidateTrees, start: RatedTrees) -> None:
    """Set the variables to the values of known rates."""
    rates = {tuple(tree): float(rate) for tree, rate in zip(start.trees.tolist(), start.rates, strict=True)}
    for i, tree in enumerate(pool.trees.tolist()):
        rate = rates.get(tuple(tree), 0.0)
        model.rate[i].value = rate / model_unit(pool.wan)
        model.choice[i].value = 1 if rate else 0
