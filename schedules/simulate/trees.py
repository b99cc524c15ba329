"""Trees as sends: every edge carries the data of its tree in equal pieces in turn."""

from __future__ import annotations

import numpy as np

from ...core.ragged import offsets
from ...core.schedule import Floats, Ints, Sends
from ...core.topology import Topology
from ...core.trees import TreeKind, TreePacking
from ..tree_levels import edge_depths


def tree_sends(topology: Topology | None, packing: TreePacking, pieces: int | Ints) -> tuple[Sends, Floats, Ints]:
    """Cut the data of every tree into pieces and send each along the tree.

    Parameters
    ----------
    topology : Topology or None
        The network of the paths; without it nodes are ranks.
    pieces : int or array of int, shape (trees,)
        Number of equal pieces per tree, common or for each.

    Returns
    -------
    Sends
        Piece by piece, and for each piece the edges in the order of the packing; for in-out trees first all
        reductions. Chunk ``p * trees + t`` is piece p of tree t, if it has so many.
    array of float
        Size of every chunk in bytes.
    array of int
        Level of every send: its depth in an out-tree, counted from the deepest edge in an in-tree.
    """
    known = range(1 + max(int(part.child.max(initial=part.root.max(initial=-1))) for part in packing.passes))
    node = np.array(known if topology is None else topology.tree_nodes, dtype=np.int64)
    parts, levels, above = [], [], 0
    for part in packing.passes:
        depth = edge_depths(part)
        below = int(depth.max(initial=-1)) + 1
        inward = part.kind is TreeKind.IN
        parts.append(_one_way(part, node, reduce=inward))
        levels.append(above + (below - 1 - depth if inward else depth))
        above += below
    whole = np.asarray(packing.units * float(packing.unit_bytes), dtype=np.float64)
    number = np.broadcast_to(np.asarray(pieces, dtype=np.int64), len(packing))
    most = int(number.max(initial=1))
    sends, level = _repeat_sends(_concatenate_sends(parts), most, len(packing)), np.tile(np.concatenate(levels), most)
    if (number < most).any():
        kept = sends.chunk // len(packing) < number[sends.chunk % len(packing)]
        sends, level = sends.take(kept), level[kept]
    return sends, np.tile(whole / number, most), level


def _one_way(packing: TreePacking, node: Ints, *, reduce: bool) -> Sends:
    """Return sends for all edges of out-trees or in-trees."""
    tree = packing.edge_tree
    parent, child = node[packing.parent], node[packing.child]
    source, target = (child, parent) if reduce else (parent, child)
    return Sends(tree, source, target, np.full(len(tree), reduce), packing.path_offset, packing.path_links)


def _concatenate_sends(parts: list[Sends]) -> Sends:
    """Concatenate columns of sends."""
    hops = np.concatenate([part.hops for part in parts])
    return Sends(
        np.concatenate([part.chunk for part in parts]),
        np.concatenate([part.source for part in parts]),
        np.concatenate([part.target for part in parts]),
        np.concatenate([part.reduce for part in parts]),
        offsets(hops),
        np.concatenate([part.path_links for part in parts]),
    )


def _repeat_sends(sends: Sends, pieces: int, trees: int) -> Sends:
    """Repeat the sends of the first piece for all pieces."""
    return Sends(
        (sends.chunk + np.arange(pieces)[:, None] * trees).ravel(),
        np.tile(sends.source, pieces),
        np.tile(sends.target, pieces),
        np.tile(sends.reduce, pieces),
        offsets(np.tile(sends.hops, pieces)),
        np.tile(sends.path_links, pieces),
    )
