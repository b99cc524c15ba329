"""Problem of MTree: the network, limits on trees, and index sets and parameters of the declared models.

Pools of trees, numbers of trees, prices of links, and trees of an older plan are index sets.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

from ...algorithms.trees.bounds import Ceiling, Strength, ceiling, strength
from ...algorithms.trees.gbst import every_tree, run_many_starts
from ...algorithms.trees.network import HeightLimit, Wan, to_wan
from ...algorithms.trees.trees import bottlenecks, low_enough, lowest_tree, widest_tree
from ...core.budget import Budget
from ...core.errors import InputError, Unsupported
from ...core.explanation import network_labels
from ...core.instance import Instance
from ...core.outcome import Outcome, Status
from ...core.schedule import Floats, Ints
from .method import MtreeOptions, RepairOptions
from .repair_input import pairs_of, survivors


@dataclass(frozen=True, eq=False)
class WanProblem:
    """All-reduce over a wide-area network."""

    instance: Instance
    wan: Wan
    ceiling: Ceiling  #: Upper bound on the rate of any schedule.

    @property
    def size_bytes(self) -> Fraction:
        """Size of the all-reduce in bytes."""
        return self.instance.demands[0].size_bytes

    def seconds(self, rate: Fraction) -> Fraction:
        """Return the time of the all-reduce at a rate in units."""
        return self.size_bytes / (rate * self.wan.unit_Bps)


@dataclass(frozen=True, eq=False)
class TreeProblem(WanProblem):
    """All-reduce over a wide-area network along trees of limited height and rate."""

    limit: HeightLimit  #: Largest height of a tree; where none is given, one that every tree keeps.
    floor: Fraction  #: Smallest rate of a tree, in units; 0 is no limit.
    strength: Strength  #: Upper bound on trees of any height that use both directions of their links alike.

    @property
    def any_height(self) -> bool:
        """True if every spanning tree keeps the height limit."""
        return self.limit.most >= self.limit.length.sum() or (
            self.limit.unit == "hops" and self.limit.most >= self.wan.nodes - 1
        )

    @property
    def height_limit(self) -> HeightLimit | None:
        """Height limit; None if every spanning tree keeps it."""
        return None if self.any_height else self.limit

    @property
    def min_capacity(self) -> int:
        """Smallest capacity of a link of a tree, in units; an integer, like all capacities."""
        return ceil(self.floor)


def wan_problem(instance: Instance, budget: Budget) -> WanProblem:
    """Read an instance, and compute the bound for any schedule on its network."""
    wan = to_wan(instance)
    with budget.clock.phase("strength"):
        return WanProblem(instance, wan, ceiling(instance.topology, wan))


def tree_problem(
    instance: Instance,
    height: int | Fraction | None,
    min_rate: Fraction | None,
    budget: Budget,
    *,
    allow_no_tree: bool = False,
    mandatory: Collection[tuple[int, int]] = (),
) -> TreeProblem | Outcome:
    """Read an instance and limits; the outcome says why no tree respects them.

    With ``allow_no_tree`` a height below that of every tree is accepted; ``mandatory`` is the argument of
    :func:`~cwb.algorithms.trees.network.to_wan`.
    """
    wan = to_wan(instance, mandatory)
    limit = wan.latencies(height) if isinstance(height, Fraction) else wan.hops(height)
    floor = Fraction(min_rate or 0) / wan.unit_Bps
    usable = wan.capacity >= ceil(floor)
    limit_text = "" if min_rate is None else f" of at least min_rate {float(min_rate) * 8e-6:.6g} Mb/s"
    if not usable.any():
        fastest = float(wan.capacity.max() * wan.unit_Bps) * 8e-6
        return Outcome(Status.INFEASIBLE, message=f"there is no link{limit_text}; the fastest has {fastest:.6g} Mb/s")
    radius, tree = lowest_tree(wan, limit, usable)
    if tree is None:
        return Outcome(Status.INFEASIBLE, message=f"the links{limit_text} do not join all sites")
    if radius > limit.most and not allow_no_tree:
        most = limit.format_height(limit.most)
        text = f"no spanning tree has a height of at most {most}{' over links' + limit_text if limit_text else ''}"
        return Outcome(
            Status.INFEASIBLE, message=f"{text}; the smallest feasible height is {limit.format_height(radius)}"
        )
    with budget.clock.phase("strength"):
        tree_bound = strength(wan)
        bound = ceiling(instance.topology, wan, tree_bound)
    problem = TreeProblem(instance, wan, bound, limit, floor, tree_bound)
    budget.tell_bound(problem.seconds(bound.rate), bound.certificate)
    return problem


@dataclass(frozen=True, eq=False)
class CandidateTrees:
    """Pool of trees to choose from."""

    wan: Wan
    trees: Ints  #: Shape (trees, sites - 1): links of every tree; those of an older plan come first.
    most_trees: int | None = None  #: K; None is no limit.
    floor: Fraction | int = 0  #: Smallest rate of a chosen tree, in units; at most the smallest capacity of every tree.
    old: int = 0  #: Number of trees of an older plan.
    new_trees: int | None = None  #: m, the largest number of other trees; None is no limit.


@dataclass(frozen=True, eq=False)
class PosedPool(CandidateTrees):
    """Pool of trees that respect the limits of an instance."""

    problem: TreeProblem = field(kw_only=True)
    complete: bool = True  #: True if the pool has all such trees.


@dataclass(frozen=True, eq=False)
class TreePatterns:
    """Number of arbitrary trees, and trees of an older plan beside them."""

    wan: Wan
    limit: HeightLimit | None  #: Height of the arbitrary trees; None is any.
    count: int  #: Number of arbitrary trees: K, or m beside old ones.
    widest: int  #: Upper bound on the rate of one arbitrary tree, in units.
    ceiling: float  #: Upper bound on the sum of all rates, in units.
    floor: Fraction | int = 0  #: Smallest rate of an arbitrary tree that is used, in units.
    old: Ints | None = None  #: Links of the old trees; None if there is no older plan.
    most_trees: int | None = None  #: K beside old trees; None is no limit.


@dataclass(frozen=True, eq=False)
class PosedPatterns(TreePatterns):
    """Number of arbitrary trees for an instance."""

    problem: TreeProblem = field(kw_only=True)


@dataclass(frozen=True, eq=False)
class LinkPrices:
    """Prices of links for the cheapest tree."""

    problem: TreeProblem
    price: Floats  #: Shape (links,): nonnegative price of every link.


def pose_trees(instance: Instance, height: Any, min_rate: Any = None, **limits: Any) -> TreeProblem:
    """Return the problem of an instance and limits; ``limits`` go to :func:`~.problem.tree_problem`."""
    problem = tree_problem(instance, height, min_rate, Budget(), **limits)
    if isinstance(problem, Outcome):
        raise Unsupported(problem.message)
    return problem


def filter_trees(problem: TreeProblem, trees: Ints) -> Ints:
    """Return the trees that respect height and rate limits."""
    trees = trees[bottlenecks(problem.wan, trees) >= problem.min_capacity]
    return trees if problem.any_height else low_enough(problem.wan, problem.limit, trees)


def all_trees(problem: TreeProblem) -> Ints:
    """List all spanning trees that respect height and rate limits, unless they are too many."""
    trees = every_tree(problem.wan)
    if trees is None:
        raise Unsupported("the network has too many spanning trees to enumerate")
    return filter_trees(problem, trees)


def complete_pool(instance: Instance, options: MtreeOptions) -> PosedPool:
    """Return all trees, for MILP (1) (``Formulation.index``)."""
    problem = pose_trees(instance, options.height, options.min_rate)
    return PosedPool(problem.wan, all_trees(problem), options.trees, problem.floor, problem=problem)


def stated_pool(instance: Instance, options: Any) -> PosedPool:
    """Return all trees, or those that random starts of algorithm 1 grow (``Formulation.index``)."""
    problem, most = pose_trees(instance, options.height), options.trees
    if options.pool == "every":
        return PosedPool(problem.wan, all_trees(problem), most, problem=problem)
    candidates = run_many_starts(problem.wan, problem.limit, options.starts, problem.min_capacity, None, Budget()).trees
    trees = filter_trees(problem, candidates)
    if not len(trees):
        raise Unsupported("no start of algorithm 1 found a tree within the height")
    return PosedPool(problem.wan, trees, most, problem=problem, complete=False)


def tree_count(instance: Instance, options: Any) -> PosedPatterns:
    """Return K and an upper bound on each tree's rate (``Formulation.index``)."""
    return _patterns(pose_trees(instance, options.height, options.min_rate), options.trees)


