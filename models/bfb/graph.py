"""Networks as columns: links by the node that they enter, distances of all pairs, and translations where there are any."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...core.errors import InputError
from ...core.schedule import Ints
from ...core.topology import Topology


@dataclass(frozen=True, eq=False)
class Graph:
    """Links by the node that they enter.

    Parameters
    ----------
    source, link : array of int, shape (nodes, most links into a node)
        Start and number of every link into a node; where a node has fewer, its own number and -1. If there are translations, they
        carry the i-th link into a node to the i-th link into another.
    degree : int
        The most links into or out of a node.
    digits : tuple of (stride, size)
        Translations: the number of a node is a sum of digits times strides, and adding 1 to a digit, modulo its size, carries links to
        links. Empty if none were found that reach every node from every other one.
    """

    source: Ints
    link: Ints
    degree: int
    digits: tuple[tuple[int, int], ...]

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.source)

    @cached_property
    def orbit(self) -> Ints:
        """Nodes that translations carry to all others: node 0, or everybody where there are none."""
        return np.arange(1 if self.digits else self.nodes)

    @cached_property
    def shifted(self) -> Ints:
        """Node that each translation (column) carries each node (row) to; the identity alone where there are none."""
        node = np.arange(self.nodes)
        return moved(node[:, None], node[None, :], self.digits) if self.digits else node[:, None]


def graph_of(topology: Topology) -> Graph:
    """Sort the links of a network by the node that they enter.

    Raises
    ------
    InputError
        If a node has no link into it or out of it.
    """
    nodes = len(topology.nodes)
    source, target = np.array(topology.link_ends, dtype=np.int64).reshape(-1, 2).T
    into, out = np.bincount(target, minlength=nodes), np.bincount(source, minlength=nodes)
    if not (into.all() and out.all()):
        name = topology.nodes[int(np.flatnonzero((into == 0) | (out == 0))[0])].name
        raise InputError(f"node {name!r} has no link into it or none out of it", place="network.links")
    digits = translations(source, target, nodes)
    relative = moved(source, target, digits, -1) if digits else np.zeros_like(source)
    order = np.lexsort((relative, target))
    slot = np.arange(len(order)) - np.repeat(np.cumsum(into) - into, into)
    sources = np.repeat(np.arange(nodes)[:, None], into.max(), axis=1)
    links = np.full_like(sources, -1)
    sources[target[order], slot], links[target[order], slot] = source[order], order
    return Graph(sources, links, int(max(into.max(), out.max())), digits)


def moved(node: Ints, by: Ints, digits: tuple[tuple[int, int], ...], sign: int = 1) -> Ints:
    """Add, or subtract, the digits of other nodes, each modulo its size."""
    parts = ((node // stride + sign * (by // stride)) % size * stride for stride, size in digits)
    return np.asarray(sum(parts, np.int64(0)))


def translations(source: Ints, target: Ints, nodes: int) -> tuple[tuple[int, int], ...]:
    """Find digits whose shifts are automorphisms, the largest first; such a graph looks the same from every node.

    Rings and circulant graphs have one digit, tori and hypercubes one for each dimension.

    Returns
    -------
    tuple of (stride, size)
        Digits that number all nodes, or none.
    """
    edges = np.sort(source * nodes + target)
    node = np.arange(nodes)
    digits: list[tuple[int, int]] = []
    stride = 1
    while stride < nodes:
        left = nodes // stride
        for size in (left // k for k in range(1, left) if left % k == 0):
            digit = node // stride % size
            shift = node + ((digit + 1) % size - digit) * stride
            if np.array_equal(np.sort(shift[source] * nodes + shift[target]), edges):
                digits.append((stride, size))
                stride *= size
                break
        else:
            return ()
    return tuple(digits)


def distances_to(graph: Graph, targets: Ints) -> NDArray[np.int32]:
    """Distances in links from all nodes to some.

    All searches run at once, a bit for each pair: a pair's distance is the number of steps in which it has not been reached, and these
    are counted in binary, each digit of all counters in an array of bits.

    Parameters
    ----------
    graph : Graph
        The network.
    targets : array of int
        Nodes.

    Returns
    -------
    array of int, shape (nodes, targets)

    Raises
    ------
    InputError
        If a target cannot be reached from a node.
    """
    onward = _onward(graph)
    reached = np.packbits(np.arange(graph.nodes)[:, None] == targets[None, :], axis=1)
    everything = np.packbits(np.ones(len(targets), dtype=np.bool_))
    counters: list[NDArray[np.uint8]] = []
    while (missing := everything & ~reached).any():
        for place, bits in enumerate(counters):
            counters[place], missing = bits ^ missing, bits & missing
        if missing.any():
            counters.append(missing)
        grown = reached.copy()
        for column in onward.T:
            grown |= reached[column]
        if np.array_equal(grown, reached):
            raise InputError("data cannot reach every node from every other one", place="network.links")
        reached = grown
    distance = np.zeros((graph.nodes, len(targets)), dtype=np.int32)
    for place, bits in enumerate(counters):
        distance += np.unpackbits(bits, axis=1, count=len(targets)).astype(np.int32) << place
    return distance


def _onward(graph: Graph) -> Ints:
    """Nodes that each node has links to, one row a node; filled up with the node itself."""
    target, slot = np.nonzero(graph.link >= 0)
    source = graph.source[target, slot]
    order = np.argsort(source, kind="stable")
    count = np.bincount(source, minlength=graph.nodes)
    onward = np.repeat(np.arange(graph.nodes)[:, None], count.max(), axis=1)
    place = np.arange(len(order)) - np.repeat(np.cumsum(count) - count, count)
    onward[source[order], place] = target[order]
    return onward
