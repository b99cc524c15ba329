"""Lower bounds on the makespan by maximum flows to one node, static or over time.

Every bound is a test: if it fails for K, no schedule has a makespan of K or less. The traces of all chunks that a node
g lacks, back to their sources, use different starts: together they are a flow of one unit per chunk
(docs/methods/teccl-search.md). The tests relax this flow in two ways.

Static, on the network itself: the traces load link e with at most U_e(K) starts.

Over time, on pairs (node, epoch): where any w > 1 epochs take at most C starts, the starts on a link are grouped in
blocks of w epochs from the earliest useful one, all relaxed to arrive as early as one at the block's beginning. Chunks
wait at nodes that store, and, as a relaxation, at the ends of links with blocks.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...core.bounds import EpochWindowPrices
from ...core.kernel import kernel
from ...core.schedule import Bools, Ints, ranges
from ..graphs.maxflow import RootedFlow
from ..graphs.network import Network, mask_of
from .problem import FAR, EpochNetwork

MOST_SETS = 24  #: sets of chunks tried for one node, by their distance


@dataclass(frozen=True, eq=False)
class StaticCut:
    """Certificate of a static flow that no schedule has the makespan ``epochs - 1`` or less."""

    epochs: int  #: lower bound on the makespan in epochs
    sink: int  #: the node that traces lead to
    threshold: int  #: S has the chunks that the sink lacks and whose source is at least this many epochs away
    side: Bools  #: (nodes,) the set of nodes around the sink


class StaticBound:
    """Static-flow tests of the makespan on one network."""

    def __init__(self, network: EpochNetwork) -> None:
        self.network = network
        ends, self._edge_of = np.unique(network.tail * network.nodes + network.head, return_inverse=True)
        graph = Network(network.nodes, ends // network.nodes, ends % network.nodes, np.ones_like(ends))
        self._flow = RootedFlow(graph, np.zeros(network.nodes, dtype=np.int64), ends[:0])
        kinds = np.stack([network.tail, network.window, network.room], axis=1)
        self._kinds, which = np.unique(kinds, axis=0, return_inverse=True)
        self._kind_of = which.reshape(-1)

    @cached_property
    def _releases(self) -> tuple[Ints, Ints]:
        """Chunks by their earliest arrival at every node, and these arrivals; shapes (nodes, chunks)."""
        network = self.network
        when = np.ascontiguousarray(network.distance[network.source].T)
        nearest = np.argsort(when, axis=1, kind="stable")
        return nearest, np.take_along_axis(when, nearest, axis=1)

    def improve(self, at_least: int, sinks: Ints) -> tuple[int, StaticCut | None]:
        """Raise a bound by tests of some nodes; return it with the last cut that raised it."""
        best, proof = at_least, None
        for sink in sinks.tolist():
            for chunks, threshold in self._sets(sink):
                best, cut = self._raise(best, sink, chunks, threshold)
                proof = cut or proof
        return best, proof

    def _sets(self, sink: int) -> Iterator[tuple[Ints, int]]:
        """Yield the chunks that a node lacks from at least a distance away, for increasing distances."""
        network = self.network
        lacking = np.flatnonzero(network.lacking[:, sink])
        if not len(lacking):
            return
        far = network.distance[network.source[lacking], sink]
        steps = np.unique(far)
        if len(steps) > MOST_SETS:
            steps = steps[np.linspace(0, len(steps) - 1, MOST_SETS).astype(np.int64)]
        for step in steps.tolist():
            yield lacking[far >= step], step

    def _raise(self, at_least: int, sink: int, chunks: Ints, threshold: int) -> tuple[int, StaticCut | None]:
        network = self.network
        among = mask_of(network.chunks, chunks)
        nearest, releases = self._releases
        starts = start_times(releases[among[nearest]].reshape(-1, len(chunks)), self._kinds, FAR)
        supply = np.bincount(network.source[chunks], minlength=network.nodes)
        self._flow.sinks = np.array([sink])

        def cut_at(epochs: int) -> Bools | None:
            last = epochs - network.delay - network.distance[network.head, sink]
            useful = counted_starts(starts, self._kind_of, last)  # U_e of every link
            self._flow.ask(np.bincount(self._edge_of, useful).astype(np.int64), supply)
            violation = self._flow.violation()
            return None if violation is None else violation.side

        side = cut_at(at_least)
        if side is None:
            return at_least, None
        low, step = at_least, 1
        while (cut := cut_at(low + step)) is not None:
            low, side, step = low + step, cut, 2 * step
        high = low + step
        while high - low > 1:
            middle = (low + high) // 2
            cut = cut_at(middle)
            if cut is None:
                high = middle
            else:
                low, side = middle, cut
        return high, StaticCut(high, sink, threshold, side)


@dataclass(frozen=True, eq=False)
class WindowPrices:
    """Certificate by prices that no schedule has the makespan ``epochs - 1``."""

    epochs: int  #: lower bound on the makespan in epochs
    sinks: tuple[int, ...]  #: the nodes that traces lead to
    link: Ints  #: (windows,) Link, first epoch and price of every priced window. A window may begin before epoch 0.
    start: Ints
    price: Ints

    def certificate(self) -> EpochWindowPrices:
        """Return the prices as a certificate that can be checked."""
        columns = (tuple(column.tolist()) for column in (self.link, self.start, self.price))
        return EpochWindowPrices(self.epochs, self.sinks, *columns)


class ExpandedCut(WindowPrices):
    """Certificate of a time-expanded cut around one node, whose blocks, windows with price 1, are too few."""


def raise_epoch_by_epoch(
    refute: Callable[[int], WindowPrices | None], at_least: int, below: int
) -> tuple[int, WindowPrices | None]:
    """Raise a bound below ``below`` as long as makespans are refuted; return it with the last proof."""
    best, proof = at_least, None
    while best < below and (prices := refute(best)) is not None:
        best, proof = prices.epochs, prices
    return best, proof


def cut_at(network: EpochNetwork, sink: int, epochs: int) -> ExpandedCut | None:
    """Return a cut that proves that a node lacks chunks after ``epochs``, None if a flow exists."""
    chunks = np.flatnonzero(network.lacking[:, sink])
    if not len(chunks):
        return None
    release = network.distance[network.source[chunks]].min(axis=0)
    link, begin, end = _blocks(network, sink, epochs, release)
    tail, head, reach = network.tail[link], network.head[link], begin + network.delay[link]
    width = epochs + 2
    waits = network.stores.copy()
    waits[network.head[network.window > 1]] = True
    waits[network.tail[network.window > 1]] = True
    sources = np.unique(network.source[chunks])
    keys = np.unique(np.concatenate([tail * width + end, head * width + reach, sources * width, [sink * width]]))
    node, same = keys // width, np.diff(keys // width) == 0
    stays = np.flatnonzero(same & (waits[node[:-1]]))
    at_sink = int(np.searchsorted(keys, sink * width + width) - 1)
    tails = np.concatenate([np.searchsorted(keys, tail * width + end), stays]).astype(np.int64)
    heads = np.concatenate([np.searchsorted(keys, head * width + reach), stays + 1]).astype(np.int64)
    capacity = np.concatenate([np.minimum(network.room[link], len(chunks)), np.full(len(stays), len(chunks))])
    supply = np.zeros(len(keys), dtype=np.int64)
    counts = np.bincount(network.source[chunks], minlength=network.nodes)
    supply[np.searchsorted(keys, sources * width)] = counts[sources]
    graph = Network.from_parallel_edges(len(keys), tails, heads, capacity.astype(np.int64))
    violation = RootedFlow(graph, supply, np.array([at_sink])).violation()
    if violation is None:
        return None
    cut = np.flatnonzero(violation.side[heads[: len(link)]] & ~violation.side[tails[: len(link)]])
    return ExpandedCut(epochs + 1, (sink,), link[cut], begin[cut], np.ones_like(cut))


def _blocks(network: EpochNetwork, sink: int, epochs: int, release: Ints) -> tuple[Ints, Ints, Ints]:
    """Return link, first epoch and last useful epoch of every block."""
    first = release[network.tail]
    last = epochs - network.delay - network.distance[network.head, sink]
    useful = np.flatnonzero((first <= last) & (first < FAR))
    count = (last - first)[useful] // network.window[useful] + 1
    link = np.repeat(useful, count)
    begin = first[link] + ranges(np.zeros_like(count), count) * network.window[link]
    return link, begin, np.minimum(begin + network.window[link] - 1, last[link])


@kernel
def counted_starts(starts: Any, kind_of: Any, last: Any) -> Any:
    """Count the starts of its kind up to the last one on each link; shape (links,)."""
    counts = np.empty(len(kind_of), np.int64)
    for link in range(len(kind_of)):
        counts[link] = np.searchsorted(starts[kind_of[link]], last[link], side="right")
    return counts


@kernel
def start_times(releases: Any, kinds: Any, far: int) -> Any:
    """Compute sorted earliest n-th starts on links of every kind, ``far`` if none; shape (kinds, chunks).

    ``releases``, of shape (nodes, chunks), are the sorted epochs from which chunks can be at every node, never if
    ``far`` or later. ``kinds`` are rows of tail, window and room.
    """
    count = releases.shape[1]
    starts = np.empty((len(kinds), count), np.int64)
    for kind in range(len(kinds)):
        tail, window, room = kinds[kind]
        for n in range(count):
            start = releases[tail, n]
            if n >= room:
                start = max(start, starts[kind, n - room] + window)
            starts[kind, n] = min(start, far)
    return starts
