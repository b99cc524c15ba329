"""From trees to schedules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...core.budget import Budget
from ...core.collective import CollectiveKind, Demand
from ...core.errors import Unsupported
from ...core.schedule import Chunks, Sends, StepSchedule
from ...core.topology import Topology
from ..common.compose import concatenate, reverse, transpose
from .ports import parallel_uses
from .trees import Edge, grow

#: Collectives that the trees serve.
COLLECTIVES = (CollectiveKind.ALL_GATHER, CollectiveKind.REDUCE_SCATTER, CollectiveKind.ALL_REDUCE)

#: A schedule with more sends than this is refused before memory is taken for it.
MAX_SENDS = 50_000_000


class Built(NamedTuple):
    """A schedule, and the height of the highest tree in edges."""

    schedule: StepSchedule
    height: int


def build(instance_sha256: str, topology: Topology, demand: Demand, budget: Budget, *, parallel: bool) -> Built | None:
    """Make the schedule of a collective.

    Parameters
    ----------
    instance_sha256 : str
        Digest of the instance.
    topology : Topology
        The network.
    demand : Demand
        One of :data:`COLLECTIVES`.
    budget : Budget
        Limits of the run.
    parallel : bool
        Whether a link of k times the smallest bandwidth counts as k links; otherwise all links are taken to be equal.

    Returns
    -------
    Built or None
        None if the budget ended first.

    Raises
    ------
    Unsupported
        If the schedule would be too large.
    InputError
        If a rank cannot be reached.
    """
    ranks = tuple(range(len(topology.ranks))) if demand.ranks is None else demand.ranks
    passes = 2 if demand.collective is CollectiveKind.ALL_REDUCE else 1
    if (sends := passes * len(ranks) * (len(ranks) - 1) * demand.chunks) > MAX_SENDS:
        raise Unsupported(f"{sends:,} sends; expected at most {MAX_SENDS:,}")
    nodes = [topology.rank_nodes[rank] for rank in ranks]
    uses = parallel_uses(topology) if parallel else [1] * len(topology.links)
    phases: list[StepSchedule] = []
    height = 0
    for reducing in (True, False):
        if demand.collective is (CollectiveKind.ALL_GATHER if reducing else CollectiveKind.REDUCE_SCATTER):
            continue
        edges = grow(transpose(topology) if reducing else topology, nodes, uses, budget)
        if edges is None:
            return None
        gather = all_gather(instance_sha256, demand, ranks, nodes, edges)
        phases.append(reverse(gather) if reducing else gather)
        height = max(height, height_of(edges))
    return Built(phases[0] if len(phases) == 1 else concatenate(*phases), height)


def all_gather(
    instance_sha256: str, demand: Demand, ranks: Sequence[int], nodes: Sequence[int], edges: Sequence[Edge]
) -> StepSchedule:
    """Send every rank's part down its tree; the chunks of a part travel together, chunk j of position i is ``i * c + j``."""
    n, c = len(ranks), demand.chunks
    step, tree, parent, child = (
        np.repeat(column, c) for column in np.array([edge[:4] for edge in edges], dtype=np.int64).T
    )
    hops = np.repeat(np.array([len(edge.links) for edge in edges], dtype=np.int64), c)
    where = np.array(nodes, dtype=np.int64)
    return StepSchedule(
        instance_sha256,
        Chunks(
            np.ones(n * c, dtype=np.int64),
            demand.size_bytes / (n * c),
            (*((rank,) for rank in ranks), tuple(sorted(ranks))),
            np.repeat(np.arange(n), c),
            np.full(n * c, n),
            np.zeros(n * c, dtype=np.bool_),
        ),
        Sends(
            tree * c + np.tile(np.arange(c), len(edges)),
            where[parent],
            where[child],
            np.zeros(len(edges) * c, dtype=np.bool_),
            np.concatenate([[0], np.cumsum(hops)]).astype(np.int64),
            np.array([link for edge in edges for _ in range(c) for link in edge.links], dtype=np.int64),
        ),
        step,
    )


def height_of(edges: Sequence[Edge]) -> int:
    """Give the most edges between a root and a leaf; an edge comes after the one above it."""
    depth: dict[tuple[int, int], int] = {}
    for edge in edges:
        depth[edge.tree, edge.child] = depth.get((edge.tree, edge.parent), 0) + 1
    return max(depth.values(), default=0)
