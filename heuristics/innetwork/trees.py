"""Trees one after the other: each a cheapest one where links are dear that earlier ones have used."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from ...core.budget import Budget
from ...core.kernel import kernel
from ...core.ragged import offsets, ranges
from ...core.schedule import Bools, Floats, Ints
from ...core.trees import TreeKind, TreePacking
from .edges import TreeEdges

#: How much dearer a link is that is full at the best rate there may be than an idle one, as a power of e.
_STEEP = 8.0

#: Powers of e beyond this are not told apart.
_HIGHEST = 600.0


def share_out(edges: TreeEdges, rounds: int, rate_Bps: float, budget: Budget) -> Counter[tuple[int, ...]] | None:
    """Choose trees with multiplicities, each as its edges; None if ranks are not connected.

    After every round the most loaded link has a load for each tree so far; the trees of the round with the least are
    kept.

    Parameters
    ----------
    rounds : int
        Number of rounds, a tree in each.
    rate_Bps : float
        Size over time that no all-reduce exceeds.
    """
    used = np.zeros(len(edges.bandwidth_Bps))
    chosen: list[tuple[int, ...]] = []
    best = np.inf, 0
    for round_ in range(1, rounds + 1):
        if chosen and budget.is_exhausted:
            break
        tree = cheapest(edges, _prices(edges, used * (rate_Bps / rounds)))
        if tree is None:
            return None
        chosen.append(tuple(tree.tolist()))
        for links in (edges.forth, edges.back):
            np.add.at(used, _links(edges, tree, links), 1.0)
        best = min(best, (float((used / edges.bandwidth_Bps).max()) / round_, round_))
    return Counter(chosen[: best[1]])


def cheapest(edges: TreeEdges, price: Floats) -> Ints | None:
    """Return the edges of a cheap tree that joins all ranks; None if there is none.

    It spans the ranks and one switch of each set with the same neighbours, the one that is cheapest to join;
    switches that are leaves of it are left out again.
    """
    cost = np.zeros(edges.nodes)
    for ends in (edges.tail, edges.head):
        np.add.at(cost, ends, price)
    spanned = edges.like < 0
    switches = np.flatnonzero(~spanned)
    order = switches[np.lexsort((cost[switches], edges.like[switches]))]
    spanned[order[np.diff(edges.like[order], prepend=-1) != 0]] = True
    usable = np.flatnonzero(spanned[edges.tail] & spanned[edges.head])
    order = usable[np.argsort(price[usable], kind="stable")]
    room = np.floor(edges.bandwidth_Bps / edges.bandwidth_Bps.min()).astype(np.int64)
    columns = edges.tail, edges.head, edges.offset, edges.forth, edges.back
    tree: Ints = join_all(order, *columns, room, edges.nodes)
    return _prune_switches(edges, tree)


@kernel
def join_all(order: Any, tail: Any, head: Any, offset: Any, forth: Any, back: Any, room: Any, nodes: int) -> Any:
    """Join nodes by edges in order, preferring edges whose links are used least.

    As Kruskal's algorithm, in several passes: in pass p an edge is added only if each of its links is used less than p
    times so far for each part of bandwidth that it has room for.

    Parameters
    ----------
    order : array of int
        Edges in order, the cheapest first.
    tail, head, offset, forth, back : array of int
        The edges and their links, see :class:`.edges.TreeEdges`.
    room : array of int, shape (links,)
        Bandwidth of every link as a multiple of the smallest.

    Returns
    -------
    array of int
        The chosen edges.
    """
    group = np.arange(nodes)
    used = np.zeros(len(room), np.int64)
    taken = np.empty(max(nodes - 1, 0), np.int64)
    count, left = 0, len(order)
    rest = order.copy()
    turn = 0
    while left > 0 and count < len(taken):
        turn += 1
        kept = 0
        for i in range(left):
            edge = rest[i]
            a, b = tail[edge], head[edge]
            while group[a] != a:
                group[a] = group[group[a]]
                a = group[a]
            while group[b] != b:
                group[b] = group[group[b]]
                b = group[b]
            if a == b:
                continue
            free = True
            for k in range(offset[edge], offset[edge + 1]):
                if used[forth[k]] >= turn * room[forth[k]] or used[back[k]] >= turn * room[back[k]]:
                    free = False
            if not free:
                rest[kept] = edge
                kept += 1
                continue
            for k in range(offset[edge], offset[edge + 1]):
                used[forth[k]] += 1
                used[back[k]] += 1
            group[a] = b
            taken[count] = edge
            count += 1
        left = kept
    return taken[:count]


def packing_of(edges: TreeEdges, trees: Counter[tuple[int, ...]], sha256: str, size_bytes: Fraction) -> TreePacking:
    """Return the packing with equal weights; roots are next to the trees' centres."""
    rooted = [_from_the_middle(edges, np.array(tree, dtype=np.int64)) for tree in trees]
    roots = np.array([root for root, *_ in rooted], dtype=np.int64)
    parent, child, edge = (np.concatenate([tree[column] for tree in rooted]) for column in (1, 2, 3))
    hops = edges.offset[edge + 1] - edges.offset[edge]
    ends, offset = (offsets(n) for n in ([len(r[1]) for r in rooted], hops))
    downwards = np.repeat(parent == edges.tail[edge], hops)
    forth, back = _links(edges, edge, edges.forth), _links(edges, edge, edges.back)
    units = np.array(list(trees.values()), dtype=np.int64)
    unit = size_bytes / int(units.sum())
    links = np.where(downwards, back, forth)
    inward = TreePacking(sha256, TreeKind.IN, roots, units, unit, ends, parent, child, offset, links)
    return replace(inward, kind=TreeKind.BOTH, path_links=np.where(downwards, forth, back), reduction=inward)


