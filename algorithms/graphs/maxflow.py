"""Exact maximum flows from weighted roots to every sink, minimum cuts, and worst cut ratios.

A demand d(v) at every node is feasible if every sink can receive ``D = sum d`` when node v sends d(v) (ForestColl,
theorems 1, 5 and 10; docs/methods/forestcoll.md).

The inner loops are compiled; with object arrays they run uncompiled, on Python's unbounded integers. Flow starts at
nodes that are ``grown`` (without limit) and at all others up to ``supply``, and ends at one sink. The search runs
backwards from the sink: where the sink is close to grown nodes, it visits only a few nodes.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from ...core.errors import CwbError
from ...core.kernel import kernel
from ...core.schedule import Bools, Ints
from .network import INT64_SAFE, Exact, Network, distinct, exact_sum, kernel_for, mask_of, scale_exactly


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
        self.total = exact_sum(demand)
        exact = np.int64 if graph.total + self.total < INT64_SAFE else object
        self._kernel = kernel_for(rooted_pass, np.dtype(exact))
        self.arcs, arc_of = arcs_of(graph)
        self.capacity: Exact = np.zeros(len(self.arcs.head), dtype=exact)
        self.arc_of_edge = arc_of
        self.capacity[arc_of] = graph.capacity
        self.demand: Exact = demand.astype(exact)
        self._work = scratch(graph.nodes, len(self.arcs.head))
        self._side = np.zeros(graph.nodes, dtype=np.bool_)
        self.restart()

    def restart(self, position: int = 0) -> None:
        """Restart the tests at a sink; those before it have passed."""
        self.position = position
        self._sources = mask_of(self.graph.nodes, self.sinks[:position])

    def ask(self, capacity: Exact, demand: Exact) -> None:
        """Restart with smaller or equal capacities of the edges and demand."""
        self.capacity[self.arc_of_edge] = capacity
        self.demand[:] = demand
        self.total = exact_sum(demand)
        self.restart()

    def change(self, edges: Ints | int, amount: Any) -> None:
        """Add to the capacities of edges of the graph."""
        self.capacity[self.arc_of_edge[edges]] += amount

    def violation(self) -> ViolatedCut | None:
        """Find the next sink that cannot receive all demand; None if there is none.

        The next call tests the same sink first. Sinks that have passed stay passed as long as no change in between
        makes a set worse than it has been; that holds for Newton steps and for taking back a part of a split.
        """
        state = FlowState(self.capacity.copy(), self.demand.copy(), self._sources)
        total = self.total if self.capacity.dtype == object else np.int64(self.total)
        self.position, lacking = self._kernel(
            self.position, self.sinks, total, self.arcs, state, self.capacity, self.demand, self._work, self._side
        )
        if self.position == len(self.sinks):
            return None
        return ViolatedCut(int(self.sinks[self.position]), self._side.copy(), int(lacking))


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
    sources = mask_of(graph.nodes, source)
    work = scratch(graph.nodes, len(arcs.head))
    limit = graph.total + 1
    value, _, _ = kernel_for(flow_into, exact)(
        sink, limit if exact.kind == "O" else np.int64(limit), arcs, FlowState(rest, supply, sources), work
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

    This is (1) and theorem 1 of ForestColl, by Newton steps on cuts (docs/methods/forestcoll.md). Raise Unreachable if
    no capacity enters a set that must receive something.
    """
    entering, total = graph.entering(), int(demand.sum())
    start = max((int(s) for s in sinks), key=lambda s: _ratio(total - int(demand[s]), int(entering[s]), graph, s))
    ratio = _ratio(total - int(demand[start]), int(entering[start]), graph, start)
    if ratio == 0:
        return WorstCut(ratio, None, 0)

    def flow_at(ratio: Fraction) -> RootedFlow:
        wider = replace(graph, capacity=scale_exactly(graph.capacity, ratio.numerator))
        return RootedFlow(wider, scale_exactly(demand, ratio.denominator), sinks)

    ratio, side, steps = _newton(
        flow_at, lambda side: _ratio(int(demand[~side].sum()), graph.into(side), graph, side), ratio
    )
    return WorstCut(ratio, mask_of(graph.nodes, start) if side is None else side, steps)


