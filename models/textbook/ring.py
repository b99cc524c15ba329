"""``ring``: everybody passes on what the neighbour has sent, around a cycle through all ranks.

Sources: dissertation, section 2.3.2 and figures 2.2 and 2.3; Patarasuk and Yuan, "Bandwidth optimal all-reduce
algorithms for clusters of workstations", 2009. The cycle is a Hamiltonian cycle of the network where a simple search
finds one, see :func:`.cycles.find_cycle`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from pydantic import Field

from ...core.collective import CollectiveKind
from ...core.errors import InputError
from ...core.fields import Strict
from ...core.schedule import Ints
from . import rings
from .assemble import GATHERS, SPREADS, Algorithm
from .cycles import both_ways, find_cycle, neighbours
from .define import define
from .problem import Problem


class Options(Strict):
    """Options of ``ring``."""

    ways: Literal["auto", "one-way", "two-way"] = Field(
        "auto",
        description="two-way sends half of the data each way around; auto does where every link of the cycle has one back.",
    )
    order: list[int] | None = Field(
        None,
        description="The ranks of the group in the order of the ring; by default a Hamiltonian cycle if one is found.",
    )


def algorithm(problem: Problem, options: Options) -> Algorithm:
    """Give the primitives for a group; reductions run backwards around the ring turned around, and so the same way.

    Raises
    ------
    InputError
        If the order is not one of the ranks of the group.
    """
    near = neighbours(problem)
    found = find_cycle(problem, near) if options.order is None else given_order(problem, options.order)
    both = both_ways(found, near) if options.ways == "auto" else options.ways == "two-way"
    cycle = np.array(found, dtype=np.int64)
    forth = around(cycle, both=both)
    back = around(np.roll(cycle[::-1], 1), both=both)
    return replace(forth, mirror=back)


def around(cycle: Ints, *, both: bool) -> Algorithm:
    """Give the primitives on a cycle, which begins with position 0."""
    n = len(cycle)
    return Algorithm(
        all_gather=lambda: (rings.two_way(n) if both else rings.one_way(n)).renamed(cycle),
        broadcast=lambda: rings.chain(n, both=both).relabelled(cycle),
        all_to_all=lambda: rings.all_to_all(n, both=both).renamed_pairs(cycle),
    )


def given_order(problem: Problem, order: list[int]) -> list[int]:
    """Turn ranks into positions, the first rank of the group first."""
    if sorted(order) != sorted(problem.ranks):
        raise InputError("expected every rank of the group once", source="-O", place="order")
    position = {rank: index for index, rank in enumerate(problem.ranks)}
    cycle = [position[rank] for rank in order]
    start = cycle.index(0)
    return cycle[start:] + cycle[:start]


METHOD = define(
    name="ring",
    summary="around a cycle through all ranks, half of the data each way",
    paper="Patarasuk, Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations, 2009",
    collectives=(*GATHERS, CollectiveKind.ALL_TO_ALL, *SPREADS),
    algorithm=algorithm,
    options=Options,
)
