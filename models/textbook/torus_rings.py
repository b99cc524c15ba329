"""``torus-rings``: rings along one dimension of a torus after the other.

An all-gather runs rings in the first dimension, then rings in the second one with all that has been gathered, and so
on; on a D-dimensional torus, D equal shares of the data begin in different dimensions, so that all links are busy if
the dimensions are equal. This is what Zhao et al., "Efficient Direct-Connect Topologies for Collective
Communications", section 6.2, call the traditional schedule: sum of (size - 1) steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Literal

import numpy as np
from pydantic import Field

from ...core.fields import Strict
from .assemble import GATHERS, Algorithm
from .define import define
from .lattice import Lattice, find_lattice
from .moves import Moves, joined, together
from .problem import Problem


class Options(Strict):
    """Options of ``torus-rings``."""

    ways: Literal["two-way", "one-way"] = Field(
        "two-way", description="two-way sends half of the data each way around the rings."
    )
    rotate: bool = Field(
        True, description="Whether equal shares of the data begin in different dimensions; else all begin in the first."
    )


def fits(problem: Problem) -> str | None:
    """Insist on all ranks of a torus, in order."""
    lattice = find_lattice(problem.topology)
    if lattice is None or not lattice.is_torus:
        return "the network is no torus numbered along one dimension after the other, such as torus(4,4)"
    if problem.ranks != tuple(range(len(problem.topology.ranks))):
        return "it needs all ranks of the torus, in order"
    return None


def torus_of(problem: Problem) -> Lattice:
    """Give the torus that :func:`fits` has found."""
    lattice = find_lattice(problem.topology)
    assert lattice is not None  # noqa: S101 (fits has been asked)
    return lattice


def algorithm(problem: Problem, options: Options) -> Algorithm:
    """Give the primitives for a torus."""
    torus = torus_of(problem)
    dimensions = range(len(torus.sizes))
    orders = [[*dimensions[d:], *dimensions[:d]] for d in dimensions] if options.rotate else [list(dimensions)]
    ways = (1, -1) if options.ways == "two-way" else (1,)

    def gather(direction: int) -> Moves:
        return together([all_gather(torus, order, direction * way) for way in ways for order in orders])

    return Algorithm(all_gather=lambda: gather(1), mirror=Algorithm(all_gather=lambda: gather(-1)))


def all_gather(torus: Lattice, order: Sequence[int], way: int) -> Moves:
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
    return joined(lines)


METHOD = define(
    name="torus-rings",
    summary="rings along one dimension of a torus after the other",
    paper="Zhao et al., Efficient Direct-Connect Topologies for Collective Communications, section 6.2",
    collectives=GATHERS,
    algorithm=algorithm,
    options=Options,
    fits=fits,
)
