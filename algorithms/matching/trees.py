"""Trees for whole collectives: one tree translated to all ranks, and an all-reduce with overlapping halves.

Both are described on the page docs/methods/tacos.md. Translated trees are
:class:`~cwb.core.equal_steps.TranslatedTrees`. Trees of an overlapped all-reduce are Prim's, shallow and with little
load on every link; links serve ready operations by priority: chunks early in the order, then the longest remaining
path.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any, NamedTuple

import numpy as np

from ...core.equal_steps import translate_ranks
from ...core.kernel import kernel
from ...core.schedule import Bools, Ints, number_within
from ...core.topology import Topology
from ..graphs.bits import ZERO, draw, seed_state, shuffle
from ..graphs.network import edges_by
from .network import RankNetwork
from .step_matching import TransferRows, room_for

MAX_GENERATORS = 64  #: generators beyond which the general engine is used
_SHAPES = 64  #: shapes that are tried at most


@dataclass(frozen=True, eq=False)
class Cayley:
    """Network that is invariant under its translations."""

    sizes: tuple[int, ...]  #: orders of the cyclic groups, the innermost first
    after: Ints  #: (generators, ranks) image and preimage of every rank under every generator
    before: Ints


def recognize(topology: Topology) -> Cayley | None:
    """Find sizes, suggested by rank 0's neighbours, whose translations map its links to those of all ranks; or None."""
    n, ends = len(topology.nodes), np.array(topology.link_ends, dtype=np.int64).reshape(-1, 2)
    kinds = {(id(e.bandwidth_Bps), id(e.latency_s)): (e.bandwidth_Bps, e.latency_s) for e in topology.links}
    from_zero = np.sort(ends[ends[:, 0] == 0, 1])
    keys = np.unique(ends[:, 0] * n + ends[:, 1])
    alike = not topology.switches and len(set(kinds.values())) == 1 and len(ends) == len(keys) == n * len(from_zero)
    if not alike or len(from_zero) > MAX_GENERATORS:
        return None
    ranks = np.arange(n)
    for sizes in islice(_shapes(n, from_zero.tolist()), _SHAPES):
        after = np.stack([translate_ranks(sizes, ranks, np.array(g)) for g in from_zero])
        if np.array_equal(np.sort((ranks * n + after).ravel()), keys):
            before = np.stack([translate_ranks(sizes, ranks, np.array(g), -1) for g in from_zero])
            return Cayley(sizes, after, before)
    return None


