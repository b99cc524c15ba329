"""Kautz and de Bruijn graphs: digraphs of small diameter, whose nodes are words and whose links shift them.

The nodes are counted by their rank, as Imase and Itoh do: the links of node x lead to consecutive ranks (modulo n).
The definitions have loops at some nodes. A loop carries nothing, and a network of cwb has none: it is left out. The
*nominal degree* d is then the number of links of a node with its loop: the port of the loop is idle, and a bandwidth
per node is d times that of a link, also at the nodes that have d - 1 links.

Two graphs are in the direct-connect paper as names of figures only. They were found by search for graphs with the
properties that its tables 7 and 9 state; the tests check these again:

- The *diamond*: a random search found 256 digraphs (up to isomorphism) with 8 nodes, two links from and to every node,
  no parallel links and diameter 3. For 20 of them there is an all-gather of 3 steps, in halves of shards, that is
  optimal in bandwidth. Two of these, each other's reverse, are not isomorphic to their reverse (table 9) and give the
  all-to-all rate of table 7, 1.87e-2 for their Cartesian square; this is one of the two.
- *Modified de Bruijn graphs*: the loops and the pairs of opposite links of a de Bruijn graph are taken out, and the
  nodes that they were at are joined in one cycle instead (figure 20). Which cycle is not said: theirs is one in the
  order of ranks for two letters; for d = 4 it is one with the table's rate, 2.21e-2 on its line graph. There is an
  all-gather that is optimal in bandwidth, of 4, 5, 3 and 3 steps; it is not a breadth-first one.
"""

from itertools import pairwise
from math import gcd

from ...core.errors import InputError
from ...core.topology import Topology
from ..schema import MAX_NODES
from .building import BANDWIDTH, LATENCY, Rate, Time, check_ranges, make_graph

MAX_LENGTH = MAX_NODES.bit_length()  #: A longer word over two letters has more values than there may be nodes.


def kautz(d: int, diameter: int, *, bandwidth: Rate = BANDWIDTH, latency: Time = LATENCY) -> Topology:
    """Kautz graph: words of the given length over d + 1 letters without equal neighbours, shifted by one letter.

    It has d^diameter + d^(diameter - 1) nodes, each with d links to others, and is the largest known digraph of its
    degree and diameter for d > 2. The direct-connect paper writes it K(d, diameter - 1), the line graph of the complete
    graph of d + 1 nodes, taken diameter - 1 times.

    ``diameter``: length of the words, at least 1.
    """
    check_ranges(d=(d, 2), diameter=(diameter, 1, MAX_LENGTH))
    return _imase_itoh(d, d**diameter + d ** (diameter - 1), bandwidth, latency)


def generalized_kautz(d: int, n: int, *, bandwidth: Rate = BANDWIDTH, latency: Time = LATENCY) -> Topology:
    """Generalized Kautz graph (Imase and Itoh): x leads to -d x - a (mod n), a = 1..d.

    Definition 16 of the direct-connect paper; its diameter is within one of the smallest that any digraph of this size
    and degree has (theorem 21). Where x = -d x - a, the definition has a loop, which is left out; there is none if n is
    a multiple of d + 1.

    ``d``: nominal degree: links from every node, with its loops; at least 2.
    """
    check_ranges(d=(d, 2, MAX_NODES - 1), n=(n, d + 1))
    return _imase_itoh(d, n, bandwidth, latency)


def de_bruijn(d: int, diameter: int, *, bandwidth: Rate = BANDWIDTH, latency: Time = LATENCY) -> Topology:
    """De Bruijn graph: words of the given length over d letters, shifted by one letter; without its loops.

    Node x of d^diameter leads to d x + a (mod d^diameter), a = 0 to d - 1. The d words of one letter repeated have a
    loop in the definition and so one link less here.

    ``diameter``: length of the words, at least 1.
    """
    check_ranges(d=(d, 2), diameter=(diameter, 1, MAX_LENGTH))
    nodes = d**diameter
    onward = ((x, y) for x in range(nodes) for a in range(d) if (y := (d * x + a) % nodes) != x)
    return make_graph(nodes, nodes * d - d, onward, bandwidth, latency)


def _imase_itoh(d: int, n: int, bandwidth: Rate, latency: Time) -> Topology:
    onward = ((x, y) for x in range(n) for a in range(1, d + 1) if (y := (-d * x - a) % n) != x)
    return make_graph(n, n * d - _loops(d, n), onward, bandwidth, latency)


def _loops(d: int, n: int) -> int:
    """Count the loops of a graph of Imase and Itoh: solutions of (d + 1) x = -a (mod n).

    Every a that the gcd divides has as many as the gcd.
    """
    common = gcd(d + 1, n)
    return d // common * common


#: Where the links of every node of the diamond lead.
_DIAMOND = ((3, 7), (0, 4), (5, 7), (1, 2), (5, 6), (0, 6), (1, 2), (3, 4))

#: Order of the nodes in the long cycle, by (letters, length of the words).
_CYCLES = {
    (2, 3): (0, 2, 5, 7),
    (2, 4): (0, 5, 10, 15),
    (3, 2): (0, 3, 1, 2, 4, 6, 5, 7, 8),
    (4, 2): (0, 4, 12, 8, 15, 3, 11, 7, 10, 14, 6, 2, 5, 9, 1, 13),
}


def diamond(*, bandwidth: Rate = BANDWIDTH, latency: Time = LATENCY) -> Topology:
    """Diamond: 8 nodes with two links from and to each, diameter 3; found by search."""
    onward = ((x, y) for x, targets in enumerate(_DIAMOND) for y in targets)
    return make_graph(8, 16, onward, bandwidth, latency)


def modified_de_bruijn(d: int, diameter: int, *, bandwidth: Rate = BANDWIDTH, latency: Time = LATENCY) -> Topology:
    """De Bruijn graph whose loops and opposite links are replaced by one long cycle, found by search.

    Every node has d links from and to it. Known are (2, 3), (2, 4), (3, 2) and (4, 2), those of the paper.

    ``d``, ``diameter``: number of letters, the degree, and length of the words in the de Bruijn graph.
    """
    if (d, diameter) not in _CYCLES:
        pairs = ", ".join(str(pair) for pair in _CYCLES)
        raise InputError(f"no cycle is known for ({d:,}, {diameter:,}); expected one of {pairs}", place="d, diameter")
    nodes = d**diameter
    shifts = {(x, (d * x + a) % nodes) for x in range(nodes) for a in range(d)}
    arcs = {(x, y) for x, y in shifts if (y, x) not in shifts}
    cycle = _CYCLES[d, diameter]
    edges = sorted(arcs | set(pairwise((*cycle, cycle[0]))))
    return make_graph(nodes, nodes * d, edges, bandwidth, latency)
