"""Compiled loops over trees: growing inside known cuts or at prices of links, lowering, and exchange by pairs.

A tree in capacities is the edge into every node, -1 at its root; edges are numbered as in a
:class:`~..graphs.network.Network` whose nodes are all to be spanned. Trees at prices lead through forwarding switches.
"""

from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np

from ...core.kernel import kernel

#: Trees that are drawn for the tallest of them to be the first of a pair; and how often it is of as many as there are.
_DRAWN, _FROM_ALL = 6, 0.25


class Capacities(NamedTuple):
    """Edges by their tails, and what is left of their capacities."""

    start: Any  #: (nodes + 1,) first edge of every node
    tail: Any
    head: Any
    residual: Any  #: (edges,) remaining capacity, and the factor that makes it comparable: 1 over the whole capacity
    weight: Any


class KnownCuts(NamedTuple):
    """Cuts that a tree enters once for free, and further times by their slack."""

    inside: Any  #: bool (cuts, nodes) True for the nodes inside of each cut
    start: Any  #: cuts around node y: ``cuts[start[y] : start[y + 1]]``
    cuts: Any
    slack: Any  #: (cuts,) capacity beyond the demand, and of the tree being grown its free entry and its load
    free: Any
    load: Any


@kernel
def cut_cost(x: int, y: int, amount: Any, pool: KnownCuts) -> int:
    """Return an edge's cost: 0 if free, 1 if it uses a cut's slack, 2 if it exceeds it."""
    inside, start, cuts, slack, free, load = pool
    cost = 0
    for i in range(start[y], start[y + 1]):
        j = cuts[i]
        if not inside[j, x]:
            if load[j] + amount > free[j] + slack[j]:
                return 2
            if load[j] + amount > free[j]:
                cost = 1
    return cost


@kernel
def count_entered_cuts(x: int, y: int, amount: Any, pool: KnownCuts) -> None:
    """Count an edge in the cuts that it enters."""
    for i in range(pool.start[y], pool.start[y + 1]):
        if not pool.inside[pool.cuts[i], x]:
            pool.load[pool.cuts[i]] += amount


@kernel
def best_edges(
    nodes: Any, amount: Any, allowed: int, shallow: bool, net: Capacities, pool: KnownCuts, tree: Any
) -> int:
    """Find the best edge from tree nodes to each missing node: by depth if ``shallow``, cost, remaining capacity."""
    start, _, head, residual, weight = net
    into, depth, best, value, missing = tree
    fresh = 0
    for x in nodes:
        for edge in range(start[x], start[x + 1]):
            y = head[edge]
            if into[y] != -2 or residual[edge] < amount:
                continue
            cost = cut_cost(x, y, amount, pool)
            if cost > allowed:
                continue
            rank = residual[edge] * weight[edge] - 8.0 * cost
            if shallow:
                rank -= 64.0 * depth[x]
            if best[y] < 0:
                missing[fresh] = y
                fresh += 1
            elif rank <= value[y]:
                continue
            best[y] = edge
            value[y] = rank
    return fresh


@kernel
def grow(root: int, amount: Any, thrifty: bool, net: Capacities, pool: KnownCuts, into: Any) -> int:
    """Grow a tree that carries ``amount``, level by level, through edges with the most remaining capacity.

    Every tree whose root is outside a cut must enter it once; that entry is free. Each further one uses slack of
    the cut. Such edges come last in a level or, if ``thrifty``, one at a time and only if no other is possible.
    Return the number of nodes reached; ``into`` has their edges and ``used`` the load of the cuts.
    """
    nodes = len(net.start) - 1
    into[:] = -2
    into[root] = -1
    for j in range(len(pool.load)):
        pool.load[j] = amount - amount
        pool.free[j] = amount - amount if pool.inside[j, root] else amount
    order, missing = np.empty(nodes, dtype=np.int64), np.empty(nodes, dtype=np.int64)
    depth, best, value = np.zeros(nodes, dtype=np.int64), np.full(nodes, -1, dtype=np.int64), np.zeros(nodes)
    order[0] = root
    count, begin, end = 1, 0, 1
    allowed, tree = 0 if thrifty else 1, (into, depth, best, value, missing)
    while count < nodes:
        single = thrifty and allowed == 1
        fresh = best_edges(order[begin:end], amount, allowed, single, net, pool, tree)
        before = count
        for y in missing[:fresh][np.argsort(-value[missing[:fresh]], kind="mergesort")]:
            edge = best[y]
            x = net.tail[edge]
            cost = cut_cost(x, y, amount, pool)
            planned = 1 if value[y] < -4.0 else 0
            if cost <= planned and not (single and count > before):
                count_entered_cuts(x, y, amount, pool)
                into[y] = edge
                depth[y] = depth[x] + 1
                order[count] = y
                count += 1
        best[missing[:fresh]] = -1
        if single and count > before:  # what it leads to may be free again
            allowed, begin, end = 0, before, count
        elif single or (count == before and count == end and not thrifty):
            break
        elif count == before and count > end:
            begin, end = end, count
        elif count == before:
            allowed, begin, end = 1, 0, count
    return count


