"""Packings of weighted spanning trees, with the physical path of every edge.

Symmetric forests are trees of a few roots, and network translations that move them to all others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from .display import AnswerMixin
from .errors import InputError
from .schedule import Chunks, Floats, Ints, offsets
from .topology import Topology


class TreeKind(Enum):
    """Direction of the data along the trees."""

    OUT = "out"  # from the root: broadcast
    IN = "in"  # to the root: reduce
    BOTH = "in-out"  # to the root, then from it: all-reduce

    @property
    def passes(self) -> tuple[TreeKind, ...]:
        """One-way directions, one after the other."""
        return (TreeKind.IN, TreeKind.OUT) if self is TreeKind.BOTH else (self,)


@dataclass(frozen=True, eq=False, repr=False)
class TreePacking(AnswerMixin, name="tree-packing"):
    """Trees that each carry a part of the data."""

    instance_sha256: str
    kind: TreeKind
    root: Ints
    units: Ints  #: Data that each tree carries, in multiples of ``unit_bytes``; shape (trees,).
    unit_bytes: Fraction
    edge_offset: Ints  #: Offset of each tree's edges, of which the last is their number; shape (trees + 1,).
    #: Ranks, and as numbers after theirs switches (:attr:`~.topology.Topology.tree_nodes`) that copy what they receive
    #: once, or in in-trees add it up; an edge comes after the one that reaches its parent; shape (edges,).
    parent: Ints
    child: Ints
    path_offset: Ints  #: Offset of each edge's links in ``path_links``; shape (edges + 1,).
    path_links: Ints  #: Links from parent to child (from child to parent for reduce trees).
    #: For :attr:`TreeKind.BOTH`, reduce trees of the same roots and units: the data of tree i first comes to its root
    #: along the reduction's tree i, which may have other edges.
    reduction: TreePacking | None = None

    def __post_init__(self) -> None:
        if len(self.units) != len(self.root) or len(self.edge_offset) != len(self.root) + 1:
            raise InputError("the columns differ in length", place="trees")
        if len(self.units) and (self.units.min() <= 0 or self.unit_bytes <= 0):
            raise InputError("a tree carries nothing", place="trees.units")
        if len(self.parent) != len(self.child) or len(self.path_offset) != len(self.parent) + 1:
            raise InputError("the columns of edges differ in length", place="trees")
        if int(self.edge_offset[-1]) != len(self.parent) or int(self.path_offset[-1]) != len(self.path_links):
            raise InputError("offsets do not end where the columns end", place="trees")
        if (np.diff(self.edge_offset) < 0).any() or (np.diff(self.path_offset) < 1).any():
            raise InputError("every edge needs a path of at least one link", place="trees.path_offset")
        if (self.kind is TreeKind.BOTH) != (self.reduction is not None):
            raise InputError("in-out trees, and only they, have a reduction", place="trees.reduction")
        if (reduction := self.reduction) is None:
            return
        if reduction.kind is not TreeKind.IN:
            raise InputError(f"expected in-trees, not {reduction.kind.value}-trees", place="trees.reduction.kind")
        if reduction.instance_sha256 != self.instance_sha256:
            raise InputError("is for another instance", place="trees.reduction")
        for name in ("root", "units", "unit_bytes"):
            if not np.array_equal(getattr(reduction, name), getattr(self, name)):
                raise InputError("differs from that of the broadcast", place=f"trees.reduction.{name}")

    @property
    def passes(self) -> tuple[TreePacking, ...]:
        """One-way packings that the data traverses one after the other: reduction and broadcast of in-out trees."""
        return (self,) if self.reduction is None else (self.reduction, self._broadcast)  # no cycle, which would stay

    @cached_property
    def _broadcast(self) -> TreePacking:
        return replace(self, kind=TreeKind.OUT, reduction=None)

    @property
    def edge_tree(self) -> Ints:
        """Tree that each edge belongs to."""
        return np.repeat(np.arange(len(self)), np.diff(self.edge_offset))

    @property
    def path_tree(self) -> Ints:
        """Tree that each entry of ``path_links`` belongs to."""
        return np.repeat(np.arange(len(self)), np.diff(self.path_offset[self.edge_offset]))

    @property
    def path_units(self) -> Ints:
        """Units of data on each entry of ``path_links``."""
        return np.repeat(self.units, np.diff(self.path_offset[self.edge_offset]))

    @property
    def trees(self) -> TreePacking:
        """Trees from which all others are moved: all of them."""
        return self

    @property
    def motions(self) -> int:
        """Number of motions (:class:`TreeOrbits`): one, the identity."""
        return 1

    def __len__(self) -> int:
        return len(self.root)

    def _size(self) -> dict[str, Any]:
        return {"trees": len(self), "edges": len(self.parent)}

    def _facts(self) -> Mapping[str, object]:
        return {"kind": self.kind.value, **self._size()}


def chunks_of_kind(owner: Ints, ranks: int, size_bytes: Fraction, kind: TreeKind) -> Chunks:
    """Return equal chunks of a collective of all ranks, gathered from their owners, added up for them, or both."""
    count = len(owner)
    everybody = np.full(count, ranks)
    return Chunks(
        np.ones(count, dtype=np.int64),
        size_bytes / count,
        (*((rank,) for rank in range(ranks)), tuple(range(ranks))),
        owner if kind is TreeKind.OUT else everybody,
        owner if kind is TreeKind.IN else everybody,
        np.full(count, kind is not TreeKind.OUT),
    )


MOST_WRITTEN = 2**29  #: Forests of more links on all paths of all trees are not written out.


@dataclass(frozen=True, eq=False)
class Translation:
    """Symmetry of a network that permutes its nodes."""

    image: Ints  #: Position of the node that each node is moved to; shape (nodes,).
    order: int  #: Number of applications that move every node back; at least 2.


class OrbitMixin:
    """Answer of which a part is given, and translations that move it to the rest."""

    translations: tuple[Translation, ...]

    def __post_init__(self) -> None:
        for index, translation in enumerate(self.translations):
            if translation.order < 2:
                raise InputError("expected an order of at least 2", place=f"translations[{index}].order")
            if len(translation.image) != len(self.translations[0].image):
                raise InputError("differs in length", place=f"translations[{index}].image")

    @property
    def orders(self) -> tuple[int, ...]:
        """Orders of the translations."""
        return tuple(translation.order for translation in self.translations)

    @property
    def motions(self) -> int:
        """Number of motions, the identity included."""
        return prod(self.orders)


@dataclass(frozen=True, eq=False, repr=False)
class TreeOrbits(OrbitMixin, AnswerMixin, name="tree-orbits"):
    """Trees of one root in every orbit, which also determine those of all other roots.

    Translations ``g_1, g_2, ...`` of orders ``a_1, a_2, ...`` that commute make a group of ``a_1 a_2 ...`` motions:
    every ``g_1^x_1 g_2^x_2 ...``. If only the identity fixes a rank, an *orbit* of ranks, all those that one can be
    moved to, has as many ranks as there are motions. Every tree of a rank, moved by all of them, is a tree of every
    rank of its orbit. So a link carries what the given trees put on all links of its orbit, times motions over
    links of the orbit.
    """

    trees: TreePacking  #: Trees of one rank of every orbit. Of equal parallel links, the first is moved to the first.
    translations: tuple[Translation, ...]

    @property
    def instance_sha256(self) -> str:
        """Digest of the instance that the trees are for."""
        return self.trees.instance_sha256

    @property
    def kind(self) -> TreeKind:
        """Direction of the data along the trees."""
        return self.trees.kind

    def __len__(self) -> int:
        return len(self.trees) * self.motions

    def _size(self) -> dict[str, Any]:
        counts = {"trees": len(self), "given": len(self.trees)}
        return {**counts, "orders": list(self.orders), "edges": len(self.trees.parent)}

    def _facts(self) -> Mapping[str, object]:
        return {"kind": self.kind.value, "trees": len(self), "given": len(self.trees), "orders": self.orders}


#: All trees, or those of one root in every orbit: both have ``trees``, ``motions``, ``kind`` and ``len``.
Forest = TreePacking | TreeOrbits


def link_columns(topology: Topology) -> tuple[Floats, Floats]:
    """Return bandwidths and latencies of all links in bytes a second and seconds; each kind is converted once."""
    kinds, links = np.array(topology.link_kinds, dtype=np.int64), topology.kind_links
    bandwidth_Bps = np.array([float(link.bandwidth_Bps) for link in links])
    return bandwidth_Bps[kinds], np.array([float(link.latency_s) for link in links])[kinds]


def link_image(ends: tuple[Ints, Ints], kinds: Ints, image: Ints) -> Ints | None:
    """Return the image of each link under a permutation of the nodes; None if some link has none.

    Links have different numbers if they differ (:attr:`~.topology.Topology.link_kinds`). Of equal parallel ones, the
    first is moved to the first.
    """
    tail, head = ends
    nodes, size = len(image), int(kinds.max(initial=0)) + 1
    here = (tail * nodes + head) * size + kinds
    there = (image[tail] * nodes + image[head]) * size + kinds
    order, image_order = np.argsort(here, kind="stable"), np.argsort(there, kind="stable")
    if not np.array_equal(here[order], there[image_order]):
        return None
    links = np.empty(len(order), dtype=np.int64)
    links[image_order] = order
    return links


def move_trees(packing: TreePacking, rank: Ints, link: Ints) -> TreePacking:
    """Move trees by the images of nodes, by their numbers in the trees, and of links, by their positions."""
    reduction = None if packing.reduction is None else move_trees(packing.reduction, rank, link)
    return replace(
        packing,
        root=rank[packing.root],
        parent=rank[packing.parent],
        child=rank[packing.child],
        path_links=link[packing.path_links],
        reduction=reduction,
    )


def expand_orbits(answer: TreeOrbits, topology: Topology) -> TreePacking:
    """Return all trees of all roots; raise InputError for too many, or a translation that is no symmetry."""
    if (size := answer.motions * len(answer.trees.path_links)) > MOST_WRITTEN:
        raise InputError(f"{size:,} links of {len(answer):,} trees; expected at most {MOST_WRITTEN:,}", place="answer")
    tree_node = np.array(topology.tree_nodes, dtype=np.int64)
    number = np.argsort(tree_node)
    parts = [answer.trees]
    images = translation_images(answer.translations, topology)
    for translation, (image, links) in zip(answer.translations, images, strict=True):
        copies = parts
        for _ in range(translation.order - 1):
            copies = [move_trees(part, number[image[tree_node]], links) for part in copies]
            parts = parts + copies
    return concatenate_packings(parts)


def translation_images(translations: Sequence[Translation], topology: Topology) -> list[tuple[Ints, Ints]]:
    """Return the images of nodes and of links; raise InputError for a translation that is no symmetry."""
    kinds = np.array(topology.link_kinds, dtype=np.int64)
    images: list[tuple[Ints, Ints]] = []
    for index, image in enumerate(translation.image for translation in translations):
        if not np.array_equal(np.sort(image), np.arange(len(topology.nodes))):
            raise InputError("is no permutation of the nodes", place=f"translations[{index}].image")
        links = link_image(topology.end_arrays, kinds, image)
        if links is None:
            raise InputError("maps a link to no equal one", place=f"translations[{index}].image")
        images.append((image, links))
    return images


def orbit_of(values: Ints, orders: Sequence[int], images: Sequence[Ints]) -> Ints:
    """Return the images of values under all motions, the identity first; shape (motions, values)."""
    orbit = values[None]
    for order, image in zip(orders, images, strict=True):
        parts = [orbit]
        for _ in range(order - 1):
            parts.append(image[parts[-1]])
        orbit = np.concatenate(parts)
    return orbit


def power_of(image: Ints, times: int) -> Ints:
    """Return a permutation applied several times."""
    power = np.arange(len(image))
    for digit in f"{times:b}":
        power = image[power[power]] if digit == "1" else power[power]
    return power


def least_images(orders: Sequence[int], images: Sequence[Ints], size: int) -> Ints:
    """Return the least image of every element under all motions, which names its orbit."""
    least = np.arange(size)
    for order, image in zip(orders, images, strict=True):
        step, reach = image, 1
        while reach < order:
            step, reach = step[step] if reach > 1 else image, 2 * reach
            np.minimum(least, least[step], out=least)
    return least


def orbits_under(orders: Sequence[int], images: Sequence[Ints], size: int) -> Ints:
    """Return the orbit of every element under commuting permutations, numbered by first members."""
    least = least_images(orders, images, size)
    return np.asarray((np.cumsum(least == np.arange(size)) - 1)[least], dtype=np.int64)


def concatenate_packings(parts: Sequence[TreePacking]) -> TreePacking:
    """Concatenate packings of the same instance, kind and unit."""
    halves = [part.reduction for part in parts if part.reduction is not None]
    names = ("root", "units", "parent", "child", "path_links")
    columns: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    for name in ("edge_offset", "path_offset"):
        columns[name] = offsets(np.concatenate([np.diff(getattr(part, name)) for part in parts]))
    return replace(parts[0], **columns, reduction=concatenate_packings(halves) if halves else None)
