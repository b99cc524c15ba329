"""Registry entry of the method ``all-to-all-mcf``."""

from functools import partial
from typing import Literal

from pydantic import Field

from ...core.answers import BoundOnly
from ...core.collective import Collective
from ...core.fields import Strict
from ...core.formulation import Formulation
from ...core.method import Kind, Method, Metric
from ...core.refusals import refuse_unfit
from ...core.schedule import Schedule

Algorithm = Literal["auto", "program", "first-order"]


class McfOptions(Strict):
    """Options of ``all-to-all-mcf`` and ``all-to-all-schedule``."""

    algorithm: Algorithm = "auto"
    """program solves LP (3); first-order searches a flow and lengths of links within the gap, 1 % unless given; auto
    does so where the program has more than 200,000 classes"""


class ClassOptions(Strict):
    """Options of ``mcf/classes``."""

    line_graphs: int = Field(0, ge=0)
    """how often the network is taken back to what it is the line graph of: smaller, and a bound"""


supports = partial(refuse_unfit, collectives=(Collective.ALL_TO_ALL,), single=True)

PAPER = "Zhao et al., Efficient Direct-Connect Topologies for Collective Communications, appendix A.5"

#: What the methods' metrics mean, beside those of the verifier.
METRICS = {
    "rate": Metric(
        "the rate f of every pair that the certificate proves, as a share of the largest bandwidth of a link"
    ),
    "rate_GBps": Metric("the same rate", "GB/s"),
    "rate_reached": Metric("the rate of the flow of a first-order search, in the unit of `rate`"),
}

METHOD = Method(
    name="all-to-all-mcf",
    kind=Kind.RELAXATION,
    summary="how fast an all-to-all can be, by the maximum concurrent flow: a bound, and no schedule",
    paper=PAPER,
    answer_type=BoundOnly,
    options=McfOptions,
    solve=f"{__package__}.solve:run",
    supports=supports,
    metrics=METRICS,
)

SCHEDULE = Method(
    name="all-to-all-schedule",
    kind=Kind.HEURISTIC,
    summary="an all-to-all in chunks along the maximum concurrent flow, which bounds it; farthest first on every link",
    paper=f"{PAPER}; the schedule is ours",
    answer_type=Schedule,
    options=McfOptions,
    solve=f"{__package__}.schedule:run",
    supports=supports,
    metrics=METRICS | {"sends": Metric("sends of the schedule")},
)

_formulation = partial(Formulation, paper=PAPER, supports=supports, agrees_with="all-to-all-mcf")

FLOW = _formulation(
    "mcf/flow",
    summary="maximum concurrent flow between all pairs, one commodity a source: how fast an all-to-all can be",
    equations="LP (3)",
    build=f"{__package__}.formulation:build",
    value=f"{__package__}.solve:seconds",
)

CLASSES = _formulation(
    "mcf/classes",
    summary="the same with one variable for each class of equal flows: fewer columns where the network is symmetric",
    equations="LP (3), by classes",
    index=f"{__package__}.problem:class_index",
    build=f"{__package__}.formulation:build_classes",
    options=ClassOptions,
    value=f"{__package__}.problem:class_seconds",
)