@kernel
def shift(into: Any, amount: Any, residual: Any) -> None:
    """Add ``amount`` to the remaining capacity of every edge of a tree."""
    for y in range(len(into)):
        if into[y] >= 0:
            residual[into[y]] += amount


@kernel
def lower(root: int, amount: Any, scarce: float, net: Capacities, into: Any) -> int:
    """Find a lowest tree in edges with enough capacity, of more than the part ``scarce``; return its height, or -1."""
    start, _, head, residual, weight = net
    nodes = len(start) - 1
    into[:] = -2
    into[root] = -1
    order = np.empty(nodes, dtype=np.int64)
    level = np.zeros(nodes, dtype=np.int64)
    value = np.zeros(nodes)
    order[0] = root
    count, at = 1, 0
    while at < count:
        x = order[at]
        if count == nodes and level[x] == level[order[count - 1]]:
            break  # all are reached, and nobody below the last level
        at += 1
        for edge in range(start[x], start[x + 1]):
            if residual[edge] < amount:
                continue
            part = residual[edge] * weight[edge]
            if part <= scarce:
                continue
            y = head[edge]
            if into[y] == -2:
                order[count] = y
                count += 1
                level[y] = level[x] + 1
                into[y] = edge
                value[y] = part
            elif level[y] == level[x] + 1 and part > value[y]:
                into[y] = edge
                value[y] = part
    return int(level[order[count - 1]]) if count == nodes else -1


@kernel
def lower_each(
    order: Any, scarce: float, limit: Any, root: Any, copies: Any, trees: Any, height: Any, net: Capacities
) -> int:
    """Replace tree after tree by a lowest one if that is not higher than its limit; return their number."""
    into = np.empty(trees.shape[1], dtype=np.int64)
    changed = 0
    for t in order:
        shift(trees[t], copies[t], net.residual)
        low = lower(root[t], copies[t], scarce, net, into)
        if 0 <= low <= limit[t]:
            trees[t, :] = into
            height[t] = low
            changed += 1
        shift(trees[t], -copies[t], net.residual)
    return changed


@kernel
def heights(trees: Any, tail: Any) -> tuple[Any, Any]:
    """Compute the height of every tree, and the depth of every node in it, shape (trees, nodes)."""
    count, nodes = trees.shape
    depth = np.full((count, nodes), -1, dtype=np.int32)
    height = np.zeros(count, dtype=np.int64)
    chain = np.empty(nodes + 1, dtype=np.int64)
    for t in range(count):
        for y in range(nodes):
            length, x = 0, y
            while depth[t, x] < 0 and trees[t, x] >= 0:
                chain[length] = x
                length += 1
                x = tail[trees[t, x]]
            if trees[t, x] < 0:
                depth[t, x] = 0
            for i in range(length - 1, -1, -1):
                node = chain[i]
                depth[t, node] = depth[t, tail[trees[t, node]]] + 1
            height[t] = max(height[t], depth[t, y])
    return height, depth


@kernel
def pair(random: Any, count: int, height: Any) -> tuple[int, int]:
    """Draw two trees, the first one more likely a tall one."""
    first = int(random.random() * count)
    for _ in range(count if random.random() < _FROM_ALL else _DRAWN - 1):
        other = int(random.random() * count)
        if height[other] > height[first]:
            first = other
    second = int(random.random() * (count - 1))
    return first, second + 1 if second >= first else second


