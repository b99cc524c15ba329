"""``bruck``: ceil(log2(n)) steps for any number of ranks.

All-gather by concatenation: in step k, rank i sends to i - 2^k what it has, at most what that one still lacks.
All-to-all by index: a part that has to travel d positions moves on by 2^k in step k for every bit k of d. Source:
Bruck et al., "Efficient algorithms for all-to-all communications in multiport message-passing systems", 1997.
"""

from __future__ import annotations

import numpy as np

from ...core.collective import CollectiveKind
from .assemble import GATHERS, Algorithm
from .define import NoOptions, define
from .moves import Moves, joined
from .problem import Problem


def algorithm(problem: Problem, options: NoOptions) -> Algorithm:
    """Give the primitives for a group."""
    del options
    n = problem.n
    return Algorithm(all_gather=lambda: all_gather(n), all_to_all=lambda: all_to_all(n))


def all_gather(n: int) -> Moves:
    """Send min(2^k, n - 2^k) parts in step k; n (n - 1) sends in all."""
    steps: list[Moves] = []
    for step in range((n - 1).bit_length()):
        distance = 1 << step
        offset, position = np.divmod(np.arange(n * min(distance, n - distance)), n)
        steps.append(Moves((position + offset) % n, position, (position - distance) % n, np.full_like(position, step)))
    return joined(steps)


def all_to_all(n: int) -> Moves:
    """Move every part whose distance has bit k in step k; one send for each bit."""
    steps: list[Moves] = []
    for step in range((n - 1).bit_length()):
        bit = 1 << step
        distances = np.arange(n)
        distances = distances[distances & bit != 0]
        which, start = np.divmod(np.arange(n * len(distances)), n)
        distance = distances[which]
        here = (start + distance % bit) % n
        block = start * n + (start + distance) % n
        steps.append(Moves(block, here, (here + bit) % n, np.full_like(here, step)))
    return joined(steps)


METHOD = define(
    name="bruck",
    summary="log2(n) steps for any number of ranks",
    paper="Bruck et al., Efficient algorithms for all-to-all communications in multiport message-passing systems, 1997",
    collectives=(*GATHERS, CollectiveKind.ALL_TO_ALL),
    algorithm=algorithm,
)
