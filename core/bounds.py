"""Proved bounds and the certificates that let a reader check them; docs/schedules/bounds.md derives each."""

from __future__ import annotations  # files of schedules are read by the fields' types as they are written

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, dataclass_transform

from .display import DisplayMixin
from .instance import plain


@dataclass_transform(frozen_default=True)
class _Certificate(DisplayMixin):
    """Certificate that a record holds by name, with its fields in order: a frozen dataclass."""

    name: ClassVar[str]

    def __init_subclass__(cls, name: str) -> None:
        cls.name = name
        dataclass(frozen=True, repr=False)(cls)

    def to_json(self) -> dict[str, Any]:
        data = plain(self)
        late = "late-" if data.pop("latency", False) else ""
        return {"certificate": f"{late}{self.name}", **data}


class SolverBound(_Certificate, name="solver"):
    """Bound reported by a solver and recomputed by nobody."""

    solver: str
    version: str


@dataclass(frozen=True, repr=False)
class SupportingLine(DisplayMixin):
    """Multipliers that prove ``time_weight * T(B) + cost_weight * C(B) >= value`` for every allowed B.

    The derivation is in docs/methods/libra.md: the minimum of a Lagrangian of weighted averages, in closed form.
    """

    #: ``time_weight`` and ``cost_weight``: weights of seconds and of dollars.
    time_weight: float
    cost_weight: float
    #: ``(workload, layer, phase, index, share per dimension)``: shares are at least 0 and sum to at most 1. Phases are
    #: 0 forward, 1 input gradient, 2 weight gradient. A communication that is not listed has no share.
    shares: tuple[tuple[int, int, int, int, tuple[float, ...]], ...]
    #: ``(workload, layer, share of the TP branch)`` for the TP-DP-overlap loop; the DP branch has the rest.
    overlaps: tuple[tuple[int, int, float], ...]
    #: One per linear constraint of the design, in its order; at least 0 for ``<=``, at most 0 for ``>=``, free for
    #: ``=``.
    multipliers: tuple[float, ...]


class LagrangianCertificate(_Certificate, name="lagrangian"):
    """Supporting lines of the attainable (time, cost) pairs; together they bound the objective from below.

    A line of weights (1, 0) bounds the time alone. Time times cost is at least the smallest product over the
    polygon that the lines leave; for an instance without computation and ``scale_free`` lines (multipliers with
    ``u . h <= 0``), it is at least ``V^2 / (4 w)`` where V is the Lagrangian's minimum at weights (1, w).
    """

    lines: tuple[SupportingLine, ...]
    scale_free: bool = False


class SweepCertificate(_Certificate, name="sweep"):
    """Certificates for every parallelization tried; the smallest of their bounds holds for all."""

    #: Pairs ``((TP, DP), certificate)``, one per parallelization.
    parts: tuple[tuple[tuple[int, int], SolverBound | LagrangianCertificate], ...]

    def to_json(self) -> dict[str, Any]:
        """Return plain data for a record."""
        return {
            "certificate": self.name,
            "parts": [{"parallelism": list(hp), **certificate.to_json()} for hp, certificate in self.parts],
        }


class CutCertificate(_Certificate, name="cut"):
    """Set of nodes whose outgoing links must carry the data that the others need from it.

    A single node bounds its egress; all nodes but one bound the ingress of that one. With ``latency`` the bound is on
    the arrival of the last byte.
    """

    nodes: tuple[int, ...]
    latency: bool = False  #: If the latency of the links counts; the flow model omits it.


class DistanceCertificate(_Certificate, name="distance"):
    """Pair of ranks between which data must travel: the time is at least the smallest path latency."""

    source: int
    target: int


class DimensionWeights(_Certificate, name="dimension-weights"):
    """Weights of the dimensions of a fabric that bound a multi-rail collective.

    The busiest dimension is busy at least as long as any weighted average over the dimensions, and this is at least
    the weighted average of the best single order for all data. With few dimensions, all orders can be tried.
    """

    weights: tuple[Fraction, ...]  #: One for each dimension; at least 0, with a sum of at most 1.


