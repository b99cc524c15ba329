"""Algorithms 1 (GBST) and 2 (GRTH) of MTree, large neighbourhood search, and all spanning trees of a small network.

In compiled loops a tree is its n - 1 links; link e joins ``tail[e]`` and ``head[e]``. The search for K trees removes
some and regrows them, again and again.
"""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from ...core.budget import Budget
from ...core.kernel import kernel
from ...core.schedule import Ints
from .network import HeightLimit, Wan
from .trees import FAR, distinct, draw

GLOBAL_MIN, BOTTLENECK, USABLE_MIN = 0, 1, 2  #: how the rate of a new tree is chosen (algorithm 1, line 22)


class LimitedNetwork(NamedTuple):
    """Links and carriers of a :class:`.network.Wan`, and limits of trees, as compiled loops take them."""

    nodes: int
    tail: Any
    head: Any
    first: Any  #: (links,) the two carriers of every link
    second: Any
    capacity: Any  #: (carriers,) capacity of every carrier in units
    length: Any
    most: int
    floor: int  #: smallest rate of a tree
    by_radius: bool  #: as in :class:`GbstVariant`
    fixed: bool


def limited_network(wan: Wan, limit: HeightLimit, floor: int, *, by_radius: bool, fixed: bool = True) -> LimitedNetwork:
    """Return the network with limits of its trees for compiled loops."""
    ends = wan.nodes, wan.tail, wan.head, wan.first, wan.second, wan.room
    return LimitedNetwork(*ends, limit.length, limit.most, max(floor, 1), by_radius, fixed)


@kernel
def grth(u: int, v: int, reach: int, D: Any, tree: Any, length: Any, fixed: bool, Dj: Any, queue: Any) -> Any:
    """Run algorithm 2: heights after adding link (u, v) of length ``reach``; the largest and the least.

    ``tree`` is (near, link_of, degree): ``near[p, :degree[p]]`` are the neighbours of p, ``link_of`` the links to
    them. The paper's text never updates the height from u itself; ``fixed`` does.
    """
    near, link_of, degree = tree
    Dj[:] = D
    if fixed:
        Dj[u] = max(Dj[u], reach)
    queue[0, 0], queue[0, 1], queue[0, 2] = u, v, reach
    begin, end, longest = 0, 1, reach
    low, high = Dj[u], Dj[u]
    while begin < end:
        p, before, t = queue[begin]
        begin += 1
        longest = max(longest, t)
        for k in range(degree[p]):
            other = near[p, k]
            if other != before:
                step = t + length[link_of[p, k]]
                Dj[other] = max(Dj[other], step)
                low, high = min(low, Dj[other]), max(high, Dj[other])
                queue[end, 0], queue[end, 1], queue[end, 2] = other, p, step
                end += 1
    Dj[v] = longest
    return max(high, longest), min(low, longest)


@kernel
def grow_tree(start: int, order: Any, net: Any, score: Any, links: Any, D: Any) -> bool:
    """Grow a tree by algorithm 1, lines 3 to 21, in order of falling score; return True if it spans."""
    nodes, tail, head, length = net.nodes, net.tail, net.head, net.length
    inside = np.zeros(nodes, np.bool_)
    near, link_of = np.empty((nodes, nodes), np.int32), np.empty((nodes, nodes), np.int32)
    degree, queue = np.zeros(nodes, np.int64), np.empty((nodes, 3), np.int64)
    Dj, best = np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    tree = near, link_of, degree
    D[:] = 0
    inside[start] = True
    for size in range(nodes - 1):
        link, least = -1, FAR if net.by_radius else 2 * net.most
        for e in order:
            a, b = tail[e], head[e]
            if inside[a] == inside[b]:
                continue
            if link >= 0 and score[e] < score[link]:
                break
            u, v = (a, b) if inside[a] else (b, a)
            high, low = grth(u, v, length[e], D, tree, length, net.fixed, Dj, queue)
            if high <= least and (low <= net.most or not net.by_radius):
                link, least = e, high
                best[:] = Dj
        if link < 0:
            return False
        a, b = tail[link], head[link]
        near[a, degree[a]], link_of[a, degree[a]] = b, link
        near[b, degree[b]], link_of[b, degree[b]] = a, link
        degree[a] += 1
        degree[b] += 1
        inside[a], inside[b] = True, True
        links[size] = link
        D[:] = best
    return True


