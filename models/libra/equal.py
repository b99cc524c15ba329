"""``libra-equal``: EqualBW, the same bandwidth in every dimension (dissertation, section 4.5.2)."""

from __future__ import annotations

from ...core.answers import BandwidthPlan
from ...core.budget import Budget
from ...core.cost import network_price
from ...core.design import Comparison, Design
from ...core.errors import InputError
from ...core.instance import Instance
from ...core.method import Outcome, Status
from ...core.solver import Solver
from .options import DesignOptions
from .problem import pose_problem


def run(instance: Instance, solver: Solver, budget: Budget, options: DesignOptions) -> Outcome:
    """Split the bandwidth equally; infeasible where that breaks a constraint (``Method.run``)."""
    del solver, budget, options
    problem = pose_problem(instance)
    prices = None if instance.cost_model is None else network_price(instance.fabric, instance.cost_model)
    equal = (instance.design or Design()).equal_bandwidth_Bps(problem.dimensions, prices)
    if equal is None:
        raise InputError("EqualBW needs a total bandwidth or a cost budget", place="design")
    for constraint in problem.constraints:
        excess = equal * sum(constraint.coefficients) - constraint.limit
        wrong = {Comparison.AT_MOST: excess > 0, Comparison.AT_LEAST: excess < 0, Comparison.EQUAL: excess != 0}
        if wrong[constraint.comparison]:
            shown = f"{float(equal) / 1e9:.6g} GB/s"
            return Outcome(Status.INFEASIBLE, message=f"{shown} in every dimension does not meet {constraint.label!r}")
    plan = (float(equal),) * problem.dimensions
    return Outcome(Status.FEASIBLE, BandwidthPlan(plan), problem.value(plan))