class PartitionCertificate(_Certificate, name="partition"):
    """Disjoint sets of nodes that an all-reduce must connect twice.

    With p sets that hold a rank of the group, every byte enters and leaves sets at least ``2 (p - 1)`` times, or only p
    times where a switch outside of them can add, or copy.
    """

    #: Positions of nodes in the topology. Every compute node is in a set; nodes in none of them are switches.
    parts: tuple[tuple[int, ...], ...]


class TreePrices(_Certificate, name="tree-prices"):
    """Prices of links and of a tree that bound an all-reduce along trees: dual values of their packing.

    The bound holds for schedules of trees, each with a rate r_T, that reduce to a root and broadcast from it: at
    most ``trees`` of them, each with a rate of at least ``min_rate_Bps`` and with paths between root and leaf, in
    both directions, no longer than the height. If their number or rate is limited, none uses a link twice. It does not
    bound other schedules.

    With prices w(T) of both directions of a tree T and its least bandwidth c_T, rates sum to R with ``R m <= B + N p``
    if none of N trees has ``w(T) + p / c_T < m``. For given N, R is lowered further: to a sum that an optimal basis
    of the rates can have, and where trees share no link.
    """

    prices: tuple[int, ...]  #: w_e, one for every link of the topology, at least 0.
    tree_price_Bps: Fraction = Fraction(0)  #: p in bytes per second, at least 0.
    trees: int | None = None  #: Largest number of trees; None is any number.
    #: ``height`` and ``height_unit``: H in ``links``, or in ``ns`` of latency, a link's rounded up; None is any.
    height: int | None = None
    height_unit: str = "links"
    min_rate_Bps: Fraction = Fraction(0)  #: Smallest rate of a tree; 0 is any.
    link_sets: tuple[tuple[int, ...], ...] = ()  #: Sets S of links that exclude bandwidths.

    def to_json(self) -> dict[str, Any]:
        """Return plain data for a record."""
        data = super().to_json()
        return data if self.link_sets else {name: value for name, value in data.items() if name != "link_sets"}


class LengthCertificate(_Certificate, name="lengths"):
    """Lengths of links that bound an all-to-all: dual values of the maximum concurrent flow.

    ``(bytes per pair) * sum_{s,t} d(s, t) <= T * sum_e bandwidth_e * length_e`` with the least distances d.
    With ``latency``, a link e is idle for the least latency a_e of a path over it, and its T is ``max(0, T - a_e)``.
    """

    lengths: tuple[int, ...]  #: One for every link of the topology, at least 0.
    latency: bool = False  #: If latencies count; the flow model omits them.


class WholeChunks(_Certificate, name="whole-chunks"):
    """Rank whose data many others need in whole chunks, sent one after the other.

    The bound holds for schedules whose chunks of the rank's data have at least c = ``chunk_bytes``, on networks
    whose switches do not copy. It does not hold for finer chunks.

    The last chunk leaves the rank after the time of all its data; then the number of ranks that have it at most doubles
    in every time of a chunk.
    """

    rank: int
    chunk_bytes: Fraction  #: Smallest chunk size for which the bound holds.


class EpochDistance(_Certificate, name="epoch-distance"):
    """Pair of nodes between which a chunk must travel, on a grid of epochs.

    A schedule takes at least the delays of the fastest path.
    """

    source: int
    target: int


class EpochCut(_Certificate, name="epoch-cut"):
    """Set of nodes that many chunks must enter, on a grid of epochs.

    If the links that enter the set cannot start, within the distances of sources and sinks, as many chunks as are
    needed inside in K epochs, K is too few. With a ``sink``, only chunks count that it needs from sources at least
    ``threshold`` epochs away.
    """

    nodes: tuple[int, ...]
    #: The node inside that all these chunks must reach; None counts the needs of all nodes inside.
    sink: int | None = None
    threshold: int = 0  #: With a sink, nearer sources are left out.


