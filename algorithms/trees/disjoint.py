"""Largest rates of at most K link-disjoint trees of any height: exactly, and with a proof.

Such trees can each have the least capacity of their links, so that rates are capacities, of which there are few.
Trees of rates ``c_1, ..., c_K`` over links of at least that capacity exist if and only if no set S of links is too
small for them: a tree of rate c has at least as many links of S as the other links of capacity at least c leave
components, minus one (the union of graphic matroids, Edmonds, 1968). The forests of :mod:`~.forests` either are the
trees, or show such a set, which excludes all rates that need too much of it. So the best rates are found after some
ten forests, and the sets prove it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain, combinations_with_replacement
from math import comb, floor

import numpy as np

from ...core.budget import Budget
from ...core.schedule import Bools, Ints
from ..graphs.network import components
from .bounds import common_link
from .forests import largest_forests
from .labels import LowForests
from .network import HeightLimit, Wan
from .trees import RatedTrees

#: Choices of rates are listed where they are at most so many rates in all; the verifier does the same.
MOST_CHOSEN = 4_000_000

_CHANGES = 2000  #: changes of labels for rates that are tried for the first time


@dataclass(eq=False)
class DisjointRates:
    """Feasible and excluded rates of at most K trees without a common link."""

    wan: Wan
    rates: Ints  #: possible rates of a tree, increasing, after 0 for no tree
    choices: Ints  #: (choices, K) every choice of rates, as indices
    sets: list[Bools] = field(default_factory=list)  #: sets of links that exclude choices
    #: fewest links of each set in a tree of every rate, and the size of the set
    needs: list[tuple[Ints, int]] = field(default_factory=list)
    #: largest total rate of at most k trees, for k from 1 to K, once known
    most: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.total = self.rates[self.choices].sum(axis=1)
        self.count = (self.choices > 0).sum(axis=1)
        self.open = np.ones(len(self.total), dtype=np.bool_)

    @classmethod
    def of(cls, wan: Wan, most_trees: int, least: int, widest: int) -> DisjointRates | None:
        """Create the choices of rates between ``least`` and ``widest``; None if they are too many."""
        rates = np.unique(wan.capacity[(wan.capacity >= least) & (wan.capacity <= widest)])
        if most_trees * comb(len(rates) + most_trees, most_trees) > MOST_CHOSEN:
            return None
        every = chain.from_iterable(combinations_with_replacement(range(len(rates) + 1), most_trees))
        return cls(wan, np.append(0, rates), np.fromiter(every, dtype=np.int64).reshape(-1, most_trees))

    def of_choice(self, choice: int) -> list[int]:
        """Return the rates of a choice in decreasing order."""
        found: list[int] = self.rates[self.choices[choice]][::-1].tolist()
        return [rate for rate in found if rate]

    def trees(self, choice: int, budget: Budget) -> Ints | None:
        """Find trees with these rates; None if the budget ended, or with a new set of links that excludes them."""
        wan, rates = self.wan, self.of_choice(choice)
        allowed = np.array([wan.capacity >= rate for rate in rates]).reshape(-1, len(wan))
        forests = largest_forests(wan.nodes, wan.tail, wan.head, allowed, budget)
        if forests is None:
            return None
        if (forests.of >= 0).sum() == len(rates) * (wan.nodes - 1):
            return np.array([forests.links(i) for i in range(len(rates))], dtype=np.int64).reshape(-1, wan.nodes - 1)
        inside, need = ~forests.reached, np.zeros(len(self.rates), dtype=np.int64)
        for place, rate in enumerate(self.rates[1:].tolist(), 1):  # the fewest links of the set in a tree of the rate
            links = ~inside & (wan.capacity >= rate)
            need[place] = components(wan.nodes, wan.tail[links], wan.head[links]).max()
        self.sets.append(inside)
        self.needs.append((need, int(inside.sum())))
        self.open &= ~self.excluded_choices(len(self.sets) - 1)
        return None

    def excluded_choices(self, index: int) -> Bools:
        """Mark the choices that need more links of a set than it has."""
        need, size = self.needs[index]
        found: Bools = need[self.choices].sum(axis=1) > size
        return found

    def choices_by_total(self, trees: int, above: Fraction | int) -> Iterator[int]:
        """Yield open choices of limited size by decreasing total, while it is above ``above``."""
        order = np.argsort(-self.total, kind="stable")
        for choice in order[(self.count[order] <= trees) & (self.total[order] > above)].tolist():
            if self.open[choice]:
                yield choice

    def best(self, trees: int, budget: Budget) -> tuple[int, Ints] | None:
        """Return the largest total rate of at most ``trees`` trees, and such trees; None if the budget ended."""
        for choice in self.choices_by_total(trees, -1):
            found = self.trees(choice, budget)
            if found is not None:
                return int(self.total[choice]), found
            if budget.is_exhausted:
                break
        return None

    def solve(self, budget: Budget) -> Ints | None:
        """Return at most K best trees of any height, and set ``most``; None if the budget ended."""
        self.most = []
        best = None
        for trees in range(1, self.choices.shape[1] + 1):
            best = self.best(trees, budget)
            if best is None:
                return None
            self.most.append(best[0])
        return None if best is None else best[1]

    def proof(self, rate: Fraction) -> tuple[Ints, ...]:
        """Select few of the sets that prove as much of a bound on K trees as all of them."""
        trees = self.choices.shape[1]
        pair, alone = common_link(self.wan, self.most[0])
        limit = [rate] * (trees + 1)
        for k in range(trees - 1, -1, -1):  # what k trees may carry at most, so that with a common link K carry no more
            limit[k] = min(limit[k + 1] - alone, limit[k + 2] - pair if k + 2 <= trees else limit[k + 1])
        if self.most[-1] > rate:  # which prices prove
            limit[-1] = Fraction(trees * self.most[0])
        # Totals are whole.
        left = np.flatnonzero(self.total > np.array([floor(most) for most in limit])[self.count])
        rows = [self.excluded_choices(index)[left] for index in range(len(self.sets))]
        kept: list[Ints] = []
        while len(left):
            best = max(range(len(rows)), key=lambda index: int(rows[index].sum()))
            kept.append(np.flatnonzero(self.sets[best]))
            stay = ~rows[best]
            left, rows = left[stay], [row[stay] for row in rows]
        return tuple(kept)


def low_trees_apart(
    apart: DisjointRates, limit: HeightLimit, above: Fraction, changes: int, state: np.ndarray, budget: Budget
) -> Iterator[RatedTrees]:
    """Yield better and better low link-disjoint trees, until the changes of labels are used up.

    Rates of trees of any height are tried by decreasing total, above ``above``, each for some changes; those still
    better than the best trees are then tried again, for twice as many.
    """
    search, each = LowForests(apart.wan, limit, state), _CHANGES
    while True:
        tried = False
        for choice in apart.choices_by_total(apart.choices.shape[1], above):
            if budget.is_exhausted:
                return
            rates = apart.of_choice(choice)
            if not all(len(search.roots(rate)) for rate in rates) or apart.trees(choice, budget) is None:
                continue
            if changes <= 0:
                return
            tried = True
            trees = search.find(rates, min(each, changes), budget)
            changes -= each
            if trees is not None:
                above = Fraction(sum(rates))
                yield RatedTrees(trees, tuple(Fraction(rate) for rate in rates))
                break
        if not tried:
            return
        each *= 2
