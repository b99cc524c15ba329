"""A pool of cuts: sets of nodes, and what each has to spare above what the trees still to be built must bring into it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ....core.schedule import Bools, Ints
from ..digraph import Digraph, Exact
from .groups import Groups

#: Distinct capacities at which the network is cut into strongly connected parts.
_THRESHOLDS = 24

#: A pool larger than this costs more than it saves.
_MOST = 4096


class CutPool:
    """Cuts that no tree may overload; any set of nodes may be in it, since what it has to spare is computed exactly.

    Parameters
    ----------
    graph : Digraph
        The network.
    groups : iterable of Groups
        Its groups, level by level: they are the first cuts, and a cut found in one group is copied to those that are equal.
    """

    def __init__(self, graph: Digraph, groups: Iterable[Groups]) -> None:
        self.graph = graph
        self.groups = tuple(groups)
        self._known: set[bytes] = set()
        self.inside: Bools = np.zeros((0, graph.nodes), dtype=np.bool_)
        sides = [level.group == index for level in self.groups for index in range(level.count) if level.count > 1]
        self.add([*sides, *_linked_parts(graph)])

    def __len__(self) -> int:
        return len(self.inside)

    def add(self, sides: Iterable[Bools], *, images: bool = False) -> None:
        """Add cuts that are not in the pool yet, with their images in equal groups."""
        fresh: list[Bools] = []
        for side in sides:
            for each in (side, *(self._images(side) if images else ())):
                key = np.packbits(each).tobytes()
                size = int(each.sum())
                if 1 < size < self.graph.nodes and key not in self._known and len(self._known) < _MOST:
                    self._known.add(key)
                    fresh.append(each)
        if fresh or not len(self.inside):
            self.inside = np.concatenate([self.inside, np.array(fresh, dtype=np.bool_).reshape(-1, self.graph.nodes)])
            node, cut = np.nonzero(self.inside.T)
            self.cuts = cut.astype(np.int64)
            self.cut_start = np.searchsorted(node, np.arange(self.graph.nodes + 1)).astype(np.int64)

    def slack(self, residual: Exact, demand: Exact) -> Exact:
        """Give what every cut has to spare; shape (cuts,)."""
        tail, head = self.graph.tail, self.graph.head
        by_head = np.argsort(head, kind="stable")
        into = np.split(by_head, np.searchsorted(head[by_head], np.arange(1, self.graph.nodes)))
        spare = np.zeros(len(self.inside), dtype=residual.dtype)
        total = demand.sum()
        for j, side in enumerate(self.inside):
            edges = np.concatenate([into[node] for node in np.flatnonzero(side)])
            spare[j] = residual[edges[~side[tail[edges]]]].sum() - (total - demand[side].sum())
        return spare

    def _images(self, side: Bools) -> Iterable[Bools]:
        """Copies of a set that lies in one group to all groups that are equal to it, by position."""
        for level in self.groups:
            owner = np.unique(level.group[side])
            if len(owner) != 1 or owner[0] < 0 or level.count < 2:
                continue
            alike = np.flatnonzero(level.family == level.family[owner[0]])
            position = level.position[side]
            size = int(level.position[level.group == owner[0]].max()) + 1
            place = np.zeros(size, dtype=np.bool_)
            place[position] = True
            for other in alike.tolist():
                if other != owner[0]:
                    members = np.flatnonzero(level.group == other)
                    image = np.zeros(self.graph.nodes, dtype=np.bool_)
                    image[members[place[level.position[members]]]] = True
                    yield image
            return


def _linked_parts(graph: Digraph) -> Iterable[Bools]:
    """Give the parts that edges of at least some capacity join, for a few capacities."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    values = sorted(set(graph.capacity.tolist()))
    step = max(len(values) // _THRESHOLDS, 1)
    for least in values[1::step]:
        strong = graph.capacity >= least
        ends = graph.tail[strong], graph.head[strong]
        matrix = csr_array((np.ones(len(ends[0])), ends), shape=(graph.nodes, graph.nodes))
        count, label = connected_components(matrix, directed=False)
        sizes = np.bincount(label, minlength=count)
        for part in np.flatnonzero(sizes > 1):
            yield label == part


def seeds(groups: Iterable[Groups], members: Ints) -> tuple[Groups, ...]:
    """Give groups in the numbering of the members alone.

    Parameters
    ----------
    groups : iterable of Groups
        Groups in the numbering of the whole network.
    members : array of int
        Number in the whole network of every member.
    """
    return tuple(Groups(level.group[members], level.position[members], level.family) for level in groups)
