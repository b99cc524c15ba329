"""From a solver's floats to exact flows on the original grid of epochs, and their check there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

import numpy as np

from ...algorithms.graphs.colour_refinement import Ints
from ...core.instance import Instance
from ...core.schedule import Chunks, Schedule, Sends
from ...core.timing import Timing
from ...core.topology import Topology
from .all_to_all_problem import BlockGrid, Exchange, ReducedFlows

#: Denominators that are tried: a corner of the program has small ones.
DENOMINATORS = (2**7, 2**10, 2**13, 2**16, 2**20)

#: Flows are rounded from floats that are off by at most this.
ROUNDING = 1e-7

#: Sums of whole numbers up to this fit into 64 bits with room to spare.
SAFE = 2**50


#: What is left of the flows: for every node the links that enter it with the epochs in which something arrives.
Hop = tuple[int, int]


@dataclass(frozen=True, eq=False)
class EpochFlows:
    """Flows of every source on every link in every epoch, in whole numbers.

    Parameters
    ----------
    exchange : Exchange
        The problem.
    grid : BlockGrid
        The blocks that they are constant in.
    reduced : ReducedFlows
        The classes that they are equal in.
    scale : int
        So many are one unit.
    rate : array of int, shape (classes of flows, blocks)
        What every flow of a class carries in each epoch of a block.
    """

    exchange: Exchange
    grid: BlockGrid
    reduced: ReducedFlows
    scale: int
    rate: Ints

    def of_source(self, source: int) -> Ints:
        """Flows of one source on the original grid; shape (links, epochs)."""
        network, grid = self.reduced.network, self.grid
        flows = np.zeros((len(self.exchange.tails), grid.epochs), dtype=np.int64)
        lengths = np.diff(np.array(grid.starts))
        wide = np.repeat(self.rate[self.reduced.classes.flow[source]], lengths, axis=1)
        for offset in np.unique(network.offset[network.offset < grid.epochs]).tolist():
            chosen = np.flatnonzero(network.offset == offset)
            # Arcs of one offset are on different links, so that none is lost by adding all at once.
            flows[network.link[chosen], offset:] += wide[chosen, : grid.epochs - offset]
        return flows


def exact_flows(
    exchange: Exchange, grid: BlockGrid, reduced: ReducedFlows, values: Mapping[tuple[int, int], float]
) -> EpochFlows | None:
    """Flows in fractions of small denominators, rounded from a corner of the program, that keep every rule of the grid.

    Parameters
    ----------
    exchange, grid, reduced
        What the program was built of; the grid's side must be ``restrict``.
    values : mapping of (class, block) to float
        What flows carry in blocks.

    Returns
    -------
    EpochFlows or None
        Flows that :func:`fault` finds nothing wrong with; None if no denominator gives such flows.
    """
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
    """Check flows source by source, link by link and epoch by epoch; say what is wrong first, if anything is.

    This looks at the original grid alone: no blocks, no classes. All numbers are whole.
    """
    exchange, epochs = flows.exchange, flows.grid.epochs
    load = np.zeros((len(exchange.tails), epochs), dtype=np.int64)
    for source, rank in enumerate(exchange.ranks):
        sent = flows.of_source(source)
        if sent.min(initial=0) < 0:
            return f"source {rank} sends less than nothing"
        load += sent
        if (reason := _fault_of_source(exchange, epochs, flows.scale, rank, sent)) is not None:
            return reason
    for link, capacity in enumerate(exchange.capacity):
        if int(load[link].max(initial=0)) * capacity.denominator > capacity.numerator * flows.scale:
            return f"link {link} carries more than it can"
    return None


def _fault_of_source(exchange: Exchange, epochs: int, scale: int, rank: int, sent: Ints) -> str | None:
    came, went = balances(exchange, epochs, sent)
    late = [link for link, delay in enumerate(exchange.delay) if sent[link, max(0, epochs - delay + 1) :].any()]
    if late:
        return f"what source {rank} sends over link {late[0]} comes too late"
    for node, stores in enumerate(exchange.stores):
        if node == rank:
            continue
        held = np.cumsum(came[node] - went[node]) if stores else came[node] - went[node]
        if held.min() < 0:
            return f"node {node} sends what it does not have of source {rank}"
        if node in exchange.ranks and held[-1] < scale:
            return f"rank {node} does not get all from {rank}"
    return None


def balances(exchange: Exchange, epochs: int, sent: Ints) -> tuple[Ints, Ints]:
    """What comes to be used at, and what leaves, every node in every epoch, of one source.

    Shape (nodes, epochs + 1).
    """
    came = np.zeros((len(exchange.stores), epochs + 1), dtype=np.int64)
    went = np.zeros_like(came)
    for link, (tail, head, delay) in enumerate(zip(exchange.tails, exchange.heads, exchange.delay, strict=True)):
        if delay <= epochs:
            came[head, delay:] += sent[link, : epochs + 1 - delay]
        went[tail, :epochs] += sent[link]
    return came, went


def trace(flows: EpochFlows) -> Iterator[tuple[int, int, int, tuple[Hop, ...]]]:
    """Follow what every rank receives back to its source (reverse depth-first search, section 3).

    What reaches nobody is left out.

    At a node that stores, what leaves in an epoch is taken from what came last before it: since what came earlier
    serves all that leaves later as well, this never takes away what something else depends on.

    Yields
    ------
    source, target : int
        Nodes.
    amount : int
        Of ``flows.scale``.
    hops : tuple of (link, epoch)
        The way, in order. The amounts of a pair sum to the scale.
    """
    for source, rank in enumerate(flows.exchange.ranks):
        left = _RemainingFlow(flows.exchange, flows.grid.epochs, flows.of_source(source))
        for target in flows.exchange.ranks:
            needed = flows.scale if target != rank else 0
            while needed:
                amount, hops = left.take(rank, target, needed)
                needed -= amount
                yield rank, target, amount, hops


class _RemainingFlow:
    """What is left of one source's flows."""

    def __init__(self, exchange: Exchange, epochs: int, sent: Ints) -> None:
        self.exchange, self.epochs = exchange, epochs
        self.amount: dict[Hop, int] = {}
        self.into: list[list[tuple[int, int, int]]] = [[] for _ in exchange.stores]
        self.at: list[dict[int, list[Hop]]] = [{} for _ in exchange.stores]
        links, starts = np.nonzero(sent)
        for link, start, amount in zip(links.tolist(), starts.tolist(), sent[links, starts].tolist(), strict=True):
            self.amount[link, start] = amount
            head, arrival = exchange.heads[link], start + exchange.delay[link]
            if exchange.stores[head]:
                self.into[head].append((arrival, link, start))
            else:
                self.at[head].setdefault(arrival, []).append((link, start))
        for entries in self.into:
            entries.sort()
        self.last = [dict[int, int]() for _ in exchange.stores]

    def take(self, source: int, target: int, needed: int) -> tuple[int, tuple[Hop, ...]]:
        """Take one way from the source to the target out of what is left."""
        way: list[Hop] = []
        node, before = target, self.epochs
        while node != source:
            hop = self._latest(node, before) if self.exchange.stores[node] else self._passing(node, before)
            way.append(hop)
            needed = min(needed, self.amount[hop])
            node, before = self.exchange.tails[hop[0]], hop[1]
        for hop in way:
            self.amount[hop] -= needed
        return needed, tuple(reversed(way))

    def _latest(self, node: int, before: int) -> Hop:
        """The last arrival at a node that is there by an epoch and has something left."""
        entries = self.into[node]
        skip = self.last[node]
        at = _count_until(entries, before)
        trail = []
        while True:
            while at in skip:
                trail.append(at)
                at = skip[at]
            _, link, start = entries[at - 1]
            if self.amount[link, start]:
                for passed in trail:
                    skip[passed] = at
                return link, start
            skip[at] = at - 1

    def _passing(self, node: int, at: int) -> Hop:
        arrived = self.at[node][at]
        while not self.amount[arrived[-1]]:
            arrived.pop()
        return arrived[-1]


