"""Closed forms of pipelined time, and the split of data among trees that reserve a rate on every link.

Data of v bytes at a rate r has the flow time ``x = v / r``. Over a path of l links, in ``lam`` equal chunks that each
link stores before it forwards them, it takes ``S + l x / lam + (lam - 1) (A + x / lam)`` (MTree, equation 2). S is the
total wait of a chunk beside its bytes, A the occupation of the slowest link beside them, by latency model. Every time
depends on data and rate only through x, and is convex in ``lam``. Forms for trees and overlapped all-reduces, and their
derivation: docs/methods/mtree.md, "Chunk size".
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import cached_property

import numpy as np

from .errors import InputError
from .schedule import Floats, Ints
from .topology import Topology
from .trees import TreePacking

PIECES = tuple(2**k for k in range(11))  #: Numbers of pieces that the trees of a forest may be cut into, all alike.
ENOUGH = 0.01  #: Time beyond the least, in parts of it, that is accepted for fewer pieces.
MOST_CHUNKS = 2**20  #: Chunks beyond this many are not tried: where a chunk costs nothing, more are always better.
TOLERANCE = 1e-13  #: Times are found to this part of them.
_AHEAD = 1e-6  #: Slopes are taken over this part of the deadline, or of the time where that is later.


class LatencyModel(Enum):
    """Effect of a link's latency on the next chunk."""

    OCCUPANCY = "occupancy"  #: The link is busy for it, as for the bytes: MTree's equation (2).
    PROPAGATION = "propagation"  #: The next chunk follows at once, as on a long line.


