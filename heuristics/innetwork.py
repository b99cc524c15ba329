"""``switch-trees``: all-reduce on trees over switches that add and copy, as SHARP and NVLink SHARP offer it.

Source: R. Graham et al., "Scalable Hierarchical Aggregation Protocol (SHARP)", COM-HPC 2016; the choice of trees is
cwb's own. Trees are chosen one after the other, each a cheapest one where links are dear that earlier trees have used.
Problem and costs: docs/methods/switch-trees.md.
"""

from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from operator import itemgetter
from typing import Any

import numpy as np
from pydantic import Field

from ..algorithms.bounds.schedule_bounds import rank_bound
from ..algorithms.schedules.compose import reverse_links
from ..core.budget import Budget
from ..core.collective import Collective
from ..core.errors import Refusal, Unsupported
from ..core.fields import Strict
from ..core.grouping import group_by_key
from ..core.instance import Instance
from ..core.kernel import kernel
from ..core.method import Metric
from ..core.outcome import Outcome, Status
from ..core.refusals import refuse_unfit
from ..core.schedule import Bools, Floats, Ints, offsets, ranges
from ..core.solver import Solver
from ..core.topology import NodeKind, Topology
from ..core.trees import TreeKind, TreePacking
from . import heuristic

MOST_EDGES = 2_000_000  #: Most pairs of nodes that are joined through switches.


@dataclass(frozen=True, eq=False)
class TreeEdges:
    """Edges that trees may have, in both directions.

    ``ranks`` and ``nodes`` count ranks, and all nodes of trees: the ranks, then the switches as
    :attr:`~cwb.core.topology.Topology.tree_nodes` counts them. An edge joins ``tail`` and ``head``, the smaller number
    first; edges of a pair are next to each other. Its links from tail to head are ``forth[offset[i] : offset[i + 1]]``,
    those of the same edge from head to tail are in ``back``. ``bandwidth_Bps`` is of all links of the network. ``like``
    is a number for every switch, the same for those that are joined to the same nodes; -1 for ranks.
    """

    ranks: int
    nodes: int
    tail: Ints
    head: Ints
    offset: Ints
    forth: Ints
    back: Ints
    bandwidth_Bps: Floats
    like: Ints


def tree_edges(topology: Topology) -> TreeEdges:
    """Join ranks and switches that add and copy, directly and through other switches.

    Through those, from every link into them the nodes that it leads to, over the fewest links. Every link must have one
    back.
    """
    back = reverse_links(topology)
    number = {node: place for place, node in enumerate(topology.tree_nodes)}
    ends = {i for i, node in enumerate(topology.nodes) if node.copies and node.adds}
    out = group_by_key((a, link) for link, (a, _) in enumerate(topology.link_ends))
    rows: list[tuple[int, int, tuple[int, ...]]] = []
    for start in sorted(ends, key=number.__getitem__):
        for first in out[start]:
            for end, path in _reachable_ends(topology, out, ends, start, first):
                if number[start] < number[end]:
                    rows.append((number[start], number[end], path))
        if len(rows) > MOST_EDGES:
            raise Unsupported(f"more than {MOST_EDGES:,} pairs of nodes are joined through switches; expected fewer")
    rows.sort(key=lambda edge: edge[:2])
    tail, head = (np.array([edge[i] for edge in rows], dtype=np.int64) for i in (0, 1))
    hops = np.array([len(path) for _, _, path in rows], dtype=np.int64)
    forth = np.array([link for _, _, path in rows for link in path], dtype=np.int64)
    turned = np.array([int(back[link]) for _, _, path in rows for link in path[::-1]], dtype=np.int64)
    rates = np.array([float(link.bandwidth_Bps) for link in topology.links])
    joined: list[set[int]] = [set() for _ in number]
    for a, b, _ in rows:
        joined[a].add(b)
        joined[b].add(a)
    first_of: dict[frozenset[int], int] = {}
    ranks, nodes = len(topology.ranks), len(number)
    alike = [-1] * ranks + [first_of.setdefault(frozenset(joined[node]), node) for node in range(ranks, nodes)]
    like = np.array(alike, dtype=np.int64)
    return TreeEdges(ranks, nodes, tail, head, offsets(hops), forth, turned, rates, like)


def _reachable_ends(
    topology: Topology, out: dict[int, list[int]], ends: set[int], start: int, first: int
) -> list[tuple[int, tuple[int, ...]]]:
    """Return the tree nodes behind a link, through forwarding switches, each with its path."""
    paths: dict[int, tuple[int, ...]] = {}
    waiting: list[tuple[int, tuple[int, ...]]] = [(topology.link_ends[first][1], (first,))]
    nodes = {start}
    for node, path in waiting:  # grows
        if node in nodes:
            continue
        nodes.add(node)
        if node in ends:
            paths[node] = path
        elif topology.nodes[node].kind is NodeKind.SWITCH:
            waiting += [(topology.link_ends[link][1], (*path, link)) for link in out[node]]
    return list(paths.items())


_STEEP = 8.0  #: How much dearer a link is that is full at the best rate there may be than an idle one, as a power of e.
_HIGHEST = 600.0  #: Powers of e beyond this are not told apart.


