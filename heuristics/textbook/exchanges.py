"""Exchanges of everybody with everybody, or with partners at distances that double.

``direct`` is the algorithm of fully connected networks, also called one-shot or all-pairs: everybody sends to
everybody at once. The sends of a step are listed by distance in the group, nearest first: rank i to i + 1, then i +
2, and so on. Sources: dissertation, section 2.3.2 and figure 2.2; Chan et al., "Collective communication: theory,
practice, and experience", 2007.

``rhd`` is recursive halving-doubling, the algorithm of switches, for groups of a power of two. An all-gather by
recursive doubling: in each step, ranks that differ in one bit exchange all they have. Backwards, that is a
reduce-scatter by recursive halving. Sources: Thakur, Rabenseifner, Gropp, "Optimization of collective communication
operations in MPICH", 2005; dissertation, section 2.3.2 and figure 2.2.

``bruck`` takes ceil(log2(n)) steps for any number of ranks. All-gather by concatenation: in step k, rank i sends to i
- 2^k what it has, at most what that one still lacks. All-to-all by index: a part that has to travel d positions moves
on by 2^k in step k for every bit k of d. Source: Bruck et al., "Efficient algorithms for all-to-all communications in
multiport message-passing systems", 1997.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from ...algorithms.schedules.problem import GroupProblem
from ...core.collective import Collective
from ...core.errors import Refusal
from ...core.fields import Strict
from ...core.formulation import NoOptions
from ...core.schedule import Ints
from .algorithm import GATHERS, SPREADS, Algorithm, define
from .moves import Moves, concatenate_moves, exchanges


def direct(problem: GroupProblem, options: NoOptions) -> Algorithm:
    """Return the primitives for a group."""
    del options
    n = problem.n
    return Algorithm(
        all_gather=lambda: direct_all_gather(n, 1),
        broadcast=lambda: direct_broadcast(n),
        all_to_all=lambda: direct_all_to_all(n),
        gather=lambda: direct_gather(n),
        mirror=Algorithm(all_gather=lambda: direct_all_gather(n, -1), broadcast=lambda: direct_broadcast(n)),
    )


def _pairs(n: int) -> tuple[Ints, Ints]:
    """Return positions and distances of all pairs, by distance."""
    distance, position = np.divmod(np.arange(n, n * n), n)
    return position, distance


def direct_all_gather(n: int, direction: int) -> Moves:
    """Send each part to distances 1, 2, ... in the given direction; one step, n (n - 1) sends."""
    position, distance = _pairs(n)
    return Moves(position, position, (position + direction * distance) % n, np.zeros_like(position))


def direct_broadcast(n: int) -> Moves:
    """Send the data from position 0 to all others; one step, n - 1 sends."""
    others = np.arange(1, n)
    return Moves(np.zeros_like(others), np.zeros_like(others), others, np.zeros_like(others))


def direct_all_to_all(n: int) -> Moves:
    """Send everybody their part; one step, n (n - 1) sends."""
    position, distance = _pairs(n)
    target = (position + distance) % n
    return Moves(position * n + target, position, target, np.zeros_like(position))


def direct_gather(n: int) -> Moves:
    """Send one's part to position 0; one step, n - 1 sends."""
    others = np.arange(1, n)
    return Moves(others, others, np.zeros_like(others), np.zeros_like(others))


DIRECT = define(
    name="direct",
    summary="everybody sends to everybody at once, over shortest paths",
    paper="Chan et al., Collective communication: theory, practice, and experience, 2007",
    collectives=(*GATHERS, Collective.ALL_TO_ALL, *SPREADS, Collective.GATHER, Collective.SCATTER),
    algorithm=direct,
)


class HalvingOptions(Strict):
    """Options of ``rhd``."""

    order: Literal["near-first", "far-first"] = Field(
        "near-first",
        description="With whom a rank exchanges half of all data: its nearest partner (distance 1), or the one at "
        "distance n/2.",
    )


def fits_power_of_two(problem: GroupProblem) -> Refusal | None:
    """Insist on a power of two."""
    n = problem.n
    return None if n & (n - 1) == 0 else Refusal("network", f"{n} ranks are not a power of two")


def halving_doubling(problem: GroupProblem, options: HalvingOptions) -> Algorithm:
    """Return the primitives for a group."""
    near_first = options.order == "near-first"
    return Algorithm(all_gather=lambda: doubling(problem.n, near_first=near_first))


def doubling(n: int, *, near_first: bool) -> Moves:
    """Exchange with the partner in every bit; log2(n) steps, n (n - 1) sends.

    The last step exchanges half of the data.
    """
    bits = range(n.bit_length() - 1)
    position = np.arange(n)
    return exchanges([position ^ (1 << bit) for bit in (reversed(bits) if near_first else bits)])


RHD = define(
    name="rhd",
    summary="recursive halving-doubling, for a power of two of ranks",
    paper="Thakur, Rabenseifner, Gropp, Optimization of collective communication operations in MPICH, 2005",
    collectives=GATHERS,
    algorithm=halving_doubling,
    options=HalvingOptions,
    fits=fits_power_of_two,
)


def bruck(problem: GroupProblem, options: NoOptions) -> Algorithm:
    """Return the primitives for a group."""
    del options
    n = problem.n
    return Algorithm(all_gather=lambda: bruck_all_gather(n), all_to_all=lambda: bruck_all_to_all(n))


def bruck_all_gather(n: int) -> Moves:
    """Send min(2^k, n - 2^k) parts in step k; n (n - 1) sends in all."""
    steps: list[Moves] = []
    for step in range((n - 1).bit_length()):
        distance = 1 << step
        offset, position = np.divmod(np.arange(n * min(distance, n - distance)), n)
        steps.append(Moves((position + offset) % n, position, (position - distance) % n, np.full_like(position, step)))
    return concatenate_moves(steps)


def bruck_all_to_all(n: int) -> Moves:
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
    return concatenate_moves(steps)


BRUCK = define(
    name="bruck",
    summary="log2(n) steps for any number of ranks",
    paper="Bruck et al., Efficient algorithms for all-to-all communications in multiport message-passing systems, 1997",
    collectives=(*GATHERS, Collective.ALL_TO_ALL),
    algorithm=bruck,
)
