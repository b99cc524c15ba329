"""``expert-placement/slots``: the formulation, as the registry knows it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ...core.fields import Strict
from ...core.formulation import Formulation
from ...core.instance import Instance


class PlacementOptions(Strict):
    """Options of ``expert-placement/slots``."""

    loads: list[Annotated[float, Field(ge=0, le=1e12)]] = Field(
        default_factory=list, max_length=10_000, description="The load of every expert."
    )
    replicas: int | None = Field(
        None, ge=1, le=100_000, description="Slots of all GPUs; by default the fewest that hold every expert once."
    )
    groups: int = Field(1, ge=1, le=10_000, description="Groups of as many experts each, in order, each on one node.")
    nodes: int = Field(1, ge=1, le=10_000, description="Nodes of as many GPUs each, in order; 1 binds no group.")


def in_load(instance: Instance) -> str:
    """Measure in the unit of the loads."""
    del instance
    return "load"


SLOTS = Formulation(
    "expert-placement/slots",
    summary="the least largest load of a GPU, over replicas of experts and their places",
    paper="deepseek-ai/EPLB on GitHub: the problem and its rule for nodes",
    equations="not printed; ours",
    index=f"{__package__}.problem:index",
    build=f"{__package__}.formulation:build",
    needs=("integers",),
    options=PlacementOptions,
    objective_unit=in_load,
)
