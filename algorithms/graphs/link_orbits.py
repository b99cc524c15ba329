"""Orbits of links under symmetries of the network, which share all properties.

A symmetry is a permutation of the nodes that keeps the colours of nodes and of links. The search refines the
colours of two copies of the network, one with marks at the first link and one with marks at the second, until every
node has a colour of its own; the result, which may rest on guesses, is checked link by link. A missed symmetry only
splits one class into two, which is still correct.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence

from .network import number_values

Pair = tuple[int, int]  #: a pair of nodes, the smaller position first


class _Network:
    """Colours of nodes, and of ordered pairs of nodes with links between them."""

    def __init__(self, nodes: Sequence[Hashable], ends: Sequence[Pair], links: Sequence[Hashable]) -> None:
        self.nodes = number_values(nodes)
        between: dict[Pair, list[Hashable]] = {}
        for pair, link in zip(ends, links, strict=True):
            between.setdefault(pair, []).append(link)
        several = [tuple(sorted(Counter(colours).items(), key=repr)) for colours in between.values()]
        self.label = dict(zip(between, number_values(several), strict=True))
        self.around: list[list[tuple[int, int, int]]] = [[] for _ in nodes]
        for (a, b), label in self.label.items():
            self.around[a].append((0, label, b))
            self.around[b].append((1, label, a))
        self.pairs = sorted({(min(a, b), max(a, b)) for a, b in self.label})

    def kind(self, pair: Pair) -> tuple[tuple[int, int, int], ...]:
        """Return an invariant of a pair: its links by colours of their ends once the pair is marked."""
        size = len(self.nodes)
        colour = [*self.nodes, *self.nodes]
        for node in pair:
            colour[node] = colour[size + node] = max(self.nodes) + 1
        colour = self._refine_colours(colour)
        return tuple(sorted((colour[a], colour[b], label) for (a, b), label in self.label.items()))

    def moving(self, one: int, other: int) -> Iterator[list[int]]:
        """Yield permutations of the nodes that map one node to another; see :meth:`symmetry`."""
        for kept in (False, True):
            if (image := self._find_mapping((one,), (other,), kept=kept)) is not None:
                yield image

    def symmetry(self, one: Pair, other: Pair) -> list[int] | None:
        """Find a symmetry that maps one ordered pair to another, and moves nodes if possible; None if none is found."""
        return self._find_mapping(one, other, kept=False) or self._find_mapping(one, other, kept=True)

    def _find_mapping(self, one: tuple[int, ...], other: tuple[int, ...], *, kept: bool) -> list[int] | None:
        size = len(self.nodes)
        colour = [*self.nodes, *self.nodes]
        fresh = max(self.nodes) + 1
        marks = list(zip(one, other, strict=True))
        while True:
            for node, image in marks:
                colour[node] = colour[size + image] = fresh
                fresh += 1
            colour = self._refine_colours(colour)
            fresh = max(colour) + 1
            left, right = Counter(colour[:size]), Counter(colour[size:])
            if left != right:
                return None
            shared = [v for v in range(size) if left[colour[v]] > 1]
            if not shared:
                break
            node = shared[0]
            alike = [v for v in range(size) if colour[size + v] == colour[node]]
            marks = [(node, node if kept and node in alike else alike[1 % len(alike)])]
        place = {colour[size + v]: v for v in range(size)}
        image_of = [place[colour[v]] for v in range(size)]
        return image_of if self._keeps(image_of) else None

    def _refine_colours(self, colour: list[int]) -> list[int]:
        """Split colours by the links to and from nodes of each colour until nothing changes."""
        size, count = len(self.nodes), len(set(colour))
        while True:
            seen = [
                (colour[first + v], tuple(sorted((way, label, colour[first + w]) for way, label, w in self.around[v])))
                for first in (0, size)
                for v in range(size)
            ]
            rank = {value: number for number, value in enumerate(sorted(set(seen)))}  # the same for like networks
            colour = [rank[value] for value in seen]
            if len(rank) == count:
                return colour
            count = len(rank)

    def _keeps(self, image: list[int]) -> bool:
        kept = all(self.nodes[v] == self.nodes[w] for v, w in enumerate(image))
        return kept and all(self.label.get((image[a], image[b])) == label for (a, b), label in self.label.items())


def symmetries_from(
    nodes: Sequence[Hashable], ends: Sequence[Pair], links: Sequence[Hashable], first: int, others: Sequence[int]
) -> Iterator[list[int]]:
    """Yield some symmetries that map node ``first`` to others; colours are those of :func:`link_orbits`."""
    network = _Network(nodes, ends, links)
    for other in others:
        yield from network.moving(first, other)


def link_orbits(
    nodes: Sequence[Hashable],
    ends: Sequence[Pair],
    links: Sequence[Hashable],
    exhausted: Callable[[], bool] = lambda: False,
) -> list[tuple[Pair, ...]]:
    """Return classes of linked pairs that symmetries exchange; once ``exhausted``, pairs are classes of their own."""
    network = _Network(nodes, ends, links)
    root = {pair: pair for pair in network.pairs}

    def find(pair: Pair) -> Pair:
        while root[pair] != pair:
            pair = root[pair]
        return pair

    firsts: list[Pair] = []
    kinds: dict[Pair, tuple[tuple[int, int, int], ...]] = {}
    for pair in network.pairs:
        if any(find(pair) == find(first) for first in firsts):
            continue
        kinds[pair] = () if exhausted() else network.kind(pair)
        for first in (first for first in firsts if kinds[first] == kinds[pair] and not exhausted()):
            image = network.symmetry(first, pair) or network.symmetry(first, (pair[1], pair[0]))
            if image is None:
                continue
            for a, b in network.pairs:
                moved = (min(image[a], image[b]), max(image[a], image[b]))
                root[find((a, b))] = find(moved)
            break
        else:
            firsts.append(pair)
    classes: dict[Pair, list[Pair]] = {}
    for pair in network.pairs:
        classes.setdefault(find(pair), []).append(pair)
    return [tuple(members) for members in classes.values()]
