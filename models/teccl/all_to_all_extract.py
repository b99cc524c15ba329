"""Exact flows on the original grid of epochs from a solver's floats, their check, and schedules."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from heapq import heappop, heappush
from math import ceil, lcm
from typing import Any

import numpy as np

from ...algorithms.epochs.problem import FAR
from ...algorithms.graphs.colour_refinement import Ints
from ...algorithms.paths.grid import farthest_first, grid_sides, grid_ways
from ...core.instance import Instance
from ...core.kernel import kernel
from ...core.schedule import Chunks, Schedule, Sends
from ...core.timing import Timing
from ...core.topology import Topology
from .all_to_all_problem import BlockProgram, Exchange

#: Denominators that are tried: a corner of the program has small ones.
DENOMINATORS = (2**7, 2**10, 2**13, 2**16, 2**20)

ROUNDING = 1e-7  #: Flows are rounded from floats that are off by at most this.
SAFE = 2**50  #: Sums of whole numbers up to this fit into 64 bits with room to spare.


@dataclass(frozen=True, eq=False)
class EpochFlows(BlockProgram):
    """Integer flows of every source on every link in every epoch, in multiples of 1 / ``scale``."""

    scale: int
    rate: Ints  #: Amount of a flow of the class in each epoch of the block; shape (classes of flows, blocks).

    def of_source(self, source: int) -> Ints:
        """Return the flows of one source on the original grid; shape (links, epochs)."""
        network, grid = self.reduced.network, self.grid
        flows = np.zeros((len(self.exchange.tails), grid.epochs), dtype=np.int64)
        lengths = np.diff(np.array(grid.starts))
        wide = np.repeat(self.rate[self.reduced.classes.flow[source]], lengths, axis=1)
        for offset in np.unique(network.offset[network.offset < grid.epochs]).tolist():
            arcs = np.flatnonzero(network.offset == offset)
            # Arcs of one offset are on different links, so that none is lost by adding all at once.
            flows[network.link[arcs], offset:] += wide[arcs, : grid.epochs - offset]
        return flows


@dataclass(frozen=True, eq=False)
class PartWays:
    """Ways of parts of what ranks have for each other."""

    scale: int  #: Parts of what one rank has for another.
    epochs: int
    source: Ints  #: (ways,) nodes between which a way leads, and the parts that take it.
    target: Ints
    units: Ints
    way: Ints  #: (hops,) number of the way, link and first epoch.
    link: Ints
    epoch: Ints


def grid_start(exchange: Exchange) -> PartWays | None:
    """Send everything along the dimensions of a grid of equal links, farthest first; None on other networks."""
    tail, head = np.array(exchange.tails), np.array(exchange.heads)
    nodes, delay = len(exchange.stores), exchange.delay[0]
    sides = grid_sides(tail, head, nodes) if all(exchange.stores) else None
    if sides is None or len(set(exchange.capacity)) > 1 or set(exchange.delay) != {delay}:
        return None
    scale, ranks = ceil(1 / exchange.capacity[0]), np.array(exchange.ranks)  # a link carries a part in an epoch
    source, target = ranks[np.argwhere(~np.eye(len(ranks), dtype=np.bool_)).repeat(scale, axis=0)].T
    place = np.sum(np.unravel_index(np.arange(nodes), sides[::-1]), axis=0)
    backwards = (place[source] + place[target] + np.arange(len(source)) % scale) % 2 == 1
    first, edges = grid_ways(tail, head, sides, source, target, backwards)
    start = np.zeros(len(edges), dtype=np.int64)
    epochs = farthest_first(np.arange(len(source)), first, edges, 1, delay, start)
    way = np.repeat(np.arange(len(source)), np.diff(first))
    return PartWays(scale, epochs, source, target, np.ones_like(source), way, edges, start)


def greedy_start(exchange: Exchange, is_over: Callable[[], bool]) -> PartWays | None:
    """Send every part so that it arrives first beside those before it, farthest pairs first.

    None for networks with nodes that do not store, or if it is over before all are sent.
    """
    if not all(exchange.stores):
        return None
    scale, network = ceil(1 / min(exchange.capacity)), exchange.network
    room, leaving = [int(capacity * scale) for capacity in exchange.capacity], network.leaving
    load: list[Counter[int]] = [Counter() for _ in room]
    later: list[dict[int, int]] = [{} for _ in room]  # an epoch in which a link is full, and one after it
    order = [(s, i) for s in exchange.ranks for i, t in enumerate(exchange.ranks) if s != t]
    order.sort(key=lambda pair: -network.distance_to[pair[1], pair[0]])
    hops: list[tuple[int, int, int]] = []
    epochs = 0
    for way, (source, index) in enumerate(pair for pair in order for _ in range(scale)):
        if is_over():
            return None
        target, rest = exchange.ranks[index], network.distance_to[index]
        arrival, via, heap = {source: 0}, dict[int, tuple[int, int]](), [(int(rest[source]), 0, source)]
        while (node := heap[0][2]) != target:
            _, ready, node = heappop(heap)
            for link in leaving[node] if ready == arrival[node] else ():
                start = ready
                while start in later[link]:
                    start = later[link][start]
                head, end = exchange.heads[link], start + exchange.delay[link]
                if end < arrival.get(head, FAR):
                    arrival[head], via[head] = end, (link, start)
                    heappush(heap, (end + int(rest[head]), end, head))
        epochs = max(epochs, arrival[target])
        while node != source:
            link, start = via[node]
            hops.append((way, link, start))
            load[link][start] += 1
            if load[link][start] == room[link]:
                later[link][start] = later[link].get(start + 1, start + 1)
            node = exchange.tails[link]
    ends = np.array([(source, exchange.ranks[index]) for source, index in order]).repeat(scale, axis=0).T
    ways, links, starts = np.array(hops).T
    return PartWays(scale, epochs, ends[0], ends[1], np.ones(ends.shape[1], dtype=np.int64), ways, links, starts)


def exact_flows(program: BlockProgram, values: Mapping[tuple[int, int], float]) -> EpochFlows | None:
    """Round a vertex of a restriction to fractions of small denominators that keep every rule of the grid.

    Return flows without a :func:`fault`; None if no denominator gives such flows.
    """
    exchange, grid, reduced = program.exchange, program.grid, program.reduced
    positive = {key: value for key, value in values.items() if value > ROUNDING}
    for limit in DENOMINATORS:
        near = {key: Fraction(value).limit_denominator(limit) for key, value in positive.items()}
        if any(abs(float(near[key]) - value) > ROUNDING for key, value in positive.items()):
            continue
        rates = {(c, b): amount / grid.length(b) for (c, b), amount in near.items() if amount}
        scale = lcm(*(rate.denominator for rate in rates.values()))
        if scale * len(exchange.ranks) ** 2 > SAFE:
            return None
        table = np.zeros((reduced.classes.sizes[0], grid.blocks), dtype=np.int64)
        for (c, b), rate in rates.items():
            table[c, b] = int(rate * scale)
        flows = EpochFlows(exchange, grid, reduced, scale, table)
        if fault(flows) is None:
            return flows
    return None


def fault(flows: EpochFlows) -> str | None:
    """Return the first violation by source, link and epoch, in integers on the original grid, or None."""
    exchange, epochs = flows.exchange, flows.grid.epochs
    load = np.zeros((len(exchange.tails), epochs), dtype=np.int64)
    for source, rank in enumerate(exchange.ranks):
        flow = flows.of_source(source)
        load += flow
        if flow.min(initial=0) < 0:
            return f"source {rank} sends less than nothing"
        for link, delay in enumerate(exchange.delay):
            if flow[link, max(0, epochs - delay + 1) :].any():
                return f"what source {rank} sends over link {link} comes too late"
        came, went = balances(exchange, epochs, flow)
        for node, stores in enumerate(exchange.stores):
            if node == rank:
                continue
            stock = np.cumsum(came[node] - went[node]) if stores else came[node] - went[node]
            if stock.min() < 0:
                return f"node {node} sends what it does not have of source {rank}"
            if node in exchange.ranks and stock[-1] < flows.scale:
                return f"rank {node} does not get all from {rank}"
    for link, capacity in enumerate(exchange.capacity):
        if int(load[link].max(initial=0)) * capacity.denominator > capacity.numerator * flows.scale:
            return f"link {link} carries more than it can"
    return None


def balances(exchange: Exchange, epochs: int, flow: Ints) -> tuple[Ints, Ints]:
    """Sum one source's usable arrivals and departures by node and epoch; shapes (nodes, epochs + 1)."""
    came = np.zeros((len(exchange.stores), epochs + 1), dtype=np.int64)
    went = np.zeros_like(came)
    for link, (tail, head, delay) in enumerate(zip(exchange.tails, exchange.heads, exchange.delay, strict=True)):
        if delay <= epochs:
            came[head, delay:] += flow[link, : epochs + 1 - delay]
        went[tail, :epochs] += flow[link]
    return came, went