def link_prices(instance: Instance, options: Any) -> LinkPrices:
    """Return the given prices, by default 1 (``Formulation.index``).

    Where no tree is low enough the model has no solution; ``cwb solve --explain`` says why.
    """
    problem = pose_trees(instance, options.height, allow_no_tree=True)
    prices = options.prices or [1.0] * len(problem.wan)
    if len(prices) != len(problem.wan):
        text = f"{len(prices)} prices for {len(problem.wan)} links between sites; expected one for each"
        raise InputError(text, source="-O", place="prices")
    return LinkPrices(problem, np.array(prices, dtype=np.float64))


def price_labels(index: LinkPrices) -> Mapping[str, Callable[[Any], str]]:
    """Name sites and the links between them (``Formulation.labels``)."""
    wan, topology = index.problem.wan, index.problem.instance.topology
    ends = list(zip(wan.tail.tolist(), wan.head.tolist(), strict=True))
    return network_labels(topology, v=range(wan.nodes), e=ends)


def old_and_all(instance: Instance, options: RepairOptions) -> PosedPool:
    """Return surviving old trees, and all others if new ones are allowed (``Formulation.index``)."""
    problem, old = _old(instance, options)
    rows = {tuple(tree) for tree in old.tolist()}
    every = all_trees(problem) if options.new_trees else old[:0]
    fresh = every[[tuple(tree) not in rows for tree in every.tolist()]]
    if not len(old) + len(fresh):
        raise Unsupported("none of the old trees can be used, and no new one is allowed")
    trees, most = np.concatenate([old, fresh]), options.trees
    return PosedPool(problem.wan, trees, most, problem.floor, len(old), options.new_trees, problem=problem)


