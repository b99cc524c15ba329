"""Multi-rail collectives: an analytical model of chunks pipelined through the dimensions of a fabric, and their sends.

Stages and latencies: dissertation, sections 3.6.6 and 4.2.2, table 3.1; queues: Rashidi et al., "Themis", ISCA 2022.

Orders of chunks are lowered to sends on links for everything that reads schedules. A fabric is expanded into links. In
a stage, the blocks of a chunk are gathered among the NPUs that differ in one coordinate, or scattered by the same sends
in reverse: n - 1 steps in a ring of more than three, with half of every block in either direction; direct sends between
all pairs at once in a fully connected block and in a ring of two or three; through a switch, recursive doubling if n is
a power of two, else direct sends. Dimensions process chunks in the order of the model. On a mesh, whose rows are
treated as rings, the wrap-around traffic of a ring returns through the row, over links that other sends use.
"""

import heapq
from collections.abc import Sequence
from fractions import Fraction
from itertools import count, permutations, takewhile
from math import prod
from typing import NamedTuple

import numpy as np

from ..core.answers import ChunkOrders
from ..core.collective import Collective, Demand
from ..core.errors import InputError
from ..core.fabric import Block, Dimension, WiredFabric
from ..core.grouping import group_by_key
from ..core.instance import Instance
from ..core.network_views import links_of, rings_of
from ..core.schedule import Ints, Sends, StepSchedule, offsets
from ..core.topology import Topology
from ..core.trees import TreeKind, chunks_of_kind
from .strict import reject_if


class Pipeline(NamedTuple):
    """Result of the model for a list of orders."""

    completion_s: Fraction
    busy_s: tuple[Fraction, ...]
    starts_s: tuple[tuple[Fraction, ...], ...]  #: For each chunk, the start of each of its :func:`stages`.


class Stage(NamedTuple):
    """One visit of a chunk to a dimension."""

    dimension: int
    size_bytes: Fraction  #: An NPU's part of the chunk before it is scattered, or after it is gathered.
    seconds: Fraction


def link_steps(dimension: Dimension) -> int:
    """Return the number of consecutive latencies of the dimension's own algorithm."""
    others = dimension.size - 1
    return {Block.RING: others, Block.FULLY_CONNECTED: 1, Block.SWITCH: others.bit_length()}[dimension.block]


def message_bytes(fabric: WiredFabric, demand: Demand, order: Sequence[int]) -> tuple[Fraction, ...]:
    """Return an NPU's sent bytes per dimension if all data has this order (dissertation, table 3.4)."""
    sizes = [Fraction(0)] * len(fabric.dimensions)
    size = demand.size_bytes
    for d in order:
        n = fabric.sizes[d]
        sizes[d] = demand.collective.passes * size * (n - 1) / n
        size /= n
    return tuple(sizes)


def evaluate(fabric: WiredFabric, demand: Demand, orders: Sequence[Sequence[int]], queue: str) -> Pipeline:
    """Simulate the pipeline of an all-reduce, reduce-scatter or all-gather among all NPUs exactly.

    There is an order for each of ``demand.chunks`` equal chunks: the dimensions of its reduce-scatter, counted from 0;
    reversed in an all-gather.
    """
    reject_if(queue not in ("fifo", "scf"), f"{queue!r} is wrong; expected 'fifo' or 'scf'", place="queue")
    reject_if(len(orders) != demand.chunks, f"{len(orders)} orders for {demand.chunks} chunks", place="orders")
    routes = [stages(fabric, demand, order, index) for index, order in enumerate(orders)]
    waiting: list[list[tuple[Fraction, int, int]]] = [[] for _ in fabric.dimensions]
    busy_s = [Fraction(0)] * len(fabric.dimensions)
    idle = [True] * len(fabric.dimensions)
    position = [0] * len(orders)
    starts: list[list[Fraction]] = [[] for _ in orders]
    running: list[tuple[Fraction, int, int]] = []  # end, dimension, chunk
    arrivals, now = 0, Fraction(0)
    arrived = list(range(len(orders)))
    while True:
        for chunk in arrived:
            stage = routes[chunk][position[chunk]]
            key = stage.size_bytes if queue == "scf" else Fraction(0)
            heapq.heappush(waiting[stage.dimension], (key, arrivals, chunk))
            arrivals += 1
        for d, line in enumerate(waiting):
            if idle[d] and line:
                _, _, chunk = heapq.heappop(line)
                seconds = routes[chunk][position[chunk]].seconds
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
            position[chunk] += 1
            if position[chunk] < len(routes[chunk]):
                arrived.append(chunk)


