"""Bine trees: binomial trees and butterflies whose partners are at the distances 1, -1, 3, -5, 11, ...

In step s, position r of a group of a power of two is joined with ``r + delta(s)`` if it is even and with
``r - delta(s)`` if it is odd, where ``delta(s) = (1 - (-2)^(s + 1)) / 3``: about two thirds as far as the partner at
distance ``2^s``, so that fewer bytes leave the groups of nodes that ranks in order are placed in. All collectives are
made of these partners, whatever the network: a reduce-scatter goes through them from the nearest, with which half of the
data is exchanged, to the furthest; an all-gather, a broadcast, an all-to-all and, backwards, a gather begin with the
furthest. Source: De Sensi et al., "Bine Trees: Enhancing Collective Operations by Optimizing Communication Locality",
SC 2025, arXiv 2508.17311. On a ring, which is where Swing has these distances from, the all-gathers of the two differ
only in that Swing has a mirrored half.
"""

from __future__ import annotations

import numpy as np

from ...algorithms.schedules.problem import GroupProblem
from ...core.collective import CollectiveKind
from ...core.formulation import NoOptions
from ...core.schedule import Ints
from .algorithm import GATHERS, SPREADS, Algorithm, define
from .exchanges import fits_power_of_two
from .moves import Moves, exchanges, joined, negabinary


def bine(problem: GroupProblem, options: NoOptions) -> Algorithm:
    """The primitives for a group."""
    del options
    far_first = partners(problem.n)[::-1]
    return Algorithm(
        all_gather=lambda: exchanges(far_first),
        broadcast=lambda: broadcast(far_first),
        all_to_all=lambda: all_to_all(far_first),
        gather=lambda: gather(far_first),
    )


def partners(n: int) -> list[Ints]:
    """The partner of every position in each step, the nearest first."""
    position = np.arange(n)
    away = [negabinary(step) for step in range(n.bit_length() - 1)]
    return [(position + np.where(position % 2 == 0, delta, -delta)) % n for delta in away]


def broadcast(partner: list[Ints]) -> Moves:
    """Everybody who has the data sends it to the partner of the step; log2(n) steps, n - 1 sends."""
    having: Ints = np.zeros(1, dtype=np.int64)
    steps: list[Moves] = []
    for step, peer in enumerate(partner):
        target = peer[having]
        steps.append(Moves(np.zeros_like(having), having, target, np.full_like(having, step)))
        having = np.concatenate([having, target])
    return joined(steps)


def gather(partner: list[Ints]) -> Moves:
    """The tree of the broadcast from its leaves: a position sends all it has collected; log2(n) steps."""
    tree = broadcast(partner)
    collected: list[Ints] = [np.array([position]) for position in range(len(tree) + 1)]
    steps: list[Moves] = []
    last = len(partner) - 1
    for index in range(len(tree) - 1, -1, -1):
        parent, child = int(tree.source[index]), int(tree.target[index])
        block = collected[child]
        step = last - tree.step[index]
        steps.append(Moves(block, np.full_like(block, child), np.full_like(block, parent), np.full_like(block, step)))
        collected[parent] = np.concatenate([collected[parent], block])
    return joined(steps)


def all_to_all(partner: list[Ints]) -> Moves:
    """Half of what a position holds goes to its partner in every step, that which only the partner's side can deliver."""
    n = len(partner[0])
    reaches = [np.eye(n, dtype=np.bool_)]  # whom each position reaches from a step on
    for peer in reversed(partner):
        reaches.insert(0, reaches[0] | reaches[0][peer])
    part = np.flatnonzero(~np.eye(n, dtype=np.bool_))
    here, target = np.divmod(part, n)
    steps: list[Moves] = []
    for step, peer in enumerate(partner):
        moves = ~reaches[step + 1][here, target]
        source = here[moves]
        steps.append(Moves(part[moves], source, peer[source], np.full_like(source, step)))
        here = np.where(moves, peer[here], here)
    return joined(steps)


BINE = define(
    name="bine",
    summary="binomial trees and butterflies with near partners, for a power of two of ranks",
    paper="De Sensi et al., Bine Trees: Enhancing Collective Operations by Optimizing Communication Locality, SC 2025",
    collectives=(*GATHERS, CollectiveKind.ALL_TO_ALL, *SPREADS, CollectiveKind.GATHER, CollectiveKind.SCATTER),
    algorithm=bine,
    fits=fits_power_of_two,
)
