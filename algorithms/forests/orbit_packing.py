"""Forests of symmetric networks: trees of one root in every orbit, packed by their links per orbit.

If no translation but the identity fixes a rank (:class:`~...core.trees.TreeOrbits`), a tree and all its images load
every link of an orbit equally. So the room of a forest is one number per orbit of links, however large the network is,
and weights of trees are columns of a small linear program: the trees of every root weigh 1, and no orbit of links is
used beyond its room. Some symmetric forest is as fast as the optimum: the average of any optimal one over all
translations. Columns come from dual prices: a tree that is cheap at these prices, with more or less weight on its
height (:func:`.kernels.priced_tree`). Once the rooms suffice, the sum of the cubes of all heights is reduced. Finally
the weights are solved for exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from ...core.schedule import Bools, Floats, Ints
from ..graphs.network import edges_by
from .kernels import priced_tree, priced_uses
from .orbit_program import EXACT, Column, OrbitProgram, Solution, exact_weights, rounded_weights

#: What depth costs, in prices of the dearest link: cheap trees, those between, and low ones.
_RISES = (1e-7, 0.03, 0.1, 0.3, 10.0)

_LOWER = (-1, 0)  #: heights that cheap trees must not exceed, beyond that of the highest tree of the root that is used

#: By how much the last prices are changed at random, and so those of all solutions, of which later ones count more.
_NOISE = (0.3, 3.0)

_BEFORE = 0.7  #: part that the prices of all solutions before count
_LEAST = 1e-3  #: what links cost at least: this part of the dearest, in proportion to how little room they have

#: Rounds: at most, and of how many the last must have gained this part of the value together while trees fit, and
#: before.
_ROUNDS, _LAST, _GAIN = 200, (10, 20), 0.04

_WORK = 37_000_000  #: nodes of trees that are grown until no more is tried to make trees lower
_AGAIN = 45_000  #: nodes of trees up to which small networks are packed again, with other changes of prices

#: Trees for every root and price of depth that are grown before there are prices; and nodes of all of them.
_FIRST, _FIRST_WORK = 16, 1_000_000

_AT_ONCE = 1_000_000  #: nodes of trees that are grown at once

#: Solutions that are tried where weights have no common denominator, and part of the columns of each.
_OTHERS, _PART = 30, 0.8

_SPARE = 1e-3  #: part of a room that is left free where weights are rounded
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
    #: for every orbit, how often trees of total weight 1 from each of the roots may use its links
    room: tuple[Fraction, ...]

    @cached_property
    def arcs(self) -> tuple[Ints, Ints, Ints]:
        """Links sorted by tail: first position of each node, heads, and numbers of the links."""
        start, link = edges_by(self.tail, len(self.ends))
        return start, self.head[link], link

    @cached_property
    def scarcity(self) -> Floats:
        """Scarcity of room, 1 for the scarcest orbit; shape (orbits,)."""
        scarce = 1 / np.array([float(room) for room in self.room])
        return np.asarray(scarce / scarce.max(), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class OrbitTree:
    """Tree of one of the roots, by nodes of the network."""

    root: int  #: position in ``OrbitNetwork.roots`` of its root
    parent: Ints  #: (edges,) nodes; an edge comes after the one that reaches its parent
    child: Ints
    offset: Ints  #: (edges + 1,) first link of every edge, as an index into ``links``
    links: Ints  #: links of all edges, from parent to child
    height: int


@dataclass(frozen=True, eq=False)
class OrbitForest:
    """Trees with exact weights that add up to 1 for every root."""

    trees: tuple[OrbitTree, ...]
    weight: tuple[Fraction, ...]  #: weight of every tree, greater than 0
    rounds: int  #: linear programs that were solved, and trees that were grown for them
    tried: int

    def tallness(self) -> tuple[int, Fraction]:
        """Return the maximum of the heights, and their weighted sum."""
        sums = sum((w * tree.height for tree, w in zip(self.trees, self.weight, strict=True)), Fraction(0))
        return max(tree.height for tree in self.trees), sums


def pack_orbits(network: OrbitNetwork, seed: int, stop: Callable[[], bool] = lambda: False) -> OrbitForest | None:
    """Pack trees of the roots into the room of the orbits; None if none fit, or if stopped."""
    best: OrbitForest | None = None
    grown = 0
    while grown < _AGAIN and not stop():
        packing = _Packing(network, seed)
        found = _pack_trees(packing, stop)
        grown, seed = grown + packing.grown, seed + 1
        if found is not None and (best is None or found.tallness() < best.tallness()):
            best = found
        if best is None or sum(tree.height**3 * w for tree, w in zip(best.trees, best.weight, strict=True)) <= (
            packing.least * len(network.roots) * (1 + EXACT)
        ):
            break
    return best


def _pack_trees(packing: _Packing, stop: Callable[[], bool]) -> OrbitForest | None:
    """Grow trees until they fit and others gain nothing, or all are as low as possible."""
    solution, values = packing.program.solve(), list[float]()
    for _ in range(_ROUNDS):
        values.append(solution.value)
        last = _LAST[0 if solution.fits else 1]
        idle = len(values) > last and solution.value > values[-1 - last] * (1 - _GAIN)
        if idle or (solution.fits and (solution.value <= packing.least * (1 + EXACT) or packing.grown > _WORK)):
            break
        if stop():
            return None
        packing.keep(solution)
        if packing.price(solution):
            solution = packing.program.solve()
    return packing.exact(solution) if solution.fits else None


class _Packing:
    """Linear program and the trees grown for it."""

    def __init__(self, network: OrbitNetwork, seed: int) -> None:
        self.network, self.random = network, np.random.default_rng(seed)
        self.roots = range(len(network.roots))
        self.known: set[tuple[int, int, bytes]] = set()
        self.grown = self.tried = 0
        self.kept: list[Solution] = []
        self.path_links = 4 * int(network.ends.sum())
        self.begun = self.fitted = False
        #: How often all trees are grown at first: never where they are so large that few can be grown at all.
        self.times = min(_FIRST, _FIRST_WORK // (len(self.roots) * len(_RISES) * len(network.ends)))
        self.before = np.zeros(len(network.room))
        first = self._grow_trees(
            [(root, rise, _ANY) for root in self.roots for rise in (10.0, 0.1, 1e-6)], network.scarcity
        )
        cubes = [[column.height**3 for column in first if column.root == root] for root in self.roots]
        #: No forest has a smaller sum of cubes, as a tree at a high price of depth is a lowest one.
        self.least = float(np.mean([min(each) for each in cubes]))
        room = np.array([float(room) for room in network.room])
        self.highest = float(max(max(each) for each in cubes))
        self.program = OrbitProgram(room, len(self.roots), self.highest)
        self.program.add(first)

    def price(self, solution: Solution) -> int:
        """Grow trees at the prices of a solution; return the number of new ones."""
        if self.begun:
            fresh = self._grow_priced_trees(solution)
        else:
            trees = [(root, rise, _ANY) for root in self.roots for rise in _RISES] * self.times
            fresh = self._grow_trees(trees, self._perturb_prices(self.network.scarcity, _NOISE[-1], len(trees)))
        self.begun = True
        if fresh:
            self.program.forget(solution)
            self.program.add(fresh)
        return len(fresh)

    def _grow_priced_trees(self, solution: Solution) -> list[Column]:
        """Grow trees at a solution's prices and at smoothed earlier ones, both randomly perturbed."""
        price = solution.price / (solution.price.max(initial=0.0) or 1.0)
        self.before = _BEFORE * self.before + (1 - _BEFORE) * price if self.fitted else price
        self.fitted = solution.fits
        rises = _RISES if self.times else _RISES[:-1]
        trees = [(root, rise, _ANY) for root in self.roots for rise in rises]
        if solution.fits and self.times:
            high = {column.root: column.height for column in sorted(solution.used, key=lambda column: column.height)}
            trees += [(root, _RISES[0], high[root] + more) for root in self.roots for more in _LOWER]
        least = _LEAST * self.network.scarcity
        prices = zip((price, self.before), _NOISE, strict=True)
        return self._grow_trees(
            trees * len(_NOISE),
            np.concatenate([self._perturb_prices(each + least, noise, len(trees)) for each, noise in prices]),
        )

    def _perturb_prices(self, price: Floats, noise: float, times: int) -> Floats:
        return np.asarray(price * (1 + noise * self.random.random((times, len(price)))))

    def exact(self, solution: Solution) -> OrbitForest | None:
        """Solve exactly for the weights of the used columns and grow their trees; None if impossible.

        If the weights have no small common denominator, fall back to an earlier solution, to one without some of
        the columns, or to weights rounded in rooms of which a part is left free where possible.
        """
        kept = self._weigh_columns(solution)
        if not kept:
            others = sorted([*self.kept, *self._alternative_solutions()], key=lambda other: other.value)
            kept = next((each for each in map(self._weigh_columns, others) if each), [])
        if not kept:
            narrow = self.program.solve(low=False).price > EXACT
            spared = self.program.solve(spare=np.where(narrow, 0.0, _SPARE))
            kept = self._weigh_columns(spared, rounded=True) if spared.fits else []
        if not kept:
            return None
        trees = tuple(self._tree(column) for column, _ in kept)
        return OrbitForest(trees, tuple(w for _, w in kept), self.program.solved, self.tried)

    def _alternative_solutions(self) -> Iterator[Solution]:
        """Yield solutions that fit, each of a random part of the columns."""
        for _ in range(_OTHERS):
            drawn = self.random.random(len(self.program.columns)) < _PART
            columns = [column for column, stays in zip(self.program.columns, drawn.tolist(), strict=True) if stays]
            if len({column.root for column in columns}) == len(self.roots):
                program = OrbitProgram(self.program.room, len(self.roots), self.highest)
                program.add(columns)
                if (solution := program.solve()).fits:
                    yield solution

    def keep(self, solution: Solution) -> None:
        """Store a solution that fits and is better than the stored ones."""
        if solution.fits and (not self.kept or solution.value < self.kept[-1].value):
            self.kept.append(solution)

    def _weigh_columns(self, solution: Solution, *, rounded: bool = False) -> list[tuple[Column, Fraction]]:
        """Return the used columns with their exact weights; empty if there are none."""
        root, uses = [column.root for column in solution.used], [column.uses.tolist() for column in solution.used]
        if rounded:
            weight = rounded_weights(uses, root, self.network.room, solution.weight.tolist())
        else:
            weight = exact_weights(uses, root, self.network.room, np.flatnonzero(solution.full).tolist())
        return [(column, w) for column, w in zip(solution.used, weight or [], strict=False) if w]

    def _grow_trees(self, trees: list[_TreeRequest], prices: Floats) -> list[Column]:
        """Grow trees at prices of orbits, shared or one row per tree; return the new ones."""
        fresh: list[Column] = []
        prices = np.broadcast_to(prices, (len(trees), len(self.network.room)))
        step = max(_AT_ONCE // len(self.network.ends), 1)
        for begin in range(0, len(trees), step):
            some, at = trees[begin : begin + step], prices[begin : begin + step]
            uses, heights = self._uses(some, at)
            for j, (asked, height) in enumerate(zip(some, heights.tolist(), strict=True)):
                root, rise, limit = asked
                key = root, height, uses[j].tobytes()
                if height >= 0 and key not in self.known:
                    self.known.add(key)
                    fresh.append(Column(root, uses[j], height, at[j], rise, limit))
        return fresh

    def _uses(self, trees: list[_TreeRequest], prices: Floats) -> tuple[Ints, Ints]:
        """Compute the uses of every orbit, shape (trees, orbits), and heights, -1 for incomplete trees."""
        network, count = self.network, len(trees)
        self.tried, self.grown = self.tried + count, self.grown + count * len(network.ends)
        number, rise, limit = zip(*trees, strict=True)
        roots, rises, limits = network.roots[list(number)], np.array(rise), np.array(limit)
        uses, heights = np.empty(prices.shape, dtype=np.int64), np.empty(count, dtype=np.int64)
        net = *network.arcs, network.ends
        while True:
            links = np.empty(self.path_links, dtype=np.int64)
            prices = np.ascontiguousarray(prices)
            if priced_uses(roots, rises, limits, prices, network.orbit, net, links, uses, heights) == count:
                return uses, heights
            self.path_links *= 2

    def _tree(self, column: Column) -> OrbitTree:
        """Grow the tree of a column again."""
        network = self.network
        edges, nodes = int(network.ends.sum()) - 1, len(network.ends)
        parent, child = np.empty(edges, dtype=np.int64), np.empty(edges, dtype=np.int64)
        offset, depth = np.empty(edges + 1, dtype=np.int64), np.empty(nodes, dtype=np.int64)
        links = np.empty(self.path_links, dtype=np.int64)
        each, node = column.price[network.orbit], int(network.roots[column.root])
        tree = parent, child, offset, links, depth
        priced_tree(node, (*network.arcs, network.ends), each, column.rise, column.limit, tree)
        return OrbitTree(column.root, parent, child, offset, links[: offset[-1]].copy(), int(depth.max()))
