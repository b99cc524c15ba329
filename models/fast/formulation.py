"""The rails of messages between servers as a Pyomo model, with finite bandwidth inside the servers."""

from __future__ import annotations

from fractions import Fraction
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
    """``sum M_st x_{s,t,g} <= b_r T_0 T`` over what rank r sends on its rail; ``T_0`` is the bound."""

    @m.Constraint(m.R)
    def rail_out(m: Any, r: int) -> Any:
        return _carried(m, exchange, r, "rail_out")


def rail_in(m: Any, exchange: Exchange) -> None:
    """The same of what comes to r on its rail."""

    @m.Constraint(m.R)
    def rail_in(m: Any, r: int) -> Any:
        return _carried(m, exchange, r, "rail_in")


def server_out(m: Any, exchange: Exchange) -> None:
    """What r sends inside its server: messages, parts for other rails, and what has come on its rail for others."""

    @m.Constraint(m.R)
    def server_out(m: Any, r: int) -> Any:
        return _carried(m, exchange, r, "server_out")


def server_in(m: Any, exchange: Exchange) -> None:
    """What r receives inside its server: messages, parts of others for its rail, and its own from other rails."""

    @m.Constraint(m.R)
    def server_in(m: Any, r: int) -> Any:
        return _carried(m, exchange, r, "server_in")


def _carried(m: Any, exchange: Exchange, rank: int, link: str) -> Any:
    """What a link of a rank carries in the time of the bound, with the messages that stay in its server."""
    inside, out = link.startswith("server"), link.endswith("out")
    room = float(exchange.servers.rate(rank, inside=inside, out=out) * exchange.bound[0])
    end = 0 if out else 1
    stays = sum((exchange.sizes[pair] for pair in exchange.inside if inside and pair[end] == rank), start=Fraction(0))
    ways = exchange.passing[link, rank]
    if not ways and not stays:
        return pyo.Constraint.Feasible
    moved = pyo.quicksum(float(exchange.sizes[s, t]) / room * m.x[s, t, g] for s, t, g in ways)
    return moved + float(stays) / room <= m.T


def objective(m: Any) -> None:
    """Minimize the time."""
    m.objective = pyo.Objective(expr=m.T, sense=pyo.minimize)
