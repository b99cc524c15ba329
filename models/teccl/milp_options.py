"""Options of ``teccl-milp``, ``teccl-lp`` and ``teccl-astar``."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Literal

from pydantic import Field, model_validator

from ...core.collective import CollectiveKind
from ...core.errors import InputError
from ...core.fields import Strict
from ...core.instance import Instance
from ...core.timing import BandwidthChange
from ...core.topology import NodeKind, Topology
from .epochs import EpochProblem, chunk_bytes
from .layout import MAX_HOPS, Rules, switches_in_a_row
from .options import EpochOptions, pose, supports

SUMS = (CollectiveKind.ALL_REDUCE, CollectiveKind.REDUCE_SCATTER, CollectiveKind.REDUCE)


class Change(Strict):
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
    bandwidth: list[Change] = Field(
        default_factory=list,
        description="Links whose bandwidth varies: a list of objects with source, target, epochs and factor.",
    )


class MilpOptions(ModelOptions):
    """Options of ``teccl-milp``."""

    objective: Literal["makespan", "late", "paper"] = Field(
        "makespan",
        description="Fewest epochs by models of fixed length, by one model that counts them, or the paper's objective.",
    )
    priorities: list[int] | None = Field(
        None, description="Weights of the collectives that run at the same time, in the paper's objective."
    )
    switches: Literal["as-they-are", "hyper-edges"] = Field(
        "as-they-are", description="Switches that cannot store as they are, or replaced by hyper-edges (appendix C)."
    )
    all_reduce: Literal["direct", "stages"] = Field(
        "direct",
        description="One model of both stages of an all-reduce, or an all-to-all of contributions and then an all-gather.",
    )
    relays: Literal["store", "pass"] = Field(
        "store", description="Whether ranks may keep what they send on later, or pass it on at once or never."
    )
    buffer: int | None = Field(None, description="Chunks of others that a rank can hold (appendix B).")

    @model_validator(mode="after")
    def _agree_on_rules(self) -> MilpOptions:
        if self.buffer is not None and self.buffer < 1:
            raise ValueError(f"a buffer of {self.buffer} chunks holds less than one; expected at least 1")
        if self.buffer is not None and self.relays == "pass":
            raise ValueError("buffer says nothing where relays=pass; give one of the two")
        if self.priorities is not None and self.objective != "paper":
            raise ValueError("priorities are weights of objective=paper; a makespan has none")
        if self.all_reduce == "stages" and self.objective != "makespan":
            raise ValueError("all_reduce=stages needs objective=makespan")
        if self.all_reduce == "stages" and self.epochs is not None:
            raise ValueError("epochs limits one model; all_reduce=stages has two")
        if self.priorities is not None and min(self.priorities, default=0) < 1:
            raise ValueError("expected priorities of at least 1")
        return self

    @property
    def rules(self) -> Rules:
        """How switches are modelled."""
        return Rules(self.switches)


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
        found = [
            e for e, link in enumerate(topology.links) if (link.source, link.target) == (change.source, change.target)
        ]
        if not found:
            raise InputError(f"no link from {change.source!r} to {change.target!r}", source="-O", place=place)
        if not 0 <= change.epochs[0] < change.epochs[1]:
            raise InputError(f"{list(change.epochs)} are no epochs in order", source="-O", place=f"{place}.epochs")
        changes += [BandwidthChange(e, *change.epochs, change.factor) for e in found]
    return posed.with_changes(timing=replace(timing, changes=tuple(changes)))


def _require_sums(instance: Instance, options: ModelOptions) -> None:
    """Refuse what says nothing without sums, or is not meant with them."""
    sums = any(demand.collective in SUMS for demand in instance.demands)
    if sums and getattr(options, "relays", "store") == "pass":
        raise InputError("pass is for data that is copied, but a sum waits for its parts", source="-O", place="relays")
    kinds = {demand.collective for demand in instance.demands}
    if getattr(options, "all_reduce", "direct") == "stages" and CollectiveKind.ALL_REDUCE not in kinds:
        raise InputError("stages says nothing where there is no all_reduce", source="-O", place="all_reduce")


def _with_limits(instance: Instance, options: ModelOptions) -> Instance:
    """Write what the options say of nodes on the nodes, where the judge sees it.

    A rank that passes on what it receives has room for nothing, one with a buffer for so many chunks. Hyper-edges stand for switches without
    copies.
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


def restriction(problem: EpochProblem, rules: Rules) -> str:
    """Say what the model rules out though the instance allows it, so that what it proves holds for the model alone; empty if nothing."""
    sums = any(commodity.summed for commodity in problem.commodities)
    if any(commodity.after for commodity in problem.commodities):
        return "each part of an all-reduce is summed at one rank, and each rank sums one part"
    if (rules != Rules() and switches_in_a_row(problem, summed=False)) or (
        sums and switches_in_a_row(problem, summed=True)
    ):
        return f"ways through several switches have at most {MAX_HOPS} links and do not come back"
    if sums and any(problem.holds):
        return "switches with a limited buffer add nothing"
    if sums and any(problem.room):
        return "a rank that only passes on has room for each contribution"
    return ""


class LpOptions(ModelOptions):
    """Options of ``teccl-lp``."""

    objective: Literal["makespan", "paper"] = Field(
        "makespan", description="Fewest epochs by models of fixed length, or the paper's objective."
    )
    buffer: int | None = Field(
        None, ge=1, description="Chunks that a rank can hold at the start of an epoch (appendix B)."
    )


class AstarOptions(ModelOptions):
    """Options of ``teccl-astar``."""

    round_epochs: int | None = Field(
        None, ge=1, le=100_000, description="Epochs of a round; the longest delay of a link unless given, at least 4."
    )
    gamma: float = Field(
        0.5, gt=0, lt=1, description="What being on the way is worth, over being there; the appendix's gamma."
    )


def pose_fluid(instance: Instance, options: LpOptions) -> Instance:
    """Pose the problem for chunks that may be split."""
    return pose_model(instance, options, fluid=True)


def supports_no_sums(instance: Instance) -> str | None:
    """Only collectives without sums."""
    if (reason := supports(instance)) is not None:
        return reason
    if any(demand.collective in SUMS for demand in instance.demands):
        return "it schedules no sums; use teccl-milp"
    return None
