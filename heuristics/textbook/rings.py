"""Rings: everybody passes on what the neighbour has sent, around a cycle through all ranks.

``ring``, ``shifted-ring``, ``torus-rings`` and ``swing``: cycles, strides, partners and sources are in
docs/methods/textbook.md. The Hamiltonian cycle of ``ring`` is found by :func:`.lattice.find_cycle`.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import gcd, prod
from typing import Literal

import numpy as np
from pydantic import Field

from ...algorithms.schedules.problem import GroupProblem
from ...core.collective import Collective
from ...core.equal_steps import translate_ranks
from ...core.errors import InputError, Refusal, Unsupported
from ...core.fields import Strict
from ...core.formulation import NoOptions
from ...core.schedule import Ints
from .algorithm import (
    GATHERS,
    SPREADS,
    Algorithm,
    Moves,
    concatenate_moves,
    define,
    exchanges,
    is_large,
    is_shift,
    negabinary,
    run_side_by_side,
)
from .lattice import Lattice, Neighbours, find_cycle, find_lattice, is_cycle


def one_way(parts: Ints, n: int, direction: int = 1) -> Moves:
    """Return an all-gather one way around the ring: n - 1 steps (dissertation, section 2.3.2).

    ``parts`` are the positions whose parts are sent, in the order of their blocks.
    """
    step, number = np.arange(n - 1)[:, None], np.zeros(n, dtype=np.int64)
    number[parts] = np.arange(len(parts))
    position = np.sort((parts + direction * step) % n, axis=1, kind="stable")
    block, target = number[(position - direction * step) % n], (position + direction) % n
    return Moves(block.ravel(), position.ravel(), target.ravel(), np.repeat(step, len(parts)))


def two_way(parts: Ints, n: int) -> Moves:
    """Return an all-gather with one half of every part each way around; n - 1 steps."""
    return run_side_by_side([one_way(parts, n, 1), one_way(parts, n, -1)])


def breadth_first(n: int) -> Moves:
    """Return an all-gather with every part going half around both ways; floor(n / 2) steps.

    Links are equally busy over all. If n is even, the position opposite gets one half of the part from either side.
    Source: Zhao et al., "Efficient Direct-Connect Topologies for Collective Communications", appendix F.1: half the
    latency of the ring at the same bandwidth.
    """
    full = (n - 1) // 2
    slices = 1 if n % 2 else 2

    def part(steps: Ints, way: int, j: int) -> Moves:
        step, position = (column.ravel() for column in np.meshgrid(steps, np.arange(n), indexing="ij"))
        return Moves(((position - way * step) % n) * slices + j, position, (position + way) % n, step, slices)

    parts = [part(np.arange(full), way, j) for way in (1, -1) for j in range(slices)]
    last = [part(np.array([full]), way, j) for j, way in enumerate((1, -1))] if slices == 2 else []
    return concatenate_moves([*parts, *last])


def chain(n: int, *, both: bool) -> Moves:
    """Broadcast from position 0 along the ring, n - 2 + c steps; with ``both``, half each way."""
    step = np.arange(n - 1)
    zero = np.zeros_like(step)
    forth = Moves(zero, step, step + 1, step, stride=1)
    back = Moves(zero, -step % n, -(step + 1) % n, step, stride=1)
    return run_side_by_side([forth, back]) if both else forth


def all_to_all(n: int, *, both: bool) -> Moves:
    """Return an all-to-all from neighbour to neighbour: every part travels d hops in d steps.

    One way, n - 1 steps and n^2 (n - 1) / 2 sends. With ``both``, every part goes the shorter way, floor(n / 2)
    steps; if n is even, a part for the opposite side goes half each way.
    """
    slices = 2 if both and n % 2 == 0 else 1
    parts: list[Moves] = []
    for j in range(slices):
        for distance in range(1, n):
            clockwise = not both or 2 * distance < n or (2 * distance == n and j == 0)
            way, hops = (1, distance) if clockwise else (-1, n - distance)
            step, start = np.divmod(np.arange(n * hops), n)
            block = (start * n + (start + distance) % n) * slices + j
            here = (start + way * step) % n
            parts.append(Moves(block, here, (here + way) % n, step, slices))
    return concatenate_moves(parts)


class RingOptions(Strict):
    """Options of ``ring``."""

    ways: Literal["auto", "one-way", "two-way"] = "auto"
    """two-way sends half of the data each way; auto does if each link of the cycle has one back."""
    order: list[int] | None = None
    """Ranks of the group in the order of the ring; by default a Hamiltonian cycle if one is found."""


def ring(problem: GroupProblem, options: RingOptions) -> Algorithm:
    """Return the collectives on one ring; reductions run backwards around the reversed ring, and so the same way."""
    near = Neighbours(problem)
    own = options.order
    order = find_cycle(problem, near, invariant=is_large(problem)) if own is None else given_order(problem, own)
    both = options.ways == "two-way"
    if options.ways == "auto":  # if a cycle over neighbours can be reversed over neighbours
        both = is_cycle(order[::-1], near) or not is_cycle(order, near)
    cycle = np.array(order, dtype=np.int64)
    forth = ring_algorithm(cycle, both=both)
    back = ring_algorithm(np.roll(cycle[::-1], 1), both=both)
    return replace(forth, mirror=back)


def ring_algorithm(cycle: Ints, *, both: bool) -> Algorithm:
    """Return the collectives on a cycle that begins with position 0."""
    n, place, gather = len(cycle), np.argsort(cycle), two_way if both else one_way

    return Algorithm(
        all_gather=lambda parts: gather(place[parts], n).relabel_positions(cycle),
        broadcast=lambda: chain(n, both=both).relabel_positions(cycle),
        all_to_all=lambda parts: all_to_all(n, both=both).rename_pairs(cycle),
        shares=2 if both else 1,
        by_parts=GATHERS,
        is_invariant_under=lambda image: is_shift(place[image[cycle]]),
    )


def given_order(problem: GroupProblem, order: list[int]) -> list[int]:
    """Turn ranks into positions, the first rank of the group first."""
    if sorted(order) != sorted(problem.ranks):
        raise InputError("expected every rank of the group once", source="-O", place="order")
    position = {rank: index for index, rank in enumerate(problem.ranks)}
    cycle = [position[rank] for rank in order]
    start = cycle.index(0)
    return cycle[start:] + cycle[:start]


RING = define(
    name="ring",
    summary="around a cycle through all ranks, half of the data each way",
    paper="Patarasuk, Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations, 2009",
    collectives=(*GATHERS, Collective.ALL_TO_ALL, *SPREADS),
    algorithm=ring,
    options=RingOptions,
)


class ShiftedRingOptions(Strict):
    """Options of ``shifted-ring``."""

    strides: list[int] | None = Field(None, min_length=1, max_length=1000)
    """Strides of the rings; by default all over links both ways."""
    variant: Literal["traditional", "bfb"] = "traditional"
    """traditional sends half of the data all around each way; bfb all of it half around."""


def shifted_ring(problem: GroupProblem, options: ShiftedRingOptions) -> Algorithm:
    """Return an all-gather on a ring for each stride; each stride, given or found, must lead through all ranks."""
    n = problem.n
    strides = strides_over_neighbours(problem) if options.strides is None else options.strides
    for index, stride in enumerate(strides):
        if gcd(stride, n) != 1:
            raise InputError(f"{stride} and {n} have a common divisor", source="-O", place=f"strides[{index}]")
    everybody = np.arange(n)

    def gather(parts: Ints) -> Moves:
        moves = breadth_first(n) if options.variant == "bfb" else two_way(everybody, n)
        return run_side_by_side([moves.rename_blocks(everybody * stride % n) for stride in strides])

    halves = 1 if options.variant == "bfb" and n % 2 else 2
    return Algorithm(all_gather=gather, shares=len(strides) * halves)


def strides_over_neighbours(problem: GroupProblem) -> list[int]:
    """Return the strides of all rings over neighbours."""
    n, near = problem.n, Neighbours(problem)
    strides = [
        a
        for a in range(1, n // 2 + 1)
        if gcd(a, n) == 1 and all(near.joins(i, (i + way) % n) for way in (a, -a) for i in range(n))
    ]
    if not strides:
        raise Unsupported(f"shifted-ring: no stride visits all {n} ranks over neighbours: give -O strides=[1,...]")
    return strides


SHIFTED_RING = define(
    name="shifted-ring",
    summary="a ring for each stride that the network has, each with its share of the data",
    paper="Zhao et al., Efficient Direct-Connect Topologies for Collective Communications, sections 8.2 and F.1",
    collectives=GATHERS,
    algorithm=shifted_ring,
    options=ShiftedRingOptions,
)


def fits_torus(problem: GroupProblem) -> Refusal | None:
    """Refuse all but the group of all ranks of a torus, in order."""
    lattice = find_lattice(problem.topology)
    if lattice is None or not all(lattice.closed):
        text = "the network is not a torus numbered along one dimension after another, such as torus(4,4)"
        return Refusal("network", text)
    if problem.ranks != tuple(range(len(problem.topology.ranks))):
        return Refusal("ranks", "it needs all ranks of the torus, in order")
    return None


def torus_of(problem: GroupProblem) -> Lattice:
    """Return the torus of a problem that :func:`fits_torus` accepts."""
    lattice = find_lattice(problem.topology)
    assert lattice is not None  # noqa: S101 (fits has been asked)
    return lattice


class TorusRingsOptions(Strict):
    """Options of ``torus-rings``."""

    ways: Literal["two-way", "one-way"] = "two-way"
    """two-way sends half of the data each way around the rings."""
    rotate: bool = True
    """True if equal shares of the data begin in different dimensions; else all begin in the first."""


def torus_rings(problem: GroupProblem, options: TorusRingsOptions) -> Algorithm:
    """Return an all-gather along one dimension of a torus after the other."""
    torus = torus_of(problem)
    dimensions = range(len(torus.sizes))
    orders = [[*dimensions[d:], *dimensions[:d]] for d in dimensions] if options.rotate else [list(dimensions)]
    ways = (1, -1) if options.ways == "two-way" else (1,)

    everywhere, shares = np.arange(problem.n), len(ways) * len(orders)

    def gather(parts: Ints, direction: int) -> Moves:
        several = [(torus, order, direction * way) for way in ways for order in orders]
        if len(parts) == problem.n:
            return run_side_by_side([gather_along(*each, everywhere) for each in several])
        return run_side_by_side([gather_parts(*each, parts) for each in several])

    return Algorithm(
        all_gather=partial(gather, direction=1),
        mirror=Algorithm(all_gather=partial(gather, direction=-1)),
        shares=shares,
        by_parts=GATHERS,
        is_invariant_under=lambda image: np.array_equal(image, translate_ranks(torus.sizes, everywhere, image[:1])),
    )


def gather_parts(torus: Lattice, order: Sequence[int], way: int, parts: Ints) -> Moves:
    """Return the moves of some nodes' parts: node 0's sends, moved back by the owners of their data."""
    first = gather_along(torus, order, way, np.zeros(1, dtype=np.int64))
    ends = (translate_ranks(torus.sizes, column, first.block, -1)[:, None] for column in (first.source, first.target))
    source, target = (translate_ranks(torus.sizes, column, parts).ravel() for column in ends)
    return Moves(np.tile(np.arange(len(parts)), len(first)), source, target, np.repeat(first.step, len(parts)))


def gather_along(torus: Lattice, order: Sequence[int], way: int, node: Ints) -> Moves:
    """Return the n - 1 sends of each of some nodes along the dimensions in this order, one way around."""
    # Where parts have come from, relative to a node whose coordinates there are 0.
    gathered = np.zeros(1, dtype=np.int64)
    lines: list[Moves] = []
    step = 0
    own = node.copy()  # the node with its coordinates in the dimensions done set to 0
    for d in order:
        size, stride = torus.sizes[d], torus.stride(d)
        here = node // stride % size
        target = node + ((here + way) % size - here) * stride
        for turn in range(size - 1):
            origin = own + ((here - way * turn) % size - here) * stride
            block = (origin[:, None] + gathered[None, :]).ravel()
            count = len(gathered)
            lines.append(Moves(block, np.repeat(node, count), np.repeat(target, count), np.full(len(block), step)))
            step += 1
        own = own - here * stride
        gathered = (gathered[:, None] + np.arange(size)[None, :] * stride).ravel()
    return concatenate_moves(lines)


TORUS_RINGS = define(
    name="torus-rings",
    summary="rings along one dimension of a torus after the other",
    paper="Zhao et al., Efficient Direct-Connect Topologies for Collective Communications, section 6.2",
    collectives=GATHERS,
    algorithm=torus_rings,
    options=TorusRingsOptions,
    fits=fits_torus,
)


def fits_swing(problem: GroupProblem) -> Refusal | None:
    """Refuse all but the group of all ranks of a torus with sizes that are powers of two."""
    if (reason := fits_torus(problem)) is not None:
        return reason
    torus = torus_of(problem)
    uneven = any(size & (size - 1) for size in torus.sizes)
    return Refusal("network", f"a size of {torus} is not a power of two") if uneven else None


def swing(problem: GroupProblem, options: NoOptions) -> Algorithm:
    """Return an all-gather along short-cut rings on a torus."""
    torus = torus_of(problem)
    variants = [(first, mirror) for mirror in (1, -1) for first in range(len(torus.sizes))]
    # The partners of a reduce-scatter, the last one first; log2(n) steps, n (n - 1) sends.
    return Algorithm(
        all_gather=lambda parts: run_side_by_side([exchanges(partners(torus, *variant)[::-1]) for variant in variants]),
        shares=len(variants),
    )


def partners(torus: Lattice, first: int, mirror: int) -> list[Ints]:
    """Return the partner of every node in each step of a reduce-scatter from the dimension ``first`` on."""
    node, dimensions = np.arange(prod(torus.sizes)), range(len(torus.sizes))
    steps: list[Ints] = []
    for step in range(max(torus.sizes).bit_length() - 1):
        delta = mirror * negabinary(step)
        for turn in (*dimensions[first:], *dimensions[:first]):
            if step < torus.sizes[turn].bit_length() - 1:
                here = torus.coordinate(turn)
                there = (here + np.where(here % 2 == 0, delta, -delta)) % torus.sizes[turn]
                steps.append(node + (there - here) * torus.stride(turn))
    return steps


SWING = define(
    name="swing",
    summary="short-cut rings on tori of powers of two",
    paper="De Sensi et al., Swing: Short-cutting Rings for Higher Bandwidth Allreduce, NSDI 2024",
    collectives=GATHERS,
    algorithm=swing,
    fits=fits_swing,
)
