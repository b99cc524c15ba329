"""Verification of bandwidth plans: time of a training iteration, cost, constraints, and LIBRA's lower bounds.

The analytical model of the dissertation, sections 4.2.2 and 4.4.2, is implemented a second time on purpose: the
verifier walks the stages with the shard that remains after each, and shares no code with the optimizer's closed forms
(docs/methods/libra.md). Bounds are recomputed from instance and multipliers alone: in exact fractions, with roots
rounded down, so that a bound never exceeds the proof of the multipliers, at any magnitude.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise, starmap
from math import inf, isfinite, isqrt
from typing import NamedTuple

from ..core.answers import BandwidthPlan
from ..core.bounds import Certificate, LagrangianCertificate, SupportingLine, SweepCertificate
from ..core.collective import Collective
from ..core.design import Comparison, Design, LinearConstraint, Objective, PartialUse
from ..core.fabric import Block, Fabric, network_price
from ..core.instance import Instance
from ..core.outcome import Verdict
from ..core.workload import Communication, Layer, Phase, TrainingLoop, Workload
from .metrics import contradictions, question_of

Bandwidths = Sequence[Fraction]  #: Bytes per second of every dimension.

TOLERANCE = 1e-7  #: A linear constraint may be missed by this part of its largest term: solvers work in floating point.
ROUNDING = 1e-12  #: Relative rounding errors of the time and the cost of a plan, which are floats.


def bandwidth_verdict(instance: Instance, plan: BandwidthPlan, certificate: Certificate | None) -> Verdict:
    """Verify a bandwidth plan; metrics that cannot be computed are None."""
    if plan.parallelism is not None:
        instance = instance.with_parallelism(*plan.parallelism)
    design, fabric = instance.design or Design(), instance.fabric
    count = len(fabric.dimensions)
    if len(plan.bandwidth_Bps) != count or not all(isfinite(b) and b >= 0 for b in plan.bandwidth_Bps):
        return Verdict((f"expected {count} bandwidths, finite and not negative",))
    prices = None if instance.cost_model is None else network_price(fabric, instance.cost_model)
    constraints = design.linear_constraints(count, prices)
    bandwidth = [Fraction(b) for b in plan.bandwidth_Bps]
    violations = [v for c in constraints if (v := violation(c, bandwidth)) is not None]
    time = weighted_time(instance, bandwidth)
    if time == inf:
        violations.append("a dimension that carries traffic has no bandwidth")
    cost = None if prices is None else float(sum(p * b for p, b in zip(prices, bandwidth, strict=True)))
    objective = time if design.objective is Objective.PERF else None if cost is None else time * cost
    bound = proved_bound(instance, certificate)
    certified = [part for _, part in certificate.parts] if isinstance(certificate, SweepCertificate) else [certificate]
    if bound is None and all(isinstance(part, LagrangianCertificate) for part in certified):
        violations.append("certificate: its multipliers prove nothing")
    unit = "s" if design.objective is Objective.PERF else "s USD"
    if bound is not None and objective is not None and contradictions(objective, bound, ROUNDING, unit):
        # Better than the bound: perhaps by what the tolerance allows, which a bound at the limits that are kept to
        # tells; without one, what the tolerance allows of a homogeneous constraint is left.
        least = proved_bound(instance, certificate, [_excess(c, bandwidth) for c in constraints])
        margin = ROUNDING if least is not None else 10 * TOLERANCE
        violations += contradictions(objective, bound if least is None else least, margin, unit)
    metrics = question_of(instance, plan) | _metrics(instance, bandwidth, prices, time, cost)
    return Verdict(tuple(violations), objective, bound, metrics)


def proved_bound(instance: Instance, certificate: Certificate | None, missed: Sequence[Fraction] = ()) -> float | None:
    """Recompute a certificate's bound, None if there is none, with limits shifted by what a plan misses of them."""
    if isinstance(certificate, LagrangianCertificate):
        return recomputed_bound(instance, certificate, missed)
    return sweep_bound(instance, certificate, missed) if isinstance(certificate, SweepCertificate) else None


