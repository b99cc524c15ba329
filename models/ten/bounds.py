"""Lower bounds in ticks with certificates; networks with switches have bounds in seconds only."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

from ...core.bounds import Certificate, EpochCut, EpochDistance, EpochPartition
from ...core.collective import Collective
from ...core.instance import Instance
from .problem import BACKWARDS, TimeExpandedNetwork


def epoch_bound(instance: Instance, forth: TimeExpandedNetwork) -> tuple[int, Certificate]:
    """Return the largest of the bounds by distances and by data into or out of one rank.

    Parameters
    ----------
    forth : TimeExpandedNetwork
        Its copied chunks; for a collective of sums alone, those of the copies that it runs backwards.
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
    ranks = len({chunk.source for chunk in problem.chunks})
    need = 2 * (ranks - 1) * len(problem.chunks)
    nodes = range(instance.npus)
    low, high = 0, need * min(problem.ticks)
    while low < high:
        middle = (low + high) // 2
        enough = sum(middle // ticks for ticks in problem.ticks) >= need
        low, high = (low, middle) if enough else (middle + 1, high)
    bounds: list[tuple[int, Certificate]] = [(low, EpochPartition(tuple((n,) for n in nodes)))]
    count = len(problem.chunks)
    for node in sorted({chunk.source for chunk in problem.chunks}):
        ticks = entry_ticks(problem, node, [[0] * count] * len(problem.into[node]), count)
        bounds.append((ticks, EpochCut((node,), node)))
    return bounds
