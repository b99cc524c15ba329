"""``topoadopt``: K trees by simulated annealing (docs/methods/wan-baselines.md: the paper's words, and guesses).

The energy of K trees is the largest sum of their rates: the linear program ``wan-rates`` of MTree's formulations.
"""

from collections.abc import Sequence
from math import exp
from random import Random

import numpy as np

from ...algorithms.trees.helpers import relay_by_helpers
from ...algorithms.trees.network import Wan
from ...algorithms.trees.trees import links_from_root, spanning_tree
from ...core.budget import Budget
from ...core.instance import Instance
from ...core.outcome import Outcome, Status
from ...core.schedule import Ints
from ...core.solver import Solver, SolverResult
from ...models.mtree.answer import best_rates
from ...models.mtree.problem import wan_problem
from .answer import bound_fields, tree_outcome
from .method import TopoAdoptOptions


@relay_by_helpers
def run(instance: Instance, solver: Solver, budget: Budget, options: TopoAdoptOptions) -> Outcome:
    """Anneal (``Method.run``)."""
    problem = wan_problem(instance, budget)
    wan, source = problem.wan, Random(budget.seed)  # noqa: S311 (nothing is secret here)
    trees = [random_tree(wan, source) for _ in range(options.trees)]
    best, report = best_rates(wan, np.array(trees), solver, budget)
    reports: list[SolverResult] = [report]
    if best is None:
        message = "the budget ended before the first trees had rates"
        return Outcome(Status.LIMIT, message=message, **bound_fields(problem))
    now = best.total
    temperature = float(options.temperature / wan.unit_Bps)
    for move in range(options.moves):
        if budget.is_exhausted or len(wan) < wan.nodes:
            break
        which = source.randrange(len(trees))
        changed = [*trees[:which], swap_link(wan, trees[which], source), *trees[which + 1 :]]
        plan, report = best_rates(wan, np.array(changed), solver, budget)
        reports.append(report)
        if plan is None:
            break
        if plan.total >= now or source.random() < exp(float(plan.total - now) / temperature):
            trees, now = changed, plan.total
        if plan.total > best.total:
            best = plan
            budget.progress(f"move {move + 1}: {float(best.total / problem.ceiling.rate):.2%} of the strength")
        temperature *= options.cooling
    return tree_outcome(problem, best, reports=reports[-1:], rounds=len(reports), metrics={"moves": len(reports) - 1})


def random_tree(wan: Wan, source: Random) -> Ints:
    """Return the spanning tree of Kruskal's algorithm for a random order of the links."""
    order = list(range(len(wan)))
    source.shuffle(order)
    return np.array(spanning_tree(wan, order), dtype=np.int64)


def swap_link(wan: Wan, tree: Ints, source: Random) -> Ints:
    """Exchange a random link for another one of the cycle that it closes."""
    inside = set(tree.tolist())
    new = source.choice([e for e in range(len(wan)) if e not in inside])
    dropped = source.choice(way_between(wan, tree.tolist(), int(wan.tail[new]), int(wan.head[new])))
    return np.array(sorted(inside - {dropped} | {new}), dtype=np.int64)


def way_between(wan: Wan, tree: Sequence[int], start: int, end: int) -> list[int]:
    """Return the links of a tree between two sites."""
    link_of = {frozenset((int(wan.tail[e]), int(wan.head[e]))): e for e in tree}
    before = {child: parent for parent, child, *_ in links_from_root(wan, tree, start)}
    links: list[int] = []
    while end != start:
        links.append(link_of[frozenset((end, before[end]))])
        end = before[end]
    return links
