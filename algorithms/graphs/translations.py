"""Translations of a network: commuting permutations that fix no rank, and their orbits.

A translation is proposed as a permutation of the ranks alone: contiguous stretches of the list of ranks, such as
pods, boxes or rows of a grid, are rotated as wholes, or the ranks within all stretches of a length simultaneously.
If no rotation within stretches is a symmetry, the symmetries of one small stretch are listed. The images of
switches follow from the ranks next to them. A proposal counts only if it maps every link to an equal one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from ...core.schedule import Bools, Ints
from ...core.topology import Topology
from ...core.trees import Translation, kinds_of_links, link_image
from .link_orbits import symmetries_from

Hashes = NDArray[np.uint64]

MIX = np.uint64(0x9E3779B97F4A7C15)
MIX_IN = np.uint64(0xBF58476D1CE4E5B9)
MIX_OUT = np.uint64(0x94D049BB133111EB)
_SHIFT = np.uint64(29)


@dataclass(frozen=True, eq=False)
class ColouredNetwork:
    """Network as arrays, with colours of nodes and links."""

    colour: Ints  #: (nodes,) colours of nodes, which symmetries keep
    tail: Ints  #: (links,) ends of links; parallel links are separate
    head: Ints
    label: Ints  #: (links,) colours of links, from 0, which symmetries keep
    #: nodes that define translations, in an order in which equal parts of the network are contiguous and ordered alike
    ranks: Ints

    @classmethod
    def of(cls, topology: Topology) -> ColouredNetwork:
        """Create the coloured network of a topology, with its ranks in order."""
        known: dict[object, int] = {}
        colour = [
            known.setdefault((n.kind, n.multicast, n.buffer_bytes, n.reduces), len(known)) for n in topology.nodes
        ]
        ends = np.array(topology.link_ends, dtype=np.int64).reshape(-1, 2)
        return cls(
            np.array(colour, dtype=np.int64),
            ends[:, 0].copy(),
            ends[:, 1].copy(),
            kinds_of_links(topology.links),
            np.array(topology.rank_nodes, dtype=np.int64),
        )

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.colour)

    def link_image(self, image: Ints) -> Ints | None:
        """Return the image of each link under a permutation of the nodes; None if it is no symmetry."""
        if not np.array_equal(self.colour[image], self.colour):
            return None
        return link_image((self.tail, self.head), self.label, image)

    @cached_property
    def levels(self) -> tuple[Ints, ...]:
        """Nodes by their distance in links from the ranks, from 1 on; unreachable ones are left out."""
        known = np.zeros(self.nodes, dtype=np.bool_)
        known[self.ranks] = True
        found: list[Ints] = []
        while True:
            near = np.zeros(self.nodes, dtype=np.bool_)
            near[self.head[known[self.tail]]] = True
            near[self.tail[known[self.head]]] = True
            near &= ~known
            if not near.any():
                return tuple(found)
            found.append(np.flatnonzero(near))
            known |= near

    def surroundings(self, image: Ints, known: Bools) -> Hashes:
        """Hash the links between each node and the known ones, each identified by its image."""
        told = scramble(self.colour.astype(np.uint64) * MIX + np.uint64(1))
        name = scramble(image.astype(np.uint64) * MIX_IN + np.uint64(7))
        label = self.label.astype(np.uint64)
        total = np.zeros(self.nodes, dtype=np.uint64)
        for here, there, factor in ((self.head, self.tail, MIX_IN), (self.tail, self.head, MIX_OUT)):
            use = known[there]
            np.add.at(total, here[use], scramble(name[there[use]] * factor + label[use]))
        return scramble(told + total)


def scramble(value: Hashes) -> Hashes:
    """Mix the bits of every hash."""
    mixed = (value ^ (value >> _SHIFT)) * MIX_IN
    return np.asarray(mixed ^ (mixed >> _SHIFT), dtype=np.uint64)


_SMALL = 32  #: stretches of more ranks are not searched for symmetries of their own


def find_translations(network: ColouredNetwork) -> tuple[Translation, ...]:
    """Find commuting translations, suggested by the order of the ranks, of which no product fixes a rank."""
    found: list[Translation] = []
    stretch, place = len(network.ranks), np.arange(len(network.ranks))
    while stretch > 1:
        for step in range(1, stretch // 2 + 1):
            if stretch % step:
                continue
            within = place % stretch
            image = _extend_permutation(network, place - within + (within + step) % stretch)
            if image is not None:
                found.append(Translation(image, stretch // step))
                stretch = step
                break
        else:
            if stretch <= _SMALL:
                found += _of_stretches(network, stretch)
            break
    return tuple(found)


def _extend_permutation(network: ColouredNetwork, turned: Ints) -> Ints | None:
    """Extend a permutation of the list of ranks to all nodes; None if it is no symmetry."""
    image = np.arange(network.nodes)
    image[network.ranks] = network.ranks[turned]
    known = np.zeros(network.nodes, dtype=np.bool_)
    known[network.ranks] = True
    same = np.arange(network.nodes)
    for level in (network.ranks, *network.levels):
        plain, moved = (network.surroundings(names, known)[level] for names in (same, image))
        if level is network.ranks:
            if not np.array_equal(moved, plain[turned]):
                return None
            continue
        here, there = np.argsort(moved, kind="stable"), np.argsort(plain, kind="stable")
        if not np.array_equal(moved[here], plain[there]):
            return None
        image[level[here]] = level[there]
        known[level] = True
    return image if network.link_image(image) is not None else None


def _of_stretches(network: ColouredNetwork, stretch: int) -> list[Translation]:
    """Find translations within all stretches of a length, from the symmetries of the first one."""
    usable = []
    for order in _symmetries(network, stretch):
        if (period := _period(order)) > 1:
            usable.append((period, order))
    usable.sort(key=lambda one: -one[0])
    found: list[Translation] = []
    group = np.arange(stretch)[None, :]
    for period, order in usable:
        powers = [np.arange(stretch)]
        for _ in range(period - 1):
            powers.append(order[powers[-1]])
        commutes = all(np.array_equal(order[each], each[order]) for each in group)
        larger = np.concatenate([power[group] for power in powers])
        if not commutes or len(np.unique(larger[:, 0])) < len(larger):
            continue
        within = np.arange(len(network.ranks))
        image = _extend_permutation(network, within - within % stretch + order[within % stretch])
        if image is not None:
            found.append(Translation(image, period))
            group = larger
    return found


def _symmetries(network: ColouredNetwork, stretch: int) -> Iterator[Ints]:
    """Yield permutations of the first ranks that are symmetries of their links and own switches."""
    members = network.ranks[:stretch]
    own = np.zeros(network.nodes, dtype=np.bool_)
    own[members] = True
    shared = np.zeros(network.nodes, dtype=np.bool_)
    foreign = np.zeros(network.nodes, dtype=np.bool_)
    foreign[network.ranks[stretch:]] = True
    for near, far in ((network.tail, network.head), (network.head, network.tail)):
        shared[far[foreign[near]]] = True
    first = network.levels[0] if network.levels else np.empty(0, np.int64)
    reached = np.zeros(network.nodes, dtype=np.bool_)
    reached[network.head[own[network.tail]]] = True
    inner = own.copy()
    inner[first[reached[first] & ~shared[first]]] = True
    outward: dict[int, list[tuple[int, int]]] = {node: [] for node in np.flatnonzero(inner).tolist()}
    for way, near, far in ((0, network.tail, network.head), (1, network.head, network.tail)):
        for link in np.flatnonzero(inner[near] & ~inner[far]).tolist():
            outward[int(near[link])].append((way, int(network.label[link])))
    nodes = [*members.tolist(), *(node for node in outward if not own[node])]
    place = {node: index for index, node in enumerate(nodes)}
    kept = inner[network.tail] & inner[network.head]
    ends = zip(*(column[kept].tolist() for column in (network.tail, network.head)), strict=True)
    colours = [(int(network.colour[node]), bool(own[node]), tuple(sorted(outward[node]))) for node in nodes]
    pairs = [(place[a], place[b]) for a, b in ends]
    for image in symmetries_from(colours, pairs, network.label[kept].tolist(), 0, range(1, stretch)):
        yield np.array(image[:stretch], dtype=np.int64)


def _period(order: Ints) -> int:
    """Return the common cycle length of a permutation, 0 if cycles differ in length."""
    place, length = np.arange(len(order)), np.zeros(len(order), dtype=np.int64)
    for times in range(1, len(order) + 1):
        place = order[place]
        length[(place == np.arange(len(order))) & (length == 0)] = times
    return int(length[0]) if (length == length[0]).all() else 0


@dataclass(frozen=True, eq=False)
class Symmetry:
    """Translations of a network, and their orbits."""

    translations: tuple[Translation, ...]  #: commuting translations; no product but the identity fixes a rank
    motions: int  #: number of products of translations
    roots: Ints  #: the first rank of every orbit of ranks, as a node
    orbit: Ints  #: (links,) number of every link's orbit
    size: Ints  #: (orbits,) number of links of every orbit


def find_symmetry(network: ColouredNetwork) -> Symmetry | None:
    """Return the symmetry found by :func:`find_translations`; None if there is none."""
    translations = find_translations(network)
    if not translations:
        return None
    links = [network.link_image(each.image) for each in translations]
    orders = [each.order for each in translations]
    node = _orbits([each.image for each in translations], orders, network.nodes)[network.ranks]
    orbit = _orbits([image for image in links if image is not None], orders, len(network.tail))
    first = np.sort(np.unique(node, return_index=True)[1])
    return Symmetry(translations, prod(orders), network.ranks[first], orbit, np.bincount(orbit))


def _orbits(images: Sequence[Ints], orders: Sequence[int], size: int) -> Ints:
    """Return the orbit of every element under commuting permutations, numbered by first members."""
    least = np.arange(size)
    for image, order in zip(images, orders, strict=True):
        step, reach = image, 1
        while reach < order:
            least = np.minimum(least, least[step])
            step, reach = step[step], 2 * reach
    return np.unique(least, return_inverse=True)[1].reshape(-1).astype(np.int64)