def stages(fabric: WiredFabric, demand: Demand, order: Sequence[int], index: int = 0) -> list[Stage]:
    """List the stages of a chunk: those of its reduce-scatter, then those of its all-gather."""
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
    rows = zip(weights, fabric.dimensions, fabric.latency_s, strict=True)
    latency = demand.collective.passes * demand.chunks * sum(w * link_steps(d) * late for w, d, late in rows)
    parts = [weight / rate for weight, rate in zip(weights, fabric.bandwidth_Bps, strict=True)]
    sizes = (message_bytes(fabric, demand, order) for order in permutations(range(len(parts))))
    return latency + min(Fraction(sum(a * b for a, b in zip(parts, each, strict=True))) for each in sizes)


MAX_SENDS = 5_000_000  #: More sends are not written.


class _Gather(NamedTuple):
    """Sends that gather the blocks of one chunk in a dimension: source, target, block and step of each."""

    source: Ints
    target: Ints
    block: Ints
    step: Ints

    @property
    def steps(self) -> int:
        return int(self.step.max()) + 1


_Row = tuple[_Gather, int, bool, list[Fraction]]  #: Sends of a stage, chunk, true if backwards, times of its steps.


def to_sends(instance: Instance, answer: ChunkOrders, most: int = MAX_SENDS) -> tuple[Instance, StepSchedule]:
    """Convert chunk orders, on a fabric or a mesh whose dimensions are treated as rings, to a schedule of sends.

    Return the instance with the links of the fabric, and the schedule: every chunk has one block per NPU, or two if
    there is a ring of more than three. An error if there would be more sends than ``most``.
    """
    fabric, demand = instance.network, instance.demand
    if mesh := fabric if isinstance(fabric, Topology) else None:
        fabric = rings_of(mesh) or fabric
    if not isinstance(fabric, WiredFabric) or demand is None:
        raise InputError("orders of chunks need a fabric with bandwidths and a collective", place="network")
    starts = evaluate(fabric, demand, answer.orders, answer.queue).starts_s
    halves = 2 if any(_is_ring(d) for d in fabric.dimensions) else 1
    total = demand.chunks * demand.collective.passes * fabric.npus * (fabric.npus - 1) * halves
    reject_if(total > most, f"{total:,} sends; expected at most {most:,}", place="chunks")
    case = instance if mesh else instance.with_changes(network=links_of(fabric))
    gathers: dict[tuple[int, frozenset[int]], _Gather] = {}
    rows: list[_Row] = []
    for chunk, order in enumerate(answer.orders):
        route = stages(fabric, demand, order)
        scatters = len(order) if demand.collective.sums else 0
        for k, stage in enumerate(route):
            earlier = frozenset(order[: k if k < scatters else len(route) - 1 - k])
            key = stage.dimension, earlier
            if key not in gathers:
                gathers[key] = _gather(fabric, *key, halves)
            steps = gathers[key].steps
            times = [starts[chunk][k] + stage.seconds * step / steps for step in range(steps)]
            rows.append((gathers[key], chunk, k < scatters, times))
    return case, _schedule(case, fabric, demand, rows, halves)