def _shapes(n: int, neighbours: list[int]) -> Iterator[tuple[int, ...]]:
    """Yield sizes whose strides, the products of preceding sizes, are neighbours of 0; the finest ones first."""

    def finer(strides: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        for stride in neighbours:
            if stride > strides[-1] and stride % strides[-1] == 0 and n % stride == 0:
                yield from finer((*strides, stride))
        yield strides

    for strides in finer((1,)):
        yield tuple(b // a for a, b in pairwise((*strides, n)))


def grow(cayley: Cayley, chunks: int, seed: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Grow a tree for each of rank 0's chunks; return copy, parent, child and step of edges, by steps."""
    n = cayley.after.shape[1]
    edges = np.empty((4, (n - 1) * chunks), dtype=np.int64)
    count = _grow(cayley.after, cayley.before, chunks, seed, edges)
    assert count == edges.shape[1]  # noqa: S101 (a network that is not connected is rejected before)
    return edges[0], edges[1], edges[2], edges[3]


@kernel
def _grow(after: Any, before: Any, chunks: int, seed: int, edges: Any) -> int:
    """Fill the rows copy, parent, child and step; return their number.

    Item ``k n + v`` is chunk k at rank v. ``stock[g, p]`` lists items that lack the chunk, have p possible parents
    and one of them by g; stale items are detected when they are taken from the list.
    """
    generators, n = after.shape
    random = seed_state(seed)
    covered, busy = np.zeros(n * chunks, np.bool_), np.zeros(n * chunks, np.bool_)
    parents = np.zeros(n * chunks, np.int64)
    stock = [[[0 for _ in range(0)] for _ in range(generators + 1)] for _ in range(generators)]
    waiting = np.zeros(generators, np.int64)
    for copy in range(chunks):
        _mark_covered(after, before, copy, ZERO, covered, parents, stock, waiting)
    order = np.arange(generators)
    choice, scratch = np.empty(generators, np.int64), np.empty((2, generators), np.int64)
    count, step = 0, 0
    while count < edges.shape[1]:
        shuffle(order, generators, random)
        order = order[np.argsort(waiting[order], kind="mergesort")]
        choice[:] = -1
        for g in order:
            item = _take(stock[g], covered, busy, parents, random)
            if item >= 0:
                choice[g] = item
                busy[item] = True
            elif waiting[g] > 0:
                _augment(before, g, covered, busy, parents, stock, choice, scratch, random)
        begin = count
        for g in range(generators):
            if choice[g] >= 0:
                copy, rank = choice[g] // n, choice[g] % n
                edges[0, count], edges[1, count] = copy, before[g, rank]
                edges[2, count], edges[3, count] = rank, step
                count += 1
        if count == begin:
            return count
        for row in range(begin, count):
            _mark_covered(after, before, edges[0, row], edges[2, row], covered, parents, stock, waiting)
        step += 1
    return count


@kernel
def _mark_covered(
    after: Any, before: Any, copy: int, rank: int, covered: Any, parents: Any, stock: Any, waiting: Any
) -> None:
    """Record that a rank has a chunk: it may be a parent, and no longer waits for one."""
    generators, n = after.shape
    base = copy * n
    for g in range(generators):
        if covered[base + before[g, rank]]:
            waiting[g] -= 1
    covered[base + rank] = True
    for g in range(generators):
        item = base + after[g, rank]
        if covered[item]:
            continue
        parents[item] += 1
        waiting[g] += 1
        for other in range(generators):
            if covered[base + before[other, item - base]]:
                stock[other][parents[item]].append(item)


@kernel
def _take(stock: Any, covered: Any, busy: Any, parents: Any, random: Any) -> int:
    """Take an item with the fewest possible parents from the lists of a generator; -1 if there is none."""
    for many in range(len(stock)):
        items = stock[many]
        while len(items) > 0:
            place = draw(random, len(items))
            item = items[place]
            items[place] = items[len(items) - 1]
            items.pop()
            if not covered[item] and not busy[item] and parents[item] == many:
                return int(item)
    return -1


@kernel
def _augment(
    before: Any, start: int, covered: Any, busy: Any, parents: Any, stock: Any, choice: Any, scratch: Any, random: Any
) -> None:
    """Find a shortest augmenting path: a generator takes another's item, which finds a further one."""
    generators, n = before.shape
    came, queue = scratch
    came[:] = -2
    came[start] = -1
    queue[0] = start
    head, tail = 0, 1
    while head < tail:
        g = queue[head]
        head += 1
        if g != start:
            item = _take(stock[g], covered, busy, parents, random)
            if item >= 0:
                busy[item] = True
                while g != -1:
                    item, choice[g] = choice[g], item
                    g = came[g]
                return
        for other in range(generators):
            item = choice[other]
            if came[other] == -2 and item >= 0 and covered[item - item % n + before[g, item % n]]:
                came[other] = g
                queue[tail] = other
                tail += 1


_TURN = 0.25  #: weight of a chunk's place in the order against the length of its way, in shortest transfers


def opposite(arcs: RankNetwork) -> Ints | None:
    """Return a reverse arc of each arc; None if one has none, or arcs share ports."""
    if not arcs.has_own_ports or len(np.unique(arcs.tail * arcs.ranks + arcs.head)) < len(arcs.tail):
        return None
    number = {ends: arc for arc, ends in enumerate(zip(arcs.tail.tolist(), arcs.head.tolist(), strict=True))}
    back = [number.get((b, a), -1) for a, b in zip(arcs.tail.tolist(), arcs.head.tolist(), strict=True)]
    return None if min(back, default=-1) < 0 else np.array(back, dtype=np.int64)


def overlap_all_reduce(
    arcs: RankNetwork, back: Ints, owner: Ints, members: Bools, depth: float, seed: int
) -> tuple[TransferRows, Bools, int]:
    """Schedule trees over the members, with weight ``depth`` on depth, rooted at chunks' owners.

    Return the transfers, which of them are of the reduction, and the last arrival.
    """
    first, out = edges_by(arcs.tail, arcs.ranks)
    # Chunks take turns: one of every root, then the next ones.
    order = np.argsort(number_within(owner), kind="stable").astype(np.int64)
    parent = _trees(first, out, arcs.head, arcs.ticks, back, owner, members, order, depth, seed)
    count = 2 * len(owner) * (int(members.sum()) - 1)
    rows = room_for(count)
    adds = np.empty(count, dtype=np.bool_)
    turn = np.empty(len(owner), dtype=np.float64)
    turn[order] = np.arange(len(owner)) * (_TURN * float(arcs.ticks.min()))
    ticks = _serve_by_priority(arcs.tail, arcs.head, arcs.ticks, back, owner, parent, turn, rows, adds)
    return rows, adds, int(ticks)


@kernel
def _trees(
    first: Any, out: Any, head: Any, ticks: Any, back: Any, owner: Any, member: Any, order: Any, depth: float, seed: int
) -> Any:
    """Build trees of all chunks: the arc into every rank, -1 for roots; shape (chunks, ranks)."""
    n = len(first) - 1
    random = seed_state(seed)
    load, parent = np.zeros(len(head), np.float64), np.full((len(owner), n), -1, np.int64)
    far = np.zeros(n, np.float64)
    for chunk in order:
        in_tree = np.zeros(n, np.bool_)
        in_tree[owner[chunk]] = True
        far[owner[chunk]] = 0.0
        heap = [(0.0, 0, 0) for _ in range(0)]
        node = owner[chunk]
        while True:
            for index in range(first[node], first[node + 1]):
                arc = out[index]
                if member[head[arc]] and not in_tree[head[arc]]:
                    cost = load[arc] + load[back[arc]] + depth * (far[node] + ticks[arc])
                    heapq.heappush(heap, (cost, draw(random, 1024), arc))
            while len(heap) > 0 and in_tree[head[heap[0][2]]]:
                heapq.heappop(heap)
            if len(heap) == 0:
                break
            arc = heapq.heappop(heap)[2]
            node = head[arc]
            in_tree[node] = True
            parent[chunk, node] = arc
            far[node] = far[head[back[arc]]] + ticks[arc]
            load[arc] += ticks[arc]
            load[back[arc]] += ticks[back[arc]]
    return parent


class ReductionTrees(NamedTuple):
    """Trees of all chunks, and their progress."""

    tail: Any  #: (arcs,) tail rank of each arc, and its reverse arc
    back: Any
    owner: Any  #: (chunks,) root of each chunk, and the weight of its place in the order
    turn: Any
    parent: Any  #: (chunks, ranks) the arc into each rank, or -1
    missing: Any  #: (chunks, ranks) children whose parts have not arrived
    down: Any  #: float (chunks, ranks) distances to the farthest leaf below, and to the root, in ticks
    up: Any


@kernel
def _serve_by_priority(
    tail: Any, head: Any, ticks: Any, back: Any, owner: Any, parent: Any, turn: Any, rows: TransferRows, adds: Any
) -> int:
    """Serve ``2 (chunk n + v)``, which adds v's part, and the next, which sends v the sum, by priority."""
    chunks, n = parent.shape
    missing = np.zeros((chunks, n), np.int64)
    down, up = np.zeros((chunks, n), np.float64), np.zeros((chunks, n), np.float64)
    for chunk in range(chunks):
        _measure(tail, ticks, owner[chunk], parent[chunk], missing[chunk], down[chunk], up[chunk])
    trees = ReductionTrees(tail, back, owner, turn, parent, missing, down, up)
    ready = [[(0.0, 0) for _ in range(0)] for _ in range(len(tail))]
    busy = np.zeros(len(tail), np.bool_)
    heap = [(0, 0) for _ in range(0)]
    fresh = [0 for _ in range(0)]
    for chunk in range(chunks):
        for v in range(n):
            if missing[chunk, v] == 0:
                _pass_on_sums(trees, ticks, chunk, v, False, ready, fresh)
    now, count = 0, 0
    while True:
        for arc in fresh:
            if not busy[arc] and len(ready[arc]) > 0:
                item = heapq.heappop(ready[arc])[1]
                busy[arc] = True
                rows.arc[count], rows.chunk[count] = arc, item // 2 // n
                rows.head[count], rows.start[count], adds[count] = head[arc], now, item % 2 == 0
                heapq.heappush(heap, (now + ticks[arc], item))
                count += 1
        fresh.clear()
        if len(heap) == 0:
            return now
        now = heap[0][0]
        while len(heap) > 0 and heap[0][0] == now:
            item = heapq.heappop(heap)[1]
            chunk, v, spread = item // 2 // n, item // 2 % n, item % 2 == 1
            into = parent[chunk, v]
            arc, node = (into, v) if spread else (back[into], tail[into])
            busy[arc] = False
            fresh.append(arc)
            if not spread:
                missing[chunk, node] -= 1
            if missing[chunk, node] == 0:
                _pass_on_sums(trees, ticks, chunk, node, spread, ready, fresh)


@kernel
def _pass_on_sums(
    trees: ReductionTrees, ticks: Any, chunk: int, node: int, spread: bool, ready: Any, fresh: Any
) -> None:
    """Queue a rank's sends: to its parent once all parts arrived, to its children once the sum did."""
    parent, turn, n = trees.parent[chunk], trees.turn[chunk], trees.parent.shape[1]
    if not spread and parent[node] >= 0:
        arc = trees.back[parent[node]]
        way = trees.up[chunk, node] + trees.down[chunk, trees.owner[chunk]]
        heapq.heappush(ready[arc], (turn - way, 2 * (chunk * n + node)))
        fresh.append(arc)
    elif spread or node == trees.owner[chunk]:
        for child in range(n):
            arc = parent[child]
            if arc >= 0 and trees.tail[arc] == node:
                way = ticks[arc] + trees.down[chunk, child]
                heapq.heappush(ready[arc], (turn - way, 2 * (chunk * n + child) + 1))
                fresh.append(arc)


@kernel
def _measure(tail: Any, ticks: Any, root: int, parent: Any, children: Any, down: Any, up: Any) -> None:
    """Count children, and compute distances from the root to every rank and to its farthest leaf."""
    n = len(parent)
    for v in range(n):
        length, node = 0.0, v
        while parent[node] >= 0:
            length += ticks[parent[node]]
            node = tail[parent[node]]
            down[node] = max(down[node], length)
        up[v] = length
        if parent[v] >= 0:
            children[tail[parent[v]]] += 1
