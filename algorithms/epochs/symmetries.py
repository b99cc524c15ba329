"""Equivalent nodes: bounds try one of each kind first, and searches use symmetric schedules."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ...core.schedule import Ints, number_within
from ...core.trees import link_image
from ..graphs.colour_refinement import find_mapping, refine_nodes
from ..graphs.network import number_values
from .problem import ArcTable, EpochNetwork
from .search import EpochSearch

TRIES, LARGEST = 48, 4096  #: images of the first source that are tried, and elements of the largest group
PART = 0.2  #: part of the effort for each group
STARTS = 8  #: constructions under a group that moves start from, the best


def kinds_of_nodes(network: EpochNetwork, apart: tuple[int, ...] = ()) -> Ints:
    """Assign a kind to every node; shape (nodes,).

    Nodes of one kind have equal links to and from nodes of equal kinds, equal chunks and equal needs. Nodes in
    ``apart`` are each of their own kind, and their needs count by sources.
    """
    nodes = np.arange(network.nodes)
    lacked = network.lacking[:, list(apart)] @ (1 << np.arange(len(apart)))
    owned = [np.bincount(network.source[lacked == group], minlength=network.nodes) for group in np.unique(lacked)]
    place = np.where(np.isin(nodes, apart), nodes, -1)
    columns = [network.stores, network.lacking.sum(axis=0), place, *owned]
    first = number_values(list(zip(*(column.tolist() for column in columns), strict=True)))
    colours = refine_nodes(np.array(first, dtype=np.int64), *_labelled_links(network))
    return np.array(number_values(colours.tolist()), dtype=np.int64)


def _labelled_links(network: EpochNetwork) -> tuple[Ints, Ints, Ints]:
    """Return tails and heads of the links, and a number for every delay, window and room."""
    columns = np.stack([network.delay, network.window, network.room], axis=1)
    return network.tail, network.head, np.unique(columns, axis=0, return_inverse=True)[1].reshape(-1)


def node_representatives(network: EpochNetwork) -> Ints:
    """Return the first node of every kind that lacks a chunk."""
    lacking = np.flatnonzero(network.lacking.any(axis=0))
    _, first = np.unique(kinds_of_nodes(network)[lacking], return_index=True)
    return np.sort(lacking[first])


@dataclass(frozen=True, eq=False)
class SymmetryGroup:
    """Commuting symmetries of a network, the identity first; no other fixes a link or a source."""

    nodes: Ints  #: (elements, nodes) image of every node under every element
    links: Ints  #: (elements, links) image of every link under every element

    def rows(self) -> Ints:
        """Return the orbit of every link; shape (links,)."""
        return np.asarray(np.unique(self.links.min(axis=0), return_inverse=True)[1].reshape(-1))

    def with_generator(self, nodes: Ints, links: Ints) -> "SymmetryGroup | None":
        """Add a generator; None if elements do not commute, fix links or sources, or are too many."""
        if any((nodes[own] != own[nodes]).any() for own in self.nodes):
            return None
        elements = {own.tobytes() for own in self.nodes}
        all_nodes, all_links, power, image = [self.nodes], [self.links], nodes, links
        while power.tobytes() not in elements:
            all_nodes.append(power[self.nodes])
            all_links.append(image[self.links])
            if len(all_nodes) * len(self.nodes) > LARGEST:
                return None
            power, image = nodes[power], links[image]
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
    own, links = np.isin(np.arange(network.nodes), sources), _labelled_links(network)
    kind = refine_nodes(2 * network.stores.astype(np.int64) + 4 * own + network.copies, *links)
    count = np.bincount(kind)
    place = number_within(kind)
    first = int(sources[0])
    group = SymmetryGroup(np.arange(network.nodes)[None, :], np.arange(len(network.tail))[None, :])
    nested: list[SymmetryGroup] = []
    tries = 0
    for image in (node for node in sources.tolist() if kind[node] == kind[first]):
        if image in group.nodes[:, first] or tries == TRIES:
            continue
        tries += 1
        part = (place[image] - place[first]) / count[kind[first]]

        def near_shift(node: int, alike: Ints, part: float = part) -> int:
            """Choose the image closest to a shift of the numbers."""
            aim = (place[node] + round(float(part * count[kind[node]]))) % count[kind[node]]
            return int(alike[np.argmin(np.abs(place[alike] - aim))])

        mapped = find_mapping(kind, links, [(first, image)], near_shift)
        images = None if mapped is None else link_image(links[:2], links[2], mapped)
        larger = None if mapped is None or images is None else group.with_generator(mapped, images)
        if larger is not None and not (larger.nodes[1:, sources] == sources).any():
            group = larger
            nested.append(group)
    return nested


class SymmetricSearch:
    """Search for symmetric schedules under nested groups, the largest first; the whole search adopts the best.

    A search under a group has the chunks of one source of every orbit, and links of an orbit share reservations.
    """

    def __init__(self, whole: EpochSearch) -> None:
        self._whole = whole
        self.folded: list[tuple[SymmetryGroup, Ints, EpochSearch]] = []  # empty without a usable symmetry

    def construct(self) -> None:
        """Run the constructions under every group; once time is up, until the first schedule: others take longer."""
        whole, schedule = self._whole, None
        for group in reversed(groups(whole.network)):
            if whole.is_optimal or (whole.best is not None and whole.budget.is_exhausted):
                return
            if (folded := self._fold_search(group)) is not None:
                schedule = self._continue_search(*folded, schedule, EpochSearch.construct) or schedule
                self.folded.append(folded)

    def improve(self) -> None:
        """Rip up and re-route under every group."""
        schedule = None
        for group, bases, search in self.folded:
            if self._whole.is_optimal or self._whole.budget.is_exhausted:
                return
            search.bound = self._whole.bound
            schedule = self._continue_search(group, bases, search, schedule, EpochSearch.improve_several) or schedule

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
        schedule: tuple[Ints, Ints] | None,
        step: Callable[[EpochSearch], None],
    ) -> tuple[Ints, Ints] | None:
        """Run a step of a search under a group from a symmetric schedule; return arcs and starts if it gains."""
        whole, before = self._whole, (search.work, search.moves, search.constructions, search.best)
        if schedule is not None:
            search.adopt(schedule[0][bases], schedule[1][bases])
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
    place = number_within(source)  # which of its source's chunks each one is
    base, node = np.nonzero(arc >= 0)
    arcs_of, which = np.unique(arc[base, node], return_inverse=True)
    images = _images(arcs, arcs_of, group.links)
    if images is None:
        return None
    chunk = order[np.searchsorted(source[order], group.nodes[:, source[bases[base]]]) + place[bases[base]]]
    whole = np.full((len(source), arc.shape[1]), -1, dtype=np.int64), np.zeros((len(source), arc.shape[1]), np.int64)
    to = group.nodes[:, node]
    whole[0][chunk, to] = images[:, which.reshape(-1)]
    whole[1][chunk, to] = start[base, node]
    return whole


def _images(arcs: ArcTable, some_arcs: Ints, links: Ints) -> Ints | None:
    """Return images of arcs under the images ``links`` of links; shape (elements, arcs), None if one is no arc."""
    hops = np.diff(arcs.hop_first)
    images = np.empty((len(links), len(some_arcs)), dtype=np.int64)
    for length in np.unique(hops[some_arcs]).tolist():
        among, some = np.flatnonzero(hops == length), np.flatnonzero(hops[some_arcs] == length)
        keys, wants = np.zeros(len(among), np.int64), np.zeros((len(links), len(some)), np.int64)
        for hop in range(length):
            keys = keys * links.shape[1] + arcs.hop_link[arcs.hop_first[among] + hop]
            wants = wants * links.shape[1] + links[:, arcs.hop_link[arcs.hop_first[some_arcs[some]] + hop]]
            numbers, keys = np.unique(keys, return_inverse=True)
            place = np.minimum(np.searchsorted(numbers, wants), len(numbers) - 1)
            if (numbers[place] != wants).any():
                return None
            wants = place
        images[:, some] = among[np.argsort(keys)][wants]
    return images
