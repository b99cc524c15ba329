"""Trees on the real links: a path for every edge, from the log of splits (ForestColl, appendix C.3).

If copies of a tree take different paths along an edge, the tree is divided, one tree per combination in use. To
make this rare, the trees with the most copies choose first.

Capacity is kept as pieces, each with an amount and a path, in one queue per edge. A path is a link, or two paths in
a row; links are numbered from 0, and path ``links + i`` is the i-th pair in ``left`` and ``right``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ...core.kernel import kernel
from ...core.schedule import Ints
from ...core.trees import TreeKind, TreePacking
from ..graphs.network import Exact, Network, distinct, exact_array, kernel_for
from .kernels import heights
from .packing import SpanningTrees
from .splitting import SwitchSplits


@dataclass(frozen=True, eq=False)
class ParallelLinks:
    """Links with capacities in copies of trees; parallel links are kept apart."""

    nodes: int
    tail: Ints
    head: Ints
    units: Exact  #: (links,) capacity in whole copies of trees

    def graph(self) -> Network:
        """Return the network with parallel links merged into one edge."""
        return Network.from_parallel_edges(self.nodes, self.tail, self.head, self.units)


@dataclass(frozen=True, eq=False)
class Pieces:
    """Capacity of the edges of a network without switches, in pieces that each have a path."""

    first: Ints  #: (edges,) first piece of every edge, -1 for none
    following: Ints  #: (pieces,) next piece of the same edge
    amount: Exact  #: (pieces,) number of copies
    path: Ints  #: (pieces,) a link if less than ``links``; path ``links + i`` is ``left[i]`` and ``right[i]`` in a row
    left: Ints
    right: Ints
    links: int


def trace_splits(wires: ParallelLinks, log: tuple[SwitchSplits, ...], graph: Network, members: Ints) -> Pieces:
    """Replay the log of splits, from the links to the edges of ``graph``, of nodes ``members`` in the network."""
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
    following, amount, path, left, right = kernel_for(replay, dtype)(
        splits, amounts, first, last, following, wires.units[link], link, links
    )
    return Pieces(first[np.searchsorted(keys, edges)], following, amount, path, left, right, links)


def assign_paths(graph: Network, paths: Sequence[Sequence[tuple[Sequence[int], int]]], links: int) -> Pieces:
    """Build pieces from explicit paths of every edge, each with its links and copies."""
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


def expand(
    pieces: Pieces, forest: SpanningTrees, ranks: Ints, instance_sha256: str, unit_bytes: Fraction
) -> TreePacking:
    """Route every tree over links; one copy of a tree carries ``unit_bytes``."""
    # Tree and lower end of every edge, tree by tree, from the root down.
    _, depth = heights(forest.into, forest.graph.tail)
    node = np.argsort(depth, axis=1, kind="stable")[:, 1:].reshape(-1)
    tree = np.repeat(np.arange(len(forest)), forest.graph.nodes - 1)
    edge = forest.into[tree, node]
    served = np.lexsort((tree, -forest.copies[tree].astype(np.float64)))
    demand = forest.copies[tree[served]]
    exact = np.result_type(demand, pieces.amount)  # trees may be counted in wider numbers than links
    use, piece, amount = kernel_for(hand_out, exact)(
        edge[served], demand.astype(exact), pieces.first, pieces.following, pieces.amount.astype(exact)
    )
    whole = np.argsort(served[use], kind="stable")
    row, copies, tree_of = _cut_trees(forest, served[use][whole], amount[whole])
    use = served[use][whole][row]
    offset, links = flatten(pieces.path[piece[whole][row]], pieces.left, pieces.right, pieces.links)
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
    """Return first and last piece of every owner, and the next of every piece; owners are contiguous."""
    begins = np.flatnonzero(np.diff(owner, prepend=-1))
    ends = np.append(begins[1:], len(owner)) - 1
    first, last = (np.full(count, -1, dtype=np.int64) for _ in range(2))
    first[owner[begins]], last[owner[begins]] = begins, ends[: len(begins)]
    following = np.arange(1, len(owner) + 1)
    following[ends[: len(begins)]] = -1
    return first, last, following


def _cut_trees(forest: SpanningTrees, use: Ints, amount: Exact) -> tuple[Ints, Ints, Ints]:
    """Divide trees where the pieces of one of their edges end.

    ``use`` and ``amount`` are use and amount of every part, use by use; each tree has as many uses as edges, tree by
    tree. Return the part for every edge of every resulting tree, and the copies and original tree of each.
    """
    starts = np.flatnonzero(np.concatenate([[True], use[1:] != use[:-1]]))
    parts = np.diff(np.concatenate([starts, [len(use)]]))
    sums = np.cumsum(amount)
    ends = sums - np.repeat((sums - amount)[starts], parts)  # counted in copies of the tree from 0
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
            covers = (ends[begin:end] >= cut) & (ends[begin:end] - amount[begin:end] < cut)
            rows.append(begin + np.flatnonzero(covers))
            copies.append(cut - before)
            tree.append(t)
            before = cut
    return np.concatenate(rows), np.array(copies, dtype=np.int64), np.array(tree, dtype=np.int64)


@kernel
def replay(
    splits: Any, amounts: Any, first: Any, last: Any, following: Any, piece_amount: Any, piece_path: Any, links: int
) -> tuple[Any, Any, Any, Any, Any]:
    """Replay splits: take pieces from two edges' queues, join their paths, and queue them at the third.

    A split is a row of edge to the switch, edge from it, and edge past it, -1 where that would be a loop; it moves its
    entry of ``amounts``. ``first`` and ``last`` are the ends of every edge's queue, -1 for none, and are changed;
    ``following``, ``piece_amount`` and ``piece_path`` are next piece, amount and path of every piece. Return these
    three after all splits, and the pairs of paths (left, right).
    """
    nxt, amount, path = list(following), list(piece_amount), list(piece_path)
    left, right = [0 for _ in range(0)], [0 for _ in range(0)]
    for s in range(len(splits)):
        into, out, past = splits[s]
        rest = amounts[s]
        while rest > 0:
            a, b = first[into], first[out]
            if a < 0 or b < 0:
                break  # a split of more than there is: what is missing shows when the paths are counted
            copies = min(rest, amount[a], amount[b])
            rest -= copies
            amount[a] -= copies
            amount[b] -= copies
            if past >= 0:
                if first[past] < 0:
                    first[past] = len(nxt)
                else:
                    nxt[last[past]] = len(nxt)
                last[past] = len(nxt)
                nxt.append(-1)
                amount.append(copies)
                path.append(links + len(left))
                left.append(path[a])
                right.append(path[b])
            if amount[a] == 0:
                first[into] = nxt[a]
            if amount[b] == 0:
                first[out] = nxt[b]
    return (
        _array(nxt, following),
        _array(amount, piece_amount),
        _array(path, following),
        _array(left, following),
        _array(right, following),
    )


@kernel
def _array(values: Any, like: Any) -> Any:
    """Return a list as an array with the type of another one."""
    array = np.empty(len(values), like.dtype)
    for place in range(len(values)):
        array[place] = values[place]
    return array


@kernel
def hand_out(edges: Any, copies: Any, first: Any, following: Any, amount: Any) -> tuple[Any, Any, Any]:
    """Assign pieces of an edge's capacity, in copies, to every tree that uses the edge.

    Uses come in the order of assignment, and take the smallest piece that is large enough, if there is one; ``amount``
    is changed. Return use, piece and amount of every assigned part.
    """
    use, piece, part = [0 for _ in range(0)], [0 for _ in range(0)], list(amount[:0])
    for i in range(len(edges)):
        rest = copies[i]
        while rest > 0:
            best = -1
            at = first[edges[i]]
            while at >= 0:
                have = amount[at]
                if have > 0:
                    if best < 0:
                        best = at
                    elif have >= rest:
                        if amount[best] < rest or have < amount[best]:
                            best = at
                    elif have > amount[best]:
                        best = at
                    if have == rest:
                        best = at
                        break
                at = following[at]
            if best < 0:
                break  # more than there is: the verifier will see that the tree does not carry all
            size = min(rest, amount[best])
            use.append(i)
            piece.append(best)
            part.append(size)
            amount[best] -= size
            rest -= size
    return _array(use, first), _array(piece, first), _array(part, amount)


@kernel
def flatten(paths: Any, left: Any, right: Any, links: int) -> tuple[Any, Any]:
    """Return the links of paths, one after the other, and their offsets, one more than paths."""
    offset, row = np.zeros(len(paths) + 1, np.int64), [0 for _ in range(0)]
    for i in range(len(paths)):
        stack = [paths[i]]
        while len(stack) > 0:
            path = stack.pop()
            if path < links:
                row.append(path)
            else:
                stack.append(right[path - links])
                stack.append(left[path - links])
        offset[i + 1] = len(row)
    return offset, _array(row, offset)