def old_and_patterns(instance: Instance, options: RepairOptions) -> PosedPatterns:
    """Return surviving old trees, and the number of new ones (``Formulation.index``)."""
    problem, old = _old(instance, options)
    return _patterns(problem, options.new_trees, old, options.trees)


def _old(instance: Instance, options: RepairOptions) -> tuple[TreeProblem, Ints]:
    if not options.previous:
        raise InputError("missing; expected the trees of an older plan, as set by 'cwb repair'", source="-O previous")
    # Old trees are as high as they are.
    pairs = pairs_of(instance.topology, options.previous)
    problem = pose_trees(instance, options.height if options.new_trees else None, options.min_rate, mandatory=pairs)
    old = survivors(problem.wan, options.previous).trees
    return problem, old[bottlenecks(problem.wan, old) >= problem.min_capacity]


def _patterns(
    problem: TreeProblem, count: int, old: Ints | None = None, most_trees: int | None = None
) -> PosedPatterns:
    widest = widest_tree(problem.wan, problem.limit)
    if widest is None:
        raise Unsupported("no tree is within the height")
    limit, ceiling = problem.height_limit, float(problem.strength.rate)
    return PosedPatterns(problem.wan, limit, count, widest[0], ceiling, problem.floor, old, most_trees, problem=problem)
