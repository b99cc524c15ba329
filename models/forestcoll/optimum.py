"""How fast trees can be, exactly.

For any number of them, and for a given number (ForestColl, sections 4.2 and 4.5, appendices C.1 and C.4).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from math import gcd

from ...algorithms.graphs.maxflow import RootedFlow, smallest_step, worst_cut
from ...algorithms.graphs.network import Exact, Network
from ...core.schedule import Bools
from .problem import ForestProblem

#: Numbers of trees below that of proposition 3 that are tried for one that is as good.
_TRIED = 128


@dataclass(frozen=True, eq=False)
class Optimum:
    """The bottleneck of a network.

    Parameters
    ----------
    ratio : Fraction
        ``1 / x*`` in units of bandwidth: seconds times unit that a byte at every root needs.
    side : array of bool, shape (nodes,)
        The nodes that the bottleneck leads into; all others are the cut S*.
    k, copies : int, Fraction
        Trees from every root, and U: copies of trees that a link may carry for each unit of its bandwidth (proposition
        3).
    steps : int
        Newton steps that it took.
    """

    ratio: Fraction
    side: Bools
    k: int
    copies: Fraction
    steps: int


def optimum(problem: ForestProblem) -> Optimum:
    """Find the bottleneck cut, and the number of trees with which every ``U b_e`` is whole.

    Raises
    ------
    Unreachable
        If data cannot reach some rank.
    """
    cut = worst_cut(problem.graph, problem.roots, problem.sinks)
    if cut.side is None:
        raise AssertionError("at least two ranks, so there is a cut")
    ratio = cut.ratio
    copies = Fraction(ratio.numerator, gcd(ratio.denominator, *problem.bandwidths))
    return Optimum(ratio, cut.side, int(copies / ratio), copies, cut.steps)


def smallest_k(problem: ForestProblem, best: Optimum) -> int:
    """The smallest number of trees found that is as fast as the optimum.

    Bandwidth that is left over may be rounded off.

    Proposition 3 asks that every ``U b_e`` be whole; with ``floor(U b_e)`` fewer trees may do. All numbers up to 128
    are tried; those are left out whose trees do not fit through the bottleneck, and those with which a switch would have
    more coming in than going out.
    """
    rates, outside = entering(problem, best.side), int(problem.roots[~best.side].sum())
    for k in range(1, min(best.k, _TRIED + 1)):
        if sum(count * int(k * best.ratio * rate) for rate, count in rates.items()) < k * outside:
            continue
        graph = problem.wires(k * best.ratio).graph()
        demand: Exact = problem.roots * k
        if unbalanced(problem, graph) is None and RootedFlow(graph, demand, problem.sinks).violation() is None:
            return k
    return best.k


def unbalanced(problem: ForestProblem, graph: Network) -> tuple[int, int, int] | None:
    """Find a node that only passes on, but has not the same capacity in and out; gives it with both sums."""
    sums = zip(graph.entering().tolist(), graph.leaving().tolist(), problem.members.tolist(), strict=True)
    return next((((node, come, go)) for node, (come, go, ends) in enumerate(sums) if come != go and not ends), None)


def fixed_k(problem: ForestProblem, best: Optimum, k: int) -> tuple[Fraction, Bools]:
    """Find the smallest U with which k trees from every root exist where a link carries ``floor(U b_e)`` (algorithm 3).

    Newton's method on violated cuts: each is served at a U that is computed exactly from its links.

    Returns
    -------
    tuple
        U, and the last cut that was violated below it, or the optimum's.
    """

    def graph(copies: Fraction) -> Network:
        return problem.wires(copies).graph()

    def needed(side: Bools) -> Fraction:
        return smallest_room(entering(problem, side), k * int(problem.roots[~side].sum()))

    copies, side = smallest_step(graph, needed, problem.roots * k, problem.sinks, k * best.ratio)
    return copies, best.side if side is None else side


def entering(problem: ForestProblem, side: Bools) -> Counter[int]:
    """Bandwidths of the links into a set of nodes, and how many have each."""
    tail, head = problem.ends
    return Counter(problem.bandwidths[link] for link in (side[head] & ~side[tail]).nonzero()[0].tolist())


def smallest_room(rates: Counter[int], copies: int) -> Fraction:
    """The smallest U at which ``sum floor(U b)`` over some links is at least a number of copies.

    Between two values at which one of the terms grows the sum stays as it is: the first at which it suffices is the
    answer.
    """
    U = Fraction(copies, sum(rate * count for rate, count in rates.items()))
    while sum(count * int(U * rate) for rate, count in rates.items()) < copies:
        U = min(Fraction(int(U * rate) + 1, rate) for rate in rates)
    return U
