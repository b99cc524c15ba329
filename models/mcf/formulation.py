"""LP (3) of direct-connect, appendix A.5, as a Pyomo model; with switches and ranks outside the group, which only pass flow on."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from typing import Any

import pyomo.environ as pyo

from ...core.instance import Instance
from ...core.topology import Topology
from ..common.schedule_bounds import group_of, network_of


def build(instance: Instance) -> Any:
    """Build the model of an all-to-all: flows, what links carry, what ranks receive, what is wanted."""
    topology = network_of(instance)
    m = pyo.ConcreteModel("mcf")
    sets(m, topology, tuple(topology.rank_nodes[rank] for rank in group_of(instance).ranks))
    variables(m)
    capacity(m, topology)
    delivery(m, topology)
    objective(m)
    return m


def bandwidth_unit(topology: Topology) -> Fraction:
    """Give the largest bandwidth, in which the model counts flows."""
    return max(link.bandwidth_Bps for link in topology.links)


def sets(m: Any, topology: Topology, ranks: tuple[int, ...]) -> None:
    """Nodes, links, the ranks of the group, and where which source's flow may have to be passed on."""
    m.V = pyo.RangeSet(0, len(topology.nodes) - 1)
    m.E = pyo.RangeSet(0, len(topology.links) - 1)
    m.S = pyo.Set(initialize=ranks)
    m.SV = pyo.Set(dimen=2, initialize=[(s, u) for s in ranks for u in range(len(topology.nodes)) if u != s])


def variables(m: Any) -> None:
    """Rate of every pair, and flow of every source on every link; none is negative."""
    m.rate = pyo.Var(domain=pyo.NonNegativeReals)
    m.flow = pyo.Var(m.S, m.E, domain=pyo.NonNegativeReals)


def capacity(m: Any, topology: Topology) -> None:
    """``sum_s y_{s,e} <= b_e``: no link carries more than its bandwidth."""
    unit = bandwidth_unit(topology)

    @m.Constraint(m.E)
    def capacity(m: Any, e: int) -> Any:
        return pyo.quicksum(m.flow[s, e] for s in m.S) <= float(topology.links[e].bandwidth_Bps / unit)


def delivery(m: Any, topology: Topology) -> None:
    """``f + sum_v y_{s,(u,v)} <= sum_w y_{s,(w,u)}``: of what comes to a rank u != s it keeps f and passes on the rest; others keep nothing."""
    leaving, entering = defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
    for e, (a, b) in enumerate(topology.link_ends):
        leaving[a].append(e)
        entering[b].append(e)

    @m.Constraint(m.SV)
    def delivery(m: Any, s: int, u: int) -> Any:
        kept = m.rate if u in m.S else 0.0
        passed = pyo.quicksum(m.flow[s, e] for e in leaving[u])
        came = pyo.quicksum(m.flow[s, e] for e in entering[u])
        trivial = u not in m.S and not leaving[u]
        return pyo.Constraint.Skip if trivial else kept + passed <= came


def objective(m: Any) -> None:
    """Maximize f."""
    m.objective = pyo.Objective(expr=m.rate, sense=pyo.maximize)
