"""Trees as sends: every edge carries the data of its tree in equal pieces, one after the other."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ...core.schedule import Floats, Ints, Sends
from ...core.topology import Topology
from ...core.trees import TreeKind, TreePacking


def tree_sends(topology: Topology, packing: TreePacking, pieces: int) -> tuple[Sends, Floats, Ints]:
    """Cut the data of every tree into pieces and send each along the tree.

    Parameters
    ----------
    topology : Topology
        The network of the paths.
    packing : TreePacking
        The trees.
    pieces : int
        Number of equal pieces per tree.

    Returns
    -------
    Sends
        Piece by piece, and for each piece the edges in the order of the packing; for in-out trees first all reductions.
        Chunk ``p * trees + t`` is piece p of tree t.
    array of float
        Size of every chunk in bytes.
    array of int
        Level of every send: its depth in an out-tree, counted from the deepest edge in an in-tree.
    """
    trees = len(packing)
    tree = np.repeat(np.arange(trees), np.diff(packing.edge_offset))
    depth = edge_depths(packing)
    deepest = int(depth.max(initial=-1))
    node = np.array(topology.rank_nodes, dtype=np.int64)
    parent, child = node[packing.parent], node[packing.child]
    paths = packing.path_offset, packing.path_links
    if packing.kind is TreeKind.OUT:
        parts, level = [_one_way(tree, parent, child, *paths, reduce=False)], depth
    else:
        parts, level = [_one_way(tree, child, parent, *paths, reduce=True)], deepest - depth
    if packing.back_offset is not None and packing.back_links is not None:
        parts = [
            _one_way(tree, child, parent, packing.back_offset, packing.back_links, reduce=True),
            _one_way(tree, parent, child, *paths, reduce=False),
        ]
        level = np.concatenate([deepest - depth, deepest + 1 + depth])
    whole = np.asarray(packing.units * float(packing.unit_bytes), dtype=np.float64)
    return _repeated(_joined(parts), pieces, trees), np.tile(whole / pieces, pieces), np.tile(level, pieces)


def edge_depths(packing: TreePacking) -> Ints:
    """Number of edges between each edge and the root of its tree."""
    depth: list[int] = []
    parents, children = packing.parent.tolist(), packing.child.tolist()
    offsets = packing.edge_offset.tolist()
    for first, end in pairwise(offsets):
        below: dict[int, int] = {}
        for edge in range(first, end):
            here = below.get(parents[edge], 0)
            below[children[edge]] = here + 1
            depth.append(here)
    return np.array(depth, dtype=np.int64)


def _one_way(tree: Ints, source: Ints, target: Ints, offset: Ints, links: Ints, *, reduce: bool) -> Sends:
    """Sends of all edges in one direction."""
    return Sends(tree, source, target, np.full(len(tree), reduce), offset, links)


def _joined(parts: list[Sends]) -> Sends:
    """Put sends behind each other."""
    hops = np.concatenate([part.hops for part in parts])
    return Sends(
        np.concatenate([part.chunk for part in parts]),
        np.concatenate([part.source for part in parts]),
        np.concatenate([part.target for part in parts]),
        np.concatenate([part.reduce for part in parts]),
        np.concatenate([[0], np.cumsum(hops)]).astype(np.int64),
        np.concatenate([part.path_links for part in parts]),
    )


def _repeated(sends: Sends, pieces: int, trees: int) -> Sends:
    """Send every piece as the first one."""
    return Sends(
        (sends.chunk + np.arange(pieces)[:, None] * trees).ravel(),
        np.tile(sends.source, pieces),
        np.tile(sends.target, pieces),
        np.tile(sends.reduce, pieces),
        np.concatenate([[0], np.cumsum(np.tile(sends.hops, pieces))]).astype(np.int64),
        np.tile(sends.path_links, pieces),
    )
