"""Networks of the broadcasts, and the index sets of the models: links that can carry each shard."""

from collections.abc import Set
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self

import numpy as np

from ...algorithms.breadth_first.broadcast import IncomingLinks, graph_of
from ...algorithms.schedules.compose import transpose
from ...core.budget import require_buildable
from ...core.errors import Unsupported
from ...core.grouping import group_by_key
from ...core.instance import Instance
from ...core.topology import Topology

WIDEST = 10**15  #: Times that the linear program can hold beside one another.
COLUMN_S = 8e-6  #: Seconds that a choice takes to be listed and built.


def networks(instance: Instance) -> list[Topology]:
    """Return the network of every part of the collective, transposed for one that runs backwards."""
    topology, kind = instance.topology, instance.demands[0].collective
    return [transpose(topology)] * kind.sums + [topology] * kind.copies


@dataclass(frozen=True, eq=False)
class Choices:
    """Possible senders of every shard, for all nodes and steps."""

    topology: Topology
    graph: IncomingLinks  #: The network; every node has its own rows, even if all nodes are equivalent.
    over: dict[tuple[int, int], list[int]]  #: By (v, u): links over which u may receive v's shard, f(v).
    carries: dict[tuple[int, int], list[int]]  #: By (e, t): shards that a link may carry in a step, counted from 1.
    shard_bytes: Fraction = Fraction(1)  #: Size of a shard, M/N.
    pieces: int | None = None  #: P, pieces that every shard is cut into; None is as many as the parts need.
    instance_sha256: str = ""

    def target(self, link: int) -> int:
        """Return the node that a link enters."""
        return self.topology.link_ends[link][1]

    def only(self, receiving: Set[tuple[int, int]], without: Set[tuple[int, int]]) -> Self:
        """Restrict to receivers (u, t), without the links (e, t)."""
        carries = {
            (e, t): shards
            for (e, t), shards in self.carries.items()
            if (self.target(e), t) in receiving and (e, t) not in without
        }
        over = group_by_key(((v, self.target(e)), e) for (e, _), shards in carries.items() for v in shards)
        return replace(self, over=dict(over), carries=carries)


def choices_of(topology: Topology, **extent: Any) -> Choices:
    """List the choices on a network, by step, receiver and shard, unless a model of them would be too large.

    ``extent`` is the size and pieces of a shard, for models that have them.
    """
    graph = replace(graph_of([node.name for node in topology.nodes], topology.link_ends), digits=())
    steps = graph.distance.T  # to every node (columns) from every shard's (rows)
    v, u, slot = np.nonzero(steps[:, graph.source] < steps[:, :, None])
    require_buildable(len(v), f"{graph.steps} steps of {graph.nodes:,} nodes", COLUMN_S)
    links, when = graph.link[u, slot], steps[v, u]
    order = np.lexsort((slot, v, u, when))
    rows = np.stack([when, u, v, links])[:, order].T.tolist()
    over = group_by_key(((shard, receiver), e) for _, receiver, shard, e in rows)
    carries = group_by_key(((e, t), shard) for t, _, shard, e in rows)
    return Choices(topology, graph, dict(over), dict(carries), **extent)


def index(instance: Instance, options: Any) -> Choices:
    """Return the sets of an all_gather's model, with its instance (``Formulation.index``)."""
    topology, demand = instance.topology, instance.demands[0]
    pieces = (options.pieces or demand.chunks) if hasattr(options, "pieces") else None
    shard_bytes = demand.size_bytes / len(topology.nodes)
    return choices_of(topology, shard_bytes=shard_bytes, pieces=pieces, instance_sha256=instance.sha256)


def unit_of(network: Topology, shard_bytes: Fraction) -> Fraction:
    """Return the time unit of LP (14): seconds of a shard over the fastest link."""
    unit_s = shard_bytes / max(link.bandwidth_Bps for link in network.links)
    longest_s = max(shard_bytes / link.bandwidth_Bps + link.latency_s for link in network.links)
    if longest_s > WIDEST * unit_s:
        factor = f"{float(longest_s / unit_s):.2g}"
        raise Unsupported(
            f"links differ in time by a factor of {factor}; the linear program holds for up to {WIDEST:,}"
        )
    return unit_s
