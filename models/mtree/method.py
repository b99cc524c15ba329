"""Methods ``mtree`` and ``mtree-repair`` with their options; heavy parts are imported when a method runs."""

import re
from fractions import Fraction
from functools import partial
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field

from ...algorithms.trees.network import supports, supports_group
from ...core.errors import InputError, show_value
from ...core.fields import Duration, Rate, Strict, select_options
from ...core.formulation import Formulation
from ...core.instance import Instance
from ...core.method import Kind, Method, Metric
from ...core.pipelining import MOST_CHUNKS, LatencyModel
from ...core.topology import Topology
from ...core.trees import TreePacking
from ...core.units import UnitKind, parse
from .repair_input import PreviousTree, change_network


def _height(value: object) -> object:
    text = str(value).strip()
    if re.fullmatch("[0-9]{1,9}", text):
        if int(text) == 0:
            raise ValueError("0 is wrong; expected at least 1 hop")
        return int(text)
    try:
        return parse(value, UnitKind.TIME, allow_zero=False)
    except InputError:
        raise ValueError(
            f"{show_value(value)} is wrong; expected a number of hops such as 4, or a latency such as 400 ms"
        ) from None


def _chunks(value: object) -> object:
    text = str(value).strip()
    if value is None or text == "auto":
        return None
    if re.fullmatch("[0-9]{1,9}", text) and 1 <= int(text) <= MOST_CHUNKS:
        return int(text)
    raise ValueError(f"{show_value(value)} is wrong; expected auto, or a number of chunks from 1 to {MOST_CHUNKS:,}")


#: A number of hops, or seconds of latency.
Height = Annotated[int | Fraction, BeforeValidator(_height, json_schema_input_type=int | Duration)]

#: As before, or the height at which the all-reduce is fastest.
AutoHeight = Annotated[
    int | Fraction | Literal["auto"],
    BeforeValidator(
        lambda value: "auto" if value == "auto" else _height(value),
        json_schema_input_type=int | Duration | Literal["auto"],
    ),
]

#: A number of chunks of every tree, or None for the best of each.
ChunkCount = Annotated[int | None, BeforeValidator(_chunks, json_schema_input_type=int | Literal["auto"] | None)]


class ChunkOptions(Strict):
    """Split of the data among trees, and chunks of each."""

    latency_model: LatencyModel = LatencyModel.OCCUPANCY
    """Effect of latency on the next chunk: occupancy, a link is busy for it (the text); propagation, the next one
    follows at once."""
    chunks: ChunkCount = Field(None, description="Chunks of a tree: a number, or auto, the best for each tree.")
    chunk_overhead: Duration = Fraction(0)
    """Time that a chunk takes on a link in addition to its bytes, such as '5 ms'."""
    split: Literal["rate", "equal-finish"] = "rate"
    """Data of a tree: rate, in proportion to its rate (the text); equal-finish, such that at these rates all trees end
    at once."""


class MtreeOptions(ChunkOptions):
    """Options of ``mtree``."""

    trees: int | None = Field(None, ge=1, le=10_000, description="K, the most trees; by default as many as help.")
    height: AutoHeight | None = None
    """H, the most links from a root to a leaf, or their latency if it has a unit; auto, the number of links with the
    least pipelined time; by default any."""
    min_rate: Rate | None = Field(None, description="Smallest rate of a tree, such as '10 Mb/s'; by default any.")
    starts: int = Field(20, ge=1, le=10_000, description="Random starts of algorithm 1 for the pool of trees.")
    moves: int = Field(4000, ge=0, le=10**7)
    """Number of times that some of K trees are taken out and grown again, on networks that are not solved exactly."""
    changes: int = Field(2_000_000, ge=0, le=10**12)
    """Number of times that a label is changed in search of K low trees without a common link."""
    nodes: int = Field(50, ge=1, le=10**7)
    """Nodes of the search of MILP (1) for K trees in the pool, which need not end on large networks."""
    exact: bool = True
    """True if the exact models may be solved: patterns of K trees, and the cheapest low tree."""


