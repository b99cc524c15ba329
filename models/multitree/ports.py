"""Which links are free in a step, and the nearest rank that a parent can still reach over free ones.

Sets of ranks are integers with a bit for each position of the group: the networks of interest have hundreds of ranks,
and the question that is asked all the time, whether one of many ranks is in reach, is then a single operation.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from ...core.topology import Topology


def parallel_uses(topology: Topology) -> list[int]:
    """Give the edges that every link may have in a step: k_e = floor(b_e / min b), exactly.

    A link of k times the smallest bandwidth counts as k parallel ones, and what is left over is lost.
    """
    smallest = min(link.bandwidth_Bps for link in topology.links)
    return [int(link.bandwidth_Bps // smallest) for link in topology.links]


class Ports:
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
            if found := self._open[node] & wanted:
                child = _next_after(parent, found)
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
        """Give the ranks that can be reached from a node without passing through one of the group."""
        seen, frontier, found = {start}, [start], 0
        for node in frontier:
            found |= self._all_open[node]
            for onward, _ in self._onward[node]:
                if onward not in seen:
                    seen.add(onward)
                    frontier.append(onward)
        return found


def _set_of(positions: Iterable[int]) -> int:
    found = 0
    for position in positions:
        found |= 1 << position
    return found


def _next_after(position: int, found: int) -> int:
    """Give the first element of a set after a position, around the end."""
    later = found >> (position + 1)
    if later:
        return position + (later & -later).bit_length()
    return (found & -found).bit_length() - 1
