"""``shifted-ring``: several rings at once, each with its own stride through the ranks and its own share of the data.

A ring of stride a leads from rank i to i + a; it passes all n ranks if a and n have no common divisor. The rings of a
circulant network share no link. Sources: TopoOpt; Zhao et al., "Efficient Direct-Connect Topologies for Collective
Communications", section 8.2, where two of them are the baseline ShiftedRing, and with breadth-first schedules
(appendix F.1) ShiftedBFBRing: floor(n / 2) steps instead of n - 1.
"""

from __future__ import annotations

from math import gcd
from typing import Literal

import numpy as np
from pydantic import Field

from ...core.errors import InputError, Unsupported
from ...core.fields import Strict
from . import rings
from .assemble import GATHERS, Algorithm
from .cycles import neighbours
from .define import define
from .moves import Moves, together
from .problem import Problem


class Options(Strict):
    """Options of ``shifted-ring``."""

    strides: list[int] | None = Field(
        None,
        min_length=1,
        max_length=1000,
        description="Stride of each ring; by default all whose links the network has both ways.",
    )
    variant: Literal["traditional", "bfb"] = Field(
        "traditional",
        description="traditional sends half of the data all the way around each way; bfb all of it half around.",
    )


def algorithm(problem: Problem, options: Options) -> Algorithm:
    """Give the primitives for a group.

    Raises
    ------
    InputError
        If a given stride does not lead through all ranks.
    Unsupported
        If none is given and the network has no such ring.
    """
    n = problem.n
    strides = found_strides(problem) if options.strides is None else options.strides
    for index, stride in enumerate(strides):
        if gcd(stride, n) != 1:
            raise InputError(f"{stride} and {n} have a common divisor", source="-O", place=f"strides[{index}]")
    around = rings.breadth_first if options.variant == "bfb" else rings.two_way

    def gather() -> Moves:
        return together([around(n).renamed(np.arange(n) * stride % n) for stride in strides])

    return Algorithm(all_gather=gather)


def found_strides(problem: Problem) -> list[int]:
    """Give the strides of all rings over neighbours."""
    n, near = problem.n, neighbours(problem)
    strides = [
        a
        for a in range(1, n // 2 + 1)
        if gcd(a, n) == 1 and all((i + a) % n in near[i] and (i - a) % n in near[i] for i in range(n))
    ]
    if not strides:
        raise Unsupported(
            f"shifted-ring: no stride leads around all {n} ranks over neighbours: give -O strides=[1,...]"
        )
    return strides


METHOD = define(
    name="shifted-ring",
    summary="a ring for each stride that the network has, each with its share of the data",
    paper="Zhao et al., Efficient Direct-Connect Topologies for Collective Communications, sections 8.2 and F.1",
    collectives=GATHERS,
    algorithm=algorithm,
    options=Options,
)
