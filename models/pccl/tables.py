"""The arrays that the compiled functions work on."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.schedule import Bools, Ints

Words = NDArray[np.uint64]

#: Starts and parents in a pool: no parent, the source itself.
SOURCE = -1


class Net(NamedTuple):
    """The network that paths are sought in: edges are links, or ways through switches that cannot store.

    Parameters
    ----------
    tail, head : array of int, shape (edges,)
        Nodes that an edge leaves and enters.
    first, leaving : array of int, shape (nodes + 1,) and (edges,)
        Edges by the node that they leave.
    part_first, link : array of int, shape (edges + 1,) and (parts,)
        Links of every edge, in order.
    offset, window : array of int, shape (sizes, parts)
        Ticks after the start of the edge at which a chunk of a size enters the link, and for which it holds it.
    delay : array of int, shape (sizes, edges)
        Ticks from the start to the arrival.
    branches : array of bool, shape (nodes,)
        Whether a node may send on what it has received more often than that; a switch without multicast may not.
    room : array of int, shape (nodes,)
        Units that a switch can hold; -1 without limit.
    units : array of int, shape (sizes,)
        Units of a chunk of every size.
    """

    tail: Ints
    head: Ints
    first: Ints
    leaving: Ints
    part_first: Ints
    link: Ints
    offset: Ints
    window: Ints
    delay: Ints
    branches: Bools
    room: Ints
    units: Ints


class Busy(NamedTuple):
    """When links and buffers are taken.

    Parameters
    ----------
    words : array of uint64, shape (links, words)
        Where every window is one tick: a bit for every tick. Otherwise without columns.
    begin, end, runs : array of int, shape (links, room), (links, room) and (links,)
        Otherwise: sorted busy intervals of every link, which do not touch.
    stay_begin, stay_end, stay_units, stays : array of int, shape (nodes, room), thrice, and (nodes,)
        From the arrival to the last start of what a switch holds, both included; without columns where no switch has a limit.
    """

    words: Words
    begin: Ints
    end: Ints
    runs: Ints
    stay_begin: Ints
    stay_end: Ints
    stay_units: Ints
    stays: Ints


class Jobs(NamedTuple):
    """Conditions (section 6.4.1): a chunk, where it is, and where it must be.

    Parameters
    ----------
    chunk, source, size, release : array of int, shape (jobs,)
        Number of the chunk, the node that has it, its size class, and the tick from which it is there.
    target_first, target : array of int, shape (jobs + 1,) and (targets,)
        Nodes that need it; the source is none of them.
    """

    chunk: Ints
    source: Ints
    size: Ints
    release: Ints
    target_first: Ints
    target: Ints

    @property
    def number(self) -> int:
        """Number of jobs."""
        return len(self.chunk)


class Pool(NamedTuple):
    """Paths of all jobs: sends over edges, each after the one that brings the chunk to its tail.

    Parameters
    ----------
    edge, start, parent : array of int, shape (room,)
        Edge and start tick of every send, and the place of its parent among the job's sends, or :data:`SOURCE`.
    fill : array of int, shape (1,)
        Sends that are in use or were.
    first, length, finish : array of int, shape (jobs,)
        Where a job's sends begin, how many they are, and when the last target has the chunk.
    """

    edge: Ints
    start: Ints
    parent: Ints
    fill: Ints
    first: Ints
    length: Ints
    finish: Ints


class Far(NamedTuple):
    """Distances.

    Parameters
    ----------
    hops, ticks : array of int, shape (nodes, nodes)
        Fewest edges, and fewest ticks of the smallest chunk, from the second node to the first.
    """

    hops: NDArray[np.int32]
    ticks: Ints


class Work(NamedTuple):
    """Scratch space of one search.

    Parameters
    ----------
    arrival, hop, via, start : array of int, shape (nodes,)
        Labels: when and after how many edges a chunk is at a node, by which edge and from which start.
    mark, done, wanted, place, left : array of int, shape (nodes,)
        Stamps of nodes with a label, with the final one, of targets that are still to be reached, of nodes of the tree with their place among the
        job's sends, and the last tick at which the chunk has left a node of the tree.
    inside, tree : array of int, shape (nodes,)
        Stamps of the nodes of the tree, and the nodes.
    key, node : array of int, shape (edges + nodes,)
        The heap.
    walk : array of int, shape (nodes,)
        A path while it is walked back.
    state : array of uint64, shape (1,)
        Random numbers.
    stamp : array of int, shape (4,)
        The current stamps of the search and of the job, the number of nodes in the tree, and of targets that are still to be reached.
    """

    arrival: Ints
    hop: Ints
    via: Ints
    start: Ints
    mark: Ints
    done: Ints
    wanted: Ints
    place: Ints
    left: Ints
    inside: Ints
    tree: Ints
    key: Ints
    node: Ints
    walk: Ints
    state: Words
    stamp: Ints


def work_of(net: Net, seed: int) -> Work:
    """Make scratch space with a seed."""
    nodes, edges = len(net.branches), len(net.tail)
    names = set(Work._fields) - {"state"}
    lengths = dict.fromkeys(names, nodes) | {"key": edges + nodes, "node": edges + nodes, "stamp": 4}
    columns: dict[str, Any] = {name: np.zeros(lengths[name], dtype=np.int64) for name in names}
    state = np.array([(seed * 0x9E3779B97F4A7C15 + 0x1234567) % 2**64 | 1], dtype=np.uint64)
    return Work(**columns, state=state)


def empty_pool(jobs: int, room: int) -> Pool:
    """Make a pool without sends."""
    edge, start, parent = (np.zeros(room, dtype=np.int64) for _ in range(3))
    first, length, finish = (np.zeros(jobs, dtype=np.int64) for _ in range(3))
    return Pool(edge, start, parent, np.zeros(1, dtype=np.int64), first, length, finish)
