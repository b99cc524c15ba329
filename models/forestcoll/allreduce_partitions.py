"""Bounds on an all-reduce without a linear program: the bottlenecks of its two halves, and parts joined by fast links."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from ...core.bounds import CutCertificate, PartitionCertificate
from ...core.instance import Instance
from ...core.schedule import Bools
from ...core.topology import Topology
from ..common.schedule_bounds import cut_bound, network_of, partition_bound

#: Distinct bandwidths at which the network is taken apart.
_THRESHOLDS = 32

Bound = tuple[Fraction, CutCertificate | PartitionCertificate]


def best_all_reduce_bound(instance: Instance, sides: Sequence[Bools]) -> Bound:
    """Give the best bound of some cuts and partitions; each is exact, and right whatever the parts are.

    Parameters
    ----------
    instance : Instance
        A network and an all-reduce.
    sides : sequence of array of bool
        Nodes on one side of each bottleneck.
    """
    topology = network_of(instance)
    found: list[Bound] = []
    for side in sides:
        for nodes in (side, ~side):
            found.append(cut_bound(instance, np.flatnonzero(nodes).tolist()))
    for parts in linked_parts(topology):
        if len(parts) > 1:
            found.append(partition_bound(instance, parts))
    return max(found, key=lambda bound: bound[0])


def linked_parts(topology: Topology) -> Iterator[list[list[int]]]:
    """Take the network apart at some bandwidths: what links above them join stays together. Switches alone are in no part."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    size = len(topology.nodes)
    rates = sorted({link.bandwidth_Bps for link in topology.links})
    step = max(len(rates) // _THRESHOLDS, 1)
    tail, head = np.array(topology.link_ends, dtype=np.int64).reshape(-1, 2).T
    rank = {rate: index for index, rate in enumerate(rates)}
    speed = np.array([rank[link.bandwidth_Bps] for link in topology.links])
    computes = set(topology.rank_nodes)
    for threshold in range(0, len(rates) + step, step):
        fast = speed >= threshold
        matrix = csr_array((np.ones(int(fast.sum())), (tail[fast], head[fast])), shape=(size, size))
        _, label = connected_components(matrix, directed=False)
        parts: dict[int, list[int]] = {}
        for node, part in enumerate(label.tolist()):
            parts.setdefault(part, []).append(node)
        yield [part for part in parts.values() if not computes.isdisjoint(part)]
