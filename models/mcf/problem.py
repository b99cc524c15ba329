"""Exchanges in arrays, their classes of equal flows, and reductions of line graphs (docs/methods/mcf.md)."""

from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...algorithms.bounds.schedule_bounds import group_of, pairs_of
from ...algorithms.graphs.colour_refinement import Classes, FlowArcs, refine
from ...algorithms.graphs.distances import distances
from ...algorithms.graphs.network import number_values
from ...core.collective import Collective
from ...core.errors import InputError
from ...core.grouping import group_by_key
from ...core.instance import Instance
from ...core.schedule import Floats, Ints
from ...core.topology import Topology


def weights_of(instance: Instance) -> tuple[dict[tuple[int, int], float], Fraction]:
    """Return ``w_{s,u}``, bytes between nodes over the largest of them (1 in an all-to-all), and the largest itself."""
    nodes, sizes = instance.topology.rank_nodes, defaultdict[tuple[int, int], Fraction](Fraction)
    for source, target, size in zip(*pairs_of(instance), strict=True):
        sizes[nodes[int(source)], nodes[int(target)]] += size
    unit = max(sizes.values(), default=Fraction(1))
    return {pair: float(size / unit) for pair, size in sizes.items()}, unit


def bandwidth_unit(topology: Topology) -> Fraction:
    """Return the largest bandwidth, the model's unit of flow."""
    return max(link.bandwidth_Bps for link in topology.links)


@dataclass(frozen=True, eq=False)
class Exchange:
    """Demands between points of a network."""

    tails: Ints
    heads: Ints
    sources: Ints
    #: Shape (sources, points): demand of every point from each source, in multiples of the rate; 0 for itself.
    weights: Floats
    capacity: Floats  #: Shape (links,): bandwidth of a link, in units of the largest.
    load: Floats  #: Shape (links,): load of a link that does not depend on the flows, in multiples of the rate.
    unit_s: Fraction  #: Seconds of the exchange at the rate 1.

    @property
    def points(self) -> int:
        """Number of points."""
        return int(self.weights.shape[1])


def exchange_of(instance: Instance) -> Exchange:
    """Return the demands between ranks of an instance (:func:`weights_of`)."""
    topology = instance.topology
    ends = np.array(topology.link_ends, dtype=np.int64).reshape(-1, 2)
    unit = bandwidth_unit(topology)
    sources, weights, most = _weights(instance, len(topology.nodes))
    capacity = np.array([float(link.bandwidth_Bps / unit) for link in topology.links])
    return Exchange(ends[:, 0], ends[:, 1], sources, weights, capacity, np.zeros(len(capacity)), most / unit)


def _weights(instance: Instance, points: int) -> tuple[Ints, Floats, Fraction]:
    if not instance.also and (group := group_of(instance)).kind is Collective.ALL_TO_ALL:
        nodes = np.array(instance.topology.rank_nodes, dtype=np.int64)[list(group.ranks)]
        weights = np.zeros((len(nodes), points))
        weights[:, nodes] = 1.0
        weights[np.arange(len(nodes)), nodes] = 0.0
        return nodes, weights, group.part_bytes
    by_pair, unit = weights_of(instance)
    row_of = {source: row for row, source in enumerate(dict.fromkeys(source for source, _ in by_pair))}
    weights = np.zeros((len(row_of), points))
    for (source, target), weight in by_pair.items():
        weights[row_of[source], target] = weight
    return np.array(list(row_of), dtype=np.int64), weights, unit


