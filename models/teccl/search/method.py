"""``teccl``: proof before search, as the registry knows it. What is heavy is imported when it runs."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ....core.budget import Budget
from ....core.collective import CollectiveKind
from ....core.instance import Instance
from ....core.method import Kind, Method, Outcome
from ....core.schedule import Schedule
from ....core.solver import Solver
from ..methods import PAPER
from ..options import EpochOptions, pose
from ..options import supports as supports_epochs

#: Collectives of which nothing is summed.
COPIED = (
    CollectiveKind.ALL_GATHER,
    CollectiveKind.BROADCAST,
    CollectiveKind.GATHER,
    CollectiveKind.SCATTER,
    CollectiveKind.POINT_TO_POINT,
)


class Options(EpochOptions):
    """Options of ``teccl``."""

    effort: int = Field(
        200,
        ge=1,
        le=1_000_000,
        description="Millions of arcs that the search looks at before it gives up; the same on every machine.",
    )
    model_columns: int = Field(
        20_000,
        ge=0,
        le=5_000_000,
        description="Sends of the largest model that a solver is asked where bound and search do not meet; 0 asks none.",
    )
    max_columns: int = Field(
        400_000,
        ge=1,
        le=50_000_000,
        description="Larger linear programs for an all_to_all are not tried; the bounds may then stay apart.",
    )
    schedule: Literal["auto", "always", "never"] = Field(
        "auto",
        description="Whether flows of an all_to_all are written out as sends of parts: auto does so up to two million of "
        "them; without, the bound is all that is answered.",
    )


def is_all_to_all(instance: Instance) -> bool:
    """Whether the linear program is the way."""
    return [demand.collective for demand in instance.demands] == [CollectiveKind.ALL_TO_ALL]


def supports(instance: Instance) -> str | None:
    """Collectives that copy, several at the same time too, or one all_to_all."""
    if (reason := supports_epochs(instance)) is not None:
        return reason
    if is_all_to_all(instance):
        return None
    for demand in instance.demands:
        if demand.collective is CollectiveKind.ALL_TO_ALL:
            return "it schedules an all_to_all alone only; teccl-milp takes several collectives"
        if demand.collective not in COPIED:
            return f"it does not sum, as {demand.collective.value} does; teccl-milp does"
    return None


def pose_options(instance: Instance, options: Options) -> Instance:
    """Fold chunks and grid into the instance; an all_to_all may split its chunks."""
    return pose(instance, options, fluid=is_all_to_all(instance))


def run(instance: Instance, solver: Solver, budget: Budget, options: Options) -> Outcome:
    """Run :mod:`.run`, or the linear program for an all_to_all."""
    if is_all_to_all(instance):
        from .. import alltoall
        from ..epochs import epoch_problem

        return alltoall.run_all_to_all(epoch_problem(instance), instance, solver, budget, options)
    from .run import run_search

    return run_search(instance, solver, budget, options.effort * 1_000_000, options.model_columns)


METHOD = Method(
    name="teccl",
    kind=Kind.EXACT,
    summary="TE-CCL's schedules, proved first: bounds, constructions, rip-up and re-route, a model last",
    paper=PAPER,
    answer_type=Schedule,
    options=Options,
    run=run,
    supports=supports,
    pose=pose_options,
)
