"""Trees on the real links: a path for every edge of every tree, made again from the log of splits (ForestColl, appendix C.3).

Where the copies of a tree have to take different paths along an edge, the tree becomes several, one for each combination that
is needed. Copies are handed out so that this is rare: the trees with the most copies choose first.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ....core.schedule import Ints
from ....core.trees import TreeKind, TreePacking
from ..digraph import Digraph, Exact
from ..maxflow import interpreted
from . import growth, replay
from .packing import Forest
from .splitting import Splits

_INTERPRETED = interpreted(replay)


@dataclass(frozen=True, eq=False)
class Wires:
    """The links that the edges of a network are made of.

    Parameters
    ----------
    nodes : int
        Number of nodes.
    tail, head : array of int, shape (links,)
        Ends of every link.
    units : array of int, shape (links,)
        Whole copies of trees that it may carry.
    """

    nodes: int
    tail: Ints
    head: Ints
    units: Exact

    def graph(self) -> Digraph:
        """Give the network; parallel links are one edge."""
        return Digraph.merged(self.nodes, self.tail, self.head, self.units)


def expand(
    wires: Wires,
    log: tuple[Splits, ...],
    forest: Forest,
    members: Ints,
    ranks: Ints,
    instance_sha256: str,
    unit_bytes: Fraction,
) -> TreePacking:
    """Give every tree its links.

    Parameters
    ----------
    wires : Wires
        The links, with the capacities that were split.
    log : tuple of Splits
        How the switches were split off.
    forest : Forest
        Trees of the network without switches.
    members, ranks : array of int, shape (nodes of the forest,)
        Node in the network, and rank, of every node of the forest.
    instance_sha256 : str
        Digest of the instance.
    unit_bytes : Fraction
        What one copy of a tree carries.

    Returns
    -------
    TreePacking
        Out-trees among the positions of the members.
    """
    paths = _Paths(wires, log, forest, members)
    tree, node = _tree_edges(forest)
    edge = forest.into[tree, node]
    served = np.lexsort((tree, -forest.copies[tree].astype(np.float64)))
    use, piece, given = paths.hand_out(edge[served], tree[served], forest.copies[tree[served]])
    whole = np.argsort(served[use], kind="stable")
    row, copies, tree_of = _divided(forest, served[use][whole], given[whole])
    use = served[use][whole][row]
    offset, links = paths.flatten(paths.path[piece[whole][row]])
    parent = forest.graph.tail[edge[use]]
    return TreePacking(
        instance_sha256,
        TreeKind.OUT,
        ranks[forest.root[tree_of]],
        copies,
        unit_bytes,
        np.arange(len(copies) + 1, dtype=np.int64) * (forest.graph.nodes - 1),
        ranks[parent],
        ranks[node[use]],
        offset,
        links,
    )


class _Paths:
    """Queues of pieces with their paths for every edge of the network without switches."""

    def __init__(self, wires: Wires, log: tuple[Splits, ...], forest: Forest, members: Ints) -> None:
        n, self.links = wires.nodes, len(wires.tail)
        wide = wires.units.dtype == object
        self.space: dict[str, Any] = _INTERPRETED if wide else vars(replay)
        into = [s.pairs.source * n + s.switch for s in log]
        out = [s.switch * n + s.pairs.target for s in log]
        past = [np.where(s.pairs.source == s.pairs.target, -1, s.pairs.source * n + s.pairs.target) for s in log]
        logical = members[forest.graph.tail] * n + members[forest.graph.head]
        direct = wires.tail * n + wires.head
        keys = np.unique(np.concatenate([*into, *out, *past, logical, direct]))
        keys = keys[keys >= 0]
        splits = np.empty((sum(len(p) for p in past), 3), dtype=np.int64)
        for column, parts in enumerate((into, out, past)):
            flat = np.concatenate([np.empty(0, np.int64), *parts])
            splits[:, column] = np.where(flat < 0, -1, np.searchsorted(keys, flat))
        dtype = wires.units.dtype
        amounts = np.concatenate([np.empty(0, dtype), *(s.pairs.amount.astype(dtype) for s in log)])
        place = np.searchsorted(keys, direct)
        order = np.flatnonzero(wires.units > 0)
        order = order[np.argsort(place[order], kind="stable")]
        at = place[order]
        begins = np.flatnonzero(np.concatenate([[True], at[1:] != at[:-1]]))
        ends = np.concatenate([begins[1:], [len(at)]]) - 1
        first, last = (np.full(len(keys), -1, dtype=np.int64) for _ in range(2))
        first[at[begins]], last[at[begins]] = begins, ends
        following = np.arange(1, len(at) + 1)
        following[ends] = -1
        self.following, self.amount, self.path, self.left, self.right = self.space["replay"](
            splits, amounts, first, last, following, wires.units[order], order, self.links
        )
        self.first = first[np.searchsorted(keys, logical)]

    def hand_out(self, edges: Ints, trees: Ints, wanted: Exact) -> tuple[Ints, Ints, Exact]:
        """Give every edge of every tree pieces; see :func:`.replay.hand_out`."""
        found: tuple[Ints, Ints, Exact] = self.space["hand_out"](
            edges, trees, wanted, self.first, self.following, self.amount
        )
        return found

    def flatten(self, paths: Ints) -> tuple[Ints, Ints]:
        """Give the links of paths."""
        found: tuple[Ints, Ints] = self.space["flatten"](paths, self.left, self.right, self.links)
        return found


def _tree_edges(forest: Forest) -> tuple[Ints, Ints]:
    """Give tree and lower end of every edge, tree by tree, from the root down."""
    _, depth = growth.heights(forest.into, forest.graph.tail)
    order = np.argsort(depth, axis=1, kind="stable")[:, 1:]
    return np.repeat(np.arange(len(forest)), forest.graph.nodes - 1), order.reshape(-1).astype(np.int64)


def _divided(forest: Forest, use: Ints, given: Exact) -> tuple[Ints, Ints, Ints]:
    """Cut trees where the pieces of one of their edges end.

    Parameters
    ----------
    forest : Forest
        The trees; each has as many uses as edges, tree by tree.
    use, given : array of int, shape (parts,)
        Which use is given how much, use by use.

    Returns
    -------
    row : array of int
        The part that carries every edge of every cut tree.
    copies, tree : array of int, shape (cut trees,)
        Copies of it, and the tree that it comes from.
    """
    starts = np.flatnonzero(np.concatenate([[True], use[1:] != use[:-1]]))
    parts = np.diff(np.concatenate([starts, [len(use)]]))
    sums = np.cumsum(given)
    ends = sums - np.repeat((sums - given)[starts], parts)  # counted in copies of the tree from 0
    edges = forest.graph.nodes - 1
    bounds = np.concatenate([starts[::edges], [len(use)]])
    rows: list[Ints] = []
    copies: list[int] = []
    tree: list[int] = []
    for t in range(len(forest)):
        begin, end = int(bounds[t]), int(bounds[t + 1])
        if end - begin == edges:
            rows.append(np.arange(begin, end))
            copies.append(int(forest.copies[t]))
            tree.append(t)
            continue
        before = 0
        for cut in sorted(set(ends[begin:end].tolist())):
            covers = (ends[begin:end] >= cut) & (ends[begin:end] - given[begin:end] < cut)
            rows.append(begin + np.flatnonzero(covers))
            copies.append(cut - before)
            tree.append(t)
            before = cut
    return np.concatenate(rows), np.array(copies, dtype=np.int64), np.array(tree, dtype=np.int64)
