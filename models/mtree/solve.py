"""Method ``mtree``: the best trees of limited height and number, with a proved bound (docs/methods/mtree.md)."""

from dataclasses import replace
from fractions import Fraction

import numpy as np

from ...algorithms.trees.bounds import whole_rate
from ...algorithms.trees.disjoint import DisjointRates, best_pair, low_trees_apart, low_trees_of_one_rate
from ...algorithms.trees.gbst import TreePool, every_tree, large_neighbourhood_search, random_state, run_many_starts
from ...algorithms.trees.helpers import relay_by_helpers
from ...algorithms.trees.network import HeightLimit, supports
from ...algorithms.trees.pricing import Prices
from ...algorithms.trees.trees import RatedTrees, bottlenecks, distinct, low_enough, lowest_tree, widest_tree
from ...core.budget import Budget, Incumbent
from ...core.errors import Unsupported
from ...core.instance import Instance
from ...core.outcome import Outcome
from ...core.schedule import Ints
from ...core.solver import Solver, SolverOptions, SolverResult
from .answer import EXACT_ARITHMETIC, GAP, SearchResult, outcome, pattern_rates, select, trees_of
from .column_generation import GAP as CLOSED
from .column_generation import ColumnGeneration
from .formulations.patterns import build as build_patterns
from .formulations.selection import model_unit
from .method import MtreeOptions
from .problem import CandidateTrees, TreePatterns, TreeProblem, filter_trees, tree_problem, wan_problem

_SELECTED = 60  #: Trees of the pool that MILP (1) is given; if these are all there are, its bound is one on all.

#: So many trees at most are searched for, by taking some out and growing them again; with more, their number is no
#: limit to speak of.
_SEARCHED = 64

_WORTH = 1e-2  #: A bound on few trees is worth the search if it can be better by more than this part.
_PATTERNS = 1300  #: The exact model of K trees has at most so many binary variables for patterns.
_NODES = 2000  #: Nodes of the search of a model of patterns, so that every run ends, and ends alike on every machine.
_ONE_RATE = 4  #: One in so many changes of labels is spent on trees of one rate.
_PATIENCE = 2  #: So many heights in a row that are not faster end the search.
_MORE_STARTS = 10  #: Starts of algorithm 1 for K trees, for each one for any number.


@relay_by_helpers
def run(instance: Instance, solver: Solver, budget: Budget, options: MtreeOptions) -> Outcome:
    """Solve an instance that :func:`.network.supports` accepts (``Method.run``)."""
    if options.height == "auto":
        return run_heights(instance, solver, budget, options)
    problem = tree_problem(instance, options.height, options.min_rate, budget)
    if isinstance(problem, Outcome):
        return problem
    result = _TreeSearch(problem, solver, budget, options).run()
    return outcome(problem, result, budget, options, message=_why_ended(problem, result, budget, options))


def _why_ended(problem: TreeProblem, result: SearchResult, budget: Budget, options: MtreeOptions) -> str:
    """Return a message with the option that may find faster low link-disjoint trees; empty if none can exist."""
    if result.disjoint is None or result.rated is None or problem.any_height:
        return ""
    if next(result.disjoint.choices_by_total(options.trees or 1, result.rated.total), None) is None:
        return ""
    if budget.is_exhausted:
        return f"{budget.why_exhausted} before trees of larger rates were found or excluded"
    return f"{options.changes:,} changes of labels found no trees of larger rates; more (changes) may"


def prove_bound(instance: Instance, options: MtreeOptions) -> Fraction | None:
    """Return the bound on any trees by partitions and cuts; None for limited trees or a group (``Method.proved``)."""
    if supports(instance) or options.trees is not None or options.height is not None or options.min_rate is not None:
        return None
    problem = wan_problem(instance, Budget())
    return problem.seconds(problem.ceiling.rate)


class Search:
    """Search for trees: its problem, the best bound so far, and the solver's reports."""

    def __init__(self, problem: TreeProblem, solver: Solver, budget: Budget) -> None:
        self.problem, self.solver, self.budget = problem, solver, budget
        self.wan, self.floor, self.min_capacity = problem.wan, problem.floor, problem.min_capacity
        self.limit = problem.height_limit
        self.bound, self.prover = problem.strength.rate, EXACT_ARITHMETIC
        self.reports: list[SolverResult] = []

    def tighten(self, bound: Fraction, prover: tuple[str, str]) -> None:
        """Keep a better bound."""
        if bound < self.bound:
            self.bound, self.prover = bound, prover

    def take_solver_bound(self, report: SolverResult) -> None:
        """Keep the solver's bound on the total rate, loosened by 1e-8 for its tolerances."""
        if report.bound is not None:
            bound = Fraction(report.bound) * Fraction(model_unit(self.wan)) * Fraction(1 + 1e-8)
            self.tighten(bound, (report.solver, report.version))

    def pattern_trees(self, patterns: TreePatterns) -> tuple[Ints, SolverResult]:
        """Solve a model of patterns; return its trees, whose rates are to be recomputed, and the report."""
        with self.budget.clock.phase("build"):
            model = build_patterns(patterns)
        report = self.solver.solve(model, self.budget, SolverOptions(rel_gap=1e-7, node_limit=_NODES))
        self.reports.append(report)
        trees = pattern_rates(model, patterns).trees if report.has_solution else np.empty((0, self.wan.nodes - 1), int)
        return distinct(trees), report


