"""The TE-CCL methods as the registry knows them, their options, and the problem that they pose.

Pyomo is imported when a method runs.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any, Literal

from pydantic import Field, model_validator

from ...core.collective import CollectiveKind
from ...core.described import Metric
from ...core.errors import InputError
from ...core.fields import Duration, Size, Strict
from ...core.formulation import Formulation
from ...core.instance import Instance
from ...core.method import Kind, Method
from ...core.schedule import Schedule
from ...core.timing import BandwidthChange, Semantics, Timing
from ...core.topology import NodeKind, Topology
from .problem import chunk_bytes, epoch_of

TimingName = Literal["te-ccl", "te-ccl-paid-switch", "store-and-forward"]

#: Collectives that sum.
SUMS = (CollectiveKind.ALL_REDUCE, CollectiveKind.REDUCE_SCATTER, CollectiveKind.REDUCE)

#: Collectives of which nothing is summed.
COPIED = (
    CollectiveKind.ALL_GATHER,
    CollectiveKind.BROADCAST,
    CollectiveKind.GATHER,
    CollectiveKind.SCATTER,
    CollectiveKind.POINT_TO_POINT,
)

PAPER = (
    "Liu et al., Rethinking Machine Learning Collective Communication as a Multi-Commodity Flow Problem, SIGCOMM 2024"
)


class EpochOptions(Strict):
    """The grid and the chunks, for every method of the family."""

    epoch: Literal["fast", "slow"] = Field(
        "fast", description="An epoch is the time of one chunk on the fastest or on the slowest link."
    )
    epoch_duration: Duration | None = Field(
        None, description="Length of an epoch, such as '3.5 ns', in place of what epoch and epoch_multiplier say."
    )
    epoch_multiplier: int = Field(1, ge=1, le=10_000, description="Epochs are so many times as long as epoch says.")
    latency_epochs: int = Field(
        200, ge=1, le=100_000, description="Epochs are at least the smallest latency over this number."
    )
    timing: TimingName = Field(
        "te-ccl",
        description="What a link costs: as the published code counts, with switches that cost time (paid), or every hop (store-and-forward).",
    )
    chunks: int | None = Field(
        None, ge=1, le=100_000, description="Number of equal chunks of a rank's part; the demand's unless given."
    )
    chunk_size: Size | None = Field(
        None,
        description="Size of a chunk, such as '25 KB'; the collective is then as large as its chunks are together.",
    )

    @model_validator(mode="after")
    def _agree(self) -> EpochOptions:
        if self.epoch_duration is not None and self.epoch_multiplier != 1:
            raise ValueError("epoch_multiplier says nothing beside epoch_duration; give one of the two")
        if self.epoch_duration == 0:
            raise ValueError("an epoch of no time; expected an epoch_duration greater than zero")
        if self.chunk_size == 0:
            raise ValueError("a chunk of no size; expected a chunk_size greater than zero")
        return self


class SearchOptions(EpochOptions):
    """Options of ``teccl``."""

    effort: int = Field(
        200,
        ge=1,
        le=1_000_000,
        description="Millions of arcs that the search examines before it stops; the same on every machine.",
    )
    model_columns: int = Field(
        20_000,
        ge=0,
        le=5_000_000,
        description="Sends of the largest model that a solver is asked where bound and search do not meet; "
        "0 asks none.",
    )
    max_columns: int = Field(
        400_000,
        ge=1,
        le=50_000_000,
        description="Larger linear programs for an all_to_all are not tried; the bounds may then stay apart.",
    )
    schedule: Literal["auto", "always", "never"] = Field(
        "auto",
        description="Whether flows of an all_to_all are written out as sends of parts: auto does so up to two million "
        "of them; otherwise the answer is only the bound.",
    )


class AllToAllOptions(EpochOptions):
    """Options of ``teccl-all-to-all``."""

    max_columns: int = Field(
        400_000,
        ge=1,
        le=50_000_000,
        description="Larger linear programs are not tried; the bounds may then stay apart.",
    )
    schedule: Literal["auto", "always", "never"] = Field(
        "auto",
        description="Whether flows are written out as sends of parts: auto does so up to two million of them; "
        "otherwise the answer is only the bound.",
    )


class VaryingLink(Strict):
    """A link whose bandwidth varies."""

    source: str = Field(description="Node that the link leaves.")
    target: str = Field(description="Node that it enters.")
    epochs: tuple[int, int] = Field(description="First epoch, and the one after the last.")
    factor: Fraction = Field(
        ge=0, description="Bandwidth over the link's own, such as '1/2'; 0 is a link that is down."
    )


class ModelOptions(EpochOptions):
    """What the declarative models share."""

    epochs: int | None = Field(None, ge=1, le=1_000_000, description="K, the most epochs that a schedule may take.")
    bandwidth: list[VaryingLink] = Field(
        default_factory=list,
        description="Links whose bandwidth varies: objects with source, target, epochs (first and end) and factor.",
    )


class MilpOptions(ModelOptions):
    """Options of ``teccl-milp``."""

    objective: Literal["makespan", "late", "paper"] = Field(
        "makespan",
        description="makespan, the fewest epochs by models of fixed length; late, by one model that counts them; paper, the paper's objective.",
    )
    priorities: list[int] | None = Field(
        None, description="Weights of the collectives that run at the same time, in the paper's objective."
    )
    switches: Literal["as-they-are", "hyper-edges"] = Field(
        "as-they-are",
        description="Switches that cannot store: as-they-are, or hyper-edges, replaced by direct links (appendix C).",
    )
    all_reduce: Literal["direct", "stages"] = Field(
        "direct",
        description="Of an all-reduce: direct, one model of both stages; stages, an all-to-all of contributions and then an all-gather.",
    )
    relays: Literal["store", "pass"] = Field(
        "store", description="store, ranks may keep what they send on; pass, they send it on at once or never."
    )
    buffer: int | None = Field(
        None,
        description="Chunks of others that a rank can hold (appendix B); its own and those that it needs do not count.",
    )
    buffer_counts: Literal["others", "all"] = Field(
        "others",
        description="Whether a buffer counts chunks of others alone, or a rank's own and those that it needs too, as "
        "appendix B is printed.",
    )
    start: Literal["constructions", "none"] = Field(
        "constructions",
        description="Whether a schedule of teccl's constructions comes first, with which the run ends where it is within the "
        "gap of the bound, and from which a model with an objective starts.",
    )

    @model_validator(mode="after")
    def _agree_on_rules(self) -> MilpOptions:
        if self.buffer is not None and self.buffer < 1:
            raise ValueError(f"a buffer of {self.buffer} chunks holds less than one; expected at least 1")
        if self.buffer is not None and self.relays == "pass":
            raise ValueError("buffer says nothing where relays=pass; give one of the two")
        if self.buffer is None and self.buffer_counts == "all":
            raise ValueError("buffer_counts says nothing without a buffer")
        if self.priorities is not None and self.objective != "paper":
            raise ValueError("priorities are weights of objective=paper; a makespan has none")
        if self.all_reduce == "stages" and self.objective != "makespan":
            raise ValueError("all_reduce=stages needs objective=makespan")
        if self.all_reduce == "stages" and self.epochs is not None:
            raise ValueError("epochs limits one model; all_reduce=stages has two")
        if self.priorities is not None and min(self.priorities, default=0) < 1:
            raise ValueError("expected priorities of at least 1")
        return self


class LpOptions(ModelOptions):
    """Options of ``teccl-lp``."""

    objective: Literal["makespan", "paper"] = Field(
        "makespan", description="makespan, the fewest epochs by models of fixed length; paper, the paper's objective."
    )
    buffer: int | None = Field(
        None, ge=1, description="Chunks that a rank can hold at the start of an epoch (appendix B)."
    )


class AstarModelOptions(ModelOptions):
    """Options of ``teccl/astar``."""

    round_epochs: int | None = Field(
        None, ge=1, le=100_000, description="Epochs of a round; the longest delay of a link unless given, at least 4."
    )
    gamma: float = Field(
        0.5, gt=0, lt=1, description="Value of being on the way, relative to being there; the appendix's gamma."
    )


class AstarOptions(AstarModelOptions):
    """Options of ``teccl-astar``."""

    start: Literal["constructions", "none"] = Field(
        "constructions",
        description="Whether a schedule of teccl's constructions comes first: rounds start from its sends, and it is the answer "
        "where they take no end in time.",
    )


class MilpModelOptions(ModelOptions):
    """Options of ``teccl/milp``."""

    epochs: int | None = Field(
        None, ge=1, le=1_000_000, description="K; by default twice the epochs that distances and cuts need."
    )
    objective: Literal["late", "paper", "feasible"] = Field(
        "late", description="The makespan, the paper's objective, or any schedule of K epochs."
    )
    priorities: list[int] | None = Field(
        None, description="Weights of the collectives that run at the same time, in the paper's objective."
    )
    switches: Literal["as-they-are", "hyper-edges"] = Field(
        "as-they-are",
        description="Switches that cannot store: as-they-are, or hyper-edges, replaced by direct links (appendix C).",
    )
    relays: Literal["store", "pass"] = Field(
        "store", description="store, ranks may keep what they send on; pass, they send it on at once or never."
    )
    buffer: int | None = Field(
        None,
        ge=1,
        description="Chunks of others that a rank can hold (appendix B); its own and those that it needs do not count.",
    )
    buffer_counts: Literal["others", "all"] = Field(
        "others",
        description="Whether a buffer counts chunks of others alone, or a rank's own and those that it needs too, as "
        "appendix B is printed.",
    )

    @model_validator(mode="after")
    def _agree_on_model(self) -> MilpModelOptions:
        if self.buffer is not None and self.relays == "pass":
            raise ValueError("buffer says nothing where relays=pass; give one of the two")
        if self.buffer is None and self.buffer_counts == "all":
            raise ValueError("buffer_counts says nothing without a buffer")
        if self.priorities is not None and (self.objective != "paper" or min(self.priorities, default=0) < 1):
            raise ValueError("priorities are weights of at least 1 of objective=paper")
        return self


class LpModelOptions(LpOptions):
    """Options of ``teccl/lp``."""

    epochs: int | None = Field(
        None, ge=1, le=1_000_000, description="K; by default the epochs that distances and cuts need."
    )


class AllToAllModelOptions(EpochOptions):
    """Options of ``teccl/all-to-all``."""

    epochs: int | None = Field(
        None, ge=1, le=1_000_000, description="K; by default the epochs that distances and cuts need."
    )
    blocks: int | None = Field(
        None, ge=1, le=1_000_000, description="Blocks of epochs in which flows are constant; by default one an epoch."
    )
    side: Literal["restrict", "relax"] = Field(
        "restrict", description="Blocks that give a schedule, or that prove that more epochs are needed."
    )


def supports(instance: Instance) -> str | None:
    """Only explicit networks with collectives to schedule."""
    if not isinstance(instance.network, Topology):
        return "it schedules explicit networks of nodes and links, not fabrics"
    if instance.demand is None:
        return "the instance has no collective to schedule"
    if any(demand.size_bytes <= 0 for demand in instance.demands):
        return "the collective has no data to move"
    if not instance.network.links:
        return "the network has no links"
    if any(demand.collective in SUMS for demand in instance.demands):
        for node in instance.network.nodes:
            if node.reduces and node.buffer_bytes is not None:
                return f"switch {node.name!r} adds what passes it; sums on a grid are added where they are stored"
    return None


def supports_no_sums(instance: Instance) -> str | None:
    """Only collectives without sums."""
    if (reason := supports(instance)) is not None:
        return reason
    if any(demand.collective in SUMS for demand in instance.demands):
        return "it schedules no sums; use teccl-milp"
    return None


def is_all_to_all(instance: Instance) -> bool:
    """Whether the linear program is the way."""
    return [demand.collective for demand in instance.demands] == [CollectiveKind.ALL_TO_ALL]


def supports_search(instance: Instance) -> str | None:
    """Collectives that copy, several at the same time too, or one all_to_all."""
    if (reason := supports(instance)) is not None:
        return reason
    if is_all_to_all(instance):
        return None
    for demand in instance.demands:
        if demand.collective is CollectiveKind.ALL_TO_ALL:
            return "it schedules an all_to_all alone only; teccl-milp takes several collectives"
        if demand.collective not in COPIED:
            return f"it does not sum, as {demand.collective.value} does; teccl-milp does"
    return None


def supports_all_to_all(instance: Instance) -> str | None:
    """One all_to_all on an explicit network."""
    if (reason := supports(instance)) is not None:
        return reason
    if len(instance.demands) != 1 or instance.demands[0].collective is not CollectiveKind.ALL_TO_ALL:
        return "it schedules one all_to_all"
    return None


def pose(instance: Instance, options: EpochOptions, *, fluid: bool = False) -> Instance:
    """Fold the chunks and the grid into the instance.

    Raises
    ------
    InputError
        If there is nothing to measure an epoch by.
    """
    topology = instance.network
    assert isinstance(topology, Topology)  # noqa: S101 (``supports`` has looked)
    demands = [replace(d, chunks=options.chunks or d.chunks) for d in instance.demands]
    posed = instance.with_changes(demand=demands[0], also=tuple(demands[1:]))
    if options.chunk_size is not None:
        factor = options.chunk_size / chunk_bytes(posed)
        demands = [replace(d, size_bytes=d.size_bytes * factor) for d in demands]
        posed = instance.with_changes(demand=demands[0], also=tuple(demands[1:]))
    epoch_s = options.epoch_duration or epoch_of(
        topology.links,
        chunk_bytes(posed),
        options.epoch,
        Fraction(options.epoch_multiplier),
        Fraction(options.latency_epochs),
    )
    return posed.with_changes(timing=Timing(Semantics(options.timing), epoch_s, fluid))


def pose_search(instance: Instance, options: SearchOptions) -> Instance:
    """Fold chunks and grid into the instance; an all_to_all may split its chunks."""
    return pose(instance, options, fluid=is_all_to_all(instance))


def pose_model(instance: Instance, options: ModelOptions, *, fluid: bool = False) -> Instance:
    """Fold chunks, grid, limits of nodes and varying bandwidth into the instance.

    Raises
    ------
    InputError
        If a link whose bandwidth varies does not exist, or there is not one priority for each collective.
    """
    posed = pose(instance, options, fluid=fluid)
    priorities = getattr(options, "priorities", None)
    if priorities is not None and len(priorities) != len(posed.demands):
        text = f"{len(priorities)} weights for {len(posed.demands)} collectives; expected one for each"
        raise InputError(text, source="-O", place="priorities")
    _require_sums(posed, options)
    posed = _with_limits(posed, options)
    topology, timing = posed.network, posed.timing
    assert isinstance(topology, Topology)  # noqa: S101 (posed)
    assert timing is not None  # noqa: S101 (posed)
    changes: list[BandwidthChange] = []
    for index, change in enumerate(options.bandwidth):
        place = f"bandwidth[{index}]"
        links = [
            e for e, link in enumerate(topology.links) if (link.source, link.target) == (change.source, change.target)
        ]
        if not links:
            raise InputError(f"no link from {change.source!r} to {change.target!r}", source="-O", place=place)
        if not 0 <= change.epochs[0] < change.epochs[1]:
            raise InputError(f"{list(change.epochs)} are no epochs in order", source="-O", place=f"{place}.epochs")
        changes += [BandwidthChange(e, *change.epochs, change.factor) for e in links]
    return posed.with_changes(timing=replace(timing, changes=tuple(changes)))


def _require_sums(instance: Instance, options: ModelOptions) -> None:
    """Reject what says nothing without sums, or is not meant with them."""
    sums = any(demand.collective in SUMS for demand in instance.demands)
    if sums and getattr(options, "relays", "store") == "pass":
        raise InputError("pass is for data that is copied, but a sum waits for its parts", source="-O", place="relays")
    kinds = {demand.collective for demand in instance.demands}
    if getattr(options, "all_reduce", "direct") == "stages" and CollectiveKind.ALL_REDUCE not in kinds:
        raise InputError("stages says nothing where there is no all_reduce", source="-O", place="all_reduce")


def _with_limits(instance: Instance, options: ModelOptions) -> Instance:
    """Write what the options say of nodes on the nodes, where the verifier sees it.

    A rank that passes on what it receives has room for nothing, one with a buffer for so many chunks. Hyper-edges
    stand for switches without copies.
    """
    topology = instance.network
    assert isinstance(topology, Topology)  # noqa: S101 (posed)
    room: int | None = 0 if getattr(options, "relays", "store") == "pass" else getattr(options, "buffer", None)
    size = None if room is None else room * chunk_bytes(instance)
    legacy = getattr(options, "switches", "as-they-are") == "hyper-edges"
    nodes = tuple(
        replace(node, buffer_bytes=node.buffer_bytes if size is None else size)
        if node.kind is NodeKind.COMPUTE
        else replace(node, multicast=node.multicast and not (legacy and node.buffer_bytes == 0))
        for node in topology.nodes
    )
    return instance if nodes == topology.nodes else instance.with_changes(network=replace(topology, nodes=nodes))


#: What the methods' metrics mean, beside those of the verifier.
EPOCH_METRICS = {
    "lower_bound_epochs": Metric("epochs that are proved to be needed"),
}

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

MILP_METRICS = EPOCH_METRICS | {
    "model_bound_epochs": Metric("epochs that are proved to be needed in the model with its rules"),
    "models": Metric("models that were solved"),
    "start_epochs": Metric("epochs of the schedule that was made before any model"),
    "stage_epochs": Metric("with all_reduce=stages, epochs of the two stages"),
    "paper_objective": Metric("with objective=paper, the paper's objective"),
    "paper_bound": Metric("with objective=paper, the solver's bound on it"),
    "paper_gap": Metric("with objective=paper, the relative distance of the two"),
}

LP_METRICS = EPOCH_METRICS | {
    "models": Metric("models that were solved"),
    "parts": Metric("chunks that the rates became"),
    "paper_objective": Metric("with objective=paper, the paper's objective"),
    "paper_bound": Metric("with objective=paper, the solver's bound on it"),
    "paper_gap": Metric("with objective=paper, the relative distance of the two"),
}

ASTAR_METRICS = EPOCH_METRICS | {
    "start_epochs": Metric("epochs of the schedule that was made before any model"),
    "rounds": Metric("rounds that were solved"),
    "round_epochs": Metric("epochs of a round"),
}


TECCL = Method(
    name="teccl",
    kind=Kind.EXACT,
    summary="TE-CCL's schedules, proved first: bounds, constructions, rip-up and re-route, a model last",
    paper=PAPER,
    answer_type=Schedule,
    options=SearchOptions,
    solve=f"{__package__}.solve:run",
    supports=supports_search,
    pose=pose_search,
    metrics=SEARCH_METRICS | FLOW_METRICS,
)

TECCL_MILP = Method(
    name="teccl-milp",
    kind=Kind.EXACT,
    summary="TE-CCL's general form: whole chunks in epochs, copied and stored on the way",
    paper=PAPER,
    answer_type=Schedule,
    options=MilpOptions,
    solve=f"{__package__}.solve_milp:run",
    supports=supports,
    pose=pose_model,
    metrics=MILP_METRICS,
)

TECCL_LP = Method(
    name="teccl-lp",
    kind=Kind.EXACT,
    summary="TE-CCL's linear program: data without copies, in parts of chunks",
    paper=PAPER,
    answer_type=Schedule,
    options=LpOptions,
    solve=f"{__package__}.solve_lp:run",
    supports=supports_no_sums,
    pose=lambda instance, options: pose_model(instance, options, fluid=True),
    metrics=LP_METRICS,
)

TECCL_ASTAR = Method(
    name="teccl-astar",
    kind=Kind.HEURISTIC,
    summary="TE-CCL round by round: the general form for a few epochs at a time",
    paper=PAPER,
    answer_type=Schedule,
    options=AstarOptions,
    solve=f"{__package__}.solve_astar:run",
    supports=supports_no_sums,
    pose=pose_model,
    metrics=ASTAR_METRICS,
)

TECCL_ALL_TO_ALL = Method(
    name="teccl-all-to-all",
    kind=Kind.EXACT,
    summary="an all_to_all in epochs: linear program on classes of equal flows, bounded from both sides",
    paper=PAPER,
    answer_type=Schedule,
    options=AllToAllOptions,
    solve=f"{__package__}.solve_all_to_all:run",
    supports=supports_all_to_all,
    pose=lambda instance, options: pose(instance, options, fluid=True),
    metrics=FLOW_METRICS,
)


def within(options: Any) -> str:
    """Return how many epochs a schedule may take (``Formulation.restricted_to``)."""
    return (
        "at most twice the epochs of the simple bound" if options.epochs is None else f"at most {options.epochs} epochs"
    )


_MODELS = f"{__package__}.posed_models"

MILP = Formulation(
    "teccl/milp",
    summary="general form of K epochs: whole chunks, copied and stored on the way",
    paper=PAPER,
    equations="section 3.1, appendices A, B, C and F",
    index=f"{_MODELS}:milp_model",
    build=f"{_MODELS}:build_milp",
    extract=f"{_MODELS}:milp_schedule",
    labels=f"{_MODELS}:milp_labels",
    explains=("teccl", "teccl-milp"),
    value=f"{_MODELS}:milp_value",
    bounds=f"{_MODELS}:milp_is_bound",
    needs=("integers",),
    options=MilpModelOptions,
    supports=supports,
    pose=pose_model,
    restricted_to=within,
    agrees_with="teccl",
)

LP = Formulation(
    "teccl/lp",
    summary="the largest part of all demands that fits in K epochs, in parts of chunks without copies",
    paper=PAPER,
    equations="section 4.1, appendices A and B",
    index=f"{_MODELS}:lp_model",
    build=f"{_MODELS}:build_lp",
    extract=f"{_MODELS}:lp_schedule",
    value=f"{_MODELS}:lp_value",
    bounds=f"{_MODELS}:lp_is_bound",
    options=LpModelOptions,
    supports=supports_no_sums,
    pose=lambda instance, options: pose_model(instance, options, fluid=True),
    agrees_with="teccl-lp",
)

ASTAR = Formulation(
    "teccl/astar",
    summary="the first round of the A* technique: a few epochs of the general form, and what is near its destination",
    paper=PAPER,
    equations="section 4.2, appendix D",
    index=f"{_MODELS}:round_model",
    build=f"{_MODELS}:build_round",
    extract=f"{_MODELS}:round_schedule",
    needs=("integers",),
    options=AstarModelOptions,
    supports=supports_no_sums,
    pose=pose_model,
    bounds=False,
    agrees_with="teccl-astar",
)

ALL_TO_ALL = Formulation(
    "teccl/all-to-all",
    summary="the largest part of an all_to_all that fits in K epochs, on blocks and classes of equal flows",
    paper=PAPER,
    equations="section 4.1",
    index=f"{_MODELS}:all_to_all_model",
    build=f"{_MODELS}:build_all_to_all",
    extract=f"{_MODELS}:all_to_all_schedule",
    value=f"{_MODELS}:all_to_all_value",
    options=AllToAllModelOptions,
    supports=supports_all_to_all,
    pose=lambda instance, options: pose(instance, options, fluid=True),
    agrees_with="teccl-all-to-all",
)
