"""Input of a repair: changes of links, and the old plan's trees on the present network."""

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from pydantic import Field

from ...algorithms.graphs.network import components
from ...algorithms.trees.network import Wan
from ...core.errors import InputError, Unsupported, show_value
from ...core.fields import Strict
from ...core.instance import Instance
from ...core.schedule import Ints
from ...core.topology import Topology
from ...core.trees import TreePacking
from ...core.units import UnitKind, parse

_EXPECTED = (
    "expected two sites and what their links have now, such as a-b=0 (failed), a-b=0.5, a-b=80 Mb/s or a-b=-20 Mb/s "
    "(taken by others)"
)


def read_change(text: str, topology: Topology) -> tuple[set[str], Callable[[Fraction], Fraction]]:
    """Parse a change of all links between two sites.

    Return the sites, and the new bandwidth of a link by its old one; 0 is that of a link that has failed.
    """
    pair, equals, value = text.rpartition("=")
    if not equals:
        raise InputError(f"{show_value(text)} is wrong; {_EXPECTED}")
    joined = {(link.source, link.target) for link in topology.links}
    pair = pair.strip()
    cuts = [(pair[:at].strip(), pair[at + 1 :].strip()) for at, letter in enumerate(pair) if letter == "-"]
    pairs = [ends for ends in cuts if ends in joined or ends[::-1] in joined]
    if len(pairs) != 1:
        raise InputError(f"{show_value(pair)} names no two sites with a link; {_EXPECTED}")
    value = value.strip()
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", value):
        return set(pairs[0]), lambda old: old * Fraction(value)
    try:
        rate = parse(value.removeprefix("-"), UnitKind.RATE)
    except InputError:
        raise InputError(f"{show_value(text)} is wrong; {_EXPECTED}") from None
    return set(pairs[0]), lambda old: max(Fraction(0), old - rate) if value.startswith("-") else rate


def change_network(instance: Instance, changes: Sequence[str]) -> Instance:
    """Return the instance after some changes in sequence, without links that have lost all bandwidth."""
    topology = instance.network
    if not isinstance(topology, Topology):
        raise Unsupported("expected an explicit network")
    bandwidth = _changed_rates(topology, changes)
    links = [replace(link, bandwidth_Bps=rate) for link, rate in zip(topology.links, bandwidth, strict=True) if rate]
    return instance.with_changes(network=replace(topology, links=tuple(links)))


def _changed_rates(topology: Topology, changes: Sequence[str]) -> list[Fraction]:
    """Return the bandwidth of every link after some changes; 0 if it has failed."""
    bandwidth = [link.bandwidth_Bps for link in topology.links]
    for index, text in enumerate(changes):
        try:
            sites, change = read_change(text, topology)
        except InputError as error:
            raise error.at(source="-O", place=f"changes[{index}]") from None
        for place, link in enumerate(topology.links):
            if {link.source, link.target} == sites:
                bandwidth[place] = change(bandwidth[place])
    return bandwidth


class PreviousTree(Strict):
    """Tree of an older plan."""

    links: tuple[tuple[str, str, int, int] | tuple[str, str, int], ...] = Field()
    """Each link: its two sites, the index of its link there among parallel ones that are left, from 0 (-1: it has
    failed), and that of its link back. Older files have one index, of the pair: links there and back are paired by
    falling bandwidth."""
    units: int = Field(1, ge=1, description="Data that it carries, in proportion to the others.")
    root: str = Field(description="The site at which contributions are added up.")


@dataclass(frozen=True, eq=False)
class SurvivingTrees:
    """Old trees that have kept all links, and the remains of the others."""

    trees: Ints  #: Shape (trees, sites - 1): sorted links of every tree.
    units: tuple[int, ...]  #: Data that each tree carried, in proportion.
    roots: tuple[int, ...]
    stumps: tuple[Ints, ...] = ()  #: Surviving links of the other trees.


def _between(topology: Topology) -> dict[tuple[str, str], list[int]]:
    indices: dict[tuple[str, str], list[int]] = defaultdict(list)
    for index, link in enumerate(topology.links):
        indices[link.source, link.target].append(index)
    return indices


