"""Attempts: conditions in an order of their own, each placed as early as it can be; grids also by ways along the dimensions."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ...core.budget import Budget
from ...core.schedule import Ints
from .grid import farthest_first, grid_sides, grid_ways
from .place import INTERVALS, SENDS, place_all, take_all
from .tables import Busy, Far, Jobs, Net, Pool, Work, empty_pool, work_of

#: Jobs that are placed between two looks at the budget.
_BATCH = 8192


@dataclass(eq=False)
class Stage:
    """What is to be scheduled, and what is taken already.

    Parameters
    ----------
    net : Net
        The network.
    jobs : Jobs
        What is to be placed.
    far : Far
        Distances.
    fixed : tuple of Jobs and Pool, or None
        Sends of an earlier stage on the same network.
    lower : int
        Ticks that no schedule undercuts.
    stepped : bool
        Whether ticks are steps.
    """

    net: Net
    jobs: Jobs
    far: Far
    fixed: tuple[Jobs, Pool] | None
    lower: int
    stepped: bool

    @cached_property
    def length(self) -> Ints:
        """Ticks from the release of every job's chunk to its farthest target, at least; by the size of the chunk."""
        jobs, net = self.jobs, self.net
        owner = np.repeat(np.arange(jobs.number), np.diff(jobs.target_first))
        ticks = self.far.ticks[jobs.target, jobs.source[owner]]
        longest = np.maximum.reduceat(ticks, jobs.target_first[:-1]) if jobs.number else ticks
        scaled = longest * net.units[jobs.size] // int(net.units.min())
        return np.asarray(scaled + jobs.release, dtype=np.int64)

    @property
    def single(self) -> bool:
        """Whether every chunk has one target."""
        return len(self.jobs.target) == self.jobs.number

    @property
    def plain(self) -> bool:
        """Whether one search may find all targets of a chunk: no edge shares a link, no switch sends once only, or holds little."""
        net = self.net
        return len(net.link) == len(net.tail) and bool(net.branches.all()) and bool((net.room < 0).all())


