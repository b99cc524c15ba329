"""Exact optimal rate of trees, for any number or a given one, and exact bounds on an all-reduce.

The rate is that of ForestColl, sections 4.2 and 4.5, appendices C.1 and C.4. An all-reduce is bounded by the narrowest
cut, by parts that fast links join, and by partitions from duals of linear program (6), which are lengths of the links.
Where a partition limits the network, the links into its parts are long and those within have length 0: then the parts
are the strongly connected components of the short links. All thresholds are tried, and parts are joined where that
helps. The bounds are computed from the sets alone, so that wrong dual values cost sharpness only.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise
from math import gcd

import numpy as np

from ...algorithms.bounds.schedule_bounds import crossings, cut_bound, partition_bound
from ...algorithms.graphs.maxflow import RootedFlow, max_flow, smallest_step, worst_cut
from ...algorithms.graphs.network import Exact, Network, components
from ...core.bounds import CutCertificate, PartitionCertificate
from ...core.grouping import group_by_key
from ...core.instance import Instance
from ...core.schedule import Bools, Ints
from ...core.topology import Topology
from .problem import ForestProblem

_TRIED = 128  #: Numbers of trees below that of proposition 3 that are tried for one that is as good.


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
    return with_whole_shares(problem, cut.ratio, cut.side, cut.steps)


def with_whole_shares(problem: ForestProblem, ratio: Fraction, side: Bools, steps: int) -> Optimum:
    """Return a bottleneck with the fewest trees whose copies ``U b_e`` are whole on every link (proposition 3)."""
    copies = Fraction(ratio.numerator, gcd(ratio.denominator, *problem.kind_bandwidths))
    return Optimum(ratio, side, int(copies / ratio), copies, steps)


def nearest_optimum(problem: ForestProblem, ratio: float) -> Optimum | None:
    """Return the fraction near a solver's ``1 / x*`` at which flows exist to every rank; None if there is none.

    The ratio is that of a cut, ranks over bandwidth, so that its denominator is at most the sum of all bandwidths.
    """
    most, nobody = sum(problem.bandwidths), np.zeros(problem.nodes, dtype=np.bool_)
    for largest in (min(10**digits, most) for digits in range(1, len(str(most)) + 1)):
        near = Fraction(ratio).limit_denominator(largest)
        if near > 0 and abs(near - Fraction(ratio)) <= _SAME * ratio:
            best = with_whole_shares(problem, near, nobody, 0)
            flow = RootedFlow(problem.wires(best.copies).graph(), problem.roots * best.k, problem.sinks)
            if flow.violation() is None:
                return best
    return None


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
    come, go = graph.entering(), graph.leaving()
    nodes = np.flatnonzero((come != go) & ~problem.members)[:1].tolist()
    return next(((node, int(come[node]), int(go[node])) for node in nodes), None)


def fixed_k(problem: ForestProblem, best: Optimum, k: int) -> tuple[Fraction, Bools]:
    """Find the smallest U for k trees per root with ``floor(U b_e)`` on every link (algorithm 3).

    Return U, and the last cut that was violated below it, or the optimum's (docs/methods/forestcoll.md).
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
    links, kinds = np.flatnonzero(side[head] & ~side[tail]).tolist(), problem.topology.link_kinds
    return Counter(problem.kind_bandwidths[kinds[link]] for link in links)


def smallest_room(rates: Counter[int], copies: int) -> Fraction:
    """Return the smallest U at which ``sum floor(U b)`` over some links is at least ``copies``.

    The sum is constant between values at which a term grows; the first value at which it suffices is the answer.
    """
    U = Fraction(copies, sum(rate * count for rate, count in rates.items()))
    while sum(count * int(U * rate) for rate, count in rates.items()) < copies:
        U = min(Fraction(int(U * rate) + 1, rate) for rate in rates)
    return U


_BANDWIDTH_THRESHOLDS = 32  #: Distinct bandwidths at which the network is taken apart.

Bound = tuple[Fraction, CutCertificate | PartitionCertificate]

_SAME = 1e-6  #: Lengths that differ by less, relative to the longest, are the same one.
_DUAL_THRESHOLDS = 24  #: Thresholds that are tried, spread over all different lengths.


def best_all_reduce_bound(instance: Instance, sides: Sequence[Bools]) -> Bound:
    """Return the best bound of some cuts and partitions; each is exact whatever the parts are."""
    cuts = [np.flatnonzero(nodes).tolist() for side in sides for nodes in (side, ~side)]
    bounds: list[Bound] = [cut_bound(instance, cut) for cut in cuts]
    bounds += [partition_bound(instance, parts) for parts in linked_parts(instance.topology) if len(parts) > 1]
    return max(bounds, key=lambda bound: bound[0])