def share_out(edges: TreeEdges, rounds: int, rate_Bps: float, budget: Budget) -> Counter[tuple[int, ...]] | None:
    """Choose trees with multiplicities, each as its edges; None if ranks are not connected.

    After every round the most loaded link has a load for each tree so far; the trees of the round with the least are
    kept. There is one for each of the rounds; no all-reduce exceeds the rate.
    """
    uses = np.zeros(len(edges.bandwidth_Bps))
    trees: list[tuple[int, ...]] = []
    best = np.inf, 0
    for round_ in range(1, rounds + 1):
        if trees and budget.is_exhausted:
            break
        tree = cheapest(edges, _prices(edges, uses * (rate_Bps / rounds)))
        if tree is None:
            return None
        trees.append(tuple(tree.tolist()))
        for links in (edges.forth, edges.back):
            np.add.at(uses, _links(edges, tree, links), 1.0)
        best = min(best, (float((uses / edges.bandwidth_Bps).max()) / round_, round_))
    return Counter(trees[: best[1]])


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
    times so far for each part of bandwidth that it has room for. Return the chosen edges. ``room`` is the bandwidth of
    every link as a multiple of the smallest; the edges' arrays are those of :class:`TreeEdges`.
    """
    group = np.arange(nodes)
    uses = np.zeros(len(room), np.int64)
    edges = np.empty(max(nodes - 1, 0), np.int64)
    count, waiting = 0, len(order)
    rest = order.copy()
    turn = 0
    while waiting > 0 and count < len(edges):
        turn += 1
        size = 0
        for i in range(waiting):
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
                if uses[forth[k]] >= turn * room[forth[k]] or uses[back[k]] >= turn * room[back[k]]:
                    free = False
            if not free:
                rest[size] = edge
                size += 1
                continue
            for k in range(offset[edge], offset[edge + 1]):
                uses[forth[k]] += 1
                uses[back[k]] += 1
            group[a] = b
            edges[count] = edge
            count += 1
        waiting = size
    return edges[:count]


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
    count = edges.offset[tree + 1] - edges.offset[tree]
    return np.asarray(links[ranges(edges.offset[tree], count)], dtype=np.int64)


def _prune_switches(edges: TreeEdges, tree: Ints) -> Ints | None:
    """Leave out switches that are leaves, again and again; None if not all ranks are joined."""
    while True:
        degree = np.bincount(np.concatenate([edges.tail[tree], edges.head[tree]]), minlength=edges.nodes)
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
    keys, targets = tail * edges.nodes + head, np.minimum(parent, child) * edges.nodes + np.maximum(parent, child)
    by_key = np.argsort(keys)
    return root, parent, child, tree[by_key[np.searchsorted(keys[by_key], targets)]]


class SwitchTreesOptions(Strict):
    """Options of ``switch-trees``."""

    trees: int = Field(256, ge=1, le=4096, description="Most trees, of which those up to the best number are kept.")


def supports(instance: Instance) -> Refusal | None:
    """Only an all-reduce among all ranks, over switches that add and copy."""
    such_as = "dgx_h100(nvls=true)"
    if reason := refuse_unfit(instance, (Collective.ALL_REDUCE,), such_as=such_as, single=True, of_all=True):
        return reason
    if not any(node.kind is NodeKind.SWITCH and node.copies and node.adds for node in instance.topology.nodes):
        return Refusal("network", "no switch of the network adds and copies")
    return None


def run(instance: Instance, solver: Solver, budget: Budget, options: SwitchTreesOptions) -> Outcome:
    """Choose trees one after the other, and bound the time of any all-reduce (``Method.run``)."""
    from ..models.forestcoll.bounds import best_all_reduce_bound
    from ..models.forestcoll.solve import busiest_s

    with budget.clock.phase("bound"):
        bound, certificate = max(rank_bound(instance), best_all_reduce_bound(instance, []), key=itemgetter(0))
        budget.tell_bound(bound, certificate)
    with budget.clock.phase("build"):
        edges = tree_edges(instance.topology)
        size_bytes = instance.demands[0].size_bytes
        trees = share_out(edges, options.trees, float(size_bytes / bound), budget)
        if trees is None:
            raise Unsupported("links and switches do not connect all ranks; expected a connected network")
        answer = packing_of(edges, trees, instance.sha256, size_bytes)
    seconds = busiest_s(instance, answer)
    return Outcome(
        Status.OPTIMAL if seconds == bound else Status.FEASIBLE,
        answer,
        objective=float(seconds),
        bound=float(bound),
        certificate=certificate,
        metrics={"switches": len({node for node in answer.child.tolist() if node >= edges.ranks})},
        iterations=sum(trees.values()),
    )


METHOD = heuristic(
    name="switch-trees",
    summary="all-reduce on many trees over switches that add and copy, by prices of links; no solver",
    paper="Graham et al., Scalable Hierarchical Aggregation Protocol (SHARP), COM-HPC 2016; the choice of trees is "
    "cwb's own",
    answer_type=TreePacking,
    options=SwitchTreesOptions,
    solve=run,
    supports=supports,
    metrics={"switches": Metric("switches that are nodes of trees")},
)
