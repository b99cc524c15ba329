"""Best breadth-first all-gather of a network: its times, and the split of shards that attains them."""

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
class PieceRanges:
    """Ranges of pieces of shards, each received over one link in one step."""

    graph: IncomingLinks  #: network, links by entered node
    pieces: int  #: number P of equal pieces of every shard
    #: (shares,) Receiver, owner of the shard, index of the link among those into the receiver, step from 0, first
    #: piece, and end of the pieces (exclusive). Receivers are those of the orbit, or all nodes.
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

    def count_pieces(self) -> Ints:
        """Count the pieces on every link into the receivers; one row per step."""
        link, steps = self.link, int(self.step.max()) + 1
        carried = np.zeros((steps, int(link.max()) + 1), dtype=np.int64)
        np.add.at(carried, (self.step, link), self.stop - self.start)
        return carried

    def bandwidth_time(self) -> Fraction:
        """Return T_B, equation (2), in M/B: the largest load of a link, summed over steps."""
        most = int(self.count_pieces().max(axis=1).sum())
        return Fraction(self.graph.degree * most, self.graph.nodes * self.pieces)

    def everywhere(self) -> PieceRanges:
        """Translate the shares of the orbit's receivers to all nodes."""
        shifted = self.graph.translated_nodes
        times = shifted.shape[1]
        columns = (np.repeat(column, times) for column in (self.slot, self.step, self.start, self.stop))
        return PieceRanges(
            self.graph, self.pieces, shifted[self.target].ravel(), shifted[self.source].ravel(), *columns
        )

    def single_pieces(self) -> PieceRanges:
        """Split every share into single pieces."""
        length = self.stop - self.start
        before = np.cumsum(length) - length
        start = np.repeat(self.start - before, length) + np.arange(int(length.sum()))
        target, source, slot, step = (np.repeat(of, length) for of in (self.target, self.source, self.slot, self.step))
        return PieceRanges(self.graph, self.pieces, target, source, slot, step, start, start + 1)


@dataclass(frozen=True, eq=False)
class Broadcast:
    """Times and shares of breadth-first broadcasts from all nodes of a network.

    Every property and method raises InputError if some node cannot reach another one, and Unsupported if there are too
    many pairs of nodes.
    """

    graph: IncomingLinks

    @property
    def steps(self) -> int:
        """Number of steps, T_L in units of alpha: the diameter."""
        return len(self.loads)

    @cached_property
    def loads(self) -> tuple[Fraction, ...]:
        """Shards on the busiest link in every step, ``max_u U_{u,t}``."""
        from .kernels import busiest

        graph = self.graph
        above, below = busiest(graph.own, graph.near, graph.distance, graph.steps)
        return tuple(Fraction(int(p), int(q)) for p, q in zip(above, below, strict=True))

    @property
    def pieces(self) -> int:
        """Fewest lossless pieces of a shard: the least common multiple of the loads' denominators."""
        return lcm(*(load.denominator for load in self.loads))

    def bandwidth(self, degree: int | None = None) -> Fraction:
        """Return T_B in units of M/B, equation (2).

        ``degree`` links share the bandwidth B of a node; by default the largest degree.
        """
        return Fraction(degree or self.graph.degree, self.graph.nodes) * sum(self.loads, Fraction(0))

    def split(self, pieces: int | None = None) -> PieceRanges:
        """Assign at most ``ceil(P U_{u,t})`` pieces of the shards that the orbit receives to each link.

        Shards with the same possible links are lined up, and cut where the next link takes over. ``pieces`` is P,
        by default the fewest that lose nothing.
        """
        from .kernels import receive

        graph, pieces = self.graph, self.pieces if pieces is None else pieces
        if pieces * graph.nodes >= 2**62:
            raise Unsupported(f"a shard would have {pieces:,} pieces")
        columns = receive(graph.orbit, graph.own, graph.near, graph.distance, graph.steps, pieces)
        return PieceRanges(graph, pieces, *columns)
