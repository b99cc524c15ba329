"""Compiled minimum-cost arborescences for the verifier of trees of limited height."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.kernel import kernel


@kernel
def cheapest_near(root: int, nodes: int, tail: Any, head: Any, price: Any, length: Any, most: int) -> int:
    """Return the cost of the cheapest arborescence over links within a distance of the root.

    A link qualifies if a path from the root that ends with it has a length of at most ``most``. The cost is -1 if
    they do not reach all nodes.
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
    """Return the cost of the cheapest arborescence from a root, -1 if there is none.

    Edmonds' algorithm by backward walks, after Tarjan. From a node not yet joined to the root, walk back over the
    cheapest incoming link: its price is paid and subtracted from all links into the node. A walk that meets itself
    closes a cycle, which is contracted to one node; a walk that meets a joined node is joined.
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
            again = 0 if before == find(group, root) else walk_position(walk, size, before)
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
    """Return the cheapest link into a contracted node from others, -1 if there is none."""
    best = -1
    for a in range(len(tail)):
        into = find(group, head[a]) == node and find(group, tail[a]) != node
        if into and (best < 0 or rest[a] < rest[best]):
            best = a
    return best


@kernel
def pay(node: int, group: Any, head: Any, rest: Any, price: int) -> int:
    """Subtract a price from all links into a contracted node; return the price."""
    for a in range(len(head)):
        if find(group, head[a]) == node:
            rest[a] -= price
    return price


@kernel
def walk_position(walk: Any, size: int, node: int) -> int:
    """Return the position of a node on a walk, the walk's size if it is absent."""
    for i in range(size):
        if walk[i] == node:
            return i
    return size


@kernel
def find(group: Any, node: int) -> int:
    """Return the node that represents the contracted set of a node."""
    while group[node] != node:
        group[node] = group[group[node]]
        node = group[node]
    return node
