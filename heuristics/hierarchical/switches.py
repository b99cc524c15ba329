"""Trees of one switch that copies or adds up, as NVLink SHARP in a box: rank to switch, switch to all others."""

from __future__ import annotations

import numpy as np

from ...core.collective import CollectiveKind
from ...core.instance import Instance
from ...core.topology import Topology
from ...core.trees import TreeKind, TreePacking

_OUT = (CollectiveKind.ALL_GATHER, CollectiveKind.BROADCAST)
_IN = (CollectiveKind.REDUCE_SCATTER, CollectiveKind.REDUCE)


def over_switches(instance: Instance) -> TreePacking | None:
    """A tree from, or to, every root over every switch that all ranks are on; None if there is none that copies, or adds.

    Parameters
    ----------
    instance : Instance
        A network and a collective of all ranks, of which the first is the root.
    """
    topology, demand = instance.network, instance.demand
    if not isinstance(topology, Topology) or demand is None or demand.collective not in (*_OUT, *_IN):
        return None
    outward, n = demand.collective in _OUT, instance.npus
    link = {ends: index for index, ends in reversed(list(enumerate(topology.link_ends)))}
    able = {
        number: node
        for number, node in enumerate(topology.tree_nodes[n:], start=n)
        if (topology.nodes[node].copies if outward else topology.nodes[node].reduces)
        and all((rank, node) in link and (node, rank) in link for rank in topology.rank_nodes)
    }
    if not able:
        return None
    roots = [0] if demand.collective in (CollectiveKind.BROADCAST, CollectiveKind.REDUCE) else list(range(n))
    pairs = [(root, number) for root in roots for number in able]
    parent: list[int] = []
    child: list[int] = []
    path: list[int] = []
    for root, number in pairs:
        hub, others = able[number], [rank for rank in range(n) if rank != root]
        parent += [root] + [number] * len(others)
        child += [number, *others]
        hops = [(topology.rank_nodes[root], hub)] + [(hub, topology.rank_nodes[rank]) for rank in others]
        path += [link[hop if outward else (hop[1], hop[0])] for hop in hops]
    return TreePacking(
        instance.sha256,
        TreeKind.OUT if outward else TreeKind.IN,
        np.array([root for root, _ in pairs], dtype=np.int64),
        np.ones(len(pairs), dtype=np.int64),
        demand.size_bytes / len(pairs),
        np.arange(len(pairs) + 1) * n,
        np.array(parent, dtype=np.int64),
        np.array(child, dtype=np.int64),
        np.arange(len(path) + 1),
        np.array(path, dtype=np.int64),
    )
