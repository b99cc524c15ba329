"""Exact maximum flows from weighted roots to every sink, minimum cuts, and worst cut ratios.

A demand d(v) at every node is feasible if every sink can receive ``D = sum d`` when node v sends d(v): by the
theorem of Edmonds there are then d(v) spanning trees from every v that together load no edge beyond its capacity
(ForestColl, theorems 1, 5 and 10). It is infeasible exactly if the capacity into some set of nodes T that contains
a sink is less than the demand outside of it. Newton's method on such violated cuts gives the worst ratio of demand
outside of a set to capacity into it, exactly and with the set that proves it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ...core.errors import CwbError
from ...core.schedule import Bools, Ints
from . import flow_kernels
from .network import INT64_SAFE, Exact, Network, distinct, exact_array, kernel_for


@dataclass(frozen=True, eq=False)
class ViolatedCut:
    """Set of nodes whose incoming capacity is less than the demand outside."""

    sink: int  #: a sink in the set
    side: Bools  #: (nodes,) True for nodes of the set
    lacking: int  #: demand outside of the set minus capacity into it


class RootedFlow:
    """Successive tests that every sink can receive all demand, fast if ``sinks`` are in an order of neighbours."""

    def __init__(self, graph: Network, demand: Exact, sinks: Ints) -> None:
        self.graph, self.sinks = graph, sinks
        self.wanted = int(sum(demand.tolist()))
        exact = np.int64 if graph.total + self.wanted < INT64_SAFE else object
        self._kernel = kernel_for(flow_kernels.rooted_pass, np.dtype(exact))
        self.arcs, arc_of = arcs_of(graph)
        self.capacity: Exact = np.zeros(len(self.arcs.head), dtype=exact)
        self.arc_of_edge = arc_of
        self.capacity[arc_of] = graph.capacity
        self.demand: Exact = demand.astype(exact)
        self._work = flow_kernels.scratch(graph.nodes, len(self.arcs.head))
        self._side = np.zeros(graph.nodes, dtype=np.bool_)
        self.restart()

    def restart(self, position: int = 0) -> None:
        """Restart the tests at a sink; those before it have passed."""
        self.position = position
        self._grown = np.zeros(self.graph.nodes, dtype=np.bool_)
        self._grown[self.sinks[:position]] = True

    def ask(self, capacity: Exact, demand: Exact) -> None:
        """Restart with smaller or equal capacities of the edges and demand."""
        self.capacity[self.arc_of_edge] = capacity
        self.demand[:] = demand
        self.wanted = int(sum(demand.tolist()))
        self.restart()

    def change(self, edges: Ints | int, amount: Any) -> None:
        """Add to the capacities of edges of the graph."""
        self.capacity[self.arc_of_edge[edges]] += amount

    def violation(self) -> ViolatedCut | None:
        """Find the next sink that cannot receive all demand; None if there is none.

        The next call tests the same sink first. Sinks that have passed stay passed as long as no change in between
        makes a set worse than it has been; that holds for Newton steps and for taking back a part of a split.
        """
        state = flow_kernels.FlowState(self.capacity.copy(), self.demand.copy(), self._grown)
        wanted = self.wanted if self.capacity.dtype == object else np.int64(self.wanted)
        self.position, lacking = self._kernel(
            self.position, self.sinks, wanted, self.arcs, state, self.capacity, self.demand, self._work, self._side
        )
        if self.position == len(self.sinks):
            return None
        return ViolatedCut(int(self.sinks[self.position]), self._side.copy(), int(lacking))


def arcs_of(graph: Network) -> tuple[flow_kernels.Arcs, Ints]:
    """Build the residual network; return its arcs, and the arc of every edge of the graph."""
    n = graph.nodes
    forth, back = graph.tail * n + graph.head, graph.head * n + graph.tail
    keys = distinct(np.concatenate([forth, back]))
    tail, head = keys // n, keys % n
    first = np.searchsorted(tail, np.arange(n + 1)).astype(np.int64)
    mate = np.searchsorted(keys, head * n + tail).astype(np.int64)
    return flow_kernels.Arcs(first, head, mate), np.searchsorted(keys, forth).astype(np.int64)


def near_order(graph: Network, compute: Bools | None = None) -> Ints:
    """Return nodes, or the compute nodes, in breadth-first order, so that consecutive ones are close."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order

    n = graph.nodes
    matrix = csr_array((np.ones(len(graph)), (graph.tail, graph.head)), shape=(n, n))
    start = 0 if compute is None else int(np.flatnonzero(compute)[0])
    order = breadth_first_order(matrix, start, directed=False, return_predecessors=False).astype(np.int64)
    missing = np.setdiff1d(np.arange(n), order)
    order = np.concatenate([order, missing])
    return order if compute is None else order[compute[order]]