def _excess(constraint: LinearConstraint, bandwidth_Bps: Bandwidths) -> Fraction:
    """Return the signed violation of a linear constraint, 0 if it holds."""
    terms = (a * b for a, b in zip(constraint.coefficients, bandwidth_Bps, strict=True))
    excess = sum(terms, Fraction(0)) - constraint.limit
    holds = {Comparison.AT_MOST: excess < 0, Comparison.AT_LEAST: excess > 0, Comparison.EQUAL: False}
    return Fraction(0) if holds[constraint.comparison] else excess


def violation(constraint: LinearConstraint, bandwidth_Bps: Bandwidths) -> str | None:
    """Describe the violation of a linear constraint, None if it holds within the tolerance."""
    terms = [abs(a * b) for a, b in zip(constraint.coefficients, bandwidth_Bps, strict=True)]
    missed = abs(float(_excess(constraint, bandwidth_Bps)))
    slack = TOLERANCE * float(max(abs(constraint.limit), *terms))
    return f"{constraint.label!r} is missed by {missed:.6g}" if missed > slack else None


def _metrics(
    instance: Instance, bandwidth_Bps: Bandwidths, prices: Sequence[Fraction] | None, time: float, cost: float | None
) -> dict[str, object]:
    count = len(bandwidth_Bps)
    equal = (instance.design or Design()).equal_bandwidth_Bps(count, prices)
    speedup = gain = None
    if equal is not None and time:
        equal_time = weighted_time(instance, [equal] * count)
        speedup = equal_time / time
        if prices is not None and cost:
            gain = equal_time * float(equal * sum(prices)) / (time * cost)
    return {
        "iteration_time_s": time if time < inf else None,
        "workload_time_s": {w.name: workload_time(instance, w, bandwidth_Bps) for w in instance.training()},
        "network_cost_usd": cost,
        "perf_per_cost": 1 / (time * cost) if cost and time else None,
        "bandwidth_GBps": [float(b) / 1e9 for b in bandwidth_Bps],
        "speedup": speedup,
        "perf_per_cost_gain": gain,
        "equal_bandwidth_GBps": None if equal is None else float(equal) / 1e9,
    }


def weighted_time(instance: Instance, bandwidth_Bps: Bandwidths) -> float:
    """Return the weighted iteration time of all workloads; infinite if traffic has no bandwidth."""
    return sum(float(w.weight) * workload_time(instance, w, bandwidth_Bps) for w in instance.training())


def workload_time(instance: Instance, workload: Workload, bandwidth_Bps: Bandwidths) -> float:
    """Return the seconds of an iteration: forward, then backward in the workload's loop (figure 4.4)."""
    return float(sum(each.repeat * layer_time(instance, workload, each, bandwidth_Bps) for each in workload.layers))


def layer_time(instance: Instance, workload: Workload, layer: Layer, bandwidth_Bps: Bandwidths) -> Fraction | float:
    """Return the seconds of one layer, forward and backward."""
    phases = layer.forward, layer.input_gradient, layer.weight_gradient
    forward, tp, dp = (phase_time(instance, workload, phase, bandwidth_Bps) for phase in phases)
    if workload.loop is TrainingLoop.TP_DP_OVERLAP:
        return sum(forward) + tp[0] + max(tp[1], sum(dp))
    return sum(forward) + sum(tp) + sum(dp)


def phase_time(
    instance: Instance, workload: Workload, phase: Phase, bandwidth_Bps: Bandwidths
) -> tuple[Fraction, Fraction | float]:
    """Return the seconds of computation and of communication of a phase."""
    communication_s: Fraction | float = Fraction(0)
    for communication in phase.communication:
        span = workload.groups[communication.group]
        communication_s += communication_time(instance, communication, span, bandwidth_Bps)
    return phase.compute_s, communication_s


def communication_time(
    instance: Instance, communication: Communication, span: Sequence[int], bandwidth_Bps: Bandwidths
) -> Fraction | float:
    """Return a collective's seconds on its busiest dimension; infinite if traffic has no bandwidth."""
    rows = zip(busy_bytes(instance, communication, span), bandwidth_Bps, strict=True)
    return max((size / rate if rate > 0 else inf for size, rate in rows if size > 0), default=Fraction(0))


