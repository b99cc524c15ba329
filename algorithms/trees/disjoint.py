"""Largest rates of at most K link-disjoint trees of any height: exactly, and with a proof; the two best trees.

The largest forests of links either are the trees, or show a set of links that excludes all rates that need too much of
it (the union of graphic matroids, Edmonds, 1968; docs/methods/mtree.md).

Links enter forests one after the other. If every forest that a link may be in has a path between its ends, it takes the
place of a link of that path, which enters another forest, and so on: a shortest such chain is found breadth first
(Knuth, 1973). Once no chain is left, the links Q that chains from unused links can reach prove that there are no larger
forests: every link outside of Q is in one, and those in Q span Q in each.

Two trees that may share links, of rates r1 >= r2, are two disjoint bases of the union of two graphic matroids in which
links that may be in both occur twice: a link may be in both if ``b_e >= r1 + r2``, in either if ``b_e >= r1``, and only
in the second if ``b_e >= r2``. At an optimum two of ``r1``, ``r2`` and ``r1 + r2`` are capacities (or r2 is the
smallest allowed rate). Larger rates never help two trees to exist, so that for each rate that is a capacity the other
one is found by bisection over its candidates.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import chain, combinations_with_replacement
from math import ceil, comb, floor
from typing import Any, Self

import numpy as np

from ...core.budget import Budget
from ...core.kernel import kernel
from ...core.schedule import Bools, Ints
from ..graphs.network import components
from .bounds import common_link
from .labels import LowForests
from .network import HeightLimit, Wan
from .trees import RatedTrees

MOST_CHOSEN = 4_000_000  #: rates in all choices that are listed, at most; the verifier does the same

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
    def of(cls, wan: Wan, most_trees: int, least: int, widest: int) -> Self | None:
        """Create the choices of rates between ``least`` and ``widest``; None if they are too many."""
        rates = np.unique(wan.capacity[(wan.capacity >= least) & (wan.capacity <= widest)])
        if most_trees * comb(len(rates) + most_trees, most_trees) > MOST_CHOSEN:
            return None
        every = chain.from_iterable(combinations_with_replacement(range(len(rates) + 1), most_trees))
        return cls(wan, np.append(0, rates), np.fromiter(every, dtype=np.int64).reshape(-1, most_trees))

    def of_choice(self, choice: int) -> list[int]:
        """Return the rates of a choice in decreasing order."""
        rates: list[int] = self.rates[self.choices[choice]][::-1].tolist()
        return [rate for rate in rates if rate]

    def trees(self, choice: int, budget: Budget) -> Ints | None:
        """Find trees with these rates; None if the budget ended, or with a new set of links that excludes them."""
        wan, rates = self.wan, self.of_choice(choice)
        allowed = np.array([wan.capacity >= rate for rate in rates]).reshape(-1, len(wan))
        forests = largest_forests(wan.nodes, wan.tail, wan.head, allowed, budget)
        if forests is None:
            return None
        of, reached = forests
        if (of >= 0).sum() == len(rates) * (wan.nodes - 1):
            trees = [np.flatnonzero(of == i) for i in range(len(rates))]
            return np.array(trees, dtype=np.int64).reshape(-1, wan.nodes - 1)
        inside = ~reached
        need = np.array([0, *(self.fewest_links(inside, rate) for rate in self.rates[1:].tolist())])
        self.sets.append(inside)
        self.needs.append((need, int(inside.sum())))
        self.open &= ~self.excluded_choices(len(self.sets) - 1)
        return None

    def fewest_links(self, inside: Bools, rate: int) -> int:
        """Return the fewest links of a set in a tree of a rate."""
        links = ~inside & (self.wan.capacity >= rate)
        return int(components(self.wan.nodes, self.wan.tail[links], self.wan.head[links]).max())

    def excluded_choices(self, index: int) -> Bools:
        """Mark the choices that need more links of a set than it has."""
        need, size = self.needs[index]
        mask: Bools = need[self.choices].sum(axis=1) > size
        return mask

    def choices_by_total(self, trees: int, above: Fraction | int) -> Iterator[int]:
        """Yield open choices of limited size by decreasing total, while it is above ``above``."""
        order = np.argsort(-self.total, kind="stable")
        for choice in order[(self.count[order] <= trees) & (self.total[order] > above)].tolist():
            if self.open[choice]:
                yield choice

    def best(self, trees: int, budget: Budget) -> tuple[int, Ints] | None:
        """Return the largest total rate of at most ``trees`` trees, and such trees; None if the budget ended."""
        for choice in self.choices_by_total(trees, -1):
            forest = self.trees(choice, budget)
            if forest is not None:
                return int(self.total[choice]), forest
            if budget.is_exhausted:
                break
        return None

    def solve(self, budget: Budget) -> Ints | None:
        """Return at most K best trees of any height, and set ``most``; None if the budget ended."""
        self.most, best = [], None
        for trees in range(1, self.choices.shape[1] + 1):
            if (best := self.best(trees, budget)) is None:
                return None
            self.most.append(best[0])
        return None if best is None else best[1]

    def proof(self, rate: Fraction) -> tuple[Ints, ...]:
        """Select few of the sets that prove as much of a bound on K trees as all of them."""
        trees = self.choices.shape[1]
        pair = common_link(self.wan, self.most[0])
        # What k trees may carry at most, so that with common links K carry no more.
        limit = [rate - (trees - k) // 2 * pair for k in range(trees + 1)]
        if self.most[-1] > rate:  # which prices prove
            limit[-2:] = [Fraction(trees * self.most[0])] * 2
        # Totals are whole.
        rest = np.flatnonzero(self.total > np.array([floor(most) for most in limit])[self.count])
        rows = [self.excluded_choices(index)[rest] for index in range(len(self.sets))]
        sets: list[Ints] = []
        while len(rest):
            best = max(range(len(rows)), key=lambda index: int(rows[index].sum()))
            sets.append(np.flatnonzero(self.sets[best]))
            stay = ~rows[best]
            rest, rows = rest[stay], [row[stay] for row in rows]
        return tuple(sets)


def low_trees_apart(
    apart: DisjointRates, limit: HeightLimit, above: Fraction, changes: int, state: np.ndarray, budget: Budget
) -> Iterator[RatedTrees]:
    """Yield better and better low link-disjoint trees, above ``above``, until the changes of labels are used up."""
    search, each = LowForests(apart.wan, limit, state), _CHANGES
    while True:
        has_choice = False
        for choice in apart.choices_by_total(apart.choices.shape[1], above):
            if budget.is_exhausted:
                return
            rates = apart.of_choice(choice)
            if not all(len(search.roots(rate)) for rate in rates) or apart.trees(choice, budget) is None:
                continue
            if changes <= 0:
                return
            has_choice = True
            trees = search.find(rates, min(each, changes), budget)
            changes -= each
            if trees is not None:
                above = Fraction(sum(rates))
                yield RatedTrees(trees, tuple(Fraction(rate) for rate in rates))
                break
        if not has_choice:
            return
        each *= 2


def low_trees_of_one_rate(
    wan: Wan,
    limit: HeightLimit,
    most_trees: int,
    least: Fraction | int,
    between: tuple[Fraction, Fraction],
    changes: int,
    state: np.ndarray,
    budget: Budget,
) -> Iterator[RatedTrees]:
    """Yield better and better low trees of one rate, at least ``least``, a capacity divided by a whole number.

    A link of capacity b_e can be in ``floor(b_e / r)`` trees of rate r, hence occurs as often in a search for
    link-disjoint trees. Totals above the first of ``between``, and at most the second, are tried by decreasing total,
    each for some changes of labels; those still better than the best trees then for twice as many.
    """
    above, bound = between
    choices = {
        (Fraction(trees * one, parts), trees)
        for trees in range(2, most_trees + 1)
        for one in np.unique(wan.capacity).tolist()
        for parts in range(max(1, ceil(trees * one / bound)), ceil(trees * one / above))
        if one >= least * parts
    }
    each = _CHANGES
    while choices:
        for total, trees in sorted(choices, reverse=True):
            if changes <= 0 or budget.is_exhausted:
                return
            rate = total / trees
            link = np.repeat(np.arange(len(wan)), wan.capacity * rate.denominator // rate.numerator)
            if len(link) < trees * (wan.nodes - 1):
                choices.remove((total, trees))
                continue
            copied = replace(wan, **{name: getattr(wan, name)[link] for name in _PER_LINK})
            search = LowForests(copied, replace(limit, length=limit.length[link]), state)
            forest = search.find([ceil(rate)] * trees, min(each, changes), budget)
            changes -= each
            if forest is not None:
                yield RatedTrees(np.sort(link[forest], axis=1), (rate,) * trees)
                choices = {choice for choice in choices if choice[0] > total}
                break
        each *= 2


_PER_LINK = ("tail", "head", "latency_ns", "forth", "back", "first", "second")  #: fields of a Wan with a value a link

_LINKS = 256  #: links between two looks at the clock


def largest_forests(nodes: int, tail: Ints, head: Ints, allowed: Bools, budget: Budget) -> tuple[Ints, Bools] | None:
    """Find the largest link-disjoint forests of ``allowed`` links, (forests, links); None if the budget ended first.

    Return the forest of every link, -1 for none, and the set Q that proves that there are no larger forests.
    """
    of, reached = np.full(len(tail), -1, dtype=np.int64), np.zeros(len(tail), dtype=np.bool_)
    for first in range(0, len(tail), _LINKS):
        if budget.is_exhausted:
            return None
        last = min(first + _LINKS, len(tail))
        reached = pack(first, last, nodes, tail, head, allowed, of)
    return of, reached


@kernel
def pack(first: int, last: int, nodes: int, tail: Any, head: Any, allowed: Any, of: Any) -> Any:
    """Insert some links; mark those that chains from all unused links reach."""
    count, m = allowed.shape
    up, above, depth, jump = np.empty((4, count, nodes), np.int64)
    before, queue = np.empty((2, m), np.int64)
    ends, rooted = (tail, head), (up, above, depth)
    for i in range(count):
        hang(i, nodes, tail, head, of, up, above, depth)
    for start in range(first, last):
        queue[0] = start
        end, forest, _ = exchange_chain(1, ends, allowed, of, rooted, jump, before, queue)
        while end >= 0:  # each link enters the place that the next one has left
            vacancy, of[end] = of[end], forest
            hang(forest, nodes, tail, head, of, up, above, depth)
            end, forest = before[end], vacancy
    reached, unused = np.zeros(m, np.bool_), np.flatnonzero(of[:last] < 0)
    queue[: len(unused)] = unused
    _, _, size = exchange_chain(len(unused), ends, allowed, of, rooted, jump, before, queue)
    reached[queue[:size]] = True
    return reached


@kernel
def exchange_chain(size: int, ends: Any, allowed: Any, of: Any, rooted: Any, jump: Any, before: Any, queue: Any) -> Any:
    """Search chains from the first ``size`` links of the queue to a link that can enter a forest.

    Return this link, the forest, and the number of links reached; link and forest are -1 if there is no chain.
    ``ends`` are tail and head of links, ``rooted`` what :func:`hang` computes.
    """
    tail, head = ends
    up, above, depth = rooted
    count, nodes = up.shape
    before[:] = -2
    before[queue[:size]] = -1
    jump[:] = np.arange(nodes)
    at = 0
    while at < size:
        e = queue[at]
        at += 1
        for i in range(count):
            if not allowed[i, e] or of[e] == i:
                continue
            a, b = skip(jump, i, tail[e]), skip(jump, i, head[e])
            while a != b:  # climb to where the path turns, over links that were not reached before
                if depth[i, a] < depth[i, b]:
                    a, b = b, a
                if depth[i, a] == 0:
                    return e, i, size
                other = up[i, a]
                jump[i, a] = above[i, a]
                if before[other] == -2:
                    before[other] = e
                    queue[size] = other
                    size += 1
                a = skip(jump, i, a)
    return -1, -1, size


@kernel
def skip(jump: Any, i: int, v: int) -> int:
    """Return the first ancestor of v whose upward link is unreached, with path compression."""
    while jump[i, v] != v:
        jump[i, v] = jump[i, jump[i, v]]
        v = jump[i, v]
    return v


@kernel
def hang(i: int, nodes: int, tail: Any, head: Any, of: Any, up: Any, above: Any, depth: Any) -> None:
    """Root the components of a forest: set link and node above every node, and its depth."""
    near, begin = np.empty(2 * nodes, np.int64), np.zeros(nodes + 2, np.int64)
    for e in range(len(of)):
        if of[e] == i:
            begin[tail[e] + 2] += 1
            begin[head[e] + 2] += 1
    begin[:] = np.cumsum(begin)
    for e in range(len(of)):
        if of[e] == i:
            for v in (tail[e], head[e]):
                near[begin[v + 1]] = e
                begin[v + 1] += 1
    depth[i, :] = -1
    queue = np.empty(nodes, np.int64)
    for root in range(nodes):
        if depth[i, root] >= 0:
            continue
        depth[i, root], queue[0], size, at = 0, root, 1, 0
        while at < size:
            v = queue[at]
            at += 1
            for k in range(begin[v], begin[v + 1]):
                e = near[k]
                other = tail[e] + head[e] - v
                if depth[i, other] < 0:
                    depth[i, other], up[i, other], above[i, other] = depth[i, v] + 1, e, v
                    queue[size] = other
                    size += 1


def best_pair(wan: Wan, widest: int, budget: Budget, floor: Fraction | int = 0) -> RatedTrees | None:
    """Return the two trees, of rates from ``floor`` to ``widest``, with the largest sum; None if none, or stopped."""
    capacities = sorted({int(c) for c in wan.capacity} | ({floor} if floor else set()))
    least = floor or 1
    best: tuple[Fraction | int, Fraction | int, Fraction | int] = 0, 0, 0
    trees: tuple[list[int], list[int]] | None = None
    for rate in reversed([c for c in capacities if least <= c <= widest]):
        others = sorted({*capacities, *(c - rate for c in capacities)})
        others = [c for c in others if least <= c <= widest]
        # Below this one the sum is no better than the best.
        low, high = bisect_right(others, best[0] - rate), len(others) - 1
        while low <= high:
            if budget.is_exhausted:
                return None
            middle = (low + high) // 2
            pair = two_trees(wan, max(rate, others[middle]), min(rate, others[middle]), budget)
            if pair is None:
                high = middle - 1
            else:
                best, trees, low = (rate + others[middle], rate, others[middle]), pair, middle + 1
    if trees is None:
        return None
    rates = (Fraction(max(best[1:])), Fraction(min(best[1:])))
    return RatedTrees(np.array(trees, dtype=np.int64), rates)


def two_trees(
    wan: Wan, first: Fraction | int, second: Fraction | int, budget: Budget
) -> tuple[list[int], list[int]] | None:
    """Find spanning trees of rates ``first >= second``; None if there are none, or the budget ended."""
    # What stands twice can be in either forest only once, since its copies are parallel.
    link = np.concatenate([np.arange(len(wan)), np.flatnonzero(wan.capacity >= ceil(first + second))])
    allowed = np.array([wan.capacity[link] >= ceil(rate) for rate in (first, second)])
    forests = largest_forests(wan.nodes, wan.tail[link], wan.head[link], allowed, budget)
    if forests is None:
        return None
    trees = tuple(sorted(link[forests[0] == i].tolist()) for i in range(2))
    return (trees[0], trees[1]) if all(len(tree) == wan.nodes - 1 for tree in trees) else None
