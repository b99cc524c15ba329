"""Nodes that look alike: one of each kind is tried first, since it mostly gives the bound of all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...core.schedule import Ints
from .problem import ArcTable, EpochNetwork
from .search import EpochSearch

#: Images of the first source that are tried, and elements of the largest group.
TRIES = 48

LARGEST = 4096

#: Part of the effort for each group.
PART = 0.1


def kinds_of_nodes(network: EpochNetwork) -> Ints:
    """Number the nodes by kind: two of one kind have equal links to and from nodes of equal kinds, chunks and needs.

    Shape (nodes,).
    """
    owned = np.bincount(network.source, minlength=network.nodes)
    first: list[Any] = list(
        zip(network.stores.tolist(), owned.tolist(), network.lacking.sum(axis=0).tolist(), strict=True)
    )
    kinds = _numbered(first)
    links = np.stack([network.delay, network.window, network.room], axis=1).tolist()
    ends = list(zip(network.tail.tolist(), network.head.tolist(), map(tuple, links), strict=True))
    while True:
        seen: list[list[Any]] = [[] for _ in range(network.nodes)]
        for tail, head, link in ends:
            seen[tail].append((0, link, kinds[head]))
            seen[head].append((1, link, kinds[tail]))
        finer = _numbered([(kinds[v], tuple(sorted(seen[v]))) for v in range(network.nodes)])
        if max(finer) == max(kinds):
            return np.array(kinds, dtype=np.int64)
        kinds = finer


def examples(network: EpochNetwork) -> Ints:
    """The first node of every kind that lacks a chunk."""
    lacking = np.flatnonzero(network.lacking.any(axis=0))
    _, first = np.unique(kinds_of_nodes(network)[lacking], return_index=True)
    return np.sort(lacking[first])


def _numbered(values: list[Any]) -> list[int]:
    known: dict[Any, int] = {}
    return [known.setdefault(value, len(known)) for value in values]


@dataclass(frozen=True, eq=False)
class SymmetryGroup:
    """Commuting symmetries of a network, the identity first; no other keeps a link or a source in its place.

    So, if the chunks of one source from each orbit have a schedule in which the links of an orbit together start as
    much as one of them may, then its images under all elements are a schedule of everything.

    Parameters
    ----------
    nodes : array of int, shape (elements, nodes)
        Where every element takes every node.
    links : array of int, shape (elements, links)
        Where it takes every link.
    """

    nodes: Ints
    links: Ints

    @property
    def order(self) -> int:
        """Number of elements."""
        return len(self.nodes)

    def rows(self) -> Ints:
        """Number the orbits of links; shape (links,)."""
        return np.asarray(np.unique(self.links.min(axis=0), return_inverse=True)[1].reshape(-1))

    def with_generator(self, nodes: Ints, links: Ints) -> SymmetryGroup | None:
        """The group with one more element and its products.

        None if they do not commute, keep something in its place or are too many.
        """
        if any((nodes[own] != own[nodes]).any() for own in self.nodes):
            return None
        known = {own.tobytes() for own in self.nodes}
        all_nodes, all_links, power, moved = [self.nodes], [self.links], nodes, links
        while power.tobytes() not in known:
            all_nodes.append(power[self.nodes])
            all_links.append(moved[self.links])
            if len(all_nodes) * self.order > LARGEST:
                return None
            power, moved = nodes[power], links[moved]
        larger = SymmetryGroup(np.concatenate(all_nodes), np.concatenate(all_links))
        same = np.arange(larger.links.shape[1])
        return None if (larger.links[1:] == same).any() else larger


def groups(network: EpochNetwork) -> list[SymmetryGroup]:
    """Groups, each within the next one; none but where everybody has as many chunks and needs all."""
    sources, owned = np.unique(network.source, return_counts=True)
    if len(sources) < 2 or (owned != owned[0]).any() or not (network.need | network.held)[:, sources].all():
        return []
    if len(np.flatnonzero(network.need.any(axis=0))) != len(sources):
        return []
    search = _SymmetrySearch(network, sources)
    first = int(sources[0])
    group = SymmetryGroup(np.arange(network.nodes)[None, :], np.arange(network.links)[None, :])
    nested: list[SymmetryGroup] = []
    alike = [node for node in sources.tolist() if search.kind[node] == search.kind[first]]
    tries = 0
    for image in alike:
        if image in group.nodes[:, first] or tries == TRIES:
            continue
        tries += 1
        mapped = search.mapped(first, image)
        links = None if mapped is None else search.links_of(mapped)
        larger = None if mapped is None or links is None else group.with_generator(mapped, links)
        if larger is not None and not (larger.nodes[1:, sources] == sources).any():
            group = larger
            nested.append(group)
    return nested


class _SymmetrySearch:
    """Looks for symmetries by refining colours of two copies of the network at a time."""

    def __init__(self, network: EpochNetwork, sources: Ints) -> None:
        self.network, n = network, network.nodes
        columns = [network.delay, network.window, network.room]
        same = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)[1].reshape(-1)
        self._tail = np.concatenate([network.tail, network.tail + n])
        self._head = np.concatenate([network.head, network.head + n])
        self._label = np.concatenate([same, same])
        keys = zip(network.tail.tolist(), network.head.tolist(), same.tolist(), strict=True)
        self._numbered: dict[Any, int] = {}
        for link, key in enumerate(keys):
            place = 0
            while (*key, place) in self._numbered:
                place += 1
            self._numbered[*key, place] = link
        first = 2 * network.stores.astype(np.int64) + 4 * np.isin(np.arange(n), sources) + network.copies
        self._colour = self._refined(np.concatenate([first, first]))
        self.kind = self._colour[:n]
        self._place = np.zeros(n, dtype=np.int64)
        for kind in np.unique(self.kind):
            members = np.flatnonzero(self.kind == kind)
            self._place[members] = np.arange(len(members))

    def mapped(self, first: int, image: int) -> Ints | None:
        """Look for a symmetry that takes a node to another, as much like a shift of the numbers as can be.

        Not all ways are tried.
        """
        n = self.network.nodes
        count = np.bincount(self.kind)
        part = (self._place[image] - self._place[first]) / count[self.kind[first]]
        colour, source, target = self._colour.copy(), first, image
        while True:
            colour[[source, n + target]] = colour.max() + 1
            colour = self._refined(colour)
            size = np.bincount(colour[:n], minlength=colour.max() + 1)
            if (size != np.bincount(colour[n:], minlength=len(size))).any():
                return None
            if (size == 1).all():
                mapped = np.empty(n, dtype=np.int64)
                mapped[np.argsort(colour[:n])] = np.argsort(colour[n:])
                return mapped
            source = int(np.flatnonzero(size[colour[:n]] > 1)[0])
            some = np.flatnonzero(colour[n:] == colour[source])
            kind = self.kind[source]
            aim = (self._place[source] + round(part * count[kind])) % count[kind]
            target = int(some[np.argmin(np.abs(self._place[some] - aim))])

    def links_of(self, mapped: Ints) -> Ints | None:
        """Where a permutation of nodes takes the links; None if it is no symmetry."""
        try:
            return np.array(
                [self._numbered[mapped[a], mapped[b], kind, place] for a, b, kind, place in self._numbered],
                dtype=np.int64,
            )
        except KeyError:
            return None

    def _refined(self, colour: Ints) -> Ints:
        """Colours refined by the links to and from nodes of each colour, as sums of hashes, until nothing changes."""
        while True:
            out = np.zeros(len(colour), dtype=np.uint64)
            into = np.zeros(len(colour), dtype=np.uint64)
            np.add.at(out, self._tail, _scattered(colour[self._head], self._label))
            np.add.at(into, self._head, _scattered(colour[self._tail], self._label))
            columns = np.stack([colour.astype(np.uint64), out, into], axis=1)
            finer = np.unique(columns, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
            if finer.max() == colour.max() or finer.max() + 1 == len(np.unique(colour)):
                return finer
            colour = finer


def _scattered(colour: Ints, label: Ints) -> Any:
    x = (colour.astype(np.uint64) << np.uint64(20)) + label.astype(np.uint64) + np.uint64(1)
    for factor in (0xBF58476D1CE4E5B9, 0x94D049BB133111EB):
        x = (x ^ (x >> np.uint64(30))) * np.uint64(factor)
    return x ^ (x >> np.uint64(31))


def improve_by_symmetry(search: EpochSearch) -> None:
    """Look for schedules that are symmetric under groups, the largest first, each from the last one.

    The best is adopted by the search.
    """
    known = None
    for group in reversed(groups(search.network)):
        if search.done or search.budget.exhausted:
            return
        known = _improve_under(search, group, known) or known


def _improve_under(
    search: EpochSearch, group: SymmetryGroup, known: tuple[Ints, Ints] | None
) -> tuple[Ints, Ints] | None:
    """Search under one group from a schedule that is symmetric under a larger one.

    Give the best as arcs and starts of all chunks.
    """
    network, row, arcs = search.network, group.rows(), search.arcs
    arc = np.repeat(np.arange(len(arcs.arc_head)), np.diff(arcs.hop_first))
    if len(np.unique(arc * (row.max() + 1) + row[arcs.hop_link])) < len(arc):
        return None  # an arc would be in its own way
    bases = np.flatnonzero(group.nodes.min(axis=0)[network.source] == network.source)
    part = replace(network, source=network.source[bases], need=network.need[bases])
    folded = EpochSearch(part, search.bound, search.budget, int(PART * search.effort), arcs._replace(row=row))
    if known is not None:
        folded.adopt(known[0][bases], known[1][bases])
    folded.construct()
    folded.improve()
    search.work += folded.work
    search.moves += folded.moves
    search.constructions += folded.constructions
    rows = folded.rows()
    whole = None if rows is None else _unfolded(arcs, group, network.source, bases, *rows)
    if whole is not None:
        search.adopt(*whole)
    return whole


def _unfolded(
    arcs: ArcTable, group: SymmetryGroup, source: Ints, bases: Ints, arc: Ints, start: Ints
) -> tuple[Ints, Ints] | None:
    """The images of the schedule of some chunks under all elements.

    None if the image of an arc is not among the arcs.
    """
    paths = [tuple(p.tolist()) for p in np.split(arcs.hop_link, arcs.hop_first[1:-1])]
    number = {path: index for index, path in enumerate(paths)}
    order = np.argsort(source, kind="stable")
    first = np.searchsorted(source[order], source)
    place = np.empty(len(source), dtype=np.int64)
    place[order] = np.arange(len(source))
    place -= first  # which of its source's chunks each one is
    used = np.unique(arc[arc >= 0])
    shape = len(source), arc.shape[1]
    whole = np.full(shape, -1, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    for nodes, links in zip(group.nodes, group.links, strict=True):
        images = [number.get(tuple(links[list(paths[a])].tolist()), -1) for a in used.tolist()]
        if -1 in images:
            return None
        chunks = order[np.searchsorted(source[order], nodes[source[bases]]) + place[bases]]
        moved = np.where(arc >= 0, np.array(images)[np.searchsorted(used, np.maximum(arc, used[0]))], -1)
        whole[0][chunks[:, None], nodes[None, :]] = moved
        whole[1][chunks[:, None], nodes[None, :]] = start
    return whole
