"""Compiled loops for the verifier of trees of a limited height.

The cheapest arborescence over links that end near enough to its root.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.kernel import kernel


@kernel
def cheapest_near(root: int, nodes: int, tail: Any, head: Any, price: Any, length: Any, most: int) -> int:
    """Cost of the cheapest arborescence from a root over links that end at most a length away from it.

    -1 if none reaches all nodes.
    """
    far = np.full(nodes, -1, np.int64)
    far[root] = 0
    changed = True
    while changed:
        changed = False
        for a in range(len(tail)):
            if far[tail[a]] >= 0:
                reach = far[tail[a]] + length[a]
                if reach <= most and (far[head[a]] < 0 or reach < far[head[a]]):
                    far[head[a]], changed = reach, True
    near = np.zeros(len(tail), np.bool_)
    for a in range(len(tail)):
        near[a] = far[tail[a]] >= 0 and far[tail[a]] + length[a] <= most
    return arborescence(root, nodes, tail[near], head[near], price[near])


@kernel
def arborescence(root: int, nodes: int, tail: Any, head: Any, price: Any) -> int:
    """Cost of the cheapest arborescence from a root, -1 if there is none (Edmonds; a walk backwards, after Tarjan).

    From a node that is not joined to the root yet, walk back over the cheapest link into it, which is paid for and
    leaves every other link into it dearer by that less. A walk that meets itself closes a cycle, which becomes one
    node; one that meets what is joined, joins it.
    """
    group = np.arange(nodes)
    rest = price.copy()
    total = 0
    walk = np.empty(nodes, np.int64)
    for start in range(nodes):
        if find(group, start) == find(group, root):
            continue
        walk[0], size = find(group, start), 1
        while size:
            here = walk[size - 1]
            best = cheapest_into(here, group, tail, head, rest)
            if best < 0:
                return -1
            total += pay(here, group, head, rest, rest[best])
            before = find(group, tail[best])
            again = 0 if before == find(group, root) else met(walk, size, before)
            if again == size:
                walk[size] = before
                size += 1
                continue
            for i in range(again, size):
                group[walk[i]] = before
            size = 0 if before == find(group, root) else again + 1
    return total


@kernel
def cheapest_into(node: int, group: Any, tail: Any, head: Any, rest: Any) -> int:
    """Cheapest link into a node from others, -1 if there is none."""
    best = -1
    for a in range(len(tail)):
        into = find(group, head[a]) == node and find(group, tail[a]) != node
        if into and (best < 0 or rest[a] < rest[best]):
            best = a
    return best


@kernel
def pay(node: int, group: Any, head: Any, rest: Any, price: int) -> int:
    """Take a price off all links into a node, and give it."""
    for a in range(len(head)):
        if find(group, head[a]) == node:
            rest[a] -= price
    return price


@kernel
def met(walk: Any, size: int, node: int) -> int:
    """Position of a node on a walk, or the size of the walk."""
    for i in range(size):
        if walk[i] == node:
            return i
    return size


@kernel
def find(group: Any, node: int) -> int:
    """The node that represents all nodes contracted into it."""
    while group[node] != node:
        group[node] = group[group[node]]
        node = group[node]
    return node
