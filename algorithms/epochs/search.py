"""Search for a short schedule: forty constructions, then rip-up and re-route from the best of them."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice, product

import numpy as np

from ...core.budget import Budget
from ...core.schedule import Bools, Ints, offsets, ranges
from .insertion import Heap, KeyWeights, Search, empty_heap, insert, prune, spread_prices
from .problem import ArcTable, EpochNetwork, arc_table
from .reroute import MOST, walk
from .state import ABSENT, SearchState, empty_state, retrace

#: weights of the prices, of the rest of the way and of the link's own delay, in the order of trials
WEIGHTS = (0.0, 2.0, 0.5, 8.0, 1000.0)
TAILS = (0.0, 0.5)
SLOWNESS = (0.0, 1.0)

SLICE = 2_000_000  #: arcs examined between two looks at the clock
PRICE_ROUNDS = 60  #: rounds of multiplicative weights for the second row of prices
CONSTRUCTIONS = 0.3  #: part of the effort that constructions may take once there is a schedule
LOOKS = 4  #: times that a construction examines every arc of every chunk, about; it needs so much effort left


@dataclass(frozen=True, eq=False)
class EpochPlan:
    """Schedule of paths from storing node to storing node."""

    makespan: int  #: epoch of the last needed arrival
    chunk: Ints  #: (moves,) chunk and first epoch of every move
    start: Ints
    offset: Ints  #: (moves + 1,) first link of every move, as an index into ``links``
    links: Ints  #: (hops,) links of all moves, each started on as soon as the chunk is there

    @property
    def paths(self) -> list[tuple[int, ...]]:
        """Links of every move."""
        return [tuple(path.tolist()) for path in np.split(self.links, self.offset[1:-1])] if len(self.chunk) else []


@dataclass(eq=False)
class EpochSearch:
    """Search on one network; every call continues from the best schedule."""

    network: EpochNetwork  #: problem; every node that lacks a chunk can be reached
    bound: int  #: lower bound on the makespan; the search ends once it is met
    budget: Budget
    effort: int  #: number of arcs that may be examined
    known_arcs: ArcTable | None = None  #: arcs of the network if already known; links may share a row of reservations
    starts: int = 0  #: number of constructions kept for :meth:`improve_several`
    on_improvement: "Callable[[EpochSearch], None]" = lambda _: None
    arcs: ArcTable = field(init=False)
    best: int | None = field(default=None, init=False)
    moves: int = field(default=0, init=False)
    constructions: int = field(default=0, init=False)
    work: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        network = self.network
        self.arcs = self.known_arcs or arc_table(network)
        self._price = (network.window / network.room)[None, :].astype(np.float64)
        self._lacking = network.lacking
        compute = network.stores
        self._partial: Bools = np.logical_not((network.initial_holders | network.need)[:, compute].all(axis=1))
        self._reach = 3 * self.bound + 4 * int(network.window.max()) + 8
        self._best: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
        self._state: SearchState | None = None
        self._schedules: list[tuple[int, Ints, Ints]] = []
        modes = [True] if not self._partial.any() else [False, True]
        every = product((0, 1), TAILS, SLOWNESS, WEIGHTS, modes)
        self._settings = (
            (KeyWeights(weight, slow, tail, 0.0, 0.0, 0), prices, mode) for prices, tail, slow, weight, mode in every
        )

    @property
    def is_optimal(self) -> bool:
        """True if the bound is met."""
        return self.best is not None and self.best <= self.bound

    def _is_exhausted(self, part: float = 1.0) -> bool:
        return self.work >= part * self.effort or self.budget.is_exhausted

    def _initial_state(self) -> SearchState:
        rows = int(self.arcs.row.max()) + 1
        return empty_state(self.network.initial_holders, len(self.network.tail), rows, self._reach, self.arcs.longest)

    def construct(self, most: int | None = None) -> None:
        """Try the remaining constructions, at most ``most``, and go on until there is a schedule."""
        items = self.network.chunks * max(len(self.arcs.arc_head), 1)
        if self.is_optimal or (self.best is not None and self.work + LOOKS * items > CONSTRUCTIONS * self.effort):
            return
        heap = empty_heap(items)
        for keys, prices, together in islice(self._settings, most):
            if self.is_optimal or (self.best is not None and self._is_exhausted(CONSTRUCTIONS)):
                return
            self._construct_once(heap, keys, self._prices(prices), together)
        while self.best is None:
            self._reach *= 2
            self._construct_once(heap, KeyWeights(0.0, 0.0, 0.0, 0.0, 0.0, 0), self._price[0], True)

    def _prices(self, which: int) -> np.ndarray:
        """Return a row of prices: 0 for epochs that a start takes, 1 for prices spread over all links.

        Each use of the latter appends them to the rows that moves draw from, so that they are drawn more often.
        """
        if which:
            self._price = np.vstack([self._price, self._price_spread])
        return np.asarray(self._price[which])

    @cached_property
    def _price_spread(self) -> np.ndarray:
        heap = empty_heap(max(len(self.arcs.arc_head), 1))
        items, network = self.network.chunks * max(len(self.arcs.arc_head), 1), self.network
        rounds = max(1, min(PRICE_ROUNDS, self.effort // (20 * items)))  # which cost a small part of the effort
        return np.asarray(spread_prices(self.arcs, self._price[0], network.initial_holders, network.need, heap, rounds))

    def _construct_once(self, heap: Heap, keys: KeyWeights, price: np.ndarray, together: bool) -> None:
        state, arcs = self._initial_state(), self.arcs
        search = Search(arcs, state, self._lacking, self._partial, heap)
        everyone = np.arange(self.network.chunks)
        groups = [everyone] if together else list(everyone[:, None])
        self.constructions += 1
        for group in groups:
            late, work = insert(search, price, group, keys, 0, 1 << 60)
            self.work += work
            if late < 0:
                return
            for chunk in group[self._partial[group]]:
                prune(arcs, state, self._lacking, chunk)
        self._keep(state.arrival, state.arc, state.start)
        if self.starts:
            self._remember(self._makespan(state.arrival), state.arc.astype(np.int64), state.start.astype(np.int64))

    def _makespan(self, arrival: np.ndarray) -> int:
        return int(arrival.max(where=self._lacking, initial=0))

    def _remember(self, epochs: int, arc: Ints, start: Ints) -> None:
        """Keep a schedule to start from if it is new and among the best."""
        if not any(np.array_equal(arc, old[1]) and np.array_equal(start, old[2]) for old in self._schedules):
            self._schedules = sorted([*self._schedules, (epochs, arc, start)], key=lambda one: one[0])[: self.starts]

    def _keep(self, arrival: np.ndarray, arc: np.ndarray, start: np.ndarray) -> bool:
        epochs = self._makespan(arrival)
        if self.best is not None and epochs >= self.best:
            return False
        self.best = epochs
        self._best = (arrival.copy(), arc.copy(), start.copy())
        self.budget.progress(f"schedule of {epochs} epochs, bound {self.bound}")
        self.on_improvement(self)
        return True

    def rows(self) -> tuple[Ints, Ints] | None:
        """Return arc and start of every arrival, -1 without an arc, of the best schedule; None if there is none."""
        return None if self._best is None else (self._best[1].astype(np.int64), self._best[2].astype(np.int64))

    def adopt(self, arc: Ints, start: Ints) -> None:
        """Continue from a schedule if it is better; see :meth:`rows`."""
        longest = int(self.arcs.arc_delay.max()) + int(self.network.window.max())
        self._reach = max(self._reach, int(start.max()) + longest + 1)
        initial = np.where(self.network.initial_holders, np.int32(0), ABSENT)
        arrival = np.where(arc >= 0, start + self.arcs.arc_delay[arc], initial).astype(np.int32)
        if self._keep(arrival, arc.astype(np.int32), start.astype(np.int32)):
            self._state = None

    def improve(self, part: float = 1.0) -> None:
        """Rip up and re-route until the bound is met or a part of the effort is spent."""
        if self._best is None or self.best is None or self.is_optimal:
            return
        heap, state = empty_heap((MOST + 1) * max(len(self.arcs.arc_head), 1)), self.state()
        search = Search(self.arcs, state, self._lacking, self._partial, heap)
        while not self.is_optimal and not self._is_exhausted(part):
            effort, seed = min(SLICE, int(part * self.effort) - self.work + 1), self.budget.seed
            meets, self.moves, work = walk(search, self._price, self.best - 1, self.moves, seed, effort)
            self.work += work
            if meets:
                self._keep(state.arrival, state.arc, state.start)

    def improve_several(self) -> None:
        """Improve the best constructions by successive halving: short random walks are worth more than a long one."""
        if (rows := self.rows()) is not None and self.best is not None and self.starts:
            self._remember(self.best, *rows)
        walks = [self._start_from(arc, start) for _, arc, start in self._schedules]
        for rounds in range(len(walks).bit_length(), 0, -1):
            part = (self.effort - self.work) // (rounds * len(walks))
            for each in walks:
                before = each.work, each.moves
                each.effort = each.work + part
                each.improve()
                self.work += each.work - before[0]
                self.moves += each.moves - before[1]
                if (rows := each.rows()) is not None:
                    self.adopt(*rows)
                if self.is_optimal or self._is_exhausted():
                    return
            walks = sorted(walks, key=lambda each: each.best or 0)[: len(walks) // 2]

    def _start_from(self, arc: Ints, start: Ints) -> "EpochSearch":
        quiet = replace(self.budget, progress=lambda _: None)
        other = EpochSearch(self.network, self.bound, quiet, 0, self.arcs)
        other._price = self._price
        other.adopt(arc, start)
        return other

    def state(self) -> SearchState:
        """Return the state of the walk, or before the first move that of the best schedule, which must exist."""
        self._state = self._state or self._restore_best()
        return self._state

    def _restore_best(self) -> SearchState:
        assert self._best is not None  # noqa: S101 (the caller has looked)
        state = self._initial_state()
        _, arc, start = self._best
        for chunk in range(self.network.chunks):
            retrace(self.arcs, state, chunk, arc[chunk], start[chunk])
        return state

    def plan(self) -> EpochPlan | None:
        """Return the best schedule without unneeded sends, None if there is none."""
        if self._best is None or self.best is None:
            return None
        arrival, arcs, start = self._best
        if self._partial.any():
            state = self._restore_best()
            for one in np.flatnonzero(self._partial).tolist():
                prune(self.arcs, state, self._lacking, one)
            arrival, arcs, start = state.arrival, state.arc, state.start
        chunk, node = np.nonzero((arcs >= 0) & (arrival < ABSENT))
        arc = arcs[chunk, node].astype(np.int64)
        first, hops = self.arcs.hop_first[arc], np.diff(self.arcs.hop_first)[arc]
        links = self.arcs.hop_link[ranges(first, hops)].astype(np.int64)
        return EpochPlan(self.best, chunk, start[chunk, node].astype(np.int64), offsets(hops), links)