@kernel
def exchange(
    trials: int, random: Any, count: int, root: Any, copies: Any, trees: Any, height: Any, net: Capacities
) -> int:
    """Regrow pairs of trees: remove copies of both, grow the first as low as possible, then the second.

    As many copies are removed as both trees have. Parents are chosen by remaining capacity, at random within a factor,
    so that a pair can be tried again. The new pair is kept if the sum of the cubes of its heights falls; or is equal,
    if no tree has to be divided for it. The columns, which have room for more than the ``count`` trees, and the
    remaining capacities are changed. Return the number of trees afterwards.
    """
    residual = net.residual
    fresh = np.empty((2, trees.shape[1]), dtype=np.int64)
    for _ in range(trials):
        a, b = pair(random, count, height)
        amount = min(copies[a], copies[b])
        divided = copies[a] != copies[b]
        if divided and count == len(root):
            continue
        shift(trees[a], amount, residual)
        shift(trees[b], amount, residual)
        liking = net.weight * (0.25 + random.random(len(net.weight)))
        liked = Capacities(net.start, net.tail, net.head, residual, liking)
        low_a = lower(root[a], amount, 0.0, liked, fresh[0])
        gain = height[a] ** 3 + height[b] ** 3 - low_a**3
        low_b = -1
        if low_a >= 0 and gain > 0:
            shift(fresh[0], -amount, residual)
            low_b = lower(root[b], amount, 0.0, liked, fresh[1])
            gain -= low_b**3
            shift(fresh[0], amount, residual)
        if low_b < 0 or gain < 0 or (gain == 0 and divided):
            shift(trees[a], -amount, residual)
            shift(trees[b], -amount, residual)
            continue
        if divided:
            rest = a if copies[a] > amount else b
            root[count], copies[count], height[count] = root[rest], copies[rest] - amount, height[rest]
            trees[count, :] = trees[rest]
            copies[rest] = amount
            count += 1
        trees[a, :], trees[b, :] = fresh[0], fresh[1]
        height[a], height[b] = low_a, low_b
        shift(fresh[0], -amount, residual)
        shift(fresh[1], -amount, residual)
    return count


@kernel
def priced_tree(root: int, net: Any, price: Any, rise: float, limit: int) -> tuple[Any, Any, Any, Any, Any]:
    """Grow a tree by repeatedly joining the node that is cheapest to reach from the tree.

    Leaving a tree node at depth d costs ``rise d``, so that a large ``rise`` gives low trees and a small one cheap
    trees; at the depth ``limit`` no node may be left. ``net`` are arcs by tail (first arc of each node, head and link
    of each arc), and a mark of nodes to span; all others are passed through. Prices of links are greater than 0.
    Return parent and child of every edge, offsets of the edges' paths, their links, and the depth of every node, -1 for
    those that the tree does not have.
    """
    start, head, link, ends = net
    nodes = len(start) - 1
    parent, child = np.empty(nodes, dtype=np.int64), np.empty(nodes, dtype=np.int64)
    offset, depth = np.zeros(nodes + 1, dtype=np.int64), np.full(nodes, -1, dtype=np.int64)
    label, total = np.full(nodes, np.inf), ends.sum()
    before, arc_tail = np.full(nodes, -1, dtype=np.int64), np.full(nodes, -1, dtype=np.int64)
    label[root] = 0.0
    heap, backwards, count = [(0.0, root)], [0 for _ in range(0)], 0
    while len(heap) > 0:
        cost, v = heappop(heap)
        if cost > label[v]:
            continue
        leaving = cost
        if ends[v]:
            if depth[v] >= 0:
                continue
            depth[v] = 0
            if v != root:
                x = v
                while x == v or not ends[x]:
                    backwards.append(before[x])
                    x = arc_tail[x]
                parent[count], child[count] = x, v
                depth[v] = depth[x] + 1
                count += 1
                offset[count] = len(backwards)
            if count == total - 1:
                break
            label[v] = -1.0
            if depth[v] >= limit:
                continue
            leaving = rise * depth[v]
        for arc in range(start[v], start[v + 1]):
            y = head[arc]
            there = leaving + price[link[arc]]
            if there < label[y] and not (ends[y] and depth[y] >= 0):
                label[y] = there
                before[y] = link[arc]
                arc_tail[y] = v
                heappush(heap, (there, y))
    links = np.empty(len(backwards), dtype=np.int64)
    for edge in range(count):
        for place in range(offset[edge], offset[edge + 1]):
            links[place] = backwards[offset[edge] + offset[edge + 1] - 1 - place]
    return parent[:count], child[:count], offset[: count + 1], links, depth


@kernel
def priced_uses(roots: Any, rises: Any, limits: Any, prices: Any, orbit: Any, net: Any) -> tuple[Any, Any]:
    """Grow trees, each at its own prices, and count their uses of every orbit of links.

    Each tree has a root, a price of depth (``rises``), a largest height (``limits``) and a row of prices of orbits.
    Return the uses, a row per tree, and the heights, -1 for trees that do not reach all nodes.
    """
    uses, heights = np.zeros(prices.shape, dtype=np.int64), np.full(len(roots), -1, dtype=np.int64)
    for tree in range(len(roots)):
        parent, _, _, links, depth = priced_tree(roots[tree], net, prices[tree][orbit], rises[tree], limits[tree])
        if len(parent) == net[3].sum() - 1:
            heights[tree] = depth.max()
        for link in links:
            uses[tree, orbit[link]] += 1
    return uses, heights