def _schedule(case: Instance, fabric: WiredFabric, demand: Demand, rows: list[_Row], halves: int) -> StepSchedule:
    topology = case.topology
    at = {time: step for step, time in enumerate(sorted({time for *_, times in rows for time in times}))}
    per_chunk = fabric.npus * halves
    columns: list[tuple[Ints, Ints, Ints, Ints, Ints]] = []
    for gather, chunk, backwards, times in rows:
        steps = np.array([at[time] for time in times], dtype=np.int64)
        source, target, step = gather.source, gather.target, gather.step
        if backwards:
            source, target, step = target, source, gather.steps - 1 - step
        columns.append((chunk * per_chunk + gather.block, source, target, np.full_like(step, backwards), steps[step]))
    block, source, target, reduce, step = (np.concatenate(parts) for parts in zip(*columns, strict=True))
    offset, links = _paths(topology, fabric.sizes, source, target)
    blocks, npus = demand.chunks * per_chunk, fabric.npus
    owner = np.arange(blocks) % per_chunk // halves
    copies, sums = demand.collective.copies, demand.collective.sums
    kind = TreeKind.BOTH if copies and sums else TreeKind.IN if sums else TreeKind.OUT
    chunks = chunks_of_kind(owner, npus, demand.size_bytes, kind)
    nodes = np.array(topology.rank_nodes, dtype=np.int64)
    sends = Sends(block, nodes[source], nodes[target], reduce.astype(np.bool_), offset, links)
    return StepSchedule(case.sha256, chunks, sends, step)


def _paths(topology: Topology, sizes: tuple[int, ...], source: Ints, target: Ints) -> tuple[Ints, Ints]:
    """Return the path between ranks: a link, two through a shared switch, or a mesh row's."""
    between = {ends: link for link, ends in enumerate(topology.link_ends)}
    onward = group_by_key(between)
    pairs, which = np.unique(np.stack([source, target]), axis=1, return_inverse=True)
    paths: list[list[int]] = []
    for one, other in pairs.T.tolist():
        a, b = topology.rank_nodes[one], topology.rank_nodes[other]
        if (a, b) in between:
            paths.append([between[a, b]])
        elif not topology.switches:
            stride = max(s for s in (prod(sizes[:d]) for d in range(len(sizes))) if s <= abs(b - a))
            row = range(a, b, stride if a < b else -stride)
            paths.append([between[here, here + row.step] for here in row])
        else:
            via = next(node for node in onward[a] if (node, b) in between)
            paths.append([between[a, via], between[via, b]])
    hops = np.array([len(path) for path in paths], dtype=np.int64)[which]
    links = np.array([link for index in which.tolist() for link in paths[index]], dtype=np.int64)
    return offsets(hops), links


def _is_ring(dimension: Dimension) -> bool:
    return dimension.block is Block.RING and dimension.size > 3


def _gather(fabric: WiredFabric, d: int, earlier: frozenset[int], halves: int) -> _Gather:
    """Gather in dimension d after those in ``earlier``; block b belongs to NPU b, half h of it is ``2 b + h``."""
    sizes = fabric.sizes
    stride = [prod(sizes[:k]) for k in range(len(sizes))]
    numbers = np.arange(fabric.npus)
    place = [numbers // stride[k] % sizes[k] for k in range(len(sizes))]
    columns: list[tuple[Ints, Ints, Ints, Ints]] = []
    for sender, receiver, part, half, step in _moves(fabric.dimensions[d]):
        at = numbers[place[d] == sender]  # every NPU there sends the blocks of a part that are of its other coordinates
        blocks = numbers[place[d] == part]
        alike = np.ones((len(at), len(blocks)), dtype=np.bool_)
        for k in earlier:
            alike &= place[k][at][:, None] == place[k][blocks]
        who, what = np.nonzero(alike)
        for h in range(halves) if half is None else (half,):
            source, block = at[who], blocks[what] * halves + h
            columns.append((source, source + (receiver - sender) * stride[d], block, np.full(len(who), step)))
    return _Gather(*(np.concatenate(parts) for parts in zip(*columns, strict=True)))


_Move = tuple[int, int, int, int | None, int]  #: Sender, receiver, part, half (None for both) and step.


def _moves(dimension: Dimension) -> list[_Move]:
    n = dimension.size
    if _is_ring(dimension):
        onward: list[_Move] = [(i, (i + 1) % n, (i - s) % n, 0, s) for s in range(n - 1) for i in range(n)]
        return onward + [(i, (i - 1) % n, (i + s) % n, 1, s) for s in range(n - 1) for i in range(n)]
    if dimension.block is Block.SWITCH and n & (n - 1) == 0:
        rounds = list(takewhile(lambda s: 2**s < n, count()))
        return [(i, i ^ 2**s, p, None, s) for s in rounds for i in range(n) for p in range(n) if p >> s == i >> s]
    return [(i, j, i, None, 0) for i in range(n) for j in range(n) if i != j]
