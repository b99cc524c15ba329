"""Networks of the broadcasts, and the index sets of the models: links that can carry each shard."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Set
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from ...algorithms.breadth_first.broadcast import IncomingLinks, graph_of
from ...algorithms.schedules.compose import transpose
from ...core.collective import Demand
from ...core.errors import Unsupported
from ...core.instance import Instance
from ...core.limits import require_buildable
from ...core.topology import Topology

WIDEST = 10**15  #: Times that the linear program can hold beside one another.
COLUMN_S = 8e-6  #: Seconds that a choice takes to be listed and built.


def network_and_demand(instance: Instance) -> tuple[Topology, Demand]:
    """Return network and collective of an instance that :func:`.method.supports` accepts."""
    if not isinstance(instance.network, Topology) or instance.demand is None:
        raise Unsupported("expected an explicit network and a collective")
    return instance.network, instance.demand


def networks(instance: Instance) -> list[Topology]:
    """Return the network of every part of the collective, transposed for one that runs backwards."""
    topology, demand = network_and_demand(instance)
    return [transpose(topology)] * demand.collective.sums + [topology] * demand.collective.copies


@dataclass(frozen=True, eq=False)
class Choices:
    """Possible senders of every shard, for all nodes and steps."""

    graph: IncomingLinks  #: The network; every node has its own rows, even if all nodes are equivalent.
    over: dict[tuple[int, int], list[int]]  #: By (v, u): links over which u may receive v's shard, f(v).
    carries: dict[tuple[int, int], list[int]]  #: By (e, t): shards that a link may carry in a step, counted from 1.
    target: dict[int, int]

    def only(self, receiving: Set[tuple[int, int]], without: Set[tuple[int, int]]) -> Choices:
        """Restrict to receivers (u, t), without the links (e, t)."""
        carries = {
            (e, t): shards
            for (e, t), shards in self.carries.items()
            if (self.target[e], t) in receiving and (e, t) not in without
        }
        over: dict[tuple[int, int], list[int]] = defaultdict(list)
        for (e, _), shards in carries.items():
            for v in shards:
                over[v, self.target[e]].append(e)
        return Choices(self.graph, dict(over), carries, self.target)


@dataclass(frozen=True, eq=False)
class GatherChoices(Choices):
    """Choices of an all_gather."""

    topology: Topology
    demand: Demand
    pieces: int  #: P, pieces that every shard is cut into, for models with pieces.
    instance_sha256: str

    @property
    def shard_bytes(self) -> Fraction:
        """Size of a shard, M/N, in bytes."""
        return self.demand.size_bytes / len(self.topology.nodes)


def choices_of(topology: Topology) -> Choices:
    """List the choices on a network, by step, receiver and shard, unless a model of them would be too large."""
    graph = replace(graph_of([node.name for node in topology.nodes], topology.link_ends), digits=())
    over: dict[tuple[int, int], list[int]] = defaultdict(list)
    carries: dict[tuple[int, int], list[int]] = defaultdict(list)
    steps = graph.distance.T  # to every node (columns) from every shard's (rows)
    v, u, slot = np.nonzero(steps[:, graph.source] < steps[:, :, None])
    require_buildable(len(v), f"{graph.steps} steps of {graph.nodes:,} nodes", COLUMN_S)
    links, when = graph.link[u, slot], steps[v, u]
    order = np.lexsort((slot, v, u, when))
    rows = np.stack([when, u, v, links])[:, order].T
    for t, receiver, shard, e in rows.tolist():
        over[shard, receiver].append(e)
        carries[e, t].append(shard)
    return Choices(graph, dict(over), dict(carries), {e: b for e, (_, b) in enumerate(topology.link_ends)})


def index(instance: Instance, options: Any) -> GatherChoices:
    """Return the sets of an all_gather's model, with its instance (``Formulation.index``)."""
    topology, demand = network_and_demand(instance)
    pieces = getattr(options, "pieces", None) or demand.chunks
    return GatherChoices(
        **vars(choices_of(topology)), topology=topology, demand=demand, pieces=pieces, instance_sha256=instance.sha256
    )


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
