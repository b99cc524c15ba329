"""Best breadth-first all-gather of a network: its times, and the split of shards that attains them.

Networks are arrays of links by the node that they enter, with translations if any, and distances.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import InputError, Unsupported
from ...core.schedule import Ints, ranges

MAX_PAIRS = 2**27  #: pairs of a node and one of those whose distances are needed; each takes 2 bytes


@dataclass(frozen=True, eq=False)
class IncomingLinks:
    """Links by the node that they enter."""

    names: Sequence[Any]
    #: (nodes, most links into a node) Start and number of every link into a node, padded with the node itself and -1.
    #: Translations carry the i-th link into a node to the i-th link into another.
    source: Ints
    link: Ints
    degree: int  #: the most links into or out of a node
    #: Translations: the number of a node is a sum of digits times strides, and adding 1 to a digit, modulo its size,
    #: maps links to links. Empty unless translations carry every node to every other one.
    digits: tuple[tuple[int, int], ...]

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.source)

    @cached_property
    def orbit(self) -> Ints:
        """One node per orbit of the translations: node 0, or all nodes if there are no translations."""
        return np.arange(1 if self.digits else self.nodes)

    @cached_property
    def translated_nodes(self) -> Ints:
        """Image of each node (row) under each translation (column); only the identity if there are none."""
        node = np.arange(self.nodes)
        return translate_nodes(node[:, None], node[None, :], self.digits) if self.digits else node[:, None]

    @cached_property
    def nodes_with_distances(self) -> Ints:
        """Nodes with known distances: the orbit, and the sources of the links into it."""
        return np.unique(np.concatenate([self.orbit, self.source[self.orbit].ravel()]))

    @cached_property
    def own(self) -> Ints:
        """Index in ``known`` of every node of the orbit."""
        return np.searchsorted(self.nodes_with_distances, self.orbit)

    @cached_property
    def near(self) -> Ints:
        """Index in ``known`` of the source of every link into the orbit; one row per node."""
        return np.searchsorted(self.nodes_with_distances, self.source[self.orbit])

    @cached_property
    def distance(self) -> NDArray[Any]:
        """Distances in links to the known nodes (rows) from all nodes (columns), all of which must exist."""
        from .kernels import distances

        if (pairs := self.nodes * len(self.nodes_with_distances)) > MAX_PAIRS:
            message = f"{pairs:,} pairs of nodes in a graph without translations; expected at most {MAX_PAIRS:,}"
            raise Unsupported(message)
        zero = np.int16(0) if self.nodes < 2**15 else np.int32(0)
        table: NDArray[Any] = distances(self.source, self.nodes_with_distances, zero)
        apart = (table == 0).sum(axis=1) > 1
        if apart.any():
            row = int(np.argmax(apart))
            b = int(self.nodes_with_distances[row])
            a = next(int(v) for v in np.flatnonzero(table[row] == 0) if v != b)
            message = f"data cannot get from node {self.names[a]!r} to node {self.names[b]!r}"
            raise InputError(message, place="network.links")
        return table

    @cached_property
    def steps(self) -> int:
        """Diameter: the largest distance, in links."""
        return int(max(self.distance[row].max() for row in self.own))

    @property
    def distance_sum(self) -> int:
        """Sum of the distances in links of all pairs, the link uses of an all-to-all."""
        to_orbit = sum(int(self.distance[row].sum(dtype=np.int64)) for row in self.own)
        return to_orbit * (self.nodes // len(self.orbit))


def graph_of(names: Sequence[Any], links: Any) -> IncomingLinks:
    """Sort links, rows of source and target, by the node that they enter; every node needs links in and out."""
    nodes = len(names)
    source, target = np.array(links, dtype=np.int64).reshape(-1, 2).T
    into, out = np.bincount(target, minlength=nodes), np.bincount(source, minlength=nodes)
    for count, where in ((into, "into"), (out, "out of")):
        if not count.all():
            raise InputError(f"node {names[int(np.argmin(count))]!r} has no link {where} it", place="network.links")
    digits = translations(source, target, nodes)
    relative = translate_nodes(source, target, digits, -1) if digits else np.zeros_like(source)
    order = np.lexsort((relative, target))
    slot = ranges(np.zeros_like(into), into)
    sources = np.repeat(np.arange(nodes)[:, None], into.max(), axis=1)
    numbers = np.full_like(sources, -1)
    sources[target[order], slot], numbers[target[order], slot] = source[order], order
    return IncomingLinks(names, sources, numbers, int(max(into.max(), out.max())), digits)


def translate_nodes(node: Ints, by: Ints, digits: tuple[tuple[int, int], ...], sign: int = 1) -> Ints:
    """Add or subtract the digits of other nodes, each modulo its size."""
    parts = ((node // stride + sign * (by // stride)) % size * stride for stride, size in digits)
    return np.asarray(sum(parts, np.int64(0)))


def translations(source: Ints, target: Ints, nodes: int) -> tuple[tuple[int, int], ...]:
    """Find digits (one of rings, one per dimension of tori) whose shifts are automorphisms of all nodes; or none."""
    if len(set(np.bincount(target, minlength=nodes).tolist())) > 1:
        return ()
    edges = np.sort(source * nodes + target)
    node = np.arange(nodes)
    digits: list[tuple[int, int]] = []
    stride = 1
    while stride < nodes:
        rest = nodes // stride
        for size in (rest // k for k in range(1, rest) if rest % k == 0):
            digit = node // stride % size
            shift = node + ((digit + 1) % size - digit) * stride
            few = shift[source[:1]] * len(shift) + shift[target[:1]]  # most shifts already fail at one link
            if (edges[np.minimum(np.searchsorted(edges, few), len(edges) - 1)] == few).all() and np.array_equal(
                np.sort(shift[source] * len(shift) + shift[target]), edges
            ):
                digits.append((stride, size))
                stride *= size
                break
        else:
            return ()
    return tuple(digits)


@dataclass(frozen=True, eq=False)
class PieceRanges:
    """Ranges of pieces of shards, each received over one link in one step."""

    graph: IncomingLinks  #: network, links by entered node
    pieces: int  #: number P of equal pieces of every shard
    #: (shares,) Receiver, owner of the shard, index of the link among those into the receiver, step from 0, first
    #: piece, and end of the pieces (exclusive). Receivers are those of the orbit, or all nodes.
    target: Ints
    source: Ints
    slot: Ints
    step: Ints
    start: Ints
    stop: Ints

    @property
    def link(self) -> Ints:
        """Numbers of the links."""
        return self.graph.link[self.target, self.slot]

    def count_pieces(self) -> Ints:
        """Count the pieces on every link into the receivers; one row per step."""
        link, steps = self.link, int(self.step.max()) + 1
        carried = np.zeros((steps, int(link.max()) + 1), dtype=np.int64)
        np.add.at(carried, (self.step, link), self.stop - self.start)
        return carried

    def bandwidth_time(self) -> Fraction:
        """Return T_B, equation (2), in M/B: the largest load of a link, summed over steps."""
        most = int(self.count_pieces().max(axis=1).sum())
        return Fraction(self.graph.degree * most, self.graph.nodes * self.pieces)

    def everywhere(self) -> "PieceRanges":
        """Translate the shares of the orbit's receivers to all nodes."""
        shifted = self.graph.translated_nodes
        times = shifted.shape[1]
        columns = [shifted[nodes].ravel() for nodes in (self.target, self.source)]
        columns += [np.repeat(column, times) for column in (self.slot, self.step, self.start, self.stop)]
        return PieceRanges(self.graph, self.pieces, *columns)

    def single_pieces(self) -> "PieceRanges":
        """Split every share into single pieces."""
        length = self.stop - self.start
        start = ranges(self.start, length)
        columns = [np.repeat(column, length) for column in (self.target, self.source, self.slot, self.step)]
        return PieceRanges(self.graph, self.pieces, *[*columns, start, start + 1])


