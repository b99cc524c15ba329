"""The all-to-all on a grid of epochs, in whole numbers: what the linear program, the bounds and the check all start from."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from ...core.errors import InputError
from ..common.colour_refinement import Ints

#: Larger than any epoch.
NEVER = 2**40

#: Links of a way through switches.
MAX_SWITCHES = 4


@dataclass(frozen=True)
class Exchange:
    """Every rank sends one unit of data to every other rank; the data may be split at will.

    Parameters
    ----------
    stores : tuple of bool
        For every node whether it keeps what it has. What reaches a node that does not must leave in the epoch in which it could first be used.
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
    def network(self) -> Ways:
        """Nodes as points and links as arcs."""
        n, links = len(self.stores), len(self.tails)
        arrays = [np.array(x, dtype=np.int64) for x in (self.tails, self.heads, range(links), [0] * links, self.delay)]
        return Ways(self, np.arange(n), np.array(self.stores), *arrays)

    @cached_property
    def unfolded(self) -> Ways:
        """Nodes that store, and a copy of every other one for each time that data may have been under way when it passes.

        Data leaves a node that stores and is at the next such node after at most :data:`MAX_SWITCHES` others, none of them twice.
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
        return Ways(self, nodes, keeps, tails, heads, links, waited, np.array(self.delay, dtype=np.int64)[links])


@dataclass(frozen=True, eq=False)
class Ways:
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
        found = np.full((len(self.exchange.ranks), len(self.node)), NEVER, dtype=np.int64)
        found[np.arange(len(found)), self.rank_points] = 0
        while True:
            better = found.copy()
            np.minimum.at(better.T, self.heads, (found[:, self.tails] + self.delay).T)
            if (better == found).all():
                return np.minimum(found, NEVER)
            found = better

    @cached_property
    def rest(self) -> Ints:
        """Epochs from every point to the nearest rank that wants something; 0 at ranks; shape (points,)."""
        found = np.full(len(self.node), NEVER, dtype=np.int64)
        found[self.rank_points] = 0
        while True:
            better = found.copy()
            np.minimum.at(better, self.tails, found[self.heads] + self.delay)
            if (better == found).all():
                return np.minimum(found, NEVER)
            found = better

    @cached_property
    def rank_points(self) -> Ints:
        """Point of every rank."""
        at = {int(node): point for point, node in enumerate(self.node)}
        return np.array([at[rank] for rank in self.exchange.ranks], dtype=np.int64)
