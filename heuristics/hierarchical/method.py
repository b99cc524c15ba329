"""``hierarchical``: the method and its options."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ...algorithms.schedules.problem import supports_groups
from ...core.fields import Strict
from ...core.method import Metric
from .. import heuristic
from .phases import COLLECTIVES


class HierarchicalOptions(Strict):
    """Options of ``hierarchical``."""

    levels: list[Annotated[int, Field(ge=2)]] | None = Field(
        None,
        min_length=1,
        max_length=8,
        description="Ranks in a group of every level, the innermost first, of ranks in their order; by default found "
        "in the network.",
    )
    algorithms: list[str] | None = Field(
        None, min_length=1, max_length=8, description="The algorithm of every given level; by default the fastest one."
    )
    pieces: int | None = Field(
        None,
        ge=1,
        le=4096,
        description="Pieces of every block that follow one another through the levels; by default the collective's "
        "chunks, or if that is 1, the fastest of 1, 4, 16, 32 and 64.",
    )
    balance: bool | None = Field(
        None,
        description="Whether pieces take the levels in several orders that even out the links' loads, as in Themis; "
        "by default where that is faster.",
    )


METHOD = heuristic(
    name="hierarchical",
    summary="collectives of every level of a machine, each by its fastest algorithm, in pieces that follow one another",
    paper="Hidayetoglu et al., HiCCL: A Hierarchical Collective Communication Library, IPDPS 2025: its ideas",
    answer_type=object,
    options=HierarchicalOptions,
    solve=f"{__package__}.solve:run",
    supports=lambda instance: supports_groups(instance, COLLECTIVES),
    metrics={
        "levels": Metric("ranks in a group of every level, the innermost first; of several collectives, of each"),
        "algorithms": Metric("collective, level and algorithm of every phase, of every order"),
        "pieces": Metric("pieces of every block that follow one another"),
        "orders": Metric("orders of the levels that pieces take"),
        "backwards": Metric("whether the schedule is an all-gather or a broadcast backwards in time"),
    },
)
