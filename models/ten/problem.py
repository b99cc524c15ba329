"""The instance on the time-expanded network: chunks, edges in ticks, and the ticks in which a chunk can start over an edge."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import gcd, lcm

from ...core.errors import InputError, Unsupported
from ...core.instance import Instance
from ...core.topology import Topology
from ..common.hyper_edges import Edge, edges_of
from ..common.whole_chunks import WholeChunk, whole_chunks

#: A distance that no horizon reaches.
FAR = 2**1000


@dataclass(frozen=True)
class Expanded:
    """Chunks and edges, in ticks.

    Parameters
    ----------
    chunks : tuple of WholeChunk
        All of one size.
    edges : tuple of Edge
        Links between ranks, and ways over switches.
    ticks : tuple of int
        What a chunk takes up of each edge.
    """

    chunks: tuple[WholeChunk, ...]
    edges: tuple[Edge, ...]
    ticks: tuple[int, ...]

    @cached_property
    def into(self) -> dict[int, list[int]]:
        """Edges that enter each node."""
        found: dict[int, list[int]] = {}
        for e, edge in enumerate(self.edges):
            found.setdefault(edge.target, []).append(e)
        return found

    @cached_property
    def nodes(self) -> list[int]:
        """Nodes at the ends of edges."""
        return sorted({n for edge in self.edges for n in (edge.source, edge.target)})

    def distances(self, source: int, *, backwards: bool = False) -> dict[int, int]:
        """Ticks from a node to all others, or to it."""
        out: dict[int, list[tuple[int, int]]] = {}
        for edge, ticks in zip(self.edges, self.ticks, strict=True):
            a, b = (edge.target, edge.source) if backwards else (edge.source, edge.target)
            out.setdefault(a, []).append((b, ticks))
        far: dict[int, int] = {}
        heap = [(0, source)]
        while heap:
            length, node = heapq.heappop(heap)
            if node not in far:
                far[node] = length
                for after, ticks in out.get(node, []):
                    heapq.heappush(heap, (length + ticks, after))
        return far

    def spans(self, horizon: int) -> dict[tuple[int, int], range]:
        """Ticks in which a chunk can start over an edge and be of use: it has come to the tail, and from the head reaches a target in time.

        Edges into a chunk's source are of no use. Keys are chunks and edges; those that are never of use are left out.
        """
        ahead = {n: self.distances(n) for n in {chunk.source for chunk in self.chunks}}
        back = {n: self.distances(n, backwards=True) for n in {n for chunk in self.chunks for n in chunk.targets}}
        found: dict[tuple[int, int], range] = {}
        for c, chunk in enumerate(self.chunks):
            near = ahead[chunk.source]
            for e, edge in enumerate(self.edges):
                if edge.target != chunk.source:
                    rest = min((back[n].get(edge.target, FAR) for n in chunk.targets), default=FAR)
                    span = range(near.get(edge.source, FAR), horizon - self.ticks[e] - rest + 1)
                    if span:
                        found[c, e] = span
        return found


def edge_times(edges: Sequence[Edge], size_bytes: Fraction) -> list[Fraction]:
    """Seconds that a chunk takes up of each edge: latency and time on the wire."""
    return [edge.latency_s + size_bytes / edge.bandwidth_Bps for edge in edges]


def tick_of(topology: Topology, size_bytes: Fraction) -> Fraction:
    """Give the longest tick that the times of all edges are multiples of."""
    times = edge_times(edges_of(topology), size_bytes)
    scale = lcm(*(time.denominator for time in times))
    return Fraction(gcd(*(int(time * scale) for time in times)), scale)


def expanded(instance: Instance) -> Expanded:
    """Put an instance with its timing on the time-expanded network.

    Raises
    ------
    InputError
        If a target cannot be reached.
    """
    topology = instance.network
    if not isinstance(topology, Topology) or instance.timing is None:
        raise Unsupported("expected an explicit network and a timing")
    chunks, _ = whole_chunks(instance)
    edges = edges_of(topology)
    ticks = tuple(-int(-time // instance.timing.epoch_s) for time in edge_times(edges, chunks[0].bytes))
    problem = Expanded(chunks, edges, ticks)
    for source in {chunk.source for chunk in chunks}:
        reached = problem.distances(source)
        if any(n not in reached for chunk in chunks if chunk.source == source for n in chunk.targets):
            raise InputError("a rank cannot be reached", place="network.links")
    return problem
