"""The exact optimal rate of trees, for any number and for a given number of them.

ForestColl, sections 4.2 and 4.5, appendices C.1 and C.4.
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
    """Bottleneck of a network, with the number of trees of proposition 3."""

    ratio: Fraction  #: ``1 / x*`` in units of bandwidth: seconds times unit per byte at every root.
    side: Bools  #: The nodes that the bottleneck leads into; all others are the cut S*.
    k: int  #: Trees from every root.
    copies: Fraction  #: U: copies of trees that a link may carry for each unit of its bandwidth.
    steps: int


def optimum(problem: ForestProblem) -> Optimum:
    """Find the bottleneck cut, and the number of trees with which every ``U b_e`` is an integer."""
    cut = worst_cut(problem.graph, problem.roots, problem.sinks)
    if cut.side is None:
        raise AssertionError("at least two ranks, so there is a cut")
    ratio = cut.ratio
    copies = Fraction(ratio.numerator, gcd(ratio.denominator, *problem.bandwidths))
    return Optimum(ratio, cut.side, int(copies / ratio), copies, cut.steps)


def smallest_k(problem: ForestProblem, best: Optimum) -> int:
    """Return the smallest number of trees found to be as fast as the optimum.

    Proposition 3 requires integral ``U b_e``; with ``floor(U b_e)``, which rounds off spare bandwidth, fewer trees may
    do. All numbers up to 128 are tried but those whose trees do not fit through the bottleneck, and those with which a
    switch would have more capacity in than out.
    """
    rates, outside = entering(problem, best.side), int(problem.roots[~best.side].sum())
    for k in range(1, min(best.k, _TRIED + 1)):
        if sum(count * int(k * best.ratio * rate) for rate, count in rates.items()) < k * outside:
            continue
        graph = problem.wires(k * best.ratio).graph()
        demand: Exact = problem.roots * k
        if find_unbalanced(problem, graph) is None and RootedFlow(graph, demand, problem.sinks).violation() is None:
            return k
    return best.k


def find_unbalanced(problem: ForestProblem, graph: Network) -> tuple[int, int, int] | None:
    """Return a forwarding node whose capacities in and out differ, with both sums; else None."""
    sums = zip(graph.entering().tolist(), graph.leaving().tolist(), problem.members.tolist(), strict=True)
    return next((((node, come, go)) for node, (come, go, ends) in enumerate(sums) if come != go and not ends), None)


def fixed_k(problem: ForestProblem, best: Optimum, k: int) -> tuple[Fraction, Bools]:
    """Find the smallest U for k trees per root with ``floor(U b_e)`` on every link (algorithm 3).

    Newton's method on violated cuts: for each, the U that satisfies it is computed exactly from its links. Return U,
    and the last cut that was violated below it, or the optimum's.
    """

    def graph(copies: Fraction) -> Network:
        return problem.wires(copies).graph()

    def least_copies(side: Bools) -> Fraction:
        return smallest_room(entering(problem, side), k * int(problem.roots[~side].sum()))

    copies, side = smallest_step(graph, least_copies, problem.roots * k, problem.sinks, k * best.ratio)
    return copies, best.side if side is None else side


def entering(problem: ForestProblem, side: Bools) -> Counter[int]:
    """Count the links into a set of nodes by bandwidth."""
    tail, head = problem.ends
    return Counter(problem.bandwidths[link] for link in (side[head] & ~side[tail]).nonzero()[0].tolist())


def smallest_room(rates: Counter[int], copies: int) -> Fraction:
    """Return the smallest U at which ``sum floor(U b)`` over some links is at least ``copies``.

    The sum is constant between values at which a term grows; the first value at which it suffices is the answer.
    """
    U = Fraction(copies, sum(rate * count for rate, count in rates.items()))
    while sum(count * int(U * rate) for rate, count in rates.items()) < copies:
        U = min(Fraction(int(U * rate) + 1, rate) for rate in rates)
    return U
