"""Closed forms of pipelined time.

Data is cut into chunks that follow each other along paths and trees, each with a rate of its own.

Data of v bytes goes over a path of l links at a rate r, in ``lam`` equal chunks that each link stores before it
forwards them. Its flow time is ``x = v / r``, and a chunk takes ``x / lam`` on each link plus the link's latency
and overhead. The first chunk arrives after ``S + l x / lam``, and each other one ``A + x / lam`` after the one
before (MTree, equation 2):

``t(lam) = S + l x / lam + (lam - 1) (A + x / lam)``.

======  ===================================================  ================================  ===============
symbol  meaning                                              ``occupancy`` (the paper's)       ``propagation``
======  ===================================================  ================================  ===============
S       total wait of a chunk on all links beside its bytes  sum of latencies and overheads    the same
A       occupation of the slowest link beside chunk bytes    largest latency, and overhead     overhead
======  ===================================================  ================================  ===============

In a tree every leaf has its path, and the last one determines the time. In an overlapped all-reduce, a chunk comes
from a leaf a to the root and goes on to a leaf b: the path is the pair. As ``max(A_a, A_b)`` is one of the two, the
largest time over all pairs is the larger one of two sums, each of a largest term over a and one over b, so that
pairs need not be enumerated.

Every time depends on data and rate only through the flow time. It is convex in ``lam``, since every path's is.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import numpy as np

from .schedule import Floats, Ints

#: Numbers of pieces that the trees of a forest may be cut into, all alike.
PIECES = tuple(2**k for k in range(11))

#: Time beyond the least, in parts of it, that is accepted for fewer pieces.
ENOUGH = 0.01

#: Chunks beyond this many are not tried: where a chunk costs nothing, more are always better.
MOST_CHUNKS = 2**20

#: Times are found to this part of them.
TOLERANCE = 1e-13

#: Slopes are taken over this part of the deadline, or of the time where that is later.
_AHEAD = 1e-6


class LatencyModel(Enum):
    """Effect of a link's latency on the next chunk."""

    #: The link is busy for it, as for the bytes: MTree's equation (2).
    OCCUPANCY = "occupancy"
    #: The next chunk follows at once, as on a long line.
    PROPAGATION = "propagation"


@dataclass(frozen=True, eq=False)
class Leaves:
    """Paths between the root and the leaves of every tree, one way."""

    offset: Ints  #: Shape (trees,): first leaf of each tree.
    links: Ints
    #: waits_s, pace_s: shape (leaves,): S and A of each path, in seconds.
    waits_s: Floats
    pace_s: Floats

    @cached_property
    def tree(self) -> Ints:
        """Tree of each leaf."""
        return np.repeat(np.arange(len(self.offset)), np.diff(self.offset, append=len(self.links)))

    def last(self, values: Floats) -> Floats:
        """Return the largest value among each tree's leaves."""
        return np.asarray(np.maximum.reduceat(values, self.offset), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees with exclusive rates, for computing their pipelined times."""

    ways: tuple[Leaves, ...]  #: One for reduce or broadcast; reduce and broadcast for an overlapped all-reduce.

    def __len__(self) -> int:
        return len(self.ways[0].offset)

    def seconds(self, flow_s: Floats, chunks: Ints) -> Floats:
        """Compute the time of every tree, of which all data takes ``flow_s`` seconds on a link."""
        piece_s, more = flow_s / chunks, (chunks - 1).astype(np.float64)
        free, held = [], []
        for way in self.ways:
            came = way.waits_s + way.links * piece_s[way.tree]
            free.append(way.last(came))
            held.append(way.last(came + more[way.tree] * way.pace_s))
        last = held[0] if len(held) == 1 else np.maximum(held[0] + free[1], free[0] + held[1])
        return last + more * piece_s

    def best_chunks(self, flow_s: Floats) -> Ints:
        """Compute every tree's best number of chunks, the smallest if there are several.

        Bisection finds the first number that one more chunk does not improve.
        """
        low, high = np.ones(len(self), dtype=np.int64), self._enough(flow_s)
        while (open_ := low < high).any():
            middle = (low + high) // 2
            done = self.seconds(flow_s, middle + 1) >= self.seconds(flow_s, middle)
            high = np.where(open_ & done, middle, high)
            low = np.where(open_ & ~done, middle + 1, low)
        return low

    def flow_within(self, deadline_s: float, chunks: Ints | None = None) -> Floats:
        """Compute every tree's largest flow time within a deadline; 0 if latency alone is too long.

        For a number of chunks, time is convex and piecewise linear in the flow time, so that Newton's method ends at
        the root. If the chunks are free, the best ones for that flow time leave time for more, until no others do.
        """
        number = np.ones(len(self), dtype=np.int64) if chunks is None else chunks
        flow = self._newton(np.full(len(self), deadline_s), deadline_s, number)
        while chunks is None:
            better = self.best_chunks(flow)
            gained = self.seconds(flow, better) < self.seconds(flow, number) * (1 - TOLERANCE)
            gained &= flow > 0
            if not gained.any():
                break
            number = np.where(gained, better, number)
            flow = self._newton(flow, deadline_s, number)
        return flow

    def _newton(self, flow_s: Floats, deadline_s: float, chunks: Ints) -> Floats:
        """Solve ``time = deadline`` for the flow time.

        From the second step on iterates are above the root, so that no step overshoots.
        """
        if deadline_s <= 0:
            return np.zeros_like(flow_s)
        for _ in range(64):
            time = self.seconds(flow_s, chunks)
            # Against the larger one of the two: added to a latency far beyond the deadline, a part of the deadline
            # would be lost.
            ahead = np.maximum(time, deadline_s) * _AHEAD
            slope = (self.seconds(flow_s + ahead, chunks) - time) / ahead
            step = (time - deadline_s) / slope
            flow_s = np.maximum(flow_s - step, 0.0)
            if ((np.abs(step) <= TOLERANCE * flow_s) | (flow_s == 0)).all():
                break
        return flow_s

    def _enough(self, flow_s: Floats) -> Ints:
        """Return upper limits on the best numbers of chunks, from the most links and the smallest pace."""
        links = np.sum([way.last(way.links.astype(np.float64)) for way in self.ways], axis=0)
        pace = np.max([-way.last(-way.pace_s) for way in self.ways], axis=0)
        ratio = np.divide((links - 1) * flow_s, pace, out=np.full(len(self), np.inf), where=pace > 0)
        most = np.where((links > 1) & (flow_s > 0), np.sqrt(ratio) + 2, 1)
        return np.minimum(most, MOST_CHUNKS).astype(np.int64)
