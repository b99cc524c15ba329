"""Levels of a machine: boxes in pods, groups of a dragonfly, dimensions of a fabric (docs/methods/hierarchical.md).

A hierarchy numbers the ranks by a coordinate for every level, the innermost first.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import prod

import numpy as np

from ...algorithms.graphs.distances import distances
from ...algorithms.graphs.network import components
from ...algorithms.schedules.problem import GroupProblem
from ...core.errors import InputError
from ...core.network_views import fabric_of, rings_of
from ...core.schedule import Ints
from ...core.topology import NodeKind, Topology

#: Larger networks are not searched for communities, and larger groups not for equal distances.
_MAX_LINKS, _MAX_RANKS = 20_000, 4_096


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """Ranks by their coordinates.

    ``order`` has the rank at every position; the coordinate of a level changes fastest, the next outer one's slower.
    ``sizes`` are the ranks in a group of every level, the innermost first; their product is n.
    """

    order: Ints
    sizes: tuple[int, ...]

    @property
    def levels(self) -> range:
        """Levels, the innermost first."""
        return range(len(self.sizes))

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """Distance of positions that differ by one in the coordinate of each level."""
        return tuple(prod(self.sizes[:level]) for level in self.levels)

    def coordinate(self, position: Ints, level: int) -> Ints:
        """Coordinate of positions in a level."""
        return position // self.strides[level] % self.sizes[level]

    def keep_levels(self, position: Ints, levels: Sequence[int]) -> Ints:
        """Return the positions with all coordinates but those of some levels set to 0."""
        return sum((self.coordinate(position, d) * self.strides[d] for d in levels), np.zeros_like(position))

    def span_positions(self, levels: Sequence[int]) -> Ints:
        """Return all positions whose coordinates are 0 but in some levels."""
        positions = np.zeros(1, dtype=np.int64)
        for level in levels:
            positions = (positions[:, None] + np.arange(self.sizes[level]) * self.strides[level]).ravel()
        return positions

    def group(self, base: int, level: int) -> list[int]:
        """Return the ranks of a group, by its first position."""
        return [int(rank) for rank in self.order[base + np.arange(self.sizes[level]) * self.strides[level]]]

    def with_leader(self, rank: int) -> "Hierarchy":
        """Return the hierarchy with a rank at position 0, and every group rotated accordingly."""
        n = len(self.order)
        first = np.full(n, int(np.flatnonzero(self.order == rank)[0]))
        here = np.arange(n)
        turned = [(self.coordinate(here, d) + self.coordinate(first, d)) % self.sizes[d] for d in self.levels]
        place = sum((t * stride for t, stride in zip(turned, self.strides, strict=True)), np.zeros_like(here))
        return Hierarchy(self.order[place], self.sizes)

    def coarser(self) -> "Iterator[Hierarchy]":
        """Yield the hierarchy itself, and its coarsenings to two levels."""
        yield self
        for inner in self.strides[1:] if len(self.sizes) > 2 else ():
            yield Hierarchy(self.order, (inner, len(self.order) // inner))


def hierarchy_of_sizes(problem: GroupProblem, sizes: Sequence[int]) -> Hierarchy:
    """Levels of given sizes, ranks in their order. Their product must be the number of ranks."""
    if prod(sizes) != problem.n:
        text = f"levels of {' x '.join(map(str, sizes))} are {prod(sizes)} ranks; expected {problem.n}"
        raise InputError(text, source="-O", place="levels")
    return Hierarchy(np.array(sorted(problem.ranks), dtype=np.int64), tuple(sizes))


def find_hierarchy(problem: GroupProblem) -> Hierarchy:
    """Return the levels of a network: dimensions of a fabric, else nested parts of equal size. See :func:`parts`."""
    ranks = np.array(sorted(problem.ranks), dtype=np.int64)
    if problem.n == len(problem.topology.ranks):
        fabric = fabric_of(problem.topology) or rings_of(problem.topology)
        if fabric is not None:
            return Hierarchy(ranks, tuple(d.size for d in fabric.dimensions if d.size > 1))
    chain: list[Ints] = []
    counts = [problem.n]
    for labels in sorted(parts(problem.topology, ranks), key=lambda labels: -int(labels.max())):
        # Every part of the finer division lies in one of the coarser.
        nested = not chain or len(np.unique(np.stack([chain[-1], labels]), axis=1).T) == counts[-1]
        if nested and (not chain or labels.max() + 1 < counts[-1]):
            chain.append(labels)
            counts.append(int(labels.max()) + 1)
    counts.append(1)
    return Hierarchy(ranks[np.lexsort((ranks, *chain))], tuple(a // b for a, b in pairwise(counts)))


def parts(topology: Topology, ranks: Ints) -> Iterator[Ints]:
    """Divisions of ranks into several parts of one size: a label for every rank.

    What links of at least some bandwidth join; ranks that so few links are between; what names before a dot say; and
    communities, of which more bandwidth stays inside than would by chance (Louvain's method).
    """
    nodes = np.array(topology.rank_nodes, dtype=np.int64)[ranks]
    rate = np.array([float(link.bandwidth_Bps) for link in topology.links])
    ends = np.array(topology.link_ends, dtype=np.int64)
    fast = [components(len(topology.nodes), *ends[rate >= least].T) for least in np.unique(rate)[1:]]
    for labels in (*fast, *_by_name(topology), *_communities(topology)):
        yield from _equal(labels[nodes])
    yield from (labels for near in _by_distance(topology, nodes) for labels in _equal(near))


def _equal(labels: Ints) -> Iterator[Ints]:
    """Yield labels renumbered by first rank, if all parts have one size, neither all nor one."""
    _, first, inverse, count = np.unique(labels, return_index=True, return_inverse=True, return_counts=True)
    if 1 < len(count) < len(labels) and (count == count[0]).all():
        yield np.argsort(np.argsort(first))[inverse]


def _by_name(topology: Topology) -> Iterator[Ints]:
    names = [node.name.split(".") for node in topology.nodes]
    for length in range(1, max(map(len, names))):
        yield np.unique([".".join(name[:length]) for name in names], return_inverse=True)[1]


def _communities(topology: Topology) -> Iterator[Ints]:
    """Yield every level of Louvain's method, with bandwidths as weights."""
    if len(topology.links) > _MAX_LINKS:
        return
    import networkx as nx

    weight: dict[tuple[int, int], float] = defaultdict(float)
    for link, ends in zip(topology.links, topology.link_ends, strict=True):
        weight[min(ends), max(ends)] += float(link.bandwidth_Bps) / 1e9
    graph = nx.Graph()
    graph.add_nodes_from(range(len(topology.nodes)))
    graph.add_weighted_edges_from((a, b, w) for (a, b), w in weight.items())
    for communities in nx.community.louvain_partitions(graph, seed=0):
        labels = np.zeros(len(topology.nodes), dtype=np.int64)
        for label, some in enumerate(communities):
            labels[list(some)] = label
        yield labels


def _by_distance(topology: Topology, nodes: Ints) -> Iterator[Ints]:
    """Yield divisions of the ranks by hop distance, where it divides them."""
    if len(nodes) > _MAX_RANKS:
        return
    tail, head = np.array(topology.link_ends, dtype=np.int64).T
    far = distances(len(topology.nodes), tail, head, np.ones(len(tail), dtype=np.int64), nodes)[:, nodes]
    for most in np.unique(far)[1:-1]:
        near = far <= most
        labels = near.argmax(axis=1)
        if (near == (labels[:, None] == labels[None, :])).all():
            yield labels


class Networks:
    """Links that the data of each group may use.

    Switches that are joined, and a link between ranks, belong to the lowest level whose blocks (the ranks that differ
    in this level and inner ones) hold all ranks that they join. A group uses links of its own level; if these do not
    join it, any between its ranks and switches; and if those do not either, all links.
    """

    def __init__(self, topology: Topology, hierarchy: Hierarchy) -> None:
        self.topology, self.hierarchy = topology, hierarchy
        position = np.full(len(topology.nodes), -1)
        position[np.array(topology.rank_nodes)[hierarchy.order]] = np.arange(len(hierarchy.order))
        self._ends = np.array(topology.link_ends, dtype=np.int64).reshape(-1, 2)
        self._fabric = _joined_switches(topology)
        reach: dict[int, list[int]] = defaultdict(list)
        self._switch_links: dict[int, list[int]] = defaultdict(list)
        self._rank_links: dict[int, list[int]] = defaultdict(list)
        for link, (a, b) in enumerate(topology.link_ends):
            if self._fabric[a] >= 0 and self._fabric[b] >= 0:
                self._switch_links[self._fabric[a]].append(link)
                continue
            for rank, other in ((a, b), (b, a)):
                if self._fabric[rank] < 0:
                    self._rank_links[rank].append(link)
                    if self._fabric[other] >= 0 and position[rank] >= 0:
                        reach[self._fabric[other]].append(int(position[rank]))
        self._position, self._reach = position, reach
        self._level = {fabric: self._level_of(some) for fabric, some in reach.items()}

    def _level_of(self, positions: Sequence[int]) -> int:
        """Return the lowest level of which one block holds all positions."""
        ends = [*self.hierarchy.strides[1:], len(self.hierarchy.order)]
        return next(level for level, block in enumerate(ends) if len({p // block for p in positions}) == 1)

    def blocks(self, level: int) -> list[tuple[int, ...]]:
        """Return the nodes of every block of a level: ranks and the switches that join only them.

        Ranks of a block differ in this level and inner ones.
        """
        size = self.hierarchy.strides[level] * self.hierarchy.sizes[level]
        nodes_of: dict[int, list[int]] = defaultdict(list)
        for node, position in enumerate(self._position.tolist()):
            if position >= 0:
                nodes_of[position // size].append(node)
            elif (fabric := self._fabric[node]) >= 0 and fabric in self._level and self._level[fabric] <= level:
                nodes_of[self._reach[fabric][0] // size].append(node)
        return [tuple(nodes_of[block]) for block in sorted(nodes_of)]

    def links(self, nodes: Sequence[int], level: int) -> list[int]:
        """Return the links that a group of a level may use, in the order of the network."""
        for choice in (level, None):
            some = self._links(set(nodes), choice)
            tail, head = self._ends[some].T
            if len(np.unique(components(len(self._position), tail, head, strong=True)[list(nodes)])) == 1:
                result: list[int] = some.tolist()
                return result
        return list(range(len(self.topology.links)))

    def _links(self, nodes: set[int], level: int | None) -> Ints:
        links: set[int] = set()
        fabrics: set[int] = set()
        for node in nodes:
            for link in self._rank_links[node]:
                a, b = self.topology.link_ends[link]
                other = b if a == node else a
                if (fabric := self._fabric[other]) < 0:
                    pair = self._position[node], self._position[other]
                    if other in nodes and (level is None or self._level_of(pair) == level):
                        links.add(link)
                elif level is None or self._level[fabric] == level:
                    links.add(link)
                    fabrics.add(fabric)
        return np.array(sorted(links.union(*(self._switch_links[fabric] for fabric in fabrics))), dtype=np.int64)


def _joined_switches(topology: Topology) -> list[int]:
    """Switches with a path over switches have the same number; ranks have -1."""
    switch = np.array([node.kind is NodeKind.SWITCH for node in topology.nodes])
    tail, head = np.array(topology.link_ends, dtype=np.int64).reshape(-1, 2).T
    joined = switch[tail] & switch[head]
    labels: list[int] = np.where(switch, components(len(switch), tail[joined], head[joined]), -1).tolist()
    return labels