def _prices(edges: TreeEdges, used_Bps: Floats) -> Floats:
    """Return the price of every edge: both directions of its links, higher the fuller they are."""
    dear = np.exp(np.minimum(_STEEP * used_Bps / edges.bandwidth_Bps, _HIGHEST)) / edges.bandwidth_Bps
    ways = dear[edges.forth], dear[edges.back]
    return np.asarray(np.add.reduceat(ways[0], edges.offset[:-1]) + np.add.reduceat(ways[1], edges.offset[:-1]))


def _links(edges: TreeEdges, tree: Ints, links: Ints) -> Ints:
    """Return the links of all edges of a tree, one way."""
    count = edges.offset[tree + 1] - edges.offset[tree]
    return np.asarray(links[ranges(edges.offset[tree], count)], dtype=np.int64)


def _prune_switches(edges: TreeEdges, tree: Ints) -> Ints | None:
    """Leave out switches that are leaves, again and again; None if not all ranks are joined."""
    while True:
        degree = np.bincount(edges.tail[tree], minlength=edges.nodes) + np.bincount(
            edges.head[tree], minlength=edges.nodes
        )
        leaf: Bools = (degree == 1) & (edges.like >= 0)
        if not leaf.any():
            break
        tree = tree[~(leaf[edges.tail[tree]] | leaf[edges.head[tree]])]
    return tree if len(tree) == int((degree > 0).sum()) - 1 and degree[: edges.ranks].all() else None


def _from_the_middle(edges: TreeEdges, tree: Ints) -> tuple[int, Ints, Ints, Ints]:
    """Return the rank next to a tree's centre, and parents, children and edges from there on."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order

    tail, head = edges.tail[tree], edges.head[tree]
    graph = csr_array((np.ones(len(tree)), (tail, head)), (edges.nodes,) * 2)

    def walk(start: int) -> tuple[Ints, Ints]:
        """Return nodes from the nearest to the farthest, and the predecessor of each."""
        order, above = breadth_first_order(graph, start, directed=False)
        return order.astype(np.int64), above.astype(np.int64)

    far, above = walk(int(walk(int(tail[0]))[0][-1]))
    path = [int(far[-1])]
    while above[path[-1]] >= 0:
        path.append(int(above[path[-1]]))
    near, _ = walk(path[len(path) // 2])
    root = int(near[near < edges.ranks][0])
    order, above = walk(root)
    child = order[1:]
    parent = above[child]
    keys, wanted = tail * edges.nodes + head, np.minimum(parent, child) * edges.nodes + np.maximum(parent, child)
    by_key = np.argsort(keys)
    return root, parent, child, tree[by_key[np.searchsorted(keys[by_key], wanted)]]
