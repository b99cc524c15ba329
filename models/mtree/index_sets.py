"""Index sets and parameters of the declared models: pools of trees, numbers of trees, prices, trees of an older plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...algorithms.trees.gbst import every_tree, many_starts
from ...algorithms.trees.one_tree import widest_tree
from ...algorithms.trees.trees import bottlenecks, low_enough
from ...core.budget import Budget
from ...core.errors import InputError, Unsupported
from ...core.explanation import network_labels
from ...core.instance import Instance
from ...core.method import Outcome
from ...core.schedule import Floats, Ints
from .problem import TreeProblem, tree_problem
from .repair_input import survivors

if TYPE_CHECKING:
    from .method import (
        MasterOptions,
        PatternOptions,
        PoolOptions,
        PricingOptions,
        RepairModelOptions,
        RepairPatternOptions,
        SelectionOptions,
    )


@dataclass(frozen=True, eq=False)
class PosedPool:
    """The trees that a model is of.

    Parameters
    ----------
    problem : TreeProblem
        The limits.
    trees : array of int, shape (trees, sites - 1)
        Spanning trees that respect them.
    most_trees : int or None
        K; None is no limit.
    complete : bool
        Whether these are all such trees.
    """

    problem: TreeProblem
    trees: Ints
    most_trees: int | None = None
    complete: bool = True


@dataclass(frozen=True, eq=False)
class TreeCount:
    """K trees that may be any.

    Parameters
    ----------
    problem : TreeProblem
        The limits.
    most_trees : int
        K.
    widest : int
        A rate that no single tree exceeds, in units.
    """

    problem: TreeProblem
    most_trees: int
    widest: int


@dataclass(frozen=True, eq=False)
class LinkPrices:
    """Prices of links, at which the cheapest tree is sought.

    Parameters
    ----------
    problem : TreeProblem
        The limits.
    price : array of float, shape (links,)
        At least 0.
    """

    problem: TreeProblem
    price: Floats


@dataclass(frozen=True, eq=False)
class OldAndNew:
    """Trees of an older plan, and new ones.

    Parameters
    ----------
    problem : TreeProblem
        The network as it is now, and the limits.
    old : array of int, shape (trees, sites - 1)
        Old trees that are left.
    fresh : array of int, shape (trees, sites - 1)
        All other trees that respect the limits; none where patterns stand for them.
    new_trees : int
        m.
    most_trees : int or None
        K; None is no limit.
    widest : int
        A rate that no single new tree exceeds, in units.
    """

    problem: TreeProblem
    old: Ints
    fresh: Ints
    new_trees: int
    most_trees: int | None
    widest: int = 0

    @property
    def trees(self) -> Ints:
        """The old trees, then the new ones."""
        return np.concatenate([self.old, self.fresh])


def posed(instance: Instance, height: Any, min_rate: Any = None, *, any_radius: bool = False) -> TreeProblem:
    """The problem of an instance and limits; with ``any_radius`` also of a height at which there is no tree.

    Raises
    ------
    Unsupported
        If no tree respects them.
    """
    problem = tree_problem(instance, height, min_rate, Budget(), any_radius=any_radius)
    if isinstance(problem, Outcome):
        raise Unsupported(problem.message)
    return problem


def allowed(problem: TreeProblem, trees: Ints) -> Ints:
    """Keep the trees that are low and fast enough."""
    trees = trees[bottlenecks(problem.wan, trees) >= problem.least]
    return trees if problem.any_height else low_enough(problem.wan, problem.limit, trees)


def all_trees(problem: TreeProblem) -> Ints:
    """List every spanning tree that is low and fast enough.

    Raises
    ------
    Unsupported
        If there are too many to list.
    """
    trees = every_tree(problem.wan)
    if trees is None:
        raise Unsupported("the network has more spanning trees than can be listed")
    return allowed(problem, trees)


def complete_pool(instance: Instance, options: SelectionOptions) -> PosedPool:
    """Every tree, for MILP (1) (``Formulation.index``)."""
    problem = posed(instance, options.height, options.min_rate)
    return PosedPool(problem, all_trees(problem), options.trees)


def stated_pool(instance: Instance, options: PoolOptions | MasterOptions) -> PosedPool:
    """Every tree, or those that random starts of algorithm 1 grow (``Formulation.index``)."""
    problem, most = posed(instance, options.height), getattr(options, "trees", None)
    if options.pool == "every":
        return PosedPool(problem, all_trees(problem), most)
    grown = many_starts(problem.wan, problem.limit, options.starts, problem.least, None, Budget()).trees
    trees = allowed(problem, grown)
    if not len(trees):
        raise Unsupported("no start of algorithm 1 has found a tree that is low enough")
    return PosedPool(problem, trees, most, complete=False)


def tree_count(instance: Instance, options: PatternOptions) -> TreeCount:
    """K, and what bounds the rate of each tree (``Formulation.index``)."""
    problem = posed(instance, options.height, options.min_rate)
    return TreeCount(problem, options.trees, _widest(problem))


def link_prices(instance: Instance, options: PricingOptions) -> LinkPrices:
    """Prices as they are given, by default 1 (``Formulation.index``).

    Where no tree is low enough the model has no solution; ``cwb solve --explain`` says why.

    Raises
    ------
    InputError
        If there is not one for every pair of sites that is joined.
    """
    problem = posed(instance, options.height, any_radius=True)
    prices = options.prices or [1.0] * len(problem.wan)
    if len(prices) != len(problem.wan):
        text = f"{len(prices)} prices for {len(problem.wan)} links between sites; expected one for each"
        raise InputError(text, source="-O", place="prices")
    return LinkPrices(problem, np.array(prices, dtype=np.float64))


def price_labels(index: LinkPrices) -> Mapping[str, Callable[[Any], str]]:
    """Names of sites and of links between them (``Formulation.labels``)."""
    wan, topology = index.problem.wan, index.problem.instance.topology
    ends = list(zip(wan.tail.tolist(), wan.head.tolist(), strict=True))
    return network_labels(topology, v=range(wan.nodes), e=ends)


def old_and_all(instance: Instance, options: RepairModelOptions) -> OldAndNew:
    """Old trees that are left, and all others if new ones are allowed (``Formulation.index``)."""
    problem, old = _old(instance, options, options.min_rate)
    known = {tuple(tree) for tree in old.tolist()}
    every = all_trees(problem) if options.new_trees else old[:0]
    fresh = every[[tuple(tree) not in known for tree in every.tolist()]]
    if not len(old) + len(fresh):
        raise Unsupported("none of the old trees can be used, and no new one is allowed")
    return OldAndNew(problem, old, fresh, options.new_trees, options.trees)


def old_and_patterns(instance: Instance, options: RepairPatternOptions) -> OldAndNew:
    """Old trees that are left, and a number of new ones (``Formulation.index``)."""
    problem, old = _old(instance, options, None)
    return OldAndNew(problem, old, old[:0], options.new_trees, options.trees, _widest(problem))


def _old(
    instance: Instance, options: RepairModelOptions | RepairPatternOptions, min_rate: Any
) -> tuple[TreeProblem, Ints]:
    """The problem, and the old trees that can be used."""
    if not options.previous:
        raise InputError(
            "missing; expected the trees of an older plan, as 'cwb repair' gives them", source="-O previous"
        )
    # Old trees are as high as they are.
    problem = posed(instance, options.height if options.new_trees else None, min_rate)
    old = survivors(problem.wan, options.previous).trees
    return problem, old[bottlenecks(problem.wan, old) >= problem.least]


def _widest(problem: TreeProblem) -> int:
    """Rate of the widest tree, in units."""
    found = widest_tree(problem.wan, problem.limit)
    if found is None:
        raise Unsupported("no tree is low enough")
    return found[0]


def is_bound(index: PosedPool | TreeCount | LinkPrices | OldAndNew) -> bool:
    """Whether what bounds the trees of a model bounds all trees that were asked (``Formulation.bounds``).

    Where links are faster in one direction the trees of the models do not see all of the network.
    """
    return index.problem.wan.balanced and getattr(index, "complete", True)
