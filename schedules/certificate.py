"""The judge of Lagrangian certificates: recomputes the bound from the instance and the multipliers alone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import isfinite, sqrt

from ..core.bounds import LagrangianCertificate, SupportingLine, SweepCertificate
from ..core.cost import network_price
from ..core.design import Comparison, Design, LinearConstraint, Objective
from ..core.instance import Instance
from ..core.workload import TrainingLoop
from .training import busy_bytes

#: Rounding errors that the closed form may have; a bound is lowered by this part of itself.
ROUNDING = 1e-13


def recomputed_bound(instance: Instance, certificate: LagrangianCertificate) -> float | None:
    """Lower bound on the objective that a certificate proves; None if it proves none.

    Time alone: the value of the best line of weights (1, 0). Time times cost: the smallest product in the polygon that the
    lines leave, or ``V^2 / (4 a w)`` of a scale-free line of weights (a, w).
    """
    design = instance.design or Design()
    values = [(line, line_value(instance, line, scale_free=certificate.scale_free)) for line in certificate.lines]
    proved = [(line, value) for line, value in values if value is not None]
    if not proved:
        return None
    if certificate.scale_free:
        bounds = [v * max(v, 0.0) / (4 * line.time_weight * line.cost_weight) for line, v in proved]
        return max(bounds) * (1 - ROUNDING)
    if design.objective is Objective.PERF:
        alone = [v / line.time_weight for line, v in proved if line.cost_weight == 0 and line.time_weight > 0]
        return max(alone, default=None)
    return smallest_product([(line.time_weight, line.cost_weight, v) for line, v in proved])


def sweep_bound(instance: Instance, certificate: SweepCertificate) -> float | None:
    """Smallest bound over the parallelizations of a sweep; None if one of them cannot be recomputed."""
    bounds: list[float] = []
    for (tensor, data), part in certificate.parts:
        if not isinstance(part, LagrangianCertificate):
            return None
        bound = recomputed_bound(instance.with_parallelism(tensor, data), part)
        if bound is None:
            return None
        bounds.append(bound)
    return min(bounds, default=None)


def smallest_product(lines: Sequence[tuple[float, float, float]]) -> float:
    """Smallest ``T * C`` with ``T, C >= 0`` and ``a T + b C >= v`` for all lines (a, b, v), by trying every corner.

    A product is quasiconcave on the positive quadrant, so that its minimum over a polygon lies in a corner; of the two unbounded
    edges the product only grows along the axes' directions.
    """
    edges = [*lines, (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)]
    best = float("inf")
    for (a, b, v), (p, q, w) in combinations(edges, 2):
        determinant = a * q - b * p
        if abs(determinant) <= ROUNDING * (abs(a * q) + abs(b * p)):
            continue
        time, cost = (v * q - b * w) / determinant, (a * w - v * p) / determinant
        inside = all(x * time + y * cost >= z - 1e-9 * (abs(x * time) + abs(y * cost) + abs(z)) for x, y, z in edges)
        if inside:
            best = min(best, time * cost)
    return best * (1 - ROUNDING)


def line_value(instance: Instance, line: SupportingLine, *, scale_free: bool) -> float | None:
    """Value V for which the multipliers prove ``a T(B) + b C(B) >= V``; None if they prove nothing.

    ``a T(B) >= a K + sum_d A_d / B_d`` by the shares, and ``min_B sum_d A_d / B_d + c_d B_d = sum_d 2 sqrt(A_d c_d)``.
    """
    design = instance.design or Design()
    fabric = instance.fabric
    count = len(fabric.dimensions)
    prices = None if instance.cost_model is None else network_price(fabric, instance.cost_model)
    constraints = design.linear_constraints(count, prices)
    if not _well_formed(line, constraints, count):
        return None
    constant, traffic = _averaged_time(instance, line)
    charged = [u * float(c.limit) for u, c in zip(line.multipliers, constraints, strict=True)]
    limits = sum(charged)
    if scale_free and (limits > 0 or constant > 0 or line.time_weight <= 0 or line.cost_weight <= 0):
        return None
    value = line.time_weight * constant
    if not scale_free:  # for every multiple of a plan, however small, limits charge nothing
        value -= limits
    size = abs(line.time_weight * constant) + sum(map(abs, charged))
    for d in range(count):
        slope = line.cost_weight * float(prices[d] if prices is not None else 0)
        slope += sum(u * float(c.coefficients[d]) for u, c in zip(line.multipliers, constraints, strict=True))
        if slope < 0:
            return None
        value += 2 * sqrt(line.time_weight * traffic[d] * slope)
    return value - ROUNDING * (size + abs(value))


def _well_formed(line: SupportingLine, constraints: Sequence[LinearConstraint], count: int) -> bool:
    """Whether shares are shares and multipliers have the signs that make them a proof."""
    numbers = [line.time_weight, line.cost_weight, *line.multipliers]
    numbers += [s for *_, shares in line.shares for s in shares] + [share for *_, share in line.overlaps]
    if not all(isfinite(x) for x in numbers) or line.time_weight < 0 or line.cost_weight < 0:
        return False
    if len(line.multipliers) != len(constraints):
        return False
    for u, constraint in zip(line.multipliers, constraints, strict=True):
        wrong_side = {Comparison.AT_MOST: u < 0, Comparison.AT_LEAST: u > 0, Comparison.EQUAL: False}
        if wrong_side[constraint.comparison]:
            return False
    return all(len(s) == count and min(s) >= 0 and sum(s) <= 1 + 1e-9 for *_, s in line.shares) and all(
        0 <= share <= 1 for *_, share in line.overlaps
    )


def _averaged_time(instance: Instance, line: SupportingLine) -> tuple[float, list[float]]:
    """Computation K and bytes per dimension of the average that the shares choose in place of every maximum."""
    # Shares whose sum exceeds 1 by a rounding error are brought back to 1.
    shares = {tuple(where): tuple(x / max(1.0, sum(s)) for x in s) for *where, s in line.shares}
    tp_share = {(w, layer): share for w, layer, share in line.overlaps}
    constant, traffic = 0.0, [0.0] * len(instance.fabric.dimensions)
    for w, workload in enumerate(instance.training()):
        for n, layer in enumerate(workload.layers):
            weight = float(workload.weight * layer.repeat)
            tp = dp = 1.0
            if workload.loop is TrainingLoop.TP_DP_OVERLAP:
                # Any average of the two branches is a bound; without a listed share it is the DP branch.
                tp = tp_share.get((w, n), 0.0)
                dp = 1.0 - tp
            constant += weight * float(layer.forward.compute_s + layer.input_gradient.compute_s)
            constant += weight * dp * float(layer.weight_gradient.compute_s)
            phases = ((layer.forward, 1.0), (layer.input_gradient, tp), (layer.weight_gradient, dp))
            for p, (phase, counted) in enumerate(phases):
                for c, communication in enumerate(phase.communication):
                    share = shares.get((w, n, p, c))
                    if share is not None:
                        moved = busy_bytes(instance, communication, workload.groups[communication.group])
                        for d, m in enumerate(moved):
                            traffic[d] += weight * counted * share[d] * float(m)
    return constant, traffic
