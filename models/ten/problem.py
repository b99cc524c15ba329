"""An instance on the time-expanded network: chunks, edges in ticks, possible starts, and lower bounds in ticks.

Networks with switches have bounds in seconds only.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil
from operator import itemgetter

import numpy as np

from ...algorithms.graphs.distances import distances
from ...algorithms.schedules.problem import Commodity, RankEdge, commodities_of, edges_of
from ...algorithms.schedules.stages import BACKWARDS
from ...core.bounds import Certificate, EpochCut, EpochDistance, EpochPartition
from ...core.collective import Collective
from ...core.errors import InputError
from ...core.instance import Instance

MAX_TICKS = 2**44  #: Ticks of the longest schedule, so that times are exact as floats.
FAR = 2**60  #: A distance that no horizon reaches.


@dataclass(frozen=True)
class TimeExpandedNetwork:
    """Copied chunks of one size and edges, in ticks."""

    chunks: tuple[Commodity, ...]
    edges: tuple[RankEdge, ...]
    ticks: tuple[int, ...]

    @cached_property
    def into(self) -> dict[int, list[int]]:
        """Edges that enter each node."""
        return {n: [e for e, edge in enumerate(self.edges) if edge.target == n] for n in self.nodes}

    @cached_property
    def nodes(self) -> list[int]:
        """Nodes at the ends of edges."""
        return sorted({n for edge in self.edges for n in (edge.source, edge.target)})

    @cached_property
    def distance(self) -> list[list[int]]:
        """Ticks between nodes, :data:`FAR` without a path; above :data:`MAX_TICKS`, some larger number."""
        tail, head = np.array([(edge.source, edge.target) for edge in self.edges], dtype=np.int64).T
        length = [min(ticks, MAX_TICKS + 1) for ticks in self.ticks]
        ticks = distances(max(self.nodes) + 1, tail, head, length)
        far: list[list[int]] = np.where(np.isinf(ticks), FAR, ticks).astype(np.int64).tolist()
        return far

    def spans(self, horizon: int) -> dict[tuple[int, int], range]:
        """Return the useful start ticks of chunks on edges: after arrival, in time for a target.

        Edges into a chunk's source are of no use. Keys are chunks and edges; pairs without useful starts are left out.
        """
        far, spans = self.distance, dict[tuple[int, int], range]()
        for c, chunk in enumerate(self.chunks):
            for e, edge in enumerate(self.edges):
                rest = min((far[edge.target][n] for n in chunk.targets), default=FAR)
                span = range(far[chunk.source][edge.source], horizon - self.ticks[e] - rest + 1)
                if span and edge.target != chunk.source:
                    spans[c, e] = span
        return spans


@dataclass(frozen=True)
class HorizonModel:
    """Model of a horizon for an instance, whose schedules take at least ``least`` ticks."""

    problem: TimeExpandedNetwork
    horizon: int
    least: int
    instance: Instance

    @property
    def columns(self) -> int:
        """Number of starts."""
        return sum(span.stop - span.start for span in self.problem.spans(self.horizon).values())


def edge_times(edges: Sequence[RankEdge], size_bytes: Fraction) -> list[Fraction]:
    """Return the seconds that a chunk occupies each edge: latency and time on the wire."""
    return [edge.latency_s + size_bytes / edge.bandwidth_Bps for edge in edges]


def tick_s(instance: Instance) -> Fraction:
    """Return the seconds of a tick of a posed instance."""
    assert instance.timing is not None  # noqa: S101 (posed)
    return instance.timing.epoch_s


def expand_time(instance: Instance) -> TimeExpandedNetwork:
    """Put an instance with its timing on the time-expanded network."""
    chunks, edges = commodities_of(instance), edges_of(instance.topology)
    ticks = tuple(ceil(time / tick_s(instance)) for time in edge_times(edges, chunks[0].bytes))
    problem = TimeExpandedNetwork(chunks, edges, ticks)
    if any(problem.distance[chunk.source][n] == FAR for chunk in chunks for n in chunk.targets):
        raise InputError("a rank cannot be reached", place="network.links")
    return problem


def epoch_bound(instance: Instance, forth: TimeExpandedNetwork) -> tuple[int, Certificate]:
    """Return the largest of the bounds by distances and by data into or out of one rank.

    ``forth`` has the copied chunks; for a collective of sums alone, those of the copies that it runs backwards.
    """
    kind = instance.demands[0].collective
    if kind is Collective.ALL_REDUCE:
        return max(_sums(instance, forth), key=itemgetter(0))
    return max(_single_ranks(forth, backwards=kind in BACKWARDS), key=itemgetter(0))


def entry_ticks(problem: TimeExpandedNetwork, node: int, releases: Sequence[Sequence[int]], need: int) -> int:
    """Return the tick by which ``need`` chunks can have entered a node, given each edge's releases."""
    arrivals: list[int] = []
    for e, release in zip(problem.into[node], releases, strict=True):
        free = 0
        for tick in release[:need]:
            free = max(free, tick) + problem.ticks[e]
            arrivals.append(free)
    return sorted(arrivals)[need - 1]


def _single_ranks(problem: TimeExpandedNetwork, *, backwards: bool = False) -> list[tuple[int, Certificate]]:
    """Return bounds by distances and by the data into every target; of sums, out of it on the reversed network."""
    bounds: list[tuple[int, Certificate]] = []
    far = problem.distance
    for node in sorted({n for chunk in problem.chunks for n in chunk.targets}):
        sources = [chunk.source for chunk in problem.chunks if node in chunk.targets]
        farthest = max(sources, key=lambda source: far[source][node])
        ends = (node, farthest) if backwards else (farthest, node)
        bounds.append((far[farthest][node], EpochDistance(*ends)))
        releases = [[0] * len(sources)] * len(problem.into[node])
        cut = EpochCut(tuple(n for n in problem.nodes if n != node)) if backwards else EpochCut((node,), node)
        if not backwards:
            releases = [sorted(far[source][problem.edges[e].source] for source in sources) for e in problem.into[node]]
        bounds.append((entry_ticks(problem, node, releases, len(sources)), cut))
    return bounds


def _sums(instance: Instance, problem: TimeExpandedNetwork) -> list[tuple[int, Certificate]]:
    """Return bounds by all ranks of an all-reduce together, and by data into each rank."""
    count, sources = len(problem.chunks), sorted({chunk.source for chunk in problem.chunks})
    need = 2 * (len(sources) - 1) * count
    low, high = 0, need * min(problem.ticks)
    while low < high:
        middle = (low + high) // 2
        enough = sum(middle // ticks for ticks in problem.ticks) >= need
        low, high = (low, middle) if enough else (middle + 1, high)
    bounds: list[tuple[int, Certificate]] = [(low, EpochPartition(tuple((n,) for n in range(instance.npus))))]
    for node in sources:
        ticks = entry_ticks(problem, node, [[0] * count] * len(problem.into[node]), count)
        bounds.append((ticks, EpochCut((node,), node)))
    return bounds
