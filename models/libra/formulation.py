"""LIBRA as a Pyomo model, in the paper's bilinear form (dissertation, sections 4.4.2 to 4.4.5).

All numbers are in the units of :class:`~cwb.models.libra.problem.DesignProblem`, so that a solver sees values around 1.
"""

from typing import Any

import pyomo.environ as pyo

from ...core.answers import BandwidthPlan
from ...core.design import Comparison, Objective
from .problem import DesignProblem


def build(problem: DesignProblem) -> Any:
    """Build the model: variables, time, cost, constraints, objective."""
    m = pyo.ConcreteModel("libra")
    sets(m, problem)
    variables(m)
    inverse_bandwidth(m)
    collective_time(m, problem)
    overlapped_time(m, problem)
    iteration_time(m, problem)
    network_cost(m, problem)
    design_constraints(m, problem)
    objective(m, problem)
    return m


def sets(m: Any, problem: DesignProblem) -> None:
    """Declare dimensions, those with traffic, collectives with their dimensions, overlapped stages."""
    time = problem.time
    m.D = pyo.RangeSet(problem.dimensions)
    m.U = pyo.Set(initialize=[d + 1 for d in time.used_dimensions])
    m.K = pyo.RangeSet(len(time.terms))
    m.KD = pyo.Set(
        dimen=2,
        initialize=[(k + 1, d + 1) for k, term in enumerate(time.terms) for d, v in enumerate(term.traffic) if v],
    )
    m.O = pyo.RangeSet(len(time.overlaps))


def variables(m: Any) -> None:
    """``B_d`` and its inverse ``y_d``; times ``t_k`` of collectives, ``v_o`` of overlaps, T; cost C.

    The scale of the limits is 1; a relaxation over all multiples of allowed plans frees it (see
    :mod:`.outer_approximation`).
    """
    m.bandwidth = pyo.Var(m.D, domain=pyo.NonNegativeReals)
    m.inverse = pyo.Var(m.U, domain=pyo.NonNegativeReals)
    m.collective = pyo.Var(m.K, domain=pyo.NonNegativeReals)
    m.overlap = pyo.Var(m.O, domain=pyo.NonNegativeReals)
    m.time = pyo.Var(domain=pyo.NonNegativeReals)
    m.cost = pyo.Var(domain=pyo.NonNegativeReals)
    m.scale = pyo.Var(domain=pyo.NonNegativeReals, initialize=1)
    m.scale.fix()


def inverse_bandwidth(m: Any) -> None:
    """``B_d y_d >= 1``; an inequality suffices, since a larger inverse only lengthens the times."""

    @m.Constraint(m.U)
    def inverse_bandwidth(m: Any, d: int) -> Any:
        return m.bandwidth[d] * m.inverse[d] >= 1


def collective_time(m: Any, problem: DesignProblem) -> None:
    """``t_k >= m_kd y_d``: the slowest dimension determines the collective (section 4.4.2)."""

    @m.Constraint(m.KD)
    def collective_time(m: Any, k: int, d: int) -> Any:
        return m.collective[k] >= traffic_coefficient(problem, k, d) * m.inverse[d]


def traffic_coefficient(problem: DesignProblem, k: int, d: int) -> float:
    """Return ``m_kd`` in the problem's units."""
    unit = problem.bandwidth_units_Bps[d - 1] * problem.time_unit_s
    return float(problem.time.terms[k - 1].traffic[d - 1]) / unit


def overlapped_time(m: Any, problem: DesignProblem) -> None:
    """``v_o >= sum_{k in TP_o} t_k`` and ``v_o >= q_o + sum_{k in DP_o} t_k`` (section 4.4.2)."""
    stages = problem.time.overlaps

    @m.Constraint(m.O)
    def overlapped_tp(m: Any, o: int) -> Any:
        return m.overlap[o] >= pyo.quicksum(m.collective[k + 1] for k in stages[o - 1].tp)

    @m.Constraint(m.O)
    def overlapped_dp(m: Any, o: int) -> Any:
        compute = float(stages[o - 1].dp_compute_s) / problem.time_unit_s
        return m.overlap[o] >= compute + pyo.quicksum(m.collective[k + 1] for k in stages[o - 1].dp)


def iteration_time(m: Any, problem: DesignProblem) -> None:
    """``T = K + sum_k t_k + sum_o w_o v_o``: computation K and communication, in turn or overlapped (section 4.4.2)."""
    time = problem.time

    @m.Constraint()
    def iteration_time(m: Any) -> Any:
        serial = pyo.quicksum(m.collective[k + 1] for k in time.serial)
        overlapped = pyo.quicksum(float(stage.weight) * m.overlap[o + 1] for o, stage in enumerate(time.overlaps))
        return m.time == float(time.constant_s) / problem.time_unit_s + serial + overlapped


def network_cost(m: Any, problem: DesignProblem) -> None:
    """``C = sum_d c_d B_d``: links, and NICs and switch ports where the block has a switch (section 4.4.3)."""
    prices = problem.prices_usd_per_Bps or (0,) * problem.dimensions
    units = [problem.cost_unit_usd / unit for unit in problem.bandwidth_units_Bps]

    @m.Constraint()
    def network_cost(m: Any) -> Any:
        return m.cost == pyo.quicksum(float(prices[d - 1]) / units[d - 1] * m.bandwidth[d] for d in m.D)


def design_constraints(m: Any, problem: DesignProblem) -> None:
    """``sum_d g_id B_d / r_i <= h_i / r_i s``, or ``=`` or ``>=``: budgets and linear constraints (section 4.4.4).

    r is the scale of a row and s that of the limits, fixed at 1.
    """
    m.C = pyo.RangeSet(len(problem.constraints))

    @m.Constraint(m.C)
    def design(m: Any, c: int) -> Any:
        constraint = problem.constraints[c - 1]
        row = constraint_row_scale(problem, c - 1)
        body = pyo.quicksum(
            float(a) * problem.bandwidth_units_Bps[d] / row * m.bandwidth[d + 1]
            for d, a in enumerate(constraint.coefficients)
            if a
        )
        excess = body - float(constraint.limit) / row * m.scale
        match constraint.comparison:
            case Comparison.AT_MOST:
                return excess <= 0
            case Comparison.AT_LEAST:
                return excess >= 0
            case Comparison.EQUAL:
                return excess == 0


def constraint_row_scale(problem: DesignProblem, index: int) -> float:
    """Return the divisor of a linear constraint, in its own unit: its largest coefficient."""
    coefficients = problem.constraints[index].coefficients
    return max(abs(float(a)) * unit for a, unit in zip(coefficients, problem.bandwidth_units_Bps, strict=True))


def objective(m: Any, problem: DesignProblem) -> None:
    """Minimize ``T`` (PerfOptBW) or ``T C`` (PerfPerCostOptBW, section 4.4.5)."""
    expression = m.time if problem.objective is Objective.PERF else m.time * m.cost
    m.objective = pyo.Objective(expr=expression, sense=pyo.minimize)


def plan_of(model: Any, problem: DesignProblem) -> BandwidthPlan:
    """Return the bandwidths of a solved model (``Formulation.extract``)."""
    units = problem.bandwidth_units_Bps
    return BandwidthPlan(tuple(max(0.0, pyo.value(model.bandwidth[d])) * units[d - 1] for d in model.D))
