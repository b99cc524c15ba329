"""What no schedule exceeds on a network as it is posed, whose links may be faster one way than the other.

Trees that use both directions of their links alike see the smaller one only, and the strength of that network bounds them and nothing else. Any
schedule is bounded by all directed links. Every byte enters the parts of a partition P ``2 (|P| - 1)`` times
(:class:`~cwb.core.bounds.PartitionCertificate`), so the rate is at most half the strength of the network in which every directed link is a link of
its own; and it leaves every set of sites at least once (:class:`~cwb.core.bounds.CutCertificate`), so the rate is at most the least bandwidth out
of a set. Where both directions are the same, the first of the two is the strength of the trees' network, and the second is never less.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import lcm

import numpy as np

from ....core.bounds import CutCertificate, PartitionCertificate
from ....core.topology import Topology
from ..digraph import Digraph, exact_array
from ..maxflow import max_flow
from .network import Wan
from .strength import Strength, strength, strength_of


@dataclass(frozen=True)
class Ceiling:
    """A rate that no schedule exceeds.

    Parameters
    ----------
    rate : Fraction
        In units of the trees' network.
    certificate : PartitionCertificate or CutCertificate
        What proves it.
    """

    rate: Fraction
    certificate: PartitionCertificate | CutCertificate


def ceiling(topology: Topology, wan: Wan, strongest: Strength | None = None) -> Ceiling:
    """Give the least of the rates that partitions and cuts of a network prove.

    Parameters
    ----------
    topology : Topology
        The network as it is posed.
    wan : Wan
        The same network as trees see it.
    strongest : Strength, optional
        Its strength, if it is known.
    """
    if wan.balanced:
        found = strongest or strength(wan)
        return Ceiling(found.rate, PartitionCertificate(found.parts))
    scale = lcm(*(link.bandwidth_Bps.denominator for link in topology.links))
    capacity = [int(link.bandwidth_Bps * scale) for link in topology.links]
    tail, head = ([ends[side] for ends in topology.link_ends] for side in (0, 1))
    whole = strength_of(wan.nodes, tail, head, capacity)
    graph = Digraph.merged(
        wan.nodes, np.array(tail, dtype=np.int64), np.array(head, dtype=np.int64), exact_array(capacity)
    )
    pairs = [pair for site in range(1, wan.nodes) for pair in ((0, site), (site, 0))]
    narrow = min((max_flow(graph, *pair) for pair in pairs), key=lambda flow: flow.value)
    unit = scale * wan.unit_Bps
    if narrow.value < whole.rate / 2:
        sites = np.flatnonzero(narrow.source_side).tolist()
        return Ceiling(narrow.value / unit, CutCertificate(tuple(sites)))
    return Ceiling(whole.rate / 2 / unit, PartitionCertificate(whole.parts))
