"""Exact maximum flows over links that may be parallel, for the checks of what linear programs say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ..common import maxflow
from ..common.digraph import Digraph, exact_array
from ..common.maxflow import RootedFlow
from ..common.ratio_cuts import Unreachable, worst_cut


@dataclass(frozen=True)
class MaxFlow:
    """A maximum flow.

    Parameters
    ----------
    value : int
        How much arrives.
    flow : tuple of int
        On every arc.
    source_side : frozenset of int
        Nodes on the source's side of a minimum cut.
    """

    value: int
    flow: tuple[int, ...]
    source_side: frozenset[int]


def max_flow(
    nodes: int, tail: Sequence[int], head: Sequence[int], capacity: Sequence[int], source: int, sink: int
) -> MaxFlow:
    """Find a maximum flow; parallel arcs are filled one after the other."""
    graph = _graph(nodes, tail, head, capacity)
    found = maxflow.max_flow(graph, source, sink)
    left = dict(zip(zip(graph.tail.tolist(), graph.head.tolist(), strict=True), found.on_edge.tolist(), strict=True))
    flow: list[int] = []
    for a, b, c in zip(tail, head, capacity, strict=True):
        flow.append(min(int(left.get((a, b), 0)), c))
        if flow[-1]:
            left[a, b] -= flow[-1]
    return MaxFlow(found.value, tuple(flow), frozenset(np.flatnonzero(found.source_side).tolist()))


def feasible(
    nodes: int, tail: Sequence[int], head: Sequence[int], capacity: Sequence[int], supply: Sequence[int]
) -> bool:
    """Whether every node with a supply can receive all supplies over the links, each sink for itself (theorem 1).

    Parameters
    ----------
    nodes : int
        Number of nodes.
    tail, head, capacity : sequence of int
        Arcs.
    supply : sequence of int
        What every rank sends, by node; negative for nodes that need nothing, such as switches.
    """
    return violated_cut(nodes, tail, head, capacity, supply) is None


def violated_cut(
    nodes: int, tail: Sequence[int], head: Sequence[int], capacity: Sequence[int], supply: Sequence[int]
) -> frozenset[int] | None:
    """Give a set of nodes whose supplies exceed the capacity out of it to a sink outside, if there is one."""
    given = np.array(supply)
    demand = exact_array(max(amount, 0) for amount in supply)
    violation = RootedFlow(_graph(nodes, tail, head, capacity), demand, np.flatnonzero(given >= 0)).violation()
    return None if violation is None else frozenset(np.flatnonzero(~violation.side).tolist())


def largest_rate(
    nodes: int, tail: Sequence[int], head: Sequence[int], capacity: Sequence[int], supply: Sequence[int]
) -> Fraction:
    """Find the largest multiple of the supplies that every sink can receive.

    Parameters
    ----------
    nodes, tail, head, capacity, supply
        As of :func:`feasible`; some supply is positive, and its node has other nodes to reach.

    Returns
    -------
    Fraction
        0 if no arc leads to nodes that must receive something.
    """
    given = np.array(supply)
    try:
        cut = worst_cut(_graph(nodes, tail, head, capacity), np.maximum(given, 0), np.flatnonzero(given >= 0))
    except Unreachable:
        return Fraction(0)
    return 1 / cut.ratio


def _graph(nodes: int, tail: Sequence[int], head: Sequence[int], capacity: Sequence[int]) -> Digraph:
    tails, heads = (np.array(list(end), dtype=np.int64) for end in (tail, head))
    return Digraph.merged(nodes, tails, heads, exact_array(capacity))