@dataclass(frozen=True, eq=False)
class Leaves:
    """Paths between the root and the leaves of every tree, one way."""

    offset: Ints  #: Shape (trees,): first leaf of each tree.
    links: Ints
    #: ``waits_s`` and ``pace_s``: shape (leaves,): S and A of each path, in seconds.
    waits_s: Floats
    pace_s: Floats

    @cached_property
    def tree(self) -> Ints:
        """Tree of each leaf."""
        return np.repeat(np.arange(len(self.offset)), np.diff(self.offset, append=len(self.links)))

    def last(self, values: Floats) -> Floats:
        """Return the largest value among each tree's leaves."""
        return np.asarray(np.maximum.reduceat(values, self.offset), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees with exclusive rates, for computing their pipelined times."""

    ways: tuple[Leaves, ...]  #: One for reduce or broadcast; reduce and broadcast for an overlapped all-reduce.

    def __len__(self) -> int:
        return len(self.ways[0].offset)

    def seconds(self, flow_s: Floats, chunks: Ints) -> Floats:
        """Compute the time of every tree, of which all data takes ``flow_s`` seconds on a link."""
        piece_s, more = flow_s / chunks, (chunks - 1).astype(np.float64)
        free, busy = [], []
        for way in self.ways:
            came = way.waits_s + way.links * piece_s[way.tree]
            free.append(way.last(came))
            busy.append(way.last(came + more[way.tree] * way.pace_s))
        last = busy[0] if len(busy) == 1 else np.maximum(busy[0] + free[1], free[0] + busy[1])
        return last + more * piece_s

    def best_chunks(self, flow_s: Floats) -> Ints:
        """Compute every tree's best number of chunks, the smallest if there are several.

        Bisection finds the first number that one more chunk does not improve.
        """
        low, high = np.ones(len(self), dtype=np.int64), self._enough(flow_s)
        while (open_ := low < high).any():
            middle = (low + high) // 2
            is_best = self.seconds(flow_s, middle + 1) >= self.seconds(flow_s, middle)
            high = np.where(open_ & is_best, middle, high)
            low = np.where(open_ & ~is_best, middle + 1, low)
        return low

    def flow_within(self, deadline_s: float, chunks: Ints | None = None) -> Floats:
        """Compute every tree's largest flow time within a deadline; 0 if latency alone is too long.

        For a number of chunks, time is convex and piecewise linear in the flow time, so that Newton's method ends at
        the root. If the chunks are free, the best ones for that flow time leave time for more, until no others do.
        """
        number = np.ones(len(self), dtype=np.int64) if chunks is None else chunks
        flow = self._newton(np.full(len(self), deadline_s), deadline_s, number)
        while chunks is None:
            better = self.best_chunks(flow)
            is_better = self.seconds(flow, better) < self.seconds(flow, number) * (1 - TOLERANCE)
            is_better &= flow > 0
            if not is_better.any():
                break
            number = np.where(is_better, better, number)
            flow = self._newton(flow, deadline_s, number)
        return flow

    def _newton(self, flow_s: Floats, deadline_s: float, chunks: Ints) -> Floats:
        """Solve ``time = deadline`` for the flow time; iterates but the first are above the root: none overshoots."""
        if deadline_s <= 0:
            return np.zeros_like(flow_s)
        for _ in range(64):
            time = self.seconds(flow_s, chunks)
            # Against the larger one of the two: added to a latency far beyond the deadline, a part of the deadline
            # would be lost.
            ahead = np.maximum(time, deadline_s) * _AHEAD
            slope = (self.seconds(flow_s + ahead, chunks) - time) / ahead
            step = (time - deadline_s) / slope
            flow_s = np.maximum(flow_s - step, 0.0)
            if ((np.abs(step) <= TOLERANCE * flow_s) | (flow_s == 0)).all():
                break
        return flow_s

    def _enough(self, flow_s: Floats) -> Ints:
        """Return upper limits on the best numbers of chunks, from the most links and the smallest pace."""
        links = np.sum([way.last(way.links.astype(np.float64)) for way in self.ways], axis=0)
        pace = np.max([-way.last(-way.pace_s) for way in self.ways], axis=0)
        ratio = np.divide((links - 1) * flow_s, pace, out=np.full(len(self), np.inf), where=pace > 0)
        most = np.where((links > 1) & (flow_s > 0), np.sqrt(ratio) + 2, 1)
        return np.minimum(most, MOST_CHUNKS).astype(np.int64)


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
    paths: list[tuple[int, float, float]] = []
    for tree, root in enumerate(packing.root.tolist()):
        offset.append(len(paths))
        way = {root: (0, 0.0, 0.0)}
        edges = range(ends[tree], ends[tree + 1])
        for e in edges:
            count, wait, slowest = way[parent[e]]
            way[child[e]] = count + hops[e], wait + waits[e], max(slowest, pace[e])
        inner = {parent[e] for e in edges}
        paths += [path for rank, path in way.items() if rank not in inner]
    columns = list(zip(*paths, strict=True))
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
    :meth:`Forest.flow_within`: it needs the rate data over x. The time is the least one at which
    the rates that all trees need fit on every link. Every tree has its best number of chunks unless one is given.
    """
    forest = forest_of(topology, packing, model, overhead_s)
    counts = None if chunks is None else np.full(len(packing), chunks, dtype=np.int64)
    bandwidth_Bps = np.array([float(link.bandwidth_Bps) for link in topology.links])
    data = np.asarray(packing.units * float(packing.unit_bytes), dtype=np.float64)
    uses = [(part.path_tree, part.path_links) for part in packing.passes]
    tree, links = map(np.concatenate, zip(*uses, strict=True))

    def load(rates: Floats) -> float:
        return float((np.bincount(links, rates[tree], len(bandwidth_Bps)) / bandwidth_Bps).max())

    def rates_within(deadline_s: float) -> Floats:
        flow_s = forest.flow_within(deadline_s, counts)
        rates: Floats = np.divide(data, flow_s, out=np.full(len(data), np.inf), where=flow_s > 0)
        return rates

    # Rates in proportion to the data fill the fullest link: they are one way, and mostly close to the best.
    shares = data / data.sum() if data.sum() else packing.units / packing.units.sum()
    fullest = load(shares)
    together = np.full(len(data), fullest * float(data.sum()))
    number = forest.best_chunks(together) if counts is None else counts
    most = float(forest.seconds(together, number).max())
    seconds = _least(lambda deadline: 1 / load(rates_within(deadline)), float(together[0]), most)
    rates = shares / fullest if seconds == most else rates_within(seconds)
    number = forest.best_chunks(data / rates) if counts is None else counts
    return RateReservation(seconds, rates, number)


def equal_finish(forest: Forest, rates_Bps: Floats, size_bytes: float, chunks: int | None = None) -> Floats:
    """Split data such that all trees end at once at given rates.

    A tree that is too long to help gets nothing. Return the bytes of every tree, whose sum is the size; trees with data
    end at the same time, to a part of :data:`TOLERANCE`. Every tree has its best number of chunks unless one is given.
    """
    flow_s = np.full(len(rates_Bps), size_bytes / float(rates_Bps.sum()))
    counts = None if chunks is None else np.full(len(rates_Bps), chunks, dtype=np.int64)
    number = forest.best_chunks(flow_s) if counts is None else counts
    most = float(forest.seconds(flow_s, number).max())

    def bytes_within(deadline_s: float) -> Floats:
        return rates_Bps * forest.flow_within(deadline_s, counts)

    seconds = _least(lambda deadline: float(bytes_within(deadline).sum()) / size_bytes, float(flow_s[0]), most)
    parts = bytes_within(seconds)
    # So little data is lost beside the latency: then every split ends at the same time, as far as that can be
    # determined.
    return parts * (size_bytes / float(parts.sum())) if parts.any() else size_bytes * (rates_Bps / rates_Bps.sum())


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
