"""Methods of the breadth-first family and their options; Pyomo is imported on first use."""

from functools import partial
from typing import Literal

from pydantic import Field

from ...algorithms.bounds.schedule_bounds import best_bound
from ...algorithms.schedules.problem import GroupProblem, supports_groups
from ...core.collective import Collective
from ...core.errors import Refusal
from ...core.fields import Strict
from ...core.formulation import Formulation
from ...core.instance import Instance
from ...core.method import Kind, Method, Metric
from ...core.schedule import StepSchedule

COLLECTIVES = (Collective.ALL_GATHER, Collective.REDUCE_SCATTER, Collective.ALL_REDUCE)
PAPER = "Zhao et al., Efficient Direct-Connect Topologies for Collective Communications, section 6 and appendix E"


class BfbOptions(Strict):
    """Options of ``bfb``, ``bfb-lp`` and ``bfb-heterogeneous``."""

    schedule: bool | None = None
    """True if the schedule is made, not the metrics alone; by default, where it has at most 16,777,216 sends."""


class ChunkedOptions(BfbOptions):
    """Options of ``bfb-chunked``."""

    solution: Literal["program", "rounding"] = "program"
    """Solve the integer program, or round the solution of its relaxation."""


def supports(instance: Instance) -> Refusal | None:
    """Refuse all but a collective of all compute nodes over links of one bandwidth; return the reason or None."""
    reason = supports_any_bandwidth(instance)
    if reason is None:
        rates = sorted({link.bandwidth_Bps for link in instance.topology.links})
        if len(rates) > 1:
            low, high = (float(rate) / 1e9 for rate in (rates[0], rates[-1]))
            return Refusal(
                "network", f"links have different bandwidths, {low:g} to {high:g} GB/s; bfb-heterogeneous is for these"
            )
    return reason


def _fits(problem: GroupProblem) -> Refusal | None:
    if switches := problem.topology.switches:
        return Refusal("network", f"{switches[0]!r} is a switch; expected links between compute nodes alone")
    if not problem.demand.is_of_all(problem.instance.npus):
        return Refusal("ranks", "it broadcasts from every node of the network; expected a group of all ranks")
    return None


supports_any_bandwidth = partial(supports_groups, collectives=COLLECTIVES, fits=_fits, single=True)

#: For an all-gather alone, from which the methods build the others.
supports_gather = partial(supports_groups, collectives=(Collective.ALL_GATHER,), fits=_fits, single=True)


class PieceOptions(Strict):
    """Options of ``bfb/chunked`` and ``bfb/heterogeneous``."""

    pieces: int | None = Field(None, ge=1, le=5040)
    """P, pieces that every shard is cut into; by default the collective's chunks."""


#: What the methods' metrics mean, beside those of the verifier.
METRICS = {
    "T_L": Metric("steps of the schedule; of an all-reduce those of both halves together", "steps"),
    "T_B": Metric("time of the schedule by equation (2), without latency, as a fraction such as 14/15", "M/B"),
    "chunks": Metric("chunks of a shard, P"),
    "sends": Metric("sends of the schedule"),
}

_method = partial(
    Method,
    kind=Kind.HEURISTIC,
    paper=PAPER,
    answer_type=StepSchedule,
    options=BfbOptions,
    supports=supports,
    proved=lambda instance, options: best_bound(instance)[0],
)

BFB = _method(
    name="bfb",
    summary="the best breadth-first broadcast of everybody's shard, in exact fractions without a solver",
    solve=f"{__package__}.solve:run_bfb",
    needs_solver=False,
    metrics=METRICS,
)

BFB_LP = _method(
    name="bfb-lp",
    summary="the best breadth-first broadcast, as one linear program for all nodes and steps",
    solve=f"{__package__}.solve:run_lp",
    metrics=METRICS,
)

BFB_CHUNKED = _method(
    name="bfb-chunked",
    summary="the best breadth-first broadcast of shards in a given number of chunks",
    options=ChunkedOptions,
    solve=f"{__package__}.solve:run_chunked",
    metrics=METRICS
    | {
        "T_B_relaxed": Metric("T_B without chunks", "M/B"),
        "T_B_rounding": Metric("the most that rounding costs by theorem 20", "M/B"),
    },
)

BFB_HETEROGENEOUS = _method(
    name="bfb-heterogeneous",
    summary="breadth-first broadcast over links of different bandwidths and latencies",
    solve=f"{__package__}.solve:run_heterogeneous",
    supports=supports_any_bandwidth,
    metrics=METRICS
    | {
        "step_time_s": Metric("the steps one by one, each as long as its busiest link with its latency", "s"),
        "step_time_relaxed_s": Metric("the same without chunks: the sum over the steps of the largest U", "s"),
    },
)

_formulation = partial(
    Formulation,
    paper=PAPER,
    index=f"{__package__}.problem:index",
    extract=f"{__package__}.extract:schedule_of",
    bounds=False,
)

LP = _formulation(
    "bfb/lp",
    summary="the parts of all shards that links carry in every step of a breadth-first broadcast",
    equations="LP (1), of all nodes and steps together",
    build=f"{__package__}.formulation:build_lp",
    supports=lambda instance: supports(instance) or supports_gather(instance),
    agrees_with="bfb",
)

CHUNKED = _formulation(
    "bfb/chunked",
    summary="whole pieces of all shards that links carry in every step of a breadth-first broadcast",
    equations="integer program (13), of all nodes and steps together",
    build=f"{__package__}.formulation:build_chunked",
    needs=("integers",),
    options=PieceOptions,
    supports=lambda instance: supports(instance) or supports_gather(instance),
    agrees_with="bfb-chunked",
)

TIMED = _formulation(
    "bfb/heterogeneous",
    summary="parts of all shards over links of different bandwidths, each with its latency, used or not",
    equations="LP (14), of all nodes and steps together",
    build=f"{__package__}.formulation:build_heterogeneous",
    options=PieceOptions,
    supports=supports_gather,
    agrees_with="bfb-heterogeneous",
)
