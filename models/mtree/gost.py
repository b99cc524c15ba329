"""``gost``: the paper as it is written: GBST, GRTH and ITH (algorithms 1 to 3), then MILP (1)."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from ...core.budget import Budget
from ...core.instance import Instance
from ...core.method import Outcome, Status
from ...core.solver import Solver, SolverOptions, SolverResult
from ..common.wan.network import Limit
from ..common.wan.selection import select
from ..common.wan.trees import Rated, bottlenecks
from . import kernels
from .answer import OURSELVES, Asked, Found, ask, outcome
from .options import GostOptions
from .pool import Grown, Way, grow, random_state


def run(instance: Instance, solver: Solver, budget: Budget, options: GostOptions) -> Outcome:
    """Solve an instance that :func:`.network.supports` has nothing against (``Method.run``).

    Raises
    ------
    InputError
        If the network is not connected.
    """
    asked = ask(instance, options.height, options.min_rate, budget)
    if isinstance(asked, Outcome):
        return asked
    with budget.clock.phase("trees"):
        grown, most, calls = ith(asked, options, budget)
    height = asked.limit.shown(most)
    metrics = {"pool": len(grown.trees), "gbst_calls": calls, "ith_height": most, "gbst_rate_Bps": _rate(asked, grown)}
    nothing = Found(None, asked.strongest.rate, OURSELVES, (), calls, metrics)
    if not len(grown.trees):
        message = f"no tree of at most {height} was found from {options.retries + 1} random start"
        message += "s" if options.retries else ", where algorithm 1 ends; -O retries=20 tries others"
        return outcome(asked, nothing, budget, options, message=message)
    rated, roots, reports = chosen(asked, grown, solver, budget, options)
    found = replace(nothing, rated=rated, reports=reports)
    told = _told(asked, rated, roots)
    done = outcome(asked, found, budget, options, roots=roots, message=told)
    # Trees that are higher than was asked are no optimum of what was asked.
    return replace(done, status=Status.FEASIBLE) if told else done


def ith(asked: Asked, options: GostOptions, budget: Budget) -> tuple[Grown, int, int]:
    """Algorithm 3: the trees at the smallest H, by bisection, that keeps a share rho of the rate; H, and the number of runs of GBST."""
    state = random_state(budget.seed)
    way = Way(
        options.rate,
        options.height_test == "radius",
        options.grth == "corrected",
        options.ties == "shuffle",
        options.retries,
    )

    def gbst(most: int) -> Grown:
        drawn = state if options.ith_seed == "fresh" else random_state(budget.seed)
        return grow(asked.wan, Limit(asked.limit.length, most, asked.limit.unit), asked.least, way, drawn)

    best = gbst(asked.limit.most)
    calls, low, high = 1, 1, asked.limit.most
    threshold = Fraction(options.rho) * int(best.rates.sum())
    while options.improve and low < high:
        middle = (low + high) // 2
        tried = gbst(middle)
        calls += 1
        if tried.rates.sum() >= threshold:
            high, best = middle, tried
        else:
            low = middle + 1
    return best, high, calls


def chosen(
    asked: Asked, grown: Grown, solver: Solver, budget: Budget, options: GostOptions
) -> tuple[Rated, list[int], tuple[SolverResult, ...]]:
    """Choose trees and rates by MILP (1); without it those of GBST are taken."""
    taken = Rated(grown.trees, tuple(Fraction(int(rate)) for rate in grown.rates))
    if not options.select:
        return taken, grown.roots.tolist(), ()
    trees = np.sort(grown.trees, axis=1)
    # What algorithm 1 has left of a tree with the global minimum may be below rbar, but a tree itself never is: its links all had rbar.
    gap = 1e-6 if budget.gap is None else budget.gap
    solved = SolverOptions(rel_gap=gap, node_limit=options.nodes)
    rated, report = select(asked.wan, trees, options.trees, asked.floor, solver, budget, solved)
    if rated is None or not rated.rates:
        fastest = int(bottlenecks(asked.wan, trees).argmax())
        rate = Fraction(int(bottlenecks(asked.wan, trees)[fastest]))
        rated = Rated(trees[[fastest]], (rate,))
    root_of = {tuple(tree): root for tree, root in zip(trees.tolist(), grown.roots.tolist(), strict=True)}
    return rated, [root_of[tuple(tree)] for tree in rated.trees.tolist()], (report,)


def _rate(asked: Asked, grown: Grown) -> float:
    """Rate of the trees as GBST has it."""
    return float(int(grown.rates.sum()) * asked.wan.unit_Bps)


def _told(asked: Asked, rated: Rated, roots: list[int]) -> str:
    """Say it where trees are higher than was asked, as latencies make them (see ``height_test``)."""
    wan, limit = asked.wan, asked.limit
    far, hop = np.empty(wan.nodes, np.int64), np.empty(wan.nodes, np.int64)
    worst = 0
    for tree, root in zip(rated.trees, roots, strict=True):
        kernels.distances(root, tree, wan.tail, wan.head, limit.length, far, hop)
        worst = max(worst, int(far.max()))
    if worst <= limit.most:
        return ""
    return f"a tree has a height of {limit.shown(worst)}, above the {limit.shown(limit.most)} asked; -O height_test=radius keeps it"
