"""Trees: ``dbt``, the double binary tree, and ``knomial``, for broadcast, reduce and all-reduce.

Algorithms and sources: docs/methods/textbook.md. The numbering of ``dbt`` is that of NCCL: in the first tree ranks with
low bits 1 are leaves; the second tree is the first one mirrored, or shifted by one where mirroring would keep the
leaves.
"""

from collections.abc import Sequence

import numpy as np
from pydantic import Field

from ...algorithms.schedules.problem import GroupProblem
from ...core.collective import Collective
from ...core.fields import Strict
from ...core.formulation import NoOptions
from ...core.grouping import group_by_key
from ...core.schedule import Ints
from ...instances.generators.dense import in_order_parent
from .algorithm import SPREADS, Algorithm, Moves, concatenate_moves, define


def double_binary_tree(problem: GroupProblem, options: NoOptions) -> Algorithm:
    """Return the primitives for a group."""
    n, trees = problem.n, two_trees(problem.n)
    roots = np.array([parent.index(-1) for parent in trees], dtype=np.int64)
    return Algorithm(
        broadcast=lambda: send_down_trees(two_trees_from_root(n), slices=2),
        tree_all_reduce=lambda: (roots, send_down_trees(trees, slices=1)),
    )


def send_down_trees(trees: Sequence[Sequence[int]], slices: int) -> Moves:
    """Send block t down tree t; 2 (n - 1) sends for every chunk."""
    starts = start_steps(trees)
    rows = [
        (tree, up, node, starts[tree][node])
        for tree, parent in enumerate(trees)
        for node, up in enumerate(parent)
        if up >= 0
    ]
    rows.sort(key=lambda row: row[3])
    block, source, target, step = np.array(rows, dtype=np.int64).T.copy()
    if len(rows) == len(trees) == len(set(target)):  # two ranks that exchange: every step is for both
        return Moves(block, source, target, np.zeros_like(step), slices, stride=1)
    return Moves(block, source, target, step - step.min(), slices, stride=2)


def in_order_tree(n: int) -> list[int]:
    """Return the parents, or -1, of a tree with odd leaves, whose root 0 has one child."""
    return [-1, *(in_order_parent(node, n) for node in range(1, n))]


def relabel(parent: Sequence[int], label: Sequence[int]) -> list[int]:
    """Let ``label[i]`` play the part of node i."""
    relabelled = [-1] * len(parent)
    for node, up in enumerate(parent):
        relabelled[label[node]] = -1 if up < 0 else label[up]
    return relabelled


def two_trees(n: int) -> tuple[list[int], list[int]]:
    """Two trees on 0, ..., n - 1, with different roots."""
    first = in_order_tree(n)
    label = [n - 1 - i for i in range(n)] if n % 2 == 0 else [(i + 1) % n for i in range(n)]
    return first, relabel(first, label)


def two_trees_from_root(n: int) -> tuple[list[int], list[int]]:
    """Two trees on 0, ..., n - 1, both with root 0, which has one child in each."""
    first = in_order_tree(n)
    others = [n - i for i in range(1, n)] if n % 2 else [i % (n - 1) + 1 for i in range(1, n)]
    return first, relabel(first, [0, *others])


def start_steps(trees: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the step of the first chunk to every node of both trees; others follow every second step.

    Steps follow a colouring of the edges in two colours (docs/methods/textbook.md): even steps of the one, odd of the
    other.
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
    """Colour edges (sender, receiver) in two colours: the two of a sender differ, and those of a receiver."""
    at: dict[tuple[str, int], list[int]] = {}
    for index, (sender, receiver) in enumerate(edges):
        at.setdefault(("sends", sender), []).append(index)
        at.setdefault(("receives", receiver), []).append(index)
    colour = [-1] * len(edges)
    for start in range(len(edges)):
        pending = [(start, 0)] if colour[start] < 0 else []
        while pending:
            edge, shade = pending.pop()
            if colour[edge] >= 0:
                continue
            colour[edge] = shade
            sender, receiver = edges[edge]
            for end in (("sends", sender), ("receives", receiver)):
                pending += [(other, 1 - shade) for other in at[end] if other != edge]
    return colour


def top_down(parent: Sequence[int]) -> list[int]:
    """List the nodes such that each comes after its parent."""
    children = group_by_key((up, node) for node, up in enumerate(parent))
    order = children[-1]
    for node in order:  # grows
        order.extend(children[node])
    return order


DBT = define(
    name="dbt",
    summary="double binary tree, half of the data down each of two trees",
    paper="Sanders, Speck, Traeff, Two-tree algorithms for full bandwidth broadcast, reduction and scan, 2009",
    collectives=(*SPREADS, Collective.ALL_REDUCE),
    algorithm=double_binary_tree,
)


class KnomialOptions(Strict):
    """Options of ``knomial``."""

    k: int = Field(2, ge=2, le=2**20)
    """Radix: a rank that has the data sends it to k - 1 others in a round."""


def knomial(problem: GroupProblem, options: KnomialOptions) -> Algorithm:
    """Return the primitives for a group."""
    n, k = problem.n, options.k
    return Algorithm(
        broadcast=lambda: broadcast(n, k), tree_all_reduce=lambda: (np.zeros(1, dtype=np.int64), broadcast(n, k))
    )


def broadcast(n: int, k: int) -> Moves:
    """Send to the furthest first; n - 1 sends."""
    rounds = 1
    while k**rounds < n:
        rounds += 1
    steps: list[Moves] = []
    for step in range(rounds):
        reach = k ** (rounds - 1 - step)
        source: Ints = np.repeat(np.arange(0, n, reach * k), k - 1)
        target = source + np.tile(np.arange(1, k), len(source) // (k - 1)) * reach
        source, target = source[target < n], target[target < n]
        steps.append(Moves(np.zeros_like(source), source, target, np.full_like(source, step)))
    return concatenate_moves(steps)


KNOMIAL = define(
    name="knomial",
    summary="k-nomial tree from or to the first rank of the group",
    paper="Thakur, Rabenseifner, Gropp, Optimization of collective communication operations in MPICH, 2005",
    collectives=(*SPREADS, Collective.ALL_REDUCE),
    algorithm=knomial,
    options=KnomialOptions,
)
