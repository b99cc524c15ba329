"""The least time of an all_gather whose data may be split, and copied on the way, over links without latency.

README.md has the linear program (1) to (5).
"""

from dataclasses import dataclass

import cwb
import pyomo.environ as pyo
from cwb.core.topology import Topology


@dataclass(frozen=True)
class Data:
    """The sets and parameters: nodes with links, ranks, the ends (a, b) of links, and the shards a second of links."""

    nodes: tuple[int, ...]
    ranks: tuple[int, ...]
    ends: tuple[tuple[int, int], ...]
    rate: tuple[float, ...]


def supports(instance):
    """Return the reason why an instance is none for this model, or None."""
    demand = instance.demand
    if not isinstance(instance.network, Topology):
        return "the network has no links; expected an explicit network such as torus(3,3)"
    if demand is None or demand.collective.name != "all_gather" or demand.ranks is not None or instance.also:
        return "expected one all_gather of all ranks"
    if not {*instance.network.rank_nodes} <= linked_nodes(instance.network):
        return "a rank has no links; expected a connected network"
    return None


def linked_nodes(network):
    """Nodes with links."""
    return {node for ends in network.link_ends for node in ends}


def index(instance, options):
    """Take the sets and parameters of the model out of an instance."""
    network = instance.network
    shard = instance.demand.size_bytes / instance.npus
    rate = tuple(float(link.bandwidth_Bps / shard) for link in network.links)
    return Data(tuple(sorted(linked_nodes(network))), tuple(network.rank_nodes), tuple(network.link_ends), rate)


def build(data):
    """Build the linear program (1) to (5), one function a constraint."""
    m = pyo.ConcreteModel("my-flow")
    m.N = pyo.Set(initialize=data.nodes)
    m.R = pyo.Set(initialize=data.ranks)
    m.E = pyo.RangeSet(0, len(data.ends) - 1)
    m.P = pyo.Set(dimen=2, initialize=[(s, t) for s in data.ranks for t in data.ranks if s != t])
    m.flow = pyo.Var(m.P, m.E, domain=pyo.NonNegativeReals)
    m.carried = pyo.Var(m.R, m.E, domain=pyo.NonNegativeReals)
    m.time = pyo.Var(domain=pyo.NonNegativeReals)
    m.least_time = pyo.Objective(expr=m.time)  # (1)
    conservation(m, data)
    copies(m)
    capacity(m, data)
    return m


def conservation(m, data):
    """(2): what comes to a node leaves it, but for the shard that starts at s and ends at t."""

    @m.Constraint(m.P, m.N)
    def conservation(m, s, t, n):
        leaving = sum(m.flow[s, t, e] for e, (a, _) in enumerate(data.ends) if a == n)
        entering = sum(m.flow[s, t, e] for e, (_, b) in enumerate(data.ends) if b == n)
        return leaving - entering == (n == s) - (n == t)


def copies(m):
    """(3): a link carries the most of what any rank gets of a shard over it, since copies are made behind it."""

    @m.Constraint(m.P, m.E)
    def copies(m, s, t, e):
        return m.flow[s, t, e] <= m.carried[s, e]


def capacity(m, data):
    """(4): what a link carries of all shards fits into the time."""

    @m.Constraint(m.E)
    def capacity(m, e):
        return sum(m.carried[s, e] for s in m.R) <= data.rate[e] * m.time


FORMULATION = cwb.Formulation(
    "my-flow/lp",
    index=index,
    build=build,
    supports=supports,
    summary="an all_gather as flows that are copied on the way",
    equations="(1) to (5)",
)
METHOD = cwb.Method.of(FORMULATION, name="my-flow")