@kernel
def take(rate: int, links: Any, net: Any, free: Any, room: Any) -> None:
    """Subtract a tree's rate from the free capacity of its carriers, and update the room of all links."""
    first, second = net.first, net.second
    for e in links:
        free[first[e]] -= rate
        if second[e] != first[e]:
            free[second[e]] -= rate
    for e in range(len(room)):
        room[e] = min(free[first[e]], free[second[e]])


@kernel
def gbst(net: Any, rate_mode: int, shuffle: bool, retries: int, state: Any, trees: Any, rates: Any, roots: Any) -> int:
    """Run algorithm 1 until a tree fails ``retries + 1`` times or arrays are full; return the count."""
    free, room = net.capacity.copy(), np.minimum(net.capacity[net.first], net.capacity[net.second])
    m = len(net.tail)
    D, links = np.empty(net.nodes, np.int64), np.empty(net.nodes - 1, np.int64)
    ranked = np.arange(m)
    for count in range(len(trees)):
        if shuffle:
            for i in range(m - 1, 0, -1):
                j = draw(state, i + 1)
                ranked[i], ranked[j] = ranked[j], ranked[i]
        order = ranked[np.argsort(-room[ranked], kind="mergesort")]
        order = order[room[order] >= net.floor]
        spans = False
        for _ in range(retries + 1):
            spans = grow_tree(draw(state, net.nodes), order, net, room, links, D)
            if spans:
                break
        if not spans:
            return count
        if rate_mode == BOTTLENECK:
            rate = room[links].min()
        else:
            rate = room[room >= (net.floor if rate_mode == USABLE_MIN else 1)].min()
        take(rate, links, net, free, room)
        trees[count], rates[count], roots[count] = links, rate, D.argmin()
    return len(trees)


@kernel
def find(group: Any, v: int) -> int:
    """Return the representative of a site's component."""
    while group[v] != v:
        group[v] = group[group[v]]
        v = group[v]
    return v


@kernel
def joined_parts(state: Any, last: int, tail: Any, head: Any, nodes: int, group: Any) -> int:
    """Count components after joining the selected links up to ``last``; 0 if they have a cycle."""
    for v in range(nodes):
        group[v] = v
    parts = nodes
    for e in range(last + 1):
        if state[e] == 1:
            a, b = find(group, tail[e]), find(group, head[e])
            if a == b:
                return 0
            group[a] = b
            parts -= 1
    return parts


@kernel
def spanning_trees(tail: Any, head: Any, nodes: int, trees: Any) -> int:
    """Write all spanning trees, in lexicographic order of links; return their number, at most ``len(trees)``."""
    m = len(tail)
    state = np.zeros(m, np.int8)  # 1 in the tree, 2 left out, 0 undecided
    group = np.empty(nodes, np.int64)
    count, at = 0, 0
    while at >= 0:
        if state[at] == 2:
            state[at] = 0
            at -= 1
            continue
        state[at] += 1
        parts = joined_parts(state, at, tail, head, nodes, group)
        if parts == 0:
            continue
        if parts == 1:
            if count == len(trees):
                return count
            size = 0
            for e in range(at + 1):
                if state[e] == 1:
                    trees[count, size] = e
                    size += 1
            count += 1
            continue
        for e in range(at + 1, m):  # whether those undecided join the rest
            a, b = find(group, tail[e]), find(group, head[e])
            if a != b:
                group[a] = b
                parts -= 1
        if parts == 1:
            at += 1
    return count


MOST_TREES = 10_000  #: trees of one start beyond which it is cut off
_ALL = 20_000  #: all spanning trees are listed where there are at most so many
_RETRIES = 20  #: random starts after which a tree is given up

RateName = Literal["global_min", "bottleneck", "usable_min"]
RATES: tuple[RateName, ...] = get_args(RateName)