class _TreeSearch(Search):
    """Search for the best allowed trees, and a bound on them."""

    def __init__(self, problem: TreeProblem, solver: Solver, budget: Budget, options: MtreeOptions) -> None:
        super().__init__(problem, solver, budget)
        self.options = options
        self.best: RatedTrees | None = None
        # Without prices of links, K trees carry at most K times what the widest does; those of a partition prove the
        # strength, which K trees may have to be less than.
        wan, part, crossing = self.wan, np.empty(self.wan.nodes, np.int64), np.zeros((2, len(self.wan.room)), np.int64)
        for index, sites in enumerate(problem.strength.parts):
            part[list(sites)] = index
        crossing[1, wan.first] = crossing[1, wan.second] = part[wan.tail] != part[wan.head]
        self.prices = [Prices(wan, price, tree) for price, tree in zip(crossing, (1, 0), strict=True)]
        self.rounds = 0
        self.pool_size = 0
        self.complete = False
        self.widest: int | None = None
        self.disjoint: DisjointRates | None = None
        # With a smallest rate, more trees than this do not fit.
        fit = int(self.bound / self.floor) if self.floor else None
        limits = [most for most in (self.options.trees, fit) if most is not None]
        self.most = max(1, min(limits)) if limits else None

    @property
    def is_done(self) -> bool:
        return self.best is not None and self.best.total >= self.bound * (1 - Fraction(GAP) / 10)

    def run(self) -> SearchResult:
        """Try the exact algorithms in turn, and stop when value and bound meet."""
        widest = self.one_tree()
        if self.most == 1 or self.is_done:
            return self.result()
        # Both searches assume that no two links share capacity.
        if self.most == 2 and self.limit is None and not self.wan.has_shared_links and self.two_trees(widest):
            return self.result()
        if self.most is not None and self.most == self.options.trees and not self.wan.has_shared_links:
            self.trees_apart(self.most)
        if self.disjoint is not None and self.disjoint.most[-1] >= self.bound:
            self.low_trees(self.disjoint)
        if self.is_done:
            return self.result()
        trees, choices = self.pool(widest)
        if self.most is not None:
            self.few_trees(choices, min(self.most, _SEARCHED))
        if self.disjoint is not None and self.disjoint.most[-1] < self.bound:
            self.low_trees(self.disjoint)
        if not self.is_done:
            relaxation = self.relaxation(trees)
            if self.most is not None:
                self.choose_few(relaxation, choices)
                self.solve_patterns(widest)
        return self.result()

    def result(self) -> SearchResult:
        fields = self.best, self.bound, self.prover, tuple(self.reports), self.rounds, {"pool": self.pool_size}
        return SearchResult(*fields, self.options.trees, tuple(self.prices), self.disjoint)

    def take(self, rated: RatedTrees | None) -> None:
        """Keep trees that are faster, or fewer."""
        if rated is None or (self.most is not None and len(rated.rates) > self.most):
            return
        new, old = rated, self.best
        if old is None or new.total > old.total or (new.total == old.total and len(new.rates) < len(old.rates)):
            self.best = rated
            seconds, least = (float(self.problem.seconds(rate)) for rate in (rated.total, self.bound))
            self.budget.tell(Incumbent(seconds, least, answer=lambda: trees_of(self.problem, rated)))

    def tighten(self, bound: Fraction, prover: tuple[str, str]) -> None:
        """Keep a better bound; with K trees it is rounded down to rates that they can have."""
        if self.most is not None and self.widest is not None:
            disjoint = None if self.disjoint is None else self.disjoint.most
            bound = whole_rate(self.wan, self.most, self.widest, self.floor, bound, disjoint)
        super().tighten(bound, prover)

    def one_tree(self) -> Ints:
        with self.budget.clock.phase("one tree"):
            widest = widest_tree(self.wan, self.problem.limit)
        if widest is None:
            raise Unsupported("no tree is within the height")  # has been told already
        rate, tree = widest
        self.widest = rate
        self.take(RatedTrees(tree[None, :], (Fraction(rate),)))
        if self.most is not None:
            self.tighten(Fraction(self.most * rate), EXACT_ARITHMETIC)
        return tree

    def two_trees(self, widest: Ints) -> bool:
        rate = int(self.wan.capacity[widest].min())
        with self.budget.clock.phase("two trees"):
            pair = best_pair(self.wan, rate, self.budget, self.floor)
        self.take(pair)
        if self.budget.is_exhausted:
            return False
        if self.best is not None:
            self.tighten(self.best.total, EXACT_ARITHMETIC)
        return True

    def trees_apart(self, most: int) -> None:
        """Find the best link-disjoint trees of any height; their rates bound those of low ones."""
        disjoint = DisjointRates.of(self.wan, most, self.min_capacity, self.widest or 0)
        if disjoint is None:
            return
        with self.budget.clock.phase("disjoint trees"):
            trees = disjoint.solve(self.budget)
        if trees is None:
            return
        self.disjoint = disjoint
        self.tighten(self.bound, EXACT_ARITHMETIC)
        if self.limit is None:
            self.take(RatedTrees(trees, tuple(Fraction(int(rate)) for rate in bottlenecks(self.wan, trees))))
        self.report_progress(f"{most} trees without a common link")

    def low_trees(self, disjoint: DisjointRates) -> None:
        """Find low link-disjoint trees of the largest rates, above those of known trees.

        This precedes the listing of trees if such trees can meet the bound, and follows it if they cannot.
        """
        if self.limit is None:
            return
        above, state = self.best.total if self.best else Fraction(0), random_state(self.budget.seed)
        with self.budget.clock.phase("labels"):
            for rated in low_trees_apart(disjoint, self.limit, above, self.options.changes, state, self.budget):
                self.take(rated)
        self.report_progress("low trees without a common link")

    def pool(self, widest: Ints) -> tuple[Ints, TreePool]:
        """List all trees if there are few; else grow trees from many starts."""
        starts = self.options.starts * (1 if self.most is None else _MORE_STARTS)
        with self.budget.clock.phase("pool"):
            choices = run_many_starts(self.wan, self.problem.limit, starts, self.min_capacity, self.most, self.budget)
            every = every_tree(self.wan)
            trees = np.concatenate([widest[None, :], choices.trees]) if every is None else every
            trees = filter_trees(self.problem, distinct(trees))
        self.complete = every is not None
        self.pool_size = len(trees)
        self.budget.progress(f"{len(trees):,} trees{', which are all' if self.complete else ''}")
        return trees, choices

    def few_trees(self, choices: TreePool, most: int) -> None:
        """Improve the fastest trees of the best start: an answer before any proof."""
        if not choices.choices:
            return
        with self.budget.clock.phase("search"):
            state, start, moves = random_state(self.budget.seed), choices.choices[0][:most], self.options.moves
            few = large_neighbourhood_search(
                self.wan, self.problem.limit, start, most, self.min_capacity, moves, state, self.budget
            )
        self.choose(np.sort(few, axis=1))
        self.report_progress(f"{most} trees searched")
        if self.best is not None and not (self.is_done or self.wan.has_shared_links):
            limit, between = self.limit or self.wan.hops(None), (self.best.total, self.bound)
            changes = self.options.changes // _ONE_RATE
            for trees in low_trees_of_one_rate(self.wan, limit, most, self.floor, between, changes, state, self.budget):
                self.take(trees)

    def relaxation(self, trees: Ints) -> ColumnGeneration:
        """Solve the linear program over trees for a bound and candidate trees (docs/methods/mtree.md)."""
        few = self.most if self.most is not None and self.most <= _SEARCHED else None
        gap = CLOSED
        if few is not None and self.limit is not None and not self.complete:
            # What trees of any height reach without a common link cannot be lowered for them.
            if self.disjoint is None or self.disjoint.most[-1] < self.bound:
                relaxation = self.solve_relaxation(trees, None, few, CLOSED)
                if self.is_done:
                    return relaxation
            gap = _WORTH
        relaxation = self.solve_relaxation(trees, None if self.complete else self.limit, few, gap)
        if relaxation.rated is not None and min(relaxation.rated.rates, default=self.floor) >= self.floor:
            self.take(relaxation.rated)
        return relaxation

    def solve_relaxation(
        self, trees: Ints, limit: HeightLimit | None, most: int | None, gap: float
    ) -> ColumnGeneration:
        """Solve the linear program over trees of a height, with a price of trees if K is given."""
        exact = self.options.exact and self.most is None
        limits = self.wan, limit, most, self.min_capacity, self.bound
        with self.budget.clock.phase("generate"):
            relaxation = ColumnGeneration(
                *limits, trees, self.solver, self.budget, complete=self.complete, exact=exact, gap=gap
            ).run()
        self.rounds += relaxation.rounds
        self.reports += relaxation.reports
        self.prices += [] if relaxation.prices is None else [relaxation.prices]
        last = relaxation.reports[-1]
        self.tighten(relaxation.bound, (last.solver, last.version) if relaxation.from_solver else EXACT_ARITHMETIC)
        self.pool_size = max(self.pool_size, len(relaxation.pool))
        self.report_progress(f"{'any number of' if most is None else 'few'} trees")
        return relaxation

    def choose_few(self, relaxation: ColumnGeneration, choices: TreePool) -> None:
        """Choose K trees by MILP (1): of all trees if these are few, which is exact.

        Else of the fastest of the linear program; then of the best, the fastest, and those of other starts.
        """
        if self.is_done:
            return
        if self.complete and len(relaxation.pool) <= _SELECTED:
            report = self.choose(relaxation.pool)
            if report is not None:
                self.take_solver_bound(report)
            self.report_progress(f"{self.most} of all trees")
            if self.is_done:
                return
        fastest = self.fastest(relaxation)
        self.choose(fastest[: self.most])
        rows = [np.sort(self.best.trees, axis=1)] if self.best is not None else []
        trees = distinct(np.concatenate([*rows, fastest[: _SELECTED // 3], *choices.choices]))[:_SELECTED]
        self.choose(trees[bottlenecks(self.wan, trees) >= self.min_capacity])
        self.report_progress(f"{self.most} trees of the pool")

    def fastest(self, relaxation: ColumnGeneration) -> Ints:
        """Return the low enough trees of the linear program, by falling rate."""
        if relaxation.rated is None:
            return np.empty((0, self.wan.nodes - 1), dtype=np.int64)
        order = np.argsort([-float(rate) for rate in relaxation.rated.rates], kind="stable")
        return low_enough(self.wan, self.problem.limit, relaxation.rated.trees[order])

    def choose(self, trees: Ints) -> SolverResult | None:
        """Solve MILP (1) over some trees; return the solver's report, None without a solve."""
        if self.budget.is_exhausted or not len(trees):
            return None
        options = SolverOptions(node_limit=self.options.nodes, use_start=self.best is not None)
        pool = CandidateTrees(self.wan, trees, self.most, self.floor)
        rated, report = select(pool, self.solver, self.budget, options, self.best)
        self.reports.append(report)
        self.take(rated)
        return report

    def solve_patterns(self, widest: Ints) -> None:
        """Solve small models of link patterns for increasing numbers of trees, until one meets the bound."""
        most = self.most or 1
        rate = int(self.wan.capacity[widest].min())
        for count in range(min(3, most), most + 1):
            fits = self.complete and self.options.exact and len(self.wan.room) * 2**count <= _PATTERNS
            if not fits or self.is_done or self.budget.is_exhausted:
                return
            self.budget.progress(f"{count} trees exactly")
            bound = float(self.bound)
            trees, report = self.pattern_trees(TreePatterns(self.wan, self.limit, count, rate, bound, self.floor))
            self.choose(trees)
            if count == most:
                self.take_solver_bound(report)
            self.report_progress(f"{count} trees")

    def report_progress(self, what: str) -> None:
        share = float(self.best.total / self.bound) if self.best is not None else 0.0
        self.budget.progress(f"{what}: {share:.2%} of the bound")


def run_heights(instance: Instance, solver: Solver, budget: Budget, options: MtreeOptions) -> Outcome:
    """Try heights in hops from the least feasible one (docs/methods/mtree.md)."""
    problem = tree_problem(instance, None, options.min_rate, budget)
    if isinstance(problem, Outcome):
        return problem
    wan, strength = problem.wan, problem.strength
    lowest = lowest_tree(wan, problem.limit, wan.capacity >= problem.min_capacity)[0]
    result = SearchResult(None, strength.rate, EXACT_ARITHMETIC)
    best: tuple[float, int, SearchResult] | None = None
    times: list[list[float]] = []
    for height in range(lowest, wan.nodes):
        low = replace(problem, limit=wan.hops(height))
        result = _TreeSearch(low, solver, budget, options).run()
        seconds = outcome(low, result, budget, options).metrics.get("pipelined_time_s")
        if seconds is not None:
            times.append([height, seconds])
            if best is None or seconds < best[0]:
                best = seconds, height, result
        budget.progress(f"height {height}: {'nothing' if seconds is None else f'{seconds:.6g} s'}")
        full = result.rated is not None and result.rated.total >= strength.rate * (1 - Fraction(GAP))
        late = best is not None and height >= best[1] + _PATIENCE
        if full or late or budget.is_exhausted:
            break
    if best is None:
        return outcome(problem, replace(result, bound=strength.rate), budget, options)
    _, height, result = best
    metrics = {**(result.metrics or {}), "auto_height": height, "heights_tried_s": times}
    best_result = replace(result, bound=strength.rate, metrics=metrics)
    return outcome(replace(problem, limit=wan.hops(height)), best_result, budget, options)
