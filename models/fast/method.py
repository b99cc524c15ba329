"""Registry entries of the method ``fast`` and its formulation."""

from __future__ import annotations

from pydantic import Field

from ...core.fields import Strict
from ...core.formulation import Formulation
from ...core.method import Kind, Method, Metric
from ...core.schedule import StepSchedule
from .problem import Rails, supports

PAPER = "Lei et al., FAST: An Efficient Scheduler for All-to-All GPU Communication, arXiv 2505.09764"


class FastOptions(Strict):
    """Options of ``fast``."""

    rails: Rails = Field(
        "balanced",
        description="Which rail a message between servers takes: balanced divides what goes between two servers among "
        "all; source and target are the two levels of expert-parallel libraries, the rail of the sender or of the "
        "receiver; optimal solves fast/rails, where balanced does not attain its bound.",
    )


METHOD = Method(
    name="fast",
    kind=Kind.HEURISTIC,
    summary="all-to-all of unequal messages: balanced over rails, in one-to-one stages between servers",
    paper=PAPER,
    answer_type=StepSchedule,
    options=FastOptions,
    solve=f"{__package__}.solve:run",
    supports=supports,
    metrics={
        "stages": Metric("stages of the rail that has the most"),
        "rail_time_s": Metric("time of the busiest link of a rail, without anything else", "s"),
        "model_time_s": Metric("with rails=optimal, the optimum of the linear program", "s"),
    },
)

RAILS = Formulation(
    "fast/rails",
    summary="which rails messages between servers take, with finite bandwidth inside the servers",
    paper=PAPER,
    equations="not printed; ours",
    index=f"{__package__}.problem:index",
    build=f"{__package__}.formulation:build",
    value=f"{__package__}.problem:seconds",
    supports=supports,
    restricted_to=lambda options: "data that goes from server to server once, on one rail",
)
