"""Linear program over trees and orbits, grown by columns and re-solved from its last basis.

A column is a tree of one of the roots; its variable is the weight of the tree. The weights of every root's trees
add up to 1. A row for each orbit of links limits its use to its capacity (``room``), exceeded by at most one variable
that all orbits share, the shortage. The objective minimizes the shortage first, then the sum of the cubes of heights.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm
from typing import Any

import numpy as np

from ...core.errors import CwbError
from ...core.schedule import Bools, Floats, Ints
from ...core.stdout import silent_highs

_TOO_MUCH = 100.0  #: cost of a shortage of 1, twice the capacity, in largest cubes of heights

EXACT = 1e-9  #: tolerance of floating-point linear programs
_COLUMNS = 64  #: columns of the program, for each of its rows
_PRIMAL = 4  #: primal simplex, which continues from the last basis after columns were added


@dataclass(frozen=True, eq=False)
class Column:
    """Column of a tree, with the arguments to grow it again."""

    root: int
    uses: Ints  #: (orbits,) number of uses of every orbit's links
    height: int
    price: Floats  #: (orbits,) prices at which it was grown
    rise: float  #: price of one level of depth
    limit: int  #: largest height that was allowed


@dataclass(frozen=True, eq=False)
class Solution:
    """Optimum of the program over its current columns."""

    columns: tuple[Column, ...]  #: columns with a positive weight, and these weights
    weight: Floats
    lacking: float  #: shortage of capacity, common to all orbits
    price: Floats  #: (orbits,) and (roots,) dual values of the capacities and of the roots' sums of weights
    worth: Floats
    value: float  #: objective: the cost of the shortage plus that of heights
    full: Bools  #: (orbits,) True for orbits whose capacity is used up

    @property
    def fits(self) -> bool:
        """True if no room is lacking."""
        return self.lacking <= EXACT


class OrbitProgram:
    """Linear program that grows by columns.

    ``room`` is the capacity of every orbit: the most uses of its links by trees of total weight 1 from each of the
    roots. ``dearest`` bounds the cube of a tree's height. With ``spare``, there must be no shortage, and up to this
    part of every room is left free, before heights count.
    """

    def __init__(self, room: Floats, roots: int, dearest: float, columns: Sequence[Column], spare: float = 0.0) -> None:
        self.room, self.roots, self.lack, self.spare = room, roots, _TOO_MUCH * dearest, spare
        self.columns, self.solved, self._loaded = list(columns), 0, 0
        self._highs: Any = None
        self._first = 0  # the first column of a tree

    def solve(self) -> Solution:
        """Solve the program with the columns that were added since the last time."""
        if self._highs is None:
            self._begin()
        self._load(self.columns[self._loaded :])
        self.solved += 1
        return self._solution()

    def forget(self, solution: Solution) -> None:
        """Drop unused columns with the largest reduced costs if there are too many columns."""
        most = _COLUMNS * (len(self.room) + self.roots)
        if len(self.columns) <= most:
            return
        uses, root = np.array([column.uses for column in self.columns]), [column.root for column in self.columns]
        beyond = self._cost(self.columns) + uses @ solution.price - solution.worth[root]
        columns = set(map(id, solution.columns))
        beyond[[id(column) in columns for column in self.columns]] = -np.inf
        best = np.sort(np.argsort(beyond, kind="stable")[: most // 2])
        self.columns = [self.columns[j] for j in best.tolist()]
        self._highs = None

    def _begin(self) -> None:
        """Create the program with its rows and the column of the shortage, or those of the parts to leave free."""
        import highspy

        self._highs, self._loaded = silent_highs(), 0
        for option, value in {"threads": 1, "presolve": "off", "simplex_strategy": _PRIMAL}.items():
            self._highs.setOptionValue(option, value)
        spare, orbits, rows = self.spare, len(self.room), len(self.room) + self.roots
        lower = np.append(np.full(orbits, -highspy.kHighsInf), np.ones(self.roots))
        none, empty = np.zeros(rows, dtype=np.int32), np.zeros(0)
        self._highs.addRows(rows, lower, np.ones(rows), 0, none, none[:0], empty)
        every = np.arange(orbits, dtype=np.int32)
        self._highs.addCol(self.lack, 0.0, 0.0 if spare else highspy.kHighsInf, orbits, every, -np.ones(orbits))
        for orbit in every[: orbits if spare else 0]:
            self._highs.addCol(-self.lack / spare, 0.0, spare, 1, every[orbit : orbit + 1], np.ones(1))
        self._first = self._highs.getNumCol()

    def _load(self, columns: Sequence[Column]) -> None:
        if not columns:
            return
        import highspy

        count = len(columns)
        whole = np.zeros((count, self.roots))
        whole[np.arange(count), [column.root for column in columns]] = 1.0
        entry = np.hstack([np.array([column.uses for column in columns]) / self.room, whole])
        column, row = np.nonzero(entry)
        start = np.searchsorted(column, np.arange(count)).astype(np.int32)
        most = np.full(count, highspy.kHighsInf)
        entries = entry[column, row]
        self._highs.addCols(
            count, self._cost(columns), np.zeros(count), most, len(row), start, row.astype(np.int32), entries
        )
        self._loaded += count

    def _solution(self) -> Solution:
        import highspy

        highs = self._highs
        if highs.run() != highspy.HighsStatus.kOk:  # after a use of HiGHS with another number of threads
            highspy.Highs.resetGlobalScheduler(True)
            highs.run()
        if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            raise CwbError(
                f"HiGHS could not solve a program of trees: {highs.modelStatusToString(highs.getModelStatus())}"
            )
        values, orbits = highs.getSolution(), len(self.room)
        lacking, weight = values.col_value[0], np.array(values.col_value[self._first :])
        dual, load = np.array(values.row_dual), np.array(values.row_value[:orbits])
        positive = np.flatnonzero(weight > EXACT)
        return Solution(
            tuple(self.columns[j] for j in positive.tolist()),
            weight[positive],
            lacking,
            np.maximum(-dual[:orbits], 0.0) / self.room,
            dual[orbits:],
            highs.getObjectiveValue(),
            1 - load <= EXACT,
        )

    def _cost(self, columns: Sequence[Column]) -> Floats:
        cubes = np.array([column.height for column in columns], dtype=np.float64) ** 3
        return np.asarray(cubes / self.roots, dtype=np.float64)


MOST = 2**52  #: common denominators beyond this are not taken: amounts of all trees together have to fit into 64 bits
PARTS = 2**20  #: parts that are rounded to


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
        pivot = next((i for i in range(place, len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        rows[place], rows[pivot] = rows[pivot], rows[place]
        for i, row in enumerate(rows):
            if i != place and row[column]:
                common = gcd(row[column], rows[place][column])
                times, less = rows[place][column] // common, row[column] // common
                found_row = [times * a - less * b for a, b in zip(row, rows[place], strict=True)]
                common = gcd(*found_row) or 1
                rows[i] = [value // common for value in found_row]
        lead.append(column)
    if any(row[-1] for row in rows[len(lead) :]):
        return None
    solution = [Fraction(0)] * unknowns
    for row, column in zip(rows, lead, strict=False):
        solution[column] = Fraction(row[-1], row[column])
    return solution


def rounded_weights(
    uses: Sequence[Sequence[int]], root: Sequence[int], room: Sequence[Fraction], weight: Sequence[float]
) -> list[Fraction] | None:
    """Round weights, the largest remainders up, to multiples of one part; None if they do not fit."""
    weights = [Fraction(0)] * len(root)
    for which in sorted(set(root)):
        trees = [j for j, each in enumerate(root) if each == which]
        counts = {j: int(weight[j] * PARTS) for j in trees}
        order = sorted(trees, key=lambda j: counts[j] - weight[j] * PARTS)
        for place in range(PARTS - sum(counts.values())):
            counts[order[place % len(order)]] += 1
        for j, count in counts.items():
            weights[j] = Fraction(count, PARTS)
    return weights if min(weights) >= 0 and _fits(weights, uses, room) else None


def _fits(weight: Sequence[Fraction], uses: Sequence[Sequence[int]], room: Sequence[Fraction]) -> bool:
    parts = lcm(*(w.denominator for w in weight))
    whole = [int(w * parts) for w in weight]
    return all(
        sum(w * each[o] for w, each in zip(whole, uses, strict=True)) <= most * parts for o, most in enumerate(room)
    )
