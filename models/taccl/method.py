"""Method ``taccl`` and its options; the language of sketches is in :mod:`.sketch`."""

from dataclasses import replace
from functools import partial
from typing import Literal

from pydantic import Field

from ...algorithms.schedules.stages import supports_one_stage, supports_stages
from ...core.fields import Strict, select_options
from ...core.formulation import Formulation
from ...core.instance import Instance
from ...core.method import Kind, Method, Metric
from ...core.schedule import StepSchedule
from .sketch import MAX_LENGTH, parse_sketch

PAPER = "Shah et al., TACCL: Guiding Collective Algorithm Synthesis using Communication Sketches, NSDI 2023"


class TacclOptions(Strict):
    """Options of ``taccl``."""

    sketch: str = Field("", max_length=MAX_LENGTH)
    """Statements such as 'avoid box0.* -> box1.*; shift 8', or the text of a TACCL sketch file."""
    connections: Literal["any", "min", "max"] = "any"
    """Use of edges through switches where a sketch file says nothing: few (uc-min) or many (uc-max)."""
    ways: Literal["shortest", "any"] = "shortest"
    """Paths of chunks through other ranks: of fewest edges alone, as in TACCL, or any."""
    contiguity: bool = Field(True, description="True if adjacent sends in the order of a link may be merged.")
    routing_gap: float = Field(0.01, ge=0, le=1)
    """Relative gap at which the programs may stop, unless --gap is given."""
    nodes: int = Field(100, ge=1, le=10**9, description="Nodes of the solver's search in each of the two programs.")


def pose(instance: Instance, options: TacclOptions) -> Instance:
    """Cut the parts of ranks into the sketch's number of chunks."""
    chunks = parse_sketch(options.sketch, instance.npus).chunks
    if chunks is None or instance.demand is None:
        return instance
    return instance.with_changes(demand=replace(instance.demand, chunks=chunks))


METHOD = Method(
    name="taccl",
    kind=Kind.HEURISTIC,
    summary="routing as an integer program, then ordering and contiguity, guided by a sketch",
    paper=PAPER,
    answer_type=StepSchedule,
    options=TacclOptions,
    solve=f"{__package__}.solve:run",
    supports=supports_stages,
    pose=pose,
    metrics={
        "routing_s": Metric("T of the routing", "s"),
        "sends": Metric("sends of the schedule"),
        "joined": Metric("sends that are merged with the one before"),
        "taccl_cost_s": Metric("T of the contiguity stage, the time by TACCL's own count", "s"),
    },
)

_formulation = partial(
    Formulation,
    paper=PAPER,
    needs=("integers",),
    supports=supports_one_stage,
    pose=pose,
    agrees_with="taccl",
    bounds=False,
)

ROUTING = _formulation(
    "taccl/routing",
    summary="which edges carry which chunk: the longest way and the busiest link, before sends are put in turns",
    equations="stage 1, routing; an interpretation, since the paper was not available",
    index=f"{__package__}.solve:routing_of",
    build=f"{__package__}.formulations.routing:build",
    extract=f"{__package__}.solve:routed_schedule",
    labels=f"{__package__}.solve:labels",
    options=select_options(TacclOptions, "sketch", "connections", "ways"),
)

CONTIGUITY = _formulation(
    "taccl/contiguity",
    summary="when sends on heuristic routes begin, and which neighbours in a link's order go together",
    equations="stage 3, contiguity; an interpretation, since the paper was not available",
    index=f"{__package__}.solve:first_orders",
    build=f"{__package__}.formulations.contiguity:build",
    extract=f"{__package__}.solve:joined_schedule",
    options=select_options(TacclOptions, "sketch"),
)
