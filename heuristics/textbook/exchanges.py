"""Exchanges of everybody with everybody, or with partners at distances that double.

``direct``, ``rhd``, ``bruck`` and ``bine``: steps, partners and sources are in docs/methods/textbook.md.
"""

from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np

from ...algorithms.schedules.problem import GroupProblem
from ...core.collective import Collective
from ...core.errors import Refusal
from ...core.fields import Strict
from ...core.formulation import NoOptions
from ...core.schedule import Ints
from .algorithm import GATHERS, SPREADS, Algorithm, Moves, concatenate_moves, define, exchanges, is_shift, negabinary


class DirectOptions(Strict):
    """Options of ``direct``."""

    whole: bool = False
    """True if an all-reduce sends whole buffers in one step, rather than parts in two."""


def direct(problem: GroupProblem, options: DirectOptions) -> Algorithm:
    """Return the primitives for a group, one step each; data goes to all distances, the nearest first."""
    n, everybody = problem.n, np.arange(problem.n)
    zeros, others = np.zeros(n - 1, dtype=np.int64), np.arange(1, n)
    broadcast = Moves(zeros, zeros, others, zeros)

    def gather(parts: Ints, way: int) -> Moves:
        distance, block = np.divmod(np.arange(len(parts), n * len(parts)), len(parts))
        here = parts[block]
        return Moves(block, here, (here + way * distance) % n, np.zeros_like(here))

    def all_to_all(parts: Ints) -> Moves:
        moves = gather(parts, 1)
        return replace(moves, block=moves.block * n + moves.target)

    def all_reduce() -> Moves:
        moves = gather(everybody, 1)
        return replace(moves, block=np.zeros_like(moves.block))

    return Algorithm(
        all_gather=partial(gather, way=1),
        broadcast=lambda: broadcast,
        all_to_all=all_to_all,
        all_reduce=all_reduce if options.whole else None,
        gather=lambda: Moves(others, others, zeros, zeros),
        mirror=Algorithm(all_gather=partial(gather, way=-1), broadcast=lambda: broadcast),
        by_parts=(*GATHERS[: 2 if options.whole else 3], Collective.ALL_TO_ALL),
    )


DIRECT = define(
    name="direct",
    summary="everybody sends to everybody at once, over shortest paths",
    paper="Chan et al., Collective communication: theory, practice, and experience, 2007",
    collectives=(*GATHERS, Collective.ALL_TO_ALL, *SPREADS, Collective.GATHER, Collective.SCATTER),
    algorithm=direct,
    options=DirectOptions,
)


class HalvingOptions(Strict):
    """Options of ``rhd``."""

    order: Literal["near-first", "far-first"] = "near-first"
    """Distance of the partner with whom half of all data is exchanged: 1, or n/2."""
    whole: bool = False
    """True if an all-reduce exchanges whole buffers in log2(n) steps, rather than parts in twice as many."""


def fits_power_of_two(problem: GroupProblem) -> Refusal | None:
    """Insist on a power of two."""
    n = problem.n
    return None if n & (n - 1) == 0 else Refusal("network", f"{n} ranks are not a power of two")


def halving_doubling(problem: GroupProblem, options: HalvingOptions) -> Algorithm:
    """Return the primitives for a group."""
    position, bits = np.arange(problem.n), range(problem.n.bit_length() - 1)
    # The last step exchanges half of the data; log2(n) steps, n (n - 1) sends.
    order = bits[::-1] if options.order == "near-first" else bits
    partner = [position ^ (1 << bit) for bit in order]
    sums = [_moves_of_step(np.zeros_like(position), position, peer, step) for step, peer in enumerate(partner)]
    return Algorithm(
        all_gather=lambda parts: exchanges(partner),
        all_reduce=(lambda: concatenate_moves(sums)) if options.whole else None,
    )


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
    n = problem.n
    return Algorithm(all_gather=lambda parts: bruck_all_gather(n), all_to_all=lambda parts: bruck_all_to_all(n))


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


