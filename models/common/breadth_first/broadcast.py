"""The best breadth-first all-gather of a network: its values, and the split of the shards that attains them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import lcm

from ....core.errors import Unsupported
from .graph import Graph
from .shares import Shares


@dataclass(frozen=True, eq=False)
class Broadcast:
    """What breadth-first broadcasts from all nodes of a network take, and how they are done.

    Parameters
    ----------
    graph : Graph
        The network.

    Raises
    ------
    InputError
        By every property and method, if a node cannot be reached from another one.
    Unsupported
        If there are too many pairs of nodes.
    """

    graph: Graph

    @property
    def steps(self) -> int:
        """Number of steps, T_L in units of alpha: the diameter."""
        return len(self.loads)

    @cached_property
    def loads(self) -> tuple[Fraction, ...]:
        """For every step, the shards that the busiest link carries, ``max_u U_{u,t}``."""
        from .kernel import busiest

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
        """Give every piece of every shard that the orbit receives a link, so that no link carries more than ``ceil(P U_{u,t})``.

        Shards that can come over the same links are lined up, and cut where the next link takes over.

        Parameters
        ----------
        pieces : int, optional
            P, the number of pieces of a shard; without it, the fewest with which nothing is lost.
        """
        from .kernel import receive

        graph, pieces = self.graph, self.pieces if pieces is None else pieces
        if pieces * graph.nodes >= 2**62:
            raise Unsupported(f"a shard would have {pieces:,} pieces")
        columns = receive(graph.orbit, graph.own, graph.near, graph.distance, graph.steps, pieces)
        return Shares(graph, pieces, *columns)
