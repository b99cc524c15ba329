"""``blink-wan``: Blink's packing of spanning trees by multiplicative weights, and its cut to few trees.

Sources: Wang et al., "Blink: Fast and Generic Collectives for Distributed ML", MLSys 2020, and N. Garg and J.
Könemann's packing of columns. How Blink would run on a wide-area network is a guess (docs/methods/wan-baselines.md).
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyomo.environ as pyo

from ...algorithms.trees.helpers import relay_by_helpers
from ...algorithms.trees.network import Wan
from ...algorithms.trees.trees import RatedTrees, exact_rates, spanning_tree
from ...core.budget import Budget
from ...core.instance import Instance
from ...core.outcome import Outcome, Status
from ...core.schedule import Floats, Ints
from ...core.solver import Solver, SolverOptions, SolverResult
from ...core.trees import TreePacking
from ...models.mtree.answer import best_rates, select
from ...models.mtree.formulations.selection import carrier_users, sets
from ...models.mtree.problem import CandidateTrees, WanProblem, wan_problem
from .answer import bound_fields, tree_outcome
from .method import BlinkWanOptions

_FOR_UNITS, _FOR_TREES = 200, 60  #: Heaviest trees of the packing that the integer programs are given.


@relay_by_helpers
def run(instance: Instance, solver: Solver, budget: Budget, options: BlinkWanOptions) -> Outcome:
    """Pack, then cut (``Method.run``)."""
    problem = wan_problem(instance, budget)
    with budget.clock.phase("pack"):
        trees, weights = weighted_packing(problem.wan, options.accuracy, options.steps, budget)
    budget.progress(f"{len(trees):,} trees packed")
    rated, report = keep_few_trees(problem.wan, trees, weights, solver, budget, options)
    if rated is None or not rated.rates:
        return Outcome(Status.LIMIT, message="the budget ended before trees were chosen", **bound_fields(problem))
    metrics = {"pool": len(trees), "packing_rate_Bps": float(weights.sum()) * float(problem.wan.unit_Bps)}
    return tree_outcome(
        problem, rated, common_root=options.root == "common", reports=[report], rounds=len(trees), metrics=metrics
    )


def weighted_packing(wan: Wan, accuracy: float, steps: int, budget: Budget) -> tuple[Ints, Floats]:
    """Pack trees by multiplicative weights (Garg and Könemann; docs/methods/wan-baselines.md).

    Return different trees, the heaviest first, and their rates in units.
    """
    room = wan.room.astype(np.float64)
    price = 1e-6 / room
    pushed: dict[tuple[int, ...], float] = {}
    for _ in range(steps):
        tree = spanning_tree(wan, np.argsort(wan.per_link(price), kind="stable").tolist()) or []
        carriers = wan.carriers(tree)
        if price[carriers].sum() >= 1 or (pushed and budget.is_exhausted):
            break
        least = float(room[carriers].min())
        pushed[tuple(tree)] = pushed.get(tuple(tree), 0.0) + least
        price[carriers] *= 1 + accuracy * least / room[carriers]
    order = sorted(pushed, key=lambda tree: (-pushed[tree], tree))
    trees, weights = np.array(order, dtype=np.int64), np.array([pushed[tree] for tree in order])
    load = np.zeros(len(room))
    for key, weight in zip(order, weights.tolist(), strict=True):
        load[wan.carriers(key)] += weight
    return trees, weights / (load / room).max()


def keep_few_trees(
    wan: Wan, trees: Ints, weights: Floats, solver: Solver, budget: Budget, options: BlinkWanOptions
) -> tuple[RatedTrees | None, SolverResult]:
    """Keep few trees, or all, at the best rates."""
    if options.cut == "none":
        return best_rates(wan, trees, solver, budget)
    search = SolverOptions(node_limit=options.nodes)
    if options.cut == "trees":
        few = trees[:_FOR_TREES]
        start = exact_rates(wan, few[: options.trees], weights[: options.trees])
        return select(CandidateTrees(wan, few, options.trees), solver, budget, search, start)
    few, unit = trees[:_FOR_UNITS], int(wan.room.min())
    with budget.clock.phase("build"):
        model = build(wan, few, unit)
    result = solver.solve(model, budget, search)
    return (_trees_of_units(model, few, unit) if result.has_solution else None), result


def _trees_of_units(model: Any, trees: Ints, unit: int) -> RatedTrees:
    counts = [round(model.count[i].value) for i in model.T]
    rows = [i for i, count in enumerate(counts) if count]
    return RatedTrees(trees[rows], tuple(Fraction(counts[i] * unit) for i in rows))


@dataclass(frozen=True, eq=False)
class UnitPool:
    """Trees of a packing that carry whole units.

    ``trees`` are the heaviest of the packing, ``unit`` is the rate of one with multiplicity one, in units of capacity.
    """

    problem: WanProblem
    trees: Ints
    unit: int
    common_root: bool


def unit_pool(instance: Instance, options: BlinkWanOptions) -> UnitPool:
    """Pack; a unit is the smallest capacity (``Formulation.index``)."""
    problem = wan_problem(instance, Budget())
    trees, _ = weighted_packing(problem.wan, options.accuracy, options.steps, Budget())
    return UnitPool(problem, trees[:_FOR_UNITS], int(problem.wan.room.min()), options.root == "common")


def build_units(pool: UnitPool) -> Any:
    """Model ``blink-units`` of a pool (``Formulation.build``)."""
    return build(pool.problem.wan, pool.trees, pool.unit)


def unit_trees(model: Any, pool: UnitPool) -> TreePacking | None:
    """Return the trees that carry a unit as an answer (``Formulation.extract``)."""
    rated = _trees_of_units(model, pool.trees, pool.unit)
    if not rated.rates:
        return None
    answer = tree_outcome(pool.problem, rated, common_root=pool.common_root).answer
    assert isinstance(answer, TreePacking)  # noqa: S101 (trees are what is put in)
    return answer


def build(wan: Wan, trees: Ints, unit: int) -> Any:
    """Model ``blink-units``. ``unit`` is the rate u of a tree with multiplicity one, in units of capacity."""
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
