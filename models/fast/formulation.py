"""The rails of messages between servers as a Pyomo model, with finite bandwidth inside the servers."""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo

from .problem import Exchange, shares_of_one


def build(exchange: Exchange) -> Any:
    """Build the model: all of every message, the links of rails and of servers, and the least time."""
    m = pyo.ConcreteModel("fast")
    variables(m, exchange)
    delivered(m, exchange)
    rail_out(m, exchange)
    rail_in(m, exchange)
    server_out(m, exchange)
    server_in(m, exchange)
    objective(m)
    return m


def variables(m: Any, exchange: Exchange) -> None:
    """``x`` and ``T``."""
    m.R = pyo.RangeSet(0, len(exchange.servers.place) - 1)
    m.M = pyo.Set(dimen=2, initialize=exchange.between)
    m.W = pyo.Set(dimen=3, initialize=shares_of_one(exchange))
    m.x = pyo.Var(m.W, domain=pyo.NonNegativeReals)
    m.T = pyo.Var(domain=pyo.NonNegativeReals)


def delivered(m: Any, exchange: Exchange) -> None:
    """``sum_g x_{s,t,g} = 1``: all of a message takes some rail."""

    @m.Constraint(m.M)
    def delivered(m: Any, s: int, t: int) -> Any:
        return pyo.quicksum(m.x[s, t, g] for g in exchange.rails) == 1


def rail_out(m: Any, exchange: Exchange) -> None:
    """``sum M_st x_{s,t,g} <= b_r T'`` over what leaves the server of r on its rail; ``T'`` is T times the bound."""
    place = exchange.servers.place

    @m.Constraint(m.R)
    def rail_out(m: Any, r: int) -> Any:
        return _carried(m, exchange, r, [w for w in m.W if (place[w[0]][0], w[2]) == place[r]], inside=False, out=True)


def rail_in(m: Any, exchange: Exchange) -> None:
    """The same of what comes to the server of r on its rail."""
    place = exchange.servers.place

    @m.Constraint(m.R)
    def rail_in(m: Any, r: int) -> Any:
        return _carried(m, exchange, r, [w for w in m.W if (place[w[1]][0], w[2]) == place[r]], inside=False, out=False)


def server_out(m: Any, exchange: Exchange) -> None:
    """What r sends inside its server: messages, parts for other rails, and what has come on its rail for others."""
    place = exchange.servers.place

    @m.Constraint(m.R)
    def server_out(m: Any, r: int) -> Any:
        ways = [
            (s, t, g) for s, t, g in m.W if (s == r and g != place[r][1]) or ((place[t][0], g) == place[r] and t != r)
        ]
        return _carried(m, exchange, r, ways, inside=True, out=True)


def server_in(m: Any, exchange: Exchange) -> None:
    """What r receives inside its server: messages, parts of others for its rail, and its own from other rails."""
    place = exchange.servers.place

    @m.Constraint(m.R)
    def server_in(m: Any, r: int) -> Any:
        ways = [
            (s, t, g) for s, t, g in m.W if (t == r and g != place[r][1]) or ((place[s][0], g) == place[r] and s != r)
        ]
        return _carried(m, exchange, r, ways, inside=True, out=False)


def _carried(m: Any, exchange: Exchange, rank: int, ways: list[Any], *, inside: bool, out: bool) -> Any:
    """What a link of a rank carries in the time of the bound, with the messages that stay in its server."""
    room = exchange.servers.rate(rank, inside=inside, out=out) * exchange.bound[0]
    stays = sum((exchange.sizes[pair] for pair in exchange.inside if inside and pair[0 if out else 1] == rank), start=0)
    if not ways and not stays:
        return pyo.Constraint.Feasible
    moved = pyo.quicksum(float(exchange.sizes[s, t] / room) * m.x[s, t, g] for s, t, g in ways)
    return moved + float(stays / room) <= m.T


def objective(m: Any) -> None:
    """Minimize the time."""
    m.objective = pyo.Objective(expr=m.T, sense=pyo.minimize)
