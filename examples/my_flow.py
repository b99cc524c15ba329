"""A model of one's own: how fast an all_gather can be if data may be split, copied on the way, and needs no time to pass a link.

cwb solve --plugin examples/my_flow.py --model my-flow "torus(3,3)" --collective all_gather
"""

import cwb
import pyomo.environ as pyo


def index(instance, options):
    """Ranks, links, and how many shards a link carries in a second."""
    network = instance.network
    shard_bytes = instance.demand.size_bytes / instance.npus
    return {
        "nodes": range(len(network.nodes)),
        "ranks": network.rank_nodes,
        "ends": dict(enumerate(network.link_ends)),
        "rate": [float(link.bandwidth_Bps / shard_bytes) for link in network.links],
    }


def build(data):
    """Flows to every rank, what links carry for all of them, and the time, which is to be short."""
    m = pyo.ConcreteModel("my-flow")
    m.E = pyo.Set(initialize=list(data["ends"]))
    m.P = pyo.Set(dimen=2, initialize=[(s, t) for s in data["ranks"] for t in data["ranks"] if s != t])
    m.flow = pyo.Var(m.P, m.E, domain=pyo.NonNegativeReals)
    m.carried = pyo.Var(data["ranks"], m.E, domain=pyo.NonNegativeReals)
    m.time = pyo.Var(domain=pyo.NonNegativeReals)
    m.conservation = pyo.Constraint(m.P, data["nodes"], rule=lambda m, s, t, n: conservation(m, data, s, t, n))
    m.copies = pyo.Constraint(m.P, m.E, rule=lambda m, s, t, e: m.flow[s, t, e] <= m.carried[s, e])
    m.capacity = pyo.Constraint(
        m.E, rule=lambda m, e: sum(m.carried[s, e] for s in data["ranks"]) <= data["rate"][e] * m.time
    )
    m.least_time = pyo.Objective(expr=m.time)
    return m


def conservation(m, data, s, t, n):
    """What comes to a node leaves it, but for the shard that starts at s and ends at t."""
    leaving = sum(m.flow[s, t, e] for e, (a, _) in data["ends"].items() if a == n)
    entering = sum(m.flow[s, t, e] for e, (_, b) in data["ends"].items() if b == n)
    return leaving - entering == (n == s) - (n == t)


FORMULATION = cwb.Formulation("mine/flow", index=index, build=build, summary="an all_gather as flows that are copied")
METHOD = cwb.Method.of(FORMULATION, name="my-flow")
