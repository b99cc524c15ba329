"""LIBRA's view of an instance: iteration time, prices, linear constraints, and the solver's units.

The iteration time is a function of the bandwidths, in the fewest terms (dissertation, section 4.4.2): terms whose bytes
have the same ratios are one term (docs/methods/libra.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import inf, prod, sqrt

from ...core.collective import Collective
from ...core.design import Comparison, Design, LinearConstraint, Objective, PartialUse
from ...core.errors import InputError
from ...core.fabric import Block, Fabric, network_price
from ...core.instance import Instance
from ...core.workload import Communication, Layer, Span, TrainingLoop, Workload

#: A communication of the instance: workload, layer, phase (0 forward, 1 input gradient, 2 weight gradient), position.
Member = tuple[int, int, int, int]

ILL_POSED = (
    "perf-per-cost with only an upper limit on bandwidth is ill-posed (the optimum tends to zero bandwidth): "
    "give the total bandwidth exactly, or a lower limit"
)

#: A dimension gets a unit of its own where its least useful bandwidth is below this part of the typical one.
_SMALL = 1e-4

#: No unit is a smaller part of the typical bandwidth: solvers take smaller coefficients for zero.
_SMALLEST_UNIT = 1e-7


@dataclass(frozen=True)
class Term:
    """One collective, or several of the same direction: ``t = max_d traffic_d / B_d``."""

    traffic: tuple[Fraction, ...]  #: Bytes in each dimension, including weights and repetitions.
    members: tuple[Member, ...]

    def seconds(self, bandwidth_Bps: Sequence[float]) -> float:
        """Return the time at the given bandwidths; infinite where a needed dimension has none."""
        return max(float(m) / b if b > 0 else inf for m, b in zip(self.traffic, bandwidth_Bps, strict=True) if m)


@dataclass(frozen=True)
class Overlap:
    """Stage ``weight * max(sum tp, dp_compute_s + sum dp)`` of the TP-DP-overlap loop, with indices of terms."""

    weight: Fraction
    tp: tuple[int, ...]
    dp: tuple[int, ...]
    dp_compute_s: Fraction
    layers: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class TimeModel:
    """Iteration time of an instance as a function of the bandwidths."""

    constant_s: Fraction  #: K: everything that no bandwidth changes.
    terms: tuple[Term, ...]
    serial: tuple[int, ...]  #: Terms that count in full.
    overlaps: tuple[Overlap, ...]  #: Stages whose branches run in parallel; their terms are the others.

    def seconds(self, bandwidth_Bps: Sequence[float]) -> float:
        """Return the iteration time at the given bandwidths."""
        time = [term.seconds(bandwidth_Bps) for term in self.terms]
        total = float(self.constant_s) + sum(time[k] for k in self.serial)
        for o in self.overlaps:
            dp = float(o.dp_compute_s) + sum(time[k] for k in o.dp)
            total += float(o.weight) * max(sum(time[k] for k in o.tp), dp)
        return total

    @property
    def used_dimensions(self) -> tuple[int, ...]:
        """Dimensions that carry any traffic, counted from 0."""
        count = len(self.terms[0].traffic) if self.terms else 0
        return tuple(d for d in range(count) if any(term.traffic[d] for term in self.terms))


@dataclass(frozen=True)
class DesignProblem:
    """Objective and constraints of a design."""

    objective: Objective
    time: TimeModel
    dimensions: int
    #: Dollars of the whole network per byte per second in each dimension.
    prices_usd_per_Bps: tuple[Fraction, ...] | None
    constraints: tuple[LinearConstraint, ...]

    @cached_property
    def bandwidth_unit_Bps(self) -> float:
        """Typical bandwidth of a dimension: an equal share of the largest limit. Solvers see numbers around 1."""
        typical = [c.limit / sum(abs(a) for a in c.coefficients) for c in self.constraints if c.limit > 0]
        return float(max(typical, default=Fraction(10**9)))

    @cached_property
    def bandwidth_units_Bps(self) -> tuple[float, ...]:
        """Unit of every dimension's bandwidth: the typical one, or less with little traffic (docs/methods/libra.md)."""
        units: list[float] = []
        for d, typical in enumerate(self._typical_Bps):
            most = max((float(term.traffic[d]) for term in self.time.terms), default=0.0)
            least = most / self.time_unit_s
            unit = sqrt(least * typical) if 0 < least < _SMALL * typical else typical
            units.append(max(unit, _SMALLEST_UNIT * self.bandwidth_unit_Bps))
        return tuple(units)

    @cached_property
    def _typical_Bps(self) -> tuple[float, ...]:
        """Typical bandwidth of every dimension, or a constraint's far smaller limit."""
        typical = [self.bandwidth_unit_Bps] * self.dimensions
        for constraint in self.constraints:
            if constraint.comparison is Comparison.AT_LEAST or min(constraint.coefficients) < 0:
                continue
            for d, a in enumerate(constraint.coefficients):
                if a and 0 < (limit := float(constraint.limit / a)) < _SMALL * self.bandwidth_unit_Bps:
                    typical[d] = min(typical[d], limit)
        return tuple(typical)

    @cached_property
    def time_unit_s(self) -> float:
        """Iteration time when every dimension has the typical bandwidth."""
        return self.time.seconds(self._typical_Bps) or 1.0

    @cached_property
    def cost_unit_usd(self) -> float:
        """Network cost when every dimension has the typical bandwidth."""
        return self.cost_usd([self.bandwidth_unit_Bps] * self.dimensions) or 1.0

    def cost_usd(self, bandwidth_Bps: Sequence[float]) -> float:
        """Return the network's cost at the given bandwidths; 0 without prices."""
        if self.prices_usd_per_Bps is None:
            return 0.0
        return sum(float(p) * b for p, b in zip(self.prices_usd_per_Bps, bandwidth_Bps, strict=True))

    def value(self, bandwidth_Bps: Sequence[float]) -> float:
        """Return the objective at the given bandwidths: seconds, or seconds times dollars."""
        time = self.time.seconds(bandwidth_Bps)
        return time if self.objective is Objective.PERF else time * self.cost_usd(bandwidth_Bps)


