"""The strength of a network: the largest sum of rates of any spanning trees, exactly, with the partition that proves it.

By Tutte and Nash-Williams it is ``min_P b(delta P) / (|P| - 1)`` over all partitions P of the sites, where ``b(delta P)`` is the capacity of the
links between different parts. Where both directions of every link are the same, no schedule at all is faster; what none exceeds elsewhere is
told by :mod:`.ceiling`.

Newton's method on partitions: for ``L = p / q`` a partition with the least ``q b(delta P) - p (|P| - 1)`` is sought, and gives the next L. Since
``b(delta P) = b(E) - sum_i b(E[S_i])`` over the parts S_i, that is the least sum of ``f(S) = -p - q b(E[S])``, submodular on sets that intersect;
the greedy algorithm of Dilworth truncation finds it with one minimum cut for every site.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ..digraph import Digraph, exact_array
from ..maxflow import max_flow
from .network import Wan


@dataclass(frozen=True)
class Strength:
    """The strength of a network.

    Parameters
    ----------
    rate : Fraction
        Largest sum of rates, in units of capacity.
    parts : tuple of tuple of int
        The partition that proves it.
    steps : int
        Partitions that were looked at.
    """

    rate: Fraction
    parts: tuple[tuple[int, ...], ...]
    steps: int


def strength(wan: Wan) -> Strength:
    """Compute the strength of a connected network of at least two sites."""
    return strength_of(wan.nodes, wan.tail.tolist(), wan.head.tolist(), wan.capacity.tolist())


def strength_of(nodes: int, tail: Sequence[int], head: Sequence[int], capacity: Sequence[int]) -> Strength:
    """Compute the strength of links that join at least two sites."""
    best = [[site] for site in range(nodes)]
    rate, steps = ratio(best, tail, head, capacity), 1
    while True:
        parts = least_partition(nodes, tail, head, capacity, rate)
        steps += 1
        if len(parts) < 2 or (found := ratio(parts, tail, head, capacity)) >= rate:
            return Strength(rate, tuple(tuple(sorted(part)) for part in sorted(best)), steps)
        best, rate = parts, found


def ratio(
    parts: Sequence[Sequence[int]], tail: Sequence[int], head: Sequence[int], capacity: Sequence[int]
) -> Fraction:
    """Give ``b(delta P) / (|P| - 1)`` of at least two parts."""
    part_of = {site: index for index, part in enumerate(parts) for site in part}
    crossing = sum(c for a, b, c in zip(tail, head, capacity, strict=True) if part_of[a] != part_of[b])
    return Fraction(crossing, len(parts) - 1)


def least_partition(
    nodes: int, tail: Sequence[int], head: Sequence[int], capacity: Sequence[int], rate: Fraction
) -> list[list[int]]:
    """Give a partition with the least ``b(delta P) - rate |P|``."""
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
    """Give a set S with the site, of sites up to it, that has the least ``-b(E[S]) - x(S - site)``: the source's side of a minimum cut.

    Twice that is ``b(delta S) - sum_{v in S} (degree of v + 2 x_v)``, but for x of the site itself.
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
    graph = Digraph.merged(site + 3, ends[:, 0], ends[:, 1], exact_array(c for *_, c in arcs))
    return set(np.flatnonzero(max_flow(graph, source, sink).source_side[: site + 1]).tolist())