def _count_until(entries: list[tuple[int, int, int]], before: int) -> int:
    """How many arrive by an epoch."""
    low, high = 0, len(entries)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if entries[middle][0] <= before else (low, middle)
    return low


def pieces(flows: EpochFlows) -> int:
    """Flows of single sources over single links in single epochs: about as many as the schedule will have sends."""
    used = flows.rate > 0
    lengths = np.diff(np.array(flows.grid.starts))
    in_class = np.bincount(flows.reduced.classes.flow.ravel(), minlength=len(used))
    return int((used * lengths).sum(axis=1) @ in_class)


def flow_schedule(instance: Instance, flows: EpochFlows) -> Schedule:
    """Make a schedule of parts of chunks, one send for each link and epoch of each part's way.

    Parameters
    ----------
    instance : Instance
        With a timing; what the flows were made for.
    flows : EpochFlows
        Checked.
    """
    topology, timing, demand = instance.network, instance.timing, instance.demand
    assert isinstance(topology, Topology) and isinstance(timing, Timing) and demand is not None  # noqa: S101
    rank_of = {node: rank for rank, node in enumerate(topology.rank_nodes)}
    groups = tuple((rank_of[node],) for node in flows.exchange.ranks)
    position = {node: index for index, node in enumerate(flows.exchange.ranks)}
    units, held, needed, chunk, link, epoch = (list[int]() for _ in range(6))
    for source, target, amount, hops in trace(flows):
        chunk += [len(units)] * len(hops)
        link += [e for e, _ in hops]
        epoch += [k for _, k in hops]
        units.append(amount)
        held.append(position[source])
        needed.append(position[target])
    order = np.argsort(np.array(epoch), kind="stable")
    links, starts = np.array(link, dtype=np.int64)[order], np.array(epoch, dtype=np.int64)[order]
    delay = np.array(flows.exchange.delay, dtype=np.int64)
    ends = np.array(topology.link_ends, dtype=np.int64)
    part = demand.size_bytes / len(flows.exchange.ranks)
    at = np.array([float(k * timing.epoch_s) for k in range(flows.grid.epochs + 1)])
    columns = [np.array(column, dtype=np.int64) for column in (units, held, needed)]
    return Schedule(
        instance.sha256,
        Chunks(
            columns[0], part / Fraction(flows.scale), groups, columns[1], columns[2], np.zeros(len(units), np.bool_)
        ),
        Sends(
            np.array(chunk, dtype=np.int64)[order],
            ends[links, 0],
            ends[links, 1],
            np.zeros(len(links), dtype=np.bool_),
            np.arange(len(links) + 1),
            links,
        ),
        at[starts],
        at[starts + delay[links]],
    )
