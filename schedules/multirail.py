"""Analytical model of multi-rail collectives: chunks pipelined through the dimensions of a fabric.

A reduce-scatter moves a chunk through the dimensions in some order; the stage in dimension d takes ``A_d + m (n_d -
1) / n_d / B_d`` for a chunk of m bytes and leaves m / n_d of it, where ``A_d`` is the latency of the dimension's
own algorithm: n - 1 links on a ring, 1 in a fully connected block, log2(n) through a switch (dissertation, table
3.1). An all-gather is the mirror image, an all-reduce is both. A dimension processes one chunk at a time, the first
or the smallest of its queue; ties are broken by arrival, then by the chunk's number. All NPUs behave alike, so one
is simulated. Sources: dissertation, sections 3.6.6 and 4.2.2; Rashidi et al., "Themis", ISCA 2022.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations

from ..core.collective import Collective, Demand
from ..core.errors import InputError
from ..core.fabric import Block, Dimension, WiredFabric


@dataclass(frozen=True)
class Pipeline:
    """Result of the model for a list of orders.

    Parameters
    ----------
    busy_s : tuple of Fraction
        Busy seconds of each dimension.
    starts_s : tuple of tuple of Fraction
        For each chunk, the start of each of its :func:`stages`.
    """

    completion_s: Fraction
    busy_s: tuple[Fraction, ...]
    starts_s: tuple[tuple[Fraction, ...], ...]


@dataclass(frozen=True)
class Stage:
    """One visit of a chunk to a dimension.

    Parameters
    ----------
    size_bytes : Fraction
        An NPU's part of the chunk before it is scattered, or after it is gathered.
    """

    dimension: int
    size_bytes: Fraction
    seconds: Fraction


def link_steps(dimension: Dimension) -> int:
    """Return the number of consecutive latencies of the dimension's own algorithm."""
    match dimension.block:
        case Block.RING:
            return dimension.size - 1
        case Block.FULLY_CONNECTED:
            return 1
        case Block.SWITCH:
            return (dimension.size - 1).bit_length()


def message_bytes(fabric: WiredFabric, demand: Demand, order: Sequence[int]) -> tuple[Fraction, ...]:
    """Return an NPU's sent bytes per dimension if all data has this order (dissertation, table 3.4)."""
    sent = [Fraction(0)] * len(fabric.dimensions)
    size = demand.size_bytes
    for d in order:
        n = fabric.sizes[d]
        sent[d] = demand.collective.passes * size * (n - 1) / n
        size /= n
    return tuple(sent)


def evaluate(fabric: WiredFabric, demand: Demand, orders: Sequence[Sequence[int]], queue: str) -> Pipeline:
    """Simulate the pipeline exactly.

    Parameters
    ----------
    demand : Demand
        An all-reduce, reduce-scatter or all-gather among all NPUs.
    orders : sequence of sequence of int
        For each of ``demand.chunks`` equal chunks, the dimensions of its reduce-scatter, counted from 0; reversed
        in an all-gather.
    queue : str
        ``fifo`` or ``scf`` (smallest chunk first).

    Raises
    ------
    InputError
        If some chunk has no order, or an order does not name every dimension once.
    """
    if queue not in ("fifo", "scf"):
        raise InputError(f"{queue!r} is wrong; expected 'fifo' or 'scf'", place="queue")
    if len(orders) != demand.chunks:
        raise InputError(f"{len(orders)} orders for {demand.chunks} chunks", place="orders")
    routes = [stages(fabric, demand, order, index) for index, order in enumerate(orders)]
    waiting: list[list[tuple[Fraction, int, int]]] = [[] for _ in fabric.dimensions]
    busy_s = [Fraction(0)] * len(fabric.dimensions)
    idle = [True] * len(fabric.dimensions)
    done = [0] * len(orders)
    starts: list[list[Fraction]] = [[] for _ in orders]
    running: list[tuple[Fraction, int, int]] = []  # end, dimension, chunk
    arrivals, now = 0, Fraction(0)
    arrived = list(range(len(orders)))
    while True:
        for chunk in arrived:
            stage = routes[chunk][done[chunk]]
            key = stage.size_bytes if queue == "scf" else Fraction(0)
            heapq.heappush(waiting[stage.dimension], (key, arrivals, chunk))
            arrivals += 1
        for d, line in enumerate(waiting):
            if idle[d] and line:
                _, _, chunk = heapq.heappop(line)
                seconds = routes[chunk][done[chunk]].seconds
                busy_s[d] += seconds
                starts[chunk].append(now)
                idle[d] = False
                heapq.heappush(running, (now + seconds, d, chunk))
        if not running:
            return Pipeline(now, tuple(busy_s), tuple(map(tuple, starts)))
        arrived = []
        now = running[0][0]
        while running and running[0][0] == now:
            _, d, chunk = heapq.heappop(running)
            idle[d] = True
            done[chunk] += 1
            if done[chunk] < len(routes[chunk]):
                arrived.append(chunk)


def stages(fabric: WiredFabric, demand: Demand, order: Sequence[int], index: int = 0) -> list[Stage]:
    """List the stages of a chunk: those of its reduce-scatter, then those of its all-gather.

    Raises
    ------
    InputError
        If the order does not name every dimension once, or the collective is another one.
    """
    if sorted(order) != list(range(len(fabric.dimensions))):
        raise InputError(f"{list(order)} does not name every dimension once", place=f"orders[{index}]")
    scatter: list[Stage] = []
    size = demand.size_bytes / demand.chunks
    for d in order:
        n = fabric.sizes[d]
        latency = link_steps(fabric.dimensions[d]) * fabric.latency_s[d]
        scatter.append(Stage(d, size, latency + size * (n - 1) / n / fabric.bandwidth_Bps[d]))
        size /= n
    kind = demand.collective
    if kind not in (Collective.ALL_REDUCE, Collective.REDUCE_SCATTER, Collective.ALL_GATHER):
        raise InputError(f"{kind.name} is no multi-rail collective", place="collective.kind")
    return scatter * kind.sums + scatter[::-1] * kind.copies


def weighted_bound_s(fabric: WiredFabric, demand: Demand, weights: Sequence[Fraction]) -> Fraction:
    """Bound the completion of any orders by a weighted average of the dimensions' times.

    The weights are non-negative and sum to at most 1. The busiest dimension works at least as long as any weighted
    average of all, and that is at least the average of the best order.
    """
    if min(weights) < 0 or sum(weights) > 1:
        raise InputError("expected weights of at least 0 that sum to at most 1", place="weights")
    dimensions = range(len(fabric.dimensions))
    latency = sum(
        (
            w * demand.collective.passes * demand.chunks * link_steps(fabric.dimensions[d]) * fabric.latency_s[d]
            for d, w in enumerate(weights)
        ),
        Fraction(0),
    )
    return latency + min(
        sum(
            (
                weights[d] * sent / fabric.bandwidth_Bps[d]
                for d, sent in enumerate(message_bytes(fabric, demand, order))
            ),
            Fraction(0),
        )
        for order in permutations(dimensions)
    )
