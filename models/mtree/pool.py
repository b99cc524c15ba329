"""Many starts of algorithm 1: a pool of trees that one start does not give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ...core.budget import Budget
from ...core.schedule import Ints
from ..common.wan.kernels import draw
from ..common.wan.network import Limit, Wan
from ..common.wan.trees import distinct
from . import kernels

#: Trees of one start beyond which it is cut off.
MOST_TREES = 10_000

#: All spanning trees are listed where there are at most so many.
_ALL = 20_000

#: Random starts after which a tree is given up.
_RETRIES = 20

RateName = Literal["global_min", "bottleneck", "usable_min"]
RATES: dict[str, int] = {
    "global_min": kernels.GLOBAL_MIN,
    "bottleneck": kernels.BOTTLENECK,
    "usable_min": kernels.USABLE_MIN,
}


@dataclass(frozen=True)
class Way:
    """The readings of algorithms 1 and 2.

    Parameters
    ----------
    rate : str
        r* of line 22: ``global_min``, ``bottleneck`` or ``usable_min``.
    by_radius : bool
        Whether the height from the best root is compared with H, instead of the largest with 2 H.
    fixed : bool
        Whether the height from the site that a link is added at is updated.
    shuffle : bool
        Whether links of equal room are taken in random order.
    retries : int
        Further random starts of a tree that fails.
    """

    rate: RateName
    by_radius: bool
    fixed: bool
    shuffle: bool
    retries: int


@dataclass(frozen=True, eq=False)
class Grown:
    """What one run of algorithm 1 gives.

    Parameters
    ----------
    trees : array of int, shape (trees, sites - 1)
        Links of every tree.
    rates : array of int, shape (trees,)
        r* of every tree, in units.
    roots : array of int, shape (trees,)
        The root that it has chosen.
    """

    trees: Ints
    rates: Ints
    roots: Ints


def random_state(seed: int) -> np.ndarray:
    """Give the state of a random generator, that runs continue."""
    return np.array([seed], dtype=np.uint64)


def grow(wan: Wan, limit: Limit, floor: int, way: Way, state: np.ndarray) -> Grown:
    """Run algorithm 1 once."""
    most = MOST_TREES
    size = 64
    while True:
        before = state.copy()
        trees = np.empty((size, wan.nodes - 1), dtype=np.int64)
        rates, roots = (np.empty(size, dtype=np.int64) for _ in range(2))
        count = kernels.gbst(
            wan.tail,
            wan.head,
            wan.capacity,
            limit.length,
            limit.most,
            wan.nodes,
            max(floor, 1),
            RATES[way.rate],
            way.by_radius,
            way.fixed,
            way.shuffle,
            way.retries,
            state,
            trees,
            rates,
            roots,
        )
        if count < size or size >= most:
            return Grown(trees[:count], rates[:count], roots[:count])
        size = min(8 * size, most)
        state[:] = before


def every_tree(wan: Wan) -> Ints | None:
    """List all spanning trees, if there are not too many; their number is a determinant (Kirchhoff)."""
    if wan.nodes > 64:
        return None
    laplacian = np.zeros((wan.nodes, wan.nodes))
    for a, b in zip(wan.tail, wan.head, strict=True):
        laplacian[[a, b], [a, b]] += 1
        laplacian[[a, b], [b, a]] -= 1
    if np.linalg.slogdet(laplacian[1:, 1:])[1] > np.log(_ALL):
        return None
    trees = np.empty((_ALL + 1, wan.nodes - 1), dtype=np.int64)
    return trees[: kernels.spanning_trees(wan.tail, wan.head, wan.nodes, trees)].copy()


@dataclass(frozen=True, eq=False)
class Pool:
    """Trees of many starts.

    Parameters
    ----------
    trees : array of int, shape (trees, sites - 1)
        Links, without doubles.
    choices : tuple of array of int
        For each K asked, the K fastest trees of one start, those of the best starts first.
    """

    trees: Ints
    choices: tuple[Ints, ...]


def many_starts(wan: Wan, limit: Limit, starts: int, floor: int, most_trees: int | None, budget: Budget) -> Pool:
    """Run algorithm 1 from many random starts, in both readings of r*, with ties shuffled and with retries.

    Where K trees are asked, the smallest rate is drawn too, since trees of small rates take room from others.
    """
    state = random_state(budget.seed)
    weighted = limit.unit != "hops"
    capacities = np.unique(wan.capacity)
    found: list[Ints] = []
    few: list[tuple[int, Ints]] = []
    for start in range(starts):
        if found and budget.exhausted:
            break
        fast = most_trees is not None or start % 2 == 1
        way = Way("bottleneck" if fast else "global_min", weighted, fixed=True, shuffle=True, retries=_RETRIES)
        least = floor
        if most_trees is not None:
            least = max(floor, int(capacities[draw(state, len(capacities))]) * draw(state, 100) // 100)
        grown = grow(wan, limit, least, way, state)
        found.append(grown.trees)
        if most_trees is not None:
            best = np.argsort(-grown.rates, kind="stable")[:most_trees]
            few.append((int(grown.rates[best].sum()), grown.trees[best]))
    few.sort(key=lambda one: -one[0])
    rows = np.concatenate(found) if found else np.empty((0, wan.nodes - 1), dtype=np.int64)
    return Pool(distinct(rows), tuple(distinct(trees) for _, trees in few if len(trees)))
