"""Pyomo model of the rails of messages between servers, with finite bandwidth inside the servers."""

from collections.abc import Callable
from typing import Any

import pyomo.environ as pyo

from ...core.budget import require_buildable
from ...core.rows import Lists, Table, Variables, rows
from .problem import Exchange


def build(exchange: Exchange) -> Any:
    """Build the model: messages, links of rails and of servers, and the least time."""
    columns = len(exchange.between) * len(exchange.rails)
    require_buildable(columns, f"{len(exchange.between):,} messages", 4e-5)
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
    """``x_{s,t,g} >= 0``, the part of a message on rail g; ``T >= 0``, the time in multiples of the bound ``T_0``."""
    m.M = pyo.Set(dimen=2, initialize=exchange.between)
    m.G = pyo.Set(initialize=exchange.rails)
    m.x = Variables(m.M, m.G, domain=pyo.NonNegativeReals)
    m.T = pyo.Var(domain=pyo.NonNegativeReals)


def delivery(m: Any) -> None:
    """``sum_g x_{s,t,g} = 1``: all of a message takes some rail."""

    @rows(m, m.M)
    def delivery(m: Any, s: int, t: int) -> Any:
        return sum(m.x[s, t, g] for g in m.G) == 1


def rail_out(m: Any, exchange: Exchange) -> None:
    """``sum_{s,t} M_st / (b_r T_0) x_{s,t,g} <= T`` over what rank r sends on its rail g."""
    ranks, load = link_load(exchange, "rail_out")

    @rows(m, ranks)
    def rail_out(m: Any, r: int) -> Any:
        return load(m, r) <= m.T


def rail_in(m: Any, exchange: Exchange) -> None:
    """``sum_{s,t} M_st / (b_r T_0) x_{s,t,g} <= T`` over what rank r receives on its rail g."""
    ranks, load = link_load(exchange, "rail_in")

    @rows(m, ranks)
    def rail_in(m: Any, r: int) -> Any:
        return load(m, r) <= m.T


def server_out(m: Any, exchange: Exchange) -> None:
    """``sum_{s,t,g} M_st / (b_r T_0) x_{s,t,g} + H_r / (b_r T_0) <= T`` over what r sends in its server.

    These are parts of its messages for other rails, and arrivals on its rail for others. H are the bytes of its
    messages that stay in the server.
    """
    ranks, load = link_load(exchange, "server_out")

    @rows(m, ranks)
    def server_out(m: Any, r: int) -> Any:
        return load(m, r) <= m.T


def server_in(m: Any, exchange: Exchange) -> None:
    """``sum_{s,t,g} M_st / (b_r T_0) x_{s,t,g} + H_r / (b_r T_0) <= T`` over what r receives in its server.

    These are parts of others for its rail, and its own from other rails; H as in :func:`server_out`.
    """
    ranks, load = link_load(exchange, "server_in")

    @rows(m, ranks)
    def server_in(m: Any, r: int) -> Any:
        return load(m, r) <= m.T


def link_load(exchange: Exchange, link: str) -> tuple[list[int], Callable[[Any, int], Any]]:
    """Return the ranks with such a link that carries data, and its load in multiples of the bound."""
    ways, stays, room = Lists(), Table(), Table()
    ranks = sorted({rank for kind, rank in (*exchange.passing, *exchange.staying) if kind == link})
    for rank in ranks:
        ways[rank] = exchange.passing.get((link, rank), [])
        stays[rank] = float(exchange.staying.get((link, rank), 0))
        room[rank] = float(exchange.servers.rate(link, rank) * exchange.bound[0])
    size = Table((pair, float(exchange.sizes[pair])) for pair in exchange.between)
    return ranks, lambda m, r: sum(size[s, t] / room[r] * m.x[s, t, g] for s, t, g in ways[r]) + stays[r] / room[r]


def objective(m: Any) -> None:
    """Minimize ``T``."""
    m.objective = pyo.Objective(expr=m.T, sense=pyo.minimize)
