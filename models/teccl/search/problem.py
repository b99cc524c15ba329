"""The problem that the search solves, in whole epochs: links with delays and windows, chunks with sources and receivers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ....core.schedule import Bools, Ints
from .kernels.distances import all_distances

#: A distance that does not exist; sums of two of them still fit 64 bits.
FAR = 1 << 40


@dataclass(frozen=True, eq=False)
class EpochNetwork:
    """Chunks of one size on a network, with time in epochs.

    A send that starts on link e at epoch k arrives at ``k + delay[e]``; from that epoch on the receiver may pass it on, and a node that does
    not store must pass it on at that very epoch or drop it. A schedule's makespan is its last arrival that somebody needs.

    Parameters
    ----------
    nodes : int
        Number of nodes.
    tail, head : array of int, shape (links,)
        Ends of every link.
    delay : array of int, shape (links,)
        Epochs from start to arrival, at least 0; at least 1 on some link of every cycle.
    window, room : array of int, shape (links,)
        Any ``window`` epochs in a row take at most ``room`` starts; both at least 1.
    stores : array of bool, shape (nodes,)
        Whether the node keeps what it receives: compute nodes.
    copies : array of bool, shape (nodes,)
        Whether a node that does not store may send one arrival on to several links.
    source : array of int, shape (chunks,)
        Who has each chunk at the start: a storing node.
    need : array of bool, shape (chunks, nodes)
        Who must have it in the end: storing nodes.
    """

    nodes: int
    tail: Ints
    head: Ints
    delay: Ints
    window: Ints
    room: Ints
    stores: Bools
    copies: Bools
    source: Ints
    need: Bools

    @property
    def links(self) -> int:
        """Number of links."""
        return len(self.tail)

    @property
    def chunks(self) -> int:
        """Number of chunks."""
        return len(self.source)

    @cached_property
    def held(self) -> Bools:
        """Who has each chunk at the start; shape (chunks, nodes)."""
        held = np.zeros(self.need.shape, dtype=np.bool_)
        held[np.arange(self.chunks), self.source] = True
        return held

    @cached_property
    def lacking(self) -> Bools:
        """Who needs a chunk without having it; shape (chunks, nodes)."""
        return np.asarray(self.need & ~self.held, dtype=np.bool_)

    @cached_property
    def distance(self) -> Ints:
        """Fewest epochs from node to node, ``FAR`` where there is no way; shape (nodes, nodes)."""
        return np.asarray(all_distances(self.nodes, self.tail, self.head, self.delay, FAR))

    @cached_property
    def diameter(self) -> int:
        """The farthest way that a chunk must go: no schedule is shorter."""
        return int(self.distance[self.source][self.lacking].max(initial=0))
