"""Kautz and de Bruijn graphs: digraphs of small diameter, whose nodes are words and whose links shift them.

The nodes are counted by their rank, as Imase and Itoh do: the links of node x lead to consecutive ranks (modulo n).
The definitions have loops at some nodes. A loop carries nothing, and a network of cwb has none: it is left out. The
*nominal degree* d is then the number of links of a node with its loop: the port of the loop is idle, and a bandwidth
per node is d times that of a link, also at the nodes that have d - 1 links.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

from ...core.topology import Topology
from ..schema import MAX_NODES
from .building import BANDWIDTH, LATENCY, Rate, Time, check_ranges, make_graph, read_wire

MAX_LENGTH = MAX_NODES.bit_length()  #: A longer word over two letters has more values than there may be nodes.


def kautz(d: int, diameter: int, *, bandwidth: Rate = BANDWIDTH, latency: Time = LATENCY) -> Topology:
    """Kautz graph: words of the given length over d + 1 letters without equal neighbours, shifted by one letter.

    It has d^diameter + d^(diameter - 1) nodes, each with d links to others, and is the largest known digraph of its
    degree and diameter for d > 2. The direct-connect paper writes it K(d, diameter - 1), the line graph of the complete
    graph of d + 1 nodes, taken diameter - 1 times.

    Parameters
    ----------
    diameter : int
        Length of the words, at least 1.
    """
    check_ranges(d=(d, 2), diameter=(diameter, 1, MAX_LENGTH))
    return _imase_itoh(d, d**diameter + d ** (diameter - 1), bandwidth, latency)


def generalized_kautz(d: int, n: int, *, bandwidth: Rate = BANDWIDTH, latency: Time = LATENCY) -> Topology:
    """Generalized Kautz graph (Imase and Itoh): x leads to -d x - a (mod n), a = 1..d.

    Definition 16 of the direct-connect paper; its diameter is within one of the smallest that any digraph of this size
    and degree has (theorem 21). Where x = -d x - a, the definition has a loop, which is left out; there is none if n is
    a multiple of d + 1.

    Parameters
    ----------
    d : int
        Nominal degree: links from every node, with its loops; at least 2.
    """
    check_ranges(d=(d, 2, MAX_NODES - 1), n=(n, d + 1))
    return _imase_itoh(d, n, bandwidth, latency)


def de_bruijn(d: int, diameter: int, *, bandwidth: Rate = BANDWIDTH, latency: Time = LATENCY) -> Topology:
    """De Bruijn graph: words of the given length over d letters, shifted by one letter; without its loops.

    Node x of d^diameter leads to d x + a (mod d^diameter), a = 0 to d - 1. The d words of one letter repeated have a
    loop in the definition and so one link less here.

    Parameters
    ----------
    diameter : int
        Length of the words, at least 1.
    """
    check_ranges(d=(d, 2), diameter=(diameter, 1, MAX_LENGTH))
    nodes = d**diameter
    onward = ((x, (d * x + a) % nodes) for x in range(nodes) for a in range(d))
    return make_graph(
        nodes=nodes, links=nodes * d - d, edges=_without_loops(onward), wire=read_wire(bandwidth, latency)
    )


def _imase_itoh(d: int, n: int, bandwidth: Rate, latency: Time) -> Topology:
    onward = ((x, (-d * x - a) % n) for x in range(n) for a in range(1, d + 1))
    return make_graph(
        nodes=n, links=n * d - _loops(d, n), edges=_without_loops(onward), wire=read_wire(bandwidth, latency)
    )


def _loops(d: int, n: int) -> int:
    """Count the loops of a graph of Imase and Itoh: solutions of (d + 1) x = -a (mod n).

    Every a that the gcd divides has as many as the gcd.
    """
    common = gcd(d + 1, n)
    return d // common * common


def _without_loops(edges: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    return ((source, target) for source, target in edges if source != target)
