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

from .....core.bounds import EpochWindowPrices
from .....core.schedule import Ints
from ..problem import FAR, EpochNetwork
from .flow import FlowNetwork


@dataclass(frozen=True, eq=False)
class ExpandedCut:
    """Why no schedule has the makespan ``epochs - 1``: a cut over time around ``sink`` through too few blocks.

    Every chunk from outside starts in one of the blocks: with a price of 1 for each of them, these windows prove the same.

    Parameters
    ----------
    epochs : int
        The bound.
    sink : int
        The node.
    link, start : array of int, shape (blocks,)
        The blocks: the link and the first epoch.
    """

    epochs: int
    sink: int
    link: Ints
    start: Ints

    def certificate(self) -> EpochWindowPrices:
        """Give the blocks as windows with prices."""
        ones = (1,) * len(self.link)
        return EpochWindowPrices(self.epochs, (self.sink,), tuple(self.link.tolist()), tuple(self.start.tolist()), ones)


def size(network: EpochNetwork, epochs: int) -> int:
    """Edges of the network expanded in time, at most."""
    return int((epochs // network.window).sum()) + network.nodes * epochs


def improve(network: EpochNetwork, at_least: int, sink: int, below: int) -> tuple[int, ExpandedCut | None]:
    """Raise a bound by flows to one node, epoch by epoch, as long as it is below a number."""
    best, proof = at_least, None
    while best < below and (found := cut_at(network, sink, best)) is not None:
        best, proof = found.epochs, found
    return best, proof


def cut_at(network: EpochNetwork, sink: int, epochs: int) -> ExpandedCut | None:
    """Give the cut that tells why the chunks that a node lacks cannot all be there after so many epochs, None if a flow says that they can."""
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
    capacity = np.concatenate([network.room[link], np.full(len(stays), len(chunks))]).astype(np.int64)
    supply = np.zeros(len(keys), dtype=np.int64)
    counts = np.bincount(network.source[chunks], minlength=network.nodes)
    supply[np.searchsorted(keys, sources * width)] = counts[sources]
    flow, side = FlowNetwork(len(keys), tails, heads).into(at_sink, capacity, supply, len(chunks))
    if flow >= len(chunks):
        return None
    cut = np.flatnonzero(side[heads[: len(link)]] & ~side[tails[: len(link)]])
    return ExpandedCut(epochs + 1, sink, link[cut], begin[cut])


def _blocks(network: EpochNetwork, sink: int, epochs: int, release: Ints) -> tuple[Ints, Ints, Ints]:
    """List the blocks of every link: the link, the first epoch, and the last from which a chunk is in time."""
    first = release[network.tail]
    last = epochs - network.delay - network.distance[network.head, sink]
    useful = np.flatnonzero((first <= last) & (first < FAR))
    count = (last - first)[useful] // network.window[useful] + 1
    link = np.repeat(useful, count)
    number = np.arange(len(link)) - np.repeat(np.cumsum(count) - count, count)
    begin = first[link] + number * network.window[link]
    return link, begin, np.minimum(begin + network.window[link] - 1, last[link])