def describe_limits(options: Any) -> str:
    """Describe the allowed forests; empty if all are (``Method.restricted_to``)."""
    trees, height, min_rate = options.trees, options.height, options.min_rate
    parts: list[str] = []
    if trees is not None:
        parts.append(f"at most {trees} {'tree' if trees == 1 else 'trees'}")
    if height == "auto":
        parts.append("the height with the least pipelined time")
    elif height is not None:
        # Exact, so that no two heights are the same in words.
        most = f"{height} {'link' if height == 1 else 'links'}" if isinstance(height, int) else f"{height} s"
        parts.append(f"height at most {most}")
    if min_rate:
        parts.append(f"rate of a tree at least {min_rate} B/s")
    return ", ".join(parts)


def _split_commas(value: object) -> object:
    return [part for part in value.split(",") if part.strip()] if isinstance(value, str) else value


class RepairOptions(ChunkOptions):
    """Options of ``mtree-repair``."""

    previous: tuple[PreviousTree, ...] = ()
    """The trees of the older plan, at least one; 'cwb repair' reads them from its file."""
    changes: Annotated[tuple[str, ...], BeforeValidator(_split_commas)] = ()
    """Changes of links since: a-b=0 (failed), a-b=0.5, a-b=80 Mb/s, a-b=-20 Mb/s (taken by others); a list,
    or with commas."""
    new_trees: int = Field(1, ge=0, le=10_000, description="m, the most trees that are not of the older plan.")
    trees: int | None = Field(None, ge=1, le=10_000, description="K, the most trees in all; by default any number.")
    height: Height | None = None
    """H of new trees, in hops, or a latency if it has a unit; by default any."""
    min_rate: Rate | None = Field(None, description="Smallest rate of a tree; by default any.")
    starts: int = Field(20, ge=1, le=10_000, description="Random starts of algorithm 1 for the pool of new trees.")
    nodes: int = Field(50, ge=1, le=10**7, description="Nodes of the search of the MILP, which need not end.")
    exact: bool = True
    """True if a small network is solved exactly, by link patterns of the new trees."""
    resolve: bool = Field(True, description="True if mtree also plans from scratch, for comparison and for its trees.")


def pose(instance: Instance, options: RepairOptions) -> Instance:
    """Return the instance with the network as it is now, for the method and the verifier."""
    return change_network(instance, options.changes) if isinstance(instance.network, Topology) else instance


def describe_repair(options: RepairOptions) -> str:
    """Describe the allowed trees (``Method.restricted_to``)."""
    trees = f"the older plan's trees and at most {options.new_trees} new"
    limits = describe_limits(options)
    return f"{trees}, {limits}" if limits else trees


PAPER = "Luo et al., Efficient Inter-Datacenter AllReduce With Multiple Trees"

#: What the methods' metrics mean, beside those of the verifier.
WAN_METRICS = {
    "allreduce_rate_Bps": Metric(
        "sum of the rates of the trees; of messages the size over the time of the most loaded link", "B/s"
    ),
    "normalized_throughput": Metric("that rate over N, at which trees would fill every link"),
    "strength_share": Metric("that rate over the strength; 1 can be reached"),
    "strength_Bps": Metric("strength of the network, which bounds the rate of any schedule", "B/s"),
}

TREE_METRICS = WAN_METRICS | {
    "mean_tree_height": Metric(
        "links from the root to the farthest site, on average over the trees: the paper's AvgTreeHeight"
    ),
    "max_tree_height": Metric("links from a root to the farthest site, of the highest tree"),
    "max_tree_latency_s": Metric("latency of the longest path from a root", "s"),
    "mean_max_fanout": Metric("most children of a site, on average over the trees: the paper's AvgMaxFanout"),
    "max_fanout": Metric("most children of a site, over all trees"),
}

GROUP_METRICS = {"helpers": Metric("sites outside the process group that relay for it")}

