"""Pyomo model of the rails of messages between servers, with finite bandwidth inside the servers."""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo

from ...core.rows import Lists, Table, rows
from .problem import Exchange


def build(exchange: Exchange) -> Any:
    """Build the model: messages, links of rails and of servers, and the least time."""
    m = pyo.ConcreteModel("fast")
    variables(m, exchange)
    delivery(m)
    rail_out(m, exchange)
    rail_in(m, exchange)
    server_out(m, exchange)
    server_in(m, exchange)
    objective(m)
    return m


def variables(m: Any, exchange: Exchange) -> None:
    """``x`` and ``T``."""
    m.M = pyo.Set(dimen=2, initialize=exchange.between)
    m.G = pyo.Set(initialize=exchange.rails)
    m.x = pyo.Var(m.M, m.G, domain=pyo.NonNegativeReals)
    m.T = pyo.Var(domain=pyo.NonNegativeReals)


def delivery(m: Any) -> None:
    """``sum_g x_{s,t,g} = 1``: all of a message takes some rail."""

    @rows(m, m.M)
    def delivered(m: Any, s: int, t: int) -> Any:
        return sum(m.x[s, t, g] for g in m.G) == 1


def rail_out(m: Any, exchange: Exchange) -> None:
    """``sum M_st x_{s,t,g} + H_r <= b_r T_0 T`` over what rank r sends on its rail; ``T_0`` is the bound.

    H is what stays inside a server, on the links of servers alone.
    """
    _link_load(m, exchange, "rail_out")


def rail_in(m: Any, exchange: Exchange) -> None:
    """Limit the data into r on its rail in the same way."""
    _link_load(m, exchange, "rail_in")


def server_out(m: Any, exchange: Exchange) -> None:
    """Limit r's sends in its server: messages, parts for other rails, arrivals on its rail for others."""
    _link_load(m, exchange, "server_out")


def server_in(m: Any, exchange: Exchange) -> None:
    """Limit r's receipts in its server: messages, others' parts for its rail, its own from other rails."""
    _link_load(m, exchange, "server_in")


def _link_load(m: Any, exchange: Exchange, link: str) -> None:
    """``sum M_st / (b_r T_0) x_{s,t,g} + H_r / (b_r T_0) <= T``: what links of ranks carry in the time of the bound."""
    ways, stays, room = Lists(), Table(), Table()
    ranks = sorted({rank for kind, rank in (*exchange.passing, *exchange.staying) if kind == link})
    for rank in ranks:
        ways[rank] = exchange.passing.get((link, rank), [])
        stays[rank] = float(exchange.staying.get((link, rank), 0))
        room[rank] = float(exchange.rate(link, rank) * exchange.bound[0])
    size = Table((pair, float(exchange.sizes[pair])) for pair in exchange.between)

    def carried(m: Any, r: int) -> Any:
        return sum(size[s, t] / room[r] * m.x[s, t, g] for s, t, g in ways[r]) + stays[r] / room[r] <= m.T

    carried.__name__ = link
    rows(m, ranks)(carried)


def objective(m: Any) -> None:
    """Minimize the time."""
    m.objective = pyo.Objective(expr=m.T, sense=pyo.minimize)
