"""TE-CCL methods and declared models for the registry.

Pyomo is imported when a method runs.
"""

from functools import partial
from typing import Any, Literal

from pydantic import Field

from ...core.fields import select_options
from ...core.formulation import Formulation
from ...core.method import Kind, Method, Metric
from ...core.schedule import Schedule
from .options import AllToAllOptions, AstarOptions, BlockOptions, LpOptions, MilpOptions, ModelOptions, SearchOptions
from .problem import pose, pose_search, supports, supports_all_to_all, supports_no_sums, supports_search

PAPER = (
    "Liu et al., Rethinking Machine Learning Collective Communication as a Multi-Commodity Flow Problem, SIGCOMM 2024"
)

#: What the methods' metrics mean, beside those of the verifier.
EPOCH_METRICS = {"lower_bound_epochs": Metric("epochs that are proved to be needed")}

SEARCH_METRICS = EPOCH_METRICS | {
    "constructions": Metric("constructions that were made"),
    "moves": Metric("withdrawals and insertions of the search"),
    "models": Metric("models that were passed to a solver"),
    "proof": Metric("the argument that proves the bound: distance, cut, flow-over-time, prices or model"),
}

FLOW_METRICS = EPOCH_METRICS | {
    "bound_proof": Metric(
        "what proves the bound: cut and prices are recomputed by the verifier; solver: the solver attests it"
    ),
    "flows": Metric("pairs of a source and a link"),
    "flow_classes": Metric("classes of equal flows"),
    "grid_blocks": Metric("blocks of the last grid"),
    "programs": Metric("linear programs that were solved"),
}

PAPER_METRICS = {
    "models": Metric("models that were solved"),
    "paper_objective": Metric("with objective=paper, the paper's objective"),
    "paper_bound": Metric("with objective=paper, the solver's bound on it"),
    "paper_gap": Metric("with objective=paper, the relative distance of the two"),
}

pose_fluid = partial(pose, fluid=True)
_method = partial(Method, paper=PAPER, answer_type=Schedule)

TECCL = _method(
    name="teccl",
    kind=Kind.EXACT,
    summary="TE-CCL's schedules, proved first: bounds, constructions, rip-up and re-route, a model last",
    options=SearchOptions,
    solve=f"{__package__}.solve:run",
    supports=supports_search,
    pose=pose_search,
    metrics=SEARCH_METRICS | FLOW_METRICS,
)

TECCL_MILP = _method(
    name="teccl-milp",
    kind=Kind.EXACT,
    summary="TE-CCL's general form: whole chunks in epochs, copied and stored on the way",
    options=MilpOptions,
    solve=f"{__package__}.solve_milp:run",
    supports=supports,
    pose=pose,
    metrics=EPOCH_METRICS
    | {
        "model_bound_epochs": Metric("epochs that are proved to be needed in the model with its rules"),
        "start_epochs": Metric("epochs of the schedule that was made before any model"),
        "stage_epochs": Metric("with all_reduce=stages, epochs of the two stages"),
    }
    | PAPER_METRICS,
)

TECCL_LP = _method(
    name="teccl-lp",
    kind=Kind.EXACT,
    summary="TE-CCL's linear program: data without copies, in parts of chunks",
    options=LpOptions,
    solve=f"{__package__}.solve_lp:run",
    supports=supports_no_sums,
    pose=pose_fluid,
    metrics=EPOCH_METRICS | {"parts": Metric("chunks that the rates became")} | PAPER_METRICS,
)

TECCL_ASTAR = _method(
    name="teccl-astar",
    kind=Kind.HEURISTIC,
    summary="TE-CCL round by round: the general form for a few epochs at a time",
    options=AstarOptions,
    solve=f"{__package__}.solve_astar:run",
    supports=supports_no_sums,
    pose=pose,
    metrics=EPOCH_METRICS
    | {
        "start_epochs": Metric("epochs of the schedule that was made before any model"),
        "rounds": Metric("rounds that were solved"),
        "round_epochs": Metric("epochs of a round"),
    },
)