def busy_bytes(instance: Instance, communication: Communication, span: Sequence[int]) -> list[Fraction]:
    """Return the bytes that keep each dimension busy: more where a group has only its direct links."""
    fabric = instance.fabric
    sizes = stages(communication, span, fabric)
    if instance.design is None or instance.design.partial_use is PartialUse.FULL:
        return sizes
    for d, n in enumerate(span):
        if fabric.dimensions[d].block is Block.FULLY_CONNECTED and n > 1:
            sizes[d] *= Fraction(fabric.dimensions[d].size - 1, n - 1)
    return sizes


def stages(communication: Communication, span: Sequence[int], fabric: Fabric) -> list[Fraction]:
    """Return the bytes per NPU in each dimension, by walking the stages of the multi-rail algorithm.

    A reduce-scatter ascends the dimensions and leaves a shard of 1/n after each; an all-gather descends them with
    the same shards; an all-reduce is both, unless the switches of a dimension reduce, to which every NPU then sends
    its shard once.
    """
    sizes: list[Fraction] = []
    data = communication.size_bytes
    for d, n in enumerate(span):
        sent_once = data - data / n
        match communication.collective:
            case Collective.ALL_REDUCE:
                reduced = fabric.dimensions[d].in_network and n > 1
                sizes.append(data if reduced else 2 * sent_once)
                data /= n
            case Collective.REDUCE_SCATTER | Collective.ALL_GATHER:
                sizes.append(sent_once)
                data /= n
            case Collective.ALL_TO_ALL:
                sizes.append(sent_once)
            case Collective.POINT_TO_POINT:
                sizes.append(data if n > 1 else Fraction(0))
            case _:
                raise ValueError(f"the analytical model has no {communication.collective.name}")
    return sizes


BITS = 160  #: Bits of a number that is rounded down.
SUM_TOLERANCE = 1e-9  #: The sum of shares may exceed 1 by this, as floats do; they are brought back to 1.


class ProvedLine(NamedTuple):
    """A line that holds for all allowed plans: ``time_weight * T + cost_weight * C >= value``."""

    time_weight: Fraction
    cost_weight: Fraction
    value: Fraction


def recomputed_bound(
    instance: Instance, certificate: LagrangianCertificate, missed: Sequence[Fraction] = ()
) -> float | None:
    """Return the lower bound on the objective that a certificate proves; None if it proves none.

    Time alone: the value of the best line of weights (1, 0). Time times cost: the smallest product in the polygon that
    the lines leave, or ``V^2 / (4 a w)`` of a scale-free line of weights (a, w). Each limit of the design may be
    shifted by what is missed.
    """
    parts, free = _traffic(instance), certificate.scale_free
    lines = (proved_line(instance, parts, line, scale_free=free, missed=missed) for line in certificate.lines)
    proved = [line for line in lines if line is not None]
    if free:
        bound = max((v * max(v, Fraction(0)) / (4 * a * w) for a, w, v in proved), default=None)
    elif (instance.design or Design()).objective is Objective.PERF:
        bound = max((value / weight for weight, of_cost, value in proved if of_cost == 0), default=None)
    else:
        bound = smallest_product(proved) if proved else None
    try:
        return None if bound is None else float(bound)
    except OverflowError:
        return None


def sweep_bound(instance: Instance, certificate: SweepCertificate, missed: Sequence[Fraction] = ()) -> float | None:
    """Return the smallest bound over the parallelizations of a sweep; None if one is unavailable."""
    bounds: list[float] = []
    for (tensor, data), part in certificate.parts:
        if not isinstance(part, LagrangianCertificate):
            return None
        bound = recomputed_bound(instance.with_parallelism(tensor, data), part, missed)
        if bound is None:
            return None
        bounds.append(bound)
    return min(bounds, default=None)


def smallest_product(lines: Sequence[tuple[Fraction, Fraction, Fraction]]) -> Fraction:
    """Minimize ``T * C`` subject to ``a T + b C >= v`` for all lines (a, b, v).

    T and C are non-negative. A product is quasiconcave on the positive quadrant, so its minimum over a polygon is
    at a corner; on the two unbounded edges the product only grows along the axes. The weights of a line are at
    least 0 and not both 0.
    """
    edges = [(Fraction(1), Fraction(0)), (Fraction(0), Fraction(0))]  # the axes
    edges += [(a / (a + b), _down(v) / (a + b)) for a, b, v in lines]
    hull: list[tuple[Fraction, Fraction]] = []
    for edge in sorted(edges, reverse=True):
        if hull and hull[-1][0] == edge[0]:
            continue  # parallel, and no further out
        while len(hull) > 1:
            (weight, value), (time, cost) = hull[-1], _crossing(hull[-2], edge)
            if weight * time + (1 - weight) * cost < value:
                break
            hull.pop()
        hull.append(edge)
    return min(time * cost for time, cost in starmap(_crossing, pairwise(hull)))


