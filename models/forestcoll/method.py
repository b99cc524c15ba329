"""ForestColl's methods, their options and supported instances.

Pyomo and compiled kernels are imported when a method runs.
"""

import re
from functools import partial
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from ...core.answers import BoundOnly
from ...core.collective import Collective
from ...core.errors import show_value
from ...core.fields import Strict
from ...core.formulation import Formulation
from ...core.method import Kind, Method, Metric
from ...core.refusals import refuse_unfit
from ...core.trees import TreePacking

PAPER = "Zhao et al., ForestColl: Efficient Collective Communications on Heterogeneous Network Fabrics"

#: What trees from every rank, or from one, are for. The first of each pair goes outwards.
GATHERS = (Collective.ALL_GATHER, Collective.REDUCE_SCATTER)
SPREADS = (Collective.BROADCAST, Collective.REDUCE)
COLLECTIVES = (*GATHERS, Collective.ALL_REDUCE, *SPREADS)


def _trees(value: object) -> object:
    """Reject an invalid number of trees with a message that lists the allowed values."""
    if value not in ("optimal", "smallest") and not re.fullmatch("0*[1-9][0-9]{0,99}", str(value)):
        raise ValueError(f"{show_value(value)} is wrong; expected optimal, smallest, or a number of at least 1")
    return value


class ForestOptions(Strict):
    """Options of ``forestcoll``."""

    k: Annotated[Literal["optimal", "smallest"] | int, BeforeValidator(_trees)] = "optimal"
    """Trees from every root: optimal, as many as make every link's share whole (proposition 3); smallest, as few as are
    still optimal; or a number."""
    prefer: Literal["throughput", "latency"] = "throughput"
    """throughput: the fastest forest for large data; latency: of several numbers of trees the one whose pieces arrive
    first, for the collective's size."""
    scan: int = Field(default=8, ge=1, le=64)
    """Numbers of trees up to this one are tried for prefer=latency."""
    repack: int = Field(default=100, ge=0, le=100_000)
    """Rounds in which pairs of trees exchange edges, to bring the tallest down; for networks of up to 512 ranks."""
    symmetry: Literal["auto", "kept", "written", "none"] = "auto"
    """Use of symmetry: one root of every orbit of a network's translations has trees that are moved to the others.
    kept: the trees stay a few that stand for all; written: all trees are written out; auto: they are kept from 1,024
    ranks on; none: every root has trees of its own."""
    patterns: bool = True
    """True if switches may be removed whole, by a pattern of their ports; else pair by pair."""

    @model_validator(mode="after")
    def _one_says_k(self) -> Self:
        if self.prefer == "latency" and "k" in self.model_fields_set:
            raise ValueError("k and prefer = latency contradict: latency chooses k itself, up to scan")
        return self


class AllReduceOptions(Strict):
    """Options of ``forestcoll-allreduce``."""

    k: int | None = Field(default=None, ge=1)
    """Capacities become multiples of one k-th of the network's unit of bandwidth; by default the k of the solution is
    sought."""
    always_solve: bool = False
    """Solve the linear program also where the two halves in turn are proved to be best."""


class BoundOptions(Strict):
    """Options of ``forestcoll-lp``."""

    method: Literal["search", "concurrent"] = "search"
    """search solves maximum flows to every rank repeatedly; concurrent solves all of them in one program."""
    k: int | None = Field(None, ge=1, le=10**6)
    """Also find how fast forests with this many equal trees a rank can be."""


class SinkOptions(Strict):
    """Options of ``forestcoll/max-flow``."""

    sink: int = Field(0, ge=0, description="Rank that the flow arrives at.")


supports = partial(refuse_unfit, collectives=COLLECTIVES, single=True)
supports_program = partial(refuse_unfit, collectives=(Collective.ALL_REDUCE,), single=True)  #: Of linear program (6).
supports_bound = partial(refuse_unfit, collectives=(*GATHERS, Collective.ALL_REDUCE), single=True, of_all=True)
supports_gather = partial(refuse_unfit, collectives=GATHERS, single=True, of_all=True)  #: One stage of flows.

#: What the methods' metrics mean, beside those of the verifier.
PACKING = {
    "pattern": Metric("switches that were removed whole, by a pattern of their ports"),
    "pairwise": Metric("switches that were removed pair by pair of their ports"),
    "refused": Metric("patterns that did not fit"),
    "tests": Metric("tests of the packing"),
    "failed_tests": Metric("tests of the packing that failed"),
    "certain_trees": Metric("trees that algorithm 5 makes without a test"),
    "logical_edges": Metric("edges of the network without switches"),
}

