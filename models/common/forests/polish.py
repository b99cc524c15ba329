"""Lower trees without more load: what a forest leaves unused is enough to bring many trees down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np

from ....core.schedule import Ints
from ..compiled import functions
from ..digraph import Exact
from . import growth
from .cuts import CutPool
from .packing import Forest, Packer

#: Passes in which every tree may become lower.
_PASSES = 3

#: Parts of its capacity that an edge must have left to be used by a tree that has height to spare.
_SCARCE = (0.3, 0.2, 0.1, 0.05, 0.02)


def lowered(forest: Forest) -> Forest:
    """Replace trees by lower ones, without any test: all trees exist, and stay so.

    First every tree, the tallest first, is taken out and grown again as low as what is left allows. Then trees that are low enough
    give up edges of which little is left, for the tall ones to use; while that works, the aim is set lower.
    """
    work = _Work(forest)
    for _ in range(_PASSES):
        before = work.height.sum()
        work.relower(work.tall_first(), 0.0, work.height)
        if work.height.sum() == before:
            break
    best = work.forest()
    floor = int(eccentricities(forest).max())
    target = int(work.height.max()) - 1
    while target >= floor:
        for scarce in _SCARCE:
            low = np.flatnonzero(work.height <= target)
            work.relower(low, scarce, np.full(len(work.height), target))
            work.relower(work.tall_first(above=target), 0.0, work.height)
            if work.height.max() <= target:
                break
        if work.height.max() > target:
            break
        best = min(best, work.forest(), key=Forest.tallness)
        target -= 1
    return min(best, work.forest(), key=Forest.tallness)


def repacked(forest: Forest, pool: CutPool, rounds: int, seed: int, stop: Callable[[], bool] = lambda: False) -> Forest:
    """Take some trees out, above all tall ones, pack their copies anew, and keep that where it is not taller.

    Parameters
    ----------
    forest : Forest
        All trees.
    pool : CutPool
        Known cuts of its network.
    rounds : int
        How often.
    seed : int
        Which trees.
    stop : callable
        Whether to end early.
    """
    random = Random(seed)  # noqa: S311 (nobody's secret)
    floor = int(eccentricities(forest).max())
    for _ in range(rounds):
        height = forest.height()
        if stop() or height.max(initial=0) <= floor:
            break
        chosen = _some(forest, height, random)
        again = _packed_anew(forest, pool, chosen, random)
        if again is not None and _taller(again) <= _taller(forest):
            forest = again
    return forest


def eccentricities(forest: Forest) -> Ints:
    """Give the fewest edges from every root to its farthest node: no tree is lower."""
    graph, into = forest.graph, np.empty(forest.graph.nodes, dtype=np.int64)
    weight = np.ones(len(graph))
    plenty = np.ones(len(graph), dtype=np.int64)
    found = {
        root: growth.lower(root, np.int64(1), 0.0, graph.out_start, graph.head, plenty, weight, into)
        for root in np.unique(forest.root).tolist()
    }
    return np.array([found[root] for root in forest.root.tolist()], dtype=np.int64)


class _Work:
    """A forest that is being changed, and what its edges have left."""

    def __init__(self, forest: Forest) -> None:
        self.base = forest
        self.trees, self.height = forest.into.copy(), forest.height()
        self.residual: Exact = forest.graph.capacity.astype(forest.copies.dtype) - forest.load()
        self.weight = 1.0 / forest.graph.capacity.astype(np.float64)
        self.lower_each: Callable[..., int] = functions(growth, self.residual.dtype)["lower_each"]

    def tall_first(self, above: int = 1) -> Ints:
        """Trees above a height, the tallest first."""
        order = np.argsort(-self.height, kind="stable")
        return order[self.height[order] > above]

    def relower(self, order: Ints, scarce: float, limit: Ints) -> None:
        """Grow trees again, in this order."""
        graph = self.base.graph
        self.lower_each(
            order,
            scarce,
            limit.copy(),
            self.base.root,
            self.base.copies,
            self.trees,
            self.height,
            graph.out_start,
            graph.head,
            self.residual,
            self.weight,
        )

    def forest(self) -> Forest:
        """Give the forest as it is now."""
        return replace(self.base, into=self.trees.copy())


def _some(forest: Forest, height: Ints, random: Random) -> Ints:
    """Choose tall trees, trees that use edges out of their roots, and a few others."""
    count = len(forest)
    size = min(count, max(6, count // 6))
    tall = random.choices(range(count), weights=(height.astype(float) ** 2).tolist(), k=max(size // 2, 1))
    roots = set(forest.root[tall].tolist())
    leaving = np.isin(forest.graph.tail, list(roots))
    uses = (leaving[forest.into] & (forest.into >= 0)).any(axis=1)
    near = np.flatnonzero(uses).tolist()
    others = random.sample(near, min(len(near), size // 3)) + random.sample(range(count), min(count, size // 4))
    return np.unique(np.array([*tall, *others], dtype=np.int64))


def _packed_anew(forest: Forest, pool: CutPool, chosen: Ints, random: Random) -> Forest | None:
    """Pack the copies of some trees into what the others leave, the roots of the tallest first."""
    graph, kept = forest.graph, np.ones(len(forest), dtype=np.bool_)
    kept[chosen] = False
    rest = replace(forest, root=forest.root[kept], copies=forest.copies[kept], into=forest.into[kept])
    demand: Any = np.zeros(graph.nodes, dtype=forest.copies.dtype)
    np.add.at(demand, forest.root[chosen], forest.copies[chosen])
    residual = graph.capacity.astype(forest.copies.dtype) - rest.load()
    tallest = dict.fromkeys(forest.root[chosen[np.argsort(-forest.height()[chosen], kind="stable")]].tolist())
    packer = Packer(graph, demand, pool, thrifty=random.random() < 0.5, residual=residual)
    part = packer.pack(np.array(list(tallest), dtype=np.int64))
    if part is None:
        return None
    whole = replace(
        forest,
        root=np.concatenate([rest.root, part.root]),
        copies=np.concatenate([rest.copies, part.copies]),
        into=np.concatenate([rest.into, part.into]),
    )
    work = _Work(whole)
    work.relower(work.tall_first(), 0.0, work.height)
    return _joined(work.forest())


def _joined(forest: Forest) -> Forest:
    """Make equal trees one."""
    _, first, which = np.unique(forest.into, axis=0, return_index=True, return_inverse=True)
    copies: Any = np.zeros(len(first), dtype=forest.copies.dtype)
    np.add.at(copies, which.reshape(-1), forest.copies)
    return replace(forest, root=forest.root[first], copies=copies, into=forest.into[first])


def _taller(forest: Forest) -> tuple[int, int]:
    heights, copies = forest.height().tolist(), forest.copies.tolist()  # cubes of heights need more than 64 bits
    return sum(height**3 * count for height, count in zip(heights, copies, strict=True)), len(forest)
