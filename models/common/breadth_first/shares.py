"""Who sends which pieces of whose shard over which link in which step."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ....core.schedule import Ints
from .graph import Graph


@dataclass(frozen=True, eq=False)
class Shares:
    """Pieces ``start`` to ``stop - 1`` of a node's shard come to another node over a link, in a step counted from 0.

    Parameters
    ----------
    graph : Graph
        The network.
    pieces : int
        Equal pieces of every shard, P.
    target, source, slot, step, start, stop : array of int, shape (shares,)
        Who receives, whose shard, the place of the link among those into the receiver, the step, the first piece and the one behind the
        last. Receivers are those of the orbit, or all nodes.
    """

    graph: Graph
    pieces: int
    target: Ints
    source: Ints
    slot: Ints
    step: Ints
    start: Ints
    stop: Ints

    @property
    def link(self) -> Ints:
        """Numbers of the links."""
        return self.graph.link[self.target, self.slot]

    def carried(self) -> Ints:
        """Pieces that every link into the receivers carries in every step; one row a step."""
        link, steps = self.link, int(self.step.max()) + 1
        carried = np.zeros((steps, int(link.max()) + 1), dtype=np.int64)
        np.add.at(carried, (self.step, link), self.stop - self.start)
        return carried

    def bandwidth_time(self) -> Fraction:
        """T_B, equation (2), in M/B: the sum over the steps of the most that a link carries."""
        most = int(self.carried().max(axis=1).sum())
        return Fraction(self.graph.degree * most, self.graph.nodes * self.pieces)

    def everywhere(self) -> Shares:
        """Carry what the orbit receives to all nodes."""
        shifted = self.graph.shifted
        times = shifted.shape[1]
        columns = (np.repeat(column, times) for column in (self.slot, self.step, self.start, self.stop))
        return Shares(self.graph, self.pieces, shifted[self.target].ravel(), shifted[self.source].ravel(), *columns)

    def one_by_one(self) -> Shares:
        """Make every piece a share of its own."""
        length = self.stop - self.start
        before = np.cumsum(length) - length
        start = np.repeat(self.start - before, length) + np.arange(int(length.sum()))
        target, source, slot, step = (np.repeat(of, length) for of in (self.target, self.source, self.slot, self.step))
        return Shares(self.graph, self.pieces, target, source, slot, step, start, start + 1)
