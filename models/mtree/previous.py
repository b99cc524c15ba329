"""The trees of an older plan, on the network as it is now."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import Field

from ...core.errors import InputError
from ...core.fields import Strict
from ...core.schedule import Ints
from ...core.trees import TreePacking
from ..common.wan.network import Wan


class PreviousTree(Strict):
    """A tree of an older plan."""

    links: tuple[tuple[str, str, int], ...] = Field(
        description="Sites that each link joins, and which of parallel links it is, from 0."
    )
    units: int = Field(1, ge=1, description="Data that it carries, in proportion to the others.")
    root: str = Field(description="The site at which contributions are added up.")


@dataclass(frozen=True, eq=False)
class Survivors:
    """Old trees all of whose links still are.

    Parameters
    ----------
    trees : array of int, shape (trees, sites - 1)
        Links, sorted.
    units : tuple of int
        Data that each tree carried, in proportion.
    roots : tuple of int
        The root of each tree.
    stumps : tuple of array of int
        What is left of the other trees.
    """

    trees: Ints
    units: tuple[int, ...]
    roots: tuple[int, ...]
    stumps: tuple[Ints, ...] = ()


def by_ends(wan: Wan) -> dict[tuple[int, int], list[int]]:
    """Give the links between any two sites, the smaller one first; parallel links in the order of the network."""
    between: dict[tuple[int, int], list[int]] = defaultdict(list)
    for e in np.argsort(np.minimum(wan.forth, wan.back), kind="stable").tolist():
        a, b = int(wan.tail[e]), int(wan.head[e])
        between[min(a, b), max(a, b)].append(e)
    return between


def described(wan: Wan, packing: TreePacking) -> list[PreviousTree]:
    """Describe trees by the names of sites, so that they mean the same on a network of fewer links."""
    place = {e: (ends, k) for ends, links in by_ends(wan).items() for k, e in enumerate(links)}
    link_of = {int(one): e for e, pair in enumerate(zip(wan.forth, wan.back, strict=True)) for one in pair}
    found: list[PreviousTree] = []
    for i, units in enumerate(packing.units.tolist()):
        edges = slice(int(packing.edge_offset[i]), int(packing.edge_offset[i + 1]))
        first = packing.path_offset[:-1][edges]
        if (np.diff(packing.path_offset)[edges] != 1).any() or not set(packing.path_links[first].tolist()) <= set(
            link_of
        ):
            raise InputError("its trees have edges of several links, or of links without one back", place="trees")
        ends = [place[link_of[link]] for link in packing.path_links[first].tolist()]
        links = tuple((wan.names[a], wan.names[b], k) for (a, b), k in ends)
        found.append(PreviousTree(links=links, units=units, root=wan.names[int(packing.root[i])]))
    return found


def survivors(wan: Wan, previous: Sequence[PreviousTree]) -> Survivors:
    """Find the old trees that are left on a network.

    Raises
    ------
    InputError
        If one of them is no spanning tree of these sites.
    """
    site = {name: index for index, name in enumerate(wan.names)}
    between = by_ends(wan)
    kept: list[tuple[list[int], int, int]] = []
    stumps: list[Ints] = []
    for index, tree in enumerate(previous):
        place = f"previous[{index}]"
        for name in (tree.root, *(name for one, other, _ in tree.links for name in (one, other))):
            if name not in site:
                raise InputError(f"unknown site {name!r}", source="-O", place=place)
        ends = [(site[one], site[other]) for one, other, _ in tree.links]
        if len(ends) != wan.nodes - 1 or not _spans(wan.nodes, ends):
            raise InputError("is no spanning tree of the network's sites", source="-O", place=place)
        links = [(between[min(pair), max(pair)], k) for pair, (*_, k) in zip(ends, tree.links, strict=True)]
        left = sorted(found[k] for found, k in links if k < len(found))
        if len(left) == len(links):
            kept.append((left, tree.units, site[tree.root]))
        else:
            stumps.append(np.array(left, dtype=np.int64))
    rows = np.array([row for row, *_ in kept], dtype=np.int64).reshape(len(kept), wan.nodes - 1)
    return Survivors(rows, tuple(units for _, units, _ in kept), tuple(root for *_, root in kept), tuple(stumps))


def _spans(nodes: int, ends: Sequence[tuple[int, int]]) -> bool:
    """Whether links join all sites."""
    group = list(range(nodes))
    for a, b in ends:
        one, other = group[a], group[b]
        group = [one if label == other else label for label in group]
    return len(set(group)) == 1