@dataclass(frozen=True)
class GbstVariant:
    """Interpretation of algorithms 1 and 2 where their text is ambiguous."""

    rate: RateName  #: r* of line 22: ``global_min``, ``bottleneck`` or ``usable_min``
    by_radius: bool  #: True to compare the height from the best root with H, False the largest height with 2 H
    fixed: bool  #: True to update the height from the site at which a link is added
    shuffle: bool  #: True to use links of equal room in random order
    retries: int  #: further random starts of a tree that fails


@dataclass(frozen=True, eq=False)
class GbstTrees:
    """Result of one run of algorithm 1."""

    trees: Ints
    rates: Ints  #: (trees,) r* of every tree, in units
    roots: Ints  #: (trees,) root of every tree, chosen by the algorithm


def random_state(seed: int) -> np.ndarray:
    """Return the state of a random generator, which runs advance."""
    return np.array([seed], dtype=np.uint64)


def run_gbst(wan: Wan, limit: HeightLimit, floor: int, way: GbstVariant, state: np.ndarray) -> GbstTrees:
    """Run algorithm 1 once."""
    net = limited_network(wan, limit, floor, by_radius=way.by_radius, fixed=way.fixed)
    size = 64
    while True:
        before = state.copy()
        trees = np.empty((size, wan.nodes - 1), dtype=np.int64)
        rates, roots = (np.empty(size, dtype=np.int64) for _ in range(2))
        count = gbst(net, RATES.index(way.rate), way.shuffle, way.retries, state, trees, rates, roots)
        if count < size or size >= MOST_TREES:
            return GbstTrees(trees[:count], rates[:count], roots[:count])
        size = min(8 * size, MOST_TREES)
        state[:] = before


def every_tree(wan: Wan) -> Ints | None:
    """List all spanning trees, None if they are too many by Kirchhoff's determinant."""
    if wan.nodes > 64:
        return None
    laplacian = np.zeros((wan.nodes, wan.nodes))
    for a, b in zip(wan.tail, wan.head, strict=True):
        laplacian[[a, b], [a, b]] += 1
        laplacian[[a, b], [b, a]] -= 1
    if np.linalg.slogdet(laplacian[1:, 1:])[1] > np.log(_ALL):
        return None
    trees = np.empty((_ALL + 1, wan.nodes - 1), dtype=np.int64)
    return trees[: spanning_trees(wan.tail, wan.head, wan.nodes, trees)].copy()


@dataclass(frozen=True, eq=False)
class TreePool:
    """Trees of many starts."""

    trees: Ints  #: (trees, sites - 1) links of every tree, without duplicates
    choices: tuple[Ints, ...]  #: for each requested K, the K fastest trees of one start, those of the best starts first