@dataclass(frozen=True, eq=False)
class Broadcast:
    """Times and shares of breadth-first broadcasts from all nodes of a network.

    All raise InputError if some node cannot reach another one, and Unsupported for too many pairs of nodes.
    """

    graph: IncomingLinks

    @property
    def steps(self) -> int:
        """Number of steps, T_L in units of alpha: the diameter."""
        return len(self.loads)

    @cached_property
    def loads(self) -> tuple[Fraction, ...]:
        """Shards on the busiest link in every step, ``max_u U_{u,t}``."""
        from .kernels import busiest

        graph = self.graph
        above, below = busiest(graph.own, graph.near, graph.distance, graph.steps)
        return tuple(Fraction(int(p), int(q)) for p, q in zip(above, below, strict=True))

    @property
    def pieces(self) -> int:
        """Fewest lossless pieces of a shard: the least common multiple of the loads' denominators."""
        return lcm(*(load.denominator for load in self.loads))

    def bandwidth(self, degree: int | None = None) -> Fraction:
        """Return T_B in M/B, equation (2); ``degree`` links, by default the most, share the bandwidth B of a node."""
        return Fraction(degree or self.graph.degree, self.graph.nodes) * sum(self.loads, Fraction(0))

    def split(self, pieces: int | None = None) -> PieceRanges:
        """Assign at most ``ceil(P U_{u,t})`` pieces of the shards that the orbit receives to each link.

        Shards with the same possible links are cut where the next link takes over. P is by default lossless.
        """
        from .kernels import receive

        graph, pieces = self.graph, self.pieces if pieces is None else pieces
        if pieces * graph.nodes >= 2**62:
            raise Unsupported(f"a shard would have {pieces:,} pieces")
        columns = receive(graph.orbit, graph.own, graph.near, graph.distance, graph.steps, pieces)
        return PieceRanges(graph, pieces, *columns)
