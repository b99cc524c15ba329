"""Forests of networks with symmetry: trees of one root in every orbit, packed by their links per orbit.

Where translations move every rank but by nothing (:class:`~...core.orbits.TreeOrbits`), a tree and all that it is moved
to load every link of an orbit alike. So what a forest may use is one number for every orbit of links, however large the
network is, and weights of trees are columns of a small linear program: the trees of every root weigh 1, and no orbit of
links is used beyond its room. A forest that is as fast as the optimum exists: the average over all motions of any
optimal one. Columns come from its dual prices: a tree that is cheap at these prices, with more or less weight on how
low it is (:mod:`.priced_tree`). Once the rooms suffice, the sum of the cubes of all heights is brought down. In the end
the weights are solved for exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from ...core.schedule import Bools, Floats, Ints
from ..graphs.network import edges_by
from .exact_weights import exact_weights, rounded_weights
from .priced_tree import priced_tree

#: What depth costs, in prices of the dearest link: cheap trees, those between, and low ones.
_RISES = (1e-7, 0.01, 0.1, 0.5, 10.0)

#: By how much prices are changed at random.
_NOISE = (0.001, 0.3)

#: What links cost at least: this part of the dearest, in proportion to how little room they have.
_LEAST = 1e-3

#: Cost of a forest that needs twice the room, in the largest cube of a height.
_TOO_MUCH = 100.0

#: Relative error of floating-point linear programs.
_EXACT = 1e-9

#: Rounds: at most, and without gain of this part until it ends.
_ROUNDS, _IDLE, _GAIN = 200, 20, 1e-3

#: Nodes of trees that are grown until no more is tried to make trees lower.
_WORK = 30_000_000

#: Nodes of trees up to which small networks are packed again, with other changes of prices.
_AGAIN = 60_000

#: Columns of the program, for each of its rows.
_COLUMNS = 8

#: Part of its value that a solution must have to be remembered instead of another one.
_BETTER = 0.9

#: Part of a room that is left free where weights are rounded.
_SPARE = 1e-3


@dataclass(frozen=True, eq=False)
class OrbitNetwork:
    """A network whose links come in orbits.

    Parameters
    ----------
    tail, head : array of int, shape (links,)
        Ends of links.
    ends : array of bool, shape (nodes,)
        Nodes that trees span; all others only pass on.
    roots : array of int
        One node of every orbit of roots.
    orbit : array of int, shape (links,)
        Orbit of every link.
    room : tuple of Fraction
        For every orbit, how often trees of total weight 1 from each of the roots may use its links.
    """

    tail: Ints
    head: Ints
    ends: Bools
    roots: Ints
    orbit: Ints
    room: tuple[Fraction, ...]

    @cached_property
    def arcs(self) -> tuple[Ints, Ints, Ints]:
        """Links by tail: where those of each node begin, where they lead, and which they are."""
        start, link = edges_by(self.tail, len(self.ends))
        return start, self.head[link], link

    @cached_property
    def scarcity(self) -> Floats:
        """How little room there is, 1 where there is least; shape (orbits,)."""
        scarce = 1 / np.array([float(room) for room in self.room])
        return np.asarray(scarce / scarce.max(), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class OrbitTree:
    """A tree of one of the roots, by nodes of the network.

    Parameters
    ----------
    root : int
        Position in ``OrbitNetwork.roots``.
    parent, child : array of int, shape (edges,)
        Nodes; an edge comes after the one that reaches its parent.
    offset : array of int, shape (edges + 1,)
        Where each edge's links begin.
    links : array of int
        Links of all edges, from parent to child.
    height : int
        Most edges between the root and a node.
    """

    root: int
    parent: Ints
    child: Ints
    offset: Ints
    links: Ints
    height: int


@dataclass(frozen=True, eq=False)
class _Column:
    """What the linear program knows of a tree, and how to grow it again."""

    root: int
    uses: Ints
    height: int
    price: Floats
    rise: float


@dataclass(frozen=True, eq=False)
class _Solution:
    """A solution of the linear program: weights, how much room is lacking, prices of orbits and of roots, and value."""

    weight: Floats
    lacking: float
    price: Floats
    worth: Floats
    value: float
    full: Bools


@dataclass(frozen=True, eq=False)
class OrbitForest:
    """Trees with exact weights, of which those of every root add up to 1.

    Parameters
    ----------
    trees : tuple of OrbitTree
        The trees.
    weight : tuple of Fraction
        Of every tree, greater than 0.
    rounds, tried : int
        Linear programs that were solved, and trees that were grown for them.
    """

    trees: tuple[OrbitTree, ...]
    weight: tuple[Fraction, ...]
    rounds: int
    tried: int

    def tallness(self) -> tuple[int, Fraction]:
        """The maximum of the heights, and their weighted sum."""
        sums = sum((w * tree.height for tree, w in zip(self.trees, self.weight, strict=True)), Fraction(0))
        return max(tree.height for tree in self.trees), sums


def pack_orbits(network: OrbitNetwork, seed: int, stop: Callable[[], bool] = lambda: False) -> OrbitForest | None:
    """Pack trees of the roots into the room of the orbits; None if none were found that fit, or if told to stop.

    Parameters
    ----------
    network : OrbitNetwork
        Network and rooms.
    seed : int
        Of the changes of prices.
    stop : callable
        Whether to end early.
    """
    best: OrbitForest | None = None
    grown = 0
    while grown < _AGAIN and not stop():
        packing = _Packing(network, seed)
        found = _packed(packing, stop)
        grown, seed = grown + packing.grown, seed + 1
        if found is not None and (best is None or found.tallness() < best.tallness()):
            best = found
        if best is None or sum(tree.height**3 * w for tree, w in zip(best.trees, best.weight, strict=True)) <= (
            packing.least * len(network.roots) * (1 + _EXACT)
        ):
            break
    return best


def _packed(packing: _Packing, stop: Callable[[], bool]) -> OrbitForest | None:
    """Grow trees until they fit and no more is gained by others, or all are as low as any."""
    solution, best, idle = packing.solve(), np.inf, 0
    for _ in range(_ROUNDS):
        fits = solution.lacking <= _EXACT
        idle = 0 if solution.value < best * (1 - _GAIN) else idle + 1
        best = min(best, solution.value)
        done = fits and (solution.value <= packing.least * (1 + _EXACT) or packing.grown > _WORK)
        if done or idle >= _IDLE:
            break
        if stop():
            return None
        if fits:
            packing.keep(solution)
        if packing.price(solution):
            solution = packing.solve()
    return packing.exact(solution) if solution.lacking <= _EXACT else None


class _Packing:
    """The linear program while it grows."""

    def __init__(self, network: OrbitNetwork, seed: int) -> None:
        self.network, self.random = network, np.random.default_rng(seed)
        self.columns: list[_Column] = []
        self.known: set[tuple[int, int, bytes]] = set()
        self.room = np.array([float(room) for room in network.room])
        self.rounds = self.grown = self.tried = 0
        self.kept: list[tuple[_Column, Fraction]] = []
        self.kept_value = np.inf
        lowest = []
        for root in range(len(network.roots)):
            for rise in (10.0, 0.1, 1e-6):
                self._add(root, network.scarcity, rise)
            lowest.append(min(column.height for column in self.columns if column.root == root))
        #: No forest has a smaller sum of cubes, as a tree at a high price of depth is a lowest one.
        self.least = float(np.mean(np.array(lowest) ** 3))
        self.highest = float(max(column.height for column in self.columns) ** 3)

    def price(self, solution: _Solution) -> int:
        """Grow trees at the prices of a solution; gives how many are new."""
        dearest = solution.price.max(initial=0.0) or 1.0
        price = solution.price / dearest + _LEAST * self.network.scarcity
        before = len(self.columns)
        for noise in _NOISE:
            for root in range(len(self.network.roots)):
                for rise in _RISES:
                    self._add(root, price * (1 + noise * self.random.random(len(price))), rise)
        fresh = len(self.columns) - before
        if fresh:
            self._forget(solution)
        return fresh

    def solve(self, *, spare: Floats | None = None, low: bool = True) -> _Solution:
        """Solve the program: the least lack of room, then the least sum of the cubes of heights.

        Parameters
        ----------
        spare : array of float, shape (orbits,)
            Parts of the rooms that are left free.
        low : bool
            Whether heights count.
        """
        from scipy import optimize

        self.rounds += 1
        orbits, roots, count = len(self.room), len(self.network.roots), len(self.columns)
        uses = np.array([column.uses for column in self.columns]).T / self.room[:, None]
        whole = np.zeros((roots, count + 1))
        whole[[column.root for column in self.columns], np.arange(count)] = 1.0
        cost = self._cost(self.columns) if low else np.zeros(count)
        solve: Any = optimize.linprog
        answer = solve(
            np.append(cost, _TOO_MUCH * self.highest),
            A_ub=np.hstack([uses, -np.ones((orbits, 1))]),
            b_ub=np.ones(orbits) if spare is None else 1 - spare,
            A_eq=whole,
            b_eq=np.ones(roots),
            bounds=(0, None),
            method="highs-ds",
        )
        weight, lacking = answer.x[:-1], float(answer.x[-1])
        price = np.maximum(-answer.ineqlin.marginals, 0.0) / self.room
        full = answer.ineqlin.residual <= _EXACT
        return _Solution(weight, lacking, price, answer.eqlin.marginals, float(answer.fun), full)

    def exact(self, solution: _Solution) -> OrbitForest | None:
        """Solve for the weights of the used columns exactly, and grow their trees again; None if that is not possible.

        Where the weights have no small common denominator, those of an earlier solution are taken; or they are rounded,
        in rooms of which some is left free where that is possible.
        """
        kept = self._weighted(solution) or self.kept
        if not kept:
            narrow = self.solve(low=False).price > _EXACT
            spared = self.solve(spare=np.where(narrow, 0.0, _SPARE))
            kept = self._weighted(spared, rounded=True) if spared.lacking <= _EXACT else []
        if not kept:
            return None
        trees = tuple(self._tree(column.root, column.price, column.rise) for column, _ in kept)
        return OrbitForest(trees, tuple(w for _, w in kept), self.rounds, self.tried)

    def keep(self, solution: _Solution) -> None:
        """Remember a solution that is much better than the one before, if its weights have a common denominator."""
        if solution.value < self.kept_value * _BETTER and (weighted := self._weighted(solution)):
            self.kept, self.kept_value = weighted, solution.value

    def _weighted(self, solution: _Solution, *, rounded: bool = False) -> list[tuple[_Column, Fraction]]:
        """The used columns with their exact weights; none where these are not found."""
        used = [self.columns[j] for j in np.flatnonzero(solution.weight > _EXACT).tolist()]
        root, uses = [column.root for column in used], [column.uses.tolist() for column in used]
        if rounded:
            given = solution.weight[solution.weight > _EXACT].tolist()
            weight = rounded_weights(uses, root, self.network.room, given)
        else:
            weight = exact_weights(uses, root, self.network.room, np.flatnonzero(solution.full).tolist())
        return [(column, w) for column, w in zip(used, weight or [], strict=False) if w]

    def _cost(self, columns: Sequence[_Column]) -> Floats:
        cubes = np.array([column.height for column in columns], dtype=np.float64) ** 3
        return np.asarray(cubes / len(self.network.roots), dtype=np.float64)

    def _add(self, root: int, price: Floats, rise: float) -> int:
        tree = self._tree(root, price, rise)
        uses = np.bincount(self.network.orbit[tree.links], minlength=len(price))
        key = root, tree.height, uses.tobytes()
        if key in self.known:
            return 0
        self.known.add(key)
        self.columns.append(_Column(root, uses, tree.height, price, rise))
        return 1

    def _tree(self, root: int, price: Floats, rise: float) -> OrbitTree:
        network = self.network
        edges, nodes = int(network.ends.sum()) - 1, len(network.ends)
        self.tried, self.grown = self.tried + 1, self.grown + nodes
        parent, child = np.empty(edges, dtype=np.int64), np.empty(edges, dtype=np.int64)
        offset, depth = np.empty(edges + 1, dtype=np.int64), np.empty(nodes, dtype=np.int64)
        each = price[network.orbit]
        room = 4 * edges
        while True:
            links = np.empty(room, dtype=np.int64)
            node = int(network.roots[root])
            count = priced_tree(node, *network.arcs, each, rise, network.ends, parent, child, offset, links, depth)
            if count >= 0:
                break
            room *= 2
        return OrbitTree(root, parent, child, offset, links[: offset[-1]].copy(), int(depth.max()))

    def _forget(self, solution: _Solution) -> None:
        """Leave out the columns that are dearest at the prices of a solution, but none that it uses."""
        most, old = _COLUMNS * (len(self.room) + len(self.network.roots)), len(solution.weight)
        if old > most:
            kept = self._cheapest(solution, most // 2)
            self.columns = [self.columns[j] for j in kept] + self.columns[old:]

    def _cheapest(self, solution: _Solution, most: int) -> list[int]:
        """The columns that a solution uses, and those that cost least beyond their worth."""
        old = self.columns[: len(solution.weight)]
        uses = np.array([column.uses for column in old])
        beyond = self._cost(old) + uses @ solution.price - solution.worth[[column.root for column in old]]
        beyond[solution.weight > 0] = -np.inf
        return sorted(np.argsort(beyond, kind="stable")[:most].tolist())
