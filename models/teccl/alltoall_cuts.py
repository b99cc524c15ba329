"""A lower bound on the epochs of an all-to-all that needs no solver: what must leave a set of nodes.

For a set X of nodes and a makespan of K epochs, every unit that a rank in X owes to a rank outside crosses a link (i,
j) that leaves X. It does so in an epoch not before the distance from the nearest rank in X to i, and early enough to
reach a rank outside from j by K. So the links that leave X must have room, ``sum_e capacity_e * max(0, K - delay_e -
rest_e - release_e + 1)``, for all of it. Also, no unit arrives before the distance between its two ranks.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from .alltoall_problem import NEVER, Exchange


def diameter(exchange: Exchange) -> int:
    """Give the largest distance between two ranks, in epochs; :data:`NEVER` if one cannot be reached."""
    ways = exchange.network
    return int(ways.distance[:, list(exchange.ranks)].max())


def cut_epochs(exchange: Exchange, inside: frozenset[int]) -> int:
    """Give the fewest epochs that the links out of a set of nodes leave possible.

    Parameters
    ----------
    exchange : Exchange
        The problem.
    inside : frozenset of int
        Nodes.

    Returns
    -------
    int
        0 if nothing has to leave the set, :data:`NEVER` if nothing can.
    """
    within = [index for index, rank in enumerate(exchange.ranks) if rank in inside]
    outside = [rank for rank in exchange.ranks if rank not in inside]
    units = len(within) * len(outside)
    if not units:
        return 0
    distance = exchange.network.distance
    rest = _rest(exchange, outside)
    spans: list[tuple[int, Fraction]] = []
    for e, (i, j) in enumerate(zip(exchange.tails, exchange.heads, strict=True)):
        if i in inside and j not in inside:
            first = int(distance[within, i].min()) + exchange.delay[e] + rest[j]
            if first < NEVER:
                spans.append((first, exchange.capacity[e]))
    return _first_full(spans, units)


def _first_full(spans: list[tuple[int, Fraction]], units: int) -> int:
    """Give the smallest K with ``sum capacity * max(0, K - first + 1) >= units``."""
    room, rate, now = Fraction(0), Fraction(0), 0
    for first, capacity in sorted(spans):
        if rate and room + rate * (first - now) >= units:
            break
        room += rate * (first - now)
        now = first
        rate += capacity
    if not rate:
        return NEVER
    return now - 1 + -int(-(units - room) // rate)


def _rest(exchange: Exchange, targets: list[int]) -> list[int]:
    """Epochs from every node to the nearest target."""
    ways = exchange.network
    found = np.full(len(exchange.stores), NEVER, dtype=np.int64)
    found[targets] = 0
    while True:
        better = found.copy()
        np.minimum.at(better, ways.tails, found[ways.heads] + ways.delay)
        if (better == found).all():
            return [int(x) for x in np.minimum(found, NEVER)]
        found = better


def regions(exchange: Exchange) -> set[frozenset[int]]:
    """Give sets of nodes worth trying: single nodes, parts that only slow links join, and the complements of all of them."""
    everything = frozenset(range(len(exchange.stores)))
    found = {frozenset([rank]) for rank in exchange.ranks}
    edges = list(zip(exchange.tails, exchange.heads, exchange.capacity, exchange.delay, strict=True))
    for slow in sorted(set(exchange.capacity)):
        found |= _parts(len(everything), [(i, j) for i, j, c, _ in edges if c > slow])
    for far in sorted(set(exchange.delay)):
        found |= _parts(len(everything), [(i, j) for i, j, _, d in edges if d < far])
    switches = frozenset(n for n in everything if not exchange.stores[n])
    for part in list(found):
        found |= {part - switches, part | {j for i, j, *_ in edges if i in part and j in switches}}
    found |= {everything - part for part in found}
    return {part for part in found if part and part != everything}


def _parts(count: int, edges: Iterable[tuple[int, int]]) -> set[frozenset[int]]:
    parent = list(range(count))

    def root(x: int) -> int:
        while parent[x] != x:
            parent[x] = x = parent[parent[x]]
        return x

    for i, j in edges:
        parent[root(i)] = root(j)
    members: dict[int, set[int]] = {}
    for node in range(count):
        members.setdefault(root(node), set()).add(node)
    return {frozenset(part) for part in members.values()}


def best_cut(exchange: Exchange) -> tuple[int, frozenset[int] | None]:
    """Give the best lower bound of all regions and of the diameter (for which there is no set)."""
    best: tuple[int, frozenset[int] | None] = (diameter(exchange), None)
    for region in sorted(regions(exchange), key=sorted):
        if (epochs := cut_epochs(exchange, region)) > best[0]:
            best = (epochs, region)
    return best
