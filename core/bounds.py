"""Proved bounds and the certificates that let a reader check them."""

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

    A maximum is at least any average of its arguments. With shares of every collective over the dimensions, and of
    every overlapping stage over its two branches, the iteration time is at least ``K + sum_d a_d / B_d``; with
    multipliers of the linear constraints ``g_i . B <= h_i`` the Lagrangian has the closed minimum
    ``K + sum_d 2 sqrt(a_d c_d) - sum_i u_i h_i`` where ``c = cost_weight * price + sum_i u_i g_i``. All of it can
    be recomputed by hand from the instance and these numbers.
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

    The time is at least the bytes that ranks outside need and only ranks inside can supply (data that only they
    have, or sums that need their contributions), over the bandwidth of the links that leave the set. A single node
    bounds its egress; all nodes but one bound the ingress of that one.

    With ``latency`` the bound is on the arrival of the last byte: in a time T a link of bandwidth b and latency a
    delivers at most ``b max(0, T - a)`` bytes, and T is at least as long as these need to add up to the bytes that
    must leave.
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

    Let p be the number of sets with a rank of the group. Every byte enters sets at least ``2 (p - 1)`` times:
    before the first of them has a full sum, each of the others must send a contribution out, and no two of these
    arrive as one if nothing outside the sets can add; after that, each of the others must receive. If a switch
    outside the sets reduces, or can store and so may add, contributions can be merged on the way, and the number is
    only p, once for every set. So the time is at least this number times the size over the bandwidth of the links
    that enter the sets.

    Every byte also leaves sets at least ``2 (p - 1)`` times if no switch outside them can copy, and p times if one
    can: an all-reduce reversed in time is an all-reduce, with additions and copies exchanged. So the same holds for
    the links that leave the sets, and the larger time is the bound.
    """

    #: Positions of nodes in the topology. Every compute node is in a set; nodes in none of them are switches.
    parts: tuple[tuple[int, ...], ...]


class TreePrices(_Certificate, name="tree-prices"):
    """Prices of links and of a tree that bound an all-reduce along trees: dual values of their packing.

    The bound holds for schedules of trees, each with a rate r_T, that reduce to a root and broadcast from it: at
    most ``trees`` of them, each with a rate of at least ``min_rate_Bps`` and with paths between root and leaf, in
    both directions, no longer than the height. It does not bound other schedules.

    Let w(T) be the prices of a tree's links, those of the reduction and those of the broadcast. Loads fit, so that
    ``sum_T r_T w(T) <= sum_e b_e w_e = B``. A rate is at most the least bandwidth c_T of the tree's links, so that
    with N trees ``sum_T r_T p / c_T <= N p``. If no tree costs less than m, ``w(T) + p / c_T >= m``, the rates sum
    to R with ``R m <= B + N p``. N is at most ``trees``, and at most R over the smallest rate, so that
    ``N (min_rate m - p) <= B``. The time is at least the size over the largest such R.

    With N known, let C be the largest bandwidth of a link and c that of the widest tree. If no link is used twice,
    each tree can have the least bandwidth of its own links: N trees carry at most D_N, the largest sum of N
    bandwidths of at most c that no set of links excludes, and a multiple of the unit of all bandwidths. A set S
    excludes bandwidths if its links are too few for such trees: if links of at least c_T outside of S leave g
    parts, both directions of a tree T together use ``2 (g - 1)`` links of S. If two trees share a link, they carry
    at most C (and 2 c) together, and if a tree uses one in both directions, it carries at most C / 2 (and c); the
    others carry at most what that many trees can. So ``S_N = max(C + R_{N - 2}, C / 2 + R_{N - 1})`` with
    ``R_k = max(D_k, S_k)``, and R is at most the larger one of S_N and D_N, the latter rounded down with R itself.

    The least cost of a tree is computed for each bandwidth c that c_T may be, over links of at least c. Both of its
    directions connect all ranks, so that they cost at least twice the cheapest undirected spanning tree. With a
    height H, let r be the root: a link (u, v) of the broadcast ends at most H away from it, ``d(r, u) + L_uv <= H``
    with the least distance d, and likewise a link of the reduction begins at most H away. So the two directions
    cost at least as much as the cheapest arborescence from r over such links, and the one into r.
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

    A byte from s to t passes links whose lengths sum to at least the distance d(s, t), and in a time T a link
    carries at most bandwidth times T bytes:
    ``(bytes per pair) * sum_{s,t} d(s, t) <= T * sum_e bandwidth_e * length_e``.

    With ``latency``, let a_e be the least latency of a path over link e from a rank that has data to one that needs
    some. The link is idle until data can have reached its tail, and at the end for the rest of a_e, so that in the
    term of e the time T is replaced by max(0, T - a_e).
    """

    lengths: tuple[int, ...]  #: One for every link of the topology, at least 0.
    latency: bool = False  #: If latencies count; the flow model omits them.


class WholeChunks(_Certificate, name="whole-chunks"):
    """Rank whose data many others need in whole chunks, sent one after the other.

    The bound holds for schedules whose chunks of the rank's data have at least c = ``chunk_bytes``, on networks
    whose switches do not copy. It does not hold for finer chunks.

    Let D be the bytes that the rank has, or contributes to a sum, and that others need, and B its bandwidth
    outwards. The last of their chunks to leave it has not left before ``D / B``; only then a second rank has it.
    Every rank that has it needs at least ``c / M`` for each further copy, with M the largest bandwidth out of a
    rank, so that the number of those that have it at most doubles in that time. If n ranks must have every chunk in
    the end, the time is at least ``D / B + (ceil(log2 n) - 1) c / M``.
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

    Take the chunks from outside that are needed inside; with a ``sink``, those that the sink needs and whose source
    is at least ``threshold`` epochs away from it. On its way to the first node that needs it, each of them starts
    at least once over a link (i, j) that enters the set: the n-th start there is not before the n-th smallest
    distance of these sources to i, the windows of the link hold, and from j the chunk must still reach the sink (or
    the nearest node that needs one of them) by the end. If the entering links cannot start that many chunks in K
    epochs, K is too few. In a fluid problem a link carries its rate in every epoch instead, from the smallest of
    the distances on, and a chunk enters once for every node inside that needs it, since nothing is copied.
    """

    nodes: tuple[int, ...]
    #: The node inside that all these chunks must reach; None counts the needs of all nodes inside.
    sink: int | None = None
    threshold: int = 0  #: With a sink, nearer sources are left out.


class EpochChain(_Certificate, name="epoch-chain"):
    """Set of nodes with a sink inside: chunks that enter late must still pass the sink's links.

    Of the n chunks from outside that the sink needs, the links that enter the set cannot have delivered m before
    some index t(m), by their windows and the distances of the sources (see :class:`EpochCut`). So n - m + 1 of them
    enter the set at t(m) or later, and each arrives over a link of the sink: one from inside starts no earlier than
    t(m) plus the distance to it from where chunks enter, one from outside arrives no earlier than t(m). This holds
    for every m; the bound is the largest.
    """

    nodes: tuple[int, ...]
    sink: int


class EpochFlow(_Certificate, name="epoch-flow"):
    """Sink that a maximum flow over time cannot serve in one epoch less.

    The chunks that the sink needs flow from (source, 0) to (sink, K) over nodes at indices. Chunks can wait at
    nodes that store, and at the ends of links with a window, where the counting may let them arrive too early; not
    elsewhere. In any schedule of K epochs the paths of these chunks, traced back from the sink, are such a flow of
    whole chunks. On a link with a window of w epochs, starts are counted in blocks of w epochs from the first
    possible one on, at most ``capacity`` in each, all of them as if they had started with the block. If the maximum
    flow is less than the number of chunks, K is too few.
    """

    sink: int
    epochs: int  #: Proved bound: one epoch less is too few.


class EpochPrices(_Certificate, name="epoch-prices"):
    """Prices of links in blocks of epochs that refute a number of epochs where chunks may be split.

    They are dual values of the flow over time. In a schedule of K epochs every chunk pays, for each of its targets,
    at least the cheapest path from (source, 0) to (target, K) over nodes at indices, and all chunks together pay at
    most the price of all links, filled to their rates in every epoch. If the cheapest paths cost more than that, K
    epochs are too few.
    """

    starts: tuple[int, ...]  #: First epoch of every block and, last, K; the first is 0, and they increase.
    prices: tuple[tuple[int, ...], ...]  #: For every link of the topology the price in every block, at least 0.


class EpochWindowPrices(_Certificate, name="epoch-window-prices"):
    """Prices of windows of links that refute a number of epochs for whole, copied chunks.

    In a schedule, at most ``capacity`` starts on a link fall in any ``window`` consecutive epochs. Every start in a
    window pays the window's price. In a schedule of K epochs, each chunk that some sinks need starts over the links
    of a tree over time from (source, 0) to these sinks at K, and pays at least for the cheapest such tree; all
    chunks together pay at most, for every window, its capacity times its price. If the cheapest trees cost more
    than that, K epochs are too few.
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

    It applies to grids of epochs without switches. Let p be the number of sets with a rank of the group. Every
    chunk enters sets at least ``2 (p - 1)`` times, see :class:`PartitionCertificate`. If the links that enter the
    sets cannot start that many chunks in K epochs, K is too few.
    """

    parts: tuple[tuple[int, ...], ...]  #: Positions of nodes in the topology. Every node is in a set.


@dataclass(frozen=True, repr=False)
class PairPrices(DisplayMixin):
    """Weights of replicas in the two slots of a GPU that has less than a load T.

    For any v of at most T / 2, let a replica of T - v or more count 1, one of less than v nothing, and one of a
    load between 1/2. Two on a GPU count at most 1, also in an average over several v. So all replicas together
    count at most the number of GPUs. With a price for every replica, and so for every slot, each expert has numbers
    of replicas that cost the least; if all of them cost more than GPUs and slots, no GPU can have less than T.
    """

    replica: Fraction
    light: tuple[tuple[Fraction, Fraction], ...]  #: Every v and its weight in the average; weights add up to 1.


class LeastLoads(_Certificate, name="least-loads"):
    """Per layer, a load that some GPU reaches or exceeds for every placement of the experts.

    It is no more than the average over the GPUs, or the smallest possible largest load of a replica within the
    slots; for groups on nodes, that of one of the nodes, however the groups are divided. If few experts have
    further replicas, all numbers of replicas and all ways to put them into slots are enumerated, and each has a GPU
    with this load. For two slots on a GPU there are prices (:class:`PairPrices`).
    """

    loads: tuple[Fraction, ...]  #: One for every layer; the bound is their sum.
    prices: tuple[PairPrices | None, ...]  #: One for every layer; None where its load is proved otherwise.


EpochBound = EpochDistance | EpochCut | EpochChain | EpochFlow | EpochPrices | EpochWindowPrices | EpochPartition

_OfFlow = CutCertificate | DistanceCertificate | PartitionCertificate | TreePrices | LengthCertificate | WholeChunks
_OfDesign = LagrangianCertificate | SweepCertificate | DimensionWeights
Certificate = SolverBound | _OfFlow | _OfDesign | LeastLoads | EpochBound
