"""``gost``: spanning trees for collectives on wide-area networks, exactly as the MTree paper describes them.

GBST and GRTH (algorithms 1 and 2) grow trees of limited height, ITH (algorithm 3) searches for the least height that
keeps most of the rate, and MILP (1) selects trees and their rates.
"""

from dataclasses import replace
from fractions import Fraction

import numpy as np

from ...algorithms.trees.gbst import GbstTrees, GbstVariant, random_state, run_gbst
from ...algorithms.trees.helpers import relay_by_helpers
from ...algorithms.trees.network import HeightLimit
from ...algorithms.trees.trees import RatedTrees, bottlenecks, heights_from
from ...core.budget import Budget
from ...core.errors import Unsupported
from ...core.instance import Instance
from ...core.outcome import Outcome, Status
from ...core.solver import Solver, SolverOptions, SolverResult
from ...models.mtree.answer import EXACT_ARITHMETIC, SearchResult, outcome, select
from ...models.mtree.problem import CandidateTrees, PosedPool, TreeProblem, pose_trees, tree_problem
from .method import GostOptions


@relay_by_helpers
def run(instance: Instance, solver: Solver, budget: Budget, options: GostOptions) -> Outcome:
    """Grow trees, then select some of them with rates (``Method.run``)."""
    problem = tree_problem(instance, options.height, options.min_rate, budget)
    if isinstance(problem, Outcome):
        return problem
    with budget.clock.phase("trees"):
        forest, most, calls = run_ith(problem, options, budget)
    height = problem.limit.format_height(most)
    metrics = {
        "pool": len(forest.trees),
        "gbst_calls": calls,
        "ith_height": most,
        "gbst_rate_Bps": float(int(forest.rates.sum()) * problem.wan.unit_Bps),
    }
    nothing = SearchResult(None, problem.strength.rate, EXACT_ARITHMETIC, (), calls, metrics)
    if not len(forest.trees):
        message = f"no tree of at most {height} was found from {options.retries + 1} random start"
        message += "s" if options.retries else ", where algorithm 1 ends; -O retries=20 tries others"
        return outcome(problem, nothing, budget, options, message=message)
    rated, roots, reports = select_trees(problem, forest, solver, budget, options)
    result = replace(nothing, rated=rated, reports=reports)
    warning = _warning(problem, rated, roots)
    final = outcome(problem, result, budget, options, roots=roots, message=warning)
    # Trees above the requested height cannot be an optimum of the request.
    return replace(final, status=Status.FEASIBLE) if warning else final


def grown_pool(instance: Instance, options: GostOptions) -> PosedPool:
    """Grow trees by algorithms 1 to 3 with seed 0, for MILP (1) (``Formulation.index``)."""
    problem = pose_trees(instance, options.height, options.min_rate)
    trees = np.sort(run_ith(problem, options, Budget())[0].trees, axis=1)
    if not len(trees):
        raise Unsupported("algorithm 1 found no tree within the height from its random start")
    return PosedPool(problem.wan, trees, options.trees, problem.floor, problem=problem, complete=False)


def run_ith(problem: TreeProblem, options: GostOptions, budget: Budget) -> tuple[GbstTrees, int, int]:
    """Run algorithm 3: find by bisection the least height H at which a share rho of the rate is left.

    Returns the trees, H, and the number of runs of GBST.
    """
    state = random_state(budget.seed)
    variant = GbstVariant(
        options.rate,
        options.height_test == "radius",
        options.grth == "corrected",
        options.ties == "shuffle",
        options.retries,
    )

    def gbst(most: int) -> GbstTrees:
        own_state = state if options.ith_seed == "fresh" else random_state(budget.seed)
        limit = HeightLimit(problem.limit.length, most, problem.limit.unit)
        return run_gbst(problem.wan, limit, problem.min_capacity, variant, own_state)

    best = gbst(problem.limit.most)
    calls, low, high = 1, 1, problem.limit.most
    threshold = Fraction(options.rho) * int(best.rates.sum())
    while options.improve and len(best.trees) and low < high:
        middle = (low + high) // 2
        trial = gbst(middle)
        calls += 1
        if len(trial.trees) and trial.rates.sum() >= threshold:
            high, best = middle, trial
        else:
            low = middle + 1
    return best, high, calls


def select_trees(
    problem: TreeProblem, forest: GbstTrees, solver: Solver, budget: Budget, options: GostOptions
) -> tuple[RatedTrees, list[int], tuple[SolverResult, ...]]:
    """Select trees and rates by MILP (1), or return those of GBST if the option ``select`` is off."""
    every = RatedTrees(forest.trees, tuple(Fraction(int(rate)) for rate in forest.rates))
    if not options.select:
        return every, forest.roots.tolist(), ()
    trees = np.sort(forest.trees, axis=1)
    # Algorithm 1 may leave a tree less than the smallest allowed rate, but each of its links had that capacity.
    gap = 1e-6 if budget.gap is None else budget.gap
    solved = SolverOptions(rel_gap=gap, node_limit=options.nodes)
    pool = CandidateTrees(problem.wan, trees, options.trees, problem.floor)
    rated, report = select(pool, solver, budget, solved)
    if rated is None or not rated.rates:
        rates = bottlenecks(problem.wan, trees)
        rated = RatedTrees(trees[[int(rates.argmax())]], (Fraction(int(rates.max())),))
    root_of = {tuple(tree): root for tree, root in zip(trees.tolist(), forest.roots.tolist(), strict=True)}
    return rated, [root_of[tuple(tree)] for tree in rated.trees.tolist()], (report,)


def _warning(problem: TreeProblem, rated: RatedTrees, roots: list[int]) -> str:
    """Return a warning if trees are higher than requested because of latencies (see ``height_test``)."""
    wan, limit = problem.wan, problem.limit
    worst = int(heights_from(wan, limit.length, rated.trees, roots)[0].max(initial=0))
    if worst <= limit.most:
        return ""
    text = f"a tree has a height of {limit.format_height(worst)}, above the {limit.format_height(limit.most)} asked"
    return f"{text}; -O height_test=radius keeps it"
