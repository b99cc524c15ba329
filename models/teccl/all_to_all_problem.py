"""The all-to-all in integers on grids of epochs and of blocks of epochs, with classes of flows."""

import itertools
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import gcd
from typing import Literal

import numpy as np

from ...algorithms.epochs.problem import epoch_distances
from ...algorithms.graphs.colour_refinement import Classes, FlowArcs, Ints, refine
from ...core.errors import InputError

MAX_SWITCHES = 4  #: Links of a way through switches.

#: Blocks of a length that divides all delays, in which a restriction loses nothing on the way, may be so many times as
#: many.
ALIGNED = 3

Side = Literal["relax", "restrict"]


@dataclass(frozen=True)
class Exchange:
    """All-to-all of one unit from every rank to every other rank, divisible at will."""

    #: For every node, True if it stores data. What reaches any other node must leave in the first epoch in which it can
    #: be used.
    stores: tuple[bool, ...]
    ranks: tuple[int, ...]
    tails: tuple[int, ...]
    heads: tuple[int, ...]
    delay: tuple[int, ...]  #: Data that a link carries in epoch k can be used from epoch ``k + delay`` on; at least 1.
    capacity: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        if any(d < 1 for d in self.delay):
            raise InputError("a delay of less than one epoch", place="links")

    @cached_property
    def network(self) -> "PointNetwork":
        """The network of nodes and links, unexpanded."""
        n, links = len(self.stores), len(self.tails)
        arrays = [np.array(x, dtype=np.int64) for x in (self.tails, self.heads, range(links), [0] * links, self.delay)]
        return PointNetwork(self, np.arange(n), np.array(self.stores), *arrays)

    @cached_property
    def unfolded_network(self) -> "PointNetwork":
        """Storing nodes, and a copy of every other node per time since the data last left a store.

        Data that leaves a storing node reaches the next one after at most :data:`MAX_SWITCHES` others, all distinct.
        """
        keep = [node for node, keeps in enumerate(self.stores) if keeps]
        copies = {(node, 0): index for index, node in enumerate(keep)}
        arcs: dict[tuple[int, int, int], None] = {}
        walks: list[tuple[int, int, tuple[int, ...]]] = [(node, 0, (node,)) for node in keep]
        while walks:
            node, offset, path = walks.pop()
            for e in self.network.leaving[node]:
                head = self.heads[e]
                if head in path or (len(path) > MAX_SWITCHES and not self.stores[head]):
                    continue
                after = 0 if self.stores[head] else offset + self.delay[e]
                copies.setdefault((head, after), len(copies))
                arcs[copies[node, offset], copies[head, after], e] = None
                if not self.stores[head]:
                    walks.append((head, after, (*path, head)))
        tails, heads, links = (np.array(column, dtype=np.int64) for column in zip(*sorted(arcs), strict=True))
        nodes, offsets = np.array(list(copies), dtype=np.int64).T
        delay = self.network.delay[links]
        return PointNetwork(self, nodes, np.array(self.stores)[nodes], tails, heads, links, offsets[tails], delay)


@dataclass(frozen=True, eq=False)
class PointNetwork:
    """Points at which data may be and arcs between them."""

    exchange: Exchange
    node: Ints
    stores: Ints
    tails: Ints
    heads: Ints
    link: Ints
    offset: Ints  #: Epochs between the last departure from a node that stores and the use of the arc.
    delay: Ints

    @cached_property
    def distance(self) -> Ints:
        """First epoch in which each rank's data can be used at each point; shape (ranks, points)."""
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
    """Blocks of epochs that divide a makespan."""

    starts: tuple[int, ...]  #: First epoch of every block and, last, the makespan K.
    side: Side  #: ``relax`` for a lower bound, ``restrict`` for feasible flows.

    @property
    def epochs(self) -> int:
        """The makespan K."""
        return self.starts[-1]

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return len(self.starts) - 1

    def length(self, block: int) -> int:
        """Return the number of epochs of a block."""
        return self.starts[block + 1] - self.starts[block]

    def usable(self, block: int, after: int) -> int:
        """Return the first block in which data sent in ``block`` can be forwarded ``after`` epochs later.

        ``blocks`` stands for the end of the grid; a larger number means too late (docs/methods/teccl.md).
        """
        if self.side == "relax":
            at = self.starts[block] + after
            return self.blocks + 1 if at > self.epochs else bisect_right(self.starts, at) - 1
        early, late = self.starts[block] + after, self.starts[block + 1] - 1 + after
        if late >= self.epochs:
            return self.blocks if late == self.epochs else self.blocks + 1
        return max(bisect_left(self.starts, early), bisect_right(self.starts, late) - 1)


