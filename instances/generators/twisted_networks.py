"""Twisted tori and hypercubes.

A few links lead elsewhere, so that the network is as regular and its diameter smaller.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...core.topology import Topology
from ..schema import MAX_NODES
from .building import BANDWIDTH, LATENCY, Rate, Time, both_ways, check_range, graph, wire


def twisted_torus(
    width: int, height: int, twist: int, *, bandwidth: Rate = BANDWIDTH, latency: Time = LATENCY
) -> Topology:
    """Twisted torus: a torus with shifted columns: (x, height - 1) is connected with (x + twist, 0).

    J. M. Camara, M. Moreto, E. Vallejo, R. Beivide, J. Miguel-Alonso, C. Martinez, J. Navaridas, "Twisted torus
    topologies for enhanced interconnection networks", 2010; theirs has width 2 a, height a and twist a. The node (x, y)
    has rank x + width y; every node has four neighbours.

    Parameters
    ----------
    width, height, twist : int
        Nodes in a row, a ring of its own; number of rows; nodes by which the columns are shifted where they end.
    """
    check_range(width, "width", 3)
    check_range(height, "height", 2)
    check_range(twist, "twist", 1, width - 1)
    nodes = width * height
    edges = both_ways(_rows_and_columns(width, height, twist))
    return graph(nodes=nodes, links=4 * nodes, edges=edges, of=wire(bandwidth, latency))


def _rows_and_columns(width: int, height: int, twist: int) -> Iterator[tuple[int, int]]:
    for rank in range(width * height):
        x, y = rank % width, rank // width
        yield rank, (x + 1) % width + width * y
        yield rank, (rank + width if y < height - 1 else (x + twist) % width)


def twisted_hypercube(dim: int, *, bandwidth: Rate = BANDWIDTH, latency: Time = LATENCY) -> Topology:
    """Twisted hypercube: two opposite edges of one square of a hypercube are exchanged for its diagonals.

    A.-H. Esfahanian, L. M. Ni, B. E. Sagan, "The twisted n-cube with application to multiprocessing", 1991. Of the
    edges 0-1 and 2-3 come 0-3 and 1-2; the diameter falls to dim - 1.
    """
    check_range(dim, "dim", 3, MAX_NODES.bit_length() - 1)
    nodes = 2**dim
    pairs = ((rank, rank | 1 << bit) for bit in range(dim) for rank in range(nodes) if not rank >> bit & 1)
    exchanged = {(0, 1): (0, 3), (2, 3): (2, 1)}
    edges = both_ways(exchanged.get(pair, pair) for pair in pairs)
    return graph(nodes=nodes, links=nodes * dim, edges=edges, of=wire(bandwidth, latency))
