"""Boxes, leafs and pods found in the network itself: groups of nodes that are joined by edges, and positions in them that correspond.

Nothing is read from the names of nodes. Once the switches of a tier are gone, the nodes that they joined have edges among them: the
connected components are the hierarchy, from the bottom up. Equal groups are put over one another by colour refinement: two nodes
get the same position only where the groups' capacities agree, node by node.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ....core.schedule import Bools, Ints
from ..digraph import Digraph

#: Larger groups keep the order of their nodes.
_LARGEST = 128

#: How often other choices are tried where the first ones did not lead to equal groups.
_TRIES = 4

_Hashes = NDArray[np.uint64]
_MIX = np.uint64(0x9E3779B97F4A7C15)
_MIX_IN = np.uint64(0xBF58476D1CE4E5B9)
_MIX_OUT = np.uint64(0x94D049BB133111EB)
_SHIFT = np.uint64(29)


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of nodes.

    Parameters
    ----------
    group : array of int, shape (nodes,)
        Group of every node; -1 of those that are in none.
    position : array of int, shape (nodes,)
        Position in the group.
    family : array of int, shape (groups,)
        Groups of the same family are equal, position by position.
    """

    group: Ints
    position: Ints
    family: Ints

    @property
    def count(self) -> int:
        """Number of groups."""
        return len(self.family)


def find_groups(graph: Digraph, members: Bools) -> Groups:
    """Give the components of the members by the edges among them, with corresponding positions.

    Parameters
    ----------
    graph : Digraph
        The network.
    members : array of bool, shape (nodes,)
        The nodes to group; all others are left out, and edges to them count as a property of a node.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    nodes = np.flatnonzero(members)
    place = np.full(graph.nodes, -1, dtype=np.int64)
    place[nodes] = np.arange(len(nodes))
    inner = members[graph.tail] & members[graph.head]
    ends = place[graph.tail[inner]], place[graph.head[inner]]
    matrix = csr_array((np.ones(len(ends[0])), ends), shape=(len(nodes), len(nodes)))
    count, label = connected_components(matrix, directed=False)
    group = np.full(graph.nodes, -1, dtype=np.int64)
    group[nodes] = label
    position = np.zeros(graph.nodes, dtype=np.int64)
    order = np.argsort(label, kind="stable")
    sizes = np.bincount(label, minlength=count)
    position[nodes[order]] = np.arange(len(nodes)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    family = np.arange(count)
    for size in np.unique(sizes):
        if 1 < size <= _LARGEST and (alike := np.flatnonzero(sizes == size)).size > 1:
            _align(graph, group, position, family, alike, int(size))
    singles = np.flatnonzero(sizes == 1)
    family[singles] = singles[0] if len(singles) else 0
    return Groups(group, position, family)


def _align(graph: Digraph, group: Ints, position: Ints, family: Ints, alike: Ints, size: int) -> None:
    """Put groups of the same size over one another where they are equal; changes ``position`` and ``family``."""
    where = np.full(int(group.max()) + 1, -1, dtype=np.int64)
    where[alike] = np.arange(len(alike))
    inside = np.flatnonzero(group >= 0)
    inside = inside[where[group[inside]] >= 0]
    node = np.empty((len(alike), size), dtype=np.int64)
    node[where[group[inside]], position[inside]] = inside
    weight = np.zeros((len(alike), size, size), dtype=np.int64)
    outside = np.zeros((len(alike), size, 2), dtype=np.int64)
    own = np.zeros(graph.nodes, dtype=np.bool_)
    own[inside] = True
    small = np.array([int(c) % 2**61 for c in graph.capacity.tolist()], dtype=np.int64)
    tail, head = graph.tail, graph.head
    both = own[tail] & own[head] & (group[tail] == group[head])
    weight[where[group[tail[both]]], position[tail[both]], position[head[both]]] = small[both]
    for end, column in ((tail, 0), (head, 1)):
        edge = own[end] & ~both
        np.add.at(outside[:, :, column], (where[group[end[edge]]], position[end[edge]]), small[edge])
    pending = np.arange(len(alike))
    for attempt in range(_TRIES):
        order = _discrete(weight[pending], outside[pending], attempt)
        rows = np.arange(len(pending))[:, None]
        sorted_weight = weight[pending][rows[:, :, None], order[:, :, None], order[:, None, :]]
        sorted_outside = outside[pending][rows, order]
        equal = (sorted_weight == sorted_weight[0]).all(axis=(1, 2)) & (sorted_outside == sorted_outside[0]).all(
            axis=(1, 2)
        )
        aligned = pending[equal]
        if len(aligned) > 1 or attempt == _TRIES - 1:
            position[node[aligned[:, None], order[equal]]] = np.arange(size)
            family[alike[aligned]] = alike[aligned[0]]
            pending = pending[~equal]
        if len(pending) < 2:
            return


def _discrete(weight: Ints, outside: Ints, attempt: int) -> Ints:
    """Order the nodes of every group by colours that are refined until each node has its own; shape (groups, size)."""
    groups, size, _ = weight.shape
    colour = _scramble(outside[:, :, 0].astype(np.uint64) * _MIX_OUT + outside[:, :, 1].astype(np.uint64) * _MIX_IN)
    out, into = weight.astype(np.uint64) * _MIX_OUT, weight.transpose(0, 2, 1).astype(np.uint64) * _MIX_IN
    edges = _scramble(out + into)
    rows = np.arange(groups)
    colour = _refined(colour, edges)
    for chosen in range(size):
        ranked = np.sort(colour, axis=1)
        same = ranked[:, 1:] == ranked[:, :-1]
        ties = same.any(axis=1)
        if not ties.any():
            break
        # The smallest colour that several nodes have; of these nodes, one is singled out.
        shared = ranked[rows, same.argmax(axis=1)]
        candidates = (colour == shared[:, None]) & ties[:, None]
        skip = np.minimum(attempt, candidates.sum(axis=1) - 1) if chosen == 0 else np.zeros(groups, dtype=np.int64)
        nth = (candidates.cumsum(axis=1) == (skip + 1)[:, None]) & candidates
        colour = np.where(nth, _scramble(colour + np.uint64(chosen + 1)), colour)
        colour = _refined(colour, edges)
    return np.argsort(colour, axis=1, kind="stable")


def _refined(colour: _Hashes, edges: _Hashes) -> _Hashes:
    """Refine colours by those of the neighbours until no class is divided any more."""
    classes = _classes(colour)
    while True:
        finer = _scramble(colour * _MIX + _scramble(edges ^ _scramble(colour)[:, None, :]).sum(axis=2))
        more = _classes(finer)
        if (more <= classes).all():
            return finer
        colour, classes = finer, more


def _classes(colour: _Hashes) -> Ints:
    ranked = np.sort(colour, axis=1)
    return np.asarray(1 + (ranked[:, 1:] != ranked[:, :-1]).sum(axis=1), dtype=np.int64)


def _scramble(value: _Hashes) -> _Hashes:
    mixed = (value ^ (value >> _SHIFT)) * _MIX_IN
    return np.asarray(mixed ^ (mixed >> _SHIFT), dtype=np.uint64)