def in_units(problem: DesignProblem, objective: float) -> float:
    """Convert the model's objective to seconds, or seconds times dollars (``Formulation.value``)."""
    return objective * problem.time_unit_s * (1.0 if problem.objective is Objective.PERF else problem.cost_unit_usd)


def pose_problem(instance: Instance, options: object = None) -> DesignProblem:
    """Read a posed instance as a LIBRA problem (``Formulation.index``).

    Ill-posed is perf-per-cost when zero bandwidth is allowed and there is computation, whose cost shrinks with the
    network.
    """
    design = instance.design or Design()
    count = len(instance.fabric.dimensions)
    prices = None if instance.cost_model is None else network_price(instance.fabric, instance.cost_model)
    if prices is None and design.objective is Objective.PERF_PER_COST:
        raise InputError("missing, but perf-per-cost needs prices", place="cost_model")
    constraints = design.linear_constraints(count, prices)
    problem = DesignProblem(design.objective, time_model(instance), count, prices, constraints)
    nothing_is_allowed = all(c.comparison.excess(-c.limit) <= 0 for c in constraints)
    if design.objective is Objective.PERF_PER_COST and nothing_is_allowed and problem.time.constant_s > 0:
        raise InputError(ILL_POSED, place="design")
    return problem


_Vectors = list[tuple[tuple[Fraction, ...], tuple[Member, ...]]]


