"""Share of an all-to-all of divisible data that is delivered in some epochs, with and without storage, proved exactly.

A linear program is solved in floating point. Its primal and dual answers are rounded to fractions, and are returned
only if both are feasible and equal in exact arithmetic.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

#: Largest denominator of a number that is rounded.
DENOMINATOR = 2520


@dataclass(frozen=True)
class Flow:
    """Ranks, and links as tail, head, epochs from start to arrival, and chunks in an epoch."""

    ranks: int
    links: tuple[tuple[int, int, int, Fraction], ...]


def share(flow: Flow, epochs: int, *, passing: bool) -> Fraction | None:
    """Return the largest equal share of all pairs' chunks that arrives within some epochs, None without a proof."""
    rows: dict[tuple[int, ...], dict[int, Fraction]] = defaultdict(dict)  # balances: equal to 0
    room: dict[tuple[int, int], dict[int, Fraction]] = defaultdict(dict)
    count = 1  # variable 0 is the share
    for source in range(flow.ranks):
        for target in range(flow.ranks):
            if source == target:
                continue
            for link, (tail, head, delay, _) in enumerate(flow.links):
                if head == source or tail == target:
                    continue
                for start in range(epochs - delay + 1):
                    leaves = 0 if tail == source else start
                    rows[source, target, tail, leaves][count] = Fraction(-1)
                    rows[source, target, head, epochs if head == target else start + delay][count] = Fraction(1)
                    room[link, start][count] = Fraction(1)
                    count += 1
            if not passing:
                for rank in set(range(flow.ranks)) - {source, target}:
                    for index in range(epochs):
                        rows[source, target, rank, index][count] = Fraction(-1)
                        rows[source, target, rank, index + 1][count] = Fraction(1)
                        count += 1
            rows[source, target, source, 0][0] = Fraction(1)
            rows[source, target, target, epochs][0] = Fraction(-1)
    limits = [flow.links[link][3] for link, _ in room]
    return _solve(count, list(rows.values()), list(room.values()), limits)


def _solve(
    count: int, equal: list[dict[int, Fraction]], below: list[dict[int, Fraction]], limits: list[Fraction]
) -> Fraction | None:
    """Maximize variable 0, and check primal and dual in fractions."""
    cost = np.zeros(count)
    cost[0] = -1.0
    found = linprog(
        cost,
        A_eq=_matrix(equal, count),
        b_eq=np.zeros(len(equal)),
        A_ub=_matrix(below, count),
        b_ub=np.array([float(each) for each in limits]),
        method="highs-ds",
    )
    values = [_round(each) for each in found.x]
    free = [_round(each) for each in -found.eqlin.marginals]
    prices = [_round(each) for each in -found.ineqlin.marginals]
    feasible = min(values) >= 0 and all(sum(a * values[i] for i, a in row.items()) == 0 for row in equal)
    feasible &= all(sum(a * values[i] for i, a in r.items()) <= most for r, most in zip(below, limits, strict=True))
    cover = [Fraction(0)] * count
    for row, price in [*zip(equal, free, strict=True), *zip(below, prices, strict=True)]:
        for i, a in row.items():
            cover[i] += a * price
    dual = min(prices) >= 0 and cover[0] >= 1 and min(cover[1:]) >= 0
    bound = sum((price * most for price, most in zip(prices, limits, strict=True)), Fraction(0))
    return values[0] if feasible and dual and bound == values[0] else None


def _round(number: float) -> Fraction:
    """Return the nearest fraction of a small denominator."""
    return Fraction(float(number)).limit_denominator(DENOMINATOR)


def _matrix(rows: list[dict[int, Fraction]], count: int) -> coo_array:
    """Put rows into a sparse matrix."""
    entries = [(i, j, float(a)) for i, row in enumerate(rows) for j, a in row.items()]
    at, column, value = zip(*entries, strict=True)
    return coo_array((value, (at, column)), shape=(len(rows), count))
