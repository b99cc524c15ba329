"""Theorem 19 as a formula: the best balance of the links into a node, exact, and an integer transport that attains it.

Shards that can come over links of a set W alone must share these, so that U is at least ``|{v: f(v) in W}| / |W|``; by the theorem of
maximum flow and minimum cut the largest of these quotients is attained. With all shards in P pieces, a load of ceil(P U) is
attained by whole pieces, since capacities and supplies of the transport are integers: program (13) has this optimum.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from .jobs import Problem, bits

#: Sets of links are all tried where there are at most this many links; beyond, only those that a minimum cut names.
MAX_LINKS = 8

#: Counters that are filled at once.
_TABLE = 2**22


def loads(problems: Sequence[Problem]) -> list[Fraction]:
    """Give the smallest load of the busiest link, U, of every problem, in shards."""
    small, large = _by_links(problems)
    found = [Fraction(0)] * len(problems)
    for links, places in small.items():
        table = loads_by_counts([problems[place] for place in places], links)
        for place, load in zip(places, table, strict=True):
            found[place] = load
    for place in large:
        found[place] = load_by_cuts(problems[place])
    return found


def largest_load(problems: Sequence[Problem]) -> Fraction:
    """Give the largest U of several problems, for which most of them need no more than a look at whether it is enough."""
    small, large = _by_links(problems)
    tables = (loads_by_counts([problems[place] for place in places], links) for links, places in small.items())
    best = max((max(table) for table in tables), default=Fraction(0))
    best = max([best, *(_at_least(problems[place]) for place in large)])
    for place in large:
        best = load_by_cuts(problems[place], best)
    return best


def _by_links(problems: Sequence[Problem]) -> tuple[dict[int, list[int]], list[int]]:
    """Sort problems with shards into those of few links, by their number, and those of many."""
    small: dict[int, list[int]] = {}
    large: list[int] = []
    for place, problem in enumerate(problems):
        links = max(problem.masks, default=0).bit_length()
        if links > MAX_LINKS:
            large.append(place)
        elif links:
            small.setdefault(links, []).append(place)
    return small, large


def loads_by_counts(problems: Sequence[Problem], links: int) -> list[Fraction]:
    """Try every set of links: count the shards of each subset of it by a subset-sum transform, and divide by its size.

    Parameters
    ----------
    problems : sequence of Problem
        With at least one shard each.
    links : int
        Number of links; the table has 2^links counters for every problem.
    """
    block = max(1, _TABLE >> links)
    if len(problems) > block:
        return loads_by_counts(problems[:block], links) + loads_by_counts(problems[block:], links)
    counts = np.zeros((len(problems), 1 << links), dtype=np.int64)
    row = np.repeat(np.arange(len(problems)), [len(problem.masks) for problem in problems])
    counts[row, [mask for problem in problems for mask in problem.masks]] = [
        count for problem in problems for count in problem.counts
    ]
    for i in range(links):
        halves = counts.reshape(len(problems), -1, 2, 1 << i)
        halves[:, :, 1] += halves[:, :, 0]
    sizes = np.array([mask.bit_count() for mask in range(1 << links)])
    above, below = np.zeros(len(problems), dtype=np.int64), np.ones(len(problems), dtype=np.int64)
    for size in range(1, links + 1):
        most = counts[:, sizes == size].max(axis=1)
        larger = most * below > above * size
        above, below = np.where(larger, most, above), np.where(larger, size, below)
    return [Fraction(a, b) for a, b in zip(above.tolist(), below.tolist(), strict=True)]


def load_by_cuts(problem: Problem, least: Fraction = Fraction(0)) -> Fraction:
    """Raise U from the quotient of one set of links to the next, that of a minimum cut, until all shards can be sent.

    Every cut that is too small names a set of links with a larger quotient, so that the last quotient is the largest: Newton's method
    on the value of the minimum cut, which takes no more rounds than there are links.

    Parameters
    ----------
    problem : Problem
        Shards and the links that they can come over.
    least : Fraction
        A smaller U does not matter: this is given instead.
    """
    load = max(_at_least(problem), least)
    while True:
        capacity, pieces = load.as_integer_ratio()
        stuck = transport(problem, pieces, capacity)[1]
        if stuck is None:
            return load
        within = (count for mask, count in zip(problem.masks, problem.counts, strict=True) if not mask & ~stuck)
        load = Fraction(sum(within), stuck.bit_count())


def _at_least(problem: Problem) -> Fraction:
    """Give the largest quotient of all links together and of each alone."""
    union, alone = 0, 0
    for mask, count in zip(problem.masks, problem.counts, strict=True):
        union |= mask
        if not mask & (mask - 1):
            alone = max(alone, count)
    return max(Fraction(sum(problem.counts), max(1, union.bit_count())), Fraction(alone))


def transport(problem: Problem, pieces: int, capacity: int) -> tuple[list[dict[int, int]], int | None]:
    """Send whole pieces over links that each carry so many at most.

    Parameters
    ----------
    problem : Problem
        Shards and the links that they can come over.
    pieces : int
        Pieces of a shard.
    capacity : int
        Pieces that a link carries at most.

    Returns
    -------
    list of dict
        For every class of shards, the pieces that come over each link.
    int or None
        None if all pieces are sent; else a set of links that is too small for the pieces that can come over them alone.
    """
    free = [capacity] * max(problem.masks, default=0).bit_length()
    over = [bits(mask) for mask in problem.masks]
    sent: list[dict[int, int]] = [{} for _ in problem.masks]
    on: list[set[int]] = [set() for _ in free]  # classes that use each link
    left = [count * pieces for count in problem.counts]
    for c in sorted(range(len(over)), key=lambda c: len(over[c])):
        for i in sorted(over[c], key=lambda i: -free[i]):
            if amount := min(free[i], left[c]):
                sent[c][i] = amount
                on[i].add(c)
                free[i] -= amount
                left[c] -= amount
    for c in range(len(over)):
        while left[c]:
            came = _search(c, over, on, free)
            end = next((i for i in came if free[i]), None)
            if end is None:
                return sent, sum(1 << i for i in came)
            _augment(c, end, came, left, sent, on, free)
    return sent, None


def _search(c: int, over: list[list[int]], on: list[set[int]], free: list[int]) -> dict[int, tuple[int, int]]:
    """Go over to other links with pieces of a class, or with those that make room for them, until one is not full.

    Returns
    -------
    dict of int to (int, int)
        For each link that is reached, the class whose pieces go over to it, and the link that these leave, or -1. Where no link is
        free, these are the links that are too small.
    """
    came: dict[int, tuple[int, int]] = dict.fromkeys(over[c], (c, -1))
    queue = list(over[c])
    seen: set[int] = set()
    for i in queue:
        if free[i]:
            break
        for k in sorted(on[i] - seen):
            seen.add(k)
            for other in over[k]:
                if other not in came:
                    came[other] = (k, i)
                    queue.append(other)
    return came


def _augment(
    c: int,
    end: int,
    came: dict[int, tuple[int, int]],
    left: list[int],
    sent: list[dict[int, int]],
    on: list[set[int]],
    free: list[int],
) -> None:
    """Send more of a class by moving pieces along the way to a link that is not full."""
    moves: list[tuple[int, int, int]] = []
    link = end
    while link >= 0:
        k, origin = came[link]
        moves.append((k, origin, link))
        link = origin
    amount = min(free[end], left[c], *(sent[k][origin] for k, origin, _ in moves if origin >= 0))
    for k, origin, link in moves:
        sent[k][link] = sent[k].get(link, 0) + amount
        on[link].add(k)
        if origin >= 0:
            sent[k][origin] -= amount
            if not sent[k][origin]:
                on[origin].discard(k)
    free[end] -= amount
    left[c] -= amount
