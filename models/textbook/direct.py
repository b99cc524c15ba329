"""``direct``: everybody sends to everybody at once, the algorithm of fully connected networks (also called one-shot or all-pairs).

Sources: dissertation, section 2.3.2 and figure 2.2; Chan et al., "Collective communication: theory, practice, and
experience", 2007. The sends of a step are listed by distance in the group, nearest first: rank i to i + 1, then i +
2, and so on.
"""

from __future__ import annotations

import numpy as np

from ...core.collective import CollectiveKind
from ...core.schedule import Ints
from .assemble import GATHERS, SPREADS, Algorithm
from .define import NoOptions, define
from .moves import Moves
from .problem import Problem


def algorithm(problem: Problem, options: NoOptions) -> Algorithm:
    """Give the primitives for a group."""
    del options
    n = problem.n
    return Algorithm(
        all_gather=lambda: all_gather(n, 1),
        broadcast=lambda: broadcast(n),
        all_to_all=lambda: all_to_all(n),
        gather=lambda: gather(n),
        mirror=Algorithm(all_gather=lambda: all_gather(n, -1), broadcast=lambda: broadcast(n)),
    )


def _pairs(n: int) -> tuple[Ints, Ints]:
    """Positions and distances of all pairs, by distance."""
    distance, position = np.divmod(np.arange(n, n * n), n)
    return position, distance


def all_gather(n: int, direction: int) -> Moves:
    """Send one's part to those at distance 1, 2, ... in the given direction; one step, n (n - 1) sends."""
    position, distance = _pairs(n)
    return Moves(position, position, (position + direction * distance) % n, np.zeros_like(position))


def broadcast(n: int) -> Moves:
    """Send the data from position 0 to all others; one step, n - 1 sends."""
    others = np.arange(1, n)
    return Moves(np.zeros_like(others), np.zeros_like(others), others, np.zeros_like(others))


def all_to_all(n: int) -> Moves:
    """Send everybody their part; one step, n (n - 1) sends."""
    position, distance = _pairs(n)
    target = (position + distance) % n
    return Moves(position * n + target, position, target, np.zeros_like(position))


def gather(n: int) -> Moves:
    """Send one's part to position 0; one step, n - 1 sends."""
    others = np.arange(1, n)
    return Moves(others, others, np.zeros_like(others), np.zeros_like(others))


METHOD = define(
    name="direct",
    summary="everybody sends to everybody at once, over shortest paths",
    paper="Chan et al., Collective communication: theory, practice, and experience, 2007",
    collectives=(*GATHERS, CollectiveKind.ALL_TO_ALL, *SPREADS, CollectiveKind.GATHER, CollectiveKind.SCATTER),
    algorithm=algorithm,
)
