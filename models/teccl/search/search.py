"""Search for a short schedule: forty constructions, then rip-up and re-route from the best of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice, product

import numpy as np

from ....core.budget import Budget
from ....core.schedule import Bools, Ints
from .arcs import Arcs, make_arcs
from .kernels.grow import Taste, insert, prune
from .kernels.heap import Heap, empty_heap
from .kernels.prices import spread_prices
from .kernels.state import ABSENT, State, empty_state, retrace
from .kernels.walk import MOST, makespan, walk
from .problem import EpochNetwork

#: Weights of the prices, of the rest of the way and of the link's own delay, in the order in which they are tried.
WEIGHTS = (0.0, 2.0, 0.5, 8.0, 1000.0)
TAILS = (0.0, 0.5)
SLOWNESS = (0.0, 1.0)

#: Arcs looked at between two looks at the clock.
SLICE = 2_000_000

#: Rounds of multiplicative weights for the second row of prices.
PRICE_ROUNDS = 60

#: Part of the effort that constructions may take once there is a schedule.
CONSTRUCTIONS = 0.3


@dataclass(frozen=True, eq=False)
class Plan:
    """A schedule: every chunk's ways from storing node to storing node.

    Parameters
    ----------
    makespan : int
        Last arrival that somebody needs.
    chunk, start : array of int, shape (moves,)
        What goes, and when.
    paths : list of tuple of int
        Links of every move, started on as soon as the chunk is there.
    """

    makespan: int
    chunk: Ints
    start: Ints
    paths: list[tuple[int, ...]]


@dataclass(eq=False)
class Search:
    """A search on one network; every call goes on from the best schedule.

    Parameters
    ----------
    network : EpochNetwork
        The problem; every node that lacks a chunk can be reached.
    bound : int
        No schedule is shorter: where it is met, the search ends.
    budget : Budget
        Limits and seed.
    effort : int
        Arcs that may be looked at.
    known_arcs : Arcs, optional
        Of the network, if they are known; links may have a row of reservations together.
    told : callable
        Told whenever there is a better schedule.
    """

    network: EpochNetwork
    bound: int
    budget: Budget
    effort: int
    known_arcs: Arcs | None = None
    told: Callable[[Search], None] = lambda _: None
    arcs: Arcs = field(init=False)
    best: int | None = field(default=None, init=False)
    moves: int = field(default=0, init=False)
    constructions: int = field(default=0, init=False)
    work: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        network = self.network
        self.arcs = self.known_arcs or make_arcs(network)
        self._price = self.arcs.price
        self._lacking = network.lacking
        compute = network.stores
        self._partial: Bools = np.logical_not((network.held | network.need)[:, compute].all(axis=1))
        self._reach = 3 * self.bound + 4 * int(network.window.max()) + 8
        self._best: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
        self._state: State | None = None
        self._left = self._tastes()

    @property
    def done(self) -> bool:
        """Whether the bound is met."""
        return self.best is not None and self.best <= self.bound

    def _spent(self, part: float = 1.0) -> bool:
        return self.work >= part * self.effort or self.budget.exhausted

    def _fresh(self) -> State:
        rows = int(self.arcs.roads.row.max()) + 1
        return empty_state(self.network.held, self.network.links, rows, self._reach, self.arcs.longest)

    def construct(self, most: int | None = None) -> None:
        """Try what is left of the portfolio, or so many of it, at least until there is a schedule."""
        chunks = self.network.chunks
        if self.done:
            return
        heap = empty_heap(chunks * max(len(self.arcs.tail), 1))
        for taste, prices, together in islice(self._left, most):
            if self.done or (self.best is not None and self._spent(CONSTRUCTIONS)):
                return
            self._construct_once(heap, taste, self._prices(prices), together)
        while self.best is None:
            self._reach *= 2
            self._construct_once(heap, Taste(0.0, 0.0, 0.0, 0.0, 0), self._price[0], True)

    def _tastes(self) -> Iterator[tuple[Taste, int, bool]]:
        modes = [True] if not self._partial.any() else [False, True]
        for prices, tail, slow, weight in product((0, 1), TAILS, SLOWNESS, WEIGHTS):
            for together in modes:
                yield Taste(weight, slow, tail, 0.0, 0), prices, together

    def _prices(self, which: int) -> np.ndarray:
        if which >= len(self.arcs.price):
            heap = empty_heap(max(len(self.arcs.tail), 1))
            even = spread_prices(
                self.arcs.roads, self._price[0], self.network.held, self.network.need, heap, self._price_rounds()
            )
            self._price = np.vstack([self._price, even])
        return np.asarray(self._price[which])

    def _price_rounds(self) -> int:
        """Rounds that stay within a small part of the effort."""
        return max(1, min(PRICE_ROUNDS, self.effort // (20 * self.network.chunks * max(len(self.arcs.tail), 1))))

    def _construct_once(self, heap: Heap, taste: Taste, price: np.ndarray, together: bool) -> None:
        state, arcs = self._fresh(), self.arcs
        everyone = np.arange(self.network.chunks)
        groups = [everyone] if together else list(everyone[:, None])
        self.constructions += 1
        for group in groups:
            late, work = insert(
                arcs.roads, state, self._lacking, arcs.tail, price, arcs.ecc, group, taste, heap, 0, 1 << 60
            )
            self.work += work
            if late < 0:
                return
            for chunk in group[self._partial[group]]:
                prune(arcs.roads, state, self._lacking, arcs.tail, chunk)
        self._keep(state)

    def _keep(self, state: State) -> bool:
        found = int(makespan(state, self._lacking))
        if self.best is not None and found >= self.best:
            return False
        self.best = found
        self._best = (state.arrival.copy(), state.arc.copy(), state.start.copy())
        self.budget.progress(f"schedule of {found} epochs, bound {self.bound}")
        self.told(self)
        return True

    def rows(self) -> tuple[Ints, Ints] | None:
        """Give the best schedule as arcs and starts; both of shape (chunks, nodes), -1 where a chunk does not come by an arc."""
        return None if self._best is None else (self._best[1].astype(np.int64), self._best[2].astype(np.int64))

    def adopt(self, arc: Ints, start: Ints) -> None:
        """Go on from a schedule, if it is better; see :meth:`rows`."""
        longest = int(self.arcs.roads.arc_delay.max()) + int(self.network.window.max())
        self._reach = max(self._reach, int(start.max()) + longest + 1)
        state = self._fresh()
        arcs, starts = arc.astype(np.int32), start.astype(np.int32)
        for chunk in range(self.network.chunks):
            retrace(self.arcs.roads, state, chunk, arcs[chunk], starts[chunk])
        if self._keep(state):
            self._state = None

    def improve(self, part: float = 1.0) -> None:
        """Rip up and re-route until the bound is met or a part of the effort is spent."""
        if self._best is None or self.best is None:
            return
        arcs = self.arcs
        heap = empty_heap((MOST + 1) * max(len(arcs.tail), 1))
        state = self.state()
        while not self.done and not self._spent(part):
            effort = min(SLICE, int(part * self.effort) - self.work + 1)
            met, self.moves, work = walk(
                arcs.roads,
                state,
                self._lacking,
                self._partial,
                arcs.tail,
                self._price,
                arcs.ecc,
                heap,
                self.best - 1,
                self.moves,
                self.budget.seed,
                effort,
            )
            self.work += work
            if met:
                self._keep(state)

    def state(self) -> State:
        """Give the state that the walk is in, or the best schedule's before the first move; there must be one."""
        if self._state is None:
            self._state = self._restored()
        return self._state

    def _restored(self) -> State:
        assert self._best is not None  # noqa: S101 (the caller has looked)
        state = self._fresh()
        _, arc, start = self._best
        for chunk in range(self.network.chunks):
            retrace(self.arcs.roads, state, chunk, arc[chunk], start[chunk])
        return state

    def plan(self) -> Plan | None:
        """Give the best schedule without what nobody needs."""
        if self._best is None or self.best is None:
            return None
        state = self._restored()
        for one in np.flatnonzero(self._partial).tolist():
            prune(self.arcs.roads, state, self._lacking, self.arcs.tail, one)
        chunk, node = np.nonzero((state.arc >= 0) & (state.arrival < ABSENT))
        arc = state.arc[chunk, node].astype(np.int64)
        roads = self.arcs.roads
        paths = [tuple(roads.hop_link[roads.hop_first[a] : roads.hop_first[a + 1]].tolist()) for a in arc.tolist()]
        return Plan(self.best, chunk.astype(np.int64), state.start[chunk, node].astype(np.int64), paths)