def _newton(
    flow_at: Callable[[Fraction], RootedFlow], need: Callable[[Bools], Fraction], start: Fraction
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
        value = need(side)


def smallest_step(
    capacities: Callable[[Fraction], Network],
    need: Callable[[Bools], Fraction],
    demand: Exact,
    sinks: Ints,
    start: Fraction,
) -> tuple[Fraction, Bools | None]:
    """Find the smallest U from ``start`` on at which every sink can receive all demand.

    The network is ``capacities(U)``, which grows with U; ``need`` is the smallest U at which a set of nodes has
    enough capacity into it. Return U, and the last set that was not served before, None if ``start`` is enough.
    """
    U, side, _ = _newton(lambda U: RootedFlow(capacities(U), demand, sinks), need, start)
    return U, side


def _ratio(outside: int, entering: int, graph: Network, side: Bools | int) -> Fraction:
    if outside and not entering:
        raise Unreachable(side if not isinstance(side, int) else mask_of(graph.nodes, side))
    return Fraction(outside, entering) if outside else Fraction(0)


class Arcs(NamedTuple):
    """Two arcs for every pair of neighbours, each other's ``mate``; those of node x begin at ``first[x]``."""

    first: Any
    head: Any
    mate: Any


class FlowState(NamedTuple):
    """Residual capacities of arcs, and where flow may start: without limit, or up to ``supply``."""

    cap: Any
    supply: Any
    sources: Any


class Scratch(NamedTuple):
    """Working arrays of the search; ``touched`` are the arcs whose capacity has changed."""

    level: Any
    queue: Any
    cursor: Any
    path: Any
    touched: Any


def arcs_of(graph: Network) -> tuple[Arcs, Ints]:
    """Build the residual network; return its arcs, and the arc of every edge of the graph."""
    n = graph.nodes
    forth, back = graph.tail * n + graph.head, graph.head * n + graph.tail
    keys = distinct(np.concatenate([forth, back]))
    tail, head = keys // n, keys % n
    first = np.searchsorted(tail, np.arange(n + 1)).astype(np.int64)
    mate = np.searchsorted(keys, head * n + tail).astype(np.int64)
    return Arcs(first, head, mate), np.searchsorted(keys, forth).astype(np.int64)


@kernel
def search(sink: int, beyond: int, arcs: Arcs, state: FlowState, level: Any, queue: Any) -> tuple[int, int]:
    """Label nodes by distance to the sink, up to some levels ``beyond`` the first one where flow can start.

    Return this first level, -1 if there is none, and the number of labelled nodes.
    """
    first, head, mate = arcs
    cap, supply, sources = state
    level[sink] = 0
    queue[0] = sink
    size, at, nearest = 1, 0, -1
    while at < size:
        y = queue[at]
        at += 1
        if nearest >= 0 and level[y] >= nearest + beyond:
            break
        for arc in range(first[y], first[y + 1]):
            x = head[arc]
            if level[x] < 0 and cap[mate[arc]] > 0:
                level[x] = level[y] + 1
                queue[size] = x
                size += 1
                if nearest < 0 and (sources[x] or supply[x] > 0):
                    nearest = level[x]
    return nearest, size


@kernel
def push(
    end: int, limit: Any, depth: int, mate: Any, state: FlowState, path: Any, touched: Any, count: int
) -> tuple[Any, int, int]:
    """Send the most along a path to the sink; return it, the nearest saturated arc, and the ``touched`` arcs.

    If no arc is saturated, ``depth`` is returned for it.
    """
    cap, supply, sources = state
    amount = limit
    if not sources[end]:
        amount = min(amount, supply[end])
    for i in range(depth):
        amount = min(amount, cap[mate[path[i]]])
    if not sources[end]:
        supply[end] -= amount
    if count + depth > len(touched):
        count = -1
    full = depth
    for i in range(depth - 1, -1, -1):
        arc = path[i]
        cap[mate[arc]] -= amount
        cap[arc] += amount
        if cap[mate[arc]] <= 0:
            full = i
        if count >= 0:
            touched[count] = arc
            count += 1
    return amount, full, count


@kernel
def augment(sink: int, limit: Any, arcs: Arcs, state: FlowState, work: Scratch, count: int) -> tuple[Any, int]:
    """Send a blocking flow along the labels, up to ``limit``; return it, and the ``touched`` arcs, -1 if too many."""
    first, head, mate = arcs
    cap, supply, sources = state
    level, _, cursor, path, touched = work
    flow = limit - limit
    at, y = 0, sink
    while flow < limit:
        if at > 0 and (sources[y] or supply[y] > 0):
            depth = at
            amount, at, count = push(y, limit - flow, depth, mate, state, path, touched, count)
            flow += amount
            if at == depth:
                continue
        else:
            arc = cursor[y]
            while arc < first[y + 1] and not (level[head[arc]] == at + 1 and cap[mate[arc]] > 0):
                arc += 1
            cursor[y] = arc
            if arc < first[y + 1]:
                path[at] = arc
                at += 1
                y = head[arc]
                continue
            if at == 0:
                break
            level[y] = -2
            at -= 1
        y = sink if at == 0 else head[path[at - 1]]
        cursor[y] += 1
    return flow, count


@kernel
def flow_into(sink: int, limit: Any, arcs: Arcs, state: FlowState, work: Scratch) -> tuple[Any, int, int]:
    """Compute a maximum flow into a sink, at most ``limit``.

    ``cap`` and ``supply`` are left in their state after the flow; ``level`` is at least 0 exactly on the nodes of
    the last search: if less than ``limit`` is returned, they are the sink's side of a minimum cut. Return the
    flow; the number of nodes in ``queue`` that the last search labelled; and the number of ``touched`` arcs, -1 if
    there were too many to remember.
    """
    level, queue, cursor, _, _ = work
    flow = limit - limit
    if not state.sources[sink]:
        amount = min(state.supply[sink], limit)
        state.supply[sink] -= amount
        flow += amount
    count, size, beyond = 0, 0, 0
    while flow < limit:
        depth, size = search(sink, beyond, arcs, state, level, queue)
        if depth < 0:
            break
        for i in range(size):
            cursor[queue[i]] = arcs.first[queue[i]]
        more, count = augment(sink, limit - flow, arcs, state, work, count)
        flow += more
        beyond = 2 * beyond + 1  # few searches, also where flow comes from many distances
        for i in range(size):
            level[queue[i]] = -1
        size = 0
    return flow, size, count


@kernel
def rooted_pass(
    at: int, sinks: Any, limit: Any, arcs: Arcs, state: FlowState, capacity: Any, demand: Any, work: Scratch, side: Any
) -> tuple[int, Any]:
    """Test, from ``sinks[at]`` on, that every sink can receive ``limit``.

    A sink that can becomes a source for those after it (docs/methods/forestcoll.md). ``capacity`` and ``demand`` are
    the values of ``cap`` and ``supply`` before any flow. Return the at of the first sink that cannot, or the number of
    sinks; and its shortfall. ``side`` is then its side of a minimum cut.
    """
    head, mate = arcs.head, arcs.mate
    cap, supply, sources = state
    level, queue, _, _, touched = work
    lacking = limit - limit
    while at < len(sinks):
        sink = sinks[at]
        flow, size, count = flow_into(sink, limit, arcs, state, work)
        if flow < limit:
            side[:] = False
            for i in range(size):
                side[queue[i]] = True
            side[sink] = True
        for i in range(size):
            level[queue[i]] = -1
        level[sink] = -1
        if count < 0:
            cap[:] = capacity
            supply[:] = demand
        else:
            for i in range(count):
                arc = touched[i]
                cap[arc] = capacity[arc]
                cap[mate[arc]] = capacity[mate[arc]]
                supply[head[arc]] = demand[head[arc]]
            supply[sink] = demand[sink]
        if flow < limit:
            lacking = limit - flow
            break
        sources[sink] = True
        at += 1
    return at, lacking


def scratch(nodes: int, arcs: int) -> Scratch:
    """Return working arrays of a network."""
    return Scratch(
        np.full(nodes, -1, dtype=np.int64),
        np.empty(nodes, dtype=np.int64),
        np.zeros(nodes, dtype=np.int64),
        np.empty(nodes + 1, dtype=np.int64),
        np.empty(max(arcs, 64) + nodes, dtype=np.int64),
    )
