"""LP (1), integer program (13) and LP (14), each as one model for all nodes and steps (docs/methods/bfb.md)."""

from typing import Any

import pyomo.environ as pyo

from .problem import Choices, unit_of


def build_lp(choices: Choices) -> Any:
    """Build LP (1): parts of shards, the load of every link, everything received."""
    m = pyo.ConcreteModel("bfb")
    sets(m, choices)
    shares(m)
    link_load(m, choices)
    whole_shard(m, choices)
    least_load(m)
    return m


def build_chunked(choices: Choices) -> Any:
    """Build program (13): whole pieces of shards, the load of every link, all pieces received."""
    m = pyo.ConcreteModel("bfb-chunked")
    sets(m, choices)
    whole_pieces(m, choices)
    piece_load(m, choices)
    all_pieces(m, choices)
    least_pieces(m)
    return m


def build_heterogeneous(choices: Choices) -> Any:
    """Build LP (14): parts of shards, the time of every link, everything received."""
    m = pyo.ConcreteModel("bfb-heterogeneous")
    sets(m, choices)
    shares(m)
    link_time(m, choices)
    whole_shard(m, choices)
    least_load(m)
    return m


def sets(m: Any, choices: Choices) -> None:
    """Declare pairs (v, e) of shards and links, (e, t) with steps, (v, u) with receivers, and (u, t)."""
    m.VE = pyo.Set(dimen=2, initialize=[(v, e) for (v, _), links in choices.over.items() for e in links])
    m.ET = pyo.Set(dimen=2, initialize=list(choices.carries))
    m.VU = pyo.Set(dimen=2, initialize=list(choices.over))
    m.UT = pyo.Set(dimen=2, initialize=list(dict.fromkeys((choices.target(e), t) for e, t in choices.carries)))


def shares(m: Any) -> None:
    """``0 <= x_{v,e} <= 1``, the part of v's shard on e; U, the largest load or time."""
    m.x = pyo.Var(m.VE, bounds=(0, 1))
    m.U = pyo.Var(m.UT, domain=pyo.NonNegativeReals)


def whole_pieces(m: Any, choices: Choices) -> None:
    """``y_{v,e} in {0, 1, ..., P}``, the pieces of v's shard on e; W, the largest number on a link."""
    m.y = pyo.Var(m.VE, domain=pyo.NonNegativeIntegers, bounds=(0, choices.pieces))
    m.W = pyo.Var(m.UT, domain=pyo.NonNegativeReals)


def link_load(m: Any, choices: Choices) -> None:
    """(1): ``sum_v x_{v,e} <= U_{u,t}`` for every link e into u."""

    @m.Constraint(m.ET)
    def link_load(m: Any, e: int, t: int) -> Any:
        return pyo.quicksum(m.x[v, e] for v in choices.carries[e, t]) <= m.U[choices.target(e), t]


def piece_load(m: Any, choices: Choices) -> None:
    """(13): ``sum_v y_{v,e} <= W_{u,t}`` for every link e into u."""

    @m.Constraint(m.ET)
    def piece_load(m: Any, e: int, t: int) -> Any:
        return pyo.quicksum(m.y[v, e] for v in choices.carries[e, t]) <= m.W[choices.target(e), t]


def link_time(m: Any, choices: Choices) -> None:
    """(14): ``alpha_e + (M/N) / B_e sum_v x_{v,e} <= U_{u,t}`` for every link e into u."""
    unit_s = unit_of(choices.topology, choices.shard_bytes)

    @m.Constraint(m.ET)
    def link_time(m: Any, e: int, t: int) -> Any:
        link = choices.topology.links[e]
        alpha, beta = float(link.latency_s / unit_s), float(choices.shard_bytes / link.bandwidth_Bps / unit_s)
        carried = pyo.quicksum(m.x[v, e] for v in choices.carries[e, t])
        return alpha + beta * carried <= m.U[choices.target(e), t]


def whole_shard(m: Any, choices: Choices) -> None:
    """(1), (14): ``sum_e x_{v,e} = 1``, u receives all of v's shard."""

    @m.Constraint(m.VU)
    def whole_shard(m: Any, v: int, u: int) -> Any:
        return pyo.quicksum(m.x[v, e] for e in choices.over[v, u]) == 1


def all_pieces(m: Any, choices: Choices) -> None:
    """(13): ``sum_e y_{v,e} = P``, u receives all pieces of v's shard."""

    @m.Constraint(m.VU)
    def all_pieces(m: Any, v: int, u: int) -> Any:
        return pyo.quicksum(m.y[v, e] for e in choices.over[v, u]) == choices.pieces


def least_load(m: Any) -> None:
    """Minimize every U, by ``sum_{u,t} U_{u,t}``."""
    m.objective = pyo.Objective(expr=pyo.quicksum(m.U[u, t] for u, t in m.UT))


def least_pieces(m: Any) -> None:
    """Minimize every W, by ``sum_{u,t} W_{u,t}``."""
    m.objective = pyo.Objective(expr=pyo.quicksum(m.W[u, t] for u, t in m.UT))
