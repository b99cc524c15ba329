"""Algorithms of tori.

``torus-rings`` runs rings along one dimension after the other: an all-gather runs rings in the first dimension, then
rings in the second one with all that has been gathered, and so on; on a D-dimensional torus, D equal shares of the
data begin in different dimensions, so that all links are busy if the dimensions are equal. This is what Zhao et al.,
"Efficient Direct-Connect Topologies for Collective Communications", section 6.2, call the traditional schedule: sum
of (size - 1) steps.

``swing`` runs short-cut rings on tori whose sizes are powers of two, in log2(n) steps. In step s of a dimension,
coordinate a exchanges with ``a + delta(s)`` if it is even and with ``a - delta(s)`` if it is odd, where
``delta(s) = (1 - (-2)^(s + 1)) / 3`` is 1, -1, 3, -5, 11, ...: nearer than the partners of recursive doubling. The
dimensions take turns. On a torus of D dimensions, 2 D equal shares of the data run at once: they begin in each
dimension, and are mirrored or not. Source: De Sensi, Bonato, Saam, Hoefler, "Swing: Short-cutting Rings for Higher
Bandwidth Allreduce", NSDI 2024, sections 3 and 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Literal

import numpy as np
from pydantic import Field

from ...algorithms.schedules.problem import GroupProblem
from ...core.errors import Refusal
from ...core.fields import Strict
from ...core.formulation import NoOptions
from ...core.schedule import Ints
from .algorithm import GATHERS, Algorithm, define
from .lattice import Lattice, find_lattice
from .moves import Moves, concatenate_moves, exchanges, negabinary, run_side_by_side


def fits_torus(problem: GroupProblem) -> Refusal | None:
    """Insist on all ranks of a torus, in order."""
    lattice = find_lattice(problem.topology)
    if lattice is None or not all(lattice.closed):
        return Refusal(
            "network", "the network is not a torus numbered along one dimension after another, such as torus(4,4)"
        )
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

    ways: Literal["two-way", "one-way"] = Field(
        "two-way", description="two-way sends half of the data each way around the rings."
    )
    rotate: bool = Field(
        True, description="Whether equal shares of the data begin in different dimensions; else all begin in the first."
    )


def torus_rings(problem: GroupProblem, options: TorusRingsOptions) -> Algorithm:
    """Return the primitives for a torus."""
    torus = torus_of(problem)
    dimensions = range(len(torus.sizes))
    orders = [[*dimensions[d:], *dimensions[:d]] for d in dimensions] if options.rotate else [list(dimensions)]
    ways = (1, -1) if options.ways == "two-way" else (1,)

    def gather(direction: int) -> Moves:
        return run_side_by_side([gather_along(torus, order, direction * way) for way in ways for order in orders])

    return Algorithm(all_gather=lambda: gather(1), mirror=Algorithm(all_gather=lambda: gather(-1)))


def gather_along(torus: Lattice, order: Sequence[int], way: int) -> Moves:
    """Gather along the dimensions in this order, one way around; n (n - 1) sends."""
    node = np.arange(prod(torus.sizes))
    gathered = np.zeros(
        1, dtype=np.int64
    )  # where parts have come from, relative to a node whose coordinates there are 0
    lines: list[Moves] = []
    step = 0
    own = node.copy()  # the node with its coordinates in the dimensions done set to 0
    for d in order:
        size, stride = torus.sizes[d], torus.stride(d)
        here = torus.coordinate(d)
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
    """Insist on all ranks of a torus with sizes that are powers of two."""
    if (reason := fits_torus(problem)) is not None:
        return reason
    torus = torus_of(problem)
    return (
        Refusal("network", f"a size of {torus} is not a power of two")
        if any(size & (size - 1) for size in torus.sizes)
        else None
    )


def swing(problem: GroupProblem, options: NoOptions) -> Algorithm:
    """Return the primitives for a torus."""
    del options
    torus = torus_of(problem)
    variants = [(first, mirror) for mirror in (1, -1) for first in range(len(torus.sizes))]
    # The partners of a reduce-scatter, the last one first; log2(n) steps, n (n - 1) sends.
    return Algorithm(
        all_gather=lambda: run_side_by_side([exchanges(partners(torus, *variant)[::-1]) for variant in variants])
    )


def partners(torus: Lattice, first: int, mirror: int) -> list[Ints]:
    """Return the partner of every node in each step of a reduce-scatter from the dimension ``first`` on."""
    dimensions = len(torus.sizes)
    node = np.arange(int(np.prod(torus.sizes)))
    left = [size.bit_length() - 1 for size in torus.sizes]
    taken = [0] * dimensions
    steps: list[Ints] = []
    turn = first
    while any(taken[d] < left[d] for d in range(dimensions)):
        if taken[turn] < left[turn]:
            delta = mirror * negabinary(taken[turn])
            here = torus.coordinate(turn)
            there = (here + np.where(here % 2 == 0, delta, -delta)) % torus.sizes[turn]
            steps.append(node + (there - here) * torus.stride(turn))
            taken[turn] += 1
        turn = (turn + 1) % dimensions
    return steps


SWING = define(
    name="swing",
    summary="short-cut rings on tori of powers of two",
    paper="De Sensi et al., Swing: Short-cutting Rings for Higher Bandwidth Allreduce, NSDI 2024",
    collectives=GATHERS,
    algorithm=swing,
    fits=fits_swing,
)
