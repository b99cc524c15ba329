"""Networks without switches: every path through switches becomes an edge between two ranks."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ...core.topology import NodeKind, Topology

#: Switches that an edge may lead through.
MAX_SWITCHES = 3


@dataclass(frozen=True)
class RankEdge:
    """Link between two ranks, or path through switches."""

    #: positions of the ranks' nodes
    source: int
    target: int
    links: tuple[int, ...]
    #: the smallest bandwidth and the sum of the latencies of the links
    bandwidth_Bps: Fraction
    latency_s: Fraction


def edges_of(topology: Topology) -> tuple[RankEdge, ...]:
    """Return links and switch paths between ranks, one shortest path per first and last link."""
    leaving: dict[int, list[int]] = {}
    for link, (source, _) in enumerate(topology.link_ends):
        leaving.setdefault(source, []).append(link)
    shortest: dict[tuple[int, int], RankEdge] = {}
    ways: list[tuple[int, ...]] = [(link,) for rank in topology.rank_nodes for link in leaving.get(rank, [])]
    for way in ways:
        source, at = topology.link_ends[way[0]][0], topology.link_ends[way[-1]][1]
        if topology.nodes[at].kind is NodeKind.COMPUTE:
            if at != source:
                shortest.setdefault((way[0], way[-1]), _edge(topology, way))
        elif len(way) <= MAX_SWITCHES:
            passed = {topology.link_ends[link][1] for link in way}
            ways.extend((*way, link) for link in leaving.get(at, []) if topology.link_ends[link][1] not in passed)
    return tuple(sorted(shortest.values(), key=lambda edge: (edge.source, edge.target, edge.links)))


def _edge(topology: Topology, way: tuple[int, ...]) -> RankEdge:
    links = [topology.links[link] for link in way]
    return RankEdge(
        topology.link_ends[way[0]][0],
        topology.link_ends[way[-1]][1],
        way,
        min(link.bandwidth_Bps for link in links),
        sum((link.latency_s for link in links), Fraction(0)),
    )
