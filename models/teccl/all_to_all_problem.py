"""The all-to-all on a grid of epochs in whole numbers, on grids of blocks of epochs, and with its flows in classes."""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import gcd
from typing import Literal

import numpy as np

from ...algorithms.epochs.problem import epoch_distances
from ...algorithms.graphs.colour_refinement import Classes, FlowArcs, Ints, refine
from ...core.errors import InputError

#: Links of a way through switches.
MAX_SWITCHES = 4


#: Blocks of a length that divides all delays, in which a restriction loses nothing on the way, may be so many times as
#: many.
ALIGNED = 3

Side = Literal["relax", "restrict"]


@dataclass(frozen=True)
class Exchange:
    """Every rank sends one unit of data to every other rank; the data may be split at will.

    Parameters
    ----------
    stores : tuple of bool
        For every node whether it keeps what it has. What reaches a node that does not must leave in the epoch in
        which it could first be used.
    ranks : tuple of int
        Nodes that send to one another.
    tails, heads : tuple of int
        Nodes that the links leave and enter.
    delay : tuple of int
        What a link carries in epoch k can be used from epoch ``k + delay`` on; at least 1.
    capacity : tuple of Fraction
        Units that a link carries in an epoch.
    """

    stores: tuple[bool, ...]
    ranks: tuple[int, ...]
    tails: tuple[int, ...]
    heads: tuple[int, ...]
    delay: tuple[int, ...]
    capacity: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        if any(d < 1 for d in self.delay):
            raise InputError("a delay of less than one epoch", place="links")

    @cached_property
    def network(self) -> PointNetwork:
        """Nodes as points and links as arcs."""
        n, links = len(self.stores), len(self.tails)
        arrays = [np.array(x, dtype=np.int64) for x in (self.tails, self.heads, range(links), [0] * links, self.delay)]
        return PointNetwork(self, np.arange(n), np.array(self.stores), *arrays)

    @cached_property
    def unfolded(self) -> PointNetwork:
        """Nodes that store, and a copy of every other one for each time that passing data may have been under way.

        Data leaves a node that stores and is at the next such node after at most :data:`MAX_SWITCHES` others, none of
        them twice.
        """
        leaving = [[e for e, t in enumerate(self.tails) if t == n] for n in range(len(self.stores))]
        copies: dict[tuple[int, int], int] = {(n, 0): n for n, keeps in enumerate(self.stores) if keeps}
        copies = {key: index for index, key in enumerate(copies)}
        arcs: dict[tuple[int, int, int], None] = {}
        walks: list[tuple[int, int, tuple[int, ...]]] = [
            (node, 0, (node,)) for node, keeps in enumerate(self.stores) if keeps
        ]
        while walks:
            node, offset, seen = walks.pop()
            for e in leaving[node]:
                head = self.heads[e]
                if head in seen or (len(seen) > MAX_SWITCHES and not self.stores[head]):
                    continue
                after = 0 if self.stores[head] else offset + self.delay[e]
                copies.setdefault((head, after), len(copies))
                arcs[copies[node, offset], copies[head, after], e] = None
                if not self.stores[head]:
                    walks.append((head, after, (*seen, head)))
        offsets = [offset for _, offset in copies]
        tails, heads, links = (np.array(column, dtype=np.int64) for column in zip(*sorted(arcs), strict=True))
        nodes = np.array([node for node, _ in copies], dtype=np.int64)
        keeps = np.array(self.stores)[nodes]
        waited = np.array(offsets, dtype=np.int64)[tails]
        return PointNetwork(
            self, nodes, keeps, tails, heads, links, waited, np.array(self.delay, dtype=np.int64)[links]
        )


@dataclass(frozen=True, eq=False)
class PointNetwork:
    """Points that data may be at and arcs that it may take.

    Parameters
    ----------
    exchange : Exchange
        The problem.
    node, stores : array, shape (points,)
        Node of every point, and whether it keeps what it has.
    tails, heads : array of int, shape (arcs,)
        Points.
    link : array of int, shape (arcs,)
        The link that an arc uses.
    offset : array of int, shape (arcs,)
        Epochs between the last departure from a node that stores and the use of this arc.
    delay : array of int, shape (arcs,)
        Of the link.
    """

    exchange: Exchange
    node: Ints
    stores: Ints
    tails: Ints
    heads: Ints
    link: Ints
    offset: Ints
    delay: Ints

    @cached_property
    def distance(self) -> Ints:
        """First epoch in which data of every rank can be used at every point; shape (ranks, points)."""
        return epoch_distances(len(self.node), self.tails, self.heads, self.delay, self.rank_points)

    @cached_property
    def leaving(self) -> list[list[int]]:
        """Arcs that leave each point."""
        return [np.flatnonzero(self.tails == point).tolist() for point in range(len(self.node))]

    @cached_property
    def entering(self) -> list[list[int]]:
        """Arcs that enter each point."""
        return [np.flatnonzero(self.heads == point).tolist() for point in range(len(self.node))]

    @cached_property
    def rest(self) -> Ints:
        """Epochs from every point to the nearest rank that wants something; 0 at ranks; shape (points,)."""
        return np.asarray(self.distance_to.min(axis=0))

    @cached_property
    def distance_to(self) -> Ints:
        """Epochs from every point to every rank; shape (ranks, points)."""
        return epoch_distances(len(self.node), self.tails, self.heads, self.delay, self.rank_points, backwards=True)

    @cached_property
    def rank_points(self) -> Ints:
        """Point of every rank."""
        at = {int(node): point for point, node in enumerate(self.node)}
        return np.array([at[rank] for rank in self.exchange.ranks], dtype=np.int64)


