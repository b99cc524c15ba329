"""Method ``ten-ilp``, its supported instances, and their posing."""

from pydantic import Field

from ...algorithms.schedules.problem import commodities_of, edges_of
from ...algorithms.schedules.stages import supports_one_stage, supports_stages, to_copies
from ...core.errors import Refusal
from ...core.fields import Strict, select_options
from ...core.formulation import Formulation
from ...core.instance import Instance
from ...core.method import Kind, Method, Metric
from ...core.schedule import Schedule
from ...core.timing import Semantics, Timing
from ...core.topology import Topology
from ...core.units import common_unit
from .problem import edge_times


class TenOptions(Strict):
    """Options of ``ten-ilp``."""

    horizon: int | None = Field(None, ge=1, le=1_000_000)
    """Ticks of one model; by default models are solved until bound and schedule meet."""


def supports(instance: Instance) -> Refusal | None:
    """Return why an instance is unsupported, or None (``Method.supports``)."""
    if instance.also:
        return Refusal("collective", "several collectives at once; expected one")
    if instance.timing is not None and instance.timing.semantics is not Semantics.CIRCUIT:
        return Refusal("timing", f"its time model is that of circuits, not {instance.timing.semantics.value}")
    return supports_stages(instance)


def pose(instance: Instance, options: TenOptions) -> Instance:
    """Return the instance with circuit timing and the tick of its edges (``Method.pose``)."""
    if instance.timing is not None or supports(instance) is not None or not isinstance(instance.network, Topology):
        return instance
    times = edge_times(edges_of(instance.network), commodities_of(to_copies(instance))[0].bytes)
    return instance.with_changes(timing=Timing(Semantics.CIRCUIT, common_unit(times)))


def supports_model(instance: Instance) -> Refusal | None:
    """Refuse networks with switches, where ticks bound no schedule, and all-reduce, which needs two models."""
    if (reason := supports(instance)) is not None or not isinstance(instance.network, Topology):
        return reason
    if instance.network.switches:
        text = "its ticks are those of paths through switches, which bound no other schedule"
        return Refusal("network", f"{text}; expected links between ranks")
    return supports_one_stage(instance)


PAPER = (
    "Won, Software-Hardware Optimizations for Efficient Collective Communications, "
    "Georgia Institute of Technology, 2025, section 5.5.1"
)

METHOD = Method(
    name="ten-ilp",
    kind=Kind.EXACT,
    summary="a TACCL-like integer program over the time-expanded network",
    paper=PAPER,
    answer_type=Schedule,
    options=TenOptions,
    solve=f"{__package__}.solve:run",
    supports=supports,
    pose=pose,
    metrics={
        "ticks": Metric("ticks of the schedule"),
        "model_bound_ticks": Metric(
            "fewest ticks in the model; of an all-reduce those of both halves in turn, which overlapping them may beat"
        ),
        "tick_s": Metric("length of a tick", "s"),
        "models": Metric("models that were solved"),
    },
)

ILP = Formulation(
    "ten/ilp",
    summary="which chunk starts over which link at which tick, such that the last arrival is early",
    paper=PAPER,
    equations="not printed; an interpretation, constraint by constraint on the family's page",
    index=f"{__package__}.solve:horizon_model",
    build=f"{__package__}.formulation:build",
    extract=f"{__package__}.solve:schedule_of",
    labels=f"{__package__}.solve:labels",
    value=f"{__package__}.solve:seconds",
    needs=("integers",),
    options=select_options(
        TenOptions,
        horizon=(
            int | None,
            Field(None, ge=1, le=1_000_000, description="K, the most ticks; by default those of a first schedule."),
        ),
    ),
    supports=supports_model,
    pose=pose,
    restricted_to=lambda options: f"at most {options.horizon} ticks" if options.horizon else "",
    agrees_with="ten-ilp",
)
