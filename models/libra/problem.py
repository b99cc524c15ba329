"""An instance as LIBRA sees it: the time model, prices and linear constraints, and the units that numbers are solved in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from ...core.cost import network_price
from ...core.design import Comparison, Design, LinearConstraint, Objective
from ...core.errors import InputError
from ...core.instance import Instance
from .timing import TimeModel, time_model

ILL_POSED = (
    "perf-per-cost with only an upper limit on bandwidth is ill-posed (the optimum tends to zero bandwidth): "
    "give the total bandwidth exactly, or a lower limit"
)


@dataclass(frozen=True)
class Problem:
    """What is minimized, and under which constraints.

    Parameters
    ----------
    objective : Objective
        Time, or time multiplied by cost.
    time : TimeModel
        The iteration time as a function of the bandwidths.
    dimensions : int
        Number of dimensions.
    prices_usd_per_Bps : tuple of Fraction or None
        Dollars of the whole network per byte per second in each dimension.
    constraints : tuple of LinearConstraint
        Budgets and constraints of the design.
    """

    objective: Objective
    time: TimeModel
    dimensions: int
    prices_usd_per_Bps: tuple[Fraction, ...] | None
    constraints: tuple[LinearConstraint, ...]

    @cached_property
    def bandwidth_unit_Bps(self) -> float:
        """A typical bandwidth of a dimension: what the largest limit leaves to each. Solvers see numbers around 1."""
        typical = [c.limit / sum(abs(a) for a in c.coefficients) for c in self.constraints if c.limit > 0]
        return float(max(typical, default=Fraction(10**9)))

    @cached_property
    def time_unit_s(self) -> float:
        """The iteration time when every dimension has the typical bandwidth."""
        return self.time.seconds([self.bandwidth_unit_Bps] * self.dimensions) or 1.0

    @cached_property
    def cost_unit_usd(self) -> float:
        """The network's cost when every dimension has the typical bandwidth."""
        return self.cost_usd([self.bandwidth_unit_Bps] * self.dimensions) or 1.0

    def cost_usd(self, bandwidth_Bps: Sequence[float]) -> float:
        """Cost of the network at the given bandwidths; 0 without prices."""
        if self.prices_usd_per_Bps is None:
            return 0.0
        return sum(float(p) * b for p, b in zip(self.prices_usd_per_Bps, bandwidth_Bps, strict=True))

    def value(self, bandwidth_Bps: Sequence[float]) -> float:
        """The objective at the given bandwidths: seconds, or seconds times dollars."""
        time = self.time.seconds(bandwidth_Bps)
        return time if self.objective is Objective.PERF else time * self.cost_usd(bandwidth_Bps)


def pose_problem(instance: Instance) -> Problem:
    """Read an instance as a LIBRA problem.

    Raises
    ------
    InputError
        If workloads or prices are missing that the objective needs, or the objective is ill-posed: perf-per-cost when no
        bandwidth at all would be allowed and there is computation, whose cost shrinks with the network.
    """
    design = instance.design or Design()
    count = len(instance.fabric.dimensions)
    prices = None if instance.cost_model is None else network_price(instance.fabric, instance.cost_model)
    if prices is None and design.objective is Objective.PERF_PER_COST:
        raise InputError("missing, but perf-per-cost needs prices", place="cost_model")
    constraints = design.linear_constraints(count, prices)
    problem = Problem(design.objective, time_model(instance), count, prices, constraints)
    nothing_is_allowed = all(_allows_zero(c) for c in constraints)
    if design.objective is Objective.PERF_PER_COST and nothing_is_allowed and problem.time.constant_s > 0:
        raise InputError(ILL_POSED, place="design")
    return problem


def _allows_zero(constraint: LinearConstraint) -> bool:
    """Whether a network without any bandwidth meets the constraint."""
    match constraint.comparison:
        case Comparison.AT_MOST:
            return constraint.limit >= 0
        case Comparison.AT_LEAST:
            return constraint.limit <= 0
        case Comparison.EQUAL:
            return constraint.limit == 0