@dataclass(frozen=True, eq=False)
class MaximumFlow:
    """Maximum flow from one node to another."""

    value: int  #: amount of flow that reaches the sink
    on_edge: Exact  #: (edges,) flow on every edge of the graph
    source_side: Bools  #: (nodes,) the nodes from which no more can reach the sink: the source's side of a minimum cut


def max_flow(graph: Network, source: int, sink: int) -> MaximumFlow:
    """Find a maximum flow from one node to another."""
    arcs, arc_of = arcs_of(graph)
    exact = np.dtype(np.int64 if graph.total < INT64_SAFE else object)
    capacity: Exact = np.zeros(len(arcs.head), dtype=exact)
    capacity[arc_of] = graph.capacity
    rest, supply = capacity.copy(), np.zeros(graph.nodes, dtype=exact)
    grown = np.zeros(graph.nodes, dtype=np.bool_)
    grown[source] = True
    work = flow_kernels.scratch(graph.nodes, len(arcs.head))
    wanted = graph.total + 1
    value, _, _ = kernel_for(flow_kernels.flow_into, exact)(
        sink, wanted if exact.kind == "O" else np.int64(wanted), arcs, flow_kernels.FlowState(rest, supply, grown), work
    )
    work.level[sink] = 0
    return MaximumFlow(int(value), np.maximum((capacity - rest)[arc_of], 0), work.level < 0)


class Unreachable(CwbError):
    """Error: no capacity enters a set of nodes, ``side``, that must receive something."""

    def __init__(self, side: Bools) -> None:
        super().__init__("no edge enters a set of nodes that must receive something")
        self.side = side


@dataclass(frozen=True, eq=False)
class WorstCut:
    """Set of nodes with the largest ratio of demand outside to capacity into it."""

    ratio: Fraction  #: demand outside of the set over capacity into it
    side: Bools | None  #: (nodes,) The set; None if there is no demand.
    steps: int  #: number of steps of Newton's method


def worst_cut(graph: Network, demand: Ints, sinks: Ints) -> WorstCut:
    """Maximize ``demand outside of T / capacity into T`` over sets T with a sink.

    This is (1) and theorem 1 of ForestColl. Start from a single sink's ratio p/q. With capacities ``p b_e`` and demands
    ``q d(v)`` a set with a larger ratio is a violated cut of a maximum flow; its ratio is the next p/q. Since p/q only
    grows, sinks that have passed need not be tested again. Raise Unreachable if no capacity enters a set that must
    receive something.
    """
    entering, total = graph.entering(), int(demand.sum())
    start = max((int(s) for s in sinks), key=lambda s: _ratio(total - int(demand[s]), int(entering[s]), graph, s))
    ratio = _ratio(total - int(demand[start]), int(entering[start]), graph, start)
    if ratio == 0:
        return WorstCut(ratio, None, 0)

    def flow_at(ratio: Fraction) -> RootedFlow:
        scaled = exact_array([ratio.denominator * int(d) for d in demand])
        return RootedFlow(graph.scale_capacity(ratio.numerator), scaled, sinks)

    def ratio_of(side: Bools) -> Fraction:
        return _ratio(int(demand[~side].sum()), graph.into(side), graph, side)

    ratio, side, steps = _newton(flow_at, ratio_of, ratio)
    return WorstCut(ratio, _single(graph, start) if side is None else side, steps)


def _newton(
    flow_at: Callable[[Fraction], RootedFlow], needed: Callable[[Bools], Fraction], start: Fraction
) -> tuple[Fraction, Bools | None, int]:
    """Raise a value to what the violated set needs, until none is; return it, the last set, and the steps."""
    value, position, steps = start, 0, 0
    side: Bools | None = None
    while True:
        flow = flow_at(value)
        flow.restart(position)
        violation = flow.violation()
        if violation is None:
            return value, side, steps
        side, steps, position = violation.side, steps + 1, flow.position
        value = needed(side)


def smallest_step(
    capacities: Callable[[Fraction], Network],
    needed: Callable[[Bools], Fraction],
    demand: Exact,
    sinks: Ints,
    start: Fraction,
) -> tuple[Fraction, Bools | None]:
    """Find the smallest U from ``start`` on at which every sink can receive all demand.

    The network is ``capacities(U)``, which grows with U; ``needed`` is the smallest U at which a set of nodes has
    enough capacity into it. Return U, and the last set that was not served at any smaller one, None if ``start`` is
    enough.
    """
    U, side, _ = _newton(lambda U: RootedFlow(capacities(U), demand, sinks), needed, start)
    return U, side


def _ratio(outside: int, entering: int, graph: Network, side: Bools | int) -> Fraction:
    if outside and not entering:
        raise Unreachable(side if not isinstance(side, int) else _single(graph, side))
    return Fraction(outside, entering) if outside else Fraction(0)


def _single(graph: Network, node: int) -> Bools:
    side = np.zeros(graph.nodes, dtype=np.bool_)
    side[node] = True
    return side
