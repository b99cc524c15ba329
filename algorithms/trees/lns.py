"""Compiled large neighbourhood search for K trees: some are removed and regrown, again and again."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.budget import Budget
from ...core.kernel import kernel
from ...core.schedule import Ints
from .gbst import grow_tree, limited_network, take
from .network import HeightLimit, Wan
from .trees import draw

_MOVES = 500  #: moves between two looks at the clock


def large_neighbourhood_search(
    wan: Wan, limit: HeightLimit, start: Ints, most_trees: int, floor: int, moves: int, state: Any, budget: Budget
) -> Ints:
    """Improve trees with integer rates by a number of moves, or until the budget ends.

    Start from at most K trees of shape (trees, sites - 1), with rates of at least ``floor`` units, and return those
    of the largest sum of rates. Each move removes some trees.
    """
    trees = np.zeros((most_trees, wan.nodes - 1), dtype=np.int64)
    trees[: len(start)] = start
    rates = np.zeros(most_trees, dtype=np.int64)
    best, best_rates = trees.copy(), rates.copy()
    net = limited_network(wan, limit, floor, by_radius=limit.unit != "hops")
    for done in range(0, moves, _MOVES):
        if budget.is_exhausted:
            break
        given = len(start) if done == 0 else 0  # later, a tree without a rate may be unfinished
        few = min(_MOVES, moves - done)
        make_moves(net, given, few, state, trees, rates, best, best_rates)
    return best[best_rates > 0]


@kernel
def make_moves(
    net: Any, given: int, moves: int, state: Any, trees: Any, rates: Any, best: Any, best_rates: Any
) -> None:
    """Make moves; slightly worse results are accepted."""
    K = len(trees)
    left, room = net.capacity.copy(), np.minimum(net.capacity[net.first], net.capacity[net.second])
    for i in range(K):
        if i < given or rates[i] > 0:
            take(rates[i], trees[i], net, left, room)
    top_up(trees, rates, net, left, room, given)
    keep_best(trees, rates, best, best_rates)
    old_trees, old_rates, old_left = trees.copy(), rates.copy(), left.copy()
    score, D = np.empty(len(net.tail), np.int64), np.empty(net.nodes, np.int64)
    for _ in range(moves):
        out = 1 + draw(state, min(3, K))
        mean = max(1, rates.sum() // K)
        for _again in range(out):
            i = draw(state, K)
            take(-rates[i], trees[i], net, left, room)
            rates[i] = 0
        for i in range(K):
            if rates[i] == 0:
                target = max(net.floor, mean * (50 + draw(state, 150)) // 100)
                regrow(i, target, net, state, trees, rates, left, room, score, D)
        top_up(trees, rates, net, left, room, 0)
        keep_best(trees, rates, best, best_rates)
        if rates.sum() * 200 >= old_rates.sum() * (200 - draw(state, 4)):
            old_trees[:], old_rates[:], old_left[:] = trees, rates, left
        else:
            trees[:], rates[:], left[:] = old_trees, old_rates, old_left
            room[:] = np.minimum(left[net.first], left[net.second])


@kernel
def regrow(
    i: int, target: int, net: Any, state: Any, trees: Any, rates: Any, left: Any, room: Any, score: Any, D: Any
) -> None:
    """Grow a tree of at most the target rate, over links of most room, of least, or random."""
    style = draw(state, 3)
    for e in range(len(net.tail)):
        score[e] = room[e] if style == 0 else (-room[e] if style == 1 else draw(state, 1000))
    while target >= net.floor:
        order = np.argsort(-score, kind="mergesort")
        order = order[room[order] >= target]
        if grow_tree(draw(state, net.nodes), order, net, score, trees[i], D):
            rates[i] = room[trees[i]].min()
            take(rates[i], trees[i], net, left, room)
            return
        target = target * 3 // 4 if target > net.floor else 0


@kernel
def top_up(trees: Any, rates: Any, net: Any, left: Any, room: Any, given: int) -> None:
    """Raise the rate of every tree as far as its links allow."""
    for i in range(len(trees)):
        more = 0
        if rates[i] > 0 or i < given:
            more = room[trees[i]].min()
        if rates[i] + more >= net.floor:
            take(more, trees[i], net, left, room)
            rates[i] += more


@kernel
def keep_best(trees: Any, rates: Any, best: Any, best_rates: Any) -> None:
    """Store the trees if their total rate is the largest so far."""
    if rates.sum() > best_rates.sum():
        best[:], best_rates[:] = trees, rates
