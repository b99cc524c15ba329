"""TACCL's routing and contiguity."""

from __future__ import annotations

from fractions import Fraction

from cwb.algorithms.schedules.problem import commodities_of, edges_of
from cwb.algorithms.schedules.stages import stages_of
from cwb.core.collective import Collective, Demand
from cwb.instances import load
from cwb.models.taccl.formulations import contiguity, routing
from cwb.models.taccl.formulations.contiguity import QueueOrders
from cwb.models.taccl.formulations.routing import RoutingProblem


def small_routing():
    """A broadcast among three ranks on a switch, with few connections and a symmetry of one pair."""
    network = load("star(3, latency='1 s', bandwidth='1 B/s')")
    instance = network.with_changes(demand=Demand(Collective.BROADCAST, Fraction(2)))
    chunks, edges = commodities_of(instance), edges_of(instance.network)
    return routing.build(
        RoutingProblem(
            chunks, edges, stages_of(instance)[0], [range(len(edges))] * len(chunks), (((0, 0), (0, 1)),), "min"
        )
    )


def small_contiguity():
    """Two sends over one edge, then one of them further."""
    return contiguity.build(
        QueueOrders([[0, 1], [2]], [1.0, 1.0, 2.0], [3.0, 4.0, 5.0], [None, None, 0], [0, 0, 1], 16.0)
    )


MODELS = {
    "routing_{}": (small_routing, ["one_send_in", "relay", "arrival", "busy", "last", "connection", "alike"]),
    "contiguity_{}": (small_contiguity, ["data", "duration", "turn", "joined_begin", "joined_end", "busy", "last"]),
}
