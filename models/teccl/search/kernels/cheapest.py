"""Cheapest ways over time."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np


@numba.njit(cache=True)
def cheapest_ways(stores: Any, tail: Any, head: Any, delay: Any, toll: Any, sink: int, epochs: int, far: int) -> Any:
    """Give the least toll from every node, at epoch 0, to the sink, by the last epoch; shape (nodes,).

    Parameters
    ----------
    stores : array of bool, shape (nodes,)
        Where a chunk can wait.
    tail, head, delay : array of int, shape (links,)
        Links, those without delay first.
    toll : array of int, shape (links, epochs)
        What a start pays.
    """
    nodes = len(stores)
    least = np.full((epochs + 1, nodes), far, np.int64)
    for now in range(epochs, -1, -1):
        if now < epochs:
            for node in range(nodes):
                if stores[node]:
                    least[now, node] = least[now + 1, node]
        least[now, sink] = 0
        for e in range(len(tail) - 1, -1, -1):
            then = now + delay[e]
            if then <= epochs:
                least[now, tail[e]] = min(least[now, tail[e]], toll[e, now] + least[then, head[e]])
        changed = True
        while changed:
            changed = False
            for e in range(len(tail)):
                if delay[e] > 0:
                    break
                way = toll[e, now] + least[now, head[e]]
                if way < least[now, tail[e]]:
                    least[now, tail[e]] = way
                    changed = True
    return least[0]
