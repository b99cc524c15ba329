"""Upper bounds on the rate: the strength of the network for trees, the ceiling for any schedule.

Both are explained on the page docs/methods/mtree.md. Newton's method on partitions: for ``L = p / q`` a partition with
the least ``q b(delta P) - p (|P| - 1)`` gives the next L. Since ``b(delta P) = b(E) - sum_i b(E[S_i])`` over the parts
S_i, that is the least sum of ``f(S) = -p - q b(E[S])``, submodular on intersecting sets; the greedy algorithm of
Dilworth truncation finds it with one minimum cut per site.

The ceiling holds with links that are faster one way than the other: it is proved by a
:class:`~cwb.core.bounds.PartitionCertificate` or a :class:`~cwb.core.bounds.CutCertificate` of directed links.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor, gcd, lcm

import numpy as np

from ...core.bounds import CutCertificate, PartitionCertificate
from ...core.topology import Topology
from ...core.units import common_unit
from ..graphs.maxflow import max_flow
from ..graphs.network import Network, exact_array
from .network import Wan

#: Absolute determinants of 0/1 matrices of order 1 to 8 (Zivkovic, 2006; docs/schedules/bounds.md).
DETERMINANTS: tuple[Sequence[int], ...] = (
    *map(range, (2, 2, 3, 4, 6, 10)),
    (*range(19), 20, 24, 32),
    (*range(41), 42, 44, 45, 48, 56),
)


def common_link(wan: Wan, widest: int) -> int:
    """Bound the sum of the rates of two trees that share a link, in the unit of ``wan.room``."""
    return min(int(wan.room.max()), 2 * widest)


def vertex_rate(wan: Wan, trees: int, least: Fraction, bound: Fraction) -> Fraction:
    """Lower a bound on the sum of the rates of K trees to one that a vertex can have.

    All are in the unit of ``wan.room``; each tree has at least the rate ``least``. With more than eight trees the bound
    stays (docs/schedules/bounds.md).
    """
    if trees > len(DETERMINANTS):
        return bound
    values, rooms = DETERMINANTS[trees - 1], wan.room.tolist()
    unit = common_unit([Fraction(gcd(*rooms)), least])
    if least or min(rooms) < max(rooms):
        return max(floor(bound / unit * q) * unit / q for q in values[1:])
    more = max(Fraction(0), bound / unit - 1)  # a difference of the same form
    return min(bound, unit + max(Fraction(max(p for p in values if p <= more * q), q) for q in values[1:]) * unit)


def whole_rate(
    wan: Wan, trees: int, widest: int, least: Fraction, bound: Fraction, disjoint: Sequence[int] | None = None
) -> Fraction:
    """Tighten a bound on the sum of the rates of K trees by their vertices and by common links.

    All are in the unit of ``wan.room``: the largest rate of one tree, the smallest one, and the largest sums of at most
    k trees without a common link, k from 1 to K, by default k times ``widest`` (docs/schedules/bounds.md).
    """
    pair, most = common_link(wan, widest), trees * widest if disjoint is None else disjoint[-1]
    two_fewer, one_fewer = (trees - 2) * widest, 0
    if disjoint is not None:
        two_fewer = -pair
        for apart in disjoint[:-1]:
            two_fewer, one_fewer = one_fewer, max(pair + two_fewer, apart)
    bound, unit = vertex_rate(wan, trees, least, bound), gcd(*wan.room.tolist())
    shared = pair + two_fewer if trees > 1 else 0
    return min(bound, Fraction(max(shared, min(floor(bound / unit) * unit, most))))


@dataclass(frozen=True)
class Strength:
    """Strength of a network."""

    rate: Fraction  #: largest sum of rates, in units of capacity
    parts: tuple[tuple[int, ...], ...]  #: the partition that proves it
    steps: int  #: number of the partitions examined


def strength(wan: Wan) -> Strength:
    """Compute the strength of a connected network of at least two sites."""
    return strength_of(wan.nodes, *wan.bundles())


def strength_of(nodes: int, tail: Sequence[int], head: Sequence[int], capacity: Sequence[int]) -> Strength:
    """Compute the strength of links that join at least two sites."""
    best = [[site] for site in range(nodes)]
    rate, steps = ratio(best, tail, head, capacity), 1
    while True:
        parts = least_partition(nodes, tail, head, capacity, rate)
        steps += 1
        if len(parts) < 2 or (smaller := ratio(parts, tail, head, capacity)) >= rate:
            return Strength(rate, tuple(tuple(sorted(part)) for part in sorted(best)), steps)
        best, rate = parts, smaller


def ratio(
    parts: Sequence[Sequence[int]], tail: Sequence[int], head: Sequence[int], capacity: Sequence[int]
) -> Fraction:
    """Compute ``b(delta P) / (|P| - 1)`` of at least two parts."""
    part_of = {site: index for index, part in enumerate(parts) for site in part}
    crossing = sum(c for a, b, c in zip(tail, head, capacity, strict=True) if part_of[a] != part_of[b])
    return Fraction(crossing, len(parts) - 1)


def least_partition(
    nodes: int, tail: Sequence[int], head: Sequence[int], capacity: Sequence[int], rate: Fraction
) -> list[list[int]]:
    """Find a partition with the least ``b(delta P) - rate |P|``."""
    p, q = rate.numerator, rate.denominator
    links = list(zip(tail, head, (q * c for c in capacity), strict=True))
    x: list[int] = []
    blocks: list[set[int]] = []
    for site in range(nodes):
        inner = [link for link in links if link[0] <= site and link[1] <= site]
        side = _tight_set(site, inner, x)
        value = -p - sum(c for a, b, c in inner if a in side and b in side)
        x.append(value - sum(x[v] for v in side if v != site))
        for block in [block for block in blocks if block & side]:
            blocks.remove(block)
            side |= block
        blocks.append(side)
    return [sorted(block) for block in blocks]


def _tight_set(site: int, links: Sequence[tuple[int, int, int]], x: Sequence[int]) -> set[int]:
    """Find a set S of sites up to ``site``, which it contains, minimizing ``-b(E[S]) - x(S - site)``.

    Twice that is ``b(delta S) - sum_{v in S} (degree of v + 2 x_v)``, but for x of the site itself: a minimum cut.
    """
    weight = [2 * value for value in x] + [0]
    for a, b, c in links:
        weight[a] += c
        weight[b] += c
    source, sink = site + 1, site + 2
    arcs = [arc for a, b, c in links for arc in ((a, b, c), (b, a, c))]
    arcs += [(source, v, w) if w > 0 else (v, sink, -w) for v, w in enumerate(weight) if w and v != site]
    arcs.append((source, site, sum(c for *_, c in arcs) + 1))
    ends = np.array([(a, b) for a, b, _ in arcs], dtype=np.int64)
    graph = Network.from_parallel_edges(site + 3, ends[:, 0], ends[:, 1], exact_array(c for *_, c in arcs))
    return set(np.flatnonzero(max_flow(graph, source, sink).source_side[: site + 1]).tolist())


@dataclass(frozen=True)
class Ceiling:
    """Upper bound on the rate of any schedule."""

    rate: Fraction  #: rate in units of the trees' network
    certificate: PartitionCertificate | CutCertificate  #: proof by a partition or a cut


def ceiling(topology: Topology, wan: Wan, strongest: Strength | None = None) -> Ceiling:
    """Return the least rate bound of partitions and cuts, given the strength of ``wan``, if already known."""
    if wan.balanced:
        best = strongest or strength(wan)
        return Ceiling(best.rate, PartitionCertificate(best.parts))
    scale = lcm(*(link.bandwidth_Bps.denominator for link in topology.links))
    capacity = [int(link.bandwidth_Bps * scale) for link in topology.links]
    tail, head = ([ends[side] for ends in topology.link_ends] for side in (0, 1))
    whole = strength_of(wan.nodes, tail, head, capacity)
    graph = Network.from_parallel_edges(
        wan.nodes, np.array(tail, dtype=np.int64), np.array(head, dtype=np.int64), exact_array(capacity)
    )
    pairs = [pair for site in range(1, wan.nodes) for pair in ((0, site), (site, 0))]
    narrow = min((max_flow(graph, *pair) for pair in pairs), key=lambda flow: flow.value)
    unit = scale * wan.unit_Bps
    if narrow.value < whole.rate / 2:
        sites = np.flatnonzero(narrow.source_side).tolist()
        return Ceiling(narrow.value / unit, CutCertificate(tuple(sites)))
    return Ceiling(whole.rate / 2 / unit, PartitionCertificate(whole.parts))
