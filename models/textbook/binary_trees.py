"""Two binary trees of which every rank is an inner node of at most one, and when each edge carries which chunk.

Source: Sanders, Speck, Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", 2009; the
numbering is that of NCCL: in the first tree ranks with low bits 1 are leaves; the second tree is the first one
mirrored, or shifted by one where mirroring would keep the leaves.
"""

from __future__ import annotations

from collections.abc import Sequence


def in_order_tree(n: int) -> list[int]:
    """Give the parent of every node of a tree on 0, ..., n - 1, or -1; odd nodes are leaves, node 0 is the root and has one child."""
    parent = [-1] * n
    for node in range(1, n):
        bit = node & -node
        up = (node ^ bit) | (bit << 1)
        parent[node] = up if up < n else node ^ bit
    return parent


def relabel(parent: Sequence[int], label: Sequence[int]) -> list[int]:
    """Let ``label[i]`` play the part of node i."""
    found = [-1] * len(parent)
    for node, up in enumerate(parent):
        found[label[node]] = -1 if up < 0 else label[up]
    return found


def two_trees(n: int) -> tuple[list[int], list[int]]:
    """Give two trees on 0, ..., n - 1, with different roots."""
    first = in_order_tree(n)
    label = [n - 1 - i for i in range(n)] if n % 2 == 0 else [(i + 1) % n for i in range(n)]
    return first, relabel(first, label)


def two_trees_from_root(n: int) -> tuple[list[int], list[int]]:
    """Give two trees on 0, ..., n - 1, both with root 0, which has one child in each."""
    first = in_order_tree(n)
    others = [n - i for i in range(1, n)] if n % 2 else [i % (n - 1) + 1 for i in range(1, n)]
    return first, relabel(first, [0, *others])


def start_steps(trees: Sequence[Sequence[int]]) -> list[list[int]]:
    """Give, for every node of both trees, the step in which its parent sends it the first chunk; the next chunks follow every second step.

    Every node is sent to by at most two parents, and sends to at most two children: the edges have a colouring in two
    colours, such that no node sends, or is sent to, twice in one colour. Even steps belong to the one colour, odd
    steps to the other one.
    """
    edges = [(tree, child) for tree, parent in enumerate(trees) for child, up in enumerate(parent) if up >= 0]
    colour = two_colours([(trees[tree][child], child) for tree, child in edges])
    of_edge = dict(zip(edges, colour, strict=True))
    starts = [[-1] * len(parent) for parent in trees]
    for tree, parent in enumerate(trees):
        for node in top_down(parent):
            if parent[node] >= 0:
                earliest = starts[tree][parent[node]] + 1
                starts[tree][node] = earliest + (earliest + of_edge[tree, node]) % 2
    return starts


def two_colours(edges: Sequence[tuple[int, int]]) -> list[int]:
    """Colour edges (sender, receiver) such that the two of a sender differ, and those of a receiver; nobody has more than two."""
    at: dict[tuple[str, int], list[int]] = {}
    for index, (sender, receiver) in enumerate(edges):
        at.setdefault(("sends", sender), []).append(index)
        at.setdefault(("receives", receiver), []).append(index)
    colour = [-1] * len(edges)
    for start in range(len(edges)):
        pending = [(start, 0)] if colour[start] < 0 else []
        while pending:
            edge, wanted = pending.pop()
            if colour[edge] >= 0:
                continue
            colour[edge] = wanted
            sender, receiver = edges[edge]
            for end in (("sends", sender), ("receives", receiver)):
                pending += [(other, 1 - wanted) for other in at[end] if other != edge]
    return colour


def top_down(parent: Sequence[int]) -> list[int]:
    """List the nodes such that each comes after its parent."""
    children: list[list[int]] = [[] for _ in parent]
    order: list[int] = []
    for node, up in enumerate(parent):
        (order if up < 0 else children[up]).append(node)
    for node in order:
        order.extend(children[node])
    return order