def points_for(exchange: Exchange, side: Side) -> PointNetwork:
    """Return the points and arcs of a side; in a relaxation all nodes store."""
    if side == "restrict":
        return exchange.unfolded_network
    return replace(exchange.network, stores=np.ones(len(exchange.stores), dtype=np.bool_))


def coarse(exchange: Exchange, epochs: int, blocks: int, side: Side) -> BlockGrid:
    """Cut a makespan into about ``blocks`` blocks, at the earliest arrivals and latest departures of data.

    Data sent from one such epoch on arrives at another one, so delayed cuts are cuts as well.
    """
    if blocks >= epochs:
        return BlockGrid(tuple(range(epochs + 1)), side)
    ways = {int(d) for d in exchange.unfolded_network.distance.flat if 0 < d <= epochs}
    starts = {0, epochs}
    doubled = (2**k for k in range((epochs // 2).bit_length()))
    for way in (*sorted(ways), *doubled):
        if len(starts) > blocks * 3 // 4:
            break
        starts |= {way, epochs + 1 - way}
    step = gcd(*exchange.delay)
    if side == "restrict" and step > 1 and epochs // step <= ALIGNED * blocks:
        starts |= set(range(0, epochs, step))
    slack = epochs + 1 - max(ways, default=0)  # of the farthest path: its midpoint, then those of its halves, and so on
    for offset in (slack * i // 2**k for k in range(1, (2 * slack).bit_length()) for i in range(1, 2**k, 2)):
        if len(starts) > blocks:
            break
        starts |= {way + offset for way in (0, *ways) if way + offset < epochs}
    while len(starts) <= blocks:
        ordered = sorted(starts)
        width, at = max((b - a, a) for a, b in itertools.pairwise(ordered))
        starts.add(at + width // 2)
    return BlockGrid(tuple(sorted(starts)), side)


@dataclass(frozen=True, eq=False)
class ReducedFlows:
    """Flows of a problem, grouped in classes of equal ones."""

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


@dataclass(frozen=True, eq=False)
class BlockProgram:
    """Index sets of the linear program."""

    exchange: Exchange
    grid: BlockGrid
    reduced: ReducedFlows


def reduce(network: PointNetwork, *, symmetric: bool = True) -> ReducedFlows:
    """Compute the classes; without ``symmetric`` every flow is a class of its own, for tests."""
    exchange, sources, points = network.exchange, len(network.exchange.ranks), len(network.node)
    flows = FlowArcs(network.tails, network.heads, network.link, points, len(exchange.tails))
    first = np.zeros((sources, points), dtype=np.int64)
    first[:, ~network.stores.astype(bool)] = 1
    first[:, network.rank_points] = 2
    first[np.arange(sources), network.rank_points] = 3
    if not symmetric:
        first = np.arange(first.size).reshape(first.shape)
    arcs = list(zip(network.delay.tolist(), network.offset.tolist(), strict=True))
    kinds = exchange.capacity if symmetric else range(len(exchange.tails))
    return ReducedFlows(network, refine(flows, first, arcs, kinds))


def _members(table: Ints) -> list[tuple[int, int]]:
    first = np.unique(table, return_index=True)[1]
    return [(int(i) // table.shape[1], int(i) % table.shape[1]) for i in first]
