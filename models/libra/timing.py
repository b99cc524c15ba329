"""The iteration time as a function of the bandwidths, in as few terms as it has (dissertation, section 4.4.2).

``T(B) = K + sum_k t_k + sum_o w_o max(TP_o, DP_o)`` where a collective takes ``t_k = max_d m_kd / B_d`` and the branches of an
overlap are sums of such terms (and the computation of the DP branch). Collective times are homogeneous in the bytes, so that terms whose
traffic has the same direction are one term: GPT-3's eleven collectives are two, for T(B) is exactly the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from ...core.design import PartialUse
from ...core.errors import InputError
from ...core.instance import Instance
from ...core.workload import Layer, TrainingLoop, Workload
from .traffic import traffic

#: A communication of the instance: workload, layer, phase (0 forward, 1 input gradient, 2 weight gradient), position.
Member = tuple[int, int, int, int]


@dataclass(frozen=True)
class Term:
    """One collective, or several of the same direction: ``t = max_d traffic_d / B_d``.

    Parameters
    ----------
    traffic : tuple of Fraction
        Bytes in each dimension; weights and repetitions are in it.
    members : tuple of Member
        The communications that it stands for.
    """

    traffic: tuple[Fraction, ...]
    members: tuple[Member, ...]

    def seconds(self, bandwidth_Bps: Sequence[float]) -> float:
        """Time at the given bandwidths; infinite where a needed dimension has none."""
        return max(
            float(m) / b if b > 0 else float("inf") for m, b in zip(self.traffic, bandwidth_Bps, strict=True) if m
        )


@dataclass(frozen=True)
class Overlap:
    """A stage ``weight * max(sum of tp, dp_compute_s + sum of dp)`` of the TP-DP-overlap loop; indices into the terms."""

    weight: Fraction
    tp: tuple[int, ...]
    dp: tuple[int, ...]
    dp_compute_s: Fraction
    layers: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class TimeModel:
    """The iteration time of an instance as a function of the bandwidths.

    Parameters
    ----------
    constant_s : Fraction
        K: everything that no bandwidth changes.
    terms : tuple of Term
        All collectives.
    serial : tuple of int
        Terms that count in full.
    overlaps : tuple of Overlap
        Stages whose branches run side by side; their terms are the others.
    """

    constant_s: Fraction
    terms: tuple[Term, ...]
    serial: tuple[int, ...]
    overlaps: tuple[Overlap, ...]

    def seconds(self, bandwidth_Bps: Sequence[float]) -> float:
        """Iteration time at the given bandwidths."""
        time = [term.seconds(bandwidth_Bps) for term in self.terms]
        total = float(self.constant_s) + sum(time[k] for k in self.serial)
        for o in self.overlaps:
            dp = float(o.dp_compute_s) + sum(time[k] for k in o.dp)
            total += float(o.weight) * max(sum(time[k] for k in o.tp), dp)
        return total

    @property
    def used(self) -> tuple[int, ...]:
        """Dimensions that carry any traffic, counted from 0."""
        count = len(self.terms[0].traffic) if self.terms else 0
        return tuple(d for d in range(count) if any(term.traffic[d] for term in self.terms))


def time_model(instance: Instance) -> TimeModel:
    """Make the time model of an instance.

    Raises
    ------
    InputError
        If the instance has no workload.
    """
    workloads = instance.training()
    if not workloads:
        raise InputError("missing, but a bandwidth design needs something to train", place="workloads")
    partial = instance.design.partial_use if instance.design else PartialUse.FULL
    collector = _Collector()
    for w, workload in enumerate(workloads):
        for index, layer in enumerate(workload.layers):
            vectors = _layer_traffic(instance, workload, layer, partial, (w, index))
            collector.add_layer(workload, layer, vectors, (w, index))
    return collector.finish()


_Vectors = list[tuple[tuple[Fraction, ...], Member]]


def _layer_traffic(
    instance: Instance, workload: Workload, layer: Layer, partial: PartialUse, where: tuple[int, int]
) -> list[_Vectors]:
    """Traffic of every communication of a layer, phase by phase; those that move nothing are left out."""
    phases: list[_Vectors] = []
    for p, phase in enumerate((layer.forward, layer.input_gradient, layer.weight_gradient)):
        vectors: _Vectors = []
        for c, communication in enumerate(phase.communication):
            vector = traffic(communication, workload.groups[communication.group], instance.fabric, partial)
            if any(vector):
                vectors.append((vector, (*where, p, c)))
        phases.append(vectors)
    return phases


def _merged(vectors: Iterable[tuple[tuple[Fraction, ...], tuple[Member, ...]]]) -> list[Term]:
    """Add up the vectors of the same direction; the order is that of their first appearance."""
    sums: dict[tuple[Fraction, ...], tuple[Fraction, tuple[Member, ...]]] = {}
    for vector, members in vectors:
        size = sum(vector)
        direction = tuple(v / size for v in vector)
        known_size, known_members = sums.get(direction, (Fraction(0), ()))
        sums[direction] = (known_size + size, known_members + members)
    return [Term(tuple(v * size for v in direction), members) for direction, (size, members) in sums.items()]


@dataclass
class _Collector:
    """Adds up layers; equal layers of an overlapping loop become one stage of a larger weight."""

    constant_s: Fraction = Fraction(0)
    serial: list[tuple[tuple[Fraction, ...], tuple[Member, ...]]] = field(default_factory=list)
    stages: dict[object, tuple[Fraction, list[Term], list[Term], Fraction, tuple[tuple[int, int], ...]]] = field(
        default_factory=dict
    )

    def add_layer(self, workload: Workload, layer: Layer, phases: list[_Vectors], where: tuple[int, int]) -> None:
        """Add one layer as often as it is repeated, in the loop of its workload."""
        weight = workload.weight * layer.repeat
        forward, tp, dp = phases
        self.constant_s += weight * (layer.forward.compute_s + layer.input_gradient.compute_s)
        self._add_serial(forward, weight)
        compute = layer.weight_gradient.compute_s
        if workload.loop is TrainingLoop.TP_DP_OVERLAP and tp:
            self._add_stage(tp, dp, compute, weight, where)
        else:
            self.constant_s += weight * compute
            self._add_serial(tp, weight)
            self._add_serial(dp, weight)

    def _add_serial(self, vectors: _Vectors, weight: Fraction) -> None:
        self.serial.extend((tuple(weight * v for v in vector), (member,)) for vector, member in vectors)

    def _add_stage(
        self, tp: _Vectors, dp: _Vectors, compute: Fraction, weight: Fraction, where: tuple[int, int]
    ) -> None:
        tp_terms, dp_terms = (_merged((v, (m,)) for v, m in branch) for branch in (tp, dp))
        key = (tuple(t.traffic for t in tp_terms), tuple(t.traffic for t in dp_terms), compute)
        if key in self.stages:
            known_weight, known_tp, known_dp, _, layers = self.stages[key]
            tp_terms = [Term(a.traffic, a.members + b.members) for a, b in zip(known_tp, tp_terms, strict=True)]
            dp_terms = [Term(a.traffic, a.members + b.members) for a, b in zip(known_dp, dp_terms, strict=True)]
            self.stages[key] = (known_weight + weight, tp_terms, dp_terms, compute, (*layers, where))
        else:
            self.stages[key] = (weight, tp_terms, dp_terms, compute, (where,))

    def finish(self) -> TimeModel:
        """Number the terms."""
        terms = _merged(self.serial)
        serial = tuple(range(len(terms)))
        overlaps: list[Overlap] = []
        for weight, tp, dp, compute, layers in self.stages.values():
            first = len(terms)
            terms += tp + dp
            split = first + len(tp)
            overlaps.append(
                Overlap(weight, tuple(range(first, split)), tuple(range(split, len(terms))), compute, layers)
            )
        return TimeModel(self.constant_s, tuple(terms), serial, tuple(overlaps))
