"""The baselines over wide-area networks and their options; heavy parts are imported when a method runs."""

from fractions import Fraction
from functools import partial
from typing import Literal

from pydantic import Field

from ...algorithms.trees.network import supports, supports_group
from ...core.errors import Refusal
from ...core.fields import Rate, Strict, select_options
from ...core.formulation import Formulation
from ...core.method import Kind, Method, Metric
from ...core.schedule import StepSchedule
from ...core.trees import TreePacking
from ...models.mtree.method import CHUNK_METRICS, GROUP_METRICS, PAPER, TREE_METRICS, WAN_METRICS, ChunkOptions, Height


class TopoAdoptOptions(Strict):
    """Options of ``topoadopt``."""

    trees: int = Field(10, ge=1, le=1000, description="K, the number of trees.")
    moves: int = Field(400, ge=0, le=10**6, description="Moves of the annealing, each with a linear program.")
    temperature: Rate = Fraction(50 * 10**6, 8)
    """Loss of rate that is taken with probability 1/e at the first move."""
    cooling: float = Field(0.985, gt=0, le=1, description="Temperature of a move over that of the move before.")


class BlinkWanOptions(Strict):
    """Options of ``blink-wan``."""

    cut: Literal["unit", "trees", "none"] = "trees"
    """Trees to keep: unit, as many as carry one smallest capacity each; trees, at most K; none, all."""
    trees: int = Field(10, ge=1, le=1000, description="K of cut=trees.")
    accuracy: float = Field(0.1, ge=0.01, le=0.5, description="epsilon of the multiplicative weights.")
    steps: int = Field(2000, ge=1, le=10**6, description="Most trees that the multiplicative weights look at.")
    nodes: int = Field(200, ge=1, le=10**7, description="Nodes of the integer program's search, which may not end.")
    root: Literal["centre", "common"] = "common"
    """common, one root for all trees, as Blink has; centre, each tree its own."""


class SingleTreeOptions(Strict):
    """Options of ``single-tree``."""

    height: int | None = Field(None, ge=1, description="Most links from the root to a leaf; by default any.")


class WanRingOptions(Strict):
    """Options of ``wan-ring``."""

    tries: int = Field(200, ge=1, le=10**6)
    """Random starts of the search for each capacity, on more than 20 sites."""


class PlinkOptions(Strict):
    """Options of ``plink``."""

    groups: int | None = Field(None, ge=1, description="Number of clusters; by default the rounded root of the sites'.")


class PsldOptions(Strict):
    """Options of ``psld``."""

    share: Literal["slowest", "mean", "equal"] = "slowest"
    """Shares of the data by bandwidth: that to the slowest peer, or the mean; or all are equal."""


class GostOptions(ChunkOptions):
    """Options of ``gost``; the defaults are the text as it is written."""

    trees: int = Field(10, ge=1, le=10_000, description="K, the most trees of MILP (1).")
    height: Height = Field(8, description="H of ITH, in hops, or a latency if it has a unit.")
    min_rate: Rate = Fraction(10**7, 8)
    """rbar, the smallest rate of a tree; the text has no value; 10 Mb/s is its grid."""
    rate: Literal["global_min", "bottleneck", "usable_min"] = "global_min"
    """r* of a new tree (algorithm 1, line 22): global_min, the smallest capacity left anywhere; bottleneck, that of the
    tree; usable_min, the smallest one left that is at least rbar."""
    height_test: Literal["diameter", "radius"] = "diameter"
    """Line 12: diameter, the largest height over all roots is at most 2 H, which with latencies does not keep the
    height below H; radius, the least one is at most H."""
    grth: Literal["as_written", "corrected"] = "as_written"
    """Algorithm 2: as_written forgets the height from the site that a link is added at."""
    ties: Literal["last", "shuffle"] = "last"
    """Links of equal capacity and height: last, the later one in the network; shuffle, in random order."""
    retries: int = Field(0, ge=0, le=1000)
    """Further random starts of a tree that fails; the text gives up at the first."""
    improve: bool = Field(True, description="True if ITH (algorithm 3) lowers H by bisection; else one GBST.")
    rho: float = Field(0.95, gt=0, le=1, description="Share of the rate at H that ITH must keep; no value in the text.")
    ith_seed: Literal["fresh", "same"] = "fresh"
    """Random starts of the GBSTs of ITH: fresh, going on; same, each from the same seed."""
    nodes: int = Field(10_000, ge=1, le=10**7)
    """Nodes of the search of MILP (1), which need not end on dense networks."""
    select: bool = Field(True, description="True if MILP (1) chooses trees and rates; else those of GBST are taken.")


