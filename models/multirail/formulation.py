"""The linear program ``themis-lp``: shares of data per order that minimize the busiest dimension's time.

All times are in multiples of the time of an even spread over all bandwidths, so that a solver sees values around 1.
"""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo

from .problem import OrderProblem


def build(problem: OrderProblem) -> Any:
    """Build the model: shares of the orders, load of every dimension, largest load."""
    m = pyo.ConcreteModel("themis-lp")
    sets(m, problem)
    variables(m)
    all_data(m)
    busiest(m, problem)
    objective(m)
    return m


def sets(m: Any, problem: OrderProblem) -> None:
    """Orders o and dimensions d."""
    m.O = pyo.RangeSet(len(problem.orders))
    m.D = pyo.RangeSet(len(problem.latency_s))


def variables(m: Any) -> None:
    """``x_o``, the share of the data that takes order o, and T, the time of the busiest dimension."""
    m.share = pyo.Var(m.O, domain=pyo.NonNegativeReals)
    m.time = pyo.Var(domain=pyo.NonNegativeReals)


def all_data(m: Any) -> None:
    """``sum_o x_o = 1``."""

    @m.Constraint()
    def all_data(m: Any) -> Any:
        return pyo.quicksum(m.share[o] for o in m.O) == 1


def busiest(m: Any, problem: OrderProblem) -> None:
    """``T >= p C A_d + sum_o x_o m_od / B_d``; p is 2 for an all-reduce, which goes both ways, else 1."""

    @m.Constraint(m.D)
    def busiest(m: Any, d: int) -> Any:
        transfers = pyo.quicksum(float(problem.transfer_s[o - 1][d - 1] / problem.unit_s) * m.share[o] for o in m.O)
        return m.time >= float(problem.latency_s[d - 1] / problem.unit_s) + transfers


def objective(m: Any) -> None:
    """Minimize T."""
    m.objective = pyo.Objective(expr=m.time, sense=pyo.minimize)
