"""Bine trees: binomial trees and butterflies whose partners are at the distances 1, -1, 3, -5, 11, ...

In step s, position r of an even number of positions is joined with ``r + delta(s)`` if it is even and with
``r - delta(s)`` if it is odd, where ``delta(s) = (1 - (-2)^(s + 1)) / 3``: about two thirds as far as the partner at
distance ``2^s``, so that fewer bytes leave the groups of nodes that ranks in order are placed in. All collectives are
made of these partners, whatever the network: a reduce-scatter goes through them from the nearest, with which half of
the data is exchanged, to the furthest; an all-gather, a broadcast, an all-to-all and, backwards, a gather begin with
the furthest. Source: De Sensi et al., "Bine Trees: Enhancing Collective Operations by Optimizing Communication
Locality", SC 2025, arXiv 2508.17311. On a ring, which is where Swing has these distances from, the all-gathers of the
two differ only in that Swing has a mirrored half.

The distances are odd, so partners are partners of each other in any even number of positions; those that k steps reach
are 2^k consecutive ones, so ceil(log2(n)) steps reach all. Where that is more than there are, nothing is sent to who
has it. Of an odd number, the last position gives its data to the one before it first, and gets the result from there
last, as for other butterflies (Thakur et al., "Optimization of collective communication operations in MPICH", 2005).
What the paper itself does for other numbers than powers of two was not available.
"""

from __future__ import annotations

import numpy as np

from ...algorithms.schedules.problem import GroupProblem
from ...core.collective import Collective
from ...core.formulation import NoOptions
from ...core.schedule import Ints
from .algorithm import GATHERS, SPREADS, Algorithm, define
from .moves import Moves, concatenate_moves, negabinary


def bine(problem: GroupProblem, options: NoOptions) -> Algorithm:
    """Return the primitives for a group."""
    del options
    odd = problem.n % 2
    far_first = partners(problem.n - odd)[::-1]
    return Algorithm(
        all_gather=lambda: all_gather(far_first, odd),
        broadcast=lambda: broadcast(far_first, odd),
        all_to_all=lambda: all_to_all(far_first, odd),
        gather=lambda: gather(far_first, odd),
    )


def partners(n: int) -> list[Ints]:
    """Return the partner of each of an even number of positions in each step, the nearest first."""
    position = np.arange(n)
    away = [negabinary(step) for step in range((n - 1).bit_length())]
    return [(position + np.where(position % 2 == 0, delta, -delta)) % n for delta in away]


def all_gather(partner: list[Ints], odd: int) -> Moves:
    """Everybody sends its partner what that one lacks; ceil(log2(n)) steps, n (n - 1) sends."""
    n = len(partner[0])
    has = np.eye(n, n + odd, dtype=np.bool_)
    has[n - 1, n:] = True
    steps = [_move([n], n, n - 1, 0)] if odd else []
    for step, peer in enumerate(partner, odd):
        new = has[peer] & ~has
        target, block = np.nonzero(new)
        steps.append(_move(block, peer[target], target, step))
        has |= new
    if odd:
        steps.append(_move(np.arange(n), n - 1, n, len(partner) + 1))
    return concatenate_moves(steps)


def broadcast(partner: list[Ints], odd: int) -> Moves:
    """Everybody who has the data sends it to the partner of the step; ceil(log2(n)) steps, n - 1 sends."""
    n = len(partner[0])
    having: Ints = np.zeros(1, dtype=np.int64)
    steps: list[Moves] = []
    for step, peer in enumerate(partner):
        source = having[~np.isin(peer[having], having)]
        steps.append(_move(np.zeros_like(source), source, peer[source], step))
        having = np.concatenate([having, peer[source]])
    if odd:
        steps.append(_move([0], n - 1, n, len(partner)))
    return concatenate_moves(steps)


def gather(partner: list[Ints], odd: int) -> Moves:
    """Return the tree of the broadcast from its leaves; a position sends all it has collected."""
    tree = broadcast(partner, odd)
    collected: list[Ints] = [np.array([position]) for position in range(len(tree) + 1)]
    steps: list[Moves] = []
    last = int(tree.step[-1])
    for index in range(len(tree) - 1, -1, -1):
        parent, child = int(tree.source[index]), int(tree.target[index])
        steps.append(_move(collected[child], child, parent, last - int(tree.step[index])))
        collected[parent] = np.concatenate([collected[parent], collected[child]])
    return concatenate_moves(steps)


def all_to_all(partner: list[Ints], odd: int) -> Moves:
    """Send the partner all data that only its side can still deliver.

    For n a power of two, that is half of a position's data.
    """
    n = len(partner[0])
    reaches = [np.eye(n, dtype=np.bool_)]  # whom each position reaches from a step on
    for peer in reversed(partner):
        reaches.insert(0, reaches[0] | reaches[0][peer])
    part = np.flatnonzero(~np.eye(n + odd, dtype=np.bool_))
    here, goal = np.divmod(part, n + odd)
    from_odd, to_odd = part[here == n], part[goal == n]
    here, target = np.minimum(here, n - 1), np.minimum(goal, n - 1)
    steps = [_move(from_odd, n, n - 1, 0)] if odd else []
    for step, peer in enumerate(partner):
        moves = ~reaches[step + 1][here, target]
        source = here[moves]
        steps.append(_move(part[moves], source, peer[source], step + odd))
        here = np.where(moves, peer[here], here)
    if odd:
        steps.append(_move(to_odd, n - 1, n, len(partner) + 1))
    return concatenate_moves(steps)


def _move(block: Ints | list[int], source: Ints | int, target: Ints | int, step: int) -> Moves:
    """Return moves of one step."""
    blocks = np.asarray(block, dtype=np.int64)
    return Moves(blocks, np.zeros_like(blocks) + source, np.zeros_like(blocks) + target, np.full_like(blocks, step))


BINE = define(
    name="bine",
    summary="binomial trees and butterflies with near partners, for any number of ranks",
    paper="De Sensi et al., Bine Trees: Enhancing Collective Operations by Optimizing Communication Locality, SC 2025",
    collectives=(*GATHERS, Collective.ALL_TO_ALL, *SPREADS, Collective.GATHER, Collective.SCATTER),
    algorithm=bine,
)