def linked_parts(topology: Topology) -> Iterator[list[list[int]]]:
    """Yield the components with ranks that links above some bandwidths join."""
    rates = sorted({link.bandwidth_Bps for link in topology.links})
    step = max(len(rates) // _BANDWIDTH_THRESHOLDS, 1)
    ends = np.array(topology.link_ends, dtype=np.int64).reshape(-1, 2)
    rank = {rate: index for index, rate in enumerate(rates)}
    speed = np.array([rank[link.bandwidth_Bps] for link in topology.links])
    computes = set(topology.rank_nodes)
    for threshold in range(0, len(rates) + step, step):
        parts = linked_nodes(len(topology.nodes), ends[speed >= threshold])
        yield [part for part in parts if not computes.isdisjoint(part)]


def linked_nodes(nodes: int, ends: Ints, *, strong: bool = False) -> list[list[int]]:
    """List the weakly, or strongly, connected components of links, given by their ends, by their first nodes."""
    parts = enumerate(components(nodes, *ends.T, strong=strong).tolist())
    return list(group_by_key((part, node) for node, part in parts).values())


def best_certificate(instance: Instance, network: ForestProblem, lengths: Mapping[int, float]) -> Bound:
    """Return the largest lower bound on an all-reduce's time that link lengths suggest, and its certificate.

    The lengths are dual values; missing links have length 0.
    """
    bounds: list[Bound] = [cut_bound(instance, narrowest_cut(network))]
    starts = [[frozenset({node}) for node in range(network.nodes)]]
    length = [lengths.get(e, 0.0) for e in range(len(network.topology.links))]
    for threshold in thresholds([max(0.0, each) for each in length]):
        starts.append(strong_components(network, [e for e, each in enumerate(length) if each <= threshold]))
    for start in starts:
        joined = join(network, start)
        for parts in (start, joined):
            bounds.append(partition_bound(instance, [p for p in parts if p & set(network.topology.rank_nodes)]))
    # Of equal ones a cut: it does not depend on what switches can do.
    return max(bounds, key=lambda one: (one[0], isinstance(one[1], CutCertificate)))


def narrowest_cut(network: ForestProblem) -> frozenset[int]:
    """Return the nodes, some but not all ranks, of least outgoing bandwidth, by maximum flows."""
    first, *others = network.rank_nodes
    pairs = [pair for other in others for pair in ((first, other), (other, first))]
    flow = min((max_flow(network.graph, a, b) for a, b in pairs), key=lambda flow: flow.value)
    return frozenset(np.flatnonzero(flow.source_side).tolist())


def thresholds(lengths: Sequence[float]) -> list[float]:
    """Return thresholds just above the lengths below each gap, thinned out to a limited number."""
    levels = sorted({0.0, *lengths})
    below = [low for low, high in pairwise(levels) if high - low > _SAME * levels[-1]] or [0.0]
    step = -(-len(below) // _DUAL_THRESHOLDS)
    # A little more than the level: equal lengths have not come out equal to the last digit.
    return [low + _SAME * levels[-1] / 2 for low in below[::step]]


def join(network: ForestProblem, parts: Sequence[frozenset[int]]) -> list[frozenset[int]]:
    """Join the two parts with the largest joint bound while it grows; sets without ranks are dropped."""
    ranks, groups = frozenset(network.rank_nodes), list(parts)
    best = _sharpness(network, groups, ranks)
    while len(groups) > 2:
        merges = [[*(group for group in groups if group not in (a, b)), a | b] for a, b in combinations(groups, 2)]
        scores = [_sharpness(network, one, ranks) for one in merges]
        if max(scores) <= best:
            break
        best = max(scores)
        groups = merges[scores.index(best)]
    return groups


def _sharpness(network: ForestProblem, groups: Sequence[frozenset[int]], ranks: frozenset[int]) -> Fraction:
    """Return the ratio of data to bandwidth of the parts, see :class:`PartitionCertificate`."""
    of = {node: index for index, group in enumerate(groups) for node in group}
    parts = {index for index, group in enumerate(groups) if group & ranks}
    if len(parts) < 2:
        return Fraction(0)
    outside = [node for index, node in enumerate(network.topology.nodes) if of[index] not in parts]
    ends = list(zip(network.tail, network.head, network.bandwidths, strict=True))
    entering = sum(c for a, b, c in ends if of[b] in parts and of[a] != of[b])
    leaving = sum(c for a, b, c in ends if of[a] in parts and of[a] != of[b])
    return max(
        Fraction(crossings(len(parts), merged=any(node.may_add for node in outside)), entering),
        Fraction(crossings(len(parts), merged=any(node.copies for node in outside)), leaving),
    )


def strong_components(network: ForestProblem, links: Sequence[int]) -> list[frozenset[int]]:
    """Return the strongly connected components of some links."""
    ends = np.array(network.topology.link_ends, dtype=np.int64).reshape(-1, 2)[list(links)]
    return list(map(frozenset, linked_nodes(network.nodes, ends, strong=True)))
