"""``rhd``: recursive halving-doubling, the algorithm of switches, for groups of a power of two.

An all-gather by recursive doubling: in each step, ranks that differ in one bit exchange all they have. Backwards, that is a reduce-scatter by
recursive halving. Sources: Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations in MPICH", 2005;
dissertation, section 2.3.2 and figure 2.2.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from ...core.fields import Strict
from .assemble import GATHERS, Algorithm
from .define import define
from .moves import Moves, exchanges
from .problem import Problem


class Options(Strict):
    """Options of ``rhd``."""

    order: Literal["near-first", "far-first"] = Field(
        "near-first",
        description="Whom a rank exchanges half of all data with: its nearest partner (distance 1) or the one at distance n/2.",
    )


def fits(problem: Problem) -> str | None:
    """Insist on a power of two."""
    n = problem.n
    return None if n & (n - 1) == 0 else f"{n} ranks are no power of two"


def algorithm(problem: Problem, options: Options) -> Algorithm:
    """Give the primitives for a group."""
    near_first = options.order == "near-first"
    return Algorithm(all_gather=lambda: all_gather(problem.n, near_first=near_first))


def all_gather(n: int, *, near_first: bool) -> Moves:
    """Exchange with the partner in every bit, half of the data in the last step; log2(n) steps, n (n - 1) sends."""
    bits = range(n.bit_length() - 1)
    position = np.arange(n)
    return exchanges([position ^ (1 << bit) for bit in (reversed(bits) if near_first else bits)])


METHOD = define(
    name="rhd",
    summary="recursive halving-doubling, for a power of two of ranks",
    paper="Thakur, Rabenseifner, Gropp, Optimization of collective communication operations in MPICH, 2005",
    collectives=GATHERS,
    algorithm=algorithm,
    options=Options,
    fits=fits,
)
