"""``swing``: short-cut rings on tori whose sizes are powers of two; log2(n) steps.

In step s of a dimension, coordinate a exchanges with ``a + delta(s)`` if it is even and with ``a - delta(s)`` if it
is odd, where ``delta(s) = (1 - (-2)^(s + 1)) / 3`` is 1, -1, 3, -5, 11, ...: nearer than the partners of recursive
doubling. The dimensions take turns. On a torus of D dimensions, 2 D equal shares of the data run at once: they begin
in each dimension, and are mirrored or not. Source: De Sensi, Bonato, Saam, Hoefler, "Swing: Short-cutting Rings for
Higher Bandwidth Allreduce", NSDI 2024, sections 3 and 4.
"""

from __future__ import annotations

import numpy as np

from ...core.schedule import Ints
from .assemble import GATHERS, Algorithm
from .define import NoOptions, define
from .lattice import Lattice, find_lattice
from .moves import Moves, exchanges, together
from .problem import Problem


def fits(problem: Problem) -> str | None:
    """Insist on all ranks of a torus with sizes that are powers of two."""
    lattice = find_lattice(problem.topology)
    if lattice is None or not lattice.is_torus:
        return "the network is no torus numbered along one dimension after the other, such as torus(4,4)"
    if problem.ranks != tuple(range(len(problem.topology.ranks))):
        return "it needs all ranks of the torus, in order"
    if any(size & (size - 1) for size in lattice.sizes):
        return f"a size of {lattice} is no power of two"
    return None


def algorithm(problem: Problem, options: NoOptions) -> Algorithm:
    """Give the primitives for a torus."""
    del options
    torus = find_lattice(problem.topology)
    assert torus is not None  # noqa: S101 (fits has been asked)
    variants = [(first, mirror) for mirror in (1, -1) for first in range(len(torus.sizes))]
    return Algorithm(all_gather=lambda: together([all_gather(torus, *variant) for variant in variants]))


def all_gather(torus: Lattice, first: int, mirror: int) -> Moves:
    """Exchange with the partners of a reduce-scatter, the last one first; log2(n) steps, n (n - 1) sends."""
    return exchanges(partners(torus, first, mirror)[::-1])


def partners(torus: Lattice, first: int, mirror: int) -> list[Ints]:
    """Give the partner of every node in each step of a reduce-scatter that begins in the dimension ``first``."""
    dimensions = len(torus.sizes)
    node = np.arange(int(np.prod(torus.sizes)))
    left = [size.bit_length() - 1 for size in torus.sizes]
    taken = [0] * dimensions
    found: list[Ints] = []
    turn = first
    while any(taken[d] < left[d] for d in range(dimensions)):
        if taken[turn] < left[turn]:
            delta = mirror * (1 - (-2) ** (taken[turn] + 1)) // 3
            here = torus.coordinate(turn)
            there = (here + np.where(here % 2 == 0, delta, -delta)) % torus.sizes[turn]
            found.append(node + (there - here) * torus.stride(turn))
            taken[turn] += 1
        turn = (turn + 1) % dimensions
    return found


METHOD = define(
    name="swing",
    summary="short-cut rings on tori of powers of two",
    paper="De Sensi et al., Swing: Short-cutting Rings for Higher Bandwidth Allreduce, NSDI 2024",
    collectives=GATHERS,
    algorithm=algorithm,
    fits=fits,
)
