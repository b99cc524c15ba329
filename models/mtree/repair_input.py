"""What a repair is asked: changes of a network's links, and the trees of an older plan on the network as it is now."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from pydantic import Field

from ...algorithms.trees.network import Wan
from ...core.errors import InputError, Unsupported, shown
from ...core.fields import Strict
from ...core.instance import Instance
from ...core.schedule import Ints
from ...core.topology import Link, Topology
from ...core.trees import TreePacking
from ...core.units import UnitKind, parse

_EXPECTED = "expected two sites and what their links have now, such as a-b=0 (failed), a-b=0.5, a-b=80 Mb/s or a-b=-20 Mb/s (taken by others)"


@dataclass(frozen=True)
class LinkChange:
    """What happens to all links between two sites, in both directions.

    Parameters
    ----------
    one, other : str
        Names of the sites.
    factor : Fraction
        Share of the bandwidth that is kept.
    rate_Bps : Fraction or None
        The bandwidth instead; a negative one is taken off.
    """

    one: str
    other: str
    factor: Fraction = Fraction(1)
    rate_Bps: Fraction | None = None

    def of(self, link: Link) -> Fraction:
        """Bandwidth that a link has now."""
        if self.rate_Bps is None:
            return link.bandwidth_Bps * self.factor
        return self.rate_Bps + (link.bandwidth_Bps if self.rate_Bps < 0 else 0)


def read_change(text: str, topology: Topology) -> LinkChange:
    """Read a change of a network.

    Raises
    ------
    InputError
        If it is none, or names sites that no link joins.
    """
    pair, equals, value = text.rpartition("=")
    if not equals:
        raise InputError(f"{shown(text)} is wrong; {_EXPECTED}")
    joined = {(link.source, link.target) for link in topology.links}
    pair = pair.strip()
    cuts = [(pair[:at].strip(), pair[at + 1 :].strip()) for at, letter in enumerate(pair) if letter == "-"]
    found = [ends for ends in cuts if ends in joined or ends[::-1] in joined]
    if len(found) != 1:
        raise InputError(f"{shown(pair)} names no two sites with a link; {_EXPECTED}")
    one, other = found[0]
    value = value.strip()
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", value):
        return LinkChange(one, other, factor=Fraction(value))
    try:
        rate = parse(value.removeprefix("-"), UnitKind.RATE)
    except InputError:
        raise InputError(f"{shown(text)} is wrong; {_EXPECTED}") from None
    return LinkChange(one, other, rate_Bps=-rate if value.startswith("-") else rate)


def changed(instance: Instance, changes: Sequence[str]) -> Instance:
    """The instance with its network as it is after some changes, one after the other; links without bandwidth are gone.

    Raises
    ------
    InputError
        If a change is none.
    Unsupported
        If the instance has no explicit network.
    """
    topology = instance.network
    if not isinstance(topology, Topology):
        raise Unsupported("expected an explicit network")
    bandwidth = [link.bandwidth_Bps for link in topology.links]
    for index, text in enumerate(changes):
        try:
            change = read_change(text, topology)
        except InputError as error:
            raise error.at(source="-O", place=f"changes[{index}]") from None
        for place, link in enumerate(topology.links):
            if {link.source, link.target} == {change.one, change.other}:
                bandwidth[place] = max(
                    Fraction(0), change.of(replace(link, bandwidth_Bps=bandwidth[place] or Fraction(1)))
                )
    kept = [replace(link, bandwidth_Bps=rate) for link, rate in zip(topology.links, bandwidth, strict=True) if rate]
    return instance.with_changes(network=replace(topology, links=tuple(kept)))


class PreviousTree(Strict):
    """A tree of an older plan."""

    links: tuple[tuple[str, str, int], ...] = Field(
        description="Sites that each link joins, and which of parallel links it is, from 0."
    )
    units: int = Field(1, ge=1, description="Data that it carries, in proportion to the others.")
    root: str = Field(description="The site at which contributions are added up.")


@dataclass(frozen=True, eq=False)
class SurvivingTrees:
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
    """The links between any two sites, the smaller one first; parallel links in the order of the network."""
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


def survivors(wan: Wan, previous: Sequence[PreviousTree]) -> SurvivingTrees:
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
    return SurvivingTrees(rows, tuple(units for _, units, _ in kept), tuple(root for *_, root in kept), tuple(stumps))


def _spans(nodes: int, ends: Sequence[tuple[int, int]]) -> bool:
    """Whether links join all sites."""
    group = list(range(nodes))
    for a, b in ends:
        one, other = group[a], group[b]
        group = [one if label == other else label for label in group]
    return len(set(group)) == 1
