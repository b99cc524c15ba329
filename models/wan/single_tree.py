"""``single-tree``: the one tree whose slowest link is fastest, of a limited height if asked."""

from __future__ import annotations

from fractions import Fraction

from ...core.budget import Budget
from ...core.instance import Instance
from ...core.method import Outcome, Status
from ...core.solver import Solver
from ..common.wan.bottleneck import lowest_tree, widest_tree
from ..common.wan.trees import Rated
from .answer import ask, tree_outcome
from .options import SingleTreeOptions


def run(instance: Instance, solver: Solver, budget: Budget, options: SingleTreeOptions) -> Outcome:
    """Find the tree (``Method.run``)."""
    del solver
    posed = ask(instance, budget)
    wan = posed.wan
    limit = wan.hops(options.height)
    with budget.clock.phase("one tree"):
        found = widest_tree(wan, limit)
    if found is None:
        least, _ = lowest_tree(wan, limit, wan.capacity > 0)
        asked = limit.shown(limit.most)
        message = (
            f"no spanning tree has a height of at most {asked}; the smallest feasible height is {limit.shown(least)}"
        )
        return Outcome(Status.INFEASIBLE, message=message)
    rate, tree = found
    return tree_outcome(posed, Rated(tree[None, :], (Fraction(rate),)))
