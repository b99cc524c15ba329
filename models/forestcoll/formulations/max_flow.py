"""The auxiliary network of ForestColl, section 4.2, as linear programs: one maximum flow, or all at once.

In both programs a source s feeds every rank v through an arc of capacity x, and all of it has to arrive at a sink,
a rank t. The first has one sink and counts in x, so that the arcs of the source have capacity 1; it is solved again
for another sink or other capacities of the links, ``b_e / x`` or ``floor(b_e / y) / k``, by changing bounds only.
The second has a flow for every sink and maximizes x itself, in units of the largest bandwidth.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any

import pyomo.environ as pyo

from ....core.budget import require_buildable
from ....core.rows import Lists, Table, Variables, rows
from ..problem import ForestProblem


@dataclass(frozen=True)
class SinkFlow:
    """Input of one maximum flow: the source feeds every rank at rate x, in units of the network."""

    network: ForestProblem
    sink: int
    rate: Fraction = Fraction(1)


def build_max_flow(problem: SinkFlow) -> Any:
    """Build the maximum flow to a sink at a rate."""
    m = pyo.ConcreteModel("forestcoll-max-flow")
    sets(m, problem.network, (problem.sink,))
    flows(m, problem.network, unit=problem.rate)
    m.fed.setub(1)
    balance(m, problem.network)
    total_emission(m)
    return m


def build_concurrent(network: ForestProblem) -> Any:
    """Build all maximum flows at one rate, which is maximized."""
    ranks = len(network.rank_nodes)
    require_buildable(ranks * (ranks + len(network.bandwidths)), f"flows to {ranks:,} ranks", 4e-6)
    m = pyo.ConcreteModel("forestcoll-concurrent")
    sets(m, network, network.rank_nodes)
    m.rate = pyo.Var(domain=pyo.NonNegativeReals)
    flows(m, network, unit=max(network.bandwidths))
    balance(m, network)
    source_capacity(m)
    arrival(m, network)
    largest_rate(m)
    return m


def sets(m: Any, network: ForestProblem, sinks: Sequence[int]) -> None:
    """Declare nodes, links, ranks, and the sinks t."""
    m.V = pyo.RangeSet(0, network.nodes - 1)
    m.E = pyo.RangeSet(0, len(network.bandwidths) - 1)
    m.C = pyo.Set(initialize=network.rank_nodes)
    m.T = pyo.Set(initialize=sinks)


def flows(m: Any, network: ForestProblem, unit: Fraction | int) -> None:
    """``0 <= f^t_e <= b_e``, the bandwidth of link e; ``f^t_{(s,v)} >= 0`` on the arcs of the source."""
    most = [float(bandwidth / unit) for bandwidth in network.bandwidths]
    m.flow = Variables(m.T, m.E, bounds=lambda m, t, e: (0, most[e]))
    m.fed = Variables(m.T, m.C, domain=pyo.NonNegativeReals)


def balance(m: Any, network: ForestProblem) -> None:
    """``sum_u f^t_{(u,v)} = sum_w f^t_{(v,w)}``, arcs of the source included; a sink may keep what it receives."""
    leaving, entering, feeds = Lists(), Lists(), Lists((v, [v]) for v in m.C)
    for e, (a, b) in enumerate(zip(network.tail, network.head, strict=True)):
        leaving[a].append(e)
        entering[b].append(e)
    may_keep = Table(((t, v), inf if v == t else 0) for t in m.T for v in m.V)

    @rows(m, m.T, m.V)
    def balance(m: Any, t: int, v: int) -> Any:
        came = sum(m.flow[t, e] for e in entering[v]) + sum(m.fed[t, c] for c in feeds[v])
        return 0, came - sum(m.flow[t, e] for e in leaving[v]), may_keep[t, v]


def total_emission(m: Any) -> None:
    """Maximize ``sum_v f^t_{(s,v)}``: all that the source emits arrives at the sink."""
    m.objective = pyo.Objective(expr=pyo.quicksum(m.fed[t, v] for t in m.T for v in m.C), sense=pyo.maximize)


def source_capacity(m: Any) -> None:
    """``f^t_{(s,v)} <= x``: every rank broadcasts at the same rate."""

    @rows(m, m.T, m.C)
    def source_capacity(m: Any, t: int, v: int) -> Any:
        return m.fed[t, v] <= m.rate


def arrival(m: Any, network: ForestProblem) -> None:
    """``sum_v f^t_{(s,v)} >= N x``: the flow to every sink has the value of theorem 1."""
    ranks = len(network.rank_nodes)

    @rows(m, m.T)
    def arrival(m: Any, t: int) -> Any:
        return sum(m.fed[t, v] for v in m.C) >= ranks * m.rate


def largest_rate(m: Any) -> None:
    """Maximize ``x``."""
    m.objective = pyo.Objective(expr=m.rate, sense=pyo.maximize)
