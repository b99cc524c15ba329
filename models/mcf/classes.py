"""LP (3) with one variable for each class of equal flows, as a Pyomo model.

It has the same optimum as :mod:`.formulation`, with far fewer columns where the network is symmetric: 512 in place
of 262,144 on a circulant of 256 nodes and degree 4. Constraints are written for one member of each class.
"""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo

from ...core.errors import InputError
from ...core.instance import Instance
from ...core.limits import require_buildable
from ...core.rows import Lists, Table, rows
from .method import ClassOptions
from .problem import FlowClasses, classes_of, exchange_of, line_graph_base


def index(instance: Instance, options: ClassOptions) -> FlowClasses:
    """Return the classes of an instance that is a line graph often enough (``Formulation.index``)."""
    exchange = exchange_of(instance)
    for taken in range(options.line_graphs):
        smaller = line_graph_base(exchange)
        if smaller is None:
            raise InputError(f"the network is a line graph {taken} times", place="options.line_graphs")
        exchange = smaller
    return classes_of(exchange)


def build(found: FlowClasses) -> Any:
    """Build the model: flows of classes, capacities of links, deliveries at points, maximum rate."""
    require_buildable(len(found.flows), f"{len(found.flows):,} classes of flows", 4e-6)
    m = pyo.ConcreteModel("mcf-classes")
    m.L = pyo.RangeSet(0, len(found.links) - 1)
    m.rate = pyo.Var(domain=pyo.NonNegativeReals)
    m.flow = pyo.Var(pyo.Set(initialize=found.flows), domain=pyo.NonNegativeReals)
    capacity(m, found)
    delivery(m, found)
    m.objective = pyo.Objective(expr=m.rate, sense=pyo.maximize)
    return m


def capacity(m: Any, found: FlowClasses) -> None:
    """``load_e f + sum_c n_{e,c} y_c <= b_e``: no link of a class carries more than its bandwidth.

    Of the flows on it, over all sources, n are of class c.
    """
    count, on_link = Table(found.on_links()), Lists()
    for k, c in count:
        on_link[k].append(c)
    room = Table(enumerate(found.exchange.room[found.links].tolist()))
    load = Table(enumerate(found.exchange.load[found.links].tolist()))

    @rows(m, [k for k in m.L if load[k] or on_link[k]])
    def capacity(m: Any, k: int) -> Any:
        return load[k] * m.rate + sum(count[k, c] * m.flow[c] for c in on_link[k]) <= room[k]


def delivery(m: Any, found: FlowClasses) -> None:
    """``w_{s,u} f + sum_v y_{s,(u,v)} <= sum_w y_{s,(w,u)}`` for one (s, u) of each class of balances."""
    exchange, flow = found.exchange, found.classes.flow
    at_tail, at_head, used = Lists(), Lists(), set(found.flows)
    for e, (a, b) in enumerate(zip(exchange.tails.tolist(), exchange.heads.tolist(), strict=True)):
        at_tail[a].append(e)
        at_head[b].append(e)
    leaving, entering, share = Lists(), Lists(), Table()
    for q, s, u in found.balances:
        leaving[q] = [c for c in flow[s, at_tail[u]].tolist() if c in used]
        entering[q] = [c for c in flow[s, at_head[u]].tolist() if c in used]
        share[q] = float(exchange.weights[s, u])

    @rows(m, [q for q, _, _ in found.balances if share[q] or leaving[q]])
    def delivery(m: Any, q: int) -> Any:
        return share[q] * m.rate + sum(m.flow[c] for c in leaving[q]) <= sum(m.flow[c] for c in entering[q])


def seconds(found: FlowClasses, objective: float) -> float:
    """Convert the model's objective, a rate, to a time (``Formulation.value``)."""
    return float(found.exchange.unit_s) / objective if objective > 0 else float("inf")
