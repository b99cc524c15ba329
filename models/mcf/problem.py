"""What is exchanged over which links, in arrays; its classes of equal flows; and line graphs taken back.

Every flow, balance and link of a class (:mod:`...algorithms.graphs.colour_refinement`) may be equal without loss, so
that LP (3) needs one variable for each class of flows.

In a line graph, points with the same successors are links of a smaller network, into the same node of it. If all links
into a point are given the same length, a distance depends on where such links meet and no more, and the program is one
of the smaller network: what is sent from a node q to a node u of it is all that links into q have for links out of u,
and what a link of it carries may be as much as all links into the point together do, less what ends at the point. Its
lengths prove a bound on the line graph. It need not be the best one, since other lengths may prove more.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...algorithms.bounds.schedule_bounds import group_of
from ...algorithms.graphs.colour_refinement import Classes, FlowArcs, refine
from ...algorithms.graphs.distances import distances
from ...core.collective import CollectiveKind
from ...core.instance import Instance
from ...core.schedule import Floats, Ints
from .formulation import bandwidth_unit, largest_exchange, weights_of


@dataclass(frozen=True, eq=False)
class Exchange:
    """What points of a network send one another.

    Parameters
    ----------
    tails, heads : array of int, shape (links,)
        Points that the links leave and enter.
    sources : array of int, shape (sources,)
        Points that send.
    weights : array of float, shape (sources, points)
        What each has for every point, in multiples of the rate; 0 for itself.
    room : array of float, shape (links,)
        What a link carries, in units of bandwidth.
    load : array of float, shape (links,)
        What it carries whatever the flows are, in multiples of the rate.
    unit_s : Fraction
        What the exchange takes at the rate 1.
    """

    tails: Ints
    heads: Ints
    sources: Ints
    weights: Floats
    room: Floats
    load: Floats
    unit_s: Fraction

    @property
    def points(self) -> int:
        """How many points there are."""
        return int(self.weights.shape[1])


def exchange_of(instance: Instance) -> Exchange:
    """What ranks of an instance have for one another (:func:`.formulation.weights_of`)."""
    topology = instance.topology
    ends = np.array(topology.link_ends, dtype=np.int64).reshape(-1, 2)
    unit = bandwidth_unit(topology)
    sources, weights, most = _weights(instance, len(topology.nodes))
    room = np.array([float(link.bandwidth_Bps / unit) for link in topology.links])
    return Exchange(ends[:, 0], ends[:, 1], sources, weights, room, np.zeros(len(room)), most / unit)


def _weights(instance: Instance, points: int) -> tuple[Ints, Floats, Fraction]:
    if not instance.also and (group := group_of(instance)).kind is CollectiveKind.ALL_TO_ALL:
        nodes = np.array(instance.topology.rank_nodes, dtype=np.int64)[list(group.ranks)]
        weights = np.zeros((len(nodes), points))
        weights[:, nodes] = 1.0
        weights[np.arange(len(nodes)), nodes] = 0.0
        return nodes, weights, group.part_bytes
    by_pair = weights_of(instance)
    row_of = {source: row for row, source in enumerate(dict.fromkeys(source for source, _ in by_pair))}
    weights = np.zeros((len(row_of), points))
    for (source, target), weight in by_pair.items():
        weights[row_of[source], target] = weight
    return np.array(list(row_of), dtype=np.int64), weights, largest_exchange(instance)


@dataclass(frozen=True, eq=False)
class FlowClasses:
    """An exchange whose flows, balances and links of a class are equal."""

    exchange: Exchange
    classes: Classes

    @cached_property
    def flows(self) -> list[int]:
        """Classes of flows that are of use: what enters its own source is not."""
        source, link = np.divmod(_firsts(self.classes.flow), len(self.exchange.tails))
        return np.flatnonzero(self.exchange.heads[link] != self.exchange.sources[source]).tolist()

    @cached_property
    def balances(self) -> list[tuple[int, int, int]]:
        """``(class, source's number, point)`` of one balance of every class, but for those of sources at themselves."""
        source, point = np.divmod(_firsts(self.classes.balance), self.exchange.points)
        away = np.flatnonzero(self.exchange.sources[source] != point)
        return list(zip(away.tolist(), source[away].tolist(), point[away].tolist(), strict=True))

    @cached_property
    def links(self) -> Ints:
        """One link of every class of links."""
        return _firsts(self.classes.link)

    @cached_property
    def link_counts(self) -> Ints:
        """How many links each class has."""
        return np.bincount(self.classes.link)

    def on_links(self) -> dict[tuple[int, int], int]:
        """How many flows of a class, over all sources, are on a link of a class: by (class of links, of flows)."""
        used = np.zeros(self.classes.sizes[0], dtype=np.bool_)
        used[self.flows] = True
        flow = self.classes.flow[:, self.links]
        keys = np.arange(len(self.links)) * len(used) + flow
        found, counts = np.unique(keys[used[flow]], return_counts=True)
        rows, columns = np.divmod(found, len(used))
        return dict(zip(zip(rows.tolist(), columns.tolist(), strict=True), counts.tolist(), strict=True))


def _firsts(table: NDArray[np.int64]) -> Ints:
    """Place of the first member of every class."""
    return np.unique(table, return_index=True)[1]


def classes_of(exchange: Exchange) -> FlowClasses:
    """Find the coarsest classes."""
    network = FlowArcs(
        exchange.tails, exchange.heads, np.arange(len(exchange.tails)), exchange.points, len(exchange.tails)
    )
    links_each = np.ones(len(exchange.tails), dtype=np.int64)
    out, back = (
        distances(exchange.points, exchange.tails, exchange.heads, links_each, exchange.sources, backwards=backwards)
        for backwards in (False, True)
    )
    # Colours would tell distances apart in the end, after as many rounds.
    seen = np.stack([np.unique(part, return_inverse=True)[1].ravel() for part in (exchange.weights, out, back)])
    numbers = np.asarray(np.ravel_multi_index(tuple(seen), tuple(seen.max(axis=1) + 1)), dtype=np.int64)
    first: Ints = numbers.reshape(exchange.weights.shape)
    links: list[Any] = list(zip(exchange.room.tolist(), exchange.load.tolist(), strict=True))
    return FlowClasses(exchange, refine(network, first, [0] * len(links), links))


def taken_back(exchange: Exchange) -> Exchange | None:
    """The exchange on the network of which this one is the line graph; link e of it is point e here.

    Returns
    -------
    Exchange or None
        None where no two points have the same successors, or the network is no line graph.
    """
    points = exchange.points
    after: list[list[int]] = [[] for _ in range(points)]
    for tail, head in zip(exchange.tails.tolist(), exchange.heads.tolist(), strict=True):
        after[tail].append(head)
    known: dict[tuple[int, ...], int] = {}
    end = np.array([known.setdefault(tuple(sorted(heads)), len(known)) for heads in after], dtype=np.int64)
    begin = np.full(points, -1, dtype=np.int64)
    begin[exchange.heads] = end[exchange.tails]
    if len(known) == points or begin.min() < 0 or (begin[exchange.heads] != end[exchange.tails]).any():
        return None
    sent = np.zeros((len(known), len(known)))
    np.add.at(sent, end[exchange.sources], _summed(exchange.weights, begin, len(known)))
    np.fill_diagonal(sent, 0.0)
    sources = np.flatnonzero(sent.any(axis=1))
    load: Floats = exchange.weights.sum(axis=0)
    np.add.at(load, exchange.heads, exchange.load)
    room = np.zeros(points)
    np.add.at(room, exchange.heads, exchange.room)
    return Exchange(begin, end, sources, sent[sources], room, load, exchange.unit_s)


def _summed(weights: Floats, group: Ints, groups: int) -> Floats:
    """Columns of a group added up."""
    summed = np.zeros((groups, len(weights)))
    np.add.at(summed, group, weights.T)
    return summed.T
