"""The trees, all grown at the same time: in a step they take turns over free links, until none can add an edge.

Sets of ranks are integers with a bit for each position of the group: the networks of interest have hundreds of ranks,
and the question that is asked all the time, whether one of many ranks is in reach, is then a single operation.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ...core.budget import Budget
from ...core.errors import InputError
from ...core.topology import Topology


class StepEdge(NamedTuple):
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

    def begin(self, ports: StepLinks) -> None:
        """Let the ranks that joined in the step before become parents."""
        self._fertile = [p for p in (*self._fertile, *self._joined) if ports.reach[p] & self.wanted]
        self._joined = []
        self._parents = iter(self._fertile)
        self._parent = next(self._parents, None)

    def add(self, ports: StepLinks, step: int) -> StepEdge | None:
        """Take a turn; a parent that can have no child now cannot later in the step, for links only become fewer."""
        while self._parent is not None and self.wanted and ports.able:
            if ports.hope[self._parent] & self.wanted and (taken := ports.take(self._parent, self.wanted)):
                child, links = taken
                self.wanted &= ~(1 << child)
                self._joined.append(child)
                return StepEdge(step, self.root, self._parent, child, links)
            self._parent = next(self._parents, None)
        return None


def grow(topology: Topology, nodes: Sequence[int], uses: Sequence[int], budget: Budget) -> list[StepEdge] | None:
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
        The n (n - 1) edges in the order in which they were added, so that steps do not decrease. None if the budget
        ended first.

    Raises
    ------
    InputError
        If a rank cannot be reached.
    """
    ports = StepLinks(topology, nodes, uses)
    trees = [Tree(root, len(nodes)) for root in range(len(nodes))]
    edges: list[StepEdge] = []
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


def grow_step(ports: StepLinks, trees: Sequence[Tree], step: int) -> list[StepEdge]:
    """Use up the links, one edge to each tree in turn; the trees that reach the fewest ranks come first."""
    ports.free_all()
    for tree in trees:
        tree.begin(ports)
    turns = sorted(trees, key=lambda tree: (-tree.wanted.bit_count(), tree.root))
    edges: list[StepEdge] = []
    while turns:
        added = [(tree, edge) for tree in turns if (edge := tree.add(ports, step))]
        edges += [edge for _, edge in added]
        turns = [tree for tree, _ in added]
    return edges


class StepLinks:
    """The links of a network during a step.

    Parameters
    ----------
    topology : Topology
        The network.
    nodes : sequence of int, length n
        Node of every position of the group. All other nodes only pass on.
    uses : sequence of int
        Edges that each link may have in a step.
    """

    def __init__(self, topology: Topology, nodes: Sequence[int], uses: Sequence[int]) -> None:
        self._nodes, self._uses = nodes, uses
        position = {node: index for index, node in enumerate(nodes)}
        between: dict[tuple[int, int], list[int]] = defaultdict(list)
        for link, ends in enumerate(topology.link_ends):
            between[ends].append(link)
        count = len(topology.nodes)
        self._to_rank: list[dict[int, list[int]]] = [{} for _ in range(count)]
        self._onward: list[list[tuple[int, list[int]]]] = [[] for _ in range(count)]
        for (source, target), links in between.items():
            if target in position:
                self._to_rank[source][position[target]] = links
            else:
                self._onward[source].append((target, links))
        self._all_open = [_set_of(links) for links in self._to_rank]
        self.reach = tuple(self._reach(node) for node in nodes)
        self.free_all()

    def free_all(self) -> None:
        """Begin a step."""
        self._left = list(self._uses)
        self._open = list(self._all_open)  # of every node, the ranks that it has a free link to
        self.hope = list(self.reach)  # of every position, no fewer than the ranks that it can reach over free links
        self.able = (1 << len(self._nodes)) - 1  # the positions that hope for any

    def take(self, parent: int, wanted: int) -> tuple[int, tuple[int, ...]] | None:
        """Find a nearest rank over free links, and use them.

        Parameters
        ----------
        parent : int
            Position from where the search starts.
        wanted : int
            Set of positions that may be found.

        Returns
        -------
        tuple of int and tuple of int, or None
            The rank's position and the links to it, None if there is none.
        """
        start = self._nodes[parent]
        frontier, reached = [start], 0
        came: dict[int, tuple[int, list[int]]] = {}
        for node in frontier:  # grows while it is gone through: breadth first
            if reachable := self._open[node] & wanted:
                child = _next_after(parent, reachable)
                path = self._use(came, node, child)
                if not self._open[start] and not any(self._any_free(links) for _, links in self._onward[start]):
                    self._close(parent, 0)
                return child, path
            reached |= self._open[node]
            for onward, links in self._onward[node]:
                if onward not in came and self._any_free(links):
                    came[onward] = node, links
                    frontier.append(onward)
        self._close(parent, reached)
        return None

    def _close(self, parent: int, reached: int) -> None:
        """Remember what a position can reach at most: links only become fewer until the step ends."""
        self.hope[parent] = reached
        if not reached:
            self.able &= ~(1 << parent)

    def _use(self, came: Mapping[int, tuple[int, list[int]]], node: int, child: int) -> tuple[int, ...]:
        """Use the links to a child from the last node before it, and back to the start of the search."""
        links = self._to_rank[node][child]
        path = [self._first_free(links)]
        if not self._any_free(links):
            self._open[node] &= ~(1 << child)
        while node in came:
            node, links = came[node]
            path.append(self._first_free(links))
        return tuple(reversed(path))

    def _any_free(self, links: Iterable[int]) -> bool:
        return any(self._left[link] for link in links)

    def _first_free(self, links: Sequence[int]) -> int:
        """Use the first of several parallel links that is free."""
        link = next(link for link in links if self._left[link])
        self._left[link] -= 1
        return link

    def _reach(self, start: int) -> int:
        """The ranks that can be reached from a node without passing through one of the group."""
        seen, frontier, ranks = {start}, [start], 0
        for node in frontier:
            ranks |= self._all_open[node]
            for onward, _ in self._onward[node]:
                if onward not in seen:
                    seen.add(onward)
                    frontier.append(onward)
        return ranks


def _set_of(positions: Iterable[int]) -> int:
    bits = 0
    for position in positions:
        bits |= 1 << position
    return bits


def _next_after(position: int, ranks: int) -> int:
    """The first element of a set after a position, around the end."""
    later = ranks >> (position + 1)
    if later:
        return position + (later & -later).bit_length()
    return (ranks & -ranks).bit_length() - 1
