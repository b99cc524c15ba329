"""Grids of blocks of epochs, and what may be sent when on them.

On a coarse grid the linear program is bounded from both sides:

* ``restrict``: rates are constant in a block, and what is sent in a block can be used from the first block on that begins when all of it
  has arrived. Every solution is a solution on the grid of epochs.
* ``relax``: what is sent in a block can be used from the block in which its first epoch's part arrives, even if that is the same one; all nodes
  store. Every solution on the grid of epochs, summed over blocks, is a solution.

With blocks of one epoch ``restrict`` is the grid of epochs itself.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from .alltoall_problem import NEVER, Exchange, Ways

Side = Literal["relax", "restrict"]


@dataclass(frozen=True)
class Grid:
    """Blocks that a makespan is cut into.

    Parameters
    ----------
    starts : tuple of int
        First epoch of every block and, last, the makespan K.
    side : str
        ``relax`` or ``restrict``.
    """

    starts: tuple[int, ...]
    side: Side

    @property
    def epochs(self) -> int:
        """The makespan K."""
        return self.starts[-1]

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return len(self.starts) - 1

    def length(self, block: int) -> int:
        """Epochs of a block."""
        return self.starts[block + 1] - self.starts[block]

    def usable(self, block: int, after: int) -> int:
        """First block in which what is sent in a block, ``after`` epochs before it can be used, may be sent on; ``blocks`` for the end of all.

        Larger than ``blocks`` if it comes too late.
        """
        if self.side == "relax":
            at = self.starts[block] + after
            return self.blocks + 1 if at > self.epochs else bisect_right(self.starts, at) - 1
        return bisect_left(self.starts, self.starts[block + 1] - 1 + after)


def ways_for(exchange: Exchange, side: Side) -> Ways:
    """Give the points and arcs of a side: all nodes store in a relaxation."""
    if side == "restrict":
        return exchange.unfolded
    return replace(exchange.network, stores=np.ones(len(exchange.stores), dtype=np.bool_))


def fine(epochs: int) -> Grid:
    """Blocks of one epoch."""
    return Grid(tuple(range(epochs + 1)), "restrict")


def coarse(exchange: Exchange, epochs: int, blocks: int, side: Side) -> Grid:
    """Cut a makespan into about ``blocks`` blocks, short ones at both ends where data is under way for the first and the last time.

    Parameters
    ----------
    exchange : Exchange
        Its distances are starts of blocks, from the front and from the back.
    epochs : int
        The makespan K.
    blocks : int
        How many; with K or more the grid of epochs.
    side : str
        ``relax`` or ``restrict``.
    """
    if blocks >= epochs:
        return Grid(tuple(range(epochs + 1)), side)
    chosen = {0, epochs}
    for front, back in _candidates(exchange, epochs):
        if len(chosen) > blocks * 3 // 4:
            break
        chosen |= {front, epochs - back}
    while len(chosen) <= blocks:
        ordered = sorted(chosen)
        width, at = max((b - a, a) for a, b in itertools.pairwise(ordered))
        chosen.add(at + width // 2)
    return Grid(tuple(sorted(chosen)), side)


def _candidates(exchange: Exchange, epochs: int) -> list[tuple[int, int]]:
    """Pairs of points, one from the front and one from the back, the most useful ones first; none beyond the middle.

    What is sent in the first epoch over one hop after another arrives after their delays; what is to be there at the end must be sent in a block that
    ends so many epochs before the end as the delays say, less one for each hop.
    """
    ways = exchange.unfolded
    hops = sorted({int(x) for x in (ways.delay + ways.offset)[ways.stores[ways.heads].astype(bool)]})
    far = ways.distance[:, ways.rank_points]
    reach = sorted({int(d) for d in far.flat if 0 < d < NEVER})
    two = sorted({a + b for a in hops for b in hops})
    pairs = [(1, 1), *((d, d - 1) for d in hops), *((d, d - 2) for d in two if d in reach)]
    pairs += [(d, d - 1) for d in reach] + [(d, d - 2) for d in two] + [(2**k, 2**k) for k in range(1, 40)]
    found = dict.fromkeys((min(a, epochs // 2), min(b, epochs // 2)) for a, b in pairs)
    return [(a, b) for a, b in found if a > 0]
