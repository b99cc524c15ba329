"""LP (3) of direct-connect, appendix A.5, as a Pyomo model, and by classes of equal flows (docs/methods/mcf.md).

Constraints on classes are written for one member of each class.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import pyomo.environ as pyo

from ...algorithms.bounds.schedule_bounds import pairs_of
from ...core.budget import require_buildable
from ...core.instance import Instance
from ...core.rows import Lists, Table, Variables, rows
from ...core.topology import Topology
from .problem import FlowClasses, bandwidth_unit, weights_of


def build(instance: Instance) -> Any:
    """Build the model of all pairs that exchange data: flows, capacities, deliveries, maximum rate."""
    topology, sources = instance.topology, len(set(pairs_of(instance)[0].tolist()))
    require_buildable(sources * len(topology.links), f"flows of {sources:,} ranks", 4e-6)
    weights, _ = weights_of(instance)
    m = pyo.ConcreteModel("mcf")
    sets(m, topology, dict.fromkeys(source for source, _ in weights))
    variables(m)
    capacity(m, topology)
    delivery(m, topology, weights)
    objective(m)
    return m


def sets(m: Any, topology: Topology, sources: Iterable[int]) -> None:
    """Declare nodes, links, sources, and the nodes that may forward each source's flow."""
    ranks = tuple(sources)
    m.V = pyo.RangeSet(0, len(topology.nodes) - 1)
    m.E = pyo.RangeSet(0, len(topology.links) - 1)
    m.S = pyo.Set(initialize=ranks)
    m.SV = pyo.Set(dimen=2, initialize=[(s, u) for s in ranks for u in range(len(topology.nodes)) if u != s])


def variables(m: Any) -> None:
    """Declare the nonnegative rate of a pair of weight 1 and flow of each source on each link."""
    m.rate = pyo.Var(domain=pyo.NonNegativeReals)
    m.flow = Variables(m.S, m.E, domain=pyo.NonNegativeReals)


def capacity(m: Any, topology: Topology) -> None:
    """``sum_s y_{s,e} <= b_e``: no link carries more than its bandwidth."""
    unit = bandwidth_unit(topology)
    bandwidth = Table((e, float(link.bandwidth_Bps / unit)) for e, link in enumerate(topology.links))

    @rows(m, m.E)
    def capacity(m: Any, e: int) -> Any:
        return sum(m.flow[s, e] for s in m.S) <= bandwidth[e]


def delivery(m: Any, topology: Topology, weights: Mapping[tuple[int, int], float]) -> None:
    """``w_{s,u} f + sum_v y_{s,(u,v)} <= sum_w y_{s,(w,u)}``.

    Of its inflow a node u != s keeps its part and forwards the rest.
    """
    leaving, entering, share = Lists(), Lists(), Table(weights)
    for e, (a, b) in enumerate(topology.link_ends):
        leaving[a].append(e)
        entering[b].append(e)

    @rows(m, [(s, u) for s, u in m.SV if (s, u) in share or u in leaving])
    def delivery(m: Any, s: int, u: int) -> Any:
        own = share.get((s, u), 0.0) * m.rate
        return own + sum(m.flow[s, e] for e in leaving[u]) <= sum(m.flow[s, e] for e in entering[u])


def objective(m: Any) -> None:
    """Maximize ``f``."""
    m.objective = pyo.Objective(expr=m.rate, sense=pyo.maximize)


def build_classes(quotient: FlowClasses) -> Any:
    """Build the model: flows of classes, capacities of links, deliveries at points, maximum rate."""
    require_buildable(len(quotient.flows), f"{len(quotient.flows):,} classes of flows", 4e-6)
    m = pyo.ConcreteModel("mcf-classes")
    m.L = pyo.RangeSet(0, len(quotient.links) - 1)
    m.rate = pyo.Var(domain=pyo.NonNegativeReals)
    m.flow = Variables(pyo.Set(initialize=quotient.flows), domain=pyo.NonNegativeReals)
    class_capacity(m, quotient)
    class_delivery(m, quotient)
    m.objective = pyo.Objective(expr=m.rate, sense=pyo.maximize)
    return m


def class_capacity(m: Any, quotient: FlowClasses) -> None:
    """``load_e f + sum_c n_{e,c} y_c <= b_e``: no link of a class carries more than its bandwidth.

    Of the flows on it, over all sources, n are of class c.
    """
    count, on_link = Table(quotient.on_links()), Lists()
    for k, c in count:
        on_link[k].append(c)
    room = Table(enumerate(quotient.exchange.capacity[quotient.links].tolist()))
    load = Table(enumerate(quotient.exchange.load[quotient.links].tolist()))

    @rows(m, [k for k in m.L if load[k] or on_link[k]])
    def capacity(m: Any, k: int) -> Any:
        return load[k] * m.rate + sum(count[k, c] * m.flow[c] for c in on_link[k]) <= room[k]


def class_delivery(m: Any, quotient: FlowClasses) -> None:
    """``w_{s,u} f + sum_v y_{s,(u,v)} <= sum_w y_{s,(w,u)}`` for one (s, u) of each class of balances."""
    exchange, flow = quotient.exchange, quotient.classes.flow
    at_tail, at_head, active = Lists(), Lists(), set(quotient.flows)
    for e, (a, b) in enumerate(zip(exchange.tails.tolist(), exchange.heads.tolist(), strict=True)):
        at_tail[a].append(e)
        at_head[b].append(e)
    leaving, entering, share = Lists(), Lists(), Table()
    for q, s, u in quotient.balances:
        leaving[q] = [c for c in flow[s, at_tail[u]].tolist() if c in active]
        entering[q] = [c for c in flow[s, at_head[u]].tolist() if c in active]
        share[q] = float(exchange.weights[s, u])

    @rows(m, [q for q, _, _ in quotient.balances if share[q] or leaving[q]])
    def delivery(m: Any, q: int) -> Any:
        return share[q] * m.rate + sum(m.flow[c] for c in leaving[q]) <= sum(m.flow[c] for c in entering[q])
