"""The linear program over chunk orders: which share of the data takes which order, so that the busiest dimension works least.

All times are in multiples of the time that an even spread over all bandwidths would take, so that a solver sees values around 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations
from typing import Any

import pyomo.environ as pyo

from ...core.instance import Instance
from .options import demand_of, wired
from .stages import latency_s, loads_s, passes


@dataclass(frozen=True)
class Problem:
    """The numbers of the linear program.

    Parameters
    ----------
    orders : tuple of tuple of int
        All orders of the dimensions.
    transfer_s : tuple of tuple of Fraction
        For each order, the seconds that each dimension transfers if all data takes it.
    latency_s : tuple of Fraction
        Latencies that each dimension pays for all chunks, whatever their orders.
    unit_s : Fraction
        What the model calls 1.
    """

    orders: tuple[tuple[int, ...], ...]
    transfer_s: tuple[tuple[Fraction, ...], ...]
    latency_s: tuple[Fraction, ...]
    unit_s: Fraction


def pose_problem(instance: Instance) -> Problem:
    """Read the numbers off an instance."""
    fabric, demand = wired(instance), demand_of(instance)
    dimensions = range(len(fabric.dimensions))
    orders = tuple(permutations(dimensions))
    once = [passes(demand) * latency_s(fabric, d) for d in dimensions]
    transfer = tuple(
        tuple(load - fixed for load, fixed in zip(loads_s(fabric, demand, order, demand.size_bytes), once, strict=True))
        for order in orders
    )
    n = fabric.npus
    unit = passes(demand) * demand.size_bytes * (n - 1) / n / sum(fabric.bandwidth_Bps)
    return Problem(orders, transfer, tuple(demand.chunks * fixed for fixed in once), unit)


def build(instance: Instance) -> Any:
    """Build the model of an instance."""
    return build_problem(pose_problem(instance))


def build_problem(problem: Problem) -> Any:
    """Build the model: shares of the orders, the load of every dimension, the largest one of them."""
    m = pyo.ConcreteModel("themis-lp")
    sets(m, problem)
    variables(m)
    all_data(m)
    busiest(m, problem)
    objective(m)
    return m


def sets(m: Any, problem: Problem) -> None:
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


def busiest(m: Any, problem: Problem) -> None:
    """``T >= C A_d + sum_o x_o m_od / B_d``, both ways for an all-reduce."""

    @m.Constraint(m.D)
    def busiest(m: Any, d: int) -> Any:
        transfers = pyo.quicksum(float(problem.transfer_s[o - 1][d - 1] / problem.unit_s) * m.share[o] for o in m.O)
        return m.time >= float(problem.latency_s[d - 1] / problem.unit_s) + transfers


def objective(m: Any) -> None:
    """Minimize T."""
    m.objective = pyo.Objective(expr=m.time, sense=pyo.minimize)