def _crossing(one: tuple[Fraction, Fraction], other: tuple[Fraction, Fraction]) -> tuple[Fraction, Fraction]:
    """Return the intersection of two edges (a, v), the lines ``a T + (1 - a) C = v``."""
    (a, v), (b, w) = one, other
    return (v * (1 - b) - w * (1 - a)) / (a - b), (a * w - b * v) / (a - b)


def proved_line(
    instance: Instance, parts: "_Parts", line: SupportingLine, *, scale_free: bool, missed: Sequence[Fraction] = ()
) -> ProvedLine | None:
    """Return the bound that multipliers prove, ``a T(B) + b C(B) >= V``; None if they prove nothing.

    ``a T(B) >= a K + sum_d A_d / B_d`` by the shares, and ``min_B sum_d A_d / B_d + c_d B_d = sum_d 2 sqrt(A_d
    c_d)``. If rounding has left a ``c_d`` below 0, the weight of the cost, or the multiplier of a limit on all
    bandwidths, is raised until it is not.
    """
    design, fabric = instance.design or Design(), instance.fabric
    count = len(fabric.dimensions)
    prices = None if instance.cost_model is None else network_price(fabric, instance.cost_model)
    constraints = design.linear_constraints(count, prices)
    if not _well_formed(line, constraints, count):
        return None
    constant, traffic = _averaged_time(instance, parts, line)
    time_weight, cost_weight = Fraction(line.time_weight), Fraction(line.cost_weight)
    multipliers = list(map(Fraction, line.multipliers))

    def slopes() -> list[Fraction]:
        charged = list(zip(multipliers, constraints, strict=True))
        own = [cost_weight * (prices[d] if prices is not None else 0) for d in range(count)]
        return [own[d] + sum((u * c.coefficients[d] for u, c in charged), Fraction(0)) for d in range(count)]

    below = {d: slope for d, slope in enumerate(slopes()) if slope < 0}
    if below and cost_weight and prices is not None and all(prices[d] > 0 for d in below):
        cost_weight += max(-slope / prices[d] for d, slope in below.items())
    elif below:
        upper = (i for i, c in enumerate(constraints) if c.comparison is not Comparison.AT_LEAST)
        limit = next((i for i in upper if min(constraints[i].coefficients) > 0), None)  # on all bandwidths
        if limit is None:
            return None
        multipliers[limit] += max(-slope / constraints[limit].coefficients[d] for d, slope in below.items())
    limits = [c.limit + shift for c, shift in zip(constraints, missed or [Fraction(0)] * len(constraints), strict=True)]
    charge = sum((u * limit for u, limit in zip(multipliers, limits, strict=True)), Fraction(0))
    if scale_free and (charge > 0 or constant > 0 or not time_weight or not cost_weight):
        return None
    value = time_weight * constant
    if not scale_free:  # for every multiple of a plan, however small, limits charge nothing
        value -= charge
    for d, slope in enumerate(slopes()):
        value += 2 * _root_down(time_weight * traffic[d] * slope)
    return ProvedLine(time_weight, cost_weight, value)