_READING = (
    "a reading of the baseline that MTree (Luo et al., Efficient Inter-Datacenter AllReduce With Multiple Trees) names"
)

_method = partial(Method, kind=Kind.HEURISTIC, paper=_READING, answer_type=TreePacking, supports=supports)

GOST = _method(
    name="gost",
    summary="MTree's own trees: greedy, one after the other, then a MILP that chooses among them",
    paper=PAPER,
    options=GostOptions,
    solve=f"{__package__}.gost:run",
    supports=supports_group,
    metrics=CHUNK_METRICS
    | GROUP_METRICS
    | {
        "pool": Metric("trees that were made"),
        "ith_height": Metric("height that ITH ends with, in hops, or in ns"),
        "gbst_calls": Metric("runs of GBST"),
        "gbst_rate_Bps": Metric("rate that GBST assigns to its own trees", "B/s"),
    },
)

TOPOADOPT = _method(
    name="topoadopt",
    summary="an all-reduce over a wide-area network: K trees by simulated annealing",
    options=TopoAdoptOptions,
    solve=f"{__package__}.topoadopt:run",
    supports=supports_group,
    metrics=TREE_METRICS | GROUP_METRICS | {"moves": Metric("moves of the annealing that were made")},
)

BLINK_WAN = _method(
    name="blink-wan",
    summary="an all-reduce over a wide-area network: Blink's packing by multiplicative weights, and its cut to few "
    "trees",
    options=BlinkWanOptions,
    solve=f"{__package__}.blink:run",
    supports=supports_group,
    metrics=TREE_METRICS
    | GROUP_METRICS
    | {
        "pool": Metric("different trees of the packing"),
        "packing_rate_Bps": Metric("rate of the packing before it is cut", "B/s"),
    },
)

SINGLE_TREE = _method(
    name="single-tree",
    summary="an all-reduce over a wide-area network: the one tree whose slowest link is fastest",
    paper="general knowledge",
    options=SingleTreeOptions,
    solve=f"{__package__}.widest:run_single_tree",
    supports=supports_group,
    needs_solver=False,
    metrics=TREE_METRICS | GROUP_METRICS,
)

WAN_RING = _method(
    name="wan-ring",
    summary="an all-reduce over a wide-area network: the ring through all sites whose slowest link is fastest",
    paper="general knowledge",
    options=WanRingOptions,
    solve=f"{__package__}.widest:run_ring",
    supports=lambda instance: (
        supports(instance) or (Refusal("ranks", "a ring needs at least three sites") if instance.npus < 3 else None)
    ),
    needs_solver=False,
    metrics=TREE_METRICS | {"ring": Metric("the sites in the order of the ring")},
)

PLINK = _method(
    name="plink",
    summary="an all-reduce over a wide-area network: clusters of near sites, their leaders, and a leader of these",
    answer_type=StepSchedule,
    options=PlinkOptions,
    solve=f"{__package__}.messages:run_plink",
    needs_solver=False,
    metrics=WAN_METRICS
    | {
        "groups": Metric("number of clusters"),
        "leaders": Metric("leader of each cluster"),
        "root": Metric("leader of the leaders"),
    },
)

PSLD = _method(
    name="psld",
    summary="an all-reduce over a wide-area network: every site adds up a share as large as its bandwidth",
    answer_type=StepSchedule,
    options=PsldOptions,
    solve=f"{__package__}.messages:run_psld",
    needs_solver=False,
    metrics=WAN_METRICS | {"largest_share": Metric("largest share of a site in the data")},
)

_integer_program = partial(Formulation, needs=("integers",), supports=supports, bounds=False)

BLINK_UNITS = _integer_program(
    "wan/blink-units",
    summary="trees of a packing by multiplicative weights, as many as carry one smallest capacity each",
    paper=_READING,
    equations="Blink's integer program for few trees",
    index=f"{__package__}.blink:unit_pool",
    build=f"{__package__}.blink:build_units",
    extract=f"{__package__}.blink:unit_trees",
    options=select_options(BlinkWanOptions, "accuracy", "steps", "root"),
    agrees_with="blink-wan",
)

SELECTION = _integer_program(
    "wan/selection",
    summary="at most K trees of those that GOST grows (algorithms 1 to 3), and their rates",
    paper=PAPER,
    equations="MILP (1), on the pool of trees of GOST",
    index=f"{__package__}.gost:grown_pool",
    build="cwb.models.mtree.formulations.selection:build",
    extract="cwb.models.mtree.answer:trees_of_pool",
    options=select_options(
        GostOptions, "trees", "height", "min_rate", "rate", "height_test", "grth", "ties", "improve", "rho"
    ),
    agrees_with="gost",
    rel_gap=1e-9,
)
