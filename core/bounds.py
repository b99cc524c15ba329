"""Proved bounds and the certificates that let a reader check them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from .display import Shown
from .instance import plain


@dataclass(frozen=True, repr=False)
class SolverBound(Shown):
    """A bound that a solver reports and nobody has recomputed."""

    solver: str
    version: str

    def to_json(self) -> dict[str, Any]:
        """Plain data for a record."""
        return {"certificate": "solver", "solver": self.solver, "version": self.version}


@dataclass(frozen=True, repr=False)
class SupportingLine(Shown):
    """Multipliers that prove ``time_weight * T(B) + cost_weight * C(B) >= value`` for every allowed B.

    A maximum is at least any average of its arguments. With shares of every collective over the dimensions, and of
    every overlapping stage over its two branches, the iteration time is at least ``K + sum_d a_d / B_d``; with
    multipliers of the linear constraints ``g_i . B <= h_i`` the Lagrangian has the closed minimum
    ``K + sum_d 2 sqrt(a_d c_d) - sum_i u_i h_i`` where ``c = cost_weight * price + sum_i u_i g_i``. Everything can be
    recomputed from the instance with this and a pocket calculator.

    Parameters
    ----------
    time_weight, cost_weight : float
        Weights of seconds and of dollars.
    shares : tuple of tuple
        ``(workload, layer, phase, index, share per dimension)``: shares are at least 0 and sum to at most 1. Phases are
        0 forward, 1 input gradient, 2 weight gradient. A communication that is not listed has no share.
    overlaps : tuple of tuple
        ``(workload, layer, share of the TP branch)`` for the TP-DP-overlap loop; the rest is the DP branch's.
    multipliers : tuple of float
        One for each linear constraint of the design, in its order; at least 0 for ``<=``, at most 0 for ``>=``, free
        for ``=``.
    """

    time_weight: float
    cost_weight: float
    shares: tuple[tuple[int, int, int, int, tuple[float, ...]], ...]
    overlaps: tuple[tuple[int, int, float], ...]
    multipliers: tuple[float, ...]


@dataclass(frozen=True, repr=False)
class LagrangianCertificate(Shown):
    """Supporting lines of the attainable (time, cost) pairs; together they bound the objective from below.

    Time alone is bounded by a line of weights (1, 0). Time times cost is bounded by the smallest product over the
    polygon that the lines leave; for an instance without computation and ``scale_free`` lines (multipliers with
    ``u . h <= 0``), by ``V^2 / (4 w)`` where V is the Lagrangian's minimum at weights (1, w).
    """

    lines: tuple[SupportingLine, ...]
    scale_free: bool = False

    def to_json(self) -> dict[str, Any]:
        """Plain data for a record."""
        return {"certificate": "lagrangian", **plain(self)}


@dataclass(frozen=True, repr=False)
class SweepCertificate(Shown):
    """Certificates for every parallelization tried: the smallest of their bounds holds for all of them.

    Parameters
    ----------
    parts : tuple of tuple
        ``((TP, DP), certificate)``.
    """

    parts: tuple[tuple[tuple[int, int], SolverBound | LagrangianCertificate], ...]

    def to_json(self) -> dict[str, Any]:
        """Plain data for a record."""
        return {
            "certificate": "sweep",
            "parts": [{"parallelism": list(hp), **certificate.to_json()} for hp, certificate in self.parts],
        }


@dataclass(frozen=True, repr=False)
class CutCertificate(Shown):
    """A set of nodes whose outgoing links must carry the data that the others need from it.

    The time is at least the bytes that ranks outside need and only ranks inside can give (data that only they have, or
    sums that need their contributions), over the bandwidth of the links that leave the set. One node alone bounds its
    egress; all nodes but one bound the ingress of that one.

    With ``latency`` it speaks of when the last byte has arrived: in a time T a link of bandwidth b and latency a brings
    at most ``b max(0, T - a)`` bytes across, and T is at least so long that these add up to the bytes that must leave.

    Parameters
    ----------
    nodes : tuple of int
        Positions of the nodes in the topology.
    latency : bool
        Whether the latency of the links counts; not in the flow model, which leaves it out.
    """

    nodes: tuple[int, ...]
    latency: bool = False

    def to_json(self) -> dict[str, Any]:
        """Plain data for a record."""
        return {"certificate": "late-cut" if self.latency else "cut", "nodes": list(self.nodes)}


@dataclass(frozen=True, repr=False)
class DistanceCertificate(Shown):
    """A pair of ranks between which data must travel: the time is at least the latency of the fastest path.

    Parameters
    ----------
    source, target : int
        The ranks.
    """

    source: int
    target: int

    def to_json(self) -> dict[str, Any]:
        """Plain data for a record."""
        return {"certificate": "distance", "source": self.source, "target": self.target}


@dataclass(frozen=True, repr=False)
class DimensionWeights(Shown):
    """Weights of the dimensions of a fabric that bound a multi-rail collective.

    The busiest dimension works at least as long as any weighted average of all dimensions does, and that is at least
    the weighted average of the best single order for all data. With at most a few dimensions, all orders can be tried.

    Parameters
    ----------
    weights : tuple of Fraction
        One for each dimension; at least 0, with a sum of at most 1.
    """

    weights: tuple[Fraction, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain data for a record."""
        return {"certificate": "dimension-weights", **plain(self)}


