"""Exact weights of trees from the floating-point solution of a linear program."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import gcd, lcm

#: Common denominators beyond this are not taken: amounts of all trees together have to fit into 64 bits.
MOST = 2**52

#: Parts that are rounded to.
PARTS = 2**16


def exact_weights(
    uses: Sequence[Sequence[int]], root: Sequence[int], room: Sequence[Fraction], full: Sequence[int]
) -> list[Fraction] | None:
    """Solve for weights of trees that sum to 1 per root and fill the orbits ``full``; None if impossible.

    ``uses`` counts the uses of each orbit by each tree, ``root`` is the position of every tree's root, and ``room`` the
    largest total use of every orbit. Weights must be nonnegative and multiples of a part that is not too small.
    """
    rows = [[*(int(each == r) for each in root), 1] for r in sorted(set(root))]
    for o in full:
        most = room[o]
        rows.append([*(each[o] * most.denominator for each in uses), most.numerator])
    weight = _solve_equations(rows, len(root))
    if weight is None or min(weight) < 0:
        return None
    small = lcm(*(w.denominator for w in weight)) <= MOST
    return weight if small and _fits(weight, uses, room) else None


def _solve_equations(rows: list[list[int]], unknowns: int) -> list[Fraction] | None:
    """Solve linear equations of integers, with free unknowns 0; None if there is no solution."""
    lead: list[int] = []
    for column in range(unknowns):
        place = len(lead)
        found = next((i for i in range(place, len(rows)) if rows[i][column]), None)
        if found is None:
            continue
        rows[place], rows[found] = rows[found], rows[place]
        for i, row in enumerate(rows):
            if i != place and row[column]:
                rows[i] = _eliminate_column(row, rows[place], column)
        lead.append(column)
    if any(row[-1] for row in rows[len(lead) :]):
        return None
    solution = [Fraction(0)] * unknowns
    for row, column in zip(rows, lead, strict=False):
        solution[column] = Fraction(row[-1], row[column])
    return solution


def _eliminate_column(row: list[int], by: list[int], column: int) -> list[int]:
    """Eliminate a column of a row by another row, in lowest terms."""
    common = gcd(row[column], by[column])
    times, less = by[column] // common, row[column] // common
    found = [times * a - less * b for a, b in zip(row, by, strict=True)]
    common = gcd(*found)
    return [value // common for value in found] if common > 1 else found


def rounded_weights(
    uses: Sequence[Sequence[int]], root: Sequence[int], room: Sequence[Fraction], weight: Sequence[float]
) -> list[Fraction] | None:
    """Round weights, which sum to about 1 per root, to multiples of one part; None if they do not fit.

    The largest remainders are rounded up. Trees and orbits are those of :func:`exact_weights`.
    """
    found = [Fraction(0)] * len(root)
    for which in sorted(set(root)):
        trees = [j for j, each in enumerate(root) if each == which]
        counts = {j: int(weight[j] * PARTS) for j in trees}
        order = sorted(trees, key=lambda j: counts[j] - weight[j] * PARTS)
        for place in range(PARTS - sum(counts.values())):
            counts[order[place % len(order)]] += 1
        for j, count in counts.items():
            found[j] = Fraction(count, PARTS)
    return found if min(found) >= 0 and _fits(found, uses, room) else None


def _fits(weight: Sequence[Fraction], uses: Sequence[Sequence[int]], room: Sequence[Fraction]) -> bool:
    parts = lcm(*(w.denominator for w in weight))
    whole = [int(w * parts) for w in weight]
    return all(
        sum(w * each[o] for w, each in zip(whole, uses, strict=True)) <= most * parts for o, most in enumerate(room)
    )
