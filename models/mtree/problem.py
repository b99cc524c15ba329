"""Problem of MTree, and proved bounds with their certificate and scope: any schedule, or the allowed trees.

The verifier recomputes two kinds: cuts and partitions of the network of sites (:mod:`cwb.algorithms.trees.bounds`),
which bound any schedule, and prices of links (:class:`~cwb.core.bounds.TreePrices`), which bound trees. All other
bounds are trusted as stated by a solver or the method.

The network of sites has the capacity of the slower direction of every link. So bounds on trees are claimed only if both
directions of every link are equal; otherwise only the first kind is.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from operator import itemgetter
from typing import Any

from ...algorithms.trees.bounds import Ceiling, Strength, ceiling, strength, whole_rate
from ...algorithms.trees.disjoint import DisjointRates
from ...algorithms.trees.network import HeightLimit, Wan, to_wan
from ...algorithms.trees.one_tree import lowest_tree, widest_tree
from ...algorithms.trees.pricing import Arborescences, Prices, cheapest_trees
from ...algorithms.trees.trees import RatedTrees
from ...core.bounds import Certificate, SolverBound, TreePrices
from ...core.budget import Budget
from ...core.instance import Instance
from ...core.outcome import Outcome, Status
from ...core.solver import SolverResult

#: Prover of bounds that are computed here in exact arithmetic, and that the verifier does not recompute.
EXACT_ARITHMETIC = ("mtree", "exact arithmetic")

GAP = 1e-6  #: Relative gap at which an answer is called optimal, unless the budget says otherwise.
ANY_SCHEDULE = "any schedule"  #: Scope of a bound by a cut or a partition.


@dataclass(frozen=True, eq=False)
class WanProblem:
    """All-reduce over a wide-area network."""

    instance: Instance
    wan: Wan
    ceiling: Ceiling  #: Upper bound on the rate of any schedule.

    @property
    def size_bytes(self) -> Fraction:
        """Size of the all-reduce in bytes."""
        return self.instance.demand.size_bytes if self.instance.demand is not None else Fraction(0)

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
    kept: Collection[tuple[int, int]] = (),
) -> TreeProblem | Outcome:
    """Read an instance and limits; the outcome says why no tree respects them.

    With ``allow_no_tree`` a height below that of every tree is accepted; ``kept`` is the argument of
    :func:`~cwb.algorithms.trees.network.to_wan`.
    """
    wan = to_wan(instance, kept)
    limit = wan.latencies(height) if isinstance(height, Fraction) else wan.hops(height)
    floor = Fraction(min_rate or 0) / wan.unit_Bps
    usable = wan.capacity >= ceil(floor)
    shown = "" if min_rate is None else f" of at least min_rate {float(min_rate) * 8e-6:.6g} Mb/s"
    if not usable.any():
        fastest = float(wan.capacity.max() * wan.unit_Bps) * 8e-6
        return Outcome(Status.INFEASIBLE, message=f"there is no link{shown}; the fastest has {fastest:.6g} Mb/s")
    radius, tree = lowest_tree(wan, limit, usable)
    if tree is None:
        return Outcome(Status.INFEASIBLE, message=f"the links{shown} do not join all sites")
    if radius > limit.most and not allow_no_tree:
        asked = limit.format_height(limit.most)
        text = f"no spanning tree has a height of at most {asked}{' over links' + shown if shown else ''}"
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
class SearchResult:
    """Result of a search: the best trees, and bounds on all allowed trees."""

    rated: RatedTrees | None
    #: Upper bound in units on the summed rate of allowed trees that use both directions of their links alike; at most
    #: the strength.
    bound: Fraction
    prover: tuple[str, str]  #: Name and version of what proves a bound below the strength.
    reports: tuple[SolverResult, ...] = ()
    rounds: int = 0
    metrics: dict[str, Any] | None = None
    trees: int | None = None  #: K, the largest number of trees; None is no limit.
    prices: tuple[Prices, ...] = ()  #: Candidate prices for a proof of the bound.
    disjoint: DisjointRates | None = None  #: Rates of K trees without a common link, if computed.
    scope: str = ""  #: Trees for which the bound holds; by default those of the given number, height and rate.


Proof = tuple[
    Fraction, Certificate, str
]  #: Bound on the rate in units, its certificate, and the schedules it holds for.


def proof_of(problem: TreeProblem, found: SearchResult, *, trees_only: bool) -> Proof:
    """Choose the bound to claim: for any schedule if as sharp, else one that is recomputed, else a trusted one.

    A bound on the allowed trees is claimed only if the answer is restricted to them (``trees_only``).
    """
    best: Proof = problem.ceiling.rate, problem.ceiling.certificate, ANY_SCHEDULE
    if not trees_only or not problem.wan.balanced or found.bound >= best[0] * (1 - Fraction(GAP) / 10):
        return best
    recomputed = [proof for prices in found.prices if (proof := _bound_by_prices(problem, found, prices)) is not None]
    sharpest = min(recomputed, key=itemgetter(0), default=best)
    if sharpest[0] * (1 - Fraction(GAP) / 10) <= found.bound:
        return sharpest
    scope = f"{_describe_scope(problem, found)}, each with the same links both ways"
    return found.bound, SolverBound(*found.prover), scope


def _bound_by_prices(problem: TreeProblem, found: SearchResult, prices: Prices) -> Proof | None:
    """Return the bound on allowed trees that link prices prove; None if they prove none."""
    wan, limit = problem.wan, problem.height_limit
    links = problem.instance.topology.links
    if (
        limit is not None
        and limit.unit == "ns"
        and any(
            links[a].latency_s != links[b].latency_s for a, b in zip(wan.forth.tolist(), wan.back.tolist(), strict=True)
        )
    ):
        return None  # heights count the slower direction of a link here, but each direction for the verifier
    if limit is None:
        cheapest = min(tree.cost for tree in cheapest_trees(wan, prices, problem.min_capacity))
    else:
        cheapest = Arborescences(wan, limit, problem.min_capacity).least(prices)
    rate = prices.bound_with_floor(found.trees, problem.floor, cheapest)
    if rate is None:
        return None
    widest = widest_tree(wan, problem.limit)
    link_sets: tuple[tuple[int, ...], ...] = ()
    if found.trees is not None and widest is not None:
        proved, rate = rate, whole_rate(wan, found.trees, widest[0], rate)  # sharper, since capacities are integers
        if found.disjoint is not None:
            disjoint_rate = whole_rate(wan, found.trees, widest[0], proved, found.disjoint.most)
            if disjoint_rate < rate:
                rate = disjoint_rate
                link_sets = tuple(
                    tuple(sorted([*wan.forth[links].tolist(), *wan.back[links].tolist()]))
                    for links in found.disjoint.proof(disjoint_rate)
                )
    price_of = [0] * len(links)  # both directions of a link have its price
    for price, *pair in zip(prices.link.tolist(), wan.forth.tolist(), wan.back.tolist(), strict=True):
        for link in pair:
            price_of[link] = price
    certificate = TreePrices(
        tuple(price_of),
        2 * prices.tree * wan.unit_Bps,
        found.trees,
        None if limit is None else limit.most,
        "ns" if limit is not None and limit.unit == "ns" else "links",
        problem.floor * wan.unit_Bps,
        link_sets,
    )
    return rate, certificate, _describe_scope(problem, found)


def _describe_scope(problem: TreeProblem, found: SearchResult) -> str:
    """Describe the trees for which a bound holds."""
    if found.scope:
        return found.scope
    text = "trees" if found.trees is None else f"at most {found.trees} tree{'s' if found.trees > 1 else ''}"
    if not problem.any_height:
        text += f" of a height of at most {problem.limit.format_height(problem.limit.most)}"
    if problem.floor:
        text += f" with rates of at least {float(problem.floor * problem.wan.unit_Bps) * 8e-6:.6g} Mb/s"
    return text