def trace(flows: EpochFlows) -> Iterator[tuple[Ints, Ints, Ints, Ints, Ints]]:
    """Trace what every rank receives back to its source (reverse depth-first search, section 3).

    Yield for each source its paths in time: targets, amounts and numbers of hops; and the links of all paths, each from
    its target back, with the epochs in which they are entered. Data that reaches no destination is left out. The
    amounts of a pair sum to ``flows.scale``. What leaves a node in an epoch is taken from the latest arrivals before
    it: earlier arrivals can serve all later departures as well, so this never takes away data that another path needs.
    """
    exchange = flows.exchange
    tails, heads, delay = (np.array(column) for column in (exchange.tails, exchange.heads, exchange.delay))
    for source, rank in enumerate(exchange.ranks):
        flow = flows.of_source(source)
        link, start = np.nonzero(flow)
        arrival = start + delay[link]
        order = np.lexsort((start, link, arrival, heads[link]))
        link, start, arrival = link[order], start[order], arrival[order]
        first = np.searchsorted(heads[link], np.arange(len(exchange.stores) + 1))
        targets = np.array([node for node in exchange.ranks if node != rank], dtype=np.int64)
        target, amount, hops, entries = _follow_ways(
            rank, targets, flows.scale, flows.grid.epochs, (tails, link, start, arrival, first), flow[link, start]
        )
        yield target, amount, hops, link[entries], start[entries]


