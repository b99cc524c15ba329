"""Closed form of the time of a forest whose trees are cut into pieces that follow each other.

With C pieces a tree, every tree sends a piece along an edge in F / C, where F is the flow time, that of the most loaded link: so every link
serves all of its trees at their constant rates. The edges of a tree work one after the other for a piece and side by side for different ones. A leaf
that k edges of latencies l_1, ..., l_k lead to has the last piece after ``sum l + (k - 1 + C) F / C``; each piece but the first costs one
start-up more, the largest latency of an edge:

``T(C) = max over trees and leaves (sum l + (k - 1 + C) F / C) + (C - 1) max l``.

The latency of an edge is that of its path. In an in-out tree, the reduction and the broadcast are one pipeline: latencies and edges of both add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ...core.errors import InputError
from ...core.instance import Instance
from ...core.schedule import Floats, Ints
from ...core.trees import TreePacking
from ..tree_levels import edges_above, from_root
from ..verify import heaviest_load
from .network import network_of, wires

#: Numbers of pieces that are tried.
PIECES = tuple(2**k for k in range(11))


@dataclass(frozen=True, eq=False)
class Front:
    """The leaves of every tree that can be the last, whatever the flow time is: no other is as far in both edges and latency.

    Parameters
    ----------
    tree, offset : array of int, shape (trees,)
        The trees that have edges, and where the leaves of each begin.
    edges : array of int, shape (leaves,)
        Number of edges from the root, most first within a tree.
    latency_s : array of float, shape (leaves,)
        Latency of all of them.
    """

    tree: Ints
    offset: Ints
    edges: Ints
    latency_s: Floats


@dataclass(frozen=True, eq=False)
class Pipeline:
    """What the time of a forest depends on, for any number of pieces and any size.

    Parameters
    ----------
    flow_s : Fraction
        Seconds that the most loaded link needs.
    size_bytes : Fraction
        Size of the (first) collective, to which the flow time is proportional.
    trees : int
        Number of trees.
    fronts : tuple of Front
        One for each way that the data takes: two for in-out trees.
    startup_s : float
        Largest latency of an edge.
    """

    flow_s: Fraction
    size_bytes: Fraction
    trees: int
    fronts: tuple[Front, ...]
    startup_s: float

    @property
    def heights(self) -> Ints:
        """Number of edges between each root and the rank farthest from it; of in-out trees on the way that is longer."""
        most = np.zeros(self.trees, dtype=np.int64)
        for front in self.fronts:
            most[front.tree] = np.maximum(most[front.tree], front.edges[front.offset])
        return most

    def seconds(self, pieces: int, flow_s: Sequence[float] | None = None) -> Floats:
        """Time with so many pieces a tree, for one or several flow times.

        Parameters
        ----------
        pieces : int
            Equal pieces of every tree.
        flow_s : sequence of float, optional
            Flow times in seconds; that of the forest by default.
        """
        flow = np.array([float(self.flow_s)] if flow_s is None else flow_s, dtype=np.float64)
        if not any(len(front.edges) for front in self.fronts):
            return np.zeros(len(flow))
        piece_s = flow[:, None] / pieces
        reach_s = np.zeros((len(flow), self.trees))
        for front in self.fronts:
            leaf_s = front.latency_s + front.edges * piece_s
            if len(front.tree):
                reach_s[:, front.tree] += np.maximum.reduceat(leaf_s, front.offset, axis=1)
        return np.asarray(reach_s.max(axis=1) + (pieces - 1) * (piece_s[:, 0] + self.startup_s), dtype=np.float64)

    def best(self, sizes_bytes: Sequence[Fraction | int | float] | None = None) -> tuple[Floats, Ints]:
        """Give the least time and its number of pieces, the smallest if there are several, for one or several sizes.

        Parameters
        ----------
        sizes_bytes : sequence of numbers, optional
            Sizes of the collective; by default its own.

        Returns
        -------
        array of float, shape (sizes,)
            Seconds.
        array of int, shape (sizes,)
            Pieces, one of :data:`PIECES`.
        """
        sizes = [self.size_bytes] if sizes_bytes is None else [Fraction(size) for size in sizes_bytes]
        flow = [float(self.flow_s * size / self.size_bytes) for size in sizes]
        table = np.array([self.seconds(pieces, flow) for pieces in PIECES])
        chosen = table.argmin(axis=0)
        return table[chosen, np.arange(len(flow))], np.array(PIECES, dtype=np.int64)[chosen]


def pipeline(instance: Instance, packing: TreePacking, flow_s: Fraction | None = None) -> Pipeline:
    """Measure a forest for its time in pieces.

    Parameters
    ----------
    instance : Instance
        The problem, with an explicit network and a collective.
    packing : TreePacking
        Trees that the verifier finds right.
    flow_s : Fraction, optional
        :func:`~cwb.schedules.verify.heaviest_load` of the forest, if it is known already.

    Raises
    ------
    InputError
        If the instance has no explicit network or no collective, or a path names a link that does not exist.
    """
    if instance.demand is None:
        raise InputError("expected a collective", place="collective")
    latency_s = wires(network_of(instance)).latency_s
    flow_s = heaviest_load(instance, packing) if flow_s is None else flow_s
    fronts, startup_s = [], 0.0
    for part in packing.passes:
        edge_s = np.zeros(0)
        if len(part.path_links):
            edge_s = np.asarray(np.add.reduceat(latency_s[part.path_links], part.path_offset[:-1]), dtype=np.float64)
        startup_s = max(startup_s, float(edge_s.max(initial=0.0)))
        fronts.append(_front(part, edge_s))
    return Pipeline(flow_s, instance.demand.size_bytes, len(packing), tuple(fronts), startup_s)


def _front(packing: TreePacking, edge_s: Floats) -> Front:
    """Find the leaves of every tree that can be the last."""
    above = edges_above(packing)
    edges, latency_s = from_root(above, edge_s)
    leaf = np.ones(len(above), dtype=np.bool_)
    leaf[above[above >= 0]] = False
    tree = np.repeat(np.arange(len(packing)), np.diff(packing.edge_offset))[leaf]
    edges, latency_s = edges[leaf], latency_s[leaf]
    order = np.lexsort((-latency_s, -edges, tree))
    tree, edges, latency_s = tree[order], edges[order], latency_s[order]
    # Deepest first: a leaf counts if its latency is above that of all before it in its tree. Ranks of latencies keep trees apart.
    values, rank = np.unique(latency_s, return_inverse=True)
    key = tree * (len(values) + 1) + rank
    kept = key > np.concatenate([[-1], np.maximum.accumulate(key)[:-1]])[: len(key)]
    tree, edges, latency_s = tree[kept], edges[kept], latency_s[kept]
    offset = np.flatnonzero(np.diff(tree, prepend=-1))
    return Front(tree[offset], offset, edges, latency_s)
