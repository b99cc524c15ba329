"""Who may send what to whom: the sets that a model is indexed by."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Set
from dataclasses import dataclass, replace

import numpy as np

from ...core.topology import Topology
from ..common.breadth_first.graph import Graph, graph_of


@dataclass(frozen=True, eq=False)
class Choices:
    """Who may send what to whom, for all nodes and steps.

    Parameters
    ----------
    graph : Graph
        The network; every node has rows of its own, whether or not all nodes look the same.
    over : dict of (v, u) to list of e
        Links over which u may receive v's shard, f(v).
    carries : dict of (e, t) to list of v
        Shards that a link may carry in a step, counted from 1.
    target : dict of e to u
        Where the links lead.
    """

    graph: Graph
    over: dict[tuple[int, int], list[int]]
    carries: dict[tuple[int, int], list[int]]
    target: dict[int, int]

    def only(self, receiving: Set[tuple[int, int]], without: Set[tuple[int, int]]) -> Choices:
        """Keep what some nodes receive in some steps, (u, t), without some links in some steps, (e, t)."""
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


def choices_of(topology: Topology) -> Choices:
    """List the choices on a network, by step, receiver and shard.

    Raises
    ------
    InputError
        If a node cannot be reached from another one.
    """
    graph = replace(graph_of([node.name for node in topology.nodes], topology.link_ends), digits=())
    over: dict[tuple[int, int], list[int]] = defaultdict(list)
    carries: dict[tuple[int, int], list[int]] = defaultdict(list)
    steps = graph.distance.T  # to every node (columns) from every shard's (rows)
    v, u, slot = np.nonzero(steps[:, graph.source] < steps[:, :, None])
    links, when = graph.link[u, slot], steps[v, u]
    order = np.lexsort((slot, v, u, when))
    rows = np.stack([when, u, v, links])[:, order].T
    for t, receiver, shard, e in rows.tolist():
        over[shard, receiver].append(e)
        carries[e, t].append(shard)
    return Choices(graph, dict(over), dict(carries), {e: b for e, (_, b) in enumerate(topology.link_ends)})