def time_model(instance: Instance) -> TimeModel:
    """Build the time model of an instance; equal layers of an overlapping loop are one stage of a larger weight."""
    workloads = instance.training()
    if not workloads:
        raise InputError("missing, but a bandwidth design needs a workload", place="workloads")
    constant_s, serial = Fraction(0), _Vectors()
    stages: dict[tuple[object, object, Fraction], tuple[Fraction, list[list[Term]], tuple[tuple[int, int], ...]]] = {}
    for w, workload in enumerate(workloads):
        for index, layer in enumerate(workload.layers):
            weight, last_s = workload.weight * layer.repeat, layer.weight_gradient.compute_s
            forward, tp, dp = _layer_traffic(instance, workload, layer, (w, index))
            overlaps = workload.loop is TrainingLoop.TP_DP_OVERLAP and bool(tp)
            constant_s += weight * (layer.forward.compute_s + layer.input_gradient.compute_s)
            constant_s += 0 if overlaps else weight * last_s
            in_turn = forward if overlaps else forward + tp + dp
            serial += [(tuple(weight * v for v in vector), members) for vector, members in in_turn]
            if overlaps:
                branches = [_merge_terms(tp), _merge_terms(dp)]
                tp_key, dp_key = (tuple(term.traffic for term in branch) for branch in branches)
                total, same, layers = stages.get((tp_key, dp_key, last_s), (Fraction(0), [[], []], ()))
                for branch, other in zip(branches, same, strict=True):
                    for k, term in enumerate(other):
                        branch[k] = Term(term.traffic, term.members + branch[k].members)
                stages[tp_key, dp_key, last_s] = total + weight, branches, (*layers, (w, index))
    terms = _merge_terms(serial)
    alone, overlapped = tuple(range(len(terms))), list[Overlap]()
    for (_, _, compute_s), (weight, (tp_terms, dp_terms), layers) in stages.items():
        first, split = len(terms), len(terms) + len(tp_terms)
        terms += tp_terms + dp_terms
        ends = tuple(range(first, split)), tuple(range(split, len(terms)))
        overlapped.append(Overlap(weight, *ends, compute_s, layers))
    return TimeModel(constant_s, tuple(terms), alone, tuple(overlapped))


def _layer_traffic(instance: Instance, workload: Workload, layer: Layer, where: tuple[int, int]) -> list[_Vectors]:
    """Compute the nonzero traffic of every communication of a layer, phase by phase."""
    partial = instance.design.partial_use if instance.design else PartialUse.FULL
    phases: list[_Vectors] = [[], [], []]
    for p, phase in enumerate((layer.forward, layer.input_gradient, layer.weight_gradient)):
        for c, communication in enumerate(phase.communication):
            vector = traffic(communication, workload.groups[communication.group], instance.fabric, partial)
            if any(vector):
                phases[p].append((vector, ((*where, p, c),)))
    return phases


def _merge_terms(vectors: _Vectors) -> list[Term]:
    """Sum the vectors of the same direction, in the order of first appearance."""
    sums: dict[tuple[Fraction, ...], tuple[Fraction, tuple[Member, ...]]] = {}
    for vector, members in vectors:
        size = sum(vector)
        direction = tuple(v / size for v in vector)
        known_size, known_members = sums.get(direction, (Fraction(0), ()))
        sums[direction] = (known_size + size, known_members + members)
    return [Term(tuple(v * size for v in direction), members) for direction, (size, members) in sums.items()]


def traffic(communication: Communication, span: Span, fabric: Fabric, partial_use: PartialUse) -> tuple[Fraction, ...]:
    """Compute the bytes per NPU in every dimension; over the bandwidth they give a communication's time.

    ``span`` are the NPUs of its group in each dimension; an entry is 0 where the group does not use it.
    """
    m = communication.size_bytes
    sizes = [_dimension(communication.collective, m, span, i, fabric) for i in range(len(span))]
    if partial_use is PartialUse.DIRECT_LINKS:
        return tuple(b * _stretch(span[i], fabric, i) for i, b in enumerate(sizes))
    return tuple(sizes)


def _dimension(kind: Collective, m: Fraction, span: Span, i: int, fabric: Fabric) -> Fraction:
    n = span[i]
    if n == 1:
        return Fraction(0)
    inner = prod(span[:i])
    match kind:
        case Collective.ALL_REDUCE if fabric.dimensions[i].in_network:
            return m / inner
        case Collective.ALL_REDUCE | Collective.REDUCE_SCATTER | Collective.ALL_GATHER:
            return kind.passes * m * (n - 1) / (n * inner)
        case Collective.ALL_TO_ALL:
            return m * (n - 1) / n
        case Collective.POINT_TO_POINT:
            return m
    raise ValueError(f"LIBRA does not model {kind.name}")


def _stretch(part: int, fabric: Fabric, i: int) -> Fraction:
    """Return the slowdown of a dimension if only links between group members carry its traffic."""
    dimension = fabric.dimensions[i]
    if dimension.block is Block.FULLY_CONNECTED and 1 < part < dimension.size:
        return Fraction(dimension.size - 1, part - 1)
    return Fraction(1)