OPTIMUM_METRICS = {
    "inv_x": Metric("1/x*, the least time for 10^9 bytes at every rank, as a fraction", "s"),
    "k": Metric("trees from every rank"),
    "U": Metric("trees on a link for each 10^9 B/s of its bandwidth, as a fraction"),
}

FOREST_METRICS = (
    OPTIMUM_METRICS
    | PACKING
    | {
        "optimal_k": Metric("the number of trees of proposition 3, which makes every link's share whole"),
        "smallest_k": Metric("the fewest trees that are as fast"),
        "cut_ranks": Metric("ranks in the set of the bottleneck"),
        "cut_bandwidth_GBps": Metric("bandwidth that leaves that set", "GB/s"),
        "motions": Metric("translations of the network that were found, and their products"),
        "roots": Metric("roots whose trees are moved to all others by translations"),
        "parts": Metric("equal parts of a root's data, of which its trees carry whole numbers"),
        "grown_trees": Metric("trees that were tried for the linear program"),
    }
)

FORESTCOLL = Method(
    name="forestcoll",
    kind=Kind.EXACT,
    summary="throughput-optimal forests of spanning trees on any network, to a thousand ranks and more",
    paper=PAPER,
    answer_type=TreePacking,
    options=ForestOptions,
    solve=f"{__package__}.solve:run",
    supports=supports,
    needs_solver=False,
    proved=f"{__package__}.solve:prove_bound",
    metrics=FOREST_METRICS,
)

FORESTCOLL_ALLREDUCE = Method(
    name="forestcoll-allreduce",
    kind=Kind.EXACT,
    summary="the best all-reduce by trees: two halves where that is proved best, else linear program (6)",
    paper=PAPER,
    answer_type=TreePacking,
    options=AllReduceOptions,
    solve=f"{__package__}.solve_allreduce:run",
    supports=supports_program,
    metrics=FOREST_METRICS
    | {
        "program_algbw_GBps": Metric("what linear program (6) promises", "GB/s"),
        "halves_algbw_GBps": Metric("what a reduce-scatter and an all-gather in turn reach", "GB/s"),
        "trees_of": Metric("which of the two the trees belong to"),
        "switches": Metric("switches that are nodes of trees"),
    },
)

FORESTCOLL_LP = Method(
    name="forestcoll-lp",
    kind=Kind.RELAXATION,
    summary="the optimum of ForestColl by linear programs: a bound, and no forest",
    paper=f"{PAPER}, arXiv 2402.06787",
    answer_type=BoundOnly,
    options=BoundOptions,
    solve=f"{__package__}.solve_lp:run",
    supports=supports_bound,
    metrics=OPTIMUM_METRICS
    | {"forest_algbw_GBps": Metric("bandwidth of forests with k equal trees from every rank, N k / U", "GB/s")},
)

OPTIMUM = Formulation(
    "forestcoll/optimum",
    summary="maximum flows from all ranks to each of them at one rate, which no forest exceeds; trees are packed at it",
    paper=PAPER,
    equations="section 4, optimality (*), as one program",
    index=f"{__package__}.problem:gather_problem",
    build=f"{__package__}.formulations.max_flow:build_concurrent",
    extract=f"{__package__}.solve_lp:forest_of",
    value=f"{__package__}.solve_lp:seconds",
    supports=supports_gather,
    agrees_with="forestcoll",
)

MAX_FLOW = Formulation(
    "forestcoll/max-flow",
    summary="the maximum flow from all ranks to one of them, at the rate of the slowest rank's links: a bound",
    paper=PAPER,
    equations="section 4.2, the auxiliary network with one sink",
    index=f"{__package__}.solve_lp:sink_flow",
    build=f"{__package__}.formulations.max_flow:build_max_flow",
    value=f"{__package__}.solve_lp:flow_seconds",
    options=SinkOptions,
    supports=supports_gather,
)

ALL_REDUCE = Formulation(
    "forestcoll/allreduce",
    summary="rates of roots, and what links keep for reductions to them and broadcasts from them: the best all-reduce "
    "by trees",
    paper=PAPER,
    equations="linear program (6), appendix E",
    index=f"{__package__}.solve_allreduce:all_reduce",
    build=f"{__package__}.formulations.lp6_allreduce:build",
    extract=f"{__package__}.solve_allreduce:trees_of",
    value=f"{__package__}.solve_allreduce:seconds",
    supports=supports_program,
    restricted_to=lambda options: (
        "trees of the collective's ranks that reduce to a root and broadcast from it, all over the same switches"
    ),
    agrees_with="forestcoll-allreduce",
)