CHUNK_METRICS = TREE_METRICS | {
    "chunks_per_tree": Metric("chunks of every tree"),
    "chunk_bytes": Metric("size of a chunk of every tree", "B"),
    "pipelined_time_s": Metric("time of the all-reduce at reserved rates, in chunks", "s"),
    "unpipelined_time_s": Metric("the same with one message a tree", "s"),
    "reduce_time_s": Metric("time of the reduction alone, as in the paper's figure 8", "s"),
    "unpipelined_reduce_time_s": Metric("the same with one message a tree", "s"),
    "exact_bound_Bps": Metric("the proved bound on the rate of the requested trees", "B/s"),
    "bound_holds_for": Metric("what that bound is one of: any schedule, or which trees"),
}

MTREE = Method(
    name="mtree",
    kind=Kind.EXACT,
    summary="the best all-reduce trees of a limited height and number over a wide-area network, with a proved bound",
    paper=PAPER,
    answer_type=TreePacking,
    options=MtreeOptions,
    solve=f"{__package__}.solve:run",
    proved=f"{__package__}.solve:prove_bound",
    supports=supports_group,
    restricted_to=describe_limits,
    metrics=CHUNK_METRICS
    | GROUP_METRICS
    | {
        "pool": Metric("trees that were considered"),
        "auto_height": Metric("with height=auto, the height H that was chosen"),
        "heights_tried_s": Metric("with height=auto, the heights with their times", "s"),
    },
)

REPAIR = Method(
    name="mtree-repair",
    kind=Kind.EXACT,
    summary="links have changed: what the old trees of an all-reduce still carry, and what they do with a few new ones",
    paper="Luo et al., Efficient Inter-Datacenter AllReduce With Multiple Trees, for the trees; the question is ours",
    answer_type=TreePacking,
    options=RepairOptions,
    solve=f"{__package__}.repair:run",
    supports=supports,
    pose=pose,
    restricted_to=describe_repair,
    metrics=CHUNK_METRICS
    | {
        "old_trees": Metric("trees of the older plan"),
        "surviving_trees": Metric("trees of the older plan whose links all still exist"),
        "old_shares_rate_Bps": Metric(
            "rate of the surviving trees, if the data stays split among them as it was", "B/s"
        ),
        "old_plan_rate_Bps": Metric("the best rate of the surviving trees", "B/s"),
        "new_plan_rate_Bps": Metric("rate of a plan that is made from scratch", "B/s"),
        "new_plan_bound_Bps": Metric("bound on the rate of any new plan", "B/s"),
        "kept_trees": Metric("trees of the older plan in the answer; those without a rate are not counted"),
        "new_trees": Metric("new trees in the answer"),
    },
)

_AnyHeight: TypeAlias = Height | None
_Prices: TypeAlias = list[Annotated[float, Field(ge=0, le=1e9)]] | None

#: Options of the models beside those of the methods: height of the trees, which is given or any, prices, and the pool.
_HEIGHT = (
    _AnyHeight,
    Field(None, description="H, the most links from a root to a leaf, or their latency if it has a unit."),
)
_PRICES = (
    _Prices,
    Field(None, description="A price for each two sites that are joined, in the order of the network; by default 1."),
)
_POOL = (
    Literal["every", "starts"],
    Field("every", description="Trees of the pool: every spanning tree, or what random starts of algorithm 1 grow."),
)
_STARTS = (int, Field(20, ge=1, le=10_000, description="Random starts of algorithm 1 for pool=starts."))
_RELAXED = (
    int | None,
    Field(None, ge=1, le=10_000, description="K, the most trees, as its relaxation; by default any number."),
)

