"""Tree that is certain to leave room for all others.

The algorithm of Berczi and Frank (ForestColl, theorem 12, algorithm 5).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.schedule import Ints
from ..graphs import flow_kernels
from ..graphs.maxflow import arcs_of
from ..graphs.network import Exact, Network, kernel_for


def exact_tree(graph: Network, residual: Exact, demand: Exact, root: int) -> tuple[int, Ints]:
    """Build a tree from a root, for as many copies as one tree can have.

    An edge (x, y) can be added to mu copies of a partial tree, where mu is what y can receive from x and from all other
    roots beyond what they demand. If mu is less than the number of copies, the other copies are left to the root's
    demand. All demanded trees, at least one from this root, exist in the capacities ``residual``. Return the copies, at
    least 1, and the edge into every node, -1 at the root.
    """
    oracle = _SpareCapacity(graph, residual)
    others = demand.copy()
    copies = int(demand[root])
    others[root] -= copies
    into = np.full(graph.nodes, -2, dtype=np.int64)
    into[root] = -1
    place = np.zeros(graph.nodes, dtype=np.int64)
    # What an edge can take only falls while the tree grows, so what was found last time is a bound.
    bound = np.minimum(residual, copies)
    for count in range(1, graph.nodes):
        reached = into != -2
        edges = np.flatnonzero(reached[graph.tail] & ~reached[graph.head] & (bound > 0))
        edges = edges[np.argsort(place[graph.tail[edges]], kind="stable")]
        edge = _best(graph, oracle, others, copies, edges, bound)
        y = int(graph.head[edge])
        into[y] = edge
        place[y] = count
        if bound[edge] < copies:
            others[root] += copies - int(bound[edge])
            copies = int(bound[edge])
            bound = np.minimum(residual, copies)
        oracle.reserve_for_others(into[into >= 0], copies)
    return copies, into


def _best(graph: Network, oracle: _SpareCapacity, others: Exact, copies: int, edges: Ints, bound: Exact) -> int:
    """Find the first edge that all copies can take, else the first of those that most can.

    ``bound`` is tightened in place.
    """
    best, most = -1, 0
    for candidates in (edges[bound[edges] == copies], edges):
        for edge in candidates.tolist():
            if bound[edge] > most:
                x, y = int(graph.tail[edge]), int(graph.head[edge])
                bound[edge] = oracle.spare_copies(x, y, others, int(bound[edge]))
                if bound[edge] == copies:
                    return int(edge)
                if candidates is edges and bound[edge] > most:
                    best, most = int(edge), int(bound[edge])
    return best


class _SpareCapacity:
    """Surplus that nodes can receive beyond the demand while a tree takes edges of the network."""

    def __init__(self, graph: Network, residual: Exact) -> None:
        self.arcs, self.arc = arcs_of(graph)
        self.residual = residual
        self.capacity: Exact = np.zeros(len(self.arcs.head), dtype=residual.dtype)
        self.capacity[self.arc] = residual
        self.nodes = graph.nodes
        self.kernel: Any = kernel_for(flow_kernels.flow_into, residual.dtype)

    def reserve_for_others(self, edges: Ints, copies: int) -> None:
        """Reduce capacities by the edges of so many copies of a tree."""
        self.capacity[self.arc] = self.residual
        self.capacity[self.arc[edges]] -= copies

    def spare_copies(self, x: int, y: int, others: Exact, most: int) -> int:
        """Compute ``F(x, y) - sum of others``, at most ``most``: equation (5)."""
        wanted = int(others.sum()) + most
        grown = np.zeros(self.nodes, dtype=np.bool_)
        grown[x] = True
        work = flow_kernels.scratch(self.nodes, len(self.arcs.head))
        number = wanted if self.capacity.dtype == object else np.int64(wanted)
        state = flow_kernels.FlowState(self.capacity.copy(), others.copy(), grown)
        flow, _, _ = self.kernel(y, number, self.arcs, state, work)
        return max(int(flow) - (wanted - most), 0)
