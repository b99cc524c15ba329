"""Flows and lengths of links near the optimum of LP (3) without a linear program, for networks without symmetry.

Source: Shahrokhi and Matula, "The maximum concurrent flow problem", 1990; the rounds are on docs/methods/mcf.md.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...algorithms.epochs.insertion import Heap, drop_first, push_entry
from ...algorithms.graphs.network import edges_by
from ...core.budget import Budget, require_buildable
from ...core.kernel import kernel
from ...core.schedule import Floats
from .problem import Exchange

GAP = 0.01  #: Relative gap at which the search stops unless another one is asked for.
_DECREASE, _INCREASE = 0.7, 1.1  #: Factors of the temperature after a round.
_MOST_ROUNDS = 1000  #: Some minutes for 1,000 nodes of degree 4; small gaps may be out of reach.
_BLOCK = 2**18  #: Links times sources of one call of a kernel: some hundredths of a second.
_LEAST_STEP = 1e-12  #: Shorter steps are rounding errors.
_MOST_EXPONENT = 500.0  #: Of the exponential function, so that lengths of slow links and their sums are numbers.


@dataclass(frozen=True, eq=False)
class ApproximateFlow:
    """Flow of every source when it sends its weights, and lengths of links that bound what any flow attains."""

    flow: Floats  #: Shape (sources, links).
    lengths: Floats  #: Shape (links,).
    rounds: int  #: How often every source has moved a part of its flow; with 0 the flow is incomplete.

    def rate(self, exchange: Exchange) -> float:
        """Return the largest rate at which the flow fits the links and brings every point its share."""
        share, points = 1.0, exchange.points
        for row, weights in zip(self.flow, exchange.weights, strict=True):
            net = np.bincount(exchange.heads, row, points) - np.bincount(exchange.tails, row, points)
            share = min(share, float((net[weights > 0] / weights[weights > 0]).min()))
        return share / float((self.flow.sum(axis=0) / exchange.capacity).max())


def find_approximate_flow(exchange: Exchange, budget: Budget) -> ApproximateFlow:
    """Search until the flow takes longer than the lengths prove by no more than the budget's gap."""
    sources, links = len(exchange.sources), len(exchange.tails)
    require_buildable(sources * links, f"flows of {sources:,} ranks", 2e-7, 2**40, column_bytes=20)
    first, order = edges_by(exchange.tails, exchange.points)
    capacity, goal = exchange.capacity[order], GAP if budget.gap is None else budget.gap
    network = first, exchange.tails[order], exchange.heads[order], capacity, exchange.sources, exchange.weights
    flow, load = np.zeros((sources, links)), np.zeros(links)
    best, rounds = np.asarray(1 / capacity), 0

    def sum_blocks(run: Callable[..., float], *rest: Any) -> float | None:
        """Add up what a kernel returns for blocks of sources; None if the time is over."""
        subtotal, some = 0.0, max(1, _BLOCK // links)
        for begin in range(0, sources, some):
            if budget.is_exhausted:
                return None
            subtotal += run(begin, min(begin + some, sources), network, *rest)
        return subtotal

    low = (sum_blocks(_total_distance, best) or 0.0) / float(best @ capacity)
    high, temperature = np.inf, low
    while 0 < low < min(np.inf, high / (1 + goal)) and rounds < _MOST_ROUNDS:
        if sum_blocks(_move_flow, flow, load, temperature) is None:
            break
        rounds, load = rounds + 1, flow.sum(axis=0) / capacity
        high, prices = float(load.max()), np.exp((load - load.max()) / temperature)
        if (total := sum_blocks(_total_distance, prices / capacity)) is None:
            break
        mean, proved = float(prices @ load) / float(prices.sum()), total / float(prices.sum())
        if proved > low:
            low, best = proved, prices / capacity
        # Of the gap one part is due to the temperature, the other one to flow that is not on shortest paths yet.
        temperature *= _DECREASE if high - mean > mean - proved else _INCREASE
        budget.progress(f"round {rounds}: the flow takes {high / low - 1:.2%} longer than the bound")
    back, least = np.argsort(order), exchange.weights[exchange.weights > 0].min()
    farthest = low * float(best @ capacity) / least or np.inf  # a longer link is on no shortest path
    return ApproximateFlow(flow[:, back], np.minimum(best, farthest)[back], rounds)


@kernel
def _dijkstra(source: int, first: Any, heads: Any, lengths: Any) -> tuple[Any, Any, Any]:
    """Return shortest paths from a source: distances, last links, and the reached points from near to far."""
    points, links, reached = len(first) - 1, len(heads), 0
    far, link, order = np.full(points, np.inf), np.full(points, -1), np.empty(points, np.int64)
    heap = Heap(np.empty(links + 1), np.empty(links + 1, np.int64), np.empty(links + 1, np.int32))
    far[source] = 0.0
    size = push_entry(heap, 0, 0.0, source, 0)
    while size > 0:
        key, point = heap.key[0], heap.item[0]
        size = drop_first(heap, size)
        if key > far[point]:
            continue
        order[reached] = point
        reached += 1
        for e in range(first[point], first[point + 1]):
            through = key + lengths[e]
            if through < far[heads[e]]:
                far[heads[e]], link[heads[e]] = through, e
                size = push_entry(heap, size, through, heads[e], 0)
    return far, link, order[:reached]


@kernel
def _total_distance(begin: int, end: int, network: Any, lengths: Any) -> float:
    """Return the sum of weights times distances of some sources."""
    first, _, heads, _, sources, weights = network
    total = 0.0
    for i in range(begin, end):
        far, _, order = _dijkstra(sources[i], first, heads, lengths)
        for point in order:
            total += weights[i, point] * far[point]
    return total


@kernel
def _length(above: float, temperature: float, capacity: float) -> float:
    """Return the length of a link, which is finite for any load above the largest one."""
    return float(np.exp(min(above / temperature, _MOST_EXPONENT)) / capacity)


@kernel
def _move_flow(begin: int, end: int, network: Any, flow: Any, load: Any, temperature: float) -> float:
    """Let some sources move flow to their shortest paths; the first time all of it."""
    first, tails, heads, capacity, sources, weights = network
    top = load.max()
    lengths = np.exp((load - top) / temperature) / capacity
    for i in range(begin, end):
        change, need = -flow[i], weights[i].copy()
        some = change.any()
        _, link, order = _dijkstra(sources[i], first, heads, lengths)
        for point in order[:0:-1]:
            e = link[point]
            change[e] += need[point]
            need[tails[e]] += need[point]
        changes = np.flatnonzero(change)
        step, slope = 2.0 if some else 1.0, 1.0
        while some and slope > 0.0 and step > _LEAST_STEP:
            step, slope = step / 2.0, 0.0
            for e in changes:
                slope += _length(load[e] + step * change[e] / capacity[e] - top, temperature, capacity[e]) * change[e]
        if step > _LEAST_STEP:
            for e in changes:
                flow[i, e] += step * change[e]
                load[e] += step * change[e] / capacity[e]
                lengths[e] = _length(load[e] - top, temperature, capacity[e])
    return 0.0
