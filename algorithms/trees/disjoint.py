"""Rates that at most K trees without a common link can have, whatever their height: exactly, and with a proof.

Such trees can each have the least capacity of their links, so that rates are capacities, of which there are few. Trees
of rates ``c_1, ..., c_K`` over links of at least that capacity exist if and only if no set S of links is too small for
them: over links of at least c, whatever spans has at least as many links of S as the links outside of S leave parts,
less one (the union of graphic matroids, Edmonds, 1968). The forests of :mod:`~.forests` either are the trees, or show
such a set, which excludes all rates that need too much of it. So the best rates are found after some ten forests, and
the sets prove it.
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
from ..graphs.components import components
from .bounds import common_link
from .forests import largest_forests
from .labels import LowForests
from .network import HeightLimit, Wan
from .trees import RatedTrees

#: Choices of rates are listed where they are at most so many rates in all; the verifier does the same.
MOST_CHOSEN = 4_000_000

#: Changes of labels for rates that are tried for the first time.
_CHANGES = 2000


def all_choices(rates: int, most_trees: int) -> Ints:
    """Every choice of K of so many rates, 0 for no tree, of which there are ``comb(rates + K, K)``."""
    every = chain.from_iterable(combinations_with_replacement(range(rates + 1), most_trees))
    return np.fromiter(every, dtype=np.int64).reshape(-1, most_trees)


@dataclass(eq=False)
class DisjointRates:
    """What is known of the rates of at most K trees without a common link.

    Parameters
    ----------
    wan : Wan
        The network.
    rates : array of int
        Rates that a tree may have, rising, after 0 for no tree.
    choices : array of int, shape (choices, K)
        Every choice of rates, as indices.
    sets : list of array of bool
        Sets of links that exclude choices.
    needs : list of (array of int, int)
        Links of each set that a tree has at least, for every rate, and how many there are.
    most : list of int
        What at most k trees carry, for k from 1 to K, once that is known.
    """

    wan: Wan
    rates: Ints
    choices: Ints
    sets: list[Bools] = field(default_factory=list)
    needs: list[tuple[Ints, int]] = field(default_factory=list)
    most: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.total = self.rates[self.choices].sum(axis=1)
        self.count = (self.choices > 0).sum(axis=1)
        self.open = np.ones(len(self.total), dtype=np.bool_)

    @classmethod
    def of(cls, wan: Wan, most_trees: int, least: int, widest: int) -> DisjointRates | None:
        """All rates of at most K trees, none below the least nor above the widest; None if they are too many.

        Parameters
        ----------
        wan : Wan
            The network.
        most_trees : int
            K.
        least, widest : int
            In units.
        """
        rates = np.unique(wan.capacity[(wan.capacity >= least) & (wan.capacity <= widest)])
        if most_trees * comb(len(rates) + most_trees, most_trees) > MOST_CHOSEN:
            return None
        return cls(wan, np.append(0, rates), all_choices(len(rates), most_trees))

    def of_choice(self, choice: int) -> list[int]:
        """The rates of a choice, falling."""
        found: list[int] = self.rates[self.choices[choice]][::-1].tolist()
        return [rate for rate in found if rate]

    def trees(self, choice: int, budget: Budget) -> Ints | None:
        """Trees of any height with these rates; where there are none, a set is found that excludes them and others.

        None too if the budget has ended.
        """
        wan, rates = self.wan, self.of_choice(choice)
        allowed = np.array([wan.capacity >= rate for rate in rates]).reshape(-1, len(wan))
        forests = largest_forests(wan.nodes, wan.tail, wan.head, allowed, budget)
        if forests is None:
            return None
        if (forests.of >= 0).sum() == len(rates) * (wan.nodes - 1):
            return np.array([forests.links(i) for i in range(len(rates))], dtype=np.int64).reshape(-1, wan.nodes - 1)
        inside = ~forests.reached
        need = np.array([0, *(self.needed(inside, rate) for rate in self.rates[1:].tolist())])
        self.sets.append(inside)
        self.needs.append((need, int(inside.sum())))
        self.open &= ~self.excluded(len(self.sets) - 1)
        return None

    def needed(self, inside: Bools, rate: int) -> int:
        """Links of a set that a tree of a rate has at least."""
        links = ~inside & (self.wan.capacity >= rate)
        return int(components(self.wan.nodes, self.wan.tail[links], self.wan.head[links]).max())

    def excluded(self, index: int) -> Bools:
        """The choices that need more of a set than it has."""
        need, size = self.needs[index]
        found: Bools = need[self.choices].sum(axis=1) > size
        return found

    def falling(self, trees: int, above: Fraction | int) -> Iterator[int]:
        """The choices of at most so many trees that are not excluded, by falling total, while this is above a number."""
        order = np.argsort(-self.total, kind="stable")
        for choice in order[(self.count[order] <= trees) & (self.total[order] > above)].tolist():
            if self.open[choice]:
                yield choice

    def best(self, trees: int, budget: Budget) -> tuple[int, Ints] | None:
        """The largest total rate of at most so many trees of any height, and such trees; None if the budget ended."""
        for choice in self.falling(trees, -1):
            found = self.trees(choice, budget)
            if found is not None:
                return int(self.total[choice]), found
            if budget.exhausted:
                break
        return None

    def solve(self, budget: Budget) -> Ints | None:
        """The best trees of any height, at most K; ``most`` is what at most k carry. None if the budget ended."""
        self.most = []
        best = None
        for trees in range(1, self.choices.shape[1] + 1):
            best = self.best(trees, budget)
            if best is None:
                return None
            self.most.append(best[0])
        return None if best is None else best[1]

    def proof(self, rate: Fraction) -> tuple[Ints, ...]:
        """Few of the sets, as links, that prove as much of a bound on K trees as all of them."""
        trees = self.choices.shape[1]
        pair, alone = common_link(self.wan, self.most[0])
        limit = [rate] * (trees + 1)
        for k in range(trees - 1, -1, -1):  # what k trees may carry at most, so that with a common link K carry no more
            limit[k] = min(limit[k + 1] - alone, limit[k + 2] - pair if k + 2 <= trees else limit[k + 1])
        if self.most[-1] > rate:  # which prices prove
            limit[-1] = Fraction(trees * self.most[0])
        # Totals are whole.
        left = np.flatnonzero(self.total > np.array([floor(most) for most in limit])[self.count])
        rows = [self.excluded(index)[left] for index in range(len(self.sets))]
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
    """Better and better low trees, of rates that trees of any height have, until there were so many changes of labels.

    Rates are tried by falling total, each for some changes, and those that are better than what was found again, for
    twice as many.

    Parameters
    ----------
    apart : DisjointRates
        What is known of the rates.
    limit : HeightLimit
        The height.
    above : Fraction
        What the trees must exceed together.
    changes : int
        How often labels are changed.
    state : array of uint64
        Of the random generator.
    budget : Budget
        Limits of the run.
    """
    search, each = LowForests(apart.wan, limit, state), _CHANGES
    while True:
        tried = False
        for choice in apart.falling(apart.choices.shape[1], above):
            if budget.exhausted:
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