@dataclass(frozen=True)
class BlockGrid:
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
        """First block in which what is sent in a block may be sent on, if it can be used after so many epochs.

        ``blocks`` is the end of all.
        Larger than ``blocks`` if it comes too late.

        Data comes as evenly as it was sent. In a restriction the block is the first one that begins no sooner than the
        first of it comes and ends no sooner than the last: in each of its epochs at least as much has come as goes if
        all of it leaves evenly.
        """
        if self.side == "relax":
            at = self.starts[block] + after
            return self.blocks + 1 if at > self.epochs else bisect_right(self.starts, at) - 1
        begun, ended = self.starts[block] + after, self.starts[block + 1] - 1 + after
        if ended >= self.epochs:
            return self.blocks if ended == self.epochs else self.blocks + 1
        return max(bisect_left(self.starts, begun), bisect_right(self.starts, ended) - 1)


def points_for(exchange: Exchange, side: Side) -> PointNetwork:
    """The points and arcs of a side: all nodes store in a relaxation."""
    if side == "restrict":
        return exchange.unfolded
    return replace(exchange.network, stores=np.ones(len(exchange.stores), dtype=np.bool_))


def fine(epochs: int) -> BlockGrid:
    """Blocks of one epoch."""
    return BlockGrid(tuple(range(epochs + 1)), "restrict")


def coarse(exchange: Exchange, epochs: int, blocks: int, side: Side) -> BlockGrid:
    """Cut a makespan into about ``blocks`` blocks, at the epochs in which data can first be somewhere, or must last leave.

    What is sent from one of these on arrives at another one, so that what is cut behind one is cut behind all.

    Parameters
    ----------
    exchange : Exchange
        Its distances are starts of blocks, from the front and from the back, the shortest ones first.
    epochs : int
        The makespan K.
    blocks : int
        How many; with K or more the grid of epochs.
    side : str
        ``relax`` or ``restrict``.
    """
    if blocks >= epochs:
        return BlockGrid(tuple(range(epochs + 1)), side)
    ways = {int(d) for d in exchange.unfolded.distance.flat if 0 < d <= epochs}
    chosen = {0, epochs}
    doubled = (2**k for k in range((epochs // 2).bit_length()))
    for way in (*sorted(ways), *doubled):
        if len(chosen) > blocks * 3 // 4:
            break
        chosen |= {way, epochs + 1 - way}
    step = gcd(*exchange.delay)
    if side == "restrict" and step > 1 and epochs // step <= ALIGNED * blocks:
        chosen |= set(range(0, epochs, step))
    for offset in _offsets(epochs + 1 - max(ways, default=0)):
        if len(chosen) > blocks:
            break
        chosen |= {way + offset for way in (0, *ways) if way + offset < epochs}
    while len(chosen) <= blocks:
        ordered = sorted(chosen)
        width, at = max((b - a, a) for a, b in itertools.pairwise(ordered))
        chosen.add(at + width // 2)
    return BlockGrid(tuple(sorted(chosen)), side)


def _offsets(slack: int) -> Iterator[int]:
    """The middle of what a farthest way may wait, then the middles of its halves, and so on."""
    parts = 2
    while parts <= 2 * slack:
        yield from (slack * part // parts for part in range(1, parts, 2))
        parts *= 2


@dataclass(frozen=True, eq=False)
class ReducedFlows:
    """A problem's flows in classes.

    Parameters
    ----------
    network : PointNetwork
        Points and arcs.
    classes : Classes
        Which of the flows, balances and links are equal.
    """

    network: PointNetwork
    classes: Classes

    @cached_property
    def flow_members(self) -> list[tuple[int, int]]:
        """One (source, arc) of every class of flows."""
        return _members(self.classes.flow)

    @cached_property
    def balance_members(self) -> list[tuple[int, int]]:
        """One (source, point) of every class of balances."""
        return _members(self.classes.balance)

    @cached_property
    def link_members(self) -> list[int]:
        """One link of every class of links."""
        return [int(i) for i in np.unique(self.classes.link, return_index=True)[1]]


def reduce(network: PointNetwork, *, symmetric: bool = True) -> ReducedFlows:
    """Find the classes; without ``symmetric`` every flow is one of its own, for tests."""
    exchange, sources, points = network.exchange, len(network.exchange.ranks), len(network.node)
    flows = FlowArcs(network.tails, network.heads, network.link, points, len(exchange.tails))
    first = np.zeros((sources, points), dtype=np.int64)
    first[:, ~network.stores.astype(bool)] = 1
    first[:, network.rank_points] = 2
    first[np.arange(sources), network.rank_points] = 3
    if not symmetric:
        first = np.arange(first.size).reshape(first.shape)
    arcs = list(zip(network.delay.tolist(), network.offset.tolist(), strict=True))
    return ReducedFlows(
        network, refine(flows, first, arcs, exchange.capacity if symmetric else range(len(exchange.tails)))
    )


def _members(table: Ints) -> list[tuple[int, int]]:
    first = np.unique(table, return_index=True)[1]
    return [(int(i) // table.shape[1], int(i) % table.shape[1]) for i in first]
