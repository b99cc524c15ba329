"""Plans, which say who gets which piece of a shard over which link in which step, and the schedules that they are."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ...core.schedule import Chunks, Ints, Sends, StepSchedule
from ...core.topology import Topology
from .graph import Graph


@dataclass(frozen=True, eq=False)
class Plan:
    """Pieces of shards for the nodes of an orbit; translations make the plan of all nodes of it.

    Parameters
    ----------
    graph : Graph
        The network.
    pieces : int
        Pieces of a shard, P.
    step, target, shard : array of int, shape (shards,)
        In which step, counted from 0, which node receives whose shard; by step.
    slot : array of int, shape (shards * pieces,)
        For every piece of every shard, the number of the link among those into the receiver.
    """

    graph: Graph
    pieces: int
    step: Ints
    target: Ints
    shard: Ints
    slot: Ints

    def carried(self) -> Ints:
        """Pieces that every link into the orbit carries in every step; one row a step."""
        links, steps = int(self.graph.link.max()) + 1, int(self.step.max()) + 1
        link = self.graph.link[np.repeat(self.target, self.pieces), self.slot]
        row = np.repeat(self.step, self.pieces) * links + link
        return np.bincount(row, minlength=steps * links).reshape(steps, links)

    def bandwidth_time(self) -> Fraction:
        """T_B, equation (2), in M/B: the sum over the steps of the most that a link carries."""
        most = int(self.carried().max(axis=1).sum())
        return Fraction(self.graph.degree * most, self.graph.nodes * self.pieces)


def all_gather(plan: Plan, topology: Topology, size_bytes: Fraction, instance_sha256: str) -> StepSchedule:
    """Write a plan as a schedule; chunk ``v P + i`` is piece i of v's shard.

    Parameters
    ----------
    plan : Plan
        A plan for the network.
    topology : Topology
        The network; all its nodes are ranks.
    size_bytes : Fraction
        Size of all shards together.
    instance_sha256 : str
        Digest of the instance.
    """
    graph, pieces, nodes = plan.graph, plan.pieces, len(topology.nodes)
    shifts = graph.shifted.shape[1]
    piece = np.tile(np.arange(pieces), len(plan.step))
    target = graph.shifted[np.repeat(plan.target, pieces)]
    chunk = graph.shifted[np.repeat(plan.shard, pieces)]
    chunk *= pieces
    chunk += piece[:, None]
    place = target * graph.source.shape[1] + plan.slot[:, None]
    links = graph.link.ravel()[place].ravel()
    ranks = np.arange(nodes)
    count = nodes * pieces
    return StepSchedule(
        instance_sha256,
        Chunks(
            np.ones(count, dtype=np.int64),
            size_bytes / count,
            (*((rank,) for rank in range(nodes)), tuple(range(nodes))),
            np.repeat(ranks, pieces),
            np.full(count, nodes),
            np.zeros(count, dtype=np.bool_),
        ),
        Sends(
            chunk.ravel(),
            graph.source.ravel()[place].ravel(),
            target.ravel(),
            np.zeros(len(links), dtype=np.bool_),
            np.arange(len(links) + 1),
            links,
        ),
        np.repeat(plan.step, pieces * shifts),
    )
