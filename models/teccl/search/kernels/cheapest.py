"""Cheapest trees over time."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np


@numba.njit(cache=True)
def start_over_links(row: Any, ahead: Any, tail: Any, head: Any, delay: Any, toll: Any, now: int) -> None:
    """Take into account all starts in one epoch; ``ahead`` is the same table for all epochs, ``row`` that of this one."""
    for e in range(len(tail) - 1, -1, -1):
        then = now + delay[e]
        if then < len(ahead):
            row[tail[e]] = min(row[tail[e]], toll[e, now] + ahead[then, head[e]])
    changed = True
    while changed:
        changed = False
        for e in range(len(tail)):
            if delay[e] > 0:
                break
            way = toll[e, now] + row[head[e]]
            if way < row[tail[e]]:
                row[tail[e]] = way
                changed = True


@numba.njit(cache=True)
def cheapest_trees(stores: Any, tail: Any, head: Any, delay: Any, toll: Any, sinks: Any, epochs: int, far: int) -> Any:
    """Give the least toll of a tree over time from every node, at epoch 0, to some of the sinks, by the last epoch.

    Parameters
    ----------
    stores : array of bool, shape (nodes,)
        Where a chunk can wait.
    tail, head, delay : array of int, shape (links,)
        Links, those without delay first.
    toll : array of int, shape (links, epochs)
        What a start pays; a tree pays for each of its starts once.
    sinks : array of int
        A few nodes.

    Returns
    -------
    array of int, shape (sets, nodes)
        Set s has the i-th sink if bit i of s is 1.
    """
    nodes, sets = len(stores), 1 << len(sinks)
    least = np.full((sets, epochs + 1, nodes), far, np.int64)
    for now in range(epochs, -1, -1):
        for group in range(1, sets):
            row = least[group, now]
            if now < epochs:
                for node in range(nodes):
                    if stores[node]:
                        row[node] = least[group, now + 1, node]
            for i in range(len(sinks)):
                if group == 1 << i:
                    row[sinks[i]] = 0
            # A tree divides here into one to some of the sinks and one to the others.
            part = (group - 1) & group
            while part > 0:
                for node in range(nodes):
                    row[node] = min(row[node], least[part, now, node] + least[group - part, now, node])
                part = (part - 1) & group
            start_over_links(row, least[group], tail, head, delay, toll, now)
    return least[:, 0]
