"""Two binary trees on the links of a box of eight ranks, with at most one edge a wire.

The trees have the shape of double binary trees on eight ranks: a root with one child, two inner nodes below
it, four leaves. A rank that is an inner node of one tree is a leaf of the other one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise

from ...algorithms.schedules.pipelined_trees import TreeEdge
from ...algorithms.schedules.problem import parallel_uses
from ...core.topology import Topology

#: Parent of every place in a tree; the places from 4 on are leaves.
SHAPE = (-1, 0, 1, 1, 2, 2, 3, 3)

#: Ranks, and places of a tree that have children.
RANKS, INNER = 8, 4

#: Edges that may lead through a third rank, over both trees.
MAX_DETOURS = 4

#: Ranks that are tried in a place, before the search gives up.
EFFORT = 300_000

Wires = Mapping[tuple[int, int], int]

#: A rank in its place, and the ranks on the way to its parent, both included.
Placed = tuple[int, tuple[int, ...]]


class TreeSearch:
    """Search that places ranks one by one, first in the one tree, then in the other.

    Parameters
    ----------
    wires : mapping of (int, int) to int
        Number of wires between two nodes.
    detours : int
        Edges that must lead through a third rank.
    """

    def __init__(self, wires: Wires, detours: int) -> None:
        self._left = dict(wires)
        self._detours = detours
        self.tried = 0

    def find(self, placed: tuple[Placed, ...] = ()) -> tuple[Placed, ...] | None:
        """Complete the trees; None if there is no way, or it was too long to look for one."""
        if len(placed) == 2 * RANKS:
            return placed if self._detours == 0 else None
        for rank in self._fitting(placed):
            self.tried += 1
            if self.tried > EFFORT:
                return None
            parent = SHAPE[len(placed) % RANKS]
            above = rank if parent < 0 else placed[len(placed) // RANKS * RANKS + parent][0]
            for way in self._ways(rank, above):
                self._use(way, -1)
                complete = self.find((*placed, (rank, way)))
                self._use(way, 1)
                if complete is not None:
                    return complete
        return None

    def _fitting(self, placed: tuple[Placed, ...]) -> Iterator[int]:
        """Yield the ranks for the next place; siblings are in order, since they are interchangeable."""
        tree, place = divmod(len(placed), RANKS)
        mine = [rank for rank, _ in placed[tree * RANKS :]]
        inner = {rank for rank, _ in placed[:INNER]} if tree and place < INNER else set()
        brother = mine[-1] if place and SHAPE[place - 1] == SHAPE[place] else -1
        return (rank for rank in range(RANKS) if rank > brother and rank not in mine and rank not in inner)

    def _ways(self, rank: int, above: int) -> list[tuple[int, ...]]:
        """List the free ways to the parent: the direct one, or if there is none, those through a third rank."""
        if rank == above:
            return [(rank,)]
        if self._left.get((rank, above), 0):
            return [(rank, above)]
        if not self._detours:
            return []
        return [
            (rank, third, above)
            for third in range(RANKS)
            if self._left.get((rank, third), 0) and self._left.get((third, above), 0)
        ]

    def _use(self, way: tuple[int, ...], change: int) -> None:
        """Reserve or release the wires of a path."""
        self._detours += change * (len(way) == 3)
        for a, b in pairwise(way):
            self._left[a, b] += change
            self._left[b, a] += change


def two_trees(topology: Topology) -> tuple[list[list[TreeEdge]], int] | None:
    """Find two trees with the fewest detours.

    Parameters
    ----------
    topology : Topology
        Eight ranks and no switches.

    Returns
    -------
    tuple or None
        The edges of both trees, parents first, and the number of detours. None if no such trees were found.
    """
    wires = wires_of(topology)
    for detours in range(MAX_DETOURS + 1):
        placed = TreeSearch(wires, detours).find()
        if placed is not None:
            spare = _spare_links(topology)
            return [_edges(spare, placed[:RANKS]), _edges(spare, placed[RANKS:])], detours
    return None


def wires_of(topology: Topology) -> dict[tuple[int, int], int]:
    """Count the wires between two nodes; both directions have as many."""
    one_way: Counter[tuple[int, int]] = Counter()
    for ends, wires in zip(topology.link_ends, parallel_uses(topology), strict=True):
        one_way[ends] += wires
    return {(a, b): min(count, one_way[b, a]) for (a, b), count in one_way.items()}


def _spare_links(topology: Topology) -> dict[tuple[int, int], list[int]]:
    """List the links of the wires between two nodes."""
    spare: dict[tuple[int, int], list[int]] = {}
    for link, (ends, wires) in enumerate(zip(topology.link_ends, parallel_uses(topology), strict=True)):
        spare.setdefault(ends, []).extend([link] * wires)
    return spare


def _edges(spare: dict[tuple[int, int], list[int]], tree: tuple[Placed, ...]) -> list[TreeEdge]:
    """Make edges of the places of a tree, with a wire each that is then no longer spare."""
    edges = []
    for rank, way in tree[1:]:
        hops = list(pairwise(way))
        up = tuple(spare[ends].pop() for ends in hops)
        down = tuple(spare[b, a].pop() for a, b in reversed(hops))
        edges.append(TreeEdge(rank, way[-1], up, down))
    return edges
