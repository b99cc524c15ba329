"""Splitting off a switch pair by pair, as much of each as can be (ForestColl, theorem 8 and algorithm 4)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....core.schedule import Ints
from ..digraph import Digraph, Exact, exact_array
from ..maxflow import RootedFlow
from .patterns import Pairs


def split_pairwise(
    graph: Digraph,
    demand: Exact,
    sinks: Ints,
    switch: int,
    preferred: Pairs | None,
    stop: Callable[[], bool] = lambda: False,
) -> tuple[Digraph, Pairs] | None:
    """Give all capacity through a switch to pairs of its neighbours; None if some stays, or if told to stop.

    The largest amount gamma that a pair can be given is found by giving it all, and taking back what then lacks: every
    set that would be served too little by this pair alone lacks exactly what must be taken back for it.

    Parameters
    ----------
    graph : Digraph
        A network in which every sink can receive all demand.
    demand : array of int, shape (nodes,)
        What starts at every node.
    sinks : array of int
        Nodes that all of it must reach.
    switch : int
        The node to split off.
    preferred : Pairs or None
        Pairs to try first, with the amounts wanted.
    stop : callable
        Whether to end early.

    Returns
    -------
    tuple of (Digraph, Pairs) or None
        The network without the switch, and what was split in which order.
    """
    into, out = np.flatnonzero(graph.head == switch), np.flatnonzero(graph.tail == switch)
    sources, targets = graph.tail[into].tolist(), graph.head[out].tolist()
    wide = _with_all_pairs(graph, sources, targets)
    edge = {key: index for index, key in enumerate((wide.tail * wide.nodes + wide.head).tolist())}
    flow = RootedFlow(wide, demand, sinks)
    flow.change(np.arange(len(wide)), -1)  # the 1 that kept empty edges
    left_in = dict(zip(sources, graph.capacity[into].tolist(), strict=True))
    left_out = dict(zip(targets, graph.capacity[out].tolist(), strict=True))
    done: list[tuple[int, int, int]] = []

    def split(u: int, t: int, amount: int) -> None:
        amount = min(amount, left_in[u], left_out[t])
        if amount <= 0 or stop():
            return
        e, f, g = edge[u * wide.nodes + switch], edge[switch * wide.nodes + t], edge.get(u * wide.nodes + t)
        given = amount
        _move(flow, e, f, g, amount)
        flow.restart()
        while given and (violation := flow.violation()) is not None:
            back = min(violation.lacking, given)
            _move(flow, e, f, g, -back)
            given -= back
        if given:
            done.append((u, t, given))
            left_in[u] -= given
            left_out[t] -= given

    if preferred is not None:
        for u, t, amount in zip(
            preferred.source.tolist(), preferred.target.tolist(), preferred.amount.tolist(), strict=True
        ):
            split(u, t, amount)
    for t in targets:
        for u in [*(u for u in sources if u != t), *(u for u in sources if u == t)]:
            split(u, t, left_out[t])
    if any(left_in.values()) or any(left_out.values()):
        return None
    after = wide.with_capacity(flow.capacity[flow.arc_of_edge].tolist())
    u, t, amount = zip(*done, strict=True)
    return after, Pairs(np.array(u), np.array(t), exact_array(amount))


def _with_all_pairs(graph: Digraph, sources: list[int], targets: list[int]) -> Digraph:
    """Add 1 to every edge, and an edge of 1 for every pair of ports that has none."""
    pairs = np.array([(u, t) for u in sources for t in targets if u != t], dtype=np.int64).reshape(-1, 2)
    keys = np.unique(np.concatenate([graph.tail * graph.nodes + graph.head, pairs[:, 0] * graph.nodes + pairs[:, 1]]))
    tail, head = keys // graph.nodes, keys % graph.nodes
    capacity = np.zeros(len(keys), dtype=graph.capacity.dtype)
    capacity[np.searchsorted(keys, graph.tail * graph.nodes + graph.head)] = graph.capacity
    return Digraph(graph.nodes, tail, head, exact_array([c + 1 for c in capacity.tolist()]))


def _move(flow: RootedFlow, e: int, f: int, g: int | None, amount: int) -> None:
    """Move capacity from the two edges of a switch to the edge past it; past it to itself, it is let go."""
    flow.change(e, -amount)
    flow.change(f, -amount)
    if g is not None:
        flow.change(g, amount)
