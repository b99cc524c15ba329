"""Registry entries of the method ``expert-placement`` and its formulation."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ...core.answers import Placement
from ...core.fields import Strict
from ...core.formulation import Formulation
from ...core.method import Kind, Method, Metric
from ...core.network_views import NetworkView
from .problem import supports, supports_layer

PAPER = "DeepSeek's EPLB (deepseek-ai/EPLB on GitHub): the problem, its rule for nodes and its heuristic"


class PlacementOptions(Strict):
    """Options of ``expert-placement``."""

    search: Literal["published", "local", "exact"] = Field(
        "local",
        description="published is EPLB's rule alone; local makes it better, and tries all placements of a few "
        "replicas; exact solves expert-placement/slots, too, for layers that are not proved.",
    )
    moves: int = Field(
        2000, ge=0, le=10_000_000, description="Random changes that are tried where every GPU has two slots."
    )


METHOD = Method(
    name="expert-placement",
    kind=Kind.HEURISTIC,
    summary="replicas of experts on the slots of GPUs, for the least largest load, with a proof where a bound is met",
    paper=PAPER,
    answer_type=Placement,
    options=PlacementOptions,
    solve=f"{__package__}.solve:run",
    objective_unit=lambda instance: "load",
    supports=supports,
    networks=NetworkView.EITHER,
    metrics={"proved_layers": Metric("layers whose bound is met")},
)

SLOTS = Formulation(
    "expert-placement/slots",
    summary="the least largest load of a GPU, over replicas of experts and their places",
    paper=PAPER,
    equations="not printed; ours",
    index=f"{__package__}.problem:index",
    build=f"{__package__}.formulation:build",
    extract=f"{__package__}.problem:extract",
    needs=("integers",),
    supports=supports_layer,
    networks=NetworkView.EITHER,
    objective_unit=lambda instance: "load",
    agrees_with="expert-placement",
)
