"""Proved bounds and the certificates that let a reader check them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from .instance import plain


@dataclass(frozen=True)
class SolverBound:
    """A bound that rests on the word of a solver."""

    solver: str
    version: str

    def to_json(self) -> dict[str, Any]:
        """Give plain data for a record."""
        return {"certificate": "solver", "solver": self.solver, "version": self.version}


@dataclass(frozen=True)
class SupportingLine:
    """Multipliers that prove ``time_weight * T(B) + cost_weight * C(B) >= value`` for every allowed B.

    A maximum is at least any average of its arguments. With shares of every collective over the dimensions, and of every
    overlapping stage over its two branches, the iteration time is at least ``K + sum_d a_d / B_d``; with multipliers of the linear constraints
    ``g_i . B <= h_i`` the Lagrangian has the closed minimum ``K + sum_d 2 sqrt(a_d c_d) - sum_i u_i h_i`` where
    ``c = cost_weight * price + sum_i u_i g_i``. Everything can be recomputed from the instance with this and a pocket calculator.

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
        One for each linear constraint of the design, in its order; at least 0 for ``<=``, at most 0 for ``>=``, free for ``=``.
    """

    time_weight: float
    cost_weight: float
    shares: tuple[tuple[int, int, int, int, tuple[float, ...]], ...]
    overlaps: tuple[tuple[int, int, float], ...]
    multipliers: tuple[float, ...]


@dataclass(frozen=True)
class LagrangianCertificate:
    """Supporting lines of the attainable (time, cost) pairs; together they bound the objective from below.

    Time alone is bounded by a line of weights (1, 0). Time times cost is bounded by the smallest product over the
    polygon that the lines leave; for an instance without computation and ``scale_free`` lines (multipliers with
    ``u . h <= 0``), by ``V^2 / (4 w)`` where V is the Lagrangian's minimum at weights (1, w).
    """

    lines: tuple[SupportingLine, ...]
    scale_free: bool = False

    def to_json(self) -> dict[str, Any]:
        """Give plain data for a record."""
        return {"certificate": "lagrangian", **plain(self)}


@dataclass(frozen=True)
class SweepCertificate:
    """Certificates for every parallelization tried: the smallest of their bounds holds for all of them.

    Parameters
    ----------
    parts : tuple of tuple
        ``((TP, DP), certificate)``.
    """

    parts: tuple[tuple[tuple[int, int], SolverBound | LagrangianCertificate], ...]

    def to_json(self) -> dict[str, Any]:
        """Give plain data for a record."""
        return {
            "certificate": "sweep",
            "parts": [{"parallelism": list(hp), **certificate.to_json()} for hp, certificate in self.parts],
        }


@dataclass(frozen=True)
class CutCertificate:
    """A set of nodes whose outgoing links must carry what the others need of it.

    The time is at least the bytes that ranks outside need and only ranks inside can give (data that only they have, or sums
    that need their contributions), over the bandwidth of the links that leave the set. One node alone bounds its egress; all nodes
    but one bound the ingress of that one.

    Parameters
    ----------
    nodes : tuple of int
        Positions of the nodes in the topology.
    """

    nodes: tuple[int, ...]

    def to_json(self) -> dict[str, Any]:
        """Give plain data for a record."""
        return {"certificate": "cut", "nodes": list(self.nodes)}


@dataclass(frozen=True)
class DistanceCertificate:
    """A pair of ranks that data must travel between: the time is at least the latency of the fastest path.

    Parameters
    ----------
    source, target : int
        The ranks.
    """

    source: int
    target: int

    def to_json(self) -> dict[str, Any]:
        """Give plain data for a record."""
        return {"certificate": "distance", "source": self.source, "target": self.target}


@dataclass(frozen=True)
class DimensionWeights:
    """Weights of the dimensions of a fabric that bound a multi-rail collective.

    The busiest dimension works at least as long as any weighted average of all dimensions does, and that is at least the weighted average
    of the best single order for all data. With at most a few dimensions, all orders can be tried.

    Parameters
    ----------
    weights : tuple of Fraction
        One for each dimension; at least 0, with a sum of at most 1.
    """

    weights: tuple[Fraction, ...]

    def to_json(self) -> dict[str, Any]:
        """Give plain data for a record."""
        return {"certificate": "dimension-weights", **plain(self)}


@dataclass(frozen=True)
class PartitionCertificate:
    """Disjoint sets of nodes that an all-reduce must connect twice.

    Let p be the number of sets with a rank of the group. Every byte enters sets at least ``2 (p - 1)`` times: before the first
    of them has a full sum, each of the others must send a contribution out, and no two of these arrive as one if nothing outside the
    sets can add; from then on, each of the others must receive. Where a switch outside the sets can store, and so may add,
    contributions can be merged on the way: then it is p times only, once for every set. So the time is at least this number
    times the size over the bandwidth of the links that enter the sets.

    Parameters
    ----------
    parts : tuple of tuple of int
        Positions of nodes in the topology. Every compute node is in a set; nodes in none of them are switches.
    """

    parts: tuple[tuple[int, ...], ...]

    def to_json(self) -> dict[str, Any]:
        """Give plain data for a record."""
        return {"certificate": "partition", "parts": [list(part) for part in self.parts]}


@dataclass(frozen=True)
class LengthCertificate:
    """Lengths of links that bound an all-to-all: dual values of the maximum concurrent flow.

    A byte from s to t passes links whose lengths sum to at least the distance d(s, t), and in a time T a link passes at most bandwidth times T
    bytes: ``(bytes per pair) * sum_{s,t} d(s, t) <= T * sum_e bandwidth_e * length_e``.

    Parameters
    ----------
    lengths : tuple of int
        One for every link of the topology, at least 0.
    """

    lengths: tuple[int, ...]

    def to_json(self) -> dict[str, Any]:
        """Give plain data for a record."""
        return {"certificate": "lengths", "lengths": list(self.lengths)}


Certificate = (
    SolverBound
    | LagrangianCertificate
    | SweepCertificate
    | CutCertificate
    | DistanceCertificate
    | DimensionWeights
    | PartitionCertificate
    | LengthCertificate
)