def bine(problem: GroupProblem, options: NoOptions) -> Algorithm:
    """Return the primitives for a group."""
    odd = problem.n % 2
    n = problem.n - odd
    position = np.arange(n)
    away = [negabinary(step) for step in range((n - 1).bit_length())]
    far_first = [(position + np.where(position % 2 == 0, delta, -delta)) % n for delta in reversed(away)]
    return Algorithm(
        all_gather=lambda parts: bine_all_gather(far_first, odd, parts),
        broadcast=lambda: bine_broadcast(far_first, odd),
        all_to_all=lambda parts: bine_all_to_all(far_first, odd),
        gather=lambda: bine_gather(far_first, odd),
        by_parts=() if odd else GATHERS,
        is_invariant_under=lambda image: is_shift(image, 2),
    )


def bine_all_gather(partner: list[Ints], odd: int, parts: Ints) -> Moves:
    """Everybody sends its partner what that one lacks of these parts; ceil(log2(n)) steps, n - 1 sends of each."""
    n = len(partner[0])
    has = np.minimum(parts, n - 1) == np.arange(n)[:, None]
    steps = [_moves_of_step([n], n, n - 1, 0)] if odd else []
    for step, peer in enumerate(partner, odd):
        new = has[peer] & ~has
        target, block = np.nonzero(new)
        steps.append(_moves_of_step(block, peer[target], target, step))
        has |= new
    if odd:
        steps.append(_moves_of_step(np.arange(n), n - 1, n, len(partner) + 1))
    return concatenate_moves(steps)


def bine_broadcast(partner: list[Ints], odd: int) -> Moves:
    """Everybody who has the data sends it to the partner of the step; ceil(log2(n)) steps, n - 1 sends."""
    n = len(partner[0])
    having: Ints = np.zeros(1, dtype=np.int64)
    steps: list[Moves] = []
    for step, peer in enumerate(partner):
        source = having[~np.isin(peer[having], having)]
        steps.append(_moves_of_step(np.zeros_like(source), source, peer[source], step))
        having = np.concatenate([having, peer[source]])
    if odd:
        steps.append(_moves_of_step([0], n - 1, n, len(partner)))
    return concatenate_moves(steps)


def bine_gather(partner: list[Ints], odd: int) -> Moves:
    """Return the tree of the broadcast from its leaves; a position sends all it has collected."""
    tree = bine_broadcast(partner, odd)
    collected: list[Ints] = [np.array([position]) for position in range(len(tree) + 1)]
    steps: list[Moves] = []
    last = int(tree.step[-1])
    for index in range(len(tree) - 1, -1, -1):
        parent, child = int(tree.source[index]), int(tree.target[index])
        steps.append(_moves_of_step(collected[child], child, parent, last - int(tree.step[index])))
        collected[parent] = np.concatenate([collected[parent], collected[child]])
    return concatenate_moves(steps)


def bine_all_to_all(partner: list[Ints], odd: int) -> Moves:
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
    steps = [_moves_of_step(from_odd, n, n - 1, 0)] if odd else []
    for step, peer in enumerate(partner):
        moves = ~reaches[step + 1][here, target]
        source = here[moves]
        steps.append(_moves_of_step(part[moves], source, peer[source], step + odd))
        here = np.where(moves, peer[here], here)
    if odd:
        steps.append(_moves_of_step(to_odd, n - 1, n, len(partner) + 1))
    return concatenate_moves(steps)


def _moves_of_step(block: Ints | list[int], source: Ints | int, target: Ints | int, step: int) -> Moves:
    blocks = np.asarray(block, dtype=np.int64)
    return Moves(blocks, np.zeros_like(blocks) + source, np.zeros_like(blocks) + target, np.full_like(blocks, step))


BINE = define(
    name="bine",
    summary="binomial trees and butterflies with near partners, for any number of ranks",
    paper="De Sensi et al., Bine Trees: Enhancing Collective Operations by Optimizing Communication Locality, SC 2025",
    collectives=(*GATHERS, Collective.ALL_TO_ALL, *SPREADS, Collective.GATHER, Collective.SCATTER),
    algorithm=bine,
)
