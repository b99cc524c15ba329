"""``mtree-repair``: the best plan that keeps most of the surviving trees (docs/methods/mtree-repair.md)."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyomo.environ as pyo

from ...algorithms.trees.gbst import every_tree, run_many_starts
from ...algorithms.trees.network import HeightLimit, Wan
from ...algorithms.trees.pricing import Arborescences, Prices, cheapest_of
from ...algorithms.trees.trees import (
    RatedTrees,
    bottlenecks,
    distinct,
    fill_bottleneck,
    heights_of,
    low_enough,
    spanning_tree,
    widest_tree,
)
from ...core.bounds import SolverBound
from ...core.budget import Budget
from ...core.errors import InputError
from ...core.instance import Instance
from ...core.outcome import Outcome, Status
from ...core.schedule import Ints
from ...core.solver import Solver, SolverOptions, Termination
from ...core.trees import TreePacking
from .answer import EXACT_ARITHMETIC, GAP, SearchResult, best_rates, outcome, select
from .column_generation import CLOSE, priced_trees
from .formulations import restricted_master
from .method import MtreeOptions, RepairOptions
from .problem import CandidateTrees, TreePatterns, TreeProblem, filter_trees, tree_problem
from .repair_input import SurvivingTrees, describe_trees, pairs_of, survivors
from .solve import Search
from .solve import run as run_mtree

_NEW = 80  #: New trees that the MILP is given.
_PRICED, _PRICINGS = 20, 100  #: Trees added in a round of column generation, cheapest first, and rounds.
_ROUNDS, _GRAFTS = 12, 120  #: Rounds of grafting, and trees of a round.
PATTERNS = 200  #: The exact model has at most so many binary variables for patterns.


def run(instance: Instance, solver: Solver, budget: Budget, options: RepairOptions) -> Outcome:
    """Repair a plan (``Method.run``)."""
    if not options.previous:
        raise InputError("missing; expected the trees of an older plan, as set by 'cwb repair'", source="-O previous")
    height = options.height if options.new_trees else None  # old trees are as high as they are
    pairs = pairs_of(instance.topology, options.previous)
    problem = tree_problem(instance, height, options.min_rate, budget, mandatory=pairs)
    if isinstance(problem, Outcome):
        return problem
    return _Repair(problem, survivors(problem.wan, options.previous), solver, budget, options).run()


class _Repair(Search):
    """Search for trees that keep most of an older plan's."""

    def __init__(
        self, problem: TreeProblem, rest: SurvivingTrees, solver: Solver, budget: Budget, options: RepairOptions
    ) -> None:
        super().__init__(problem, solver, budget)
        self.rest, self.options = rest, options
        # What has less than the smallest rate cannot be used any more, though it is still there.
        self.old = rest.trees[bottlenecks(self.wan, rest.trees) >= self.min_capacity]
        self.every: Ints | None = None  #: All new trees, if they can be listed.
        self.new: list[Ints] = []  #: New trees that the MILP may choose.
        self.rounds = 0
        self.metrics: dict[str, Any] = {}

    def run(self) -> Outcome:
        best = self.old_plan()
        made_anew = self.resolve_trees()
        if self.options.new_trees:
            self.pool(made_anew)
        with self.budget.clock.phase("bound"):
            self.generate_trees()
        best = self.solve_patterns(self.graft_trees(self.choose(best, self.fresh())))
        if best is None or not best.rates:
            message = (
                f"none of the {len(self.options.previous)} old trees can be used, and no new one is allowed or found"
            )
            status = Status.LIMIT if self.options.new_trees else Status.INFEASIBLE
            return Outcome(status, message=message, metrics=self.metrics, reports=tuple(self.reports))
        return self.outcome(fill_bottleneck(self.wan, best))

    def old_plan(self) -> RatedTrees | None:
        """Measure the surviving trees with the old split of the data and at the best rates.

        Return them with the best rates if all may be kept.
        """
        rest, options = self.rest, self.options
        best, shared_rate, rate = None, Fraction(0), Fraction(0)
        if len(rest.trees):
            shares = fill_bottleneck(self.wan, RatedTrees(rest.trees, tuple(map(Fraction, rest.units))))
            best, report = best_rates(self.wan, rest.trees, self.solver, self.budget)
            self.reports.append(report)
            shared_rate, rate = shares.total, (best or shares).total
        self.metrics |= {
            "old_trees": len(options.previous),
            "surviving_trees": len(rest.trees),
            "old_shares_rate_Bps": float(shared_rate * self.wan.unit_Bps),
            "old_plan_rate_Bps": float(rate * self.wan.unit_Bps),
        }
        many = best is not None and options.trees is not None and len(best.rates) > options.trees
        return None if self.floor or many else best

    def resolve_trees(self) -> Ints:
        """Plan anew without regard to the old trees; return the trees."""
        wan = self.wan
        if not self.options.resolve:
            return np.empty((0, wan.nodes - 1), dtype=np.int64)
        options = self.options
        anew = MtreeOptions.model_validate(
            {name: getattr(options, name) for name in ("trees", "height", "min_rate", "starts")}
        )
        result = run_mtree(self.problem.instance, self.solver, self.budget, anew)
        self.reports += result.reports
        rate, bound = result.metrics.get("allreduce_rate_Bps", 0.0), result.metrics.get("exact_bound_Bps")
        self.metrics |= {"new_plan_rate_Bps": rate, "new_plan_bound_Bps": bound}
        low = low_enough(wan, self.problem.limit, self.old)
        if bound is not None and len(low) == len(self.old):  # then no repaired plan is better than a new one
            proof = result.certificate
            prover = (proof.solver, proof.version) if isinstance(proof, SolverBound) else EXACT_ARITHMETIC
            self.tighten(Fraction(bound) / wan.unit_Bps * Fraction(1 + 1e-12), prover)
        if not isinstance(result.answer, TreePacking):
            return np.empty((0, wan.nodes - 1), dtype=np.int64)
        return survivors(wan, describe_trees(wan, result.answer)).trees

    def pool(self, made_anew: Ints) -> None:
        """Collect new trees: for the bound all that can be listed, for the MILP a few."""
        wan, limit = self.wan, self.problem.limit
        with self.budget.clock.phase("pool"):
            every = every_tree(wan)
            self.every = None if every is None else filter_trees(self.problem, every)
            widest = widest_tree(wan, limit)
            most = self.options.new_trees
            choices = run_many_starts(wan, limit, self.options.starts, self.min_capacity, most, self.budget).choices
            first = [made_anew, *choices[:10], *([] if widest is None else [widest[1][None, :]])]
        rows = distinct(np.concatenate(first))
        self.new += list(rows[bottlenecks(wan, rows) >= self.min_capacity][: _NEW // 2])

    def generate_trees(self) -> None:
        """Add new trees to the relaxation until none prices out, and prove a bound (docs/methods/mtree-repair.md)."""
        wan, most, every = self.wan, self.options.new_trees, self.every
        if not len(self.old) and not self.new:
            return
        rows = np.array(self.new, dtype=np.int64).reshape(-1, wan.nodes - 1)
        model = restricted_master.build(CandidateTrees(wan, rows, most or None))  # without new trees no p
        for tree in self.old.tolist():
            model.tree_cost.add(len(model.tree_cost), pyo.quicksum(model.price[c] for c in wan.carriers(tree)) >= 1)
        low = None if self.limit is None else Arborescences(wan, self.limit, self.min_capacity)
        keys = {tuple(tree) for tree in rows.tolist()}
        while self.rounds < _PRICINGS and not self.budget.is_exhausted:
            result = self.solver.solve(model, self.budget, SolverOptions())
            self.rounds += 1
            self.reports.append(result)
            if not result.has_solution:
                break
            carrier, price = restricted_master.prices(model, wan)
            link, prices = wan.per_link(carrier), Prices.of(wan, carrier, price)
            costs, cheap = [prices.cost(tree, 1) - prices.tree for tree in self.old], list[Ints]()
            if most and every is not None and len(every):
                thresholds = bottlenecks(wan, every)
                costs.append(cheapest_of(wan, prices, every, thresholds))
                cost = prices.link[every].sum(axis=1) + prices.tree / thresholds
                cheap = list(every[np.argsort(cost, kind="stable")[:_PRICED]])
            elif most:
                columns = sorted(priced_trees(wan, self.limit, prices, self.min_capacity), key=lambda one: one.cost)
                costs.append(columns[0].cost if low is None else low.least(prices))
                cheap = [one.tree for one in columns[:_PRICED]]
            if (proved := prices.bound(most, min(costs))) is not None:
                self.bound = min(self.bound, proved)
            count = 0
            for tree in cheap:
                threshold = int(wan.capacity[tree].min())
                if float(link[tree].sum()) + price / threshold < 1 - CLOSE and tuple(tree.tolist()) not in keys:
                    keys.add(tuple(tree.tolist()))
                    self.new.append(tree)
                    restricted_master.add_tree(model, wan, tree.tolist(), threshold)
                    count += 1
            if not count:
                break

    def choose(self, best: RatedTrees | None, fresh: Ints) -> RatedTrees | None:
        """Solve the MILP over old and new trees; if these are all allowed trees, it proves a bound."""
        trees = np.concatenate([self.old, fresh])
        if not len(trees) or self.budget.is_exhausted:
            return best
        options = self.options
        pool = CandidateTrees(self.wan, trees, options.trees, self.floor, len(self.old), options.new_trees)
        search = SolverOptions(rel_gap=1e-7, node_limit=options.nodes, use_start=best is not None)
        plan, result = select(pool, self.solver, self.budget, search, best)
        self.reports.append(result)
        complete = self.every is not None and len(fresh) == len(self.drop_old_trees(self.every))
        if complete and result.bound is not None and result.termination is Termination.OPTIMAL:
            self.take_solver_bound(result)
        return plan if best is None or (plan is not None and plan.total > best.total) else best

    def graft_trees(self, best: RatedTrees | None) -> RatedTrees | None:
        """Graft the trees of the best plan and of the old one, and choose again, while this improves."""
        for _ in range(_ROUNDS if self.options.new_trees else 0):
            if self.budget.is_exhausted or (best is not None and best.total >= self.bound):
                break
            stumps = [*self.rest.stumps, *self.rest.trees]
            rows = grafts(self.wan, self.problem.limit, self.min_capacity, best, stumps)
            mine = np.sort(best.trees, axis=1) if best is not None else rows[:0]
            plan = self.choose(best, self.drop_old_trees(distinct(np.concatenate([mine, rows]))[:_GRAFTS]))
            if plan is None or (best is not None and plan.total <= best.total):
                break
            best = plan
        return best

    def solve_patterns(self, best: RatedTrees | None) -> RatedTrees | None:
        """Close a gap that is left by the exact model, where it is small enough."""
        options, widest = self.options, widest_tree(self.wan, self.problem.limit)
        closed = best is not None and best.total >= self.bound * (1 - Fraction(GAP))
        large = self.every is None or len(self.wan.room) * 2**options.new_trees > PATTERNS
        if closed or large or widest is None or self.floor or not (options.exact and options.new_trees):
            return best
        if self.budget.is_exhausted:
            return best
        self.budget.progress(f"{options.new_trees} new trees exactly")
        limits = self.wan, self.limit, options.new_trees, widest[0], float(self.bound)
        trees, result = self.pattern_trees(TreePatterns(*limits, 0, self.old, options.trees))
        self.take_solver_bound(result)
        return self.choose(best, self.drop_old_trees(trees)) if len(trees) else best

    def fresh(self) -> Ints:
        """Return the new trees for the MILP: all of them if they are few."""
        if not self.options.new_trees:
            return self.old[:0]
        if self.every is not None and len(self.every) <= 2 * _NEW:
            return self.drop_old_trees(self.every)
        rows = np.array(self.new, dtype=np.int64).reshape(-1, self.wan.nodes - 1)
        # The last ones to be asked for are the best at the final prices.
        return self.drop_old_trees(distinct(np.concatenate([rows[: _NEW // 2], rows[_NEW // 2 :][-_NEW // 2 :]])))

    def drop_old_trees(self, trees: Ints) -> Ints:
        old = {tuple(tree) for tree in self.old.tolist()}
        return trees[[tuple(tree) not in old for tree in trees.tolist()]]

    def outcome(self, best: RatedTrees) -> Outcome:
        """Build the outcome; old trees keep their roots."""
        root_of = {tuple(tree): root for tree, root in zip(self.rest.trees.tolist(), self.rest.roots, strict=True)}
        is_old = [tuple(tree) in root_of for tree in best.trees.tolist()]
        # Old trees first, then new ones, the fastest first.
        order = sorted(range(len(is_old)), key=lambda i: (not is_old[i], -best.rates[i], best.trees[i].tolist()))
        best = RatedTrees(best.trees[order], tuple(best.rates[i] for i in order))
        lowest: list[int] = heights_of(self.wan, self.problem.limit, best.trees)[0].tolist()
        roots = [
            root_of[key] if (key := tuple(tree)) in root_of else low
            for tree, low in zip(best.trees.tolist(), lowest, strict=True)
        ]
        self.metrics |= {"kept_trees": sum(is_old), "new_trees": len(is_old) - sum(is_old)}
        scope = f"the old trees and at most {self.options.new_trees} new ones"
        final = SearchResult(best, self.bound, self.prover, tuple(self.reports), self.rounds, self.metrics, scope=scope)
        return outcome(self.problem, final, self.budget, self.options, roots=roots)


_SHARES = (1.0, 0.8, 0.5, 0.0)  #: What is left of the rates of others while a tree is grafted.
_KEPT = (0.05, 0.2, 0.4)  #: Room that a link needs to stay in its tree, as a part of the largest room.


def grafts(wan: Wan, limit: HeightLimit, floor: int, plan: RatedTrees | None, stumps: Sequence[Ints]) -> Ints:
    """Graft every tree of a plan, and the rest of others (``stumps``), some of whose links are gone.

    A tree keeps those of its links that have room beside the other trees of the plan; the other links, of a capacity of
    at least ``floor``, follow by falling room (Kruskal). Return different trees, sorted.
    """
    usable = np.flatnonzero(wan.capacity >= floor)
    trees = [] if plan is None else list(zip(plan.trees, plan.rates, strict=True))
    edge_lists: list[list[int]] = []
    for share in _SHARES:
        spare = wan.room.astype(np.float64)
        for tree, rate in trees:
            spare[wan.carriers(tree)] -= share * float(rate)
        for tree, rate in [*trees, *((stump, Fraction(0)) for stump in stumps)]:
            room = spare.copy()
            room[wan.carriers(tree)] += share * float(rate)
            free = np.minimum(room[wan.first], room[wan.second])
            for fraction in _KEPT:
                # The tree's links with enough room, then all others by falling room.
                first = np.isin(usable, tree) & (free[usable] >= fraction * float(free.max()))
                graft = spanning_tree(wan, usable[np.lexsort((-free[usable], ~first))].tolist())
                edge_lists += [] if graft is None else [graft]
    rows = np.array(edge_lists, dtype=np.int64).reshape(-1, wan.nodes - 1)
    rows = low_enough(wan, limit, distinct(rows)) if len(rows) else rows
    return rows[bottlenecks(wan, rows) >= max(floor, 1)]
