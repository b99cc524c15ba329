"""The best breadth-first all-gather of a network: its values, and the split of the shards that attains them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import lcm

import numpy as np

from ...core.errors import Unsupported
from ...core.schedule import Ints
from .graph import IncomingLinks


@dataclass(frozen=True, eq=False)
class Shares:
    """Pieces ``start`` to ``stop - 1`` of a node's shard come to another node over a link, in a step counted from 0.

    Parameters
    ----------
    graph : IncomingLinks
        The network.
    pieces : int
        Equal pieces of every shard, P.
    target, source, slot, step, start, stop : array of int, shape (shares,)
        Who receives, whose shard, the place of the link among those into the receiver, the step, the first piece and
        the one behind the last. Receivers are those of the orbit, or all nodes.
    """

    graph: IncomingLinks
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


@dataclass(frozen=True, eq=False)
class Broadcast:
    """What breadth-first broadcasts from all nodes of a network take, and how they are done.

    Parameters
    ----------
    graph : IncomingLinks
        The network.

    Raises
    ------
    InputError
        By every property and method, if a node cannot be reached from another one.
    Unsupported
        If there are too many pairs of nodes.
    """

    graph: IncomingLinks

    @property
    def steps(self) -> int:
        """Number of steps, T_L in units of alpha: the diameter."""
        return len(self.loads)

    @cached_property
    def loads(self) -> tuple[Fraction, ...]:
        """For every step, the shards that the busiest link carries, ``max_u U_{u,t}``."""
        from .kernels import busiest

        graph = self.graph
        above, below = busiest(graph.own, graph.near, graph.distance, graph.steps)
        return tuple(Fraction(int(p), int(q)) for p, q in zip(above, below, strict=True))

    @property
    def pieces(self) -> int:
        """Fewest pieces of a shard with which nothing is lost: the least common multiple of the loads' denominators."""
        return lcm(*(load.denominator for load in self.loads))

    def bandwidth(self, degree: int | None = None) -> Fraction:
        """T_B in units of M/B, equation (2).

        Parameters
        ----------
        degree : int, optional
            How many links have the bandwidth B of a node; without it, the most that a node has.
        """
        return Fraction(degree or self.graph.degree, self.graph.nodes) * sum(self.loads, Fraction(0))

    def split(self, pieces: int | None = None) -> Shares:
        """A link for every piece of every shard that the orbit receives; none carries more than ``ceil(P U_{u,t})``.

        Shards that can come over the same links are lined up, and cut where the next link takes over.

        Parameters
        ----------
        pieces : int, optional
            P, the number of pieces of a shard; without it, the fewest with which nothing is lost.
        """
        from .kernels import receive

        graph, pieces = self.graph, self.pieces if pieces is None else pieces
        if pieces * graph.nodes >= 2**62:
            raise Unsupported(f"a shard would have {pieces:,} pieces")
        columns = receive(graph.orbit, graph.own, graph.near, graph.distance, graph.steps, pieces)
        return Shares(graph, pieces, *columns)