TECCL_ALL_TO_ALL = _method(
    name="teccl-all-to-all",
    kind=Kind.EXACT,
    summary="an all_to_all in epochs: linear program on classes of equal flows, bounded from both sides",
    options=AllToAllOptions,
    solve=f"{__package__}.solve_all_to_all:run",
    supports=supports_all_to_all,
    pose=pose_fluid,
    metrics=FLOW_METRICS,
)


def _epochs(default: str) -> tuple[Any, Any]:
    return int | None, Field(None, ge=1, le=1_000_000, description=f"K; by default {default}.")


_formulation = partial(Formulation, paper=PAPER)

MILP = _formulation(
    "teccl/milp",
    summary="general form of K epochs: whole chunks, copied and stored on the way",
    equations="section 3.1, appendices A, B, C and F",
    index=f"{__package__}.solve_milp:index",
    build=f"{__package__}.formulations.milp:build",
    extract=f"{__package__}.solve_milp:extract",
    labels=f"{__package__}.solve_milp:labels",
    start=f"{__package__}.starts:start",
    explains=("teccl", "teccl-milp"),
    value=f"{__package__}.solve_milp:value",
    bounds=f"{__package__}.solve_milp:is_bound",
    needs=("integers",),
    options=select_options(
        MilpOptions,
        *ModelOptions.model_fields,
        "priorities",
        "switches",
        "relays",
        "buffer",
        "buffer_counts",
        epochs=_epochs("twice the epochs that distances and cuts need"),
        objective=(
            Literal["late", "paper", "feasible"],
            Field("late", description="The makespan, the paper's objective, or any schedule of K epochs."),
        ),
    ),
    supports=supports,
    pose=pose,
    restricted_to=lambda options: (
        f"at most {options.epochs} epochs" if options.epochs else "at most twice the epochs of the simple bound"
    ),
    agrees_with="teccl",
)

LP = _formulation(
    "teccl/lp",
    summary="the largest part of all demands that fits in K epochs, in parts of chunks without copies",
    equations="section 4.1, appendices A and B",
    index=f"{__package__}.solve_lp:index",
    build=f"{__package__}.formulations.lp:build",
    extract=f"{__package__}.solve_lp:extract",
    value=f"{__package__}.solve_lp:value",
    bounds=f"{__package__}.solve_lp:is_bound",
    options=select_options(
        LpOptions, *LpOptions.model_fields, epochs=_epochs("the epochs that distances and cuts need")
    ),
    supports=supports_no_sums,
    pose=pose_fluid,
    agrees_with="teccl-lp",
)

ASTAR = _formulation(
    "teccl/astar",
    summary="the first round of the A* technique: a few epochs of the general form, and what is near its destination",
    equations="section 4.2, appendix D",
    index=f"{__package__}.solve_astar:index",
    build=f"{__package__}.formulations.astar:build",
    extract=f"{__package__}.solve_astar:extract",
    needs=("integers",),
    options=select_options(AstarOptions, *ModelOptions.model_fields, "round_epochs", "gamma"),
    supports=supports_no_sums,
    pose=pose,
    bounds=False,
    agrees_with="teccl-astar",
)

ALL_TO_ALL = _formulation(
    "teccl/all-to-all",
    summary="the largest part of an all_to_all that fits in K epochs, on blocks and classes of equal flows",
    equations="section 4.1",
    index=f"{__package__}.solve_all_to_all:index",
    build=f"{__package__}.formulations.all_to_all:build",
    extract=f"{__package__}.solve_all_to_all:extract",
    value=f"{__package__}.solve_all_to_all:value",
    options=BlockOptions,
    supports=supports_all_to_all,
    pose=pose_fluid,
    agrees_with="teccl-all-to-all",
)
