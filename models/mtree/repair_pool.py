"""New trees that go well with a plan: trees of the plan, or of an older one, grafted where their links are gone or full."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from ...core.schedule import Floats, Ints
from ..common.wan.bottleneck import spanning_tree
from ..common.wan.network import Limit, Wan
from ..common.wan.trees import Rated, bottlenecks, distinct, low_enough

#: What is left of the rates of others while a tree is grafted.
_SHARES = (1.0, 0.8, 0.5, 0.0)

#: Room that a link needs to stay in its tree, as a part of the largest room.
_KEPT = (0.05, 0.2, 0.4)


def grafts(wan: Wan, limit: Limit, floor: int, plan: Rated | None, stumps: Sequence[Ints]) -> Ints:
    """Graft every tree of a plan, and what is left of others.

    A tree keeps those of its links that have room beside the other trees of the plan; the other links follow by falling room (Kruskal).

    Parameters
    ----------
    wan : Wan
        The network.
    limit : Limit
        Height of new trees.
    floor : int
        Smallest capacity of their links.
    plan : Rated or None
        Trees with rates.
    stumps : sequence of array of int
        Links of further trees, not all of which still are.

    Returns
    -------
    array of int, shape (trees, sites - 1)
        Different trees, sorted.
    """
    found = [tree for share in _SHARES for tree in _grafted(wan, floor, plan, stumps, share)]
    rows = np.array(found, dtype=np.int64).reshape(-1, wan.nodes - 1)
    rows = low_enough(wan, limit, distinct(rows)) if len(rows) else rows
    return rows[bottlenecks(wan, rows) >= max(floor, 1)]


def _grafted(wan: Wan, floor: int, plan: Rated | None, stumps: Sequence[Ints], share: float) -> Iterator[list[int]]:
    """Graft with the trees of the plan at a share of their rates."""
    usable = np.flatnonzero(wan.capacity >= floor)
    trees = [] if plan is None else list(zip(plan.trees, plan.rates, strict=True))
    room = wan.capacity.astype(np.float64)
    for tree, rate in trees:
        room[tree] -= share * float(rate)
    for tree, rate in [*trees, *((stump, Fraction(0)) for stump in stumps)]:
        free = room.copy()
        free[tree] += share * float(rate)
        for kept in _KEPT:
            grown = spanning_tree(wan, _order(tree, usable, free, kept * float(free.max())))
            if grown is not None:
                yield grown


def _order(tree: Ints, usable: Ints, free: Floats, least: float) -> list[int]:
    """Links of a tree that have enough room, then all others by falling room."""
    first = np.isin(usable, tree) & (free[usable] >= least)
    return [int(e) for e in usable[np.lexsort((-free[usable], ~first))]]