@dataclass(eq=False)
class Attempt:
    """Links and buffers with the jobs that have been placed so far; grows as it must."""

    stage: Stage
    work: Work
    busy: Busy
    pool: Pool

    @classmethod
    def empty(cls, stage: Stage, seed: int) -> Attempt:
        """Begin with what the earlier stage has taken."""
        net, jobs = stage.net, stage.jobs
        hops = stage.far.hops[jobs.target, np.repeat(jobs.source, np.diff(jobs.target_first))]
        expected = int(hops.sum() if stage.single else len(jobs.target) * 2)
        links = int(net.link.max()) + 1
        earlier = 0 if stage.fixed is None else int(stage.fixed[1].fill[0])
        ticks = stage.lower + int(stage.length.max(initial=0)) + earlier
        words = np.zeros((links, ticks // 64 + 2 if stage.stepped else 0), dtype=np.uint64)
        room = 0 if stage.stepped else 16
        held = (len(net.branches), 16 if bool((net.room >= 0).any()) else 0)
        shapes = {"begin": (links, room), "end": (links, room), "runs": (links,), "stays": held[:1]}
        shapes |= dict.fromkeys(("stay_begin", "stay_end", "stay_units"), held)
        columns: dict[str, Any] = {name: np.zeros(shape, dtype=np.int64) for name, shape in shapes.items()}
        busy = Busy(words=words, **columns)
        pool = empty_pool(jobs.number, expected + expected // 8 + 2 * len(net.branches))
        found = cls(stage, work_of(net, seed), busy, pool)
        if stage.fixed is not None:
            if not stage.stepped:
                found.widen(int(uses(net, stage.fixed[1].edge).max()) + 16)
            take_all(net, found.busy, *stage.fixed, np.arange(stage.fixed[0].number))
        return found

    def place(self, order: Ints, *, whole: bool, slack: int, budget: Budget) -> int:
        """Place jobs in an order; give how many there was time for."""
        stage, done = self.stage, 0
        while done < len(order) and not budget.exhausted:
            batch = order[: done + _BATCH]
            tables = (stage.net, self.busy, stage.jobs, stage.far, self.pool, self.work)
            done, halt = place_all(*tables, batch, done, whole, slack)
            if halt == SENDS:
                self.pool = self.pool._replace(
                    **{name: _doubled(getattr(self.pool, name)) for name in ("edge", "start", "parent")}
                )
            elif halt == INTERVALS:
                self.widen(2 * max(self.busy.begin.shape[1], self.busy.stay_begin.shape[1]))
            elif halt:
                words = self.busy.words
                self.busy = self.busy._replace(words=np.concatenate([words, np.zeros_like(words)], axis=1))
        return done

    def widen(self, room: int) -> None:
        """Give every list of intervals this much room."""
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


def uses(net: Net, edges: Ints) -> Ints:
    """Count how often every link is used by edges."""
    counts = np.bincount(edges, minlength=len(net.tail))
    return np.bincount(net.link, weights=np.repeat(counts, np.diff(net.part_first))).astype(np.int64)


def _doubled(column: Ints) -> Ints:
    return np.concatenate([column, np.zeros_like(column)])


@dataclass(frozen=True)
class Recipe:
    """How an attempt is made.

    Parameters
    ----------
    name : str
        What the metrics call it.
    order : str
        ``longest`` or ``random``.
    whole : bool
        One search for all targets of a chunk.
    slack : int
        Edges beyond the shortest way; -1 for any number.
    """

    name: str
    order: str
    whole: bool = False
    slack: int = -1
    seed: int = field(default=0, compare=False)


def order_of(stage: Stage, recipe: Recipe, rng: np.random.Generator) -> Ints:
    """Order the jobs; ties are broken at random."""
    shuffled = rng.permutation(stage.jobs.number)
    if recipe.order == "random":
        return shuffled
    return shuffled[np.argsort(-stage.length[shuffled], kind="stable")]


def attempt(stage: Stage, recipe: Recipe, seed: int, budget: Budget) -> Attempt | None:
    """Place all jobs by a recipe; None if the budget ends first."""
    found = Attempt.empty(stage, seed)
    order = order_of(stage, recipe, np.random.default_rng(seed))
    done = found.place(order, whole=recipe.whole and stage.plain, slack=recipe.slack, budget=budget)
    return found if done == len(order) else None


def along_dimensions(stage: Stage, seed: int, variant: int) -> Pool | None:
    """Schedule a grid's pairs along the dimensions, farthest to go first; None if the network is no grid, or chunks have several targets.

    Parameters
    ----------
    variant : int
        What decides on the order of the dimensions: 0 the parity of both ends' coordinates, 1 of their numbers, more a coin.
    """
    net, jobs = stage.net, stage.jobs
    if not (stage.stepped and stage.single and stage.fixed is None and not jobs.release.any()):
        return None
    if (sides := grid_sides(net.tail, net.head, len(net.branches))) is None:
        return None
    rng = np.random.default_rng(seed)
    strides = np.concatenate([[1], np.cumprod(sides)])[:-1]
    place = [np.arange(len(net.branches)) // s % n for s, n in zip(strides, sides, strict=True)]
    number = np.sum(place, axis=0) if variant == 0 else np.arange(len(net.branches))
    mixed = (number[jobs.source] + number[jobs.target] + jobs.chunk * _copies(jobs)) % 2 == 1
    if variant > 1:
        mixed = rng.integers(0, 2, jobs.number) == 1
    first, edges = grid_ways(net, sides, jobs.source, jobs.target, mixed)
    start = np.zeros(len(edges), dtype=np.int64)
    order = np.arange(jobs.number) if variant < 2 else rng.permutation(jobs.number)
    farthest_first(len(net.tail), order, first, edges, start)
    parent = np.arange(len(edges)) - np.repeat(first[:-1], np.diff(first)) - 1
    return Pool(edges, start, parent, np.array([len(edges)]), first[:-1], np.diff(first), start[first[1:] - 1] + 1)


def _copies(jobs: Jobs) -> int:
    """Whether neighbouring chunks are copies of one pair: then they take both orders in turn."""
    same = (jobs.source[1:] == jobs.source[:-1]) & (jobs.target[1:] == jobs.target[:-1])
    return int(bool(same.any()))