@dataclass(frozen=True, repr=False)
class PartitionCertificate(Shown):
    """Disjoint sets of nodes that an all-reduce must connect twice.

    Let p be the number of sets with a rank of the group. Every byte enters sets at least ``2 (p - 1)`` times: before
    the first of them has a full sum, each of the others must send a contribution out, and no two of these arrive as one
    if nothing outside the sets can add; from then on, each of the others must receive. Where a switch outside the sets
    reduces, or can store and so may add, contributions can be merged on the way: then it is p times only, once for
    every set. So the time is at least this number times the size over the bandwidth of the links that enter the sets.

    Every byte also leaves sets at least ``2 (p - 1)`` times where no switch outside them can copy, and p times where
    one can: backwards in time an all-reduce is one, in which what was added is copied and what was copied is added. So
    the same holds of the links that leave the sets, and the larger time counts.

    Parameters
    ----------
    parts : tuple of tuple of int
        Positions of nodes in the topology. Every compute node is in a set; nodes in none of them are switches.
    """

    parts: tuple[tuple[int, ...], ...]

    def to_json(self) -> dict[str, Any]:
        """Plain data for a record."""
        return {"certificate": "partition", "parts": [list(part) for part in self.parts]}


@dataclass(frozen=True, repr=False)
class TreePrices(Shown):
    """Prices of links, and of a tree, that bound an all-reduce along trees: dual values of their packing.

    It speaks of trees, each with a rate r_T, that reduce to a root and broadcast from it: at most ``trees`` of them,
    none with a rate below ``min_rate_Bps``, and none in which a way between root and leaf, there or back, is longer
    than the height. Of other schedules it says nothing.

    Let w(T) be the prices of a tree's links, those of the reduction and those of the broadcast. Loads fit, so that
    ``sum_T r_T w(T) <= sum_e b_e w_e = B``. A rate is at most the least bandwidth c_T of the tree's links, so that with
    N trees ``sum_T r_T p / c_T <= N p``. If no tree costs less than m, ``w(T) + p / c_T >= m``, the rates sum to R with
    ``R m <= B + N p``. N is at most ``trees``, and at most R over the smallest rate, so that
    ``N (min_rate m - p) <= B``. The time is at least the size over the largest such R.

    With N known, let C be the largest bandwidth of a link and c that of the widest tree. If no link is used twice, each
    tree can have the least bandwidth of its own links: N trees carry at most D_N, the largest sum of N bandwidths of at
    most c that no set of links excludes, and a multiple of the unit of all bandwidths. A set S excludes bandwidths if its
    links are too few for such trees: where links of at least c_T outside of S leave g parts, both ways of a tree T have
    ``2 (g - 1)`` links of S. If two trees share a link, they carry at most C (and 2 c) together, and if a tree passes one
    there and back, it carries at most C / 2 (and c); the others carry no more than so many trees do. So
    ``S_N = max(C + R_{N - 2}, C / 2 + R_{N - 1})`` with ``R_k = max(D_k, S_k)``, and R is at most the larger one of S_N
    and D_N, the latter rounded down with R itself.

    What a tree costs at least is found for each bandwidth c that c_T may be, over links of at least c. Both of its ways
    join all ranks, so that they cost at least twice the cheapest spanning tree, directions left aside. With a height H,
    let r be the root: a link (u, v) of the broadcast ends at most H away from it, ``d(r, u) + L_uv <= H`` with the
    least distance d, and one of the reduction begins so. So the two ways cost at least as much as the cheapest
    arborescence from r over such links, and the one into r.

    Parameters
    ----------
    prices : tuple of int
        w_e, one for every link of the topology, at least 0.
    tree_price_Bps : Fraction
        p, at least 0.
    trees : int or None
        Most trees; None is any number.
    height, height_unit : int and str, or None
        H in ``links``, or in ``ns`` of latency, a link's rounded up; None is any.
    min_rate_Bps : Fraction
        Smallest rate of a tree; 0 is any.
    link_sets : tuple of tuple of int
        Sets of links.
    """

    prices: tuple[int, ...]
    tree_price_Bps: Fraction = Fraction(0)
    trees: int | None = None
    height: int | None = None
    height_unit: str = "links"
    min_rate_Bps: Fraction = Fraction(0)
    link_sets: tuple[tuple[int, ...], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain data for a record."""
        return {
            "certificate": "tree-prices",
            "prices": list(self.prices),
            "tree_price_Bps": str(self.tree_price_Bps),
            "trees": self.trees,
            "height": self.height,
            "height_unit": self.height_unit,
            "min_rate_Bps": str(self.min_rate_Bps),
            **({"link_sets": [list(links) for links in self.link_sets]} if self.link_sets else {}),
        }


@dataclass(frozen=True, repr=False)
class LengthCertificate(Shown):
    """Lengths of links that bound an all-to-all: dual values of the maximum concurrent flow.

    A byte from s to t passes links whose lengths sum to at least the distance d(s, t), and in a time T a link passes at
    most bandwidth times T bytes: ``(bytes per pair) * sum_{s,t} d(s, t) <= T * sum_e bandwidth_e * length_e``.

    Parameters
    ----------
    lengths : tuple of int
        One for every link of the topology, at least 0.
    """

    lengths: tuple[int, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain data for a record."""
        return {"certificate": "lengths", "lengths": list(self.lengths)}


@dataclass(frozen=True, repr=False)
class WholeChunks(Shown):
    """A rank whose data many need in whole chunks, which leave it one after the other before the last one is copied.

    It speaks of schedules whose chunks of the rank's data have at least c = ``chunk_bytes``, on networks whose switches
    do not copy. Of finer chunks it says nothing.

    Let D be the bytes that the rank has, or contributes to a sum, and that others need, and B its bandwidth outwards.
    The last of their chunks to leave it has not left before ``D / B``; only then a second rank has it. Every rank that
    has it needs at least ``c / M`` for each further copy, with M the largest bandwidth out of a rank, so that the
    number of those that have it at most doubles in that time. If n ranks must have every chunk in the end, the time is
    at least ``D / B + (ceil(log2 n) - 1) c / M``.

    Parameters
    ----------
    rank : int
        Whose data it is.
    chunk_bytes : Fraction
        Size of the smallest chunk that it speaks of.
    """

    rank: int
    chunk_bytes: Fraction

    def to_json(self) -> dict[str, Any]:
        """Plain data for a record."""
        return {"certificate": "whole-chunks", "rank": self.rank, "chunk_bytes": str(self.chunk_bytes)}


@dataclass(frozen=True, repr=False)
class EpochDistance(Shown):
    """A pair of nodes between which a chunk must travel, on a grid of epochs.

    A schedule takes at least the delays of the fastest path.

    Parameters
    ----------
    source, target : int
        Positions of the nodes.
    """

    source: int
    target: int

    def to_json(self) -> dict[str, Any]:
        """Plain data for a record."""
        return {"certificate": "epoch-distance", "source": self.source, "target": self.target}


@dataclass(frozen=True, repr=False)
class EpochCut(Shown):
    """A set of nodes that many chunks must enter, on a grid of epochs.

    Take the chunks from outside that are needed inside; with a ``sink``, those that the sink needs and whose source is
    at least ``threshold`` epochs away from it. On its way to the first node that needs it, each of them starts at least
    once over a link (i, j) that enters the set: the n-th start there is not before the n-th smallest distance of these
    sources to i, the windows of the link hold, and from j the chunk has still to reach the sink (or the nearest node
    that needs one of them) by the end. If the links that enter cannot start that many chunks in K epochs, K is too few.
    In a fluid problem a link carries its rate in every epoch instead, from the smallest of the distances on, and a
    chunk enters once for every node inside that needs it, since nothing is copied.

    Parameters
    ----------
    nodes : tuple of int
        Positions of the nodes of the set.
    sink : int or None
        The node inside that all these chunks must reach; None counts the needs of all nodes inside.
    threshold : int
        With a sink, sources that are nearer to it are left out.
    """

    nodes: tuple[int, ...]
    sink: int | None = None
    threshold: int = 0

    def to_json(self) -> dict[str, Any]:
        """Plain data for a record."""
        return {
            "certificate": "epoch-cut",
            "nodes": list(self.nodes),
            "sink": self.sink,
            "threshold": self.threshold,
        }


@dataclass(frozen=True, repr=False)
class EpochChain(Shown):
    """A set of nodes with a sink inside: chunks that enter the set late must still pass the links of the sink.

    Of the n chunks from outside that the sink needs, the links that enter the set cannot have brought m before some
    index t(m), by their windows and the distances of the sources (see :class:`EpochCut`). So n - m + 1 of them come
    into the set at t(m) or later, and each arrives over a link of the sink: one from inside starts not before t(m) and
    the distance to it from where chunks enter, one from outside arrives not before t(m). This holds for every m; the
    bound is the largest.

    Parameters
    ----------
    nodes : tuple of int
        Positions of the nodes of the set.
    sink : int
        One of them.
    """

    nodes: tuple[int, ...]
    sink: int

    def to_json(self) -> dict[str, Any]:
        """Plain data for a record."""
        return {"certificate": "epoch-chain", "nodes": list(self.nodes), "sink": self.sink}


@dataclass(frozen=True, repr=False)
class EpochFlow(Shown):
    """A sink that one epoch less is too few for, by a maximum flow in the network over time.

    The chunks that the sink needs flow from (source, 0) to (sink, K) over nodes at indices; nodes that can store hold
    over, and so do the ends of links with a window, where chunks may come too early by their count; the others do not.
    In any schedule of K epochs the ways of these chunks, traced back from the sink, are such a flow of whole chunks. Of
    a link with a window of w epochs, starts are counted in blocks of w epochs from the first possible one on, at most
    ``capacity`` in each, all of them as if they had started with the block. If the maximum flow is less than the number
    of chunks, K is too few.

    Parameters
    ----------
    sink : int
        Position of the node.
    epochs : int
        What is proved: one epoch less is too few.
    """

    sink: int
    epochs: int

    def to_json(self) -> dict[str, Any]:
        """Plain data for a record."""
        return {"certificate": "epoch-flow", "sink": self.sink, "epochs": self.epochs}


@dataclass(frozen=True, repr=False)
class EpochPrices(Shown):
    """Prices of links in blocks of epochs that refute a number of epochs where chunks may be split.

    Dual values of the flow over time.

    In a schedule of K epochs every chunk pays, for each of its targets, at least the cheapest way from (source, 0) to
    (target, K) over nodes at indices, and all chunks together pay at most what all links cost, filled to their rates in
    every epoch. If the cheapest ways cost more than that, K epochs are too few.

    Parameters
    ----------
    starts : tuple of int
        First epoch of every block and, last, K; the first is 0, and they increase.
    prices : tuple of tuple of int
        For every link of the topology the price in every block, at least 0.
    """

    starts: tuple[int, ...]
    prices: tuple[tuple[int, ...], ...]

    def to_json(self) -> dict[str, Any]:
        """Plain data for a record."""
        return {"certificate": "epoch-prices", "starts": list(self.starts), "prices": [list(p) for p in self.prices]}


@dataclass(frozen=True, repr=False)
class EpochWindowPrices(Shown):
    """Prices of windows of links that refute a number of epochs where chunks are whole and copied.

    In a schedule, any ``window`` epochs in a row take at most ``capacity`` starts on a link. A window that has a price
    is paid for by every start in it. In a schedule of K epochs, each chunk that some sinks need starts over the links
    of a tree over time from (source, 0) to these sinks at K, and pays at least for the cheapest such tree; all chunks
    together pay at most, for every window, its capacity times its price. If the cheapest trees cost more than that, K
    epochs are too few.

    Parameters
    ----------
    epochs : int
        What is proved: K is one epoch less.
    sinks : tuple of int
        Positions of one to three nodes.
    links, starts, prices : tuple of int
        Windows with a price: the link, the first epoch, which may be before 0, and the price.
    """

    epochs: int
    sinks: tuple[int, ...]
    links: tuple[int, ...]
    starts: tuple[int, ...]
    prices: tuple[int, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain data for a record."""
        return {
            "certificate": "epoch-window-prices",
            "epochs": self.epochs,
            "sinks": list(self.sinks),
            "links": list(self.links),
            "starts": list(self.starts),
            "prices": list(self.prices),
        }


@dataclass(frozen=True, repr=False)
class EpochPartition(Shown):
    """Disjoint sets of ranks that an all-reduce of whole chunks must connect twice.

    On a grid of epochs, without switches.

    Let p be the number of sets with a rank of the group. Every chunk enters sets at least ``2 (p - 1)`` times, see
    :class:`PartitionCertificate`. If the links that enter the sets cannot start so many chunks in time, in K epochs, K
    is too few.

    Parameters
    ----------
    parts : tuple of tuple of int
        Positions of nodes in the topology. Every node is in a set.
    """

    parts: tuple[tuple[int, ...], ...]

    def to_json(self) -> dict[str, Any]:
        """Plain data for a record."""
        return {"certificate": "epoch-partition", "parts": [list(part) for part in self.parts]}


@dataclass(frozen=True, repr=False)
class PairPrices(Shown):
    """What replicas count for in two slots of a GPU that has less than a load T.

    For any v of at most T / 2, let a replica of T - v or more count 1, of less than v nothing, and of loads between
    1/2. Two on a GPU count 1 at most, and so they do by an average over several v. So all replicas count for as many as
    there are GPUs at most. With a price for every replica, and so for every slot, each expert has numbers of replicas
    that cost the least; if all of them cost more than GPUs and slots, no GPU can have less than T.

    Parameters
    ----------
    replica : Fraction
        The price.
    light : tuple of tuple of Fraction
        Every v and its weight in the average; weights add up to 1.
    """

    replica: Fraction
    light: tuple[tuple[Fraction, Fraction], ...]

    def to_json(self) -> dict[str, Any]:
        """Plain data for a record."""
        return {"replica": str(self.replica), "light": [[str(v), str(weight)] for v, weight in self.light]}


@dataclass(frozen=True, repr=False)
class LeastLoads(Shown):
    """For every layer a load that some GPU has or more, however the experts are placed.

    It is no more than the average of the GPUs, or the least largest load of a replica that the slots allow; of groups
    on nodes, than that of one of the nodes, however the groups are divided. Where few experts have further replicas,
    all numbers of replicas and all ways to put them into slots are tried, and each has a GPU with so much. For two
    slots on a GPU there are prices (:class:`PairPrices`).

    Parameters
    ----------
    loads : tuple of Fraction
        One for every layer; the bound is their sum.
    prices : tuple of PairPrices or None
        One for every layer; None where its load is proved otherwise.
    """

    loads: tuple[Fraction, ...]
    prices: tuple[PairPrices | None, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain data for a record."""
        prices = [None if each is None else each.to_json() for each in self.prices]
        return {"certificate": "least-loads", "loads": [str(load) for load in self.loads], "prices": prices}


EpochBound = EpochDistance | EpochCut | EpochChain | EpochFlow | EpochPrices | EpochWindowPrices | EpochPartition

Certificate = (
    SolverBound
    | LagrangianCertificate
    | SweepCertificate
    | CutCertificate
    | DistanceCertificate
    | DimensionWeights
    | PartitionCertificate
    | TreePrices
    | LengthCertificate
    | WholeChunks
    | LeastLoads
    | EpochBound
)
