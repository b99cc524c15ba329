"""LP (3) of direct-connect, appendix A.5, as a Pyomo model.

It includes switches and ranks outside the group, which only forward flow. Weights extend it to any data of single
ranks for single ranks: several groups at once, or pairs that exchange different amounts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

import pyomo.environ as pyo

from ...algorithms.bounds.joint_bounds import pairs_of
from ...core.instance import Instance
from ...core.limits import require_buildable
from ...core.rows import Lists, Table, rows
from ...core.topology import Topology


def build(instance: Instance) -> Any:
    """Build the model of all pairs that exchange data: flows, capacities, deliveries, maximum rate."""
    topology, sources = instance.topology, len(set(pairs_of(instance)[0].tolist()))
    require_buildable(sources * len(topology.links), f"flows of {sources:,} ranks", 4e-6)
    weights = weights_of(instance)
    m = pyo.ConcreteModel("mcf")
    sets(m, topology, dict.fromkeys(source for source, _ in weights))
    variables(m)
    capacity(m, topology)
    delivery(m, topology, weights)
    objective(m)
    return m


def largest_exchange(instance: Instance) -> Fraction:
    """Return the most bytes that one rank has for another: the unit of the weights."""
    return max(_exchanges(instance).values())


def weights_of(instance: Instance) -> dict[tuple[int, int], float]:
    """Return ``w_{s,u}``, bytes between nodes over the largest of them; 1 in an all-to-all."""
    exchanges = _exchanges(instance)
    unit = max(exchanges.values(), default=Fraction(1))
    return {pair: float(size / unit) for pair, size in exchanges.items()}


def _exchanges(instance: Instance) -> dict[tuple[int, int], Fraction]:
    nodes, found = instance.topology.rank_nodes, defaultdict[tuple[int, int], Fraction](Fraction)
    for source, target, size in zip(*pairs_of(instance), strict=True):
        found[nodes[int(source)], nodes[int(target)]] += size
    return dict(found)


def bandwidth_unit(topology: Topology) -> Fraction:
    """Return the largest bandwidth, the model's unit of flow."""
    return max(link.bandwidth_Bps for link in topology.links)


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
    m.flow = pyo.Var(m.S, m.E, domain=pyo.NonNegativeReals)


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
        kept = share.get((s, u), 0.0) * m.rate
        return kept + sum(m.flow[s, e] for e in leaving[u]) <= sum(m.flow[s, e] for e in entering[u])


def objective(m: Any) -> None:
    """Maximize ``f``."""
    m.objective = pyo.Objective(expr=m.rate, sense=pyo.maximize)
