"""Trees with an exclusive rate on every link.

Speed of a packing in chunks, and the split of data for which all trees end at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from .errors import InputError
from .pipelining import TOLERANCE, Forest, LatencyModel, Leaves
from .schedule import Floats, Ints
from .topology import Topology
from .trees import TreePacking


@dataclass(frozen=True, eq=False)
class RateReservation:
    """Rates that trees reserve on all of their links."""

    seconds: float
    rates_Bps: Floats  #: Shape (trees,): the least rates for this time.
    chunks: Ints


def forest_of(
    topology: Topology, packing: TreePacking, model: LatencyModel, overhead_s: Fraction | float = 0
) -> Forest:
    """Measure the paths of a packing's trees; every link of an edge stores chunks.

    Each chunk occupies a link for ``overhead_s`` seconds beside its bytes.
    """
    if not len(packing) or any((np.diff(part.edge_offset) == 0).any() for part in packing.passes):
        raise InputError("expected trees of at least one edge", place="trees")
    waits_s = np.array([float(link.latency_s + overhead_s) for link in topology.links])
    pace_s = waits_s if model is LatencyModel.OCCUPANCY else np.full(len(waits_s), float(overhead_s))
    return Forest(tuple(_leaves(part, waits_s, pace_s) for part in packing.passes))


def _leaves(packing: TreePacking, waits_s: Floats, pace_s: Floats) -> Leaves:
    first, links = packing.path_offset[:-1], packing.path_links
    hops = np.diff(packing.path_offset).tolist()
    waits, pace = np.add.reduceat(waits_s[links], first).tolist(), np.maximum.reduceat(pace_s[links], first).tolist()
    parent, child, ends = packing.parent.tolist(), packing.child.tolist(), packing.edge_offset.tolist()
    offset: list[int] = []
    found: list[tuple[int, float, float]] = []
    for tree, root in enumerate(packing.root.tolist()):
        offset.append(len(found))
        way = {root: (0, 0.0, 0.0)}
        edges = range(ends[tree], ends[tree + 1])
        for e in edges:
            count, waited, slowest = way[parent[e]]
            way[child[e]] = count + hops[e], waited + waits[e], max(slowest, pace[e])
        inner = {parent[e] for e in edges}
        found += [path for rank, path in way.items() if rank not in inner]
    columns = list(zip(*found, strict=True))
    return Leaves(np.array(offset, dtype=np.int64), np.array(columns[0], dtype=np.int64), *map(np.array, columns[1:]))


def reserve_rates(
    topology: Topology,
    packing: TreePacking,
    model: LatencyModel,
    overhead_s: Fraction | float = 0,
    chunks: int | None = None,
) -> RateReservation:
    """Reserve rates for a packing such that its last tree ends as early as possible.

    A tree whose data takes x seconds at its rate ends in time if x is at most
    :meth:`~cwb.core.pipelining.Forest.flow_within`: it needs the rate data over x. The time is the least one at which
    the rates that all trees need fit on every link. Every tree has its best number of chunks unless one is given.
    """
    forest = forest_of(topology, packing, model, overhead_s)
    given = None if chunks is None else np.full(len(packing), chunks, dtype=np.int64)
    bandwidth_Bps = np.array([float(link.bandwidth_Bps) for link in topology.links])
    data = np.asarray(packing.units * float(packing.unit_bytes), dtype=np.float64)
    tree, links = _uses(packing)

    def load(rates: Floats) -> float:
        """Return the largest load of a link over its bandwidth."""
        return float((np.bincount(links, rates[tree], len(bandwidth_Bps)) / bandwidth_Bps).max())

    def rates_within(deadline_s: float) -> Floats:
        """Return rates with which all trees end in time; infinite where none suffices."""
        flow_s = forest.flow_within(deadline_s, given)
        rates: Floats = np.divide(data, flow_s, out=np.full(len(data), np.inf), where=flow_s > 0)
        return rates

    # Rates in proportion to the data fill the fullest link: they are one way, and mostly close to the best.
    shares = data / data.sum() if data.sum() else packing.units / packing.units.sum()
    fullest = load(shares)
    together = np.full(len(data), fullest * float(data.sum()))
    number = forest.best_chunks(together) if given is None else given
    most = float(forest.seconds(together, number).max())
    seconds = _least(lambda deadline: 1 / load(rates_within(deadline)), float(together[0]), most)
    rates = shares / fullest if seconds == most else rates_within(seconds)
    number = forest.best_chunks(data / rates) if given is None else given
    return RateReservation(seconds, rates, number)


def _uses(packing: TreePacking) -> tuple[Ints, Ints]:
    """Return all pairs of a tree and a link it uses, in both directions."""
    trees, links = zip(*((part.path_tree, part.path_links) for part in packing.passes), strict=True)
    return np.concatenate(trees), np.concatenate(links)


def equal_finish(forest: Forest, rates_Bps: Floats, size_bytes: float, chunks: int | None = None) -> Floats:
    """Split data such that all trees end at once at given rates.

    A tree that is too long to help gets nothing. Return the bytes of every tree, whose sum is the size; trees with data
    end at the same time, to a part of :data:`~.pipelining.TOLERANCE`. Every tree has its best number of chunks unless
    one is given.
    """
    flow_s = np.full(len(rates_Bps), size_bytes / float(rates_Bps.sum()))
    given = None if chunks is None else np.full(len(rates_Bps), chunks, dtype=np.int64)
    number = forest.best_chunks(flow_s) if given is None else given
    most = float(forest.seconds(flow_s, number).max())

    def bytes_within(deadline_s: float) -> Floats:
        """Return the bytes that every tree carries in time."""
        return rates_Bps * forest.flow_within(deadline_s, given)

    seconds = _least(lambda deadline: float(bytes_within(deadline).sum()) / size_bytes, float(flow_s[0]), most)
    found = bytes_within(seconds)
    # So little data is lost beside the latency: then every split ends at the same time, as far as that can be
    # determined.
    return found * (size_bytes / float(found.sum())) if found.any() else size_bytes * (rates_Bps / rates_Bps.sum())


def _least(grows: Callable[[float], float], low: float, high: float) -> float:
    """Return the smallest number in an interval at which an increasing function reaches 1.

    The function is assumed to reach 1 at the upper end. Regula falsi, with an end that stays counted half (the
    Illinois rule), since the function is nearly linear; every fourth step bisects.
    """
    below, above = grows(low) - 1, grows(high) - 1
    if below >= 0:
        return low
    stayed, step = 0, 0
    while high - low > TOLERANCE * high:
        step += 1
        share = below / (below - above) if above > below and step % 4 else 0.5
        aside = TOLERANCE * high / 4
        middle = min(max(low + (high - low) * share, low + aside), high - aside)
        value = grows(middle) - 1
        if value >= 0:
            high, above, below = middle, value, below / 2 if stayed > 0 else below
            stayed = 1
        else:
            low, below, above = middle, value, above / 2 if stayed < 0 else above
            stayed = -1
    return high