def run_many_starts(
    wan: Wan, limit: HeightLimit, starts: int, floor: int, most_trees: int | None, budget: Budget
) -> TreePool:
    """Run algorithm 1 from many random starts, with both r* and random ties; for K trees, with random least rates."""
    state = random_state(budget.seed)
    weighted = limit.unit != "hops"
    capacities = np.unique(wan.capacity)
    pools: list[Ints] = []
    few: list[tuple[int, Ints]] = []
    for start in range(starts):
        if pools and budget.is_exhausted:
            break
        fast = most_trees is not None or start % 2 == 1
        way = GbstVariant("bottleneck" if fast else "global_min", weighted, fixed=True, shuffle=True, retries=_RETRIES)
        least = floor
        if most_trees is not None:
            least = max(floor, int(capacities[draw(state, len(capacities))]) * draw(state, 100) // 100)
        result = run_gbst(wan, limit, least, way, state)
        pools.append(result.trees)
        if most_trees is not None:
            best = np.argsort(-result.rates, kind="stable")[:most_trees]
            few.append((int(result.rates[best].sum()), result.trees[best]))
    few.sort(key=lambda one: -one[0])
    rows = np.concatenate(pools) if pools else np.empty((0, wan.nodes - 1), dtype=np.int64)
    return TreePool(distinct(rows), tuple(distinct(trees) for _, trees in few if len(trees)))


_MOVES = 500  #: moves between two looks at the clock


def large_neighbourhood_search(
    wan: Wan, limit: HeightLimit, start: Ints, most_trees: int, floor: int, moves: int, state: Any, budget: Budget
) -> Ints:
    """Improve at most K trees, of rates of at least ``floor`` units, by moves that remove and regrow some of them."""
    trees = np.zeros((most_trees, wan.nodes - 1), dtype=np.int64)
    trees[: len(start)] = start
    rates = np.zeros(most_trees, dtype=np.int64)
    best, best_rates = trees.copy(), rates.copy()
    net = limited_network(wan, limit, floor, by_radius=limit.unit != "hops")
    for begin in range(0, moves, _MOVES):
        if budget.is_exhausted:
            break
        count = len(start) if begin == 0 else 0  # later, a tree without a rate may be unfinished
        make_moves(net, count, min(_MOVES, moves - begin), state, (trees, rates), (best, best_rates))
    return best[best_rates > 0]


@kernel
def make_moves(net: Any, count: int, moves: int, state: Any, rated: Any, best: Any) -> None:
    """Make moves from trees and rates; slightly worse results are accepted, and the best ones stored."""
    trees, rates = rated
    K = len(trees)
    free, room = net.capacity.copy(), np.minimum(net.capacity[net.first], net.capacity[net.second])
    for i in range(K):
        if i < count or rates[i] > 0:
            take(rates[i], trees[i], net, free, room)
    top_up(trees, rates, net, free, room, count)
    keep_best(trees, rates, best)
    old_trees, old_rates, old_left = trees.copy(), rates.copy(), free.copy()
    score, D = np.empty(len(net.tail), np.int64), np.empty(net.nodes, np.int64)
    for _ in range(moves):
        out = 1 + draw(state, min(3, K))
        mean = max(1, rates.sum() // K)
        for _again in range(out):
            i = draw(state, K)
            take(-rates[i], trees[i], net, free, room)
            rates[i] = 0
        for i in range(K):
            if rates[i] == 0:
                target = max(net.floor, mean * (50 + draw(state, 150)) // 100)
                regrow(i, target, net, state, rated, free, room, score, D)
        top_up(trees, rates, net, free, room, 0)
        keep_best(trees, rates, best)
        if rates.sum() * 200 >= old_rates.sum() * (200 - draw(state, 4)):
            old_trees[:], old_rates[:], old_left[:] = trees, rates, free
        else:
            trees[:], rates[:], free[:] = old_trees, old_rates, old_left
            room[:] = np.minimum(free[net.first], free[net.second])


@kernel
def regrow(i: int, target: int, net: Any, state: Any, rated: Any, free: Any, room: Any, score: Any, D: Any) -> None:
    """Grow a tree of at most the target rate, over links of most room, of least, or random."""
    (trees, rates), style = rated, draw(state, 3)
    for e in range(len(net.tail)):
        score[e] = room[e] if style == 0 else (-room[e] if style == 1 else draw(state, 1000))
    while target >= net.floor:
        order = np.argsort(-score, kind="mergesort")
        order = order[room[order] >= target]
        if grow_tree(draw(state, net.nodes), order, net, score, trees[i], D):
            rates[i] = room[trees[i]].min()
            take(rates[i], trees[i], net, free, room)
            return
        target = target * 3 // 4 if target > net.floor else 0


@kernel
def top_up(trees: Any, rates: Any, net: Any, free: Any, room: Any, count: int) -> None:
    """Raise the rate of every tree as far as its links allow."""
    for i in range(len(trees)):
        more = 0
        if rates[i] > 0 or i < count:
            more = room[trees[i]].min()
        if rates[i] + more >= net.floor:
            take(more, trees[i], net, free, room)
            rates[i] += more


@kernel
def keep_best(trees: Any, rates: Any, best: Any) -> None:
    """Store the trees if their total rate is the largest so far."""
    if rates.sum() > best[1].sum():
        best[0][:], best[1][:] = trees, rates
