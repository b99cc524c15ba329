"""``dbt``: double binary tree, half of the data down each of two trees; the algorithm of NCCL for small messages on large networks.

Sources: Sanders, Speck, Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", 2009; Zhao et
al., "Efficient Direct-Connect Topologies for Collective Communications", section 8.2. A rank is an inner node of one
tree at most, so that it sends and receives each half of the data once or twice; in every step it sends to one rank
and receives from one. The more chunks, the better the links are used.

An all-reduce reduces each half to the root of its tree and broadcasts it again; a broadcast and a reduce have both
trees under the root.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...core.collective import CollectiveKind
from ...core.schedule import Ints
from .assemble import SPREADS, Algorithm
from .binary_trees import start_steps, two_trees, two_trees_from_root
from .define import NoOptions, define
from .moves import Moves
from .problem import Problem


def algorithm(problem: Problem, options: NoOptions) -> Algorithm:
    """Give the primitives for a group."""
    del options
    n = problem.n
    return Algorithm(
        broadcast=lambda: down(two_trees_from_root(n), slices=2),
        tree_all_reduce=lambda: (roots(two_trees(n)), down(two_trees(n), slices=1)),
    )


def roots(trees: Sequence[Sequence[int]]) -> Ints:
    """Give the root of each tree."""
    return np.array([parent.index(-1) for parent in trees], dtype=np.int64)


def down(trees: Sequence[Sequence[int]], slices: int) -> Moves:
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


METHOD = define(
    name="dbt",
    summary="double binary tree, half of the data down each of two trees",
    paper="Sanders, Speck, Traeff, Two-tree algorithms for full bandwidth broadcast, reduction and scan, 2009",
    collectives=(*SPREADS, CollectiveKind.ALL_REDUCE),
    algorithm=algorithm,
)
