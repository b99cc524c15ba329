"""Prices of links by multiplicative weights: where trees of least price pile up, prices rise."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from .heap import Heap, drop_first, enter
from .state import Roads, arc_price


@numba.njit(cache=True)
def cheapest_tree(roads: Roads, price: Any, held: Any, need: Any, heap: Heap, load: Any, reached: Any) -> None:
    """Grow a tree of cheap arcs from the holders of a chunk to those who need it, and add its starts to the load of the links."""
    nodes = len(held)
    left, size = 0, 0
    for node in range(nodes):
        reached[node] = held[node]
        left += need[node] and not held[node]
    for node in range(nodes):
        if held[node]:
            for arc in range(roads.arc_first[node], roads.arc_first[node + 1]):
                size = enter(heap, size, arc_price(roads, price, arc), arc, 0)
    while left > 0 and size > 0:
        arc = heap.item[0]
        size = drop_first(heap, size)
        to = roads.arc_head[arc]
        if reached[to]:
            continue
        reached[to] = True
        left -= need[to]
        for h in range(roads.hop_first[arc], roads.hop_first[arc + 1]):
            load[roads.hop_link[h]] += 1
        for further in range(roads.arc_first[to], roads.arc_first[to + 1]):
            if not reached[roads.arc_head[further]]:
                size = enter(heap, size, arc_price(roads, price, further), further, 0)


@numba.njit(cache=True)
def spread_prices(roads: Roads, price: Any, held: Any, need: Any, heap: Heap, rounds: int) -> Any:
    """Give prices under which cheapest trees spread over all links; ``price`` is where they start. Shape (links,)."""
    chunks, nodes = held.shape
    reached = np.zeros(nodes, np.bool_)
    now = price.copy()
    for _ in range(rounds):
        load = np.zeros(len(price))
        for chunk in range(chunks):
            cheapest_tree(roads, now, held[chunk], need[chunk], heap, load, reached)
        load *= price
        top = load.max()
        if top <= 0:
            break
        for link in range(len(now)):
            now[link] *= np.exp(0.5 * load[link] / top)
        now *= price.sum() / now.sum()
    return now
