"""The bound of a flow on the network expanded in time, to one node.

The traces of all chunks that g lacks are a flow over pairs (node, epoch). Where any w > 1 epochs take at most C starts, the starts on
a link are grouped in blocks of w epochs from the earliest one that can be of use; a block has at most C starts, and all of them are taken
to arrive as early as one at the block's beginning. Chunks wait at nodes that store, and also at the others that a block may have brought
them to too early, or that they leave in a block; that only helps. So a maximum flow of less than one unit for every chunk proves that no
schedule has this makespan.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .....core.schedule import Ints
from ..problem import FAR, EpochNetwork
from .flow import FlowNetwork


@dataclass(frozen=True)
class ExpandedCut:
    """Why no schedule has the makespan ``epochs - 1``: the flow to ``sink`` is less than the chunks that it lacks."""

    epochs: int
    sink: int
    flow: int
    wanted: int

    def by_blocks_alone(self, network: EpochNetwork) -> bool:
        """Whether it also holds if all starts of a block count, as :class:`~cwb.core.bounds.EpochFlow` is defined."""
        return flow_to(network, self.sink, self.epochs - 1, in_time=False)[0] < self.wanted


def size(network: EpochNetwork, epochs: int) -> int:
    """Edges of the network expanded in time, at most."""
    return int((epochs // network.window).sum()) + network.nodes * epochs


def improve(network: EpochNetwork, at_least: int, sink: int, below: int) -> tuple[int, ExpandedCut | None]:
    """Raise a bound by flows to one node, epoch by epoch, as long as it is below a number."""
    best, proof = at_least, None
    while best < below:
        flow, wanted = flow_to(network, sink, best)
        if flow >= wanted:
            break
        best += 1
        proof = ExpandedCut(best, sink, flow, wanted)
    return best, proof


def flow_to(network: EpochNetwork, sink: int, epochs: int, *, in_time: bool = True) -> tuple[int, int]:
    """Give how many of the chunks that a node lacks can be there after so many epochs, at most, and how many it lacks.

    ``in_time`` leaves out starts of a block from which the chunk itself would be late; without, they count like the others.
    """
    chunks = np.flatnonzero(network.lacking[:, sink])
    if not len(chunks):
        return 0, 0
    release = network.distance[network.source[chunks]].min(axis=0)
    tail, leave, head, reach, room = _blocks(network, sink, epochs, release, in_time)
    width = epochs + 2
    waits = network.stores.copy()
    waits[network.head[network.window > 1]] = True
    waits[network.tail[network.window > 1]] = True
    sources = np.unique(network.source[chunks])
    keys = np.unique(np.concatenate([tail * width + leave, head * width + reach, sources * width, [sink * width]]))
    node, same = keys // width, np.diff(keys // width) == 0
    stays = np.flatnonzero(same & (waits[node[:-1]]))
    at_sink = int(np.searchsorted(keys, sink * width + width) - 1)
    tails = np.concatenate([np.searchsorted(keys, tail * width + leave), stays]).astype(np.int64)
    heads = np.concatenate([np.searchsorted(keys, head * width + reach), stays + 1]).astype(np.int64)
    capacity = np.concatenate([room, np.full(len(stays), len(chunks))]).astype(np.int64)
    supply = np.zeros(len(keys), dtype=np.int64)
    counts = np.bincount(network.source[chunks], minlength=network.nodes)
    supply[np.searchsorted(keys, sources * width)] = counts[sources]
    flow, _ = FlowNetwork(len(keys), tails, heads).into(at_sink, capacity, supply, len(chunks))
    return flow, len(chunks)


def _blocks(network: EpochNetwork, sink: int, epochs: int, release: Ints, in_time: bool) -> tuple[Ints, ...]:
    """List the blocks of every link: tail, last epoch in it, head, earliest arrival, and how many starts."""
    first = release[network.tail]
    last = epochs - network.delay - network.distance[network.head, sink]
    useful = np.flatnonzero((first <= last) & (first < FAR))
    count = (last - first)[useful] // network.window[useful] + 1
    link = np.repeat(useful, count)
    number = np.arange(len(link)) - np.repeat(np.cumsum(count) - count, count)
    begin = first[link] + number * network.window[link]
    latest = last if in_time else epochs - network.delay
    end = np.minimum(begin + network.window[link] - 1, latest[link])
    return network.tail[link], end, network.head[link], begin + network.delay[link], network.room[link]
