"""C-Cube: two binary trees on the links of a DGX-1, whose sums go up while earlier sums already come down.

Cho, Son, Kim, HPCA 2023, as far as other texts describe it. Given eight ranks and wires between them, find two trees
and the steps of all sends, so that a wire has one send in a step. Shape, detours, time and own choices:
docs/methods/ccube.md.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Annotated

from pydantic import Field

from ..algorithms.schedules.pipelined_trees import TreeEdge, tree_all_reduce
from ..algorithms.schedules.problem import parallel_uses
from ..core.budget import Budget
from ..core.collective import Collective
from ..core.errors import Refusal, Unsupported
from ..core.fields import Strict
from ..core.instance import Instance
from ..core.method import Metric
from ..core.outcome import Outcome
from ..core.refusals import refuse_unfit
from ..core.schedule import Schedule
from ..core.solver import Solver
from ..core.topology import Topology
from . import heuristic

SHAPE = (-1, 0, 1, 1, 2, 2, 3, 3)  #: Parent of every place in a tree; the places from 4 on are leaves.
RANKS, INNER = 8, 4  #: Ranks, and places of a tree that have children.
_MAX_DETOURS = 4  #: Edges that may lead through a third rank, over both trees.
EFFORT = 300_000  #: Ranks that are tried in a place, before the search gives up.

Placed = tuple[int, tuple[int, ...]]  #: A rank in its place, and the ranks on the way to its parent, both included.


class TreeSearch:
    """Search that places ranks one by one, first in the one tree, then in the other.

    ``wires`` counts those between two nodes, ``detours`` the edges that must lead through a third rank.
    """

    def __init__(self, wires: Mapping[tuple[int, int], int], detours: int) -> None:
        self._free = dict(wires)
        self._detours = detours
        self.attempts = 0

    def find(self, placed: tuple[Placed, ...] = ()) -> tuple[Placed, ...] | None:
        """Complete the trees; None if there is no way, or it was too long to look for one."""
        if len(placed) == 2 * RANKS:
            return placed if self._detours == 0 else None
        for rank in self._fitting(placed):
            self.attempts += 1
            if self.attempts > EFFORT:
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
        if self._free.get((rank, above), 0):
            return [(rank, above)]
        if not self._detours:
            return []
        return [
            (rank, third, above)
            for third in range(RANKS)
            if self._free.get((rank, third), 0) and self._free.get((third, above), 0)
        ]

    def _use(self, way: tuple[int, ...], change: int) -> None:
        self._detours += change * (len(way) == 3)
        for a, b in pairwise(way):
            self._free[a, b] += change
            self._free[b, a] += change


def two_trees(topology: Topology) -> tuple[list[list[TreeEdge]], int] | None:
    """Find two trees with the fewest detours.

    Return the edges of both trees, parents first, and the number of detours. None if no such trees were found.
    """
    for detours in range(_MAX_DETOURS + 1):
        placed = TreeSearch(wires_of(topology), detours).find()
        if placed is not None:
            spare: dict[tuple[int, int], list[int]] = {}  # the links of the wires between two nodes
            for link, (ends, count) in enumerate(zip(topology.link_ends, parallel_uses(topology), strict=True)):
                spare.setdefault(ends, []).extend([link] * count)
            return [_edges(spare, placed[:RANKS]), _edges(spare, placed[RANKS:])], detours
    return None


def wires_of(topology: Topology) -> dict[tuple[int, int], int]:
    """Count the wires between two nodes; both directions have as many."""
    one_way: Counter[tuple[int, int]] = Counter()
    for ends, wires in zip(topology.link_ends, parallel_uses(topology), strict=True):
        one_way[ends] += wires
    return {(a, b): min(count, one_way[b, a]) for (a, b), count in one_way.items()}


def _edges(spare: dict[tuple[int, int], list[int]], tree: tuple[Placed, ...]) -> list[TreeEdge]:
    """Make edges of the places of a tree, with a wire each that is then no longer spare."""
    edges = []
    for rank, way in tree[1:]:
        hops = list(pairwise(way))
        up = tuple(spare[ends].pop() for ends in hops)
        down = tuple(spare[b, a].pop() for a, b in reversed(hops))
        edges.append(TreeEdge(rank, way[-1], up, down))
    return edges


class CcubeOptions(Strict):
    """Options of ``c-cube``."""

    pieces: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """Pieces of each tree's half; by default the collective's chunks, or the best number if 1."""


def supports(instance: Instance) -> Refusal | None:
    """Return the reason why an instance does not fit, if any (``Method.supports``)."""
    unfit = refuse_unfit(instance, (Collective.ALL_REDUCE,), such_as="dgx1()", single=True, of_all=True)
    if unfit is not None:
        return unfit
    topology = instance.topology
    if len(topology.ranks) != RANKS or topology.switches:
        shape = f"{len(topology.ranks)} ranks and {len(topology.switches)} switches"
        text = f"its trees are for the {RANKS} ranks of a DGX-1 without switches, not for {shape}; expected dgx1()"
        return Refusal("network", text)
    return None


def run(instance: Instance, solver: Solver, budget: Budget, options: CcubeOptions) -> Outcome:
    """Lay out the trees and send the pieces (``Method.run``)."""
    topology = instance.topology
    with budget.clock.phase("build"):
        layout = two_trees(topology)
        if layout is None:
            raise Unsupported("no two trees without a shared wire were found; expected a network such as dgx1()")
        trees, detours = layout
        about = {"detours": detours}
        return tree_all_reduce(instance, topology, trees, parallel_uses(topology), 1, options.pieces, about)


METHOD = heuristic(
    name="c-cube",
    summary="two binary trees on a DGX-1, sums going up while earlier ones come down",
    paper="Cho et al., Logical/Physical Topology-Aware Collective Communication in Deep Learning Training, HPCA 2023",
    answer_type=Schedule,
    options=CcubeOptions,
    solve=run,
    supports=supports,
    metrics={
        "pieces": Metric("pieces of each tree's half of the data, K"),
        "piece_steps": Metric("steps that a piece takes through the trees, L"),
        "detours": Metric("edges of the trees that lead through a third rank"),
    },
)
