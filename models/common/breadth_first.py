"""Breadth-first broadcasts from all nodes at once: how long they take, exactly, and who sends which part of a shard.

In step t, a node u receives the shards of all nodes v at distance t. Those that can come over links of a set W alone
must share them, so that the busiest link into u carries at least ``|{v: f(v) in W}| / |W|`` shards, where f(v) are the
links into u from nodes at distance t - 1 from v; by the theorem of maximum flow and minimum cut the largest of these
quotients is attained (theorem 19 of the direct-connect paper). Flows are in whole pieces of a shard: all is exact.

Networks are lists of links, pairs of the numbers of two nodes; parallel links are listed one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import lcm

import numpy as np
from numpy.typing import NDArray

from ...core.errors import InputError
from ...core.schedule import Ints

#: A set of links into a node is a word of bits, and counters are kept for all sets and steps.
MAX_INTO = 20
_COUNTERS = 2**27
#: Distances are words of 16 bits, one for every pair.
MAX_NODES = 20_000


@dataclass(frozen=True)
class Broadcast:
    """What breadth-first broadcasts from all nodes of a network take.

    Parameters
    ----------
    nodes : int
        Number of nodes, N.
    loads : tuple of Fraction
        For every step, the shards that the busiest link carries, ``max_u U_{u,t}``.
    """

    nodes: int
    loads: tuple[Fraction, ...]

    @property
    def steps(self) -> int:
        """Number of steps, T_L in units of alpha: the diameter."""
        return len(self.loads)

    def bandwidth(self, degree: int) -> Fraction:
        """T_B in units of M/B, equation (2), where a node's bandwidth B is ``degree`` times that of a link."""
        return Fraction(degree, self.nodes) * sum(self.loads, Fraction(0))


@dataclass(frozen=True, eq=False)
class Shares:
    """Who sends which part of whose shard: pieces ``start`` to ``stop - 1``, over a link, in a step counted from 0.

    Parameters
    ----------
    pieces : int
        Equal pieces of every shard.
    source, link, step, start, stop : array of int, shape (shares,)
        Whose shard, the position of the link, the step, and the first piece and the one behind the last.
    """

    pieces: int
    source: Ints
    link: Ints
    step: Ints
    start: Ints
    stop: Ints


def broadcast(nodes: int, links: Ints) -> Broadcast:
    """Compute what the best breadth-first all-gather of a network takes.

    Parameters
    ----------
    nodes : int
        Number of nodes, numbered from 0.
    links : array of int, shape (links, 2)
        Source and target of every link.

    Raises
    ------
    InputError
        If a node cannot be reached from another one, or the network is too large for the counters.
    """
    into, distance = _tables(nodes, links)
    steps = int(distance.max())
    if into.shape[1] > MAX_INTO or (steps + 1) << into.shape[1] > _COUNTERS:
        raise InputError(f"{into.shape[1]:,} links into a node; expected at most {MAX_INTO}", place="network.links")
    from .breadth_first_kernel import busiest

    above, below = busiest(links[into, 0], into, distance, steps)
    return Broadcast(nodes, tuple(Fraction(int(p), int(q)) for p, q in zip(above, below, strict=True)))


def shares(nodes: int, links: Ints, loads: tuple[Fraction, ...]) -> Shares:
    """Split the shards of a breadth-first all-gather so that no link carries more than the load of each step.

    Shards are cut into the fewest equal pieces for which all loads are whole numbers of them; the flow is then one of
    whole pieces. Shards that can come over the same links are lined up and cut where the next link takes over.

    Parameters
    ----------
    nodes, links
        As for :func:`broadcast`.
    loads : tuple of Fraction
        What it has found for this network, or more.
    """
    from .breadth_first_kernel import receive

    into, distance = _tables(nodes, links)
    pieces = lcm(*(load.denominator for load in loads))
    capacity = np.array([int(load * pieces) for load in loads])
    source = links[into, 0]
    parts = [receive(u, source, into, distance, capacity, pieces) for u in range(nodes)]
    columns = np.concatenate(parts, axis=0).T
    return Shares(pieces, *(np.ascontiguousarray(column) for column in columns))


def diameter(nodes: int, links: Ints) -> int:
    """Give the largest distance between two nodes, in links."""
    return int(_tables(nodes, links)[1].max())


def distance_sum(nodes: int, links: Ints) -> int:
    """Sum the distances of all pairs, which bounds an all-to-all: each of them takes as many links as it is long."""
    return int(_tables(nodes, links)[1].sum(dtype=np.int64))


def _tables(nodes: int, links: Ints) -> tuple[Ints, NDArray[np.int16]]:
    """Links into every node, -1 where there are fewer than elsewhere, and distances: row u, column v is from v to u."""
    from .breadth_first_kernel import distances

    if nodes > MAX_NODES:
        raise InputError(f"{nodes:,} nodes; expected at most {MAX_NODES:,}", place="network.nodes")
    target = links[:, 1]
    order = np.argsort(target, kind="stable")
    count = np.bincount(target, minlength=nodes)
    into = np.full((nodes, int(count.max(initial=0))), -1, dtype=np.int64)
    into[target[order], np.arange(len(order)) - np.repeat(np.cumsum(count) - count, count)] = order
    distance = distances(np.where(into < 0, -1, links[into, 0]))
    if not len(links) or distance.max() > MAX_NODES:
        raise InputError("data cannot reach every node from every other one", place="network.links")
    return into, distance
