"""``mtree``: the best trees of a limited height and number, with a proved bound beside.

One tree, and two of any height, are found exactly by combinatorial algorithms. Any number of trees: a pool of many starts of algorithm 1, a linear
program over it, and the generation of trees until value and bound meet; a network with few spanning trees has all of them in its
pool. K trees: MILP (1) over the pool, a bound from the relaxation, and on a small network the exact model of link patterns.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from ...core.budget import Budget, Incumbent
from ...core.errors import Unsupported
from ...core.instance import Instance
from ...core.method import Outcome
from ...core.schedule import Ints
from ...core.solver import Solver, SolverOptions, SolverResult
from ..common.wan.bottleneck import widest_tree
from ..common.wan.network import Limit
from ..common.wan.selection import model_unit, select
from ..common.wan.trees import Rated, bottlenecks, distinct, low_enough
from . import patterns
from .answer import OURSELVES, Asked, Found, ask, outcome, trees_of
from .columns import GAP as CLOSED
from .columns import Fluid, Task, generate
from .options import MtreeOptions
from .pairs import best_pair
from .pool import Pool, every_tree, many_starts, random_state
from .pricing import Prices
from .proof import GAP
from .ruin import ruin_and_recreate

#: Trees of the pool that MILP (1) is given; if these are all there are, its bound is one on all.
_SELECTED = 60

#: So many trees at most are searched for, by taking some out and growing them anew; with more, their number is no limit to speak of.
_SEARCHED = 64

#: A bound on few trees is worth the search if it can be better by more than this part.
_WORTH = 1e-2

#: The exact model of K trees has at most so many binary variables for patterns.
_PATTERNS = 1300

#: Starts of algorithm 1 for K trees, for each one for any number.
_MORE_STARTS = 10


def run(instance: Instance, solver: Solver, budget: Budget, options: MtreeOptions) -> Outcome:
    """Solve an instance that :func:`.network.supports` has nothing against (``Method.run``).

    Raises
    ------
    InputError
        If the network is not connected.
    """
    if options.height == "auto":
        from .heights import run as try_heights

        return try_heights(instance, solver, budget, options)
    asked = ask(instance, options.height, options.min_rate, budget)
    if isinstance(asked, Outcome):
        return asked
    return outcome(asked, search(asked, solver, budget, options), budget, options)


def search(asked: Asked, solver: Solver, budget: Budget, options: MtreeOptions) -> Found:
    """Look for the best trees of a height, and for a bound."""
    return _Search(asked, solver, budget, options).run()


@dataclass(eq=False)
class _Search:
    """The state of a search."""

    asked: Asked
    solver: Solver
    budget: Budget
    options: MtreeOptions
    reports: list[SolverResult] = field(default_factory=list)

    def __post_init__(self) -> None:
        asked = self.asked
        self.wan, self.floor, self.least = asked.wan, asked.floor, asked.least
        self.bound, self.prover = asked.strongest.rate, OURSELVES
        self.best: Rated | None = None
        # Without prices of links, K trees carry at most K times what the widest does.
        self.prices = [Prices(np.zeros(len(asked.wan), dtype=np.int64), 1)]
        self.rounds = 0
        self.pool_size = 0
        self.complete = False
        # With a smallest rate, more trees than this do not fit.
        fit = int(self.bound / self.floor) if self.floor else None
        known = [most for most in (self.options.trees, fit) if most is not None]
        self.most = max(1, min(known)) if known else None

    @property
    def limit(self) -> Limit | None:
        """The height; None if every tree is low enough."""
        return None if self.asked.any_height else self.asked.limit

    @property
    def done(self) -> bool:
        """Whether value and bound meet."""
        return self.best is not None and self.best.total >= self.bound * (1 - Fraction(GAP) / 10)

    def run(self) -> Found:
        """Try one after the other what is exact, and stop where value and bound meet."""
        widest = self.one_tree()
        if self.most == 1 or self.done:
            return self.found()
        if self.most == 2 and self.limit is None and self.two_trees(widest):
            return self.found()
        trees, choices = self.pool(widest)
        if self.most is not None:
            self.few_trees(choices, min(self.most, _SEARCHED))
        if not self.done:
            fluid = self.fluid(trees)
            if self.most is not None:
                self.chosen(fluid, choices)
                self.exactly(widest)
        return self.found()

    def found(self) -> Found:
        """Put the results together."""
        metrics = {"pool": self.pool_size}
        return Found(
            self.best,
            self.bound,
            self.prover,
            tuple(self.reports),
            self.rounds,
            metrics,
            self.options.trees,
            tuple(self.prices),
        )

    def take(self, rated: Rated | None) -> None:
        """Keep trees that are better, or fewer."""
        if rated is None or (self.most is not None and len(rated.rates) > self.most):
            return
        new, old = rated, self.best
        if old is None or new.total > old.total or (new.total == old.total and len(new.rates) < len(old.rates)):
            self.best = rated
            seconds, least = (float(self.asked.seconds(rate)) for rate in (rated.total, self.bound))
            self.budget.tell(Incumbent(seconds, least, answer=lambda: trees_of(self.asked, rated)))

    def tighten(self, bound: Fraction, prover: tuple[str, str]) -> None:
        """Keep a bound that is better."""
        if bound < self.bound:
            self.bound, self.prover = bound, prover

    def one_tree(self) -> Ints:
        """Find the widest tree that is low enough: the answer for K = 1."""
        with self.budget.clock.phase("one tree"):
            found = widest_tree(self.wan, self.asked.limit)
        if found is None:
            raise Unsupported("no tree is low enough")  # has been told already
        rate, tree = found
        self.take(Rated(tree[None, :], (Fraction(rate),)))
        if self.most is not None:
            self.tighten(Fraction(self.most * rate), OURSELVES)
        return tree

    def two_trees(self, widest: Ints) -> bool:
        """Find the two best trees of any height; False if the budget ended first."""
        rate = int(self.wan.capacity[widest].min())
        with self.budget.clock.phase("two trees"):
            pair = best_pair(self.wan, rate, self.budget, self.floor)
        self.take(pair)
        if self.budget.exhausted:
            return False
        if self.best is not None:
            self.tighten(self.best.total, OURSELVES)
        return True

    def pool(self, widest: Ints) -> tuple[Ints, Pool]:
        """List all trees where there are few; else many starts."""
        starts = self.options.starts * (1 if self.most is None else _MORE_STARTS)
        with self.budget.clock.phase("pool"):
            choices = many_starts(self.wan, self.asked.limit, starts, self.least, self.most, self.budget)
            every = every_tree(self.wan)
            trees = np.concatenate([widest[None, :], choices.trees]) if every is None else every
            trees = distinct(low_enough(self.wan, self.asked.limit, trees))
            trees = trees[bottlenecks(self.wan, trees) >= self.least]
        self.complete = every is not None
        self.pool_size = len(trees)
        self.budget.progress(f"{len(trees):,} trees{', which are all' if self.complete else ''}")
        return trees, choices

    def few_trees(self, choices: Pool, most: int) -> None:
        """Improve the fastest trees of the best start: an answer before anything is proved."""
        if not choices.choices:
            return
        with self.budget.clock.phase("search"):
            state, start, moves = random_state(self.budget.seed), choices.choices[0][:most], self.options.moves
            few = ruin_and_recreate(self.wan, self.asked.limit, start, most, self.least, moves, state, self.budget)
        self.choose(np.sort(few, axis=1), self.options.nodes)
        self.told(f"{most} trees searched")

    def fluid(self, trees: Ints) -> Fluid:
        """Solve the linear program over trees, which bounds them, and whose trees are candidates.

        Where not all trees are known, few low ones are bounded twice: of any height, which is exact, and low, which may be much less.
        """
        few = self.most if self.most is not None and self.most <= _SEARCHED else None
        gap = CLOSED
        if few is not None and self.limit is not None and not self.complete:
            fluid = self.generated(trees, None, few, CLOSED)
            if self.done:
                return fluid
            gap = _WORTH
        fluid = self.generated(trees, None if self.complete else self.limit, few, gap)
        if fluid.rated is not None and min(fluid.rated.rates, default=self.floor) >= self.floor:
            self.take(fluid.rated)
        return fluid

    def generated(self, trees: Ints, limit: Limit | None, most: int | None, gap: float) -> Fluid:
        """Solve the linear program over trees of a height, with a price of trees if K is given."""
        exact = self.options.exact and self.most is None
        task = Task(self.wan, limit, most, self.least, self.bound, self.complete, exact, gap)
        with self.budget.clock.phase("generate"):
            fluid = generate(task, trees, self.solver, self.budget)
        self.rounds += fluid.rounds
        self.reports += fluid.reports
        self.prices += [] if fluid.prices is None else [fluid.prices]
        last = fluid.reports[-1]
        self.tighten(fluid.bound, (last.solver, last.version) if fluid.from_solver else OURSELVES)
        self.pool_size = max(self.pool_size, len(fluid.pool))
        self.told(f"{'any number of' if most is None else 'few'} trees")
        return fluid

    def chosen(self, fluid: Fluid, choices: Pool) -> None:
        """Choose K trees by MILP (1): of all trees if these are few, which is exact.

        Else the fastest of the linear program; then among the best, the fastest, and those of other starts.
        """
        if self.done:
            return
        if self.complete and len(fluid.pool) <= _SELECTED:
            report = self.choose(fluid.pool, self.options.nodes)
            if report is not None:
                self.trust(report)
            self.told(f"{self.most} of all trees")
            if self.done:
                return
        fastest = self.fastest(fluid)
        self.choose(fastest[: self.most], self.options.nodes)
        rows = [np.sort(self.best.trees, axis=1)] if self.best is not None else []
        trees = distinct(np.concatenate([*rows, fastest[: _SELECTED // 3], *choices.choices]))[:_SELECTED]
        self.choose(trees[bottlenecks(self.wan, trees) >= self.least], self.options.nodes)
        self.told(f"{self.most} trees of the pool")

    def fastest(self, fluid: Fluid) -> Ints:
        """Give the trees of the linear program that are low enough, by falling rate."""
        if fluid.rated is None:
            return np.empty((0, self.wan.nodes - 1), dtype=np.int64)
        order = np.argsort([-float(rate) for rate in fluid.rated.rates], kind="stable")
        return low_enough(self.wan, self.asked.limit, fluid.rated.trees[order])

    def choose(self, trees: Ints, nodes: int) -> SolverResult | None:
        """Solve MILP (1) over some trees; give what the solver says of it, if it was asked."""
        if self.budget.exhausted or not len(trees):
            return None
        options = SolverOptions(node_limit=nodes, use_start=self.best is not None)
        rated, report = select(self.wan, trees, self.most, self.floor, self.solver, self.budget, options, self.best)
        self.reports.append(report)
        self.take(rated)
        return report

    def trust(self, report: SolverResult) -> None:
        """Take the word of the solver for a bound on all trees that are allowed, a little loosened, since its tolerances are no proof."""
        if report.bound is not None:
            bound = Fraction(report.bound) * Fraction(model_unit(self.wan)) * Fraction(1 + 1e-8)
            self.tighten(bound, (report.solver, report.version))

    def exactly(self, widest: Ints) -> None:
        """Solve the model of link patterns for more and more trees, where it is small enough: the first number that meets the bound will do."""
        most = self.most or 1
        rate = int(self.wan.capacity[widest].min())
        for count in range(min(3, most), most + 1):
            fits = self.complete and self.options.exact and len(self.wan) * 2**count <= _PATTERNS
            if not fits or self.done or self.budget.exhausted:
                return
            self.budget.progress(f"{count} trees exactly")
            with self.budget.clock.phase("build"):
                model = patterns.build(self.wan, self.limit, count, rate, float(self.bound), self.floor)
            trees, report = patterns.solve(model, self.wan, self.solver, self.budget)
            self.reports.append(report)
            if trees is not None:
                self.choose(distinct(trees), self.options.nodes)
            if count == most:
                self.trust(report)
            self.told(f"{count} trees")

    def told(self, what: str) -> None:
        """Show where the search is."""
        share = float(self.best.total / self.bound) if self.best is not None else 0.0
        self.budget.progress(f"{what}: {share:.2%} of the bound")
