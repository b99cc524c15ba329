"""Input of a schedule of steps and rounds, and the answer of a solved model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...algorithms.graphs.hyper_edges import RankEdge, edges_of
from ...algorithms.schedules.commodities import (
    Commodity,
    chunks_of,
    commodities_of,
    edge_labels,
    needed_sends,
    step_schedule,
)
from ...core.errors import InputError, Unsupported
from ...core.instance import Instance
from ...core.limits import require_buildable
from ...core.schedule import StepSchedule
from ...core.topology import Topology

#: Seconds that a column takes to be built.
COLUMN_S = 8e-6


@dataclass(frozen=True)
class SynchronousSteps:
    """Chunks, edges, steps and rounds of a model of an instance.

    Parameters
    ----------
    room : sequence of int
        Chunks that each edge carries in a round.
    """

    chunks: Sequence[Commodity]
    edges: Sequence[RankEdge]
    room: Sequence[int]
    steps: int
    rounds: int
    instance: Instance

    @property
    def columns(self) -> int:
        """Number of variables of possession, sends and rounds."""
        return len(self.chunks) * (len(self.nodes) * (self.steps + 1) + len(self.edges) * self.steps) + self.steps

    @property
    def nodes(self) -> list[int]:
        """Nodes at the ends of edges."""
        return sorted({n for edge in self.edges for n in (edge.source, edge.target)})


def farthest(chunks: tuple[Commodity, ...], edges: tuple[RankEdge, ...]) -> int:
    """Return the fewest steps: the most links between a source and a target."""
    ends = {(edge.source, edge.target) for edge in edges}
    most = 0
    for source, targets in {(chunk.source, chunk.targets) for chunk in chunks}:
        reached, steps = {source}, 0
        while not set(targets) <= reached:
            beyond = reached | {j for i, j in ends if i in reached}
            if beyond == reached:
                raise InputError("a rank cannot be reached", place="network.links")
            reached, steps = beyond, steps + 1
        most = max(most, steps)
    return most


def pose_steps(instance: Instance, steps: int | None, rounds: int | None) -> SynchronousSteps:
    """Return the chunks and edges of an instance.

    Parameters
    ----------
    steps : int or None
        S; by default the most links between a source and a target, the least possible.
    rounds : int or None
        R; by default all chunks over one link in every step, which always suffices.
    """
    topology = instance.network
    if not isinstance(topology, Topology):
        raise Unsupported("expected an explicit network")
    chunks = commodities_of(instance)
    if len({chunk.bytes for chunk in chunks}) != 1:
        raise Unsupported("rounds need chunks of one size")
    edges = edges_of(topology)
    slowest = min(edge.bandwidth_Bps for edge in edges)
    room = [min(len(chunks), int(edge.bandwidth_Bps / slowest)) for edge in edges]  # no link carries a chunk twice
    steps = steps or farthest(chunks, edges)
    return SynchronousSteps(chunks, edges, room, steps, rounds or steps * len(chunks), instance)


def index(instance: Instance, options: Any) -> SynchronousSteps:
    """Return chunks, edges, steps and rounds (``Formulation.index``)."""
    problem = pose_steps(instance, options.steps, options.rounds)
    require_buildable(problem.columns, f"{problem.steps} steps", COLUMN_S)
    return problem


def schedule_of(model: Any, problem: SynchronousSteps) -> StepSchedule:
    """Return a solved model's schedule, without sends that serve no target (``Formulation.extract``)."""
    sends = [
        (s, c, edge)
        for c, chunk in enumerate(problem.chunks)
        for s, edge in needed_sends(
            chunk.source,
            chunk.targets,
            [(s, problem.edges[e]) for e in model.E for s in model.S if model.y[c, e, s].value > 0.5],
        )
    ]
    return step_schedule(problem.instance.sha256, chunks_of(problem.instance), sends)


def labels(index: SynchronousSteps) -> Mapping[str, Callable[[Any], str]]:
    """Name nodes, edges and the chunks' sources (``Formulation.labels``)."""
    return edge_labels(index.instance.topology, index.edges, index.chunks)