@kernel
def _follow_ways(source: int, targets: Any, demand: int, epochs: int, flows: Any, rest: Any) -> Any:
    """Trace paths backwards and subtract them from ``rest``; flows are sorted by head and arrival."""
    tails, link, start, arrival, first = flows
    most = len(rest) + len(targets)  # every way ends a flow or is the last one of its target
    target, amount, hops = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    entries = np.empty(4 * most, np.int64)
    before = np.arange(len(rest))  # no flow after it and up to each has something left
    ways = size = 0
    for node in targets:
        lack = demand
        while lack > 0:
            begin, at, epoch, part = size, node, epochs, lack
            while at != source:
                last, beyond = first[at], first[at + 1]
                while beyond - last > 1:
                    middle = (last + beyond) // 2
                    if arrival[middle] <= epoch:
                        last = middle
                    else:
                        beyond = middle
                entry = before[last]
                while rest[entry] == 0:
                    before[entry] = before[entry - 1]
                    entry = before[entry]
                before[last] = entry
                if size == len(entries):
                    longer = np.empty(2 * size, np.int64)
                    longer[:size] = entries
                    entries = longer
                entries[size] = entry
                size += 1
                part = min(part, rest[entry])
                at, epoch = tails[link[entry]], start[entry]
            for hop in range(begin, size):
                rest[entries[hop]] -= part
            target[ways], amount[ways], hops[ways] = node, part, size - begin
            ways += 1
            lack -= part
    return target[:ways], amount[:ways], hops[:ways], entries[:size]


def pieces(flows: EpochFlows | PartWays) -> int:
    """Count flows of one source over one link in one epoch: about the number of sends."""
    if isinstance(flows, PartWays):
        return len(flows.link)
    active = flows.rate > 0
    lengths = np.diff(np.array(flows.grid.starts))
    in_class = np.bincount(flows.reduced.classes.flow.ravel(), minlength=len(active))
    return int((active * lengths).sum(axis=1) @ in_class)


def ways_of(flows: EpochFlows | PartWays) -> PartWays:
    """Return the ways of all parts of flows, or ways as they are."""
    if isinstance(flows, PartWays):
        return flows
    ways = list(trace(flows))
    target, units, hops, link, epoch = (np.concatenate(column) for column in zip(*ways, strict=True))
    source = np.repeat(np.array(flows.exchange.ranks), [len(hops) for _, _, hops, _, _ in ways])
    way = np.repeat(np.arange(len(units)), hops)
    return PartWays(flows.scale, flows.grid.epochs, source, target, units, way, link, epoch)


def ways_schedule(instance: Instance, exchange: Exchange, ways: PartWays) -> Schedule:
    """Build a schedule of parts of chunks, with one send for each link and epoch of a part's way."""
    topology, timing, demand = instance.network, instance.timing, instance.demand
    assert isinstance(topology, Topology) and isinstance(timing, Timing) and demand is not None  # noqa: S101
    rank_of = {node: rank for rank, node in enumerate(topology.rank_nodes)}
    groups = tuple((rank_of[node],) for node in exchange.ranks)
    position = np.zeros(len(exchange.stores), dtype=np.int64)
    position[list(exchange.ranks)] = np.arange(len(groups))
    order = np.argsort(ways.epoch, kind="stable")
    links, starts = ways.link[order], ways.epoch[order]
    delay = np.array(exchange.delay, dtype=np.int64)
    tail, head = np.array(topology.link_ends, dtype=np.int64)[links].T
    part = demand.size_bytes / len(exchange.ranks) / Fraction(ways.scale)
    at = np.array([float(k * timing.epoch_s) for k in range(ways.epochs + 1)])
    sums = np.zeros(len(ways.units), np.bool_)
    return Schedule(
        instance.sha256,
        Chunks(ways.units, part, groups, position[ways.source], position[ways.target], sums),
        Sends(ways.way[order], tail, head, np.zeros(len(links), np.bool_), np.arange(len(links) + 1), links),
        at[starts],
        at[starts + delay[links]],
    )
