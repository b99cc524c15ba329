"""Registry entries of the method ``straggler`` and its formulation."""

from __future__ import annotations

from pydantic import Field

from ...core.fields import Strict
from ...core.formulation import Formulation
from ...core.method import Kind, Method, Metric
from ...core.schedule import Schedule
from .problem import pose, supports

PAPER = "Devraj et al., Efficient AllReduce with Stragglers, arXiv 2505.23523 (StragglAR)"


class StragglerOptions(Strict):
    """Options of ``straggler``."""

    tries: int = Field(
        50, ge=1, le=1_000_000, description="Attempts, each with other ties, until the rounds are the fewest."
    )


class RoundOptions(Strict):
    """Options of ``straggler/rounds``."""

    rounds: int | None = Field(
        None, ge=1, le=10_000, description="The most rounds R; by default the fewest that there can be."
    )


METHOD = Method(
    name="straggler",
    kind=Kind.HEURISTIC,
    summary="all-reduce with one late rank: rounds of whole chunks, with a proof where they are fewest",
    paper=PAPER,
    answer_type=Schedule,
    options=StragglerOptions,
    solve=f"{__package__}.solve:run",
    supports=supports,
    pose=pose,
    restricted_to=lambda options: "chunks that are moved whole",
    needs_solver=False,
    metrics={
        "rounds": Metric("rounds of the schedule, R"),
        "fewest_rounds": Metric("the bound C - 1 + ceil(log2 n) on the rounds"),
        "tries": Metric("attempts that were made"),
    },
)

ROUNDS = Formulation(
    "straggler/rounds",
    summary="the fewest rounds after a late rank has come: who sends which chunk to whom",
    paper=PAPER,
    equations="not printed as a program; ours, from the paper's rounds",
    index=f"{__package__}.problem:index",
    build=f"{__package__}.formulation:build",
    extract=f"{__package__}.problem:extract",
    labels=f"{__package__}.problem:labels",
    needs=("integers",),
    options=RoundOptions,
    supports=supports,
    pose=pose,
    agrees_with="straggler",
    bounds=False,
)