class EpochChain(_Certificate, name="epoch-chain"):
    """Set of nodes with a sink inside: chunks that enter late must still pass the sink's links.

    If m of the n chunks that the sink needs cannot be inside before an index, n - m + 1 pass its links after that.
    """

    nodes: tuple[int, ...]
    sink: int


class EpochFlow(_Certificate, name="epoch-flow"):
    """Sink that a maximum flow over time cannot serve in one epoch less.

    Starts on a link are counted in blocks of its window. If the maximum flow from (source, 0) to (sink, K) is less than
    the number of chunks, K is too few.
    """

    sink: int
    epochs: int  #: Proved bound: one epoch less is too few.


class EpochPrices(_Certificate, name="epoch-prices"):
    """Prices of links in blocks of epochs that refute a number of epochs where chunks may be split.

    They are dual values of the flow over time. If the cheapest paths of all chunks from (source, 0) to (target, K) cost
    more than all links filled to their rates in every epoch, K epochs are too few.
    """

    starts: tuple[int, ...]  #: First epoch of every block and, last, K; the first is 0, and they increase.
    prices: tuple[tuple[int, ...], ...]  #: For every link of the topology the price in every block, at least 0.


class EpochWindowPrices(_Certificate, name="epoch-window-prices"):
    """Prices of windows of links that refute a number of epochs for whole, copied chunks.

    Every start in a window pays its price. If the cheapest trees over time of all chunks, from (source, 0) to these
    sinks at K, cost more than ``capacity`` starts in every window, K epochs are too few.
    """

    epochs: int  #: Proved bound; K is one epoch less.
    sinks: tuple[int, ...]  #: Positions of one to three nodes.
    #: ``links``, ``starts`` and ``prices``: windows with a price: the link, the first epoch, which may be before 0, and
    #: the price.
    links: tuple[int, ...]
    starts: tuple[int, ...]
    prices: tuple[int, ...]


class EpochPartition(_Certificate, name="epoch-partition"):
    """Disjoint sets of ranks that an all-reduce of whole chunks must connect twice.

    It applies to grids of epochs without switches, where every chunk enters sets as in :class:`PartitionCertificate`.
    """

    parts: tuple[tuple[int, ...], ...]  #: Positions of nodes in the topology. Every node is in a set.


@dataclass(frozen=True, repr=False)
class PairPrices(DisplayMixin):
    """Weights of replicas in the two slots of a GPU that has less than a load T.

    A replica of T - v or more counts 1, one of less than v nothing, and one of a load between 1/2, so that two on a GPU
    count at most 1 (docs/methods/experts.md).
    """

    replica: Fraction
    light: tuple[tuple[Fraction, Fraction], ...]  #: Every v and its weight in the average; weights add up to 1.


class LeastLoads(_Certificate, name="least-loads"):
    """Per layer, a load that some GPU reaches or exceeds for every placement of the experts.

    It is the average over GPUs, the smallest largest load of a replica within the slots, that of a node however groups
    are divided, the least of all enumerated choices, or follows from prices (:class:`PairPrices`).
    """

    loads: tuple[Fraction, ...]  #: One for every layer; the bound is their sum.
    prices: tuple[PairPrices | None, ...]  #: One for every layer; None where its load is proved otherwise.


EpochBound = EpochDistance | EpochCut | EpochChain | EpochFlow | EpochPrices | EpochWindowPrices | EpochPartition

FlowBound = CutCertificate | DistanceCertificate | PartitionCertificate | TreePrices | LengthCertificate | WholeChunks
DesignBound = LagrangianCertificate | SweepCertificate | DimensionWeights
Certificate = SolverBound | FlowBound | DesignBound | LeastLoads | EpochBound
