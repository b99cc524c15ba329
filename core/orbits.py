"""Symmetric forests: trees of a few roots, and network translations that move them to all others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from .display import DisplayMixin
from .errors import InputError
from .ragged import offsets
from .schedule import Ints
from .topology import Link, Topology
from .trees import TreeKind, TreePacking

#: Forests of more links on all paths of all trees are not written out.
MOST_WRITTEN = 2**29


@dataclass(frozen=True, eq=False)
class Translation:
    """Symmetry of a network that permutes its nodes.

    Parameters
    ----------
    image : array of int, shape (nodes,)
        Position of the node that each node is moved to.
    order : int
        Number of applications that move every node back; at least 2.
    """

    image: Ints
    order: int


@dataclass(frozen=True, eq=False, repr=False)
class TreeOrbits(DisplayMixin):
    """Trees of one root in every orbit, which also determine those of all other roots.

    Translations ``g_1, g_2, ...`` of orders ``a_1, a_2, ...`` that commute make a group of ``a_1 a_2 ...`` motions:
    every ``g_1^x_1 g_2^x_2 ...``. If only the identity fixes a rank, an *orbit* of ranks, all those that one can be
    moved to, has as many ranks as there are motions. Every tree of a rank, moved by all of them, is a tree of every
    rank of its orbit. So a link carries what the given trees put on all links of its orbit, times motions over
    links of the orbit.

    Parameters
    ----------
    trees : TreePacking
        Trees of one rank of every orbit. Of equal parallel links, the first is moved to the first.
    """

    trees: TreePacking
    translations: tuple[Translation, ...]

    def __post_init__(self) -> None:
        for index, translation in enumerate(self.translations):
            if translation.order < 2:
                raise InputError("expected an order of at least 2", place=f"translations[{index}].order")
            if len(translation.image) != len(self.translations[0].image):
                raise InputError("differs in length", place=f"translations[{index}].image")

    @property
    def instance_sha256(self) -> str:
        """Digest of the instance that the trees are for."""
        return self.trees.instance_sha256

    @property
    def kind(self) -> TreeKind:
        """Direction of the data along the trees."""
        return self.trees.kind

    @property
    def motions(self) -> int:
        """Number of motions, the identity included."""
        return prod(translation.order for translation in self.translations)

    def __len__(self) -> int:
        return len(self.trees) * self.motions

    def to_json(self) -> dict[str, Any]:
        """Return the size of the answer as plain data for a record; sends may be millions."""
        return {
            "answer": "tree-orbits",
            "trees": len(self),
            "given": len(self.trees),
            "orders": [translation.order for translation in self.translations],
            "edges": len(self.trees.parent),
        }

    def _facts(self) -> Mapping[str, object]:
        given = {"given": len(self.trees), "orders": tuple(each.order for each in self.translations)}
        return {"kind": self.kind.value, "trees": len(self), **given}


#: All trees, or those of one root in every orbit: both have ``trees``, ``motions``, ``kind`` and ``len``.
Forest = TreePacking | TreeOrbits


def kinds_of_links(links: Sequence[Link]) -> Ints:
    """Assign a number to each link, the same for equal bandwidth and latency."""
    seen: dict[tuple[int, int], int] = {}  # by identity: most links share their quantities, and fractions are slow
    values: dict[object, int] = {}
    found = np.empty(len(links), dtype=np.int64)
    for index, link in enumerate(links):
        key = id(link.bandwidth_Bps), id(link.latency_s)
        if (kind := seen.get(key)) is None:
            kind = seen[key] = values.setdefault((link.bandwidth_Bps, link.latency_s), len(values))
        found[index] = kind
    return found


def link_image(ends: tuple[Ints, Ints], kinds: Ints, image: Ints) -> Ints | None:
    """Return the image of each link under a permutation of the nodes; None if some link has none.

    Parameters
    ----------
    kinds : array of int, shape (links,)
        Numbers that differ for different links (:func:`kinds_of_links`).
    image : array of int, shape (nodes,)
        Image of each node. Of equal parallel links the first is moved to the first.
    """
    tail, head = ends
    nodes, size = len(image), int(kinds.max(initial=0)) + 1
    here = (tail * nodes + head) * size + kinds
    there = (image[tail] * nodes + image[head]) * size + kinds
    order, moved = np.argsort(here, kind="stable"), np.argsort(there, kind="stable")
    if not np.array_equal(here[order], there[moved]):
        return None
    found = np.empty(len(order), dtype=np.int64)
    found[moved] = order
    return found


def move_trees(packing: TreePacking, rank: Ints, link: Ints) -> TreePacking:
    """Move trees by a permutation of nodes and links.

    Parameters
    ----------
    rank : array of int, shape (nodes,)
        Image of each node, by its number in the trees.
    link : array of int, shape (links,)
        Image of each link, by its position.
    """
    reduction = None if packing.reduction is None else move_trees(packing.reduction, rank, link)
    return replace(
        packing,
        root=rank[packing.root],
        parent=rank[packing.parent],
        child=rank[packing.child],
        path_links=link[packing.path_links],
        reduction=reduction,
    )


def motions_of(answer: TreeOrbits, topology: Topology) -> Iterator[tuple[Ints, Ints]]:
    """Yield every motion: the images of the nodes of trees, and of the links.

    Raises
    ------
    InputError
        If a translation is not a symmetry of the network.
    """
    ends = np.array(topology.link_ends, dtype=np.int64).reshape(-1, 2)
    kinds = kinds_of_links(topology.links)
    number = np.empty(len(topology.nodes), dtype=np.int64)
    tree_node = np.array(topology.tree_nodes, dtype=np.int64)
    number[tree_node] = np.arange(len(number))
    steps: list[tuple[Ints, Ints]] = []
    for index, translation in enumerate(answer.translations):
        image = translation.image
        if len(image) != len(number) or not np.array_equal(np.sort(image), np.arange(len(number))):
            raise InputError("is no permutation of the nodes", place=f"translations[{index}].image")
        links = link_image((ends[:, 0], ends[:, 1]), kinds, image)
        if links is None:
            raise InputError("maps a link to no equal one", place=f"translations[{index}].image")
        steps.append((number[image[tree_node]], links))
    yield from _products(
        [translation.order for translation in answer.translations],
        steps,
        (np.arange(len(number)), np.arange(len(ends))),
    )


def _products(
    orders: list[int], steps: list[tuple[Ints, Ints]], begin: tuple[Ints, Ints]
) -> Iterator[tuple[Ints, Ints]]:
    """Yield all products of powers, the last factor varying slowest."""
    if not orders:
        yield begin
        return
    node, link = begin
    for _ in range(orders[-1]):
        yield from _products(orders[:-1], steps[:-1], (node, link))
        node, link = steps[-1][0][node], steps[-1][1][link]


def expand_orbits(answer: TreeOrbits, topology: Topology) -> TreePacking:
    """Return all trees of all roots.

    Raises
    ------
    InputError
        If there are too many, or a translation is not a symmetry of the network.
    """
    if (size := answer.motions * len(answer.trees.path_links)) > MOST_WRITTEN:
        raise InputError(f"{size:,} links of {len(answer):,} trees; expected at most {MOST_WRITTEN:,}", place="answer")
    return concatenate_packings([move_trees(answer.trees, *motion) for motion in motions_of(answer, topology)])


def concatenate_packings(parts: Sequence[TreePacking]) -> TreePacking:
    """Concatenate packings of the same instance, kind and unit."""
    halves = [part.reduction for part in parts if part.reduction is not None]
    return replace(
        parts[0],
        root=np.concatenate([part.root for part in parts]),
        units=np.concatenate([part.units for part in parts]),
        edge_offset=offsets(np.concatenate([np.diff(part.edge_offset) for part in parts])),
        parent=np.concatenate([part.parent for part in parts]),
        child=np.concatenate([part.child for part in parts]),
        path_offset=offsets(np.concatenate([np.diff(part.path_offset) for part in parts])),
        path_links=np.concatenate([part.path_links for part in parts]),
        reduction=concatenate_packings(halves) if halves else None,
    )
