"""Verification of bandwidth plans: time, cost and constraints, independent of the method."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import inf, isfinite

from ..core.answers import BandwidthPlan
from ..core.bounds import Certificate, LagrangianCertificate, SweepCertificate
from ..core.design import Comparison, Design, LinearConstraint, Objective
from ..core.fabric import network_price
from ..core.instance import Instance
from ..core.outcome import Verdict
from .metrics import contradictions, question_of
from .training import Bandwidths, recomputed_bound, sweep_bound, weighted_time, workload_time

TOLERANCE = 1e-7  #: A linear constraint may be missed by this part of its largest term: solvers work in floating point.
ROUNDING = 1e-12  #: Relative rounding errors of the time and the cost of a plan, which are floats.


def bandwidth_verdict(instance: Instance, plan: BandwidthPlan, certificate: Certificate | None) -> Verdict:
    """Verify a bandwidth plan.

    Metrics: ``iteration_time_s``, ``workload_time_s`` (per workload, unweighted), ``network_cost_usd``,
    ``perf_per_cost`` (1/(s USD)), ``bandwidth_GBps``, and against EqualBW ``speedup``, ``perf_per_cost_gain`` and
    ``equal_bandwidth_GBps``; None where a metric cannot be computed.
    """
    if plan.parallelism is not None:
        instance = instance.with_parallelism(*plan.parallelism)
    design = instance.design or Design()
    fabric = instance.fabric
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
    """Recompute the bound of a certificate, None if it proves none or cannot be recomputed.

    Each limit may be shifted by what is missed: plans may violate limits by :data:`TOLERANCE`, and can then be better
    than plans that satisfy them exactly.
    """
    if isinstance(certificate, LagrangianCertificate):
        return recomputed_bound(instance, certificate, missed)
    return sweep_bound(instance, certificate, missed) if isinstance(certificate, SweepCertificate) else None


def _excess(constraint: LinearConstraint, bandwidth_Bps: Bandwidths) -> Fraction:
    """Return the signed violation of a linear constraint, 0 if it holds."""
    terms = (a * b for a, b in zip(constraint.coefficients, bandwidth_Bps, strict=True))
    excess = sum(terms, Fraction(0)) - constraint.limit
    kept = {Comparison.AT_MOST: excess < 0, Comparison.AT_LEAST: excess > 0, Comparison.EQUAL: False}
    return Fraction(0) if kept[constraint.comparison] else excess


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
