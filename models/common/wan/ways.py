"""Shortest ways between all sites."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ....core.schedule import Bools, Ints
from .network import Wan


@dataclass(frozen=True, eq=False)
class Ways:
    """Shortest ways over some links; of ways of the same length one with the fewest links.

    Parameters
    ----------
    reach : array of int, shape (sites, sites)
        Length of the way from one site to another, -1 where there is none.
    before : array of int, shape (sites, sites)
        The last site before the second one on the way from the first.
    links : dict of (int, int) to int
        The shortest of parallel links, by its two sites.
    """

    reach: Ints
    before: Ints
    links: dict[tuple[int, int], int]

    def link(self, one: int, other: int) -> int:
        """Give the link between neighbours."""
        return self.links[one, other] if (one, other) in self.links else self.links[other, one]

    def sites(self, start: int, end: int) -> list[int]:
        """Give the sites from one to another."""
        back = [end]
        while back[-1] != start:
            back.append(int(self.before[start, back[-1]]))
        return back[::-1]


def shortest_ways(wan: Wan, length: Ints, usable: Bools | None = None) -> Ways:
    """Find the shortest ways between all sites, by Dijkstra's algorithm from each of them.

    Parameters
    ----------
    wan : Wan
        The network.
    length : array of int, shape (links,)
        Length of every link, at least 0.
    usable : array of bool, shape (links,), optional
        Links that may be taken; by default all.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    order = [e for e in np.argsort(-length, kind="stable").tolist() if usable is None or usable[e]]
    shortest = {(int(wan.tail[e]), int(wan.head[e])): e for e in order}  # of parallel links the last one, the shortest
    a, b = np.array(list(shortest), dtype=np.int64).reshape(-1, 2).T
    # A link without latency must not be taken for none: all lengths are one more than n times what they are, which keeps their order.
    weight = (length[list(shortest.values())] * wan.nodes + 1).astype(np.float64)
    graph = csr_array((weight, (a, b)), shape=(wan.nodes, wan.nodes))
    far, before = dijkstra(graph, directed=False, return_predecessors=True)
    reach = np.where(np.isinf(far), -1, far) // wan.nodes
    return Ways(reach.astype(np.int64), before.astype(np.int64), shortest)
