"""The diamond and the modified de Bruijn graphs of the direct-connect paper.

Its text mentions them only as names of figures.

They were found by search for graphs with the properties that tables 7 and 9 state; the tests check these again:

- The *diamond*: a random search found 256 digraphs (up to isomorphism) with 8 nodes, two links from and to every node,
  no parallel links and diameter 3. For 20 of them there is an all-gather of 3 steps, in halves of shards, that is
  optimal in bandwidth. Two of these, each other's reverse, are not isomorphic to their reverse (table 9) and give the
  all-to-all rate of table 7, 1.87e-2 for their Cartesian square; this is one of the two.
- *Modified de Bruijn graphs*: the loops and the pairs of opposite links of a de Bruijn graph are taken out, and the
  nodes that they were at are joined in one cycle instead (figure 20). Which cycle is not said: theirs is one in the
  order of ranks for two letters; for d = 4 it is one with the table's rate, 2.21e-2 on its line graph. There is an
  all-gather that is optimal in bandwidth, of 4, 5, 3 and 3 steps; it is not a breadth-first one.
"""

from __future__ import annotations

from itertools import pairwise

from ...core.errors import InputError
from ...core.topology import Topology
from .building import BANDWIDTH, LATENCY, Rate, Time, make_graph, read_wire

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
    return make_graph(nodes=8, links=16, edges=onward, wire=read_wire(bandwidth, latency))


def modified_de_bruijn(d: int, diameter: int, *, bandwidth: Rate = BANDWIDTH, latency: Time = LATENCY) -> Topology:
    """De Bruijn graph whose loops and opposite links are replaced by one long cycle, found by search.

    Every node has d links from and to it. Known are (2, 3), (2, 4), (3, 2) and (4, 2), those of the paper.

    Parameters
    ----------
    d, diameter : int
        Number of letters, the degree, and length of the words in the de Bruijn graph.
    """
    if (d, diameter) not in _CYCLES:
        known = ", ".join(str(pair) for pair in _CYCLES)
        raise InputError(f"no cycle is known for ({d:,}, {diameter:,}); expected one of {known}", place="d, diameter")
    nodes = d**diameter
    shifts = {(x, (d * x + a) % nodes) for x in range(nodes) for a in range(d)}
    kept = {(x, y) for x, y in shifts if (y, x) not in shifts}
    cycle = _CYCLES[d, diameter]
    edges = sorted(kept | set(pairwise((*cycle, cycle[0]))))
    return make_graph(nodes=nodes, links=nodes * d, edges=edges, wire=read_wire(bandwidth, latency))
