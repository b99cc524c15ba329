"""Forests of symmetric networks: trees of one root in every orbit, packed by their links per orbit.

A tree and all its images load every link of an orbit equally (:class:`~...core.trees.TreeOrbits`), so that the room of
a forest is one number per orbit. Single trees of lowest cost that fit need no weights. Else columns of a linear program
are trees that are cheap at its dual prices (:func:`.kernels.priced_tree`); see docs/methods/forestcoll.md.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from ...core.schedule import Bools, Floats, Ints
from ..graphs.network import edges_by
from .kernels import priced_tree, priced_uses
from .orbit_program import EXACT, Column, OrbitProgram, Solution, exact_weights, rounded_weights

_LOWEST = 2.0**40  #: price of depth at which trees are lowest
#: Prices of depth of single trees. Those of links are integers, so that halves never equal what depth saves.
_DEPTHS = (_LOWEST, 6.5, 4.5, 2.5, 1.5, 0.5)
#: Prices of links that are tried for each; nodes of all single trees, with four for every use that is counted, and
#: fewer if a linear program follows.
_PRICES, _SINGLE_WORK, _SHORT_WORK = 8, 100_000_000, 1_000_000
_ROWS = 1024  #: orbits whose paths of two links are counted at once: some hundred MiB if ranks have 1,000 links

_RISES = (1e-7, 0.03, 0.1, 0.3, 10.0)  #: price of depth, over that of the dearest link, from cheap trees to low ones

_LOWER = (-1, 0)  #: heights that cheap trees must not exceed, beyond that of the highest tree of the root that is used
#: Largest random change of the last prices, and of the smoothed ones of all solutions; and how often each changes in a
#: round: trees of small networks are grown in less time than the program is solved again.
_NOISE, _CHANGES = (0.3, 3.0), 2

_BEFORE = 0.7  #: part that the prices of all solutions before count
_LEAST = 1e-3  #: what links cost at least: this part of the dearest, in proportion to how little room they have

#: Rounds at most; and how many last ones must have gained a part of the value, while trees fit and before.
_ROUNDS, _LAST, _GAIN = 200, (6, 12), 0.04

_WORK = 37_000_000  #: nodes of trees that are grown until no more is tried to make trees lower
_AGAIN = 45_000  #: nodes of trees up to which small networks are packed again, with other changes of prices
_FIRST, _FIRST_WORK = 16, 1_000_000  #: trees per root and price of depth before there are prices; nodes of all

_AT_ONCE = 1_000_000  #: nodes of trees that are grown at once
_OTHERS, _PART = 30, 0.8  #: tries where weights have no common denominator; part of the columns

_MOST_ROWS = 120  #: orbits of links and of roots that are too many for the linear program
_SPARE = 1e-4  #: part of a room that is left free where weights are rounded
_ANY = 2**31  #: no limit to heights

_TreeRequest = tuple[int, float, int]  #: root, cost of depth, and height limit of a tree


@dataclass(frozen=True, eq=False)
class OrbitNetwork:
    """Network whose links are partitioned into orbits."""

    tail: Ints
    head: Ints
    ends: Bools  #: (nodes,) nodes that trees span; all others only forward
    roots: Ints  #: one node of every orbit of roots
    orbit: Ints  #: (links,) number of every link's orbit
    room: tuple[Fraction, ...]  #: uses of every orbit's links by trees of total weight 1 from each root

    @cached_property
    def net(self) -> tuple[Ints, Ints, Ints, Bools]:
        """Links sorted by tail: first position of each node, heads and numbers of the links; and ``ends``."""
        start, link = edges_by(self.tail, len(self.ends))
        return start, self.head[link], link, self.ends

    @cached_property
    def scarcity(self) -> Floats:
        """Scarcity of room, 1 for the scarcest orbit; shape (orbits,)."""
        scarce = 1 / np.array([float(room) for room in self.room])
        return np.asarray(scarce / scarce.max(), dtype=np.float64)

    @cached_property
    def kind(self) -> Ints:
        """Kind of every orbit: its room, which ends trees span, and the paths of two links that avoid a link.

        Many such paths avoid a link within a group of a dragonfly, few one between groups. Shape (orbits,).
        """
        from scipy.sparse import csr_array

        first, nodes = np.unique(self.orbit, return_index=True)[1], len(self.ends)
        tail, head = self.tail[first], self.head[first]
        ones = np.ones(len(self.tail), dtype=np.int64)
        links = csr_array((ones, (self.tail, self.head)), shape=(nodes, nodes))
        back, blocks = links.T.tocsr(), np.split(np.arange(len(first)), range(_ROWS, len(first), _ROWS))
        around = np.concatenate([(links[tail[some]] * back[head[some]]).sum(axis=1) for some in blocks])
        columns = np.column_stack([self.scarcity, self.ends[tail], self.ends[head], around])
        return np.unique(columns, axis=0, return_inverse=True)[1].reshape(-1)

    def grow_tree(self, column: Column) -> tuple[Ints, Ints, Ints, Ints]:
        """Return a column's tree: parent and child of every edge, the edges' offsets in their links, and these links.

        An edge comes after the one that reaches its parent.
        """
        root, price = int(self.roots[column.root]), column.price[self.orbit]
        parent, child, offset, links, _ = priced_tree(root, self.net, price, column.rise, column.limit)
        return parent, child, offset, links


@dataclass(frozen=True, eq=False)
class OrbitForest:
    """Columns, of which each is a tree, with exact weights that add up to 1 for every root."""

    columns: tuple[Column, ...]
    weight: tuple[Fraction, ...]  #: weight of every tree, greater than 0
    rounds: int = 0  #: linear programs that were solved, and trees that were grown for them
    tries: int = 0

    def tallness(self) -> tuple[int, Fraction]:
        """Return the maximum of the heights, and their weighted sum."""
        sums = sum((w * column.height for column, w in zip(self.columns, self.weight, strict=True)), Fraction(0))
        return max(column.height for column in self.columns), sums


def pack_orbits(network: OrbitNetwork, seed: int, stop: Callable[[], bool] = lambda: False) -> OrbitForest | None:
    """Pack trees of the roots into the room of the orbits; None if none fit, or if stopped."""
    has_program = len(network.room) + len(network.roots) <= _MOST_ROWS
    single = _find_single_trees(network, _SHORT_WORK if has_program else _SINGLE_WORK, stop)
    best = OrbitForest(tuple(single), (Fraction(1),) * len(single)) if single else None
    if (single and single[0].rise == _LOWEST) or not has_program:
        return best
    work = 0
    while work < _AGAIN and not stop():
        packing = _Packing(network, seed, single)
        forest = _pack_trees(packing, stop)
        work, seed = work + packing.work, seed + 1
        if forest is not None and (best is None or forest.tallness() < best.tallness()):
            best = forest
        if best is None or sum(column.height**3 * w for column, w in zip(best.columns, best.weight, strict=True)) <= (
            packing.least * len(network.roots) * (1 + EXACT)
        ):
            break
    return best


def _find_single_trees(network: OrbitNetwork, most_work: int, stop: Callable[[], bool]) -> list[Column]:
    """Find one tree from each root, all of which fit with weight 1; empty if stopped, or if none in ``most_work``.

    As long as an orbit is overloaded, the price of the most overloaded one's kind is more than doubled.
    """
    roots, work = np.arange(len(network.roots)), 0
    for rise in _DEPTHS:
        price, totals = np.ones(len(network.room)), set[bytes]()  # of kinds, no more than orbits
        for _ in range(_PRICES):
            if stop() or work > most_work:
                return []
            work += len(roots) * (len(network.ends) + 4 * len(network.room))
            prices = np.tile(price[network.kind], (len(roots), 1))
            limits = np.full(len(roots), rise), np.full(len(roots), _ANY)
            uses, heights = priced_uses(network.roots, *limits, prices, network.orbit, network.net)
            total = uses.sum(axis=0)
            loads = [use / room for use, room in zip(total.tolist(), network.room, strict=True)]
            if max(loads) <= 1:
                each = zip(roots.tolist(), uses, heights.tolist(), prices, strict=True)
                return [Column(*column, rise, _ANY) for column in each]
            if total.tobytes() in totals:
                break
            totals.add(total.tobytes())
            most = network.kind[loads.index(max(loads))]
            price[most] = 2 * price[most] + 1
    return []


class _Packing:
    """Linear program and the trees grown for it, with single trees that fit."""

    def __init__(self, network: OrbitNetwork, seed: int, single: list[Column]) -> None:
        self.network, self.random = network, np.random.default_rng(seed)
        self.roots = range(len(network.roots))
        self.keys: set[tuple[int, int, bytes]] = set()
        self.work = self.tries = 0
        self.solutions: list[Solution] = []  # solutions that fit, each better than the one before
        self.has_prices = self.had_fit = False
        #: How often all trees are grown at first: never where they are so large that few can be grown at all.
        self.times = min(_FIRST, _FIRST_WORK // (len(self.roots) * len(_RISES) * len(network.ends)))
        self.before = np.zeros(len(network.room))
        first = single + self._grow_trees(
            [(root, rise, _ANY) for root in self.roots for rise in (10.0, 0.1, 1e-6)], network.scarcity
        )
        cubes = [[column.height**3 for column in first if column.root == root] for root in self.roots]
        #: No forest has a smaller sum of cubes, as a tree at a high price of depth is a lowest one.
        self.least = float(np.mean([min(each) for each in cubes]))
        room = np.array([float(room) for room in network.room])
        self.highest = float(max(max(each) for each in cubes))
        self.program = OrbitProgram(room, len(self.roots), self.highest, first)

    def price(self, solution: Solution) -> int:
        """Grow trees at the prices of a solution; return the number of new ones."""
        if self.has_prices:
            fresh = self._grow_priced_trees(solution)
        else:
            trees = [(root, rise, _ANY) for root in self.roots for rise in _RISES] * self.times
            fresh = self._grow_trees(trees, self._perturb_prices(self.network.scarcity, _NOISE[-1], len(trees)))
        self.has_prices = True
        if fresh:
            self.program.forget(solution)
            self.program.columns += fresh
        return len(fresh)

    def _grow_priced_trees(self, solution: Solution) -> list[Column]:
        """Grow trees at a solution's prices and at smoothed earlier ones, both randomly perturbed."""
        price = solution.price / (solution.price.max(initial=0.0) or 1.0)
        self.before = _BEFORE * self.before + (1 - _BEFORE) * price if self.had_fit else price
        self.had_fit = solution.fits
        rises = _RISES if self.times else _RISES[:-1]
        trees = [(root, rise, _ANY) for root in self.roots for rise in rises]
        if solution.fits and self.times:
            high = {column.root: column.height for column in sorted(solution.columns, key=lambda column: column.height)}
            trees += [(root, _RISES[0], high[root] + more) for root in self.roots for more in _LOWER]
        least = _LEAST * self.network.scarcity
        prices = [*zip((price, self.before), _NOISE, strict=True)] * (_CHANGES if self.times else 1)
        return self._grow_trees(
            trees * len(prices),
            np.concatenate([self._perturb_prices(each + least, noise, len(trees)) for each, noise in prices]),
        )

    def _perturb_prices(self, price: Floats, noise: float, times: int) -> Floats:
        return np.asarray(price * (1 + noise * self.random.random((times, len(price)))))

    def exact(self, solution: Solution) -> OrbitForest | None:
        """Solve exactly for the weights of the used columns; None if impossible.

        If the weights have no small common denominator, fall back to an earlier solution, or to one without some of the
        columns, or round weights that leave parts of rooms free.
        """
        columns = self._weigh_columns(solution)
        if not columns:
            others = sorted([*self.solutions, *self._alternative_solutions()], key=lambda other: other.value)
            columns = next((each for each in map(self._weigh_columns, others) if each), [])
        if not columns:
            tallest = max(column.height for column in solution.columns)
            low = [column for column in self.program.columns if column.height <= tallest]
            solution = OrbitProgram(self.program.room, len(self.roots), self.highest, low, _SPARE).solve()
            columns = self._weigh_columns(solution, rounded=True)
        if not columns:
            return None
        trees, weight = zip(*columns, strict=True)
        return OrbitForest(trees, weight, self.program.solved, self.tries)

    def _alternative_solutions(self) -> Iterator[Solution]:
        """Yield solutions that fit, each of a random part of the columns."""
        for _ in range(_OTHERS):
            part = self.random.random(len(self.program.columns)) < _PART
            columns = [column for column, stays in zip(self.program.columns, part.tolist(), strict=True) if stays]
            if len({column.root for column in columns}) == len(self.roots):
                program = OrbitProgram(self.program.room, len(self.roots), self.highest, columns)
                if (solution := program.solve()).fits:
                    yield solution

    def _weigh_columns(self, solution: Solution, *, rounded: bool = False) -> list[tuple[Column, Fraction]]:
        """Return the used columns with their exact weights; empty if there are none."""
        root, uses = [column.root for column in solution.columns], [column.uses.tolist() for column in solution.columns]
        if rounded:
            weight = rounded_weights(uses, root, self.network.room, solution.weight.tolist())
        else:
            weight = exact_weights(uses, root, self.network.room, np.flatnonzero(solution.full).tolist())
        return [(column, w) for column, w in zip(solution.columns, weight or [], strict=False) if w]

    def _grow_trees(self, trees: list[_TreeRequest], prices: Floats) -> list[Column]:
        """Grow trees at prices of orbits, shared or one row per tree; return the new ones."""
        fresh, network = list[Column](), self.network
        self.tries, self.work = self.tries + len(trees), self.work + len(trees) * len(network.ends)
        prices = np.broadcast_to(prices, (len(trees), len(network.room)))
        step = max(_AT_ONCE // len(network.ends), 1)
        for begin in range(0, len(trees), step):
            some, at = trees[begin : begin + step], np.ascontiguousarray(prices[begin : begin + step])
            number, rise, limit = zip(*some, strict=True)
            limits = np.array(rise), np.array(limit)
            uses, heights = priced_uses(network.roots[list(number)], *limits, at, network.orbit, network.net)
            for j, (request, height) in enumerate(zip(some, heights.tolist(), strict=True)):
                key = request[0], height, uses[j].tobytes()
                if height >= 0 and key not in self.keys:
                    self.keys.add(key)
                    fresh.append(Column(request[0], uses[j], height, at[j], *request[1:]))
        return fresh


def _pack_trees(packing: _Packing, stop: Callable[[], bool]) -> OrbitForest | None:
    """Grow trees until they fit and others gain nothing, or all are as low as possible."""
    solution, values = packing.program.solve(), list[float]()
    for _ in range(_ROUNDS):
        values.append(solution.value)
        last = _LAST[0 if solution.fits else 1]
        idle = len(values) > last and solution.value > values[-1 - last] * (1 - _GAIN)
        least = packing.least * (1 + (EXACT if packing.times else _GAIN))
        if idle or (solution.fits and (solution.value <= least or packing.work > _WORK)):
            break
        if stop():
            return None
        if solution.fits and (not packing.solutions or solution.value < packing.solutions[-1].value):
            packing.solutions.append(solution)
        if packing.price(solution):
            solution = packing.program.solve()
    return packing.exact(solution) if solution.fits else None
