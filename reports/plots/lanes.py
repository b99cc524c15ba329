"""Contents of a map of trees: rates, roads between sites, and lanes of trees."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from ...core.topology import Topology
from ...core.trees import TreePacking

Pair = tuple[int, int]


def rates(topology: Topology, packing: TreePacking) -> list[Fraction]:
    """Return the bytes per second of every tree when the most loaded link is full.

    The verifier's flow time follows from these rates.
    """
    load = [0] * len(topology.links)
    for part in packing.passes:
        for edge_tree, first, last in _paths(part):
            for link in part.path_links[first:last].tolist():
                load[link] += int(part.units[edge_tree])
    busiest = max(units / link.bandwidth_Bps for units, link in zip(load, topology.links, strict=True))
    return [units / busiest for units in packing.units.tolist()]


def _paths(part: TreePacking) -> list[tuple[int, int, int]]:
    """Return, for every edge, its tree and the first and past-the-last position of its links."""
    ends = part.path_offset.tolist()
    found: list[tuple[int, int, int]] = []
    for tree in range(len(part)):
        for edge in range(int(part.edge_offset[tree]), int(part.edge_offset[tree + 1])):
            found.append((tree, ends[edge], ends[edge + 1]))
    return found


def roads(topology: Topology) -> dict[Pair, Fraction]:
    """Return the bandwidth of each pair of neighbours: parallel links summed, the larger of both directions."""
    each: dict[Pair, Fraction] = {}
    for link, ends in zip(topology.links, topology.link_ends, strict=True):
        each[ends] = each.get(ends, Fraction(0)) + link.bandwidth_Bps
    found: dict[Pair, Fraction] = {}
    for (a, b), bandwidth in each.items():
        pair = (min(a, b), max(a, b))
        found[pair] = max(found.get(pair, Fraction(0)), bandwidth)
    return found


def lanes(
    topology: Topology, packing: TreePacking, shown: Sequence[int], rate: Sequence[Fraction]
) -> dict[Pair, list[tuple[int, Fraction]]]:
    """Return the shown trees on every road, by position, with their rates there."""
    part = packing.passes[-1]
    place = {tree: index for index, tree in enumerate(shown)}
    found: dict[Pair, dict[int, Fraction]] = {}
    for tree, first, last in _paths(part):
        if tree in place:
            for link in part.path_links[first:last].tolist():
                a, b = topology.link_ends[link]
                on = found.setdefault((min(a, b), max(a, b)), {})
                on[place[tree]] = on.get(place[tree], Fraction(0)) + rate[tree]
    return {pair: sorted(on.items()) for pair, on in found.items()}
