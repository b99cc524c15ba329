"""Networks in whole numbers: links as integer multiples of the largest bandwidth that divides them all."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm

from ...core.topology import NodeKind, Topology


@dataclass(frozen=True)
class ScaledNetwork:
    """A directed graph with integer capacities; parallel links stay apart.

    Parameters
    ----------
    nodes : int
        Number of nodes.
    ranks : tuple of int
        The compute nodes; all others are switches, which pass on and do not copy.
    tail, head, capacity : tuple of int
        Of every link, in the order of the topology; the capacities have no common divisor.
    unit_Bps : Fraction
        Bandwidth of one unit of capacity.
    """

    nodes: int
    ranks: tuple[int, ...]
    tail: tuple[int, ...]
    head: tuple[int, ...]
    capacity: tuple[int, ...]
    unit_Bps: Fraction

    def transposed(self) -> ScaledNetwork:
        """Give the network with every link turned around, on which a broadcast is a reduction here."""
        return ScaledNetwork(self.nodes, self.ranks, self.head, self.tail, self.capacity, self.unit_Bps)

    @property
    def links(self) -> range:
        """Positions of all links."""
        return range(len(self.capacity))

    @property
    def seconds_per_gigabyte(self) -> Fraction:
        """What a ratio ``1 / capacity`` is in seconds per 10^9 bytes."""
        return 10**9 / self.unit_Bps


def scale(topology: Topology) -> ScaledNetwork:
    """Write the bandwidths of a network as integers without a common divisor."""
    bandwidths = [link.bandwidth_Bps for link in topology.links]
    denominator = lcm(*(b.denominator for b in bandwidths))
    integers = [int(b * denominator) for b in bandwidths]
    divisor = gcd(*integers) or 1
    ranks = tuple(index for index, node in enumerate(topology.nodes) if node.kind is NodeKind.COMPUTE)
    return ScaledNetwork(
        len(topology.nodes),
        ranks,
        tuple(a for a, _ in topology.link_ends),
        tuple(b for _, b in topology.link_ends),
        tuple(value // divisor for value in integers),
        Fraction(divisor, denominator),
    )