#: What the declared models have in common.
_formulation = partial(
    Formulation,
    paper=PAPER,
    value=f"{__package__}.answer:seconds",
    # Where links are faster in one direction the trees of the models do not see all of the network.
    bounds=lambda index: index.problem.wan.balanced and getattr(index, "complete", True),
    supports=supports,
    restricted_to=describe_limits,
    agrees_with="mtree",
)
_integer_program = partial(_formulation, needs=("integers",), rel_gap=1e-9)
_repair_program = partial(_integer_program, restricted_to=describe_repair, pose=pose, agrees_with="mtree-repair")

SELECTION = _integer_program(
    "mtree/selection",
    summary="at most K of all spanning trees of a limited height, and their rates",
    equations="MILP (1)",
    index=f"{__package__}.problem:complete_pool",
    build=f"{__package__}.formulations.selection:build",
    extract=f"{__package__}.answer:trees_of_pool",
    options=select_options(MtreeOptions, "trees", "min_rate", height=_HEIGHT),
)

PATTERNS = _integer_program(
    "mtree/patterns",
    summary="the best K trees, by a binary variable for each link and each set of trees on it",
    equations="ours, for the same K trees as MILP (1)",
    index=f"{__package__}.problem:tree_count",
    build=f"{__package__}.formulations.patterns:build",
    extract=f"{__package__}.answer:trees_of_patterns",
    options=select_options(
        MtreeOptions, "min_rate", height=_HEIGHT, trees=(int, Field(3, ge=1, le=8, description="K, the most trees."))
    ),
)

RATES = _formulation(
    "mtree/rates",
    summary="the best rates of the trees of a pool, by default of all spanning trees",
    equations="(1a) and (1b) of MILP (1)",
    index=f"{__package__}.problem:stated_pool",
    build=f"{__package__}.formulations.selection:build_rates",
    extract=f"{__package__}.answer:trees_of_pool",
    options=select_options(MtreeOptions, height=_HEIGHT, pool=_POOL, starts=_STARTS),
)

RESTRICTED_MASTER = _formulation(
    "mtree/restricted-master",
    summary="prices of links at which every tree of a pool costs enough: the dual of its rates, a bound where it has "
    "all",
    equations="dual of (1a), (1b) and the relaxation of (1e)",
    index=f"{__package__}.problem:stated_pool",
    build=f"{__package__}.formulations.restricted_master:build",
    options=select_options(MtreeOptions, height=_HEIGHT, pool=_POOL, starts=_STARTS, trees=_RELAXED),
    dual=True,
)

PRICING = _integer_program(
    "mtree/pricing",
    summary="the cheapest spanning tree of a limited height at stated prices of links: they prove a bound",
    equations="pricing problem of the dual of MILP (1)",
    index=f"{__package__}.problem:link_prices",
    build=f"{__package__}.formulations.pricing:build_of_prices",
    labels=f"{__package__}.problem:price_labels",
    explains=("mtree",),
    options=select_options(MtreeOptions, height=_HEIGHT, prices=_PRICES),
    value=f"{__package__}.answer:seconds_of_prices",
    agrees_with="",
)

REPAIR_SELECTION = _repair_program(
    "mtree/repair",
    summary="rates of the trees of an older plan, and at most m of all others beside them",
    equations="MILP (1) with new trees counted",
    index=f"{__package__}.problem:old_and_all",
    build=f"{__package__}.formulations.selection:build",
    extract=f"{__package__}.answer:trees_of_pool",
    options=select_options(RepairOptions, "previous", "changes", "new_trees", "trees", "height", "min_rate"),
)

REPAIR_PATTERNS = _repair_program(
    "mtree/repair-patterns",
    summary="rates of the trees of an older plan, and at most m new ones by patterns of links",
    equations="ours, for the same trees as mtree/repair",
    index=f"{__package__}.problem:old_and_patterns",
    build=f"{__package__}.formulations.patterns:build",
    extract=f"{__package__}.answer:trees_of_patterns",
    options=select_options(
        RepairOptions,
        "previous",
        "changes",
        "trees",
        "height",
        new_trees=(int, Field(1, ge=1, le=8, description="m, the most trees that are not of the older plan.")),
    ),
)
