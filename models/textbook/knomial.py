"""``knomial``: a tree in which, each round, everyone who has the data sends it to k - 1 others; ceil(log_k(n)) rounds.

Position p, counted from the root, has the data in the round of radix r if r divides p; then it sends to p + j r / k.
k = 2 is the binomial tree of MPI. An all-reduce reduces to the first rank of the group and broadcasts from it.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from ...core.collective import CollectiveKind
from ...core.fields import Strict
from ...core.schedule import Ints
from .assemble import SPREADS, Algorithm
from .define import define
from .moves import Moves, joined
from .problem import Problem


class Options(Strict):
    """Options of ``knomial``."""

    k: int = Field(
        2, ge=2, le=2**20, description="Radix: a rank that has the data sends it to k - 1 others in a round."
    )


def algorithm(problem: Problem, options: Options) -> Algorithm:
    """Give the primitives for a group."""
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
    return joined(steps)


METHOD = define(
    name="knomial",
    summary="k-nomial tree from or to the first rank of the group",
    paper="Thakur, Rabenseifner, Gropp, Optimization of collective communication operations in MPICH, 2005",
    collectives=(*SPREADS, CollectiveKind.ALL_REDUCE),
    algorithm=algorithm,
    options=Options,
)