def _pair(
    topology: Topology,
    between: dict[tuple[str, str], list[int]],
    link: tuple[str, str, int, int] | tuple[str, str, int],
) -> tuple[int, int] | None:
    """Return both directed links of an old plan's link; None if one of them is gone."""
    there, back = between.get((link[0], link[1]), []), between.get((link[1], link[0]), [])
    if len(link) == 4:
        fits = 0 <= link[2] < len(there) and 0 <= link[3] < len(back)
        return (there[link[2]], back[link[3]]) if fits else None
    by_rate = (sorted(side, key=lambda e: topology.links[e].bandwidth_Bps, reverse=True) for side in (there, back))
    pairs = sorted(zip(*by_rate, strict=False), key=min)
    return pairs[link[2]] if 0 <= link[2] < len(pairs) else None


def pairs_of(topology: Topology, previous: Sequence[PreviousTree]) -> set[tuple[int, int]]:
    """Collect the pairs of directed links of older trees; pairs that lost a link are left out."""
    between = _between(topology)
    pairs = {_pair(topology, between, link) for tree in previous for link in tree.links}
    return {pair for pair in pairs if pair is not None}


def describe_trees(wan: Wan, packing: TreePacking, changes: Sequence[str] = ()) -> list[PreviousTree]:
    """Describe trees for the network after some changes: by names of sites, and -1 for a link that has failed."""
    rates = _changed_rates(wan.topology, changes)
    place = dict.fromkeys(range(len(rates)), -1)
    for parallel in _between(wan.topology).values():
        place |= {e: k for k, e in enumerate(e for e in parallel if rates[e])}
    trees: list[PreviousTree] = []
    for i, units in enumerate(packing.units.tolist()):
        into, out = (_links(one, i) for one in (packing.passes[0], packing))
        if packing.reduction is None or into is None or out is None or into.keys() != out.keys():
            raise InputError("its trees have edges of several links, or not the same ones both ways", place="trees")
        links = tuple((wan.names[a], wan.names[b], place[there], place[into[a, b]]) for (a, b), there in out.items())
        trees.append(PreviousTree(links=links, units=units, root=wan.names[int(packing.root[i])]))
    return trees


def _links(packing: TreePacking, tree: int) -> dict[tuple[int, int], int] | None:
    """Map each edge of a tree, (parent, child), to its link; None if an edge has several."""
    edges = slice(int(packing.edge_offset[tree]), int(packing.edge_offset[tree + 1]))
    if (np.diff(packing.path_offset)[edges] != 1).any():
        return None
    ends = zip(packing.parent[edges].tolist(), packing.child[edges].tolist(), strict=True)
    return dict(zip(ends, packing.path_links[packing.path_offset[:-1][edges]].tolist(), strict=True))


def survivors(wan: Wan, previous: Sequence[PreviousTree]) -> SurvivingTrees:
    """Find the old trees that survive on a network; its links include all pairs of :func:`pairs_of`."""
    site = {name: index for index, name in enumerate(wan.names)}
    between = _between(wan.topology)
    link_of = {frozenset(pair): e for e, pair in enumerate(zip(wan.forth.tolist(), wan.back.tolist(), strict=True))}
    whole: list[tuple[list[int], int, int]] = []
    stumps: list[Ints] = []
    for index, tree in enumerate(previous):
        place = f"previous[{index}]"
        for name in (tree.root, *(name for link in tree.links for name in link[:2])):
            if name not in site:
                raise InputError(f"unknown site {name!r}", source="-O", place=place)
        ends = [(site[link[0]], site[link[1]]) for link in tree.links]
        if len(ends) != wan.nodes - 1 or components(wan.nodes, *np.array(ends, dtype=np.int64).T).any():
            raise InputError("is no spanning tree of the network's sites", source="-O", place=place)
        pairs = [_pair(wan.topology, between, link) for link in tree.links]
        edges = sorted(link_of[frozenset(pair)] for pair in pairs if pair is not None)
        if len(edges) == len(pairs):
            whole.append((edges, tree.units, site[tree.root]))
        else:
            stumps.append(np.array(edges, dtype=np.int64))
    rows = np.array([row for row, *_ in whole], dtype=np.int64).reshape(len(whole), wan.nodes - 1)
    return SurvivingTrees(rows, tuple(units for _, units, _ in whole), tuple(root for *_, root in whole), tuple(stumps))
