"""The search: conditions in an order, each placed as early as it can be; many orders, then ruin and recreate.

It ends when a proved bound is met or the effort is used up. Grids are also tried with ways along the dimensions.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ...algorithms.paths.grid import farthest_first, grid_sides, grid_ways
from ...algorithms.paths.reservations import PathNetwork, Reservations
from ...algorithms.paths.search import (
    INTERVALS,
    SENDS,
    DistanceTables,
    Jobs,
    SearchScratch,
    SendPool,
    empty_pool,
    place_all,
    remove_all,
    scratch_of,
    take_all,
)
from ...core.budget import Budget
from ...core.schedule import Ints, ranges

_EDGES = 2**22  #: Edges that searches may pass between two looks at the budget: a fraction of a second.


@dataclass(eq=False)
class Stage:
    """Jobs to schedule in one stage, and sends already fixed.

    The network is in ticks, or in steps (``stepped``). ``fixed`` are sends of an earlier stage on it, ``lower`` is a
    bound on any schedule in ticks. Of copies in steps, ``clock`` has the ticks of the network for which a chunk holds a
    link, and after which it has arrived.
    """

    net: PathNetwork
    jobs: Jobs
    dist: DistanceTables
    fixed: tuple[Jobs, SendPool] | None
    lower: int
    stepped: bool
    clock: tuple[int, int] | None = None

    @cached_property
    def length(self) -> Ints:
        """Ticks from the release of every job's chunk to its farthest target, at least; by the size of the chunk."""
        jobs, net = self.jobs, self.net
        owner = np.repeat(np.arange(jobs.number), np.diff(jobs.target_first))
        ticks = self.dist.ticks[jobs.target, jobs.source[owner]]
        longest = np.maximum.reduceat(ticks, jobs.target_first[:-1]) if jobs.number else ticks
        scaled = longest * net.units[jobs.size] // int(net.units.min())
        return np.asarray(scaled + jobs.release, dtype=np.int64)

    @property
    def single(self) -> bool:
        """True if every chunk has one target."""
        return len(self.jobs.target) == self.jobs.number

    @property
    def plain(self) -> bool:
        """True if one search may find all targets of a chunk: no edge shares a link, no switch is limited."""
        net = self.net
        return len(net.link) == len(net.tail) and bool(net.branches.all()) and bool((net.room < 0).all())


