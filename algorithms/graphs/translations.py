"""Symmetries of networks: orbits of links, and translations, commuting permutations that fix no rank.

A symmetry is a permutation of the nodes that keeps the colours of nodes and of links. Its search may rest on guesses,
and the result is checked link by link; a missed symmetry only splits one class of links into two, which is still
correct. Translations are proposed from the order of the ranks (docs/methods/forestcoll.md).
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache, partial
from itertools import product
from math import gcd, lcm, prod
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ...core.equal_steps import translate_ranks
from ...core.grouping import group_by_key
from ...core.schedule import Bools, Ints
from ...core.topology import Topology
from ...core.trees import Translation, least_images, link_image, orbit_of, orbits_under, power_of, translation_images
from .colour_refinement import find_mapping, refine_nodes
from .distances import Paths, route
from .network import mask_of, number_values

Pair = tuple[int, int]  #: a pair of nodes, the smaller position first


class _Network:
    """Colours of nodes, and of ordered pairs of nodes with links between them."""

    def __init__(self, nodes: Sequence[Hashable], ends: Sequence[Pair], links: Sequence[Hashable]) -> None:
        self.nodes = np.array(number_values(nodes), dtype=np.int64)
        between = group_by_key(zip(ends, links, strict=True))
        several = [tuple(sorted(Counter(colours).items(), key=repr)) for colours in between.values()]
        self.label = dict(zip(between, number_values(several), strict=True))
        ends_and_labels = [(a, b, label) for (a, b), label in self.label.items()]
        tail, head, label = np.array(ends_and_labels, dtype=np.int64).reshape(-1, 3).T
        self.links = tail, head, label
        self.pairs = sorted({(min(a, b), max(a, b)) for a, b in self.label})

    def kind(self, pair: Pair) -> tuple[tuple[int, int, int], ...]:
        """Return an invariant of a pair: its links by colours of their ends once the pair is marked."""
        colour, (tail, head, label) = self.nodes.copy(), self.links
        colour[list(pair)] = colour.max() + 1
        colour = refine_nodes(colour, *self.links)
        return tuple(sorted(zip(colour[tail].tolist(), colour[head].tolist(), label.tolist(), strict=True)))

    def symmetry(self, one: tuple[int, ...], other: tuple[int, ...], *, fix: bool) -> list[int] | None:
        """Find a symmetry that maps some nodes to others, and moves no other node unless it must if ``fix``."""

        def choose(node: int, alike: Ints) -> int:
            return node if fix and node in alike else int(alike[1 % len(alike)])

        mapping = find_mapping(self.nodes, self.links, list(zip(one, other, strict=True)), choose)
        image: list[int] = [] if mapping is None else mapping.tolist()
        same = (self.label.get((image[a], image[b])) == label for (a, b), label in self.label.items()) if image else ()
        return image if image and (self.nodes[image] == self.nodes).all() and all(same) else None


def link_orbits(
    nodes: Sequence[Hashable],
    ends: Sequence[Pair],
    links: Sequence[Hashable],
    exhausted: Callable[[], bool] = lambda: False,
) -> list[tuple[Pair, ...]]:
    """Return classes of linked pairs that symmetries exchange; once ``exhausted``, pairs are classes of their own."""
    from networkx.utils import UnionFind

    network = _Network(nodes, ends, links)
    classes = UnionFind(network.pairs)
    firsts: list[Pair] = []
    kinds: dict[Pair, tuple[tuple[int, int, int], ...]] = {}
    for pair in network.pairs:
        if any(classes[pair] == classes[first] for first in firsts):
            continue
        kinds[pair] = () if exhausted() else network.kind(pair)
        for first in (first for first in firsts if kinds[first] == kinds[pair] and not exhausted()):
            trials = product((pair, (pair[1], pair[0])), (False, True))
            image = next(filter(None, (network.symmetry(first, other, fix=fix) for other, fix in trials)), None)
            if image is None:
                continue
            for a, b in network.pairs:
                classes.union((a, b), (min(image[a], image[b]), max(image[a], image[b])))
            break
        else:
            firsts.append(pair)
    return sorted(tuple(sorted(members)) for members in classes.to_sets())


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
    def of(cls, topology: Topology) -> Self:
        """Create the coloured network of a topology, with its ranks in order."""
        tail, head = topology.end_arrays
        return cls(
            np.array(topology.node_kinds, dtype=np.int64),
            tail.copy(),
            head.copy(),
            np.array(topology.link_kinds, dtype=np.int64),
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
        mask = mask_of(self.nodes, self.ranks)
        levels: list[Ints] = []
        while True:
            near = mask_of(self.nodes, self.head[mask[self.tail]]) | mask_of(self.nodes, self.tail[mask[self.head]])
            near &= ~mask
            if not near.any():
                return tuple(levels)
            levels.append(np.flatnonzero(near))
            mask |= near

    @cached_property
    def sample(self) -> tuple[Bools, Self]:
        """Mark a few nodes of every level; also return the network with only their links."""
        few = [nodes[:: len(nodes) // _SAMPLE + 1] for nodes in (self.ranks, *self.levels)]
        mask = mask_of(self.nodes, np.concatenate(few))
        near = mask[self.tail] | mask[self.head]
        return mask, replace(self, tail=self.tail[near], head=self.head[near], label=self.label[near])

    @cached_property
    def own_surroundings(self) -> Hashes:
        """Hashes of the links between each node and those of lower levels; for ranks, between them; shape (nodes,)."""
        mask, hashes = mask_of(self.nodes, self.ranks), np.zeros(self.nodes, dtype=np.uint64)
        for level in (self.ranks, *self.levels):
            hashes[level] = self.surroundings(np.arange(self.nodes), mask, level)
            mask[level] = True
        return hashes

    def surroundings(self, image: Ints, mask: Bools, nodes: Ints) -> Hashes:
        """Hash the links between some nodes and the known ones, each identified by its image; shape (len(nodes),)."""
        total = np.zeros(self.nodes, dtype=np.uint64)
        for here, there, factor in ((self.head, self.tail, MIX_IN), (self.tail, self.head, MIX_OUT)):
            use = np.flatnonzero(mask[there])
            name = mix_bits(image[there[use]].astype(np.uint64) * MIX_IN + np.uint64(7))
            np.add.at(total, here[use], mix_bits(name * factor + self.label[use].astype(np.uint64)))
        own = mix_bits(self.colour[nodes].astype(np.uint64) * MIX + np.uint64(1))
        return mix_bits(own + total[nodes])


def mix_bits(value: Hashes) -> Hashes:
    """Mix the bits of every hash."""
    mixed = (value ^ (value >> _SHIFT)) * MIX_IN
    return np.asarray(mixed ^ (mixed >> _SHIFT), dtype=np.uint64)


_SMALL = 32  #: stretches of more ranks are not searched for symmetries of their own
_MOST_MOTIONS = 64  #: products of reflections: enough for meshes of six dimensions
_SAMPLE = 64  #: nodes of a level from which most permutations are seen to be no symmetry
Motion = tuple[Translation, Ints]  #: a translation, and the image of every link


def find_translations(network: ColouredNetwork) -> list[Motion]:
    """Find commuting translations, suggested by the order of the ranks, of which no product fixes a rank."""
    motions: list[Motion] = []
    stretch, place = len(network.ranks), np.arange(len(network.ranks))
    while stretch > 1:
        steps = [step for step in range(1, stretch // 2 + 1) if stretch % step == 0]
        turns = [(stretch, step) for step in steps]
        if stretch > _SMALL:  # shorter stretches, such as the hosts of a router in a dragonfly
            turns += [(part, 1) for part in reversed(steps[1:])]
        for whole, step in turns:
            within = place % whole
            target = network.ranks[place - within + (within + step) % whole]
            if (motion := _extend_permutation(network, target, whole // step)) is not None:
                motions.append(motion)
                stretch = step
                break
        else:
            if stretch <= _SMALL:
                motions += _translate_stretches(network, stretch)
            break
    _turn_switches(network, motions)
    return motions


def find_reflections(network: ColouredNetwork) -> list[Motion]:
    """Find commuting symmetries of order 2, of which no product fixes a rank: equal stretches of ranks, reversed.

    These are the reflections of a mesh in the middle of its even sides.
    """
    place = np.arange(len(network.ranks))
    motions, group = list[Motion](), place[None]
    for stretch in (each for each in range(2, len(place) + 1) if len(place) % each == 0):
        image = place + stretch - 1 - 2 * (place % stretch)
        if 2 * len(group) > _MOST_MOTIONS or (image[group] == place).any():
            continue
        motion = _extend_permutation(network, network.ranks[image], 2)
        if motion is not None and all(np.array_equal(image[each], each[image]) for each in group):
            motions.append(motion)
            group = np.concatenate([group, image[group]])
    return motions


def _extend_permutation(network: ColouredNetwork, target: Ints, order: int, turn: Sequence[int] = ()) -> Motion | None:
    """Extend an image of the ranks, as nodes, to all nodes; None if it is no symmetry.

    Switches with the same surroundings below keep their order; n of a level in ``turn`` are rotated, by n / gcd(n,
    ``order``) places.
    """
    image = np.arange(network.nodes)
    image[network.ranks] = target
    mask, own, (few, around) = mask_of(network.nodes, network.ranks), network.own_surroundings, network.sample
    some = network.ranks[few[network.ranks]]
    if not np.array_equal(around.surroundings(image, mask, some), own[image[some]]):
        return None
    for number, level in enumerate(network.levels, 1):
        if not np.isin(around.surroundings(image, mask, level[few[level]]), own[level]).all():
            return None
        hashes = network.surroundings(image, mask, level)
        here, there = (level[np.argsort(each, kind="stable")] for each in (hashes, own[level]))
        if not np.array_equal(np.sort(hashes), own[there]):
            return None
        if number in turn:
            first, end = (np.searchsorted(own[there], own[there], side=side) for side in ("left", "right"))
            size = end - first
            there = there[first + (np.arange(len(there)) - first + size // np.gcd(size, order)) % size]
        image[here] = there
        mask[level] = True
    links = network.link_image(image)
    return None if links is None else (Translation(image, order), links)


def _turn_switches(network: ColouredNetwork, motions: list[Motion]) -> None:
    """Let translations also rotate switches with the same surroundings below, where that joins orbits of links.

    The order of a translation remains, since those of the rotations divide it.
    """
    own = network.own_surroundings
    ambiguous = [number for number, level in enumerate(network.levels, 1) if len(np.unique(own[level])) < len(level)]
    orders = [translation.order for translation, _ in motions]

    def count_orbits(motions: Sequence[Motion]) -> int:
        least = least_images(orders, [links for _, links in motions], len(network.tail))
        return int((least == np.arange(len(least))).sum())

    orbits, rotations = count_orbits(motions) if ambiguous else 0, [tuple[int, ...]()] * len(motions)
    for index, level in product(reversed(range(len(motions))), ambiguous):
        target, levels = motions[index][0].image[network.ranks], (*rotations[index], level)
        if (motion := _extend_permutation(network, target, orders[index], levels)) is None:
            continue
        if (fewer := count_orbits([*motions[:index], motion, *motions[index + 1 :]])) < orbits:
            orbits, motions[index], rotations[index] = fewer, motion, levels


def _translate_stretches(network: ColouredNetwork, stretch: int) -> list[Motion]:
    """Find translations within all stretches of a length, from the symmetries of the first one."""
    usable = [(period, order) for order in _symmetries(network, stretch) if (period := _period(order)) > 1]
    usable.sort(key=lambda one: -one[0])
    motions: list[Motion] = []
    group = np.arange(stretch)[None, :]
    for period, order in usable:
        commutes = all(np.array_equal(order[each], each[order]) for each in group)
        larger = orbit_of(group, [period], [order]).reshape(-1, stretch)
        if not commutes or not np.diff(np.sort(larger, axis=0), axis=0).all():  # two products move a rank to the same
            continue
        within = np.arange(len(network.ranks))
        target = network.ranks[within - within % stretch + order[within % stretch]]
        if (motion := _extend_permutation(network, target, period)) is not None:
            motions.append(motion)
            group = larger
    return motions


def _symmetries(network: ColouredNetwork, stretch: int) -> Iterator[Ints]:
    """Yield permutations of the first ranks that are symmetries of their links and own switches."""
    members = network.ranks[:stretch]
    own = mask_of(network.nodes, members)
    foreign, both = mask_of(network.nodes, network.ranks[stretch:]), (network.tail, network.head)
    shared = mask_of(network.nodes, np.concatenate([far[foreign[near]] for near, far in (both, both[::-1])]))
    first = network.levels[0] if network.levels else np.empty(0, np.int64)
    reached = mask_of(network.nodes, network.head[own[network.tail]])
    inner = own | mask_of(network.nodes, first[reached[first] & ~shared[first]])
    outward: dict[int, list[tuple[int, int]]] = {node: [] for node in np.flatnonzero(inner).tolist()}
    for way, (near, far) in enumerate((both, both[::-1])):
        for link in np.flatnonzero(inner[near] & ~inner[far]).tolist():
            outward[int(near[link])].append((way, int(network.label[link])))
    nodes = [*members.tolist(), *(node for node in outward if not own[node])]
    place = {node: index for index, node in enumerate(nodes)}
    within = inner[network.tail] & inner[network.head]
    ends = zip(*(column[within].tolist() for column in both), strict=True)
    colours = [(int(network.colour[node]), bool(own[node]), tuple(sorted(outward[node]))) for node in nodes]
    pairs = [(place[a], place[b]) for a, b in ends]
    part = _Network(colours, pairs, network.label[within].tolist())
    for other, fix in product(range(1, stretch), (False, True)):
        if (image := part.symmetry((0,), (other,), fix=fix)) is not None:
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
    """Return the symmetry found by :func:`find_translations`; None if there is none.

    A study of rates asks for networks with the same classes of links again and again.
    """
    if len(network.tail) > _KEPT_LINKS:
        return _search_symmetry(network)
    return _keep_symmetry(*(np.asarray(getattr(network, each.name), np.int64).tobytes() for each in fields(network)))


_KEPT_LINKS = 5000  #: most links of a network whose symmetry is kept


@lru_cache(maxsize=64)
def _keep_symmetry(*arrays: bytes) -> Symmetry | None:
    return _search_symmetry(ColouredNetwork(*(np.frombuffer(each, np.int64) for each in arrays)))


def _search_symmetry(network: ColouredNetwork) -> Symmetry | None:
    motions = find_translations(network)
    return _symmetry_by(network, motions) if motions else None


def _symmetry_by(network: ColouredNetwork, motions: Sequence[Motion]) -> Symmetry:
    translations, links = zip(*motions, strict=True)
    orders = [each.order for each in translations]
    node = orbits_under(orders, [each.image for each in translations], network.nodes)[network.ranks]
    orbit = orbits_under(orders, links, len(network.tail))
    first = np.sort(np.unique(node, return_index=True)[1])
    return Symmetry(translations, prod(orders), network.ranks[first], orbit, np.bincount(orbit))


def find_symmetry_of_schedule(network: ColouredNetwork, is_invariant_under: Callable[[Ints], bool]) -> Symmetry | None:
    """Return the symmetry by :func:`products_of` translations that keep a schedule, if none of them fixes a link.

    ``is_invariant_under`` returns whether an image of the ranks keeps it. None if no product does.
    """
    number = np.empty(network.nodes, dtype=np.int64)
    number[network.ranks] = np.arange(len(network.ranks))
    best, motions = None, list[Motion]()
    for translation in products_of([each for each, _ in find_translations(network)]):
        if best is not None and best.motions == len(network.ranks):
            break
        links = network.link_image(translation.image)
        if links is not None and is_invariant_under(number[translation.image[network.ranks]]):
            larger = _symmetry_by(network, [*motions, (translation, links)])
            if (larger.size == larger.motions).all():
                best, motions = larger, [*motions, (translation, links)]
    return best


def products_of(translations: Sequence[Translation]) -> Iterator[Translation]:
    """Yield translations, then powers and products of two of them, those of the largest orders first."""
    yield from translations
    ways: list[tuple[int, tuple[tuple[Translation, int], ...]]] = []
    for index, one in enumerate(translations):
        ways += [(one.order // times, ((one, times),)) for times in range(2, one.order) if one.order % times == 0]
        for other in translations[index + 1 :]:
            ways += [
                (lcm(one.order, other.order // gcd(other.order, times)), ((one, 1), (other, times)))
                for times in range(1, other.order)
            ]
    for order, powers in sorted(ways, key=lambda way: -way[0]):
        image = np.arange(len(translations[0].image))
        for translation, times in powers:
            image = power_of(translation.image, times)[image]
        yield Translation(image, order)


def route_by_symmetry(
    topology: Topology,
    symmetry: Symmetry,
    source: Ints,
    target: Ints,
    find_paths: Callable[[Ints, Ints], Paths] | None = None,
) -> Paths:
    """Find a path for each pair of ranks, by default a shortest one; images of a pair get its images.

    The motions that move a rank or a link to another one are unique: no product of translations but the identity fixes
    either.
    """
    nodes, links = zip(*translation_images(symmetry.translations, topology), strict=True)
    orders = tuple(translation.order for translation in symmetry.translations)
    node = orbit_of(symmetry.roots, orders, nodes)
    link = orbit_of(np.unique(symmetry.orbit, return_index=True)[1], orders, links)
    place, place_of_link = np.empty(len(topology.nodes), dtype=np.int64), np.empty(link.size, dtype=np.int64)
    place[node.ravel()], place_of_link[link.ravel()] = np.arange(node.size), np.arange(link.size)
    (by, root), (there, other) = (np.divmod(place[ends], len(symmetry.roots)) for ends in (source, target))
    find_paths = find_paths or partial(route, topology)
    paths = find_paths(node[0, root], node[translate_ranks(orders, there, by, -1), other])
    here, orbit = np.divmod(place_of_link[paths.links], link.shape[1])
    motion = translate_ranks(orders, here, np.repeat(by, np.diff(paths.offset)))
    return Paths(paths.offset, link[motion, orbit])