def _root_down(x: Fraction) -> Fraction:
    """Return the square root, rounded down to a fixed number of significant bits."""
    if not x:
        return Fraction(0)
    shift = max(0, 2 * BITS - x.numerator.bit_length() + x.denominator.bit_length()) // 2
    return Fraction(isqrt((x.numerator << 2 * shift) // x.denominator), 1 << shift)


def _down(x: Fraction) -> Fraction:
    shift = BITS - x.numerator.bit_length() + x.denominator.bit_length()
    return Fraction(x.numerator * 2**shift // x.denominator, 2**shift) if shift > 0 else x


def _well_formed(line: SupportingLine, constraints: Sequence[LinearConstraint], count: int) -> bool:
    """Return whether shares are valid and multipliers have the signs of a proof."""
    weights, multipliers = (line.time_weight, line.cost_weight), line.multipliers
    numbers = [*weights, *multipliers, *(s for *_, shares in line.shares for s in shares)]
    numbers += [share for *_, share in line.overlaps]
    if not all(isfinite(x) for x in numbers) or min(weights) < 0 or max(weights) == 0:
        return False
    if len(multipliers) != len(constraints):
        return False
    signs = {Comparison.AT_MOST: 1, Comparison.AT_LEAST: -1, Comparison.EQUAL: 0}
    if any(u * signs[c.comparison] < 0 for u, c in zip(multipliers, constraints, strict=True)):
        return False
    divided = all(len(s) == count and min(s) >= 0 and sum(s) <= 1 + SUM_TOLERANCE for *_, s in line.shares)
    return divided and all(0 <= share <= 1 for *_, share in line.overlaps)


class _Traffic(NamedTuple):
    """A communication: its place, its branch of an overlap, and its weighted bytes per dimension."""

    where: tuple[int, int, int, int]
    branch: str
    sizes: list[Fraction]


class _Stage(NamedTuple):
    """A layer's computation: the part that always counts, and the part in its DP branch."""

    where: tuple[int, int]
    overlaps: bool
    always_s: Fraction
    dp_s: Fraction


_Parts = tuple[list[_Stage], list[_Traffic]]


def _traffic(instance: Instance) -> _Parts:
    stages: list[_Stage] = []
    rows: list[_Traffic] = []
    for w, workload in enumerate(instance.training()):
        for n, layer in enumerate(workload.layers):
            weight = Fraction(workload.weight * layer.repeat)
            overlaps = workload.loop is TrainingLoop.TP_DP_OVERLAP
            always = weight * (layer.forward.compute_s + layer.input_gradient.compute_s)
            stages.append(_Stage((w, n), overlaps, always, weight * layer.weight_gradient.compute_s))
            phases = ((layer.forward, ""), (layer.input_gradient, "tp"), (layer.weight_gradient, "dp"))
            for p, (phase, branch) in enumerate(phases):
                for c, communication in enumerate(phase.communication):
                    sizes = busy_bytes(instance, communication, workload.groups[communication.group])
                    rows.append(_Traffic((w, n, p, c), branch if overlaps else "", [weight * m for m in sizes]))
    return stages, rows


def _averaged_time(instance: Instance, parts: _Parts, line: SupportingLine) -> tuple[Fraction, list[Fraction]]:
    """Return computation K and bytes per dimension, with every maximum replaced by the shares' average."""
    # Shares whose sum exceeds 1 by a rounding error are brought back to 1.
    shares: dict[tuple[int, ...], list[Fraction]] = {}
    for *where, values in line.shares:
        exact = list(map(Fraction, values))
        total = max(Fraction(1), sum(exact, Fraction(0)))
        shares[tuple(where)] = [x / total for x in exact]
    tp_share = {(w, layer): Fraction(share) for w, layer, share in line.overlaps}
    constant, count = Fraction(0), len(instance.fabric.dimensions)
    stages, communications = parts
    counted: dict[tuple[int, int], dict[str, Fraction]] = {}
    for stage in stages:
        # Any average of the two branches is a bound; without a listed share it is the DP branch.
        tp = tp_share.get(stage.where, Fraction(0)) if stage.overlaps else Fraction(1)
        dp = 1 - tp if stage.overlaps else Fraction(1)
        counted[stage.where] = {"": Fraction(1), "tp": tp, "dp": dp}
        constant += stage.always_s + dp * stage.dp_s
    # Bytes that are averaged alike are added up first, for additions of fractions are cheaper than products.
    alike: dict[tuple[int, Fraction, Fraction], Fraction] = {}
    for one in communications:
        part = counted[one.where[:2]][one.branch]
        for d, share in enumerate(shares.get(one.where, [])):
            if share and part:
                alike[d, share, part] = alike.get((d, share, part), Fraction(0)) + one.sizes[d]
    traffic = [Fraction(0)] * count
    for (d, share, part), moved_bytes in alike.items():
        traffic[d] += share * part * moved_bytes
    return constant, traffic