@dataclass(eq=False)
class Attempt:
    """Links and buffers with the jobs that have been placed so far; grows as it must."""

    stage: Stage
    scratch: SearchScratch
    busy: Reservations
    pool: SendPool

    @classmethod
    def empty(cls, stage: Stage, seed: int) -> "Attempt":
        """Begin with what the earlier stage has taken."""
        net, jobs = stage.net, stage.jobs
        hops = stage.dist.hops[jobs.target, np.repeat(jobs.source, np.diff(jobs.target_first))]
        expected = int(hops.sum() if stage.single else len(jobs.target) * 2)
        links = int(net.link.max()) + 1
        earlier = 0 if stage.fixed is None else int(stage.fixed[1].fill[0])
        ticks = stage.lower + int(stage.length.max(initial=0)) + earlier
        words = np.zeros((links, ticks // 64 + 2 if stage.stepped else 0), dtype=np.uint64)
        room = 0 if stage.stepped else 16
        stays = (len(net.branches), 16 if bool((net.room >= 0).any()) else 0)
        shapes = {"begin": (links, room), "end": (links, room), "runs": (links,), "stays": stays[:1]}
        shapes |= dict.fromkeys(("stay_begin", "stay_end", "stay_units"), stays)
        columns: dict[str, Any] = {name: np.zeros(shape, dtype=np.int64) for name, shape in shapes.items()}
        busy = Reservations(words=words, **columns)
        pool = empty_pool(jobs.number, expected + expected // 8 + 2 * len(net.branches))
        result = cls(stage, scratch_of(net, seed), busy, pool)
        if stage.fixed is not None:
            if not stage.stepped:
                result.widen(int(uses(net, stage.fixed[1].edge).max()) + 16)
            take_all(net, result.busy, *stage.fixed, np.arange(stage.fixed[0].number))
        return result

    def place(self, order: Ints, *, whole: bool, slack: int, budget: Budget) -> int:
        """Place jobs in an order; give how many there was time for."""
        stage, count = self.stage, 0
        # A job has one search, or one for each of its targets, and a search may pass every edge.
        targets = np.diff(stage.jobs.target_first)[order]
        searches = len(order) if whole else int(targets.sum())
        jobs = max(1, _EDGES * len(order) // max(1, searches * len(stage.net.tail)))
        while count < len(order) and not budget.is_exhausted:
            batch = order[: count + jobs]
            tables = (stage.net, self.busy, stage.jobs, stage.dist, self.pool, self.scratch)
            count, halt = place_all(*tables, batch, count, whole, slack)
            if halt == SENDS:
                columns = {name: getattr(self.pool, name) for name in ("edge", "start", "parent")}
                longer = {name: np.concatenate([old, np.zeros_like(old)]) for name, old in columns.items()}
                self.pool = self.pool._replace(**longer)
            elif halt == INTERVALS:
                self.widen(2 * max(self.busy.begin.shape[1], self.busy.stay_begin.shape[1]))
            elif halt:
                words = self.busy.words
                self.busy = self.busy._replace(words=np.concatenate([words, np.zeros_like(words)], axis=1))
        return count

    def widen(self, room: int) -> None:
        """Assign every list of intervals this much room."""
        busy = self.busy
        names = ["begin", "end"] * (not self.stage.stepped)
        names += ["stay_begin", "stay_end", "stay_units"] * bool(busy.stay_begin.shape[1])
        wider: dict[str, Any] = {}
        for name in names:
            old = getattr(busy, name)
            wider[name] = np.zeros((len(old), max(room, old.shape[1])), dtype=np.int64)
            wider[name][:, : old.shape[1]] = old
        self.busy = busy._replace(**wider)

    @property
    def finish(self) -> int:
        """Tick at which the last target has its chunk."""
        return int(self.pool.finish.max(initial=0))


def uses(net: PathNetwork, edges: Ints) -> Ints:
    """Count the uses of every link by edges."""
    counts = np.bincount(edges, minlength=len(net.tail))
    return np.bincount(net.link, weights=np.repeat(counts, np.diff(net.part_first))).astype(np.int64)


@dataclass(frozen=True)
class Recipe:
    """Settings of an attempt.

    ``order`` is ``longest`` or ``random``; ``whole`` is one search for all targets of a chunk; ``slack`` counts edges
    beyond the shortest path, -1 for any number.
    """

    name: str
    order: str
    whole: bool = False
    slack: int = -1
    seed: int = field(default=0, compare=False)


def attempt(stage: Stage, recipe: Recipe, seed: int, budget: Budget) -> Attempt | None:
    """Place all jobs by a recipe; None if the budget ends first."""
    result = Attempt.empty(stage, seed)
    order = np.random.default_rng(seed).permutation(stage.jobs.number)
    if recipe.order == "longest":
        order = order[np.argsort(-stage.length[order], kind="stable")]
    count = result.place(order, whole=recipe.whole and stage.plain, slack=recipe.slack, budget=budget)
    return result if count == len(order) else None


def along_dimensions(stage: Stage, seed: int, variant: int) -> "StageResult | None":
    """Route a grid's pairs along the dimensions, farthest first; None on other networks, or for several targets.

    Its sends start at ticks of the network, so that they include latency. ``variant`` is the rule for the order of the
    dimensions: 0 the parity of both ends' coordinates, 1 of their numbers, more a coin.
    """
    net, jobs = stage.net, stage.jobs
    if stage.clock is None or not stage.single or stage.fixed is not None or jobs.release.any():
        return None
    if (sides := grid_sides(net.tail, net.head, len(net.branches))) is None:
        return None
    rng = np.random.default_rng(seed)
    strides = np.concatenate([[1], np.cumprod(sides)])[:-1]
    place = [np.arange(len(net.branches)) // s % n for s, n in zip(strides, sides, strict=True)]
    number = np.sum(place, axis=0) if variant == 0 else np.arange(len(net.branches))
    # Neighbouring chunks that are copies of one pair use both orders in turn.
    alike = ((jobs.source[1:] == jobs.source[:-1]) & (jobs.target[1:] == jobs.target[:-1])).any()
    mixed = (number[jobs.source] + number[jobs.target] + jobs.chunk * int(alike)) % 2 == 1
    if variant > 1:
        mixed = rng.integers(0, 2, jobs.number) == 1
    first, edges = grid_ways(net.tail, net.head, sides, jobs.source, jobs.target, mixed)
    start = np.zeros(len(edges), dtype=np.int64)
    order = np.arange(jobs.number) if variant < 2 else rng.permutation(jobs.number)
    window, delay = stage.clock
    last = farthest_first(order, first, edges, window, delay, start)
    none = np.zeros(0, dtype=np.int64)
    pool = SendPool(edges, start, none, np.array([len(edges)]), first[:-1], np.diff(first), none)
    return StageResult(pool, -(-(last - delay + window) // window), "along dimensions", 1, in_ticks=True)


_RUIN = 0.05  #: Part of the other jobs that is taken out beside the latest ones.
_PATIENCE = 500  #: Rounds of ruin and recreate without a better schedule after which it ends.


@dataclass
class SearchEffort:
    """Remaining number of path searches. The first attempt of a stage is made in any case."""

    rest: int
    count: int = 0

    def spend(self, count: int) -> None:
        """Count ways."""
        self.rest -= count
        self.count += count


@dataclass(eq=False)
class StageResult:
    """The best sends of a stage.

    If ``in_ticks``, the sends, one path for each job after the other, start at ticks of the network although the stage
    has steps; ``ticks``, the end of the last one, are then a lower bound in steps.
    """

    pool: SendPool
    ticks: int
    by: str
    attempts: int
    in_ticks: bool = False


def recipes(stage: Stage, orders: str, restarts: int) -> list[Recipe]:
    """List the attempts."""
    if orders == "paper":
        return [Recipe("longest", "longest", whole=True)]
    result = [Recipe("longest", "longest", whole=True), Recipe("random", "random", whole=True)]
    if stage.single:
        result.append(Recipe("longest, shortest ways", "longest", slack=0))
    else:
        result += [Recipe("longest, target by target", "longest"), Recipe("random, target by target", "random")]
    again = [Recipe(r.name, r.order, r.whole, r.slack, turn) for turn in range(1, restarts + 1) for r in result]
    return result + again


def best_of(stage: Stage, orders: str, restarts: int, steps: SearchEffort, budget: Budget) -> StageResult | None:
    """Return the best attempt, improved by ruin and recreate; None if the budget ends before there is any."""
    best: StageResult | None = None
    state: Attempt | None = None
    number = 0
    for variant in range(3 if orders == "portfolio" else 0):
        along = along_dimensions(stage, budget.seed + variant, variant)
        if along is None:
            break
        steps.spend(stage.jobs.number)
        number += 1
        along.attempts = number
        best = _better(best, along)
        if best.ticks <= stage.lower or steps.rest < stage.jobs.number:
            return best
    for recipe in recipes(stage, orders, restarts):
        if best is not None and (steps.rest < stage.jobs.number or best.ticks <= stage.lower):
            break
        other = attempt(stage, recipe, 1000 * budget.seed + number, budget)
        if other is None:
            break
        steps.spend(stage.jobs.number)
        number += 1
        budget.progress(f"{recipe.name}: {other.finish} ticks, at least {stage.lower}")
        if state is None or other.finish < state.finish:
            state = other
        best = _better(best, StageResult(other.pool, other.finish, recipe.name, number))
    if best is None or state is None or state.finish > best.ticks:
        return best
    if orders == "portfolio" and best.ticks > stage.lower and not (stage.net.room >= 0).any():
        before = state.finish
        ruin_and_recreate(state, steps, np.random.default_rng(budget.seed), budget)
        by = best.by if state.finish == before else "ruin and recreate"
        best = StageResult(state.pool, state.finish, by, number)
    return best


def _better(best: StageResult | None, other: StageResult) -> StageResult:
    if best is None or other.ticks < best.ticks:
        return other
    best.attempts = other.attempts
    return best


def ruin_and_recreate(state: Attempt, steps: SearchEffort, rng: np.random.Generator, budget: Budget) -> None:
    """Take out the jobs that end last and some others, place them again, longest first; keep what is no worse.

    Worse is what ends later, or at the same time with more jobs. It is over when the bound is met, the steps are used
    up, or nothing has become better for long.
    """
    stage, idle = state.stage, 0
    while steps.rest > 0 and idle < _PATIENCE and state.finish > stage.lower and not budget.is_exhausted:
        finish = state.pool.finish
        latest = finish == state.finish
        jobs = np.flatnonzero(latest | (rng.random(len(finish)) < _RUIN))
        before = (state.finish, int(latest.sum()))
        steps.spend(len(jobs))
        old = [column[jobs].copy() for column in (state.pool.first, state.pool.length, finish)]
        _make_room(state, jobs)
        old[0] = state.pool.first[jobs].copy()
        remove_all(stage.net, state.busy, stage.jobs, state.pool, jobs)
        order = _order(stage, jobs, old[2], rng)
        count = state.place(order, whole=bool(rng.integers(0, 2)) and stage.plain, slack=-1, budget=budget)
        after = (state.finish, int((state.pool.finish == state.finish).sum()))
        idle = 0 if after < before else idle + 1
        if count == len(order) and after <= before:
            continue
        remove_all(stage.net, state.busy, stage.jobs, state.pool, order[:count])
        for column, values in zip((state.pool.first, state.pool.length, state.pool.finish), old, strict=True):
            column[jobs] = values
        take_all(stage.net, state.busy, stage.jobs, state.pool, jobs)


def _order(stage: Stage, jobs: Ints, finish: Ints, rng: np.random.Generator) -> Ints:
    """Put the jobs in order: longest first, latest first, or at random."""
    shuffled = rng.permutation(len(jobs))
    kind = int(rng.integers(0, 3))
    if kind == 0:
        shuffled = shuffled[np.argsort(-stage.length[jobs][shuffled], kind="stable")]
    elif kind == 1:
        shuffled = shuffled[np.argsort(-finish[shuffled], kind="stable")]
    return jobs[shuffled]


def _make_room(state: Attempt, jobs: Ints) -> None:
    """Drop unused sends of the pool, and make sure that the lists of intervals can be cut."""
    pool = state.pool
    if pool.fill[0] > 3 * len(pool.edge) // 4:
        index = ranges(pool.first, pool.length)
        for name in ("edge", "start", "parent"):
            column = getattr(pool, name)
            column[: len(index)] = column[index]
        pool.first[:] = np.cumsum(pool.length) - pool.length
        pool.fill[0] = len(index)
    if not state.stage.stepped:
        cuts = uses(state.stage.net, pool.edge[ranges(pool.first[jobs], pool.length[jobs])])
        state.widen(int((state.busy.runs + cuts).max(initial=0)) + 8)
