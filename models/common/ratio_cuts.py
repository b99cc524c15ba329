"""The worst ratio of demand outside of a set to capacity into it, by Newton's method on violated cuts: exact, and with the set that proves it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ...core.errors import CwbError
from ...core.schedule import Bools, Ints
from .digraph import Digraph, Exact, exact_array
from .maxflow import RootedFlow


class Unreachable(CwbError):
    """Nothing enters a set of nodes that must receive something.

    Parameters
    ----------
    side : array of bool, shape (nodes,)
        The set.
    """

    def __init__(self, side: Bools) -> None:
        super().__init__("no edge enters a set of nodes that must receive something")
        self.side = side


@dataclass(frozen=True, eq=False)
class WorstCut:
    """The set that is served worst.

    Parameters
    ----------
    ratio : Fraction
        Demand outside of the set over capacity into it.
    side : array of bool or None, shape (nodes,)
        The set; None where there is no demand.
    steps : int
        Newton steps.
    """

    ratio: Fraction
    side: Bools | None
    steps: int


def worst_cut(graph: Digraph, demand: Ints, sinks: Ints) -> WorstCut:
    """Maximize ``demand outside of T / capacity into T`` over the sets T with a sink in them (ForestColl, equation (1) and theorem 1).

    Start from a single sink's ratio p/q. With capacities ``p b_e`` and demands ``q d(v)`` a set with a larger ratio is a violated
    cut of a maximum flow; its ratio is the next p/q, and only grows: sinks that have passed need not be tested again.

    Parameters
    ----------
    graph : Digraph
        The network.
    demand : array of int, shape (nodes,)
        What starts at every node.
    sinks : array of int
        Nodes that all of it must reach, neighbours close to one another.

    Raises
    ------
    Unreachable
        If no capacity enters a set that must receive something.
    """
    found = WorstCut(Fraction(0), None, 0)
    entering = graph.entering()
    total = int(demand.sum())
    start = max((int(s) for s in sinks), key=lambda s: _ratio(total - int(demand[s]), int(entering[s]), graph, s))
    ratio = _ratio(total - int(demand[start]), int(entering[start]), graph, start)
    if ratio == 0:
        return found
    side = _single(graph, start)
    position, steps = 0, 0
    while True:
        flow = _flow_at(graph, demand, sinks, ratio, position)
        violation = flow.violation()
        if violation is None:
            return WorstCut(ratio, side, steps)
        side, steps, position = violation.side, steps + 1, flow.position
        ratio = _ratio(int(demand[~side].sum()), graph.into(side), graph, side)


def smallest_step(
    capacities: Callable[[Fraction], Digraph],
    needed: Callable[[Bools], Fraction],
    demand: Exact,
    sinks: Ints,
    start: Fraction,
) -> tuple[Fraction, Bools | None]:
    """Find the smallest U from ``start`` on at which every sink can receive all demand in a network whose capacities grow with U.

    Parameters
    ----------
    capacities : callable
        The network at U.
    needed : callable
        The smallest U at which a set of nodes has enough capacity into it.
    demand : array of int, shape (nodes,)
        What starts at every node.
    sinks : array of int
        Nodes that all of it must reach.
    start : Fraction
        Where to begin, greater than 0.

    Returns
    -------
    tuple
        U; and the last set that was not served at any smaller one, None if ``start`` is enough.
    """
    U, position = start, 0
    side: Bools | None = None
    while True:
        flow = RootedFlow(capacities(U), demand, sinks)
        flow.resume(position)
        violation = flow.violation()
        if violation is None:
            return U, side
        side, position = violation.side, flow.position
        U = needed(side)


def _flow_at(graph: Digraph, demand: Ints, sinks: Ints, ratio: Fraction, position: int) -> RootedFlow:
    """The test of a ratio from a sink on."""
    scaled = exact_array([ratio.denominator * int(d) for d in demand])
    flow = RootedFlow(graph.scaled(ratio.numerator), scaled, sinks)
    flow.resume(position)
    return flow


def _ratio(outside: int, entering: int, graph: Digraph, side: Bools | int) -> Fraction:
    if outside and not entering:
        raise Unreachable(side if not isinstance(side, int) else _single(graph, side))
    return Fraction(outside, entering) if outside else Fraction(0)


def _single(graph: Digraph, node: int) -> Bools:
    side = np.zeros(graph.nodes, dtype=np.bool_)
    side[node] = True
    return side
