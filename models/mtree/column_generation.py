"""Column generation: the linear program over trees, and the bound that its prices prove (docs/methods/mtree.md)."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Self

import numpy as np

from ...algorithms.trees.network import HeightLimit, Wan
from ...algorithms.trees.pricing import Arborescences, PricedTree, Prices, cheapest_of, cheapest_trees, low_trees
from ...algorithms.trees.trees import RatedTrees, bottlenecks, exact_rates
from ...core.budget import Budget
from ...core.schedule import Ints
from ...core.solver import Solver, SolverOptions, SolverResult, Termination, as_resolving_solver
from .answer import cheapest_low_tree
from .formulations import restricted_master
from .formulations.selection import model_unit
from .problem import CandidateTrees

_ADDED = 40  #: Trees added in a round, cheapest first.
CLOSE = 1e-9  #: A tree is too cheap if it costs less than 1 by more than this.
_NODES = 2000  #: Nodes of the search for the cheapest low tree, which need not end where the height is a latency.
GAP = 1e-8  #: Relative distance of value and dual bound at which column generation stops.


@dataclass(eq=False)
class ColumnGeneration:
    """Linear relaxation over trees, as far as it is solved: best rates and dual bound."""

    wan: Wan
    limit: HeightLimit | None  #: Height of the trees; None is any.
    most_trees: int | None  #: K, as ``sum_T r_T / c_T <= K``; None is no limit.
    floor: int  #: Smallest capacity of a tree's links, in units.
    bound: Fraction  #: Units that no trees carry together: a known bound, then the best one.
    pool: Ints  #: Trees to begin with, then all that have been generated.
    solver: Solver
    budget: Budget
    complete: bool = False  #: True if the pool has all trees, so that none is to be added.
    exact: bool = True  #: Find the cheapest low tree by a model where the heuristic finds no more.
    gap: float = GAP  #: Relative gap of value and bound at which to stop.
    rated: RatedTrees | None = None  #: Trees with exact rates; with a price of trees they may be more than K.
    rounds: int = 0
    #: True if the bound rests on trust in a solver; else prices and exact arithmetic prove it.
    from_solver: bool = False
    prices: Prices | None = None  #: Prices that prove the best bound by prices.
    reports: list[SolverResult] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.trees: list[Ints] = list(self.pool)
        self.thresholds: list[int] = bottlenecks(self.wan, self.pool).tolist()
        self.keys = {(tuple(t.tolist()), c) for t, c in zip(self.pool, self.thresholds, strict=True)}
        with self.budget.clock.phase("build"):
            self.model = restricted_master.build(CandidateTrees(self.wan, self.pool, self.most_trees))
        self.compiled = as_resolving_solver(self.solver).compile(self.model, self.budget, SolverOptions())
        self.rates: list[float] = []
        self.best_priced: Fraction | None = None  #: Bound of :attr:`prices`.
        any_height = self.limit is None or self.complete
        self.low = None if any_height or self.limit is None else Arborescences(self.wan, self.limit, self.floor)

    def run(self) -> Self:
        """Add trees to the restricted master until the bounds meet, none prices out, or the budget ends."""
        result = self.solve_master()
        while (
            result.termination is Termination.OPTIMAL and result.objective is not None and not self.budget.is_exhausted
        ):
            value = result.objective * model_unit(self.wan)
            if value >= float(self.bound) * (1 - self.gap):
                break
            columns = self.price()
            if self.complete or value >= float(self.bound) * (1 - self.gap) or not self.add_columns(columns):
                break
            result = self.solve_master()
        if self.rates:
            self.read()
        return self

    def solve_master(self) -> SolverResult:
        """Solve the restricted master; keep its rates, since the next solve may be the one that is interrupted."""
        result = self.compiled.solve(self.budget)
        self.rounds += 1
        self.reports.append(result)
        if result.termination is Termination.OPTIMAL:
            self.rates = [max(0.0, self.compiled.dual(row)) for row in self.model.tree_cost.values()]
        return result

    def read(self) -> None:
        """Read the rates of the last solved program; a tree may have several thresholds."""
        rates: dict[tuple[int, ...], float] = {}
        for tree, dual in zip(self.trees, self.rates, strict=False):
            key = tuple(tree.tolist())
            rates[key] = rates.get(key, 0.0) + dual * model_unit(self.wan)
        rows = np.array(list(rates), dtype=np.int64)
        self.pool = rows
        self.rated = exact_rates(self.wan, rows, list(rates.values()))

    def price(self) -> list[PricedTree]:
        """Solve the pricing problem with smoothed prices first: return trees that price out, improve the bound."""
        wan = self.wan
        carrier, tree = restricted_master.prices(self.model, wan)
        link, now = wan.per_link(carrier), Prices.of(wan, carrier, tree)
        if self.complete:
            trees = np.array(self.trees)
            self.improve_bound(now, cheapest_of(wan, now, trees, np.array(self.thresholds)))
            return []
        candidates = [now] if self.prices is None else [_between(self.prices, now), now]
        for prices in candidates:
            columns = priced_trees(wan, self.limit, prices, self.floor)
            if self.low is not None:
                self.improve_bound(prices, self.low.least(prices))
            elif columns:
                self.improve_bound(prices, min(one.cost for one in columns))
            fresh = [one for one in columns if self.cost(one, link, tree) < 1 - CLOSE and not self._has(one)]
            if fresh:
                return sorted(fresh, key=lambda one: self.cost(one, link, tree))[:_ADDED]
        needs_exact = self.limit is not None and self.exact and self.most_trees is None
        return self.price_exactly(now) if needs_exact else []

    def price_exactly(self, prices: Prices) -> list[PricedTree]:
        """Find the cheapest low tree by a model; the solver's bound on its cost bounds the rates."""
        wan = self.wan
        if self.limit is None or self.budget.is_exhausted:
            return []
        self.budget.progress("the heuristic finds no cheaper tree: asking the solver")
        whole = float(prices.link.max())
        costs = np.where(wan.capacity >= self.floor, prices.link / whole, wan.nodes)
        options = SolverOptions(rel_gap=1e-7, node_limit=_NODES)
        tree, result = cheapest_low_tree(wan, self.limit, costs, self.solver, self.budget, options)
        self.reports.append(result)
        if result.bound is not None and result.bound > 0:
            # Less a little, since the solver's tolerances are no proof.
            least = Fraction(result.bound * (1 - 1e-7)) * Fraction(whole)
            if self.improve_bound(prices, least):
                self.from_solver = True
        if tree is None:
            return []
        one = PricedTree(tree, int(wan.capacity[tree].min()), prices.cost(tree, 1))
        carrier, price = restricted_master.prices(self.model, wan)
        return [one] if self.cost(one, wan.per_link(carrier), price) < 1 - CLOSE and not self._has(one) else []

    def improve_bound(self, prices: Prices, cheapest: Fraction) -> bool:
        """Keep the bound of these prices if it is the best so far."""
        bound = prices.bound(self.most_trees, cheapest)
        if bound is None:
            return False
        if self.best_priced is None or bound < self.best_priced:
            self.best_priced, self.prices = bound, prices
        if bound >= self.bound:
            return False
        self.bound, self.from_solver = bound, False
        return True

    def cost(self, one: PricedTree, link: np.ndarray, tree: float) -> float:
        """Compute the cost of a tree at the linear program's own prices."""
        return float(link[one.tree].sum()) + tree / one.threshold

    def _has(self, one: PricedTree) -> bool:
        return (tuple(one.tree.tolist()), one.threshold) in self.keys

    def add_columns(self, columns: list[PricedTree]) -> bool:
        """Add trees to the restricted master problem; return True if any was new."""
        for one in columns:
            self.keys.add((tuple(one.tree.tolist()), one.threshold))
            self.trees.append(one.tree)
            self.thresholds.append(one.threshold)
            row = restricted_master.add_tree(self.model, self.wan, one.tree.tolist(), one.threshold)
            self.compiled.add_constraint(row)
        return bool(columns)


def priced_trees(wan: Wan, limit: HeightLimit | None, prices: Prices, floor: int) -> list[PricedTree]:
    """Return cheap trees: the cheapest of any height, or those of the heuristic."""
    return list(cheapest_trees(wan, prices, floor) if limit is None else low_trees(wan, limit, prices, floor))


def _between(one: Prices, other: Prices) -> Prices:
    a, b = (np.append(p.carrier, p.tree) / max(1, int(p.carrier.sum()) + p.tree) for p in (one, other))
    mean = (a + b) / 2
    return Prices.of(one.wan, mean[:-1], float(mean[-1]))
