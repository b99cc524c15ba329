"""Old trees and at most m new ones: the linear relaxation by generation of trees, and what its prices prove.

For prices ``w_e, p >= 0``: old and new trees together carry at most ``(b.w + m p) / min(min_old w(T), min_new (w(T) + p / c_T))``, since the new
ones have ``sum r_T / c_T <= m``. It is the bound of :mod:`.cover`, in which old trees pay no p.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import pyomo.environ as pyo

from ...core.budget import Budget
from ...core.schedule import Ints
from ...core.solver import Solver, SolverOptions, SolverResult
from ..common.wan.network import Limit, Wan
from ..common.wan.trees import bottlenecks
from . import cover
from .arborescence import Arborescences
from .pricing import Prices, cheapest_of, cheapest_trees, low_trees

#: Trees added in a round, cheapest first, and rounds.
_ADDED, _ROUNDS = 20, 100

#: A tree is too cheap if it costs less than 1 by more than this.
_CLOSE = 1e-9


@dataclass(eq=False)
class Relaxed:
    """What the relaxation gives.

    Parameters
    ----------
    bound : Fraction
        Units that old trees and m new ones do not exceed.
    trees : list of array of int
        New trees that are in it.
    reports : list of SolverResult
        Every solve.
    """

    bound: Fraction
    trees: list[Ints] = field(default_factory=list)
    reports: list[SolverResult] = field(default_factory=list)


def relax(
    wan: Wan,
    old: Ints,
    every: Ints | None,
    limit: Limit | None,
    new_trees: int,
    floor: int,
    start: Relaxed,
    solver: Solver,
    budget: Budget,
) -> Relaxed:
    """Add new trees to the relaxation until none is too cheap.

    Parameters
    ----------
    wan : Wan
        The network.
    old : array of int
        Trees of the older plan.
    every : array of int or None
        All new trees that are allowed, at least one, if they are known; else they are looked for.
    limit : Limit or None
        The height of new trees; None is any.
    new_trees : int
        m.
    floor : int
        Smallest capacity of a new tree's links.
    start : Relaxed
        A bound that is known, and trees to begin with; it is changed.
    """
    if not len(old) and not start.trees:
        return start
    most = new_trees or None  # without new trees there is no price of them
    rows = np.array(start.trees, dtype=np.int64).reshape(-1, wan.nodes - 1)
    model = cover.build(wan, rows, bottlenecks(wan, rows), most)
    for tree in old.tolist():
        _add_old(model, tree)
    fresh = _Fresh(wan, every, limit, floor) if new_trees else None
    known = {tuple(tree) for tree in rows.tolist()}
    for _ in range(_ROUNDS):
        if budget.exhausted:
            break
        result = solver.solve(model, budget, SolverOptions())
        start.reports.append(result)
        if not result.has_solution:
            break
        link, price = cover.prices(model, wan)
        prices = Prices.of(link, price)
        costs = [prices.cost(tree, 1) - prices.tree for tree in old]
        costs += [fresh.least(prices)] if fresh is not None else []
        proved = prices.bound(wan, new_trees, min(costs))
        start.bound = start.bound if proved is None else min(start.bound, proved)
        added = 0
        for tree in fresh.cheap(prices) if fresh is not None else ():
            threshold = int(wan.capacity[tree].min())
            if float(link[tree].sum()) + price / threshold < 1 - _CLOSE and tuple(tree.tolist()) not in known:
                known.add(tuple(tree.tolist()))
                start.trees.append(tree)
                cover.add_tree(model, wan, tree.tolist(), threshold)
                added += 1
        if not added:
            break
    return start


def _add_old(model: Any, tree: list[int]) -> None:
    """``sum_{e in T} w_e >= 1`` for an old tree, which pays no p."""
    model.tree_cost.add(len(model.tree_cost), pyo.quicksum(model.price[e] for e in tree) >= 1)


@dataclass(frozen=True, eq=False)
class _Fresh:
    """New trees, all in a list or to be looked for."""

    wan: Wan
    every: Ints | None
    limit: Limit | None
    floor: int

    @cached_property
    def low(self) -> Arborescences | None:
        """What bounds the cost of low trees."""
        return None if self.limit is None else Arborescences(self.wan, self.limit, self.floor)

    def least(self, prices: Prices) -> Fraction:
        """Give what the cheapest new tree costs at least."""
        if self.every is not None:
            return cheapest_of(self.wan, prices, self.every, bottlenecks(self.wan, self.every))
        if self.low is not None:
            return self.low.least(prices)
        return min(one.cost for one in cheapest_trees(self.wan, prices, self.floor))

    def cheap(self, prices: Prices) -> list[Ints]:
        """Give some cheap new trees, the cheapest first."""
        if self.every is not None:
            cost = prices.link[self.every].sum(axis=1) + prices.tree / bottlenecks(self.wan, self.every)
            return list(self.every[np.argsort(cost, kind="stable")[:_ADDED]])
        if self.limit is None:
            trees = list(cheapest_trees(self.wan, prices, self.floor))
        else:
            trees = list(low_trees(self.wan, self.limit, prices, self.floor))
        return [one.tree for one in sorted(trees, key=lambda one: one.cost)[:_ADDED]]
