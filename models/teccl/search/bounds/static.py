"""The bound of a flow on the network itself: how many starts a link has that can be of use.

Let S be chunks that g lacks. On link e = (i, j), sorted by time, the n-th start that traces of S use is not before the n-th smallest distance
from a source of S to i, nor before the (n - C)-th start plus w, where any w epochs take C starts; and it is not after K - delay - dist(j, g).
So the traces load e with at most U_e(K) starts, and if a maximum flow from the sources to g within U(K) is less than the number of chunks in
S, no schedule has makespan K. The least cut of that flow is the certificate: a set of nodes that holds too few of S's sources and whose
links inwards have too few useful starts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .....core.schedule import Bools, Ints
from ..kernels.releases import start_times
from ..problem import FAR, EpochNetwork
from .flow import FlowNetwork

#: Sets of chunks tried for one node, by their distance.
MOST_SETS = 24


@dataclass(frozen=True, eq=False)
class StaticCut:
    """Why no schedule has the makespan ``epochs - 1`` or less.

    Parameters
    ----------
    epochs : int
        The bound.
    sink : int
        The node that traces lead to.
    threshold : int
        S has the chunks that the sink lacks and whose source is so many epochs away, or more.
    side : array of bool, shape (nodes,)
        The set of nodes around the sink.
    """

    epochs: int
    sink: int
    threshold: int
    side: Bools


class StaticBound:
    """Tests of one network by static flows."""

    def __init__(self, network: EpochNetwork) -> None:
        self.network = network
        self._flow = FlowNetwork(network.nodes, network.tail, network.head)
        kinds = np.stack([network.tail, network.window, network.room], axis=1)
        self._kinds, which = np.unique(kinds, axis=0, return_inverse=True)
        self._kind_of = which.reshape(-1)

    def capacities(self, sink: int, starts: Ints, epochs: int) -> Ints:
        """Give U_e for every link.

        Parameters
        ----------
        starts : array of int, shape (kinds, chunks)
            Earliest n-th start on links of every kind.
        """
        network = self.network
        last = epochs - network.delay - network.distance[network.head, sink]
        found = np.zeros(network.links, dtype=np.int64)
        order = np.argsort(self._kind_of, kind="stable")
        first = np.searchsorted(self._kind_of[order], np.arange(len(self._kinds) + 1))
        for kind, row in enumerate(starts):
            links = order[first[kind] : first[kind + 1]]
            found[links] = np.searchsorted(row, last[links], side="right")
        return found

    def improve(self, at_least: int, sinks: Ints) -> tuple[int, StaticCut | None]:
        """Raise a bound by tests of some nodes; give it with the last cut that raised it."""
        best, proof = at_least, None
        for sink in sinks.tolist():
            for chunks, threshold in self._sets(sink):
                best, cut = self._raise(best, sink, chunks, threshold)
                proof = cut or proof
        return best, proof

    def ordered(self, sinks: Ints) -> Ints:
        """Give nodes in the order of the bounds that they alone give, the largest first."""
        own = [self.improve(0, np.array([sink]))[0] for sink in sinks.tolist()]
        return sinks[np.argsort(-np.array(own, dtype=np.int64), kind="stable")]

    def _sets(self, sink: int) -> Iterator[tuple[Ints, int]]:
        """Give the chunks that a node lacks, then fewer and fewer that are farther and farther away, each with its distance."""
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
        releases = np.sort(network.distance[network.source[chunks]], axis=0).T
        starts = start_times(np.ascontiguousarray(releases), self._kinds, FAR)
        supply = np.bincount(network.source[chunks], minlength=network.nodes)

        def cut_at(epochs: int) -> Bools | None:
            flow, side = self._flow.into(sink, self.capacities(sink, starts, epochs), supply, len(chunks))
            return side if flow < len(chunks) else None

        side = cut_at(at_least)
        if side is None:
            return at_least, None
        low, step = at_least, 1
        while (found := cut_at(low + step)) is not None:
            low, side, step = low + step, found, 2 * step
        high = low + step
        while high - low > 1:
            middle = (low + high) // 2
            found = cut_at(middle)
            if found is None:
                high = middle
            else:
                low, side = middle, found
        return high, StaticCut(high, sink, threshold, side)
