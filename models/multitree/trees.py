"""All trees at the same time: in a step they take turns until none of them can add an edge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ...core.budget import Budget
from ...core.errors import InputError
from ...core.topology import Topology
from .ports import Ports


class Edge(NamedTuple):
    """An edge of a tree.

    Parameters
    ----------
    step : int
        When it is used in an all-gather, from 0.
    tree, parent, child : int
        Positions in the group; a tree is named after its root.
    links : tuple of int
        From parent to child.
    """

    step: int
    tree: int
    parent: int
    child: int
    links: tuple[int, ...]


class Tree:
    """A tree while it grows.

    Parameters
    ----------
    root : int
        Position in the group.
    n : int
        Ranks in the group.
    """

    def __init__(self, root: int, n: int) -> None:
        self.root = root
        self.wanted = (1 << n) - 1 & ~(1 << root)  # the ranks that it lacks, as a set
        self._fertile = [root]  # the ranks that may still have children, in the order in which they joined
        self._joined: list[int] = []
        self._parents: Iterator[int] = iter(())
        self._parent: int | None = None

    def begin(self, ports: Ports) -> None:
        """Let the ranks that joined in the step before become parents."""
        self._fertile = [p for p in (*self._fertile, *self._joined) if ports.reach[p] & self.wanted]
        self._joined = []
        self._parents = iter(self._fertile)
        self._parent = next(self._parents, None)

    def add(self, ports: Ports, step: int) -> Edge | None:
        """Take a turn: a parent that can have no child now will not be able to in this step, for links only become fewer."""
        while self._parent is not None and self.wanted and ports.able:
            if ports.hope[self._parent] & self.wanted and (found := ports.take(self._parent, self.wanted)):
                child, links = found
                self.wanted &= ~(1 << child)
                self._joined.append(child)
                return Edge(step, self.root, self._parent, child, links)
            self._parent = next(self._parents, None)
        return None


def grow(topology: Topology, nodes: Sequence[int], uses: Sequence[int], budget: Budget) -> list[Edge] | None:
    """Grow a spanning tree from every rank of a group.

    Parameters
    ----------
    topology : Topology
        The network.
    nodes : sequence of int, length n
        Node of every position of the group.
    uses : sequence of int
        Edges that each link may have in a step.
    budget : Budget
        Limits of the run, asked before every step.

    Returns
    -------
    list of Edge or None
        The n (n - 1) edges in the order in which they were added, so that steps do not decrease. None if the budget ended first.

    Raises
    ------
    InputError
        If a rank cannot be reached.
    """
    ports = Ports(topology, nodes, uses)
    trees = [Tree(root, len(nodes)) for root in range(len(nodes))]
    edges: list[Edge] = []
    step = 0
    while trees := [tree for tree in trees if tree.wanted]:
        if budget.exhausted:
            return None
        if not (added := grow_step(ports, trees, step)):
            name = topology.nodes[nodes[trees[0].root]].name
            raise InputError(f"not every rank can be reached from {name!r}", place="links")
        edges += added
        step += 1
    return edges


def grow_step(ports: Ports, trees: Sequence[Tree], step: int) -> list[Edge]:
    """Give every link away, one edge to each tree in turn; the trees that reach the fewest ranks come first."""
    ports.free_all()
    for tree in trees:
        tree.begin(ports)
    turns = sorted(trees, key=lambda tree: (-tree.wanted.bit_count(), tree.root))
    edges: list[Edge] = []
    while turns:
        added = [(tree, edge) for tree in turns if (edge := tree.add(ports, step))]
        edges += [edge for _, edge in added]
        turns = [tree for tree, _ in added]
    return edges