@dataclass(frozen=True, eq=False)
class FlowClasses:
    """Exchange with classes of equal flows, balances and links."""

    exchange: Exchange
    classes: Classes

    @cached_property
    def flows(self) -> list[int]:
        """Classes of useful flows: all but those into their own source."""
        source, link = np.divmod(_firsts(self.classes.flow), len(self.exchange.tails))
        return np.flatnonzero(self.exchange.heads[link] != self.exchange.sources[source]).tolist()

    @cached_property
    def balances(self) -> list[tuple[int, int, int]]:
        """``(class, source's number, point)`` of one balance per class, without those of sources at themselves."""
        source, point = np.divmod(_firsts(self.classes.balance), self.exchange.points)
        away = np.flatnonzero(self.exchange.sources[source] != point)
        return list(zip(away.tolist(), source[away].tolist(), point[away].tolist(), strict=True))

    @cached_property
    def links(self) -> Ints:
        """One link of every class of links."""
        return _firsts(self.classes.link)

    def on_links(self) -> dict[tuple[int, int], int]:
        """Count flows over all sources on a link, by (class of links, class of flows)."""
        active = np.zeros(self.classes.sizes[0], dtype=np.bool_)
        active[self.flows] = True
        flow = self.classes.flow[:, self.links]
        keys = np.arange(len(self.links)) * len(active) + flow
        pairs, counts = np.unique(keys[active[flow]], return_counts=True)
        rows, columns = np.divmod(pairs, len(active))
        return dict(zip(zip(rows.tolist(), columns.tolist(), strict=True), counts.tolist(), strict=True))


def _firsts(table: NDArray[np.int64]) -> Ints:
    return np.unique(table, return_index=True)[1]


def classes_of(exchange: Exchange) -> FlowClasses:
    """Compute the coarsest classes."""
    network = FlowArcs(
        exchange.tails, exchange.heads, np.arange(len(exchange.tails)), exchange.points, len(exchange.tails)
    )
    links_each = np.ones(len(exchange.tails), dtype=np.int64)
    out, back = (
        distances(exchange.points, exchange.tails, exchange.heads, links_each, exchange.sources, backwards=backwards)
        for backwards in (False, True)
    )
    # Colours would tell distances apart in the end, after as many rounds.
    values = np.stack([np.unique(part, return_inverse=True)[1].ravel() for part in (exchange.weights, out, back)])
    numbers = np.asarray(np.ravel_multi_index(tuple(values), tuple(values.max(axis=1) + 1)), dtype=np.int64)
    first: Ints = numbers.reshape(exchange.weights.shape)
    links: list[Any] = list(zip(exchange.capacity.tolist(), exchange.load.tolist(), strict=True))
    return FlowClasses(exchange, refine(network, first, [0] * len(links), links))


def line_graph_base(exchange: Exchange) -> Exchange | None:
    """Return the exchange on the network whose line graph this is; link e of it is point e here.

    None where no two points have the same successors, or the network is no line graph.
    """
    points = exchange.points
    after = group_by_key(zip(exchange.tails.tolist(), exchange.heads.tolist(), strict=True))
    end = np.array(number_values(tuple(sorted(after[point])) for point in range(points)), dtype=np.int64)
    count = int(end.max()) + 1
    begin = np.full(points, -1, dtype=np.int64)
    begin[exchange.heads] = end[exchange.tails]
    if count == points or begin.min() < 0 or (begin[exchange.heads] != end[exchange.tails]).any():
        return None
    weights = np.zeros((count, count))
    by_begin = np.zeros((count, len(exchange.sources)))
    np.add.at(by_begin, begin, exchange.weights.T)
    np.add.at(weights, end[exchange.sources], by_begin.T)
    np.fill_diagonal(weights, 0.0)
    sources = np.flatnonzero(weights.any(axis=1))
    load: Floats = exchange.weights.sum(axis=0)
    np.add.at(load, exchange.heads, exchange.load)
    capacity = np.zeros(points)
    np.add.at(capacity, exchange.heads, exchange.capacity)
    return Exchange(begin, end, sources, weights[sources], capacity, load, exchange.unit_s)


def class_index(instance: Instance, options: Any) -> FlowClasses:
    """Return the classes of an instance that is a line graph often enough (``Formulation.index``)."""
    exchange = exchange_of(instance)
    for level in range(options.line_graphs):
        smaller = line_graph_base(exchange)
        if smaller is None:
            raise InputError(f"the network is a line graph {level} times", place="options.line_graphs")
        exchange = smaller
    return classes_of(exchange)


def class_seconds(quotient: FlowClasses, objective: float) -> float:
    """Convert the model's objective, a rate, to a time (``Formulation.value``)."""
    return float(quotient.exchange.unit_s) / objective if objective > 0 else float("inf")
