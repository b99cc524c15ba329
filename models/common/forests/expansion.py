"""Trees on the real links: a path for every edge of every tree, made again from the log of splits (ForestColl, appendix C.3).

Where the copies of a tree have to take different paths along an edge, the tree becomes several, one for each combination that
is needed. Copies are handed out so that this is rare: the trees with the most copies choose first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ....core.schedule import Ints
from ....core.trees import TreeKind, TreePacking
from ..compiled import functions
from ..digraph import Digraph, Exact, distinct, exact_array
from . import growth, replay
from .packing import Forest
from .splitting import Splits


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


class Pieces:
    """Capacity of the edges of a network without switches, in pieces that each have a path.

    Parameters
    ----------
    first : array of int, shape (edges,)
        First piece of every edge, -1 for none.
    following, amount, path : array, shape (pieces,)
        Next piece of the same edge, how many copies, and which path.
    left, right : array of int
        Paths that are two in a row; path ``links + i`` is the i-th.
    links : int
        Number of links; smaller numbers of paths are links.
    """

    def __init__(
        self, first: Ints, following: Ints, amount: Exact, path: Ints, left: Ints, right: Ints, links: int
    ) -> None:
        self.first, self.following, self.amount, self.path = first, following, amount, path
        self.left, self.right, self.links = left, right, links

    def hand_out(self, edges: Ints, trees: Ints, wanted: Exact) -> tuple[Ints, Ints, Exact]:
        """Give every edge of every tree pieces; see :func:`.replay.hand_out`."""
        exact = np.result_type(wanted, self.amount)  # trees may be counted in wider numbers than links
        self.amount = self.amount.astype(exact)
        found: tuple[Ints, Ints, Exact] = functions(replay, exact)["hand_out"](
            edges, trees, wanted.astype(exact), self.first, self.following, self.amount
        )
        return found

    def flatten(self, paths: Ints) -> tuple[Ints, Ints]:
        """Give the links of paths."""
        found: tuple[Ints, Ints] = replay.flatten(paths, self.left, self.right, self.links)
        return found


def replayed(wires: Wires, log: tuple[Splits, ...], graph: Digraph, members: Ints) -> Pieces:
    """Follow the log of splits from the links to the edges that they have become.

    Parameters
    ----------
    wires : Wires
        The links, with the capacities that were split.
    log : tuple of Splits
        How the switches were split off.
    graph : Digraph
        The network without switches.
    members : array of int, shape (nodes of the graph,)
        Node in the network of every node of the graph.
    """
    n, links, dtype = wires.nodes, len(wires.tail), wires.units.dtype
    into = [s.pairs.source * n + s.switch for s in log]
    out = [s.switch * n + s.pairs.target for s in log]
    past = [np.where(s.pairs.source == s.pairs.target, -1, s.pairs.source * n + s.pairs.target) for s in log]
    edges, direct = members[graph.tail] * n + members[graph.head], wires.tail * n + wires.head
    keys = distinct(np.concatenate([*into, *out, *past, edges, direct]))
    keys = keys[keys >= 0]
    splits = np.empty((sum(len(part) for part in past), 3), dtype=np.int64)
    for column, parts in enumerate((into, out, past)):
        flat = np.concatenate([np.empty(0, np.int64), *parts])
        splits[:, column] = np.where(flat < 0, -1, np.searchsorted(keys, flat))
    amounts = np.concatenate([np.empty(0, dtype), *(s.pairs.amount.astype(dtype) for s in log)])
    link = np.flatnonzero(wires.units > 0)
    link = link[np.argsort(direct[link], kind="stable")]
    first, last, following = _queues(np.searchsorted(keys, direct[link]), len(keys))
    following, amount, path, left, right = functions(replay, dtype)["replay"](
        splits, amounts, first, last, following, wires.units[link], link, links
    )
    return Pieces(first[np.searchsorted(keys, edges)], following, amount, path, left, right, links)


def along(graph: Digraph, paths: Sequence[Sequence[tuple[Sequence[int], int]]], links: int) -> Pieces:
    """Give every edge its paths.

    Parameters
    ----------
    graph : Digraph
        A network without switches.
    paths : sequence of sequence of (links, copies)
        For every edge of it.
    links : int
        Number of links.
    """
    left: list[int] = []
    right: list[int] = []
    path: list[int] = []
    for one, _ in (piece for pieces in paths for piece in pieces):
        joined, *rest = one
        for link in rest:
            left.append(joined)
            right.append(link)
            joined = links + len(left) - 1
        path.append(joined)
    owner = np.repeat(np.arange(len(graph)), [len(pieces) for pieces in paths])
    first, _, following = _queues(owner, len(graph))
    amount = exact_array(copies for pieces in paths for _, copies in pieces)
    of_piece, before, after = (np.array(column, dtype=np.int64) for column in (path, left, right))
    return Pieces(first, following, amount, of_piece, before, after, links)


def expand(pieces: Pieces, forest: Forest, ranks: Ints, instance_sha256: str, unit_bytes: Fraction) -> TreePacking:
    """Give every tree its links.

    Parameters
    ----------
    pieces : Pieces
        Paths of the edges of the forest's network; used up.
    forest : Forest
        The trees.
    ranks : array of int, shape (nodes of the forest,)
        Rank of every node.
    instance_sha256 : str
        Digest of the instance.
    unit_bytes : Fraction
        What one copy of a tree carries.
    """
    tree, node = _tree_edges(forest)
    edge = forest.into[tree, node]
    served = np.lexsort((tree, -forest.copies[tree].astype(np.float64)))
    use, piece, given = pieces.hand_out(edge[served], tree[served], forest.copies[tree[served]])
    whole = np.argsort(served[use], kind="stable")
    row, copies, tree_of = _divided(forest, served[use][whole], given[whole])
    use = served[use][whole][row]
    offset, links = pieces.flatten(pieces.path[piece[whole][row]])
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


def _queues(owner: Ints, count: int) -> tuple[Ints, Ints, Ints]:
    """Give first and last piece of every owner, and the next one of every piece, where pieces of the same owner are together."""
    begins = np.flatnonzero(np.diff(owner, prepend=-1))
    ends = np.append(begins[1:], len(owner)) - 1
    first, last = (np.full(count, -1, dtype=np.int64) for _ in range(2))
    first[owner[begins]], last[owner[begins]] = begins, ends[: len(begins)]
    following = np.arange(1, len(owner) + 1)
    following[ends[: len(begins)]] = -1
    return first, last, following


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
