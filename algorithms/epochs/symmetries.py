"""Equivalent nodes: bounds try one of each kind first, and searches use symmetric schedules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...core.schedule import Ints
from ..graphs.network import number_values
from .problem import ArcTable, EpochNetwork
from .search import EpochSearch

TRIES = 48  #: images of the first source that are tried, and elements of the largest group

LARGEST = 4096

PART = 0.2  #: part of the effort for each group
STARTS = 8  #: constructions under a group that moves start from, the best


def kinds_of_nodes(network: EpochNetwork, apart: tuple[int, ...] = ()) -> Ints:
    """Assign a kind to every node; shape (nodes,).

    Nodes of one kind have equal links to and from nodes of equal kinds, equal chunks and equal needs. Nodes in
    ``apart`` are each of their own kind, and their needs count by sources.
    """
    nodes = np.arange(network.nodes)
    lacked = network.lacking[:, list(apart)] @ (1 << np.arange(len(apart)))
    owned = np.stack(
        [np.bincount(network.source[lacked == group], minlength=network.nodes) for group in np.unique(lacked)]
    )
    place = np.where(np.isin(nodes, apart), nodes, -1)
    columns = [network.stores, network.lacking.sum(axis=0), place, *owned]
    kinds = number_values(list(zip(*(column.tolist() for column in columns), strict=True)))
    links = np.stack([network.delay, network.window, network.room], axis=1).tolist()
    ends = list(zip(network.tail.tolist(), network.head.tolist(), map(tuple, links), strict=True))
    while True:
        seen: list[list[Any]] = [[] for _ in range(network.nodes)]
        for tail, head, link in ends:
            seen[tail].append((0, link, kinds[head]))
            seen[head].append((1, link, kinds[tail]))
        finer = number_values([(kinds[v], tuple(sorted(seen[v]))) for v in range(network.nodes)])
        if max(finer) == max(kinds):
            return np.array(kinds, dtype=np.int64)
        kinds = finer


def node_representatives(network: EpochNetwork) -> Ints:
    """Return the first node of every kind that lacks a chunk."""
    lacking = np.flatnonzero(network.lacking.any(axis=0))
    _, first = np.unique(kinds_of_nodes(network)[lacking], return_index=True)
    return np.sort(lacking[first])


@dataclass(frozen=True, eq=False)
class SymmetryGroup:
    """Commuting symmetries of a network, the identity first; no other fixes a link or a source.

    So, if the chunks of one source per orbit have a schedule in which the links of an orbit together start as much
    as one of them may, its images under all elements are a schedule of all chunks.
    """

    nodes: Ints  #: (elements, nodes) image of every node under every element
    links: Ints  #: (elements, links) image of every link under every element

    @property
    def order(self) -> int:
        """Number of elements."""
        return len(self.nodes)

    def rows(self) -> Ints:
        """Return the orbit of every link; shape (links,)."""
        return np.asarray(np.unique(self.links.min(axis=0), return_inverse=True)[1].reshape(-1))

    def with_generator(self, nodes: Ints, links: Ints) -> SymmetryGroup | None:
        """Add a generator; None if elements do not commute, fix links or sources, or are too many."""
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
    """List nested groups, each within the next; empty unless all nodes have equally many chunks and need all."""
    sources, owned = np.unique(network.source, return_counts=True)
    if len(sources) < 2 or (owned != owned[0]).any() or not (network.need | network.initial_holders)[:, sources].all():
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
        mapped = search.find_mapping(first, image)
        links = None if mapped is None else search.links_of(mapped)
        larger = None if mapped is None or links is None else group.with_generator(mapped, links)
        if larger is not None and not (larger.nodes[1:, sources] == sources).any():
            group = larger
            nested.append(group)
    return nested


class _SymmetrySearch:
    """Search for symmetries by refining colours of two copies of the network at a time."""

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
        self._colour = self._refine_colours(np.concatenate([first, first]))
        self.kind = self._colour[:n]
        self._place = np.zeros(n, dtype=np.int64)
        for kind in np.unique(self.kind):
            members = np.flatnonzero(self.kind == kind)
            self._place[members] = np.arange(len(members))

    def find_mapping(self, first: int, image: int) -> Ints | None:
        """Search, not exhaustively, a symmetry that maps ``first`` to ``image``, close to a shift of the numbers."""
        n = self.network.nodes
        count = np.bincount(self.kind)
        part = (self._place[image] - self._place[first]) / count[self.kind[first]]
        colour, source, target = self._colour.copy(), first, image
        while True:
            colour[[source, n + target]] = colour.max() + 1
            colour = self._refine_colours(colour)
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
        """Return the image of the links under a permutation of nodes; None if it is no symmetry."""
        try:
            return np.array(
                [self._numbered[mapped[a], mapped[b], kind, place] for a, b, kind, place in self._numbered],
                dtype=np.int64,
            )
        except KeyError:
            return None

    def _refine_colours(self, colour: Ints) -> Ints:
        """Refine colours by sums of hashes of the links to and from each colour, until stable."""
        while True:
            out = np.zeros(len(colour), dtype=np.uint64)
            into = np.zeros(len(colour), dtype=np.uint64)
            np.add.at(out, self._tail, _hash_pair(colour[self._head], self._label))
            np.add.at(into, self._head, _hash_pair(colour[self._tail], self._label))
            together = _hash_pair(colour, _hash_pair(out, into))
            finer = np.unique(together, return_inverse=True)[1].reshape(-1).astype(np.int64)
            if finer.max() == colour.max() or finer.max() + 1 == len(np.unique(colour)):
                return finer
            colour = finer


def _hash_pair(colour: Any, label: Any) -> Any:
    x = (colour.astype(np.uint64) << np.uint64(20)) + label.astype(np.uint64) + np.uint64(1)
    for factor in (0xBF58476D1CE4E5B9, 0x94D049BB133111EB):
        x = (x ^ (x >> np.uint64(30))) * np.uint64(factor)
    return x ^ (x >> np.uint64(31))


class SymmetricSearch:
    """Search for symmetric schedules under nested groups, the largest first; the whole search adopts the best.

    A search under a group has the chunks of one source of every orbit, on links that share reservations with their
    orbit. It continues from the schedule of the larger group.
    """

    def __init__(self, whole: EpochSearch) -> None:
        self._whole = whole
        self._folded: list[tuple[SymmetryGroup, Ints, EpochSearch]] = []

    @property
    def has_symmetry(self) -> bool:
        """True if a usable symmetry was found."""
        return bool(self._folded)

    def construct(self) -> None:
        """Run the constructions under every group; once time is up, stop at the first schedule.

        Even late this pays, since constructions without symmetry take longer.
        """
        whole, known = self._whole, None
        for group in reversed(groups(whole.network)):
            if whole.is_optimal or (whole.best is not None and whole.budget.is_exhausted):
                return
            if (folded := self._fold_search(group)) is not None:
                known = self._continue_search(*folded, known, EpochSearch.construct) or known
                self._folded.append(folded)

    def improve(self) -> None:
        """Rip up and re-route under every group."""
        known = None
        for group, bases, search in self._folded:
            if self._whole.is_optimal or self._whole.budget.is_exhausted:
                return
            search.bound = self._whole.bound
            known = self._continue_search(group, bases, search, known, EpochSearch.improve_several) or known

    def _fold_search(self, group: SymmetryGroup) -> tuple[SymmetryGroup, Ints, EpochSearch] | None:
        """Return group, chunks and search under it; None if an arc uses an orbit of links twice."""
        whole, row = self._whole, group.rows()
        network, arcs = whole.network, whole.arcs
        arc = np.repeat(np.arange(len(arcs.arc_head)), np.diff(arcs.hop_first))
        if len(np.unique(arc * (row.max() + 1) + row[arcs.hop_link])) < len(arc):
            return None
        bases = np.flatnonzero(group.nodes.min(axis=0)[network.source] == network.source)
        part = replace(network, source=network.source[bases], need=network.need[bases])
        effort, arcs = int(PART * whole.effort), arcs._replace(row=row)
        search = EpochSearch(part, whole.bound, whole.budget, effort, arcs, STARTS)
        return group, bases, search

    def _continue_search(
        self,
        group: SymmetryGroup,
        bases: Ints,
        search: EpochSearch,
        known: tuple[Ints, Ints] | None,
        step: Callable[[EpochSearch], None],
    ) -> tuple[Ints, Ints] | None:
        """Run a step of a search under a group from a symmetric schedule; return arcs and starts if it gains."""
        whole, before = self._whole, (search.work, search.moves, search.constructions, search.best)
        if known is not None:
            search.adopt(known[0][bases], known[1][bases])
        step(search)
        whole.work += search.work - before[0]
        whole.moves += search.moves - before[1]
        whole.constructions += search.constructions - before[2]
        rows = search.rows()
        if rows is None or search.best == before[3]:
            return None
        unfolded = _unfold_schedule(whole.arcs, group, whole.network.source, bases, *rows)
        if unfolded is not None:
            whole.adopt(*unfolded)
        return unfolded


def _unfold_schedule(
    arcs: ArcTable, group: SymmetryGroup, source: Ints, bases: Ints, arc: Ints, start: Ints
) -> tuple[Ints, Ints] | None:
    """Return the images of a schedule of some chunks under all elements; None if an arc has no image."""
    order = np.argsort(source, kind="stable")
    place = np.empty(len(source), dtype=np.int64)
    place[order] = np.arange(len(source))
    place -= np.searchsorted(source[order], source)  # which of its source's chunks each one is
    base, node = np.nonzero(arc >= 0)
    used, which = np.unique(arc[base, node], return_inverse=True)
    images = _images(arcs, used, group.links)
    if images is None:
        return None
    chunk = order[np.searchsorted(source[order], group.nodes[:, source[bases[base]]]) + place[bases[base]]]
    whole = np.full((len(source), arc.shape[1]), -1, dtype=np.int64), np.zeros((len(source), arc.shape[1]), np.int64)
    to = group.nodes[:, node]
    whole[0][chunk, to] = images[:, which.reshape(-1)]
    whole[1][chunk, to] = start[base, node]
    return whole


def _images(arcs: ArcTable, used: Ints, links: Ints) -> Ints | None:
    """Return images of arcs under the images ``links`` of links; shape (elements, arcs), None if one is no arc."""
    hops = np.diff(arcs.hop_first)
    images = np.empty((len(links), len(used)), dtype=np.int64)
    for length in np.unique(hops[used]).tolist():
        among, some = np.flatnonzero(hops == length), np.flatnonzero(hops[used] == length)
        known, sought = np.zeros(len(among), np.int64), np.zeros((len(links), len(some)), np.int64)
        for hop in range(length):
            known = known * links.shape[1] + arcs.hop_link[arcs.hop_first[among] + hop]
            sought = sought * links.shape[1] + links[:, arcs.hop_link[arcs.hop_first[used[some]] + hop]]
            numbers, known = np.unique(known, return_inverse=True)
            place = np.minimum(np.searchsorted(numbers, sought), len(numbers) - 1)
            if (numbers[place] != sought).any():
                return None
            sought = place
        images[:, some] = among[np.argsort(known)][sought]
    return images
